-- Lists of jobs by application or channel, of any kind and status, and of an application's log: each page is read from one
-- index in its order, however many jobs there are. The application is that of the job's service, which never moves.
ALTER TABLE jobs ADD COLUMN application_id TEXT;
UPDATE jobs SET application_id = (SELECT application_id FROM services WHERE services.id = jobs.service_id);
CREATE INDEX jobs_by_application ON jobs (application_id, kind, status, seq);
CREATE INDEX jobs_by_channel ON jobs (channel_id, kind, status, seq);
CREATE INDEX jobs_by_kind_and_status ON jobs (kind, status, seq);
DROP INDEX jobs_by_kind;
DROP INDEX jobs_by_status;
CREATE INDEX events_by_application ON events (application, seq);
