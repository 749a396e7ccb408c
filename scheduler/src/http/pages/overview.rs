//! `/`: how everything stands, and what to look at first.

use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::response::Response;
use axum::routing::get;
use pages::frame::NavEntry;
use pages::{ComingUp, Overview};
use schema::status::{JobStatus, Status};

use super::{frame, page};
use crate::http::Api;
use crate::http::access::Viewer;
use crate::http::error::Result;
use crate::store::{JobFilter, PageRequest, StandingOrder};

/// Lines of each list of the overview: what a person looks at first, on one screen.
const LINES: u32 = 8;

/// What comes next of what is not as desired.
const COMING: usize = 5;

pub(super) fn routes() -> Router<Api> {
    Router::new().route("/", get(overview))
}

async fn overview(State(api): State<Api>, Viewer(token): Viewer) -> Result<Response> {
    let mut frame = frame(&api, &token, "Overview", NavEntry::Overview).await?;
    frame.live = Some("/live".to_owned());
    let shown = api.together.overview.get(frame.revision, read(api.clone())).await?;
    page(pages::overview(&frame, &shown))
}

/// What it shows, the same to everybody.
async fn read(api: Api) -> Result<Arc<Overview>> {
    let (store, longest) = (&api.store, StandingOrder::LongestFirst);
    let running = JobFilter { status: Some(JobStatus::Running), ..JobFilter::default() };
    let some = PageRequest { cursor: None, limit: Some(LINES) };
    // Where nothing can be said of it at present the page has the rest.
    let coming = api.driver.upcoming(COMING).await.unwrap_or_default();
    let coming = coming.into_iter().map(|one| ComingUp {
        application: one.names.application.1.clone(),
        service: one.names.service.1.clone(),
        channel: one.names.channel.1.clone(),
        status: one.status,
        next: one.next,
    });
    let behind = [Status::Broken, Status::WaitingPreconditions, Status::Converging, Status::Paused];
    Ok(Arc::new(Overview {
        counts: store.status_counts(None).await?.into_iter().collect(),
        waiting: store.standing(&[Status::WaitingManualApproval], longest, LINES).await?,
        failing: store.standing(&[Status::Failed], StandingOrder::NewestFirst, LINES).await?,
        behind: store.standing(&behind, longest, LINES).await?,
        running: store.jobs(&running, &some).await?.items,
        coming: coming.collect(),
    }))
}
