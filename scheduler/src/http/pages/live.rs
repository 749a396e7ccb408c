//! `/live`: tells an open page that something of what it shows has changed. What has changed the
//! page asks for itself, by its own address: a stream that says little is cheap for a thousand
//! pages, and a page that was away catches up by one look.

use std::time::Duration;

use axum::Router;
use axum::extract::{Request, State};
use axum::http::HeaderMap;
use axum::response::Response;
use axum::response::sse::Event;
use axum::routing::get;
use futures::{Stream, StreamExt};
use serde::Deserialize;

use crate::driver::{CommitRevisions, RevisionFollower, ServiceOfApplication};
use crate::http::Api;
use crate::http::access::Viewer;
use crate::http::error::Result;
use crate::http::extract::Query;
use crate::http::lookup::scope;
use crate::http::sessions::session;
use crate::http::streams::sse;

/// How far apart pages that show the same look at least, because a page costs a few milliseconds of
/// a core: a thousand of them share a second instead of asking at once.
const ONE_AFTER_ANOTHER: Duration = Duration::from_millis(1);

/// Shortest time from one look of a page to its next, and the part of it for each page that shows
/// the same: all of them together look two hundred times a second at most.
const LOOKS_APART: Duration = Duration::from_millis(150);
const LOOKS_APART_EACH: Duration = Duration::from_millis(5);

pub(super) fn routes() -> Router<Api> {
    Router::new().route("/live", get(live))
}

#[derive(Deserialize)]
struct LiveScope {
    application: Option<String>,
    service: Option<String>,
    /// The newest commit that the page has seen.
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
    let slot = api.streams.admit(&token.name)?;
    let seen = headers.get("last-event-id").and_then(|id| id.to_str().ok()?.parse().ok());
    let revisions = api.driver.revisions();
    let listener = PageListener::new(revisions, application.zip(service), seen.or(after));
    let over = session.over(api.clock.clone());
    Ok(sse(listener.changes().take_until(Box::pin(over)), slot, api, token))
}

/// A page that listens.
struct PageListener {
    revisions: CommitRevisions,
    follower: RevisionFollower,
    /// Whether something may have been committed that the page has not seen.
    is_behind: bool,
    /// After how many others that show the same it is told.
    place: u32,
    /// How long it is left alone after the last time.
    rest: Duration,
}

impl PageListener {
    fn new(
        revisions: &CommitRevisions,
        service: Option<ServiceOfApplication>,
        seen: Option<u64>,
    ) -> Self {
        // Follows before it compares, so that nothing falls between the two. A number of another
        // run, or of a service to which nothing happened, costs one look.
        let follower = revisions.follow(service);
        let is_behind = seen != Some(revisions.newest());
        let place = u32::try_from(follower.together()).unwrap_or(u32::MAX).saturating_sub(1);
        let (revisions, rest) = (revisions.clone(), Duration::ZERO);
        Self { revisions, follower, is_behind, place, rest }
    }

    fn changes(self) -> impl Stream<Item = Event> + Send {
        futures::stream::unfold(self, |mut listener| async move {
            let number = listener.change().await?;
            // Browsers pass over an event without data.
            let change = Event::default().event("change").id(number.to_string()).data("changed");
            Some((change, listener))
        })
    }

    /// Waits for the next change; the number of the newest commit by then.
    async fn change(&mut self) -> Option<u64> {
        tokio::time::sleep(self.rest).await;
        if !std::mem::take(&mut self.is_behind) {
            self.follower.changed().await?;
            tokio::time::sleep(ONE_AFTER_ANOTHER.saturating_mul(self.place)).await;
        }
        self.follower.caught_up();
        let number = self.revisions.newest();
        let together = u32::try_from(self.follower.together()).unwrap_or(u32::MAX);
        self.rest = LOOKS_APART.max(LOOKS_APART_EACH.saturating_mul(together));
        Some(number)
    }
}
