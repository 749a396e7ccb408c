-- Messages to people who did not ask, written with what they tell of and sent afterwards: an outbox.
CREATE TABLE notifications (
    seq BIGINT NOT NULL PRIMARY KEY,  -- the order in which they are sent to a target
    id TEXT NOT NULL UNIQUE,
    application TEXT NOT NULL,        -- whose config names the target
    target TEXT NOT NULL,
    service TEXT,
    channel TEXT,
    kind TEXT NOT NULL,               -- schema::notification::NotificationKind
    status TEXT NOT NULL,             -- schema::notification::NotificationStatus
    message TEXT NOT NULL,            -- JSON: schema::api::NotificationMessage; no address and no key is in it
    attempts BIGINT NOT NULL,         -- how often sending it failed
    error TEXT,                       -- why it failed last
    digest TEXT,                      -- the message that told it with others
    created_at BIGINT NOT NULL,
    next_attempt_at BIGINT NOT NULL,
    ended_at BIGINT                   -- since when it is not pending
);
CREATE INDEX notifications_pending ON notifications (application, target, seq) WHERE status = 'PENDING';
CREATE INDEX notifications_sent ON notifications (application, target, ended_at) WHERE status = 'SENT';
CREATE INDEX notifications_ended ON notifications (ended_at) WHERE ended_at IS NOT NULL;
CREATE INDEX notifications_by_status ON notifications (status, seq);
CREATE INDEX notifications_by_target ON notifications (application, target, seq);

-- What was told last of a service in a channel that is not well, so that it is told once, and that it is well again too.
CREATE TABLE notified (
    application TEXT NOT NULL,
    service TEXT NOT NULL,
    channel TEXT NOT NULL,
    event TEXT NOT NULL,              -- schema::notification::NotificationEvent
    version TEXT NOT NULL,            -- the version that it was told of
    PRIMARY KEY (application, service, channel)
);
