//! `/releases`, `/runtimes`, `/audit`: what there is, and what happened.

use axum::Router;
use axum::extract::State;
use axum::response::Response;
use axum::routing::get;
use pages::AuditFilter;
use pages::frame::NavEntry;
use serde::Deserialize;

use super::{frame, given, page};
use crate::http::Api;
use crate::http::access::Viewer;
use crate::http::api::{find_release, find_service};
use crate::http::error::Result;
use crate::http::extract::{self, PathParams, Query};
use crate::http::lookup::scope;
use crate::store::{EventFilter, ReleaseFilter};

/// Rows of one page.
const ROWS: u32 = 50;

/// Releases of one page, each with its channels: what stays below 100 kB with fifteen of them.
const RELEASES: u32 = 25;

pub(super) fn routes() -> Router<Api> {
    Router::new()
        .route("/releases", get(releases))
        .route("/releases/{release}", get(release))
        .route("/runtimes", get(runtimes))
        .route("/audit", get(audit))
}

/// As a form sends it: what says nothing is empty.
#[derive(Deserialize, Default)]
#[serde(default)]
struct ListedRecords {
    application: String,
    service: String,
    kind: String,
    all: String,
    cursor: Option<String>,
}

async fn releases(
    State(api): State<Api>,
    Viewer(token): Viewer,
    Query(list): Query<ListedRecords>,
) -> Result<Response> {
    let mut frame = frame(&api, &token, "Releases", NavEntry::Releases).await?;
    frame.live = Some("/live".to_owned());
    let scope = scope(&api, given(&list.application), given(&list.service), None).await?;
    let filter = ReleaseFilter {
        application: scope.application.map(|row| row.id),
        service: scope.service.map(|row| row.id),
        channel: None,
    };
    let found = api.store.releases(&filter, &extract::page(list.cursor, Some(RELEASES))?).await?;
    page(pages::releases(&frame, &list.application, &list.service, &found))
}

#[derive(Deserialize)]
struct Which {
    release: String,
}

async fn release(
    State(api): State<Api>,
    Viewer(token): Viewer,
    PathParams(which): PathParams<Which>,
) -> Result<Response> {
    let mut frame = frame(&api, &token, "Release", NavEntry::Releases).await?;
    let release = find_release(&api, &which.release).await?;
    // Its service may be gone, and then nothing of it changes.
    if find_service(&api, release.application.as_str(), release.service.as_str()).await.is_ok() {
        let (application, service) = (&release.application, &release.service);
        frame.live = Some(format!("/live?application={application}&service={service}"));
    }
    frame.title.clone_from(&release.version);
    page(pages::release(&frame, &release))
}

async fn runtimes(
    State(api): State<Api>,
    Viewer(token): Viewer,
    Query(list): Query<ListedRecords>,
) -> Result<Response> {
    let frame = frame(&api, &token, "Runtimes", NavEntry::Runtimes).await?;
    let found = api.store.runtimes(&extract::page(list.cursor, Some(ROWS))?).await?;
    page(pages::runtimes(&frame, &found))
}

async fn audit(
    State(api): State<Api>,
    Viewer(token): Viewer,
    Query(list): Query<ListedRecords>,
) -> Result<Response> {
    let mut frame = frame(&api, &token, "Audit", NavEntry::Audit).await?;
    frame.live = Some("/live".to_owned());
    let scope = scope(&api, given(&list.application), given(&list.service), None).await?;
    let (application, service, channel) = scope.names();
    let filter = EventFilter {
        application,
        service,
        channel,
        kind: given(&list.kind).map(str::to_owned),
        audit: list.all.is_empty(),
        after: None,
    };
    let found = api.store.events(&filter, &extract::page(list.cursor, Some(ROWS))?).await?;
    let ListedRecords { application, service, kind, all, .. } = list;
    page(pages::audit(&frame, &AuditFilter { application, service, kind, all }, &found))
}
