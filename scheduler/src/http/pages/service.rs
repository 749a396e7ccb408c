//! `/applications/{application}/services/{service}`: one service, and what is done to its channels.

use std::str::FromStr;
use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::response::Response;
use axum::routing::get;
use pages::frame::NavEntry;
use pages::{ServiceDetails, most_urgent};
use schema::api::{
    AcknowledgeRequest, DecisionRequest, ObserveRequest, OpenWindowRequest, PauseRequest,
    RefreshRequest,
};
use schema::status::JobKind;
use serde::Deserialize;

use super::door::FormBody;
use super::{frame, given, on_to, page, word};
use crate::driver::{Ask, Caller, InstanceTarget};
use crate::http::Api;
use crate::http::access::{Approver, DryRunner, Operator, Viewer, WindowOpener};
use crate::http::api::find_service;
use crate::http::error::{Error, Result};
use crate::http::extract::{PathParams, Query};
use crate::http::lookup::{no_channel, scope};
use crate::store::{EventFilter, JobFilter, PageRequest};

/// The newest jobs of a channel, and entries of a service's log, that its page has.
const JOBS: u32 = 12;
const ENTRIES: u32 = 20;

pub(super) fn routes() -> Router<Api> {
    let path = "/applications/{application}/services/{service}";
    let channel = |last: &str| format!("{path}/channels/{{channel}}/{last}");
    // A browser that opens again what a form was sent to asks for it with GET.
    let form = get(form_sent);
    Router::new()
        .route(path, get(service))
        .route(&channel("approve"), form.clone().post(approve))
        .route(&channel("reject"), form.clone().post(reject))
        .route(&channel("pause"), form.clone().post(pause))
        .route(&channel("observe"), form.clone().post(observe))
        .route(&channel("resume"), form.clone().post(resume))
        .route(&channel("refresh"), form.clone().post(refresh))
        .route(&channel("retry"), form.clone().post(retry))
        .route(&channel("run"), form.clone().post(run))
        .route(&channel("open-window"), form.clone().post(open_window))
        .route(&channel("acknowledge"), form.post(acknowledge))
}

async fn form_sent(Viewer(_): Viewer, PathParams(path): PathParams<ChannelPath>) -> Response {
    on_to(&path.page())
}

#[derive(Deserialize)]
struct Which {
    application: String,
    service: String,
}

#[derive(Deserialize)]
struct Selected {
    channel: Option<String>,
    /// Of which kind, or of kinds that begin with it, the timeline shows entries.
    #[serde(default)]
    kind: String,
}

/// A channel of a service, as the path has it.
#[derive(Deserialize)]
struct ChannelPath {
    application: String,
    service: String,
    channel: String,
}

impl ChannelPath {
    fn page(&self) -> String {
        let Self { application, service, channel } = self;
        format!("/applications/{application}/services/{service}?channel={channel}")
    }

    fn target(self) -> InstanceTarget {
        let Self { application, service, channel } = self;
        InstanceTarget { application, service, channel }
    }
}

async fn service(
    State(api): State<Api>,
    Viewer(token): Viewer,
    PathParams(which): PathParams<Which>,
    Query(asked): Query<Selected>,
) -> Result<Response> {
    let mut frame = frame(&api, &token, "Service", NavEntry::Services).await?;
    let service = find_service(&api, &which.application, &which.service).await?;
    let (app, name) = (service.application.to_string(), service.name.to_string());
    let selected = match &asked.channel {
        Some(wanted) => {
            let mut channels = service.channels.iter();
            let found = channels.find(|one| one.channel.as_str() == wanted);
            Some(found.ok_or_else(|| no_channel(&app, wanted))?)
        }
        None => most_urgent(&service),
    };
    let selected = selected.map(|one| one.channel.clone());
    frame.title = selected.as_ref().map_or(name.clone(), |channel| format!("{name} · {channel}"));
    frame.live = Some(format!("/live?application={app}&service={name}"));
    let some = |limit| PageRequest { cursor: None, limit: Some(limit) };
    let (mut explanation, mut jobs, mut newest_apply) = (None, Vec::new(), None);
    if let Some(channel) = &selected {
        let channel = channel.to_string();
        let target = InstanceTarget {
            application: app.clone(),
            service: name.clone(),
            channel: channel.clone(),
        };
        // Without it the page still has status and message, and says what the API would.
        explanation = api.driver.explain(target).await.ok();
        let scope = scope(&api, Some(&app), Some(&name), Some(&channel)).await?;
        let filter = JobFilter {
            application: scope.application.map(|row| row.id),
            service: scope.service.map(|row| row.id),
            channel: scope.channel.map(|row| row.id),
            ..JobFilter::default()
        };
        jobs = api.store.jobs(&filter, &some(JOBS)).await?.items;
        if !jobs.iter().any(|job| job.kind == JobKind::Apply) {
            let filter = JobFilter { kind: Some(JobKind::Apply), ..filter };
            newest_apply = api.store.jobs(&filter, &some(1)).await?.items.pop();
        }
    }
    let filter = EventFilter {
        application: Some(service.application.clone()),
        service: Some(service.name.clone()),
        kind: given(&asked.kind).map(str::to_owned),
        ..EventFilter::default()
    };
    let timeline = api.store.events(&filter, &some(ENTRIES)).await?.items;
    let kind = asked.kind;
    let shown =
        ServiceDetails { service, selected, explanation, jobs, newest_apply, kind, timeline };
    page(pages::service(&frame, &shown))
}

