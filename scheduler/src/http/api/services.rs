//! `/v1/services` and what is done to a service as a whole.

use axum::Json;
use axum::extract::State;
use schema::api::{Page, PushRequest, Pushed, RollbackRequest, Service, ServiceSummary};
use schema::status::Status;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::http::Api;
use crate::http::access::{Deployer, Viewer};
use crate::http::error::Result;
use crate::http::extract::{JsonBody, PathParams, Query, page};
use crate::http::lookup::{application, no_service};
use crate::http::openapi::{Routes, about};
use crate::store::ServiceFilter;

pub(super) fn routes(routes: Routes) -> Routes {
    let path = |last: &str| format!("/v1/applications/{{application}}/services/{{service}}{last}");
    routes
        .get(
            "/v1/services",
            list,
            about("listServices", "services", "Services by application and name"),
        )
        .get(&path(""), get, about("getService", "services", "One service with its channels"))
        .post(&path("/push"), push, about("pushService", "services", "Make a release"))
        .post(
            &path("/rollback"),
            rollback,
            about(
                "rollbackService",
                "services",
                "Make a release that goes back to an earlier version",
            ),
        )
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ServicesQuery {
    /// Only of this application: name or id.
    application: Option<String>,
    /// Only those with a channel in this status.
    status: Option<Status>,
    /// Only those with this in their name.
    name: Option<String>,
    /// Only those of this name or id: one of each application at most.
    named: Option<String>,
    /// The `nextCursor` of the page before.
    cursor: Option<String>,
    /// Most items, 1 to 1000; 100 when nothing is said.
    limit: Option<u32>,
}

#[derive(Deserialize, JsonSchema)]
struct Which {
    /// The application: name or id.
    application: String,
    /// The service: name or id.
    service: String,
}

async fn list(
    State(api): State<Api>,
    _: Viewer,
    Query(list): Query<ServicesQuery>,
) -> Result<Json<Page<ServiceSummary>>> {
    let of = match &list.application {
        Some(name) => Some(application(&api, name).await?.id),
        None => None,
    };
    let filter = ServiceFilter {
        application: of,
        status: list.status,
        name: list.name,
        named: list.named,
        ..ServiceFilter::default()
    };
    Ok(Json(api.store.services(&filter, &page(list.cursor, list.limit)?).await?))
}

async fn get(
    State(api): State<Api>,
    _: Viewer,
    PathParams(which): PathParams<Which>,
) -> Result<Json<Service>> {
    find(&api, &which.application, &which.service).await.map(Json)
}

/// The service of these names or ids.
pub(in crate::http) async fn find(api: &Api, app: &str, service: &str) -> Result<Service> {
    if let Some(found) = api.store.service(app, service).await? {
        return Ok(found);
    }
    // Which of the two names is wrong is worth another look.
    application(api, app).await?;
    Err(no_service(app, service))
}

async fn push(
    State(api): State<Api>,
    Deployer(caller): Deployer,
    PathParams(which): PathParams<Which>,
    JsonBody(request): JsonBody<PushRequest>,
) -> Result<Json<Pushed>> {
    Ok(Json(api.driver.push(which.application, which.service, request, caller).await?))
}

async fn rollback(
    State(api): State<Api>,
    Deployer(caller): Deployer,
    PathParams(which): PathParams<Which>,
    JsonBody(request): JsonBody<RollbackRequest>,
) -> Result<Json<Pushed>> {
    Ok(Json(api.driver.rollback(which.application, which.service, request, caller).await?))
}
