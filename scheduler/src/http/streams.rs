//! Streams of server-sent events: who may have one, and how it is kept alive and ended. Called by
//! the routes that have some.

use std::collections::HashMap;
use std::convert::Infallible;
use std::sync::{Arc, Mutex, PoisonError};

use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures::{Stream, StreamExt};
use tokio::sync::mpsc;
use tokio_util::task::AbortOnDropHandle;

use super::Api;
use super::access::until_over;
use super::error::{Error, Result};
use super::limits::{SIGN_OF_LIFE, STREAMS, STREAMS_OF_ONE_TOKEN};
use crate::store::TokenRow;

/// Room for streams; clones count together. No token ever has all of it: who leaves streams open
/// takes them from nobody else.
#[derive(Debug, Clone, Default)]
pub struct EventStreams(Arc<Mutex<HashMap<String, usize>>>);

impl EventStreams {
    /// Room for one more stream of the token of this name.
    pub(super) fn admit(&self, token: &str) -> Result<StreamSlot> {
        let refused = |whose: String| {
            Err(Error::unavailable(format!(
                "{whose} open already; close one, or read pages instead"
            )))
        };
        // Whole after a panic, too: each change is one.
        let mut open = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if open.values().sum::<usize>() >= STREAMS {
            return refused(format!("{STREAMS} streams are"));
        }
        let own = open.entry(token.to_owned()).or_default();
        if *own >= STREAMS_OF_ONE_TOKEN {
            return refused(format!("{STREAMS_OF_ONE_TOKEN} streams of the token `{token}` are"));
        }
        *own += 1;
        Ok(StreamSlot { streams: self.clone(), token: token.to_owned() })
    }
}

/// A stream's place, given back when it is dropped.
#[derive(Debug)]
pub(super) struct StreamSlot {
    streams: EventStreams,
    token: String,
}

impl Drop for StreamSlot {
    fn drop(&mut self) {
        let mut open = self.streams.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(own) = open.get_mut(&self.token) {
            *own -= 1;
            if *own == 0 {
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
    api: Api,
    token: TokenRow,
) -> Response {
    let (send, events) = mpsc::channel(1);
    let task = AbortOnDropHandle::new(tokio::spawn(async move {
        let stop = api.stop.clone();
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
            () = until_over(api, token) => {}
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
