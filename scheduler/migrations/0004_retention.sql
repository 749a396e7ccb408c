-- Structured output by content: a command that is polled prints the same document again and again.
CREATE TABLE structured (
    digest TEXT NOT NULL PRIMARY KEY,
    body TEXT NOT NULL                -- JSON: the value in schema::report::Structured
);
-- Where the value of a job's report is, when it is not in the report.
ALTER TABLE jobs ADD COLUMN structured TEXT;
CREATE INDEX jobs_by_structured ON jobs (structured) WHERE structured IS NOT NULL;

-- Each blob that a job left, and when one last did: what nothing named for long enough is removed.
CREATE TABLE blobs (
    id TEXT NOT NULL PRIMARY KEY,
    used_at BIGINT NOT NULL,          -- end of the newest job that left it
    applied_at BIGINT                 -- the same for applies alone, which are kept longer
);
CREATE INDEX blobs_by_use ON blobs (used_at);

-- The jobs of an instance by kind in order, for their retention.
CREATE INDEX jobs_by_instance_and_kind ON jobs (instance_id, kind, seq);
-- The newest failure, which is kept, is rarely near the end.
CREATE INDEX jobs_failed ON jobs (instance_id, kind, seq) WHERE status = 'FAILED';
CREATE INDEX release_channels_by_compiled ON release_channels (compiled);
