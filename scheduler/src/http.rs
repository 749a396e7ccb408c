//! The HTTP API and the pages. Reads come from the store, changes go through
//! [`driver::Handle`](crate::driver::Handle), never past it; what jobs upload goes to
//! [`delivery`](crate::delivery). Called by `daemon`, which knows where jobs' output lies and when
//! to stop.
//!
//! What always holds: every answer that is not 2xx is a problem (RFC 9457) whose detail says what
//! to do next (for a browser a page that says the same); everything but `api::open`, the schemas
//! and the door of the pages needs a token; every body, page, stream and wait has a limit from
//! [`limits`].

mod access;
pub mod advertised;
mod api;
mod config_text;
mod connections;
mod error;
mod extract;
mod followed_job;
mod limits;
mod lookup;
mod openapi;
mod pages;
mod serve;
mod sessions;
mod streams;
mod tls;
mod together;
mod turns;
mod unread;
mod upload;

use std::io;
use std::sync::Arc;

use axum::Router;
use futures::future::BoxFuture;
use schema::report::Report;
use schema::spool::Stream;
use schema::target::PlacedJob;
use tokio_util::sync::CancellationToken;

use crate::clock::Clock;
use crate::delivery::Delivery;
use crate::driver::Handle;
use crate::store::Store;

pub use limits::{CONNECTIONS, ConnectionLimits};
pub use serve::serve;
pub use sessions::BrowserSessions;
pub use streams::EventStreams;
pub use tls::{Tls, TlsError, TlsFiles, authorities};

/// Which bytes of a job's output are wanted.
#[derive(Debug, Clone)]
pub struct OutputRange {
    /// Which job, and where it runs.
    pub placed: PlacedJob,
    /// What it reported, once it has ended.
    pub report: Option<Box<Report>>,
    pub stream: Stream,
    /// From which byte on.
    pub offset: u64,
    /// At most this many bytes.
    pub limit: usize,
}

/// Reads a piece of a job's output wherever it lies at present: where a running job runs, the blobs
/// of one that ended. What is not there (yet) is an empty piece.
pub type ReadOutput =
    Arc<dyn Fn(OutputRange) -> BoxFuture<'static, io::Result<Vec<u8>>> + Send + Sync>;

/// Reads in which order the streams of a job were read: [`ORDER`](schema::spool::ORDER) of this
/// job, with what it reported once it has ended, from this byte on. Nothing where nobody knows.
pub type ReadOrder = Arc<
    dyn Fn(PlacedJob, Option<Box<Report>>, u64) -> BoxFuture<'static, io::Result<Vec<u8>>>
        + Send
        + Sync,
>;

/// What the handlers share.
#[derive(Clone)]
pub struct Api {
    /// For reading.
    pub store: Store,
    /// For changing.
    pub driver: Handle,
    /// For jobs' output.
    pub output: ReadOutput,
    /// For the order of jobs' output.
    pub orders: ReadOrder,
    /// For jobs that upload.
    pub delivery: Delivery,
    /// For the validity of tokens.
    pub clock: Clock,
    /// Whether `/metrics` answers without a token.
    pub open_metrics: bool,
    /// Ends the streams, softly.
    pub stop: CancellationToken,
    /// How many connections there may be.
    limits: ConnectionLimits,
    /// Room for streams of server-sent events.
    pub streams: EventStreams,
    /// When open pages look.
    turns: turns::PageTurns,
    /// What many of them show alike.
    together: together::SharedReads,
    /// People who have signed in with a browser.
    pub sessions: BrowserSessions,
    /// Whether it speaks TLS, so that a cookie is sent over nothing else.
    is_tls: bool,
}

impl Api {
    /// The parts together.
    pub fn new(
        store: Store,
        driver: Handle,
        (output, orders): (ReadOutput, ReadOrder),
        delivery: Delivery,
        clock: Clock,
        open_metrics: bool,
        stop: CancellationToken,
    ) -> Self {
        Self {
            store,
            driver,
            output,
            orders,
            delivery,
            clock,
            open_metrics,
            stop,
            limits: ConnectionLimits::default(),
            streams: EventStreams::within(ConnectionLimits::default()),
            turns: turns::PageTurns::default(),
            together: together::SharedReads::default(),
            sessions: BrowserSessions::default(),
            is_tls: false,
        }
    }

    /// The same with other limits of connections.
    pub fn within(self, limits: ConnectionLimits) -> Self {
        Self { limits, streams: EventStreams::within(limits), ..self }
    }

    /// The same, which speaks TLS or does not.
    pub fn over_tls(self, is_tls: bool) -> Self {
        Self { is_tls, ..self }
    }
}

/// Every route with its handler, the document that describes those of the API, and the pages.
pub fn router(api: Api) -> Router {
    serve::guarded(api::routes().finish().merge(pages::routes(&api))).with_state(api)
}
