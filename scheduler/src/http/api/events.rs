//! `/v1/events`: the append-only log, by the page or live.

use std::collections::VecDeque;
use std::sync::Arc;

use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::sse::Event;
use axum::response::{IntoResponse, Response};
use futures::Stream;
use schema::api::{LogEntry, Page};
use schemars::JsonSchema;
use serde::Deserialize;
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;

use crate::http::Api;
use crate::http::access::Viewer;
use crate::http::error::{Error, Result};
use crate::http::extract::{Query, page};
use crate::http::limits::EVENTS_AT_A_TIME;
use crate::http::lookup::scope;
use crate::http::openapi::{HandlerOutput, Operation, RouteDescription, Routes, about};
use crate::http::streams::{sse, wants_stream};
use crate::store::{EventFilter, Store};

pub(super) fn routes(routes: Routes) -> Routes {
    let description = "With `Accept: text/event-stream` entries are sent as they are committed, \
                       oldest first, each with its number as event id. `Last-Event-ID` (or \
                       `after`) goes on after that entry; without it the stream begins now.";
    routes.get(
        "/v1/events",
        events,
        RouteDescription {
            description,
            ..about("listEvents", "events", "The log, newest first; or live")
        },
    )
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
        operation.answer(
            "200",
            "",
            Some(("text/event-stream", serde_json::json!({"type": "string"}))),
        );
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

async fn events(
    State(api): State<Api>,
    Viewer(token): Viewer,
    headers: HeaderMap,
    Query(list): Query<EventsQuery>,
) -> Result<Entries> {
    let scope =
        scope(&api, list.application.as_deref(), list.service.as_deref(), list.channel.as_deref())
            .await?;
    let (application, service, channel) = scope.names();
    let mut filter = EventFilter {
        application,
        service,
        channel,
        kind: list.kind,
        audit: list.audit,
        after: list.after,
    };
    if !wants_stream(&headers) {
        let page = api.store.events(&filter, &page(list.cursor, list.limit)?).await?;
        return Ok(Entries(axum::Json(page).into_response()));
    }
    let slot = api.streams.admit(&token.name)?;
    // Subscribed before the log is read, so that nothing falls between the two.
    let news = api.driver.watch();
    let after =
        match headers.get("last-event-id") {
            Some(id) => Some(id.to_str().ok().and_then(|id| id.parse().ok()).ok_or_else(|| {
                Error::bad_request("Last-Event-ID is not the number of a log entry")
            })?),
            None => filter.after.take(),
        };
    let newest = api.store.counters().await?.event.unsigned_abs();
    let (last, behind) = match after {
        Some(seq) if seq > newest => return Err(ahead(seq, newest)),
        Some(seq) => (seq, true),
        None => (newest, false),
    };
    let follower = EventSubscriber { behind, ..EventSubscriber::new(&api, news, filter, last) };
    Ok(Entries(sse(follower.stream(), slot, &api, token)))
}

/// Whoever waited for what comes after would wait for as long as it takes the log to get there.
fn ahead(seq: u64, newest: u64) -> Error {
    Error::bad_request(format!(
        "the log has no entry {seq} yet, its newest is {newest}: the number is of another log, or \
         this one is an older copy; read what there is, and begin the stream without it"
    ))
}

/// One subscriber: what it has seen, and what it has to catch up with.
struct EventSubscriber {
    store: Store,
    news: Receiver<Arc<LogEntry>>,
    filter: EventFilter,
    last: u64,
    behind: bool,
    ready: VecDeque<LogEntry>,
}

impl EventSubscriber {
    /// One who has seen the entries up to `last`, and has subscribed to `news` before it looked
    /// whether there are later ones.
    fn new(api: &Api, news: Receiver<Arc<LogEntry>>, filter: EventFilter, last: u64) -> Self {
        let (store, ready) = (api.store.clone(), VecDeque::new());
        Self { store, news, filter, last, behind: true, ready }
    }

    fn stream(self) -> impl Stream<Item = Event> + Send {
        futures::stream::unfold(self, |mut follower| async move {
            follower.next().await.map(|event| (event, follower))
        })
    }

    /// The next entry; `None` ends the stream, and the client comes back with the last id it saw.
    async fn next(&mut self) -> Option<Event> {
        let entry = self.entry().await?;
        Event::default()
            .id(entry.seq.to_string())
            .event(entry.kind.replace(['\n', '\r'], ""))
            .json_data(&entry)
            .ok()
    }

    /// The next entry as it is.
    async fn entry(&mut self) -> Option<LogEntry> {
        loop {
            if let Some(entry) = self.ready.pop_front() {
                self.last = entry.seq;
                return Some(entry);
            }
            if self.behind {
                let missed = self
                    .store
                    .events_after(self.last, &self.filter, EVENTS_AT_A_TIME)
                    .await
                    .ok()?;
                self.behind = missed.len() == EVENTS_AT_A_TIME as usize;
                self.ready.extend(missed);
                continue;
            }
            match self.news.recv().await {
                Ok(entry) if entry.seq > self.last && wanted(&self.filter, &entry) => {
                    self.ready.push_back((*entry).clone())
                }
                Ok(_) => {}
                Err(RecvError::Lagged(_)) => self.behind = true,
                Err(RecvError::Closed) => return None,
            }
        }
    }
}

/// Whether a live entry passes the filter, as the store's own statement would say.
fn wanted(filter: &EventFilter, entry: &LogEntry) -> bool {
    let kind = |wanted: &String| {
        entry.kind == *wanted
            || entry.kind.strip_prefix(wanted.as_str()).is_some_and(|rest| rest.starts_with('.'))
    };
    (filter.application.is_none() || filter.application == entry.application)
        && (filter.service.is_none() || filter.service == entry.service)
        && (filter.channel.is_none() || filter.channel == entry.channel)
        && filter.kind.as_ref().is_none_or(kind)
        && (!filter.audit || entry.actor.is_some())
}
