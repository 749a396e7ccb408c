//! `/v1/jobs`.

use axum::Json;
use axum::extract::State;
use schema::api::{Job, Page};
use schema::status::{JobKind, JobStatus};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::http::Api;
use crate::http::access::{Operator, Viewer};
use crate::http::error::Result;
use crate::http::extract::{EmptyBody, JsonBody, PathParams, Query, page};
use crate::http::lookup::{job, no_job, scope};
use crate::http::openapi::{RouteDescription, Routes, about};
use crate::store::JobFilter;

pub(super) fn routes(routes: Routes) -> Routes {
    let description = "Answers when the stop is decided, not when the job has ended.";
    routes
        .get("/v1/jobs", list, about("listJobs", "jobs", "Jobs, newest first"))
        .get("/v1/jobs/{job}", get, about("getJob", "jobs", "One job with its report"))
        .post(
            "/v1/jobs/{job}/cancel",
            cancel,
            RouteDescription {
                description,
                ..about("cancelJob", "jobs", "Stop a job: TERM, then KILL")
            },
        )
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct JobsQuery {
    /// Only of this application: name or id.
    application: Option<String>,
    /// Only of this service: name or id; needs `application`.
    service: Option<String>,
    /// Only in this release channel: name or id; needs `application`.
    channel: Option<String>,
    /// Only of this kind.
    kind: Option<JobKind>,
    /// Only in this status.
    status: Option<JobStatus>,
    /// The `nextCursor` of the page before.
    cursor: Option<String>,
    /// Most items, 1 to 1000; 100 when nothing is said.
    limit: Option<u32>,
}

#[derive(Deserialize, JsonSchema)]
pub(super) struct Which {
    /// Its id, or as much of its beginning as names no other.
    pub(super) job: String,
}

async fn list(
    State(api): State<Api>,
    _: Viewer,
    Query(list): Query<JobsQuery>,
) -> Result<Json<Page<Job>>> {
    let scope =
        scope(&api, list.application.as_deref(), list.service.as_deref(), list.channel.as_deref())
            .await?;
    let filter = JobFilter {
        application: scope.application.map(|row| row.id),
        service: scope.service.map(|row| row.id),
        channel: scope.channel.map(|row| row.id),
        kind: list.kind,
        status: list.status,
    };
    Ok(Json(api.store.jobs(&filter, &page(list.cursor, list.limit)?).await?))
}

async fn get(
    State(api): State<Api>,
    _: Viewer,
    PathParams(which): PathParams<Which>,
) -> Result<Json<Job>> {
    find(&api, &which.job).await.map(Json)
}

/// The job of this id, with its report.
pub(in crate::http) async fn find(api: &Api, id: &str) -> Result<Job> {
    api.store.job(job(api, id).await?).await?.ok_or_else(|| no_job(id))
}

async fn cancel(
    State(api): State<Api>,
    Operator(caller): Operator,
    PathParams(which): PathParams<Which>,
    _: JsonBody<EmptyBody>,
) -> Result<Json<Job>> {
    let id = job(&api, &which.job).await?;
    api.driver.cancel_job(id, caller).await?;
    find(&api, &id.to_string()).await.map(Json)
}
