//! `/v1/runtimes`.

use axum::Json;
use axum::extract::State;
use schema::api::{Page, Runtime, RuntimeCheck};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::http::Api;
use crate::http::access::{Admin, Viewer};
use crate::http::error::{Error, Result};
use crate::http::extract::{EmptyBody, JsonBody, Paging, PathParams, Query, page};
use crate::http::openapi::{RouteDescription, Routes, about};

pub(super) fn routes(routes: Routes) -> Routes {
    let description = "Asks the cluster, and where the wrapper is put into Pods runs a short Job, \
                       which is removed again; takes up to a minute. For a Kubernetes runtime \
                       this is done for every custom runtime on it; more than 8 at a time are \
                       refused.";
    let check_about = about(
        "checkRuntime",
        "runtimes",
        "Find out what works and what does not where its jobs run",
    );
    routes
        .get("/v1/runtimes", list, about("listRuntimes", "runtimes", "Runtimes by name"))
        .get("/v1/runtimes/{runtime}", get, about("getRuntime", "runtimes", "One runtime"))
        .post(
            "/v1/runtimes/{runtime}/check",
            check,
            RouteDescription { description, ..check_about },
        )
}

#[derive(Deserialize, JsonSchema)]
struct Which {
    /// Name or id.
    runtime: String,
}

async fn list(
    State(api): State<Api>,
    _: Viewer,
    Query(paging): Query<Paging>,
) -> Result<Json<Page<Runtime>>> {
    Ok(Json(api.store.runtimes(&page(paging.cursor, paging.limit)?).await?))
}

async fn get(
    State(api): State<Api>,
    _: Viewer,
    PathParams(which): PathParams<Which>,
) -> Result<Json<Runtime>> {
    let found = api.store.runtime(&which.runtime).await?;
    Ok(Json(found.ok_or_else(|| {
        Error::not_found(format!(
            "there is no runtime `{}`; `pvnctl runtimes list` shows those there are",
            which.runtime
        ))
    })?))
}

async fn check(
    State(api): State<Api>,
    Admin(caller): Admin,
    PathParams(which): PathParams<Which>,
    _: JsonBody<EmptyBody>,
) -> Result<Json<RuntimeCheck>> {
    Ok(Json(api.driver.check_runtime(which.runtime, caller).await?))
}
