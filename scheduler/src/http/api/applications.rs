//! `/v1/applications`.

use axum::Json;
use axum::extract::State;
use schema::api::{Application, ApplicationSummary, Page};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::http::Api;
use crate::http::access::Viewer;
use crate::http::error::Result;
use crate::http::extract::{Paging, PathParams, Query, page};
use crate::http::lookup::no_application;
use crate::http::openapi::{Routes, about};

pub(super) fn routes(routes: Routes) -> Routes {
    routes
        .get(
            "/v1/applications",
            list,
            about("listApplications", "applications", "Applications by name"),
        )
        .get(
            "/v1/applications/{application}",
            get,
            about("getApplication", "applications", "One application with its channels"),
        )
}

#[derive(Deserialize, JsonSchema)]
struct Which {
    /// Name or id.
    application: String,
}

async fn list(
    State(api): State<Api>,
    _: Viewer,
    Query(paging): Query<Paging>,
) -> Result<Json<Page<ApplicationSummary>>> {
    Ok(Json(api.store.applications(&page(paging.cursor, paging.limit)?).await?))
}

async fn get(
    State(api): State<Api>,
    _: Viewer,
    PathParams(which): PathParams<Which>,
) -> Result<Json<Application>> {
    Ok(Json(
        api.store
            .application(&which.application)
            .await?
            .ok_or_else(|| no_application(&which.application))?,
    ))
}
