//! `/v1/runtimes`.

use axum::Json;
use axum::extract::State;
use schema::api::{Page, Runtime};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::http::Api;
use crate::http::access::Viewer;
use crate::http::error::{Error, Result};
use crate::http::extract::{At, Paging, Query, page};
use crate::http::openapi::{Routes, about};

pub(super) fn routes(routes: Routes) -> Routes {
    routes.get("/v1/runtimes", list, about("listRuntimes", "runtimes", "Runtimes by name")).get(
        "/v1/runtimes/{runtime}",
        get,
        about("getRuntime", "runtimes", "One runtime"),
    )
}

#[derive(Deserialize, JsonSchema)]
struct Which {
    /// Name or id.
    runtime: String,
}

async fn list(State(api): State<Api>, _: Viewer, Query(paging): Query<Paging>) -> Result<Json<Page<Runtime>>> {
    Ok(Json(api.store.runtimes(&page(paging.cursor, paging.limit)).await?))
}

async fn get(State(api): State<Api>, _: Viewer, At(which): At<Which>) -> Result<Json<Runtime>> {
    let found = api.store.runtime(&which.runtime).await?;
    Ok(Json(found.ok_or_else(|| {
        Error::not_found(format!("there is no runtime `{}`; `pvnctl runtimes list` shows those there are", which.runtime))
    })?))
}