/// Does what was asked, and shows what became of it.
async fn ask(api: &Api, path: ChannelPath, ask: Ask, caller: Caller) -> Result<Response> {
    let page = path.page();
    api.driver.ask(path.target(), ask, caller).await?;
    Ok(on_to(&page))
}

/// What the form of an approval sends; what says nothing is empty.
#[derive(Deserialize)]
struct DecisionForm {
    approval: String,
    #[serde(default)]
    plan_digest: String,
    #[serde(default)]
    reason: String,
}

impl From<DecisionForm> for DecisionRequest {
    fn from(form: DecisionForm) -> Self {
        let given = |text: String| (!text.trim().is_empty()).then_some(text);
        Self {
            approval: given(form.approval),
            reason: given(form.reason),
            plan_digest: given(form.plan_digest),
            any_plan: false,
        }
    }
}

async fn approve(
    State(api): State<Api>,
    Approver(caller): Approver,
    PathParams(path): PathParams<ChannelPath>,
    FormBody(form): FormBody<DecisionForm>,
) -> Result<Response> {
    ask(&api, path, Ask::Approve(form.into()), caller).await
}

async fn reject(
    State(api): State<Api>,
    Approver(caller): Approver,
    PathParams(path): PathParams<ChannelPath>,
    FormBody(form): FormBody<DecisionForm>,
) -> Result<Response> {
    ask(&api, path, Ask::Reject(form.into()), caller).await
}

async fn pause(
    State(api): State<Api>,
    Operator(caller): Operator,
    PathParams(path): PathParams<ChannelPath>,
) -> Result<Response> {
    ask(&api, path, Ask::Pause(PauseRequest::default()), caller).await
}

/// What the form about observing sends: what for.
#[derive(Deserialize)]
struct ObserveForm {
    #[serde(default)]
    reason: String,
}

async fn observe(
    State(api): State<Api>,
    Operator(caller): Operator,
    PathParams(path): PathParams<ChannelPath>,
    FormBody(form): FormBody<ObserveForm>,
) -> Result<Response> {
    let request = ObserveRequest { reason: given(&form.reason).map(str::to_owned) };
    ask(&api, path, Ask::Observe(request), caller).await
}

async fn resume(
    State(api): State<Api>,
    Operator(caller): Operator,
    PathParams(path): PathParams<ChannelPath>,
) -> Result<Response> {
    ask(&api, path, Ask::Resume, caller).await
}

async fn refresh(
    State(api): State<Api>,
    Operator(caller): Operator,
    PathParams(path): PathParams<ChannelPath>,
) -> Result<Response> {
    ask(&api, path, Ask::Refresh(RefreshRequest { try_again: false }), caller).await
}

async fn retry(
    State(api): State<Api>,
    Operator(caller): Operator,
    PathParams(path): PathParams<ChannelPath>,
) -> Result<Response> {
    ask(&api, path, Ask::Retry, caller).await
}

/// What the form of break-glass sends: why and for how long, or that it `end`s.
#[derive(Deserialize)]
struct OpenWindowForm {
    #[serde(default)]
    version: String,
    #[serde(default)]
    reason: String,
    #[serde(default)]
    for_seconds: String,
    #[serde(default)]
    end: String,
}

async fn open_window(
    State(api): State<Api>,
    WindowOpener(caller): WindowOpener,
    PathParams(path): PathParams<ChannelPath>,
    FormBody(form): FormBody<OpenWindowForm>,
) -> Result<Response> {
    let request = OpenWindowRequest {
        version: given(&form.version).map(str::to_owned),
        reason: given(&form.reason).map(str::to_owned),
        for_seconds: number(&form.for_seconds)?,
        end: given(&form.end).is_some(),
    };
    ask(&api, path, Ask::OpenWindow(request), caller).await
}

/// What the form about drift sends: which, why and for how long it stays, or that that `end`s.
#[derive(Deserialize)]
struct AcknowledgeForm {
    #[serde(default)]
    fingerprint: String,
    #[serde(default)]
    reason: String,
    #[serde(default)]
    for_days: String,
    #[serde(default)]
    end: String,
}

async fn acknowledge(
    State(api): State<Api>,
    Operator(caller): Operator,
    PathParams(path): PathParams<ChannelPath>,
    FormBody(form): FormBody<AcknowledgeForm>,
) -> Result<Response> {
    let days: Option<u32> = number(&form.for_days)?;
    let span = days.map(|days| Duration::from_secs(u64::from(days) * 86_400));
    let request = AcknowledgeRequest {
        fingerprint: word(&form.fingerprint)?,
        until: span.map(|span| api.clock.now().plus(span)),
        reason: given(&form.reason).map(str::to_owned),
        end: given(&form.end).is_some(),
    };
    ask(&api, path, Ask::Acknowledge(request), caller).await
}

/// A number of a form, where one is given.
fn number<T: FromStr>(text: &str) -> Result<Option<T>> {
    let read = given(text).map(|text| {
        text.parse().map_err(|_| Error::bad_request(format!("`{text}` is no number of this form")))
    });
    read.transpose()
}

/// Which command is run dry.
#[derive(Deserialize)]
struct DryRunForm {
    #[serde(default)]
    kind: String,
}

/// Runs a command now, and shows what it prints.
async fn run(
    State(api): State<Api>,
    DryRunner(caller): DryRunner,
    PathParams(path): PathParams<ChannelPath>,
    FormBody(form): FormBody<DryRunForm>,
) -> Result<Response> {
    let kind = word(&form.kind)?.unwrap_or(JobKind::Fetch);
    let job = api.driver.run_once(path.target(), kind, caller).await?;
    Ok(on_to(&format!("/jobs/{job}")))
}
