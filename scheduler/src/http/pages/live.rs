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
use tokio::time::Instant;

use crate::driver::{CommitRevisions, RevisionFollower, ServiceOfApplication};
use crate::http::Api;
use crate::http::access::Viewer;
use crate::http::error::Result;
use crate::http::extract::Query;
use crate::http::limits::SIGN_OF_LIFE;
use crate::http::lookup::scope;
use crate::http::sessions::session;
use crate::http::streams::{EventStreams, sse};
use crate::http::turns::LookTurns;

/// What a look costs, by which pages take turns: two hundred looks a second are a core. What
/// everybody sees is read once for all that look at the same time, and costs less.
const LOOK: Duration = Duration::from_millis(5);
const LOOK_AT_EVERYTHING: Duration = Duration::from_millis(1);

/// Shortest time from one look of a page to its next, and the part of it for each page that shows
/// the same: all of them together look two hundred times a second at most.
const LOOKS_APART: Duration = Duration::from_millis(150);
const LOOKS_APART_EACH: Duration = Duration::from_millis(5);

/// When a page looks although nothing was committed, at the soonest, and the part of it for each
/// page that is open: what time alone changes is seen by then, and all pages together look ten
/// times a second.
const LOOK_ANYWAY: Duration = Duration::from_secs(30);
const LOOK_ANYWAY_EACH: Duration = Duration::from_millis(100);

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
    let listener = PageListener::new(&api, application.zip(service), seen.or(after));
    let over = session.over(api.clock.clone());
    Ok(sse(listener.news().take_until(Box::pin(over)), slot, &api, token))
}

/// A page that listens.
struct PageListener {
    revisions: CommitRevisions,
    follower: RevisionFollower,
    turns: LookTurns,
    streams: EventStreams,
    /// What one of its looks costs.
    look: Duration,
    /// Whether something may have been committed that the page has not seen.
    is_behind: bool,
    /// When it was told to look last.
    told: Instant,
    /// How long it is left alone from then on.
    rest: Duration,
}

/// What a page hears.
enum PageNews {
    /// Look again: this is the number of the newest commit.
    Change(u64),
    /// Nothing, which tells that the connection is alive.
    Alive,
}

impl PageListener {
    fn new(api: &Api, service: Option<ServiceOfApplication>, seen: Option<u64>) -> Self {
        let (turns, look) = match service {
            Some(_) => (api.turns.of_services.clone(), LOOK),
            None => (api.turns.of_everything.clone(), LOOK_AT_EVERYTHING),
        };
        // Follows before it compares, so that nothing falls between the two. A number of another
        // run, or of a service to which nothing happened, costs one look.
        let revisions = api.driver.revisions().clone();
        let follower = revisions.follow(service);
        let is_behind = seen != Some(revisions.newest());
        Self {
            revisions,
            follower,
            turns,
            streams: api.streams.clone(),
            look,
            is_behind,
            told: Instant::now(),
            rest: Duration::ZERO,
        }
    }

    fn news(self) -> impl Stream<Item = Event> + Send {
        futures::stream::unfold(self, |mut listener| async move {
            // Browsers pass over an event without data.
            let event = match listener.next().await? {
                PageNews::Change(number) => {
                    Event::default().event("change").id(number.to_string()).data("changed")
                }
                PageNews::Alive => Event::default().event("alive").data("alive"),
            };
            Some((event, listener))
        })
    }

    /// Waits for what the page is to hear next.
    async fn next(&mut self) -> Option<PageNews> {
        tokio::time::sleep_until(self.told + self.rest).await;
        let is_anyway = self.told.elapsed() >= self.look_anyway();
        if !std::mem::take(&mut self.is_behind) && !is_anyway {
            // A script cannot see the comments that keep other streams alive.
            match tokio::time::timeout(SIGN_OF_LIFE, self.follower.changed()).await {
                Ok(changed) => changed?,
                Err(_) => return Some(PageNews::Alive),
            }
        }
        tokio::time::sleep(self.turns.take(self.look, Instant::now())).await;
        self.follower.caught_up();
        let number = self.revisions.newest();
        let together = u32::try_from(self.follower.together()).unwrap_or(u32::MAX);
        self.rest = LOOKS_APART.max(LOOKS_APART_EACH.saturating_mul(together));
        self.told = Instant::now();
        Some(PageNews::Change(number))
    }

    fn look_anyway(&self) -> Duration {
        let open = u32::try_from(self.streams.count()).unwrap_or(u32::MAX);
        LOOK_ANYWAY.max(LOOK_ANYWAY_EACH.saturating_mul(open))
    }
}
