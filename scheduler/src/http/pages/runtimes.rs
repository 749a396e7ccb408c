//! `/runtimes/{runtime}`: who has its places and who waits for one; `check` finds out what works
//! where its jobs run.

use axum::Router;
use axum::extract::State;
use axum::response::Response;
use axum::routing::{get, post};
use pages::frame::NavEntry;
use pages::{RunningPlace, RuntimeDetails};
use schema::api::RuntimeCheck;
use serde::Deserialize;

use super::{frame, page};
use crate::driver::CheckedInstances;
use crate::http::Api;
use crate::http::access::{Operator, Viewer};
use crate::http::api::find_runtime;
use crate::http::error::Result;
use crate::http::extract::PathParams;
use crate::store::TokenRow;

/// Jobs that have a place, and instances that wait for one, that the page has of each.
const PLACES: u32 = 50;

pub(super) fn routes() -> Router<Api> {
    Router::new()
        .route("/runtimes/{runtime}", get(runtime))
        .route("/runtimes/{runtime}/check", post(check))
}

#[derive(Deserialize)]
struct Which {
    runtime: String,
}

async fn runtime(
    State(api): State<Api>,
    Viewer(token): Viewer,
    PathParams(which): PathParams<Which>,
) -> Result<Response> {
    show(&api, &token, &which.runtime, None).await
}

async fn check(
    State(api): State<Api>,
    Operator(caller): Operator,
    Viewer(token): Viewer,
    PathParams(which): PathParams<Which>,
) -> Result<Response> {
    let asked = CheckedInstances { application: None, service: None, channel: None };
    let check = api.driver.check_runtime(which.runtime.clone(), asked, caller).await?;
    show(&api, &token, &which.runtime, Some(check)).await
}

async fn show(
    api: &Api,
    token: &TokenRow,
    name: &str,
    check: Option<RuntimeCheck>,
) -> Result<Response> {
    let mut frame = frame(api, token, "Runtime", NavEntry::Runtimes).await?;
    let runtime = find_runtime(api, name).await?;
    frame.title = format!("Runtime {}", runtime.name);
    // What a check found is an answer, which a look would take away.
    frame.live = check.is_none().then(|| "/live".to_owned());
    let holders = api.store.place_holders(&runtime.name, PLACES).await?;
    let holders = holders.into_iter().map(|one| RunningPlace {
        job: one.job,
        kind: one.kind,
        application: one.application,
        service: one.service,
        channel: one.channel,
        since: one.since,
    });
    let waiting = api.store.place_waiters(&runtime.name, PLACES).await?;
    page(pages::runtime(
        &frame,
        &RuntimeDetails { runtime, holders: holders.collect(), waiting, check },
    ))
}
