//! Every limit of the API, each with its reason.

use std::time::Duration;

/// Longest request body where nothing else is said: 1 MiB.
pub(super) const BODY_BYTES: usize = 1 << 20;

/// Longest body of `POST /v1/configs`: 64 MiB.
pub(super) const CONFIGS_BODY_BYTES: usize = 64 << 20;

/// Longest single file inside it: 8 MiB.
pub(super) const CONFIG_FILE_BYTES: usize = 8 << 20;

/// Longest report of a job: a structured output of 8 MiB, and 1 MiB for all the rest of it.
pub(super) const REPORT_BODY_BYTES: usize = schema::wire::UPLOAD_LIMIT_BYTES + BODY_BYTES;

/// Bytes of an upload that are taken from the connection before they go to the disk: large enough
/// that a megabyte needs few turns, small enough that all connections together need little memory.
pub(super) const UPLOAD_PIECE_BYTES: usize = 256 << 10;

/// How much of a body that is too long is read and thrown away after our answer, so that its sender
/// reads our answer instead of a broken connection. Twice the longest legal body: an honest mistake
/// fits, a flood does not.
pub(super) const DRAIN_BYTES: usize = 2 * CONFIGS_BODY_BYTES;

/// Longest wait for the head of a request, and for the next one on an idle connection: several
/// times what the slowest honest client needs.
const HEAD_TIMEOUT: Duration = Duration::from_secs(30);

/// Longest wait for the next piece of a body.
pub(super) const BODY_SILENCE: Duration = Duration::from_secs(20);

/// Longest time for the whole of a request until its answer begins: 64 MiB over 2 Mbit/s, and the
/// answer.
pub(super) const REQUEST_TIMEOUT: Duration = Duration::from_secs(300);

/// Connections at a time where the limit of open files allows it: a thousand open pages have one
/// each by which they hear of changes and, while things change, one more by which they look; half
/// as many again are for programs, jobs that upload and people who come.
pub const CONNECTIONS: usize = 3072;

/// How many connections there may be, and how long one may keep us waiting.
#[derive(Debug, Clone, Copy)]
pub struct ConnectionLimits {
    /// Connections at a time.
    pub(super) all: usize,
    /// Of these from one address.
    pub(super) of_one_address: usize,
    /// Of these that only this machine gets, for its health checks and for whoever is called to
    /// help.
    pub(super) kept_for_this_machine: usize,
    /// Of these that may be streams of server-sent events: open pages, mostly.
    pub(super) streams: usize,
    /// Of the streams those of one token.
    pub(super) streams_of_one_token: usize,
    /// Longest wait for the head of a request, from its connection's start or the last answer's
    /// end on.
    pub(super) head: Duration,
    /// Longest time in which a client takes nothing of an answer.
    pub(super) write_silence: Duration,
}

impl ConnectionLimits {
    /// Those of so many connections. Streams are half of them, so that there is always room to ask
    /// and to change; three quarters of each are for one address and one token, as all clients
    /// behind a proxy have the same address and a team may share a token. An answer that is not
    /// taken for a minute is nobody's.
    pub fn of(all: usize) -> Self {
        let streams = all / 2;
        Self {
            all,
            of_one_address: all - all / 4,
            kept_for_this_machine: (all / 16).min(32),
            streams,
            streams_of_one_token: streams - streams / 4,
            head: HEAD_TIMEOUT,
            write_silence: Duration::from_secs(60),
        }
    }

    /// Connections at a time.
    pub fn all(&self) -> usize {
        self.all
    }

    /// Streams at a time: so many pages can be open and follow.
    pub fn streams(&self) -> usize {
        self.streams
    }
}

impl Default for ConnectionLimits {
    fn default() -> Self {
        Self::of(CONNECTIONS)
    }
}

/// How often an event stream gives a sign of life, so that both sides notice a dead connection.
pub(super) const SIGN_OF_LIFE: Duration = Duration::from_secs(15);

/// How long requests under way have after the order to stop: half of the 10 s that a graceful stop
/// may take.
pub(super) const STOP_WITHIN: Duration = Duration::from_secs(5);

/// Bytes of a job's output in one answer or one event: a megabyte of base64 is a line that every
/// client reads.
pub(super) const OUTPUT_PIECE_BYTES: usize = 1 << 20;

/// Bytes of a job's output in one server-sent event.
pub(super) const OUTPUT_EVENT_BYTES: usize = 64 << 10;

/// How often a followed job is looked at: well inside the 300 ms from a job's end to the page that
/// shows it.
pub(super) const OUTPUT_LOOK_EVERY: Duration = Duration::from_millis(100);

/// Log entries read at a time for a stream that has something to catch up with.
pub(super) const EVENTS_AT_A_TIME: u32 = 500;
