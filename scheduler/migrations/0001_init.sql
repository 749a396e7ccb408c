-- TEXT and BIGINT only, times as epoch milliseconds, so that SQLite and PostgreSQL share every statement.

CREATE TABLE meta (
    key TEXT NOT NULL PRIMARY KEY,
    value TEXT NOT NULL
);

-- Every version of every config document as it was given; the newest one of a name is in force unless deleted.
CREATE TABLE documents (
    kind TEXT NOT NULL,               -- runtime, application, service
    application TEXT NOT NULL,        -- of a service, else ''
    name TEXT NOT NULL,
    version BIGINT NOT NULL,          -- from 1
    digest TEXT NOT NULL,             -- of the document's meaning, so that a changed comment is no new version
    source TEXT NOT NULL,             -- sealed JSON: schema::config::Source; may hold raw secrets
    created_at BIGINT NOT NULL,
    created_by TEXT NOT NULL,
    PRIMARY KEY (kind, application, name, version)
);

CREATE TABLE runtimes (
    id TEXT NOT NULL PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    kind TEXT NOT NULL,
    summary TEXT NOT NULL,            -- JSON: labels, proxy runtime, limits; what lists show
    config_version BIGINT NOT NULL,
    created_at BIGINT NOT NULL
);

CREATE TABLE applications (
    id TEXT NOT NULL PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    config_version BIGINT NOT NULL,
    created_at BIGINT NOT NULL
);

CREATE TABLE channels (
    id TEXT NOT NULL PRIMARY KEY,
    application_id TEXT NOT NULL REFERENCES applications (id),
    name TEXT NOT NULL,
    position BIGINT NOT NULL,         -- order in the config
    summary TEXT NOT NULL,            -- JSON: schema::api::ReleaseChannel less its ids
    deleted_at BIGINT,
    UNIQUE (application_id, name)
);

CREATE TABLE services (
    id TEXT NOT NULL PRIMARY KEY,
    application_id TEXT NOT NULL REFERENCES applications (id),
    name TEXT NOT NULL,
    config_version BIGINT NOT NULL,
    release_count BIGINT NOT NULL,    -- number of the newest release; versions are <service>-<n>
    created_at BIGINT NOT NULL,
    UNIQUE (application_id, name)
);

CREATE TABLE releases (
    id TEXT NOT NULL PRIMARY KEY,
    service_id TEXT NOT NULL REFERENCES services (id),
    seq BIGINT NOT NULL UNIQUE,       -- order over all services, for paging
    number BIGINT NOT NULL,           -- order within the service
    version TEXT NOT NULL,
    params TEXT NOT NULL,             -- JSON: compile::Values; raw secrets sealed
    service_version BIGINT NOT NULL,  -- of the service's document, for compiling it again when a runtime changes
    created_at BIGINT NOT NULL,
    created_by TEXT NOT NULL,
    rolled_back_to TEXT,              -- the release whose compiled form this one took over
    UNIQUE (service_id, number)
);
-- A release that goes back has the version that it goes back to.
CREATE INDEX releases_by_version ON releases (service_id, version);

-- What a release means for one channel; REPLACED and the final status are written when they happen.
CREATE TABLE release_channels (
    release_id TEXT NOT NULL REFERENCES releases (id),
    channel_id TEXT NOT NULL REFERENCES channels (id),
    status TEXT NOT NULL,
    compiled TEXT NOT NULL,           -- digest in `compiled`
    desired TEXT NOT NULL,            -- JSON: engine::desired::Desired
    converged_at BIGINT,
    PRIMARY KEY (release_id, channel_id)
);

-- Rendered commands by content.
CREATE TABLE compiled (
    digest TEXT NOT NULL PRIMARY KEY,
    body TEXT NOT NULL                -- JSON: compile::Commands; raw secrets sealed
);

-- One service in one channel: the engine's state, and beside it what lists show and filter by.
CREATE TABLE instances (
    id TEXT NOT NULL PRIMARY KEY,
    service_id TEXT NOT NULL REFERENCES services (id),
    channel_id TEXT NOT NULL REFERENCES channels (id),
    runtime TEXT NOT NULL,
    state TEXT NOT NULL,              -- JSON: engine::state::State
    revision BIGINT NOT NULL,         -- counts commits; a change carries the one it was made from
    release_id TEXT,
    desired_version TEXT,
    status TEXT NOT NULL,
    reason TEXT,
    message TEXT NOT NULL,
    since BIGINT NOT NULL,
    next_wake BIGINT,
    UNIQUE (service_id, channel_id)
);
CREATE INDEX instances_by_channel ON instances (channel_id);
CREATE INDEX instances_by_status ON instances (status);

CREATE TABLE jobs (
    id TEXT NOT NULL PRIMARY KEY,
    seq BIGINT NOT NULL UNIQUE,       -- order of decision, for paging
    instance_id TEXT NOT NULL,
    service_id TEXT NOT NULL,
    channel_id TEXT NOT NULL,
    release_id TEXT NOT NULL,
    kind TEXT NOT NULL,
    version TEXT NOT NULL,
    runtime TEXT NOT NULL,
    attempt BIGINT NOT NULL,
    status TEXT NOT NULL,
    exit_code BIGINT,
    message TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    started_at BIGINT,
    ended_at BIGINT,
    report TEXT,                      -- JSON: schema::report::Report without its inline streams
    start TEXT,                       -- JSON: engine::action::StartJob until the job is over; the pending start itself
    once BIGINT NOT NULL              -- 1: asked for by a person as a dry run; never counts as the instance's
);
CREATE INDEX jobs_by_instance ON jobs (instance_id, seq);
CREATE INDEX jobs_by_service ON jobs (service_id, seq);
CREATE INDEX jobs_by_kind ON jobs (kind, seq);
CREATE INDEX jobs_by_status ON jobs (status, seq);
CREATE INDEX jobs_unfinished ON jobs (seq) WHERE ended_at IS NULL;

-- Actions other than starts, committed but not known to be performed. Performed again after a restart; each may be done
-- twice. A start is pending as long as its job is not over, so it needs no row here.
CREATE TABLE pending_actions (
    id BIGINT NOT NULL PRIMARY KEY,
    instance_id TEXT NOT NULL,
    action TEXT NOT NULL,             -- JSON: engine::action::Action
    created_at BIGINT NOT NULL
);

-- The append-only log that explain, the timeline and the audit read.
CREATE TABLE events (
    seq BIGINT NOT NULL PRIMARY KEY,
    at BIGINT NOT NULL,
    kind TEXT NOT NULL,
    actor TEXT,
    origin TEXT,
    application TEXT,
    service TEXT,
    channel TEXT,
    message TEXT NOT NULL,
    data TEXT NOT NULL                -- JSON
);
CREATE INDEX events_by_service ON events (application, service, seq);
CREATE INDEX events_by_actor ON events (seq) WHERE actor IS NOT NULL;

CREATE TABLE tokens (
    id TEXT NOT NULL PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    role TEXT NOT NULL,               -- viewer, approver, admin
    hash TEXT NOT NULL UNIQUE,        -- SHA-256 of a 256-bit random token
    created_at BIGINT NOT NULL,
    expires_at BIGINT,
    revoked_at BIGINT
);

CREATE TABLE secrets (
    key TEXT NOT NULL,
    version BIGINT NOT NULL,
    sealed TEXT NOT NULL,             -- base64: nonce and ciphertext, bound to key and version
    created_at BIGINT NOT NULL,
    created_by TEXT NOT NULL,
    PRIMARY KEY (key, version)
);
