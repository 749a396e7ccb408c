//! `/v1/runtimes`.

use axum::Json;
use axum::extract::State;
use schema::api::{EjectedRuntime, Page, Runtime, RuntimeCheck};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::driver::CheckedInstances;
use crate::http::Api;
use crate::http::access::{Operator, Viewer};
use crate::http::error::{Error, Result};
use crate::http::extract::{EmptyBody, JsonBody, Paging, PathParams, Query, page};
use crate::http::lookup::scope;
use crate::http::openapi::{RouteDescription, Routes, about};
use crate::store::{DocumentKind, StoredDocumentKey};

pub(super) fn routes(routes: Routes) -> Routes {
    let description = "Asks the cluster, and where the wrapper is put into Pods runs a short Job, \
                       which is removed again; takes up to a minute. For a Kubernetes runtime \
                       this is done for every custom runtime on it; more than 8 at a time are \
                       refused. What a tool that is built in needs is tried by a job of a service \
                       instance, one for each image and place, 4 at most; `application`, `service` \
                       and `channel` say of which.";
    let check_about = about(
        "checkRuntime",
        "runtimes",
        "Find out what works and what does not where its jobs run",
    );
    routes
        .get("/v1/runtimes", list, about("listRuntimes", "runtimes", "Runtimes by name"))
        .get("/v1/runtimes/{runtime}", get, about("getRuntime", "runtimes", "One runtime"))
        .get(
            "/v1/runtimes/{runtime}/custom",
            eject,
            about(
                "ejectRuntime",
                "runtimes",
                "The `custom` runtime that one of a kind that is built in is made to",
            ),
        )
        .post(
            "/v1/runtimes/{runtime}/check",
            check,
            RouteDescription { description, ..check_about },
        )
        .post(
            "/v1/runtimes/{runtime}/resume",
            resume,
            about(
                "resumeRuntime",
                "runtimes",
                "Let its applies go on, which were stopped because many failed together",
            ),
        )
}

#[derive(Deserialize, JsonSchema)]
struct Which {
    /// Name or id.
    runtime: String,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct CheckQuery {
    /// Only by instances of this application: name or id.
    application: Option<String>,
    /// Only by instances of this service: name or id; needs `application`.
    service: Option<String>,
    /// Only by instances in this release channel: name or id; needs `application`.
    channel: Option<String>,
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
    Ok(Json(found(&api, &which.runtime).await?))
}

/// The runtime of this name or id.
pub(in crate::http) async fn found(api: &Api, runtime: &str) -> Result<Runtime> {
    api.store.runtime(runtime).await?.ok_or_else(|| {
        Error::not_found(format!(
            "there is no runtime `{runtime}`; `pvnctl runtimes list` shows those there are"
        ))
    })
}

async fn eject(
    State(api): State<Api>,
    _: Viewer,
    PathParams(which): PathParams<Which>,
) -> Result<Json<EjectedRuntime>> {
    let runtime = found(&api, &which.runtime).await?;
    let key = StoredDocumentKey {
        kind: DocumentKind::Runtime,
        application: String::new(),
        name: runtime.name.to_string(),
    };
    let stored = api.store.document(&key).await?;
    let read = stored.and_then(|stored| config::read_source(stored.source).ok().flatten());
    let document = read.and_then(|document| match document.body() {
        config::Body::Runtime(runtime) => runtime.ejected(),
        _ => None,
    });
    document.map(|document| Json(EjectedRuntime { document })).ok_or_else(|| {
        Error::conflict(format!(
            "runtime `{}` is of kind `{}`, which is not made to commands: there is nothing to \
             print",
            runtime.name, runtime.kind
        ))
    })
}

async fn check(
    State(api): State<Api>,
    Operator(caller): Operator,
    PathParams(which): PathParams<Which>,
    Query(query): Query<CheckQuery>,
    _: JsonBody<EmptyBody>,
) -> Result<Json<RuntimeCheck>> {
    let CheckQuery { application, service, channel } = query;
    let scope = scope(&api, application.as_deref(), service.as_deref(), channel.as_deref()).await?;
    let asked = CheckedInstances {
        application: scope.application.map(|row| row.id),
        service: scope.service.map(|row| row.id),
        channel: scope.channel.map(|row| row.id),
    };
    Ok(Json(api.driver.check_runtime(which.runtime, asked, caller).await?))
}

async fn resume(
    State(api): State<Api>,
    Operator(caller): Operator,
    PathParams(which): PathParams<Which>,
    _: JsonBody<EmptyBody>,
) -> Result<Json<Runtime>> {
    let runtime = found(&api, &which.runtime).await?;
    api.driver.resume_runtime(runtime.name.clone(), caller).await?;
    Ok(Json(runtime))
}
