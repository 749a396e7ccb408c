//! `/v1/applications/{application}/services/{service}/channels/{channel}`: one service in one
//! release channel.

use axum::Json;
use axum::extract::State;
use schema::api::{
    AcknowledgeRequest, DecisionRequest, Explanation, Instance, ObserveRequest, OpenWindowRequest,
    PauseRequest, RefreshRequest, RunRequest, RunStarted,
};
use schema::status::JobKind;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::services::find;
use crate::driver::{Ask, Caller, InstanceTarget};
use crate::http::Api;
use crate::http::access::{Approver, DryRunner, Operator, Viewer, WindowOpener};
use crate::http::error::Result;
use crate::http::extract::{JsonBody, PathParams};
use crate::http::lookup::no_channel;
use crate::http::openapi::{Routes, about};

pub(super) fn routes(routes: Routes) -> Routes {
    let path = |last: &str| {
        format!("/v1/applications/{{application}}/services/{{service}}/channels/{{channel}}{last}")
    };
    let about = |id, summary| about(id, "channels", summary);
    routes
        .get(&path(""), get, about("getInstance", "How the service stands in the channel"))
        .get(
            &path("/explain"),
            explain,
            about("explain", "Why it stands so, and what would move it"),
        )
        .post(&path("/approve"), approve, about("approve", "Say yes to an approval"))
        .post(&path("/reject"), reject, about("reject", "Say no to an approval"))
        .post(&path("/pause"), pause, about("pause", "Stop fetch and apply"))
        .post(&path("/observe"), observe, about("observe", "Go on looking, and apply nothing"))
        .post(&path("/resume"), resume, about("resume", "Undo pause and observe"))
        .post(&path("/refresh"), refresh, about("refresh", "Fetch and getInfo now"))
        .post(&path("/retry"), retry, about("retry", "Try again now"))
        .post(
            &path("/acknowledge"),
            acknowledge,
            about("acknowledge", "Leave the drift that there is as it is until then, or end that"),
        )
        .post(
            &path("/open-window"),
            open_window,
            about("openWindow", "Let the desired version start outside its window, or end that"),
        )
        .post(
            &path("/run"),
            run,
            about("run", "Run one command now; its result changes nothing in pvn"),
        )
}

#[derive(Deserialize, JsonSchema)]
struct Which {
    /// The application: name or id.
    application: String,
    /// The service: name or id.
    service: String,
    /// The release channel: name or id.
    channel: String,
}

impl From<Which> for InstanceTarget {
    fn from(which: Which) -> Self {
        Self { application: which.application, service: which.service, channel: which.channel }
    }
}

/// Nothing is said with this request.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Nothing {}

/// The instance as it is after whatever was asked.
async fn instance(api: &Api, target: &InstanceTarget) -> Result<Json<Instance>> {
    let service = find(api, &target.application, &target.service).await?;
    let wanted = |instance: &Instance| {
        target.channel == instance.channel.as_str()
            || target.channel == instance.channel_id.to_string()
    };
    service
        .channels
        .into_iter()
        .find(wanted)
        .map(Json)
        .ok_or_else(|| no_channel(&target.application, &target.channel))
}

async fn ask(
    api: &Api,
    target: InstanceTarget,
    ask: Ask,
    caller: Caller,
) -> Result<Json<Instance>> {
    api.driver.ask(target.clone(), ask, caller).await?;
    instance(api, &target).await
}

async fn get(
    State(api): State<Api>,
    _: Viewer,
    PathParams(which): PathParams<Which>,
) -> Result<Json<Instance>> {
    instance(&api, &which.into()).await
}

async fn explain(
    State(api): State<Api>,
    _: Viewer,
    PathParams(which): PathParams<Which>,
) -> Result<Json<Explanation>> {
    Ok(Json(api.driver.explain(which.into()).await?))
}

async fn approve(
    State(api): State<Api>,
    Approver(caller): Approver,
    PathParams(which): PathParams<Which>,
    JsonBody(request): JsonBody<DecisionRequest>,
) -> Result<Json<Instance>> {
    ask(&api, which.into(), Ask::Approve(request), caller).await
}

async fn reject(
    State(api): State<Api>,
    Approver(caller): Approver,
    PathParams(which): PathParams<Which>,
    JsonBody(request): JsonBody<DecisionRequest>,
) -> Result<Json<Instance>> {
    ask(&api, which.into(), Ask::Reject(request), caller).await
}

async fn pause(
    State(api): State<Api>,
    Operator(caller): Operator,
    PathParams(which): PathParams<Which>,
    JsonBody(request): JsonBody<PauseRequest>,
) -> Result<Json<Instance>> {
    ask(&api, which.into(), Ask::Pause(request), caller).await
}

async fn observe(
    State(api): State<Api>,
    Operator(caller): Operator,
    PathParams(which): PathParams<Which>,
    JsonBody(request): JsonBody<ObserveRequest>,
) -> Result<Json<Instance>> {
    ask(&api, which.into(), Ask::Observe(request), caller).await
}

async fn resume(
    State(api): State<Api>,
    Operator(caller): Operator,
    PathParams(which): PathParams<Which>,
    _: JsonBody<Nothing>,
) -> Result<Json<Instance>> {
    ask(&api, which.into(), Ask::Resume, caller).await
}

async fn refresh(
    State(api): State<Api>,
    Operator(caller): Operator,
    PathParams(which): PathParams<Which>,
    JsonBody(request): JsonBody<RefreshRequest>,
) -> Result<Json<Instance>> {
    ask(&api, which.into(), Ask::Refresh(request), caller).await
}

async fn retry(
    State(api): State<Api>,
    Operator(caller): Operator,
    PathParams(which): PathParams<Which>,
    _: JsonBody<Nothing>,
) -> Result<Json<Instance>> {
    ask(&api, which.into(), Ask::Retry, caller).await
}

async fn acknowledge(
    State(api): State<Api>,
    Operator(caller): Operator,
    PathParams(which): PathParams<Which>,
    JsonBody(request): JsonBody<AcknowledgeRequest>,
) -> Result<Json<Instance>> {
    ask(&api, which.into(), Ask::Acknowledge(request), caller).await
}

async fn open_window(
    State(api): State<Api>,
    WindowOpener(caller): WindowOpener,
    PathParams(which): PathParams<Which>,
    JsonBody(request): JsonBody<OpenWindowRequest>,
) -> Result<Json<Instance>> {
    ask(&api, which.into(), Ask::OpenWindow(request), caller).await
}

async fn run(
    State(api): State<Api>,
    DryRunner(caller): DryRunner,
    PathParams(which): PathParams<Which>,
    JsonBody(request): JsonBody<RunRequest>,
) -> Result<Json<RunStarted>> {
    let job =
        api.driver.run_once(which.into(), request.kind.unwrap_or(JobKind::Fetch), caller).await?;
    Ok(Json(RunStarted { job }))
}
