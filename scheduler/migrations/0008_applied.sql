-- What an apply was started with, kept when it is over: what it may have left in the world is masked in what later jobs print.
ALTER TABLE jobs ADD COLUMN compiled TEXT;    -- of an apply: digest in `compiled`
ALTER TABLE jobs ADD COLUMN fetch_job TEXT;   -- of an apply: the fetch whose files it was handed
