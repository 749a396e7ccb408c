//! Config files -> applied, and a release of every service that needs one.

use std::collections::BTreeMap;
use std::path::Path;

use pvnctl::client::Client;
use pvnctl::diff;
use pvnctl::failure::Failure;
use pvnctl::files::Files;
use pvnctl::wait::Goal;
use schema::api::{
    Approval, ConfigsRequest, ConfigsResult, Diagnostic, DocumentChange, Explanation, Instance, Page, PushRequest, Pushed, Release, Service,
};
use schema::config::{Body, Document};
use schema::id::ReleaseId;
use schema::status::{ApprovalStatus, Reason, Status};

use super::memory::{Memory, Wanted};

/// What came of it.
pub(super) struct Applied {
    /// Every service in the files, to wait for.
    pub(super) goals: Vec<Goal>,
    /// What to tell.
    pub(super) lines: Vec<String>,
    /// What is allowed and probably not meant.
    pub(super) warnings: Vec<Diagnostic>,
}

/// Applies the files; all or nothing. Then releases every service that has no release in one of its channels, whose config
/// is another than at its last release from here, or whose parameters are. Of the others what stands well from an earlier run
/// (`is_start`) is looked at, and what FAILED then, or whose runtime is another by now, is tried again: no config tells of scripts.
pub(super) async fn apply(
    client: &Client,
    data_dir: &Path,
    configs: &Files,
    params: &BTreeMap<String, String>,
    is_start: bool,
) -> Result<Applied, Failure> {
    let takes = parameters(&configs.documents);
    if let Some(stray) = params.keys().find(|name| !takes.values().any(|names| names.contains(name))) {
        let known: Vec<_> = takes.values().flatten().map(String::as_str).collect();
        let known = if known.is_empty() { "no service here has parameters".to_owned() } else { format!("there is {}", known.join(", ")) };
        return Err(Failure::with_next(format!("--param `{stray}` is not a parameter of any service here"), known));
    }
    let request = ConfigsRequest { files: configs.files.clone(), ..ConfigsRequest::default() };
    let result: ConfigsResult = client.post(&["v1", "configs"], &request).await?;
    let mut lines = Vec::new();
    if diff::changes(&result) > 0 {
        lines.push(format!("applied the config: {}", diff::summary(&result, true)));
    }
    let is_changed = |document: &&DocumentChange| document.kind == "runtime" && document.change != "unchanged";
    let changed: Vec<String> = result.documents.iter().filter(is_changed).map(|document| document.name.clone()).collect();
    let mut memory = Memory::open(data_dir);
    let mut goals = Vec::new();
    for document in result.documents.iter().filter(|document| document.kind == "service") {
        let (goal, line) = release(client, &mut memory, document, params, &takes, is_start, &changed).await?;
        goals.push(goal);
        lines.extend(line);
    }
    if goals.is_empty() {
        lines.push("there are no services in these files, so there is nothing to release".to_owned());
    }
    lines.extend(pvnctl::diagnostics::left_out(&result.left_out));
    Ok(Applied { goals, lines, warnings: result.warnings })
}

/// Reads the config files of a directory.
pub(super) fn read(dir: &Path) -> Result<Files, Failure> {
    pvnctl::files::read(&[dir.to_owned()]).map_err(Failure::Config)
}

/// The parameters of each service, by application and name.
type Takes = BTreeMap<(String, String), Vec<String>>;

fn parameters(documents: &[Document]) -> Takes {
    let services = documents.iter().filter_map(|document| match document.body() {
        Body::Service(service) => {
            let names = service.parameters.iter().map(|parameter| parameter.name.to_string()).collect();
            Some(((service.application.to_string(), service.name.to_string()), names))
        }
        _ => None,
    });
    services.collect()
}

async fn release(
    client: &Client,
    memory: &mut Memory,
    document: &DocumentChange,
    params: &BTreeMap<String, String>,
    takes: &Takes,
    is_start: bool,
    changed: &[String],
) -> Result<(Goal, Option<String>), Failure> {
    let application = document.application.as_ref().map(ToString::to_string).unwrap_or_default();
    let takes = takes.get(&(application.clone(), document.name.clone()));
    let given: BTreeMap<String, String> = params
        .iter()
        .filter(|(name, _)| takes.is_some_and(|takes| takes.contains(name)))
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect();
    let path = ["v1", "applications", &application, "services", &document.name];
    let service: Service = client.get(&path, &[]).await?;
    let missing = service.version.is_none() || service.channels.iter().any(|instance| instance.desired_version.is_none());
    let goal = Goal { application: application.clone(), service: document.name.clone(), channels: None, version: None };
    let wanted = Wanted {
        application: &application,
        service: &document.name,
        config: document.version,
        params: &given,
        newest: newest(client, &application, &document.name).await?,
    };
    if !missing && !memory.is_other(&wanted) {
        let mut channels = Vec::new();
        for instance in &service.channels {
            let is_changed = changed.contains(&instance.runtime.to_string());
            let done = again(client, &path, instance, is_start, is_start || is_changed).await?;
            channels.push(format!("{} {}{done}", instance.channel, instance.status));
        }
        let line = service.version.map(|version| format!("{application}/{} goes on at {version}: {}", document.name, channels.join(", ")));
        return Ok((goal, line));
    }
    memory.remember(&wanted)?;
    let request = PushRequest { params: given.clone(), ..PushRequest::default() };
    let pushed: Pushed = client.post(&[&path[..], &["push"]].concat(), &request).await?;
    Ok((Goal { version: Some(pushed.version), ..goal }, None))
}

/// Looks at a channel again, or tries it again (`may_retry`); what is done, to be said behind its status. What a person said no to or
/// cancelled, and what may still run, is for a person.
async fn again(client: &Client, service: &[&str], instance: &Instance, is_start: bool, may_retry: bool) -> Result<&'static str, Failure> {
    const TRIED: [Reason; 3] = [Reason::ApplyFailed, Reason::RuntimeObjectFailed, Reason::Stuck];
    let is_of_now = |approval: &Approval| approval.version.is_none() || approval.version == instance.desired_version;
    // A no is there whatever else the status says; a retry would take it back.
    let is_rejected = instance.approvals.iter().any(|approval| approval.status == ApprovalStatus::Rejected && is_of_now(approval));
    let channel = [service, &["channels", instance.channel.as_str()]].concat();
    let (what, done) = match instance.status {
        Status::Converged if is_start && instance.last_fetch_at.is_some() => ("refresh", " (looked at again)"),
        Status::Failed if may_retry && !is_rejected && instance.reason.is_some_and(|reason| TRIED.contains(&reason)) => {
            let explained: Explanation = client.get(&[&channel[..], &["explain"]].concat(), &[]).await?;
            if explained.causes.iter().any(|cause| cause.code.ends_with("_UNSETTLED")) {
                return Ok("");
            }
            ("retry", " (tried again)")
        }
        _ => return Ok(""),
    };
    match client.post::<Instance>(&[&channel[..], &[what]].concat(), &serde_json::json!({})).await {
        Ok(_) => Ok(done),
        // It moved by itself meanwhile.
        Err(Failure::Refused(problem)) if problem.status == 409 => Ok(""),
        Err(failure) => Err(failure),
    }
}

/// The newest release of a service.
async fn newest(client: &Client, application: &str, service: &str) -> Result<Option<ReleaseId>, Failure> {
    let query = [("application", application.to_owned()), ("service", service.to_owned()), ("limit", "1".to_owned())];
    let page: Page<Release> = client.get(&["v1", "releases"], &query).await?;
    Ok(page.items.first().map(|release| release.release))
}
