//! `/v1/releases`.

use axum::Json;
use axum::extract::State;
use schema::api::{Page, Release};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::http::Api;
use crate::http::access::Viewer;
use crate::http::error::Result;
use crate::http::extract::{PathParams, Query, page};
use crate::http::lookup::{no_release, release, scope};
use crate::http::openapi::{Routes, about};
use crate::store::ReleaseFilter;

pub(super) fn routes(routes: Routes) -> Routes {
    routes
        .get("/v1/releases", list, about("listReleases", "releases", "Releases, newest first"))
        .get("/v1/releases/{release}", get, about("getRelease", "releases", "One release"))
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ReleasesQuery {
    /// Only of this application: name or id.
    application: Option<String>,
    /// Only of this service: name or id; needs `application`.
    service: Option<String>,
    /// Only those that went to this release channel: name or id; needs `application`.
    channel: Option<String>,
    /// The `nextCursor` of the page before.
    cursor: Option<String>,
    /// Most items, 1 to 1000; 100 when nothing is said.
    limit: Option<u32>,
}

#[derive(Deserialize, JsonSchema)]
struct Which {
    /// Its id, or as much of its beginning as names no other.
    release: String,
}

async fn list(
    State(api): State<Api>,
    _: Viewer,
    Query(list): Query<ReleasesQuery>,
) -> Result<Json<Page<Release>>> {
    let scope =
        scope(&api, list.application.as_deref(), list.service.as_deref(), list.channel.as_deref())
            .await?;
    let filter = ReleaseFilter {
        application: scope.application.map(|row| row.id),
        service: scope.service.map(|row| row.id),
        channel: scope.channel.map(|row| row.id),
    };
    Ok(Json(api.store.releases(&filter, &page(list.cursor, list.limit)?).await?))
}

async fn get(
    State(api): State<Api>,
    _: Viewer,
    PathParams(which): PathParams<Which>,
) -> Result<Json<Release>> {
    find(&api, &which.release).await.map(Json)
}

/// The release of this id, or of the beginning of one.
pub(in crate::http) async fn find(api: &Api, named: &str) -> Result<Release> {
    let id = release(api, named).await?;
    api.store.release(id).await?.ok_or_else(|| no_release(named))
}
