-- Which daemon has the database: one row. Each one that takes it counts the epoch on, every commit tests it, and whoever
-- would take over watches `renewals`: that needs no two clocks that agree.
CREATE TABLE owner (
    id BIGINT NOT NULL PRIMARY KEY,   -- 1
    epoch BIGINT NOT NULL,
    renewals BIGINT NOT NULL,
    released BIGINT NOT NULL,         -- 1: it ended in order and nobody has it
    data_directory TEXT NOT NULL,     -- the id in the owner's data directory
    path TEXT NOT NULL,               -- of that directory, for people
    host TEXT NOT NULL,               -- for people
    pid BIGINT NOT NULL,              -- for people
    since BIGINT NOT NULL
);
