//! Streams of server-sent events: who may have one, and how it is kept alive and ended. Called by
//! the routes that have some.

use std::collections::HashMap;
use std::convert::Infallible;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures::{Stream, StreamExt};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use super::Api;
use super::access::until_over;
use super::error::{Error, Result};
use super::limits::{ConnectionLimits, SIGN_OF_LIFE};
use crate::store::TokenRow;

/// Room for streams; clones count together. No token ever has all of it: who leaves streams open
/// takes them from nobody else.
#[derive(Debug, Clone)]
pub struct EventStreams(Arc<StreamRoom>);

#[derive(Debug)]
struct StreamRoom {
    limits: ConnectionLimits,
    /// By the name of the token.
    open: Mutex<HashMap<String, TokenStreams>>,
    /// Those that there was no room for, since the start.
    refused: AtomicU64,
}

/// The open streams of one token.
#[derive(Debug, Default)]
struct TokenStreams {
    count: usize,
    watch: Option<TokenWatch>,
}

/// Looks whether a token is still good, for all of its streams.
#[derive(Debug)]
struct TokenWatch {
    /// Cancelled when it is not.
    is_over: CancellationToken,
    _task: AbortOnDropHandle<()>,
}

impl EventStreams {
    /// Nobody has one yet.
    pub(super) fn within(limits: ConnectionLimits) -> Self {
        Self(Arc::new(StreamRoom { limits, open: Mutex::default(), refused: AtomicU64::new(0) }))
    }

    /// Whole after a panic, too: each change is one.
    fn lock(&self) -> MutexGuard<'_, HashMap<String, TokenStreams>> {
        self.0.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How many are open.
    pub(super) fn count(&self) -> usize {
        total(&self.lock())
    }

    /// Numbers about them for `/metrics`.
    #[expect(
        clippy::cast_precision_loss,
        reason = "Prometheus counts in floating point; beyond 2^53 nobody reads the last digit"
    )]
    pub(super) fn metrics(&self) -> [(String, f64); 2] {
        let refused = self.0.refused.load(Ordering::Relaxed);
        [
            ("pvn_streams".to_owned(), self.count() as f64),
            ("pvn_streams_refused_total".to_owned(), refused as f64),
        ]
    }

    /// Room for one more stream of the token of this name.
    pub(super) fn admit(&self, token: &str) -> Result<StreamSlot> {
        let refused = |whose: String| {
            self.0.refused.fetch_add(1, Ordering::Relaxed);
            Err(Error::unavailable(format!(
                "{whose} open already; close one, or read pages instead"
            )))
        };
        let ConnectionLimits { streams, streams_of_one_token, .. } = self.0.limits;
        let mut open = self.lock();
        if total(&open) >= streams {
            return refused(format!("{streams} streams are"));
        }
        let own = open.entry(token.to_owned()).or_default();
        if own.count >= streams_of_one_token {
            return refused(format!("{streams_of_one_token} streams of the token `{token}` are"));
        }
        own.count += 1;
        Ok(StreamSlot { streams: self.clone(), token: token.to_owned() })
    }
}

/// Streams of all tokens.
fn total(open: &HashMap<String, TokenStreams>) -> usize {
    open.values().map(|own| own.count).sum()
}

/// A stream's place, given back when it is dropped.
#[derive(Debug)]
pub(super) struct StreamSlot {
    streams: EventStreams,
    token: String,
}

impl StreamSlot {
    /// Cancelled when the token that the stream began with is over. All streams of a token share
    /// one look at it: a thousand open pages ask the database no more than one does.
    fn is_over(&self, api: &Api, token: TokenRow) -> CancellationToken {
        let mut open = self.streams.lock();
        let own = open.entry(self.token.clone()).or_default();
        // One that has ended found a token that this stream's request found good: made anew since.
        if let Some(watch) = own.watch.as_ref().filter(|watch| !watch.is_over.is_cancelled()) {
            return watch.is_over.clone();
        }
        let (api, is_over) = (api.clone(), CancellationToken::new());
        let told = is_over.clone();
        let task = AbortOnDropHandle::new(tokio::spawn(async move {
            until_over(api, token).await;
            told.cancel();
        }));
        own.watch = Some(TokenWatch { is_over: is_over.clone(), _task: task });
        is_over
    }
}

impl Drop for StreamSlot {
    fn drop(&mut self) {
        let mut open = self.streams.lock();
        if let Some(own) = open.get_mut(&self.token) {
            own.count -= 1;
            if own.count == 0 {
                open.remove(&self.token);
            }
        }
    }
}

/// Whether the client asks for server-sent events.
pub(super) fn wants_stream(headers: &HeaderMap) -> bool {
    headers
        .get_all(header::ACCEPT)
        .iter()
        .any(|value| value.to_str().is_ok_and(|text| text.contains("text/event-stream")))
}

/// The stream as an answer, with signs of life, as long as its reader's token is good and we are
/// not told to stop.
///
/// A task of its own asks the database: an answer goes on only when its reader takes something, and
/// one that was stopped in the middle of a question would keep its connection from everybody else.
pub(super) fn sse(
    stream: impl Stream<Item = Event> + Send + 'static,
    slot: StreamSlot,
    api: &Api,
    token: TokenRow,
) -> Response {
    let is_over = slot.is_over(api, token);
    let (send, events) = mpsc::channel(1);
    let stop = api.stop.clone();
    let task = AbortOnDropHandle::new(tokio::spawn(async move {
        let hand_on = async {
            let mut stream = std::pin::pin!(stream);
            while let Some(event) = stream.next().await {
                if send.send(event).await.is_err() {
                    return;
                }
            }
        };
        tokio::select! {
            () = hand_on => {}
            () = stop.cancelled() => {}
            () = is_over.cancelled() => {}
        }
    }));
    let events =
        futures::stream::unfold((events, task, slot), |(mut events, task, slot)| async move {
            let event: Event = events.recv().await?;
            Some((Ok::<_, Infallible>(event), (events, task, slot)))
        });
    let mut response =
        Sse::new(events).keep_alive(KeepAlive::new().interval(SIGN_OF_LIFE)).into_response();
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}
