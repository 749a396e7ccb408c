//! `/v1/events`: the append-only log, by the page or live.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::Arc;

use axum::extract::State;
use axum::http::{HeaderMap, header};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures::{Stream, StreamExt};
use schema::api::{LogEntry, Page};
use schemars::JsonSchema;
use serde::Deserialize;
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::http::Api;
use crate::http::access::{Viewer, until_over};
use crate::http::error::{Error, Result};
use crate::http::extract::{Query, page};
use crate::http::limits::{EVENTS_AT_A_TIME, SIGN_OF_LIFE, STREAMS};
use crate::http::lookup::scope;
use crate::http::openapi::{HandlerOutput, Operation, RouteDescription, Routes, about};
use crate::store::{EventFilter, Store, TokenRow};

pub(super) fn routes(routes: Routes) -> Routes {
    let description = "With `Accept: text/event-stream` entries are sent as they are committed, oldest first, each with its number as event \
                       id. `Last-Event-ID` (or `after`) goes on after that entry; without it the stream begins now.";
    routes.get("/v1/events", events, RouteDescription { description, ..about("listEvents", "events", "The log, newest first; or live") })
}

/// A page, or a stream of server-sent events.
struct Entries(Response);

impl IntoResponse for Entries {
    fn into_response(self) -> Response {
        self.0
    }
}

impl HandlerOutput for Entries {
    fn describe(operation: &mut Operation<'_>) {
        axum::Json::<Page<LogEntry>>::describe(operation);
        operation.answer("200", "", Some(("text/event-stream", serde_json::json!({"type": "string"}))));
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct EventsQuery {
    /// Only of this application: name or id.
    application: Option<String>,
    /// Only of this service: name or id; needs `application`.
    service: Option<String>,
    /// Only in this release channel: name or id; needs `application`.
    channel: Option<String>,
    /// Only of this kind, or of the kinds that start with it and a dot: `approval`.
    kind: Option<String>,
    /// Only what people did: the audit.
    #[serde(default)]
    audit: bool,
    /// Only later than the entry of this number.
    after: Option<u64>,
    /// The `nextCursor` of the page before.
    cursor: Option<String>,
    /// Most items, 1 to 1000; 100 when nothing is said.
    limit: Option<u32>,
}

async fn events(State(api): State<Api>, Viewer(token): Viewer, headers: HeaderMap, Query(list): Query<EventsQuery>) -> Result<Entries> {
    let scope = scope(&api, list.application.as_deref(), list.service.as_deref(), list.channel.as_deref()).await?;
    let (application, service, channel) = scope.names();
    let mut filter = EventFilter { application, service, channel, kind: list.kind, audit: list.audit, after: list.after };
    if !wants_stream(&headers) {
        let page = api.store.events(&filter, &page(list.cursor, list.limit)?).await?;
        return Ok(Entries(axum::Json(page).into_response()));
    }
    let permit = stream_permit(&api.streams)?;
    // Subscribed before the log is read, so that nothing falls between the two.
    let news = api.driver.watch();
    let after = match headers.get("last-event-id") {
        Some(id) => Some(
            id.to_str()
                .ok()
                .and_then(|id| id.parse().ok())
                .ok_or_else(|| Error::bad_request("Last-Event-ID is not the number of a log entry"))?,
        ),
        None => filter.after.take(),
    };
    let (last, behind) = match after {
        Some(seq) => (seq, true),
        None => (api.store.events(&EventFilter::default(), &page(None, Some(1))?).await?.items.first().map_or(0, |entry| entry.seq), false),
    };
    let follower = EventSubscriber { store: api.store.clone(), news, filter, last, behind, ready: VecDeque::new(), _permit: permit };
    Ok(Entries(sse(follower.stream(), api, token)))
}

/// Whether the client asks for server-sent events.
pub(super) fn wants_stream(headers: &HeaderMap) -> bool {
    headers.get_all(header::ACCEPT).iter().any(|value| value.to_str().is_ok_and(|text| text.contains("text/event-stream")))
}

/// Room for one more stream.
pub(super) fn stream_permit(streams: &Arc<Semaphore>) -> Result<OwnedSemaphorePermit> {
    Arc::clone(streams)
        .try_acquire_owned()
        .map_err(|_| Error::unavailable(format!("{STREAMS} streams are open already; close one, or read pages instead")))
}

/// The stream as an answer, with signs of life, as long as its reader's token is good and we are not told to stop.
pub(super) fn sse(stream: impl Stream<Item = Event> + Send + 'static, api: Api, token: TokenRow) -> Response {
    let over = async move {
        let stop = api.stop.clone();
        tokio::select! {
            () = stop.cancelled() => {}
            () = until_over(api, token) => {}
        }
    };
    let stream = stream.take_until(Box::pin(over)).map(Ok::<_, Infallible>);
    let mut response = Sse::new(stream).keep_alive(KeepAlive::new().interval(SIGN_OF_LIFE)).into_response();
    response.headers_mut().insert(header::CACHE_CONTROL, header::HeaderValue::from_static("no-store"));
    response
}

/// One subscriber: what it has seen, and what it has to catch up with.
struct EventSubscriber {
    store: Store,
    news: Receiver<Arc<LogEntry>>,
    filter: EventFilter,
    last: u64,
    behind: bool,
    ready: VecDeque<LogEntry>,
    _permit: OwnedSemaphorePermit,
}

impl EventSubscriber {
    fn stream(self) -> impl Stream<Item = Event> + Send {
        futures::stream::unfold(self, |mut follower| async move { follower.next().await.map(|event| (event, follower)) })
    }

    /// The next entry; `None` ends the stream, and the client comes back with the last id it saw.
    async fn next(&mut self) -> Option<Event> {
        loop {
            if let Some(entry) = self.ready.pop_front() {
                self.last = entry.seq;
                return Event::default().id(entry.seq.to_string()).event(entry.kind.replace(['\n', '\r'], "")).json_data(&entry).ok();
            }
            if self.behind {
                let missed = self.store.events_after(self.last, &self.filter, EVENTS_AT_A_TIME).await.ok()?;
                self.behind = missed.len() == EVENTS_AT_A_TIME as usize;
                self.ready.extend(missed);
                continue;
            }
            match self.news.recv().await {
                Ok(entry) if entry.seq > self.last && wanted(&self.filter, &entry) => self.ready.push_back((*entry).clone()),
                Ok(_) => {}
                Err(RecvError::Lagged(_)) => self.behind = true,
                Err(RecvError::Closed) => return None,
            }
        }
    }
}

/// Whether a live entry passes the filter, as the store's own statement would say.
fn wanted(filter: &EventFilter, entry: &LogEntry) -> bool {
    let kind =
        |wanted: &String| entry.kind == *wanted || entry.kind.strip_prefix(wanted.as_str()).is_some_and(|rest| rest.starts_with('.'));
    (filter.application.is_none() || filter.application == entry.application)
        && (filter.service.is_none() || filter.service == entry.service)
        && (filter.channel.is_none() || filter.channel == entry.channel)
        && filter.kind.as_ref().is_none_or(kind)
        && (!filter.audit || entry.actor.is_some())
}
