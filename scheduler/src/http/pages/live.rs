//! `/live`: tells an open page that something of what it shows has changed. What has changed the
//! page asks for itself, by its own address: a stream that says little is cheap for a thousand
//! pages, and a page that was away catches up by one look.

use axum::Router;
use axum::extract::{Request, State};
use axum::http::HeaderMap;
use axum::response::Response;
use axum::response::sse::Event;
use axum::routing::get;
use futures::{Stream, StreamExt};
use serde::Deserialize;

use crate::http::Api;
use crate::http::access::Viewer;
use crate::http::api::EventSubscriber;
use crate::http::error::Result;
use crate::http::extract::Query;
use crate::http::lookup::scope;
use crate::http::sessions::session;
use crate::http::streams::sse;
use crate::store::EventFilter;

pub(super) fn routes() -> Router<Api> {
    Router::new().route("/live", get(live))
}

#[derive(Deserialize)]
struct LiveScope {
    application: Option<String>,
    service: Option<String>,
    /// The newest entry that the page has seen.
    after: Option<u64>,
}

async fn live(
    State(api): State<Api>,
    Viewer(token): Viewer,
    headers: HeaderMap,
    Query(followed): Query<LiveScope>,
    request: Request,
) -> Result<Response> {
    let (parts, _) = request.into_parts();
    let session = session(&parts, &api)?;
    let LiveScope { application, service, after } = followed;
    let scope = scope(&api, application.as_deref(), service.as_deref(), None).await?;
    let (application, service, _) = scope.names();
    let filter = EventFilter { application, service, ..EventFilter::default() };
    let slot = api.streams.admit(&token.name)?;
    // Subscribed before the log is read, so that nothing falls between the two.
    let news = api.driver.watch();
    let newest = api.store.counters().await?.event.unsigned_abs();
    let seen = headers.get("last-event-id").and_then(|id| id.to_str().ok()?.parse().ok());
    // Of another log, or of one that was brought back from a backup: it is told once that all may
    // have changed.
    let last = seen.or(after).filter(|seq| *seq <= newest).unwrap_or(newest.saturating_sub(1));
    let follower = EventSubscriber::new(&api, news, filter, last);
    let over = session.over(api.clock.clone());
    Ok(sse(changes(follower).take_until(Box::pin(over)), slot, api, token))
}

fn changes(follower: EventSubscriber) -> impl Stream<Item = Event> + Send {
    futures::stream::unfold(follower, |mut follower| async move {
        let entry = follower.entry().await?;
        // Browsers pass over an event without data.
        let change = Event::default().event("change").id(entry.seq.to_string()).data("changed");
        Some((change, follower))
    })
}
