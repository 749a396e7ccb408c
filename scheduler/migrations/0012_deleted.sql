-- What a person deleted. Rows stay, so that history can be read, and so that names come back with their ids and go on
-- counting where they stopped: a version or a release number never means two things.
ALTER TABLE applications ADD COLUMN deleted_at BIGINT;
ALTER TABLE services ADD COLUMN deleted_at BIGINT;
-- Of the newest version of a document: it is in force no more.
ALTER TABLE documents ADD COLUMN deleted_at BIGINT;
ALTER TABLE documents ADD COLUMN deleted_by TEXT;
CREATE INDEX documents_deleted ON documents (kind, application, name, version) WHERE deleted_at IS NOT NULL;
-- How many instances a runtime serves, and which: without it that is a look at all of them, states included.
CREATE INDEX instances_by_runtime ON instances (runtime);
