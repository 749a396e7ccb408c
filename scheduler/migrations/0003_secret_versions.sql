-- The newest version that a deleted secret had: versions count up for ever, so that `version: 1` never names another value.
CREATE TABLE secret_versions (
    key TEXT NOT NULL PRIMARY KEY,
    last BIGINT NOT NULL
);
