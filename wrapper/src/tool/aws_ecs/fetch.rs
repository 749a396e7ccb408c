//! A service as it is -> the document of a structured fetch: each deployment is a version, the
//! primary one is the active. Called by `aws_ecs`.

use schema::output::{
    DebugEvent, ExternalLink, FetchOutput, LinkKind, ObjectStatus, ObjectVersion, RuntimeObject,
};
use schema::shown::steers;
use serde_json::Value;

use super::super::answers::SharedAnswers;
use super::super::{Fault, print_document};
use super::cli::Aws;
use super::definition::EcsTarget;
use super::revision::{self, Revision, Revisions};
use super::service::{count, instant, is_going, is_gone, list, primary, short, text};
use super::{differ, links, service};

/// What the objects are to people.
const OBJECT_TYPE: &str = "ECS";

/// How many of a service's last events are passed on.
const EVENTS: usize = 10;

/// How many differences a message names.
const DIFFERENCES: usize = 4;

/// Prints it.
pub(super) fn run(
    aws: &mut Aws,
    target: &EcsTarget,
    answers: Option<&SharedAnswers>,
) -> Result<u8, Fault> {
    let place = &target.place;
    let found = service::describe_shared(aws, place, answers)?.filter(|service| !is_gone(service));
    let Some(service) = found else {
        if target.is_task_definition_only {
            return Err(missing(target));
        }
        return print_document(&FetchOutput { objects: Vec::new() });
    };
    let revisions = revision::of_deployments(aws, &service, answers)?;
    let rolled_back = rolled_back(aws, target, &service, &revisions)?;
    let object = object(target, &service, &revisions, rolled_back);
    print_document(&FetchOutput { objects: vec![object] })
}

/// That there is no service where somebody else makes it.
pub(super) fn missing(target: &EcsTarget) -> Fault {
    Fault::failed(format!(
        "there is no service `{}` in the cluster `{}`, and with `--update-task-definition-only` it \
         is somebody else who makes it: have it made, or take that flag away",
        target.place.service, target.place.cluster
    ))
}

/// Why ECS took the wanted version out of the service, if it did.
fn rolled_back(
    aws: &mut Aws,
    target: &EcsTarget,
    service: &Value,
    known: &Revisions,
) -> Result<Option<(String, String)>, Fault> {
    let is_wanted = |revision: &&Revision| revision.version(target) == target.ownership.version;
    let why = |revision: &Revision| {
        let why = revision.rolled_back(service)?;
        Some((short(revision.arn()).to_owned(), why))
    };
    let active = primary(service).and_then(|at| known.get(text(at, "taskDefinition")));
    if active.as_ref().is_some_and(is_wanted) {
        return Ok(None);
    }
    if let Some(why) = known.values().filter(is_wanted).find_map(why) {
        return Ok(Some(why));
    }
    // Only then is it worth the calls.
    if !revision::has_failed_deployment(service) {
        return Ok(None);
    }
    let wanted = revision::find(aws, target, Revisions::new())?;
    Ok(wanted.as_ref().and_then(why))
}

/// What is told of the service; `rolled_back`: the revision of the wanted version that ECS took out
/// again, and why.
fn object(
    target: &EcsTarget,
    service: &Value,
    revisions: &Revisions,
    rolled_back: Option<(String, String)>,
) -> RuntimeObject {
    let drift = drift(target, service, revisions);
    let versions = list(service, "deployments").iter().map(|deployment| {
        let revision = revisions.get(text(deployment, "taskDefinition"));
        let active = text(deployment, "status") == "PRIMARY";
        let running = count(deployment, "runningCount");
        ObjectVersion {
            version: revision.map_or("", |revision| revision.version(target)).to_owned(),
            active,
            drifted: active && !drift.is_empty(),
            replicas: Some(running + count(deployment, "pendingCount")),
            available_replicas: Some(running),
            target_replicas: Some(count(deployment, "desiredCount")),
        }
    });
    let mut versions: Vec<ObjectVersion> = versions.collect();
    let wanted = &target.ownership.version;
    if rolled_back.is_some() && !versions.iter().any(|at| at.version == *wanted) {
        // ECS has forgotten the deployment, and only that: the service has had this version.
        versions.push(ObjectVersion {
            version: wanted.clone(),
            active: false,
            drifted: false,
            replicas: Some(0),
            available_replicas: Some(0),
            target_replicas: Some(0),
        });
    }
    let status = if rolled_back.is_some() { ObjectStatus::Failed } else { status(service) };
    let message = match rolled_back {
        Some((revision, why)) => {
            let why = if why.is_empty() { "it gives no reason" } else { &why };
            format!("ECS rolled {revision} ({wanted}) back: {why}; {}", running(service))
        }
        None if drift.is_empty() => told(service, status),
        None => format!("not as defined: {}; {}", some(&drift), told(service, status)),
    };
    let active = primary(service).and_then(|at| revisions.get(text(at, "taskDefinition")));
    let message = match active.and_then(|revision| revision.other_owner(target)) {
        Some(id) => format!("{message}; deployed by another service instance of pvn, {id}"),
        None => message,
    };
    RuntimeObject {
        name: target.place.service.clone(),
        object_type: OBJECT_TYPE.to_owned(),
        versions,
        status,
        external_links: links(service, revisions),
        debug_events: events(service),
        message: one_line(&message),
    }
}

/// What is not as it is defined: of the service, and of the task definition of its active version.
fn drift(target: &EcsTarget, service: &Value, revisions: &Revisions) -> Vec<String> {
    let mut drift: Vec<String> = Vec::new();
    if !target.is_task_definition_only {
        let differences = differ::of_service(&target.service_definition, service);
        drift.extend(differences.into_iter().map(|difference| difference.words));
    }
    let active = primary(service).and_then(|at| revisions.get(text(at, "taskDefinition")));
    let of_wanted = active.filter(|revision| revision.version(target) == target.ownership.version);
    if let Some(revision) = of_wanted {
        let name = short(revision.arn());
        drift.extend(revision.differences(target).into_iter().map(|at| format!("{name}: {at}")));
    }
    drift
}

/// How the primary deployment fares.
fn status(service: &Value) -> ObjectStatus {
    let Some(primary) = primary(service).filter(|_| !is_going(service)) else {
        return ObjectStatus::Pending;
    };
    match text(primary, "rolloutState") {
        "COMPLETED" => ObjectStatus::Succeeded,
        "FAILED" => ObjectStatus::Failed,
        // Services behind a Classic Load Balancer have none.
        "" if is_complete(service, primary) => ObjectStatus::Succeeded,
        _ => ObjectStatus::Pending,
    }
}

/// Whether all tasks run that are to run, and no others.
fn is_complete(service: &Value, primary: &Value) -> bool {
    count(primary, "runningCount") >= count(primary, "desiredCount")
        && count(primary, "pendingCount") == 0
        && list(service, "deployments").len() == 1
}

/// `2 of 3 tasks run`.
fn running(service: &Value) -> String {
    match primary(service) {
        Some(primary) => format!(
            "{} of {} tasks of {} run",
            count(primary, "runningCount"),
            count(primary, "desiredCount"),
            short(text(primary, "taskDefinition"))
        ),
        None => "no deployment is primary".to_owned(),
    }
}

/// A sentence about a service that nobody rolled back.
fn told(service: &Value, status: ObjectStatus) -> String {
    if is_going(service) {
        return format!(
            "the service is being deleted (DRAINING): it is made anew when its last task has \
             stopped, of {} that still run",
            count(service, "runningCount")
        );
    }
    let Some(primary) = primary(service) else {
        return format!("{}: something else than ECS controls its deployments", running(service));
    };
    let reason = text(primary, "rolloutStateReason").trim_end_matches('.');
    let mut told = match status {
        ObjectStatus::Succeeded => running(service),
        ObjectStatus::Pending if reason.is_empty() => running(service),
        ObjectStatus::Failed if reason.is_empty() => format!("failed: {}", running(service)),
        ObjectStatus::Pending => format!("{}: {reason}", running(service)),
        ObjectStatus::Failed => format!("{reason}; {}", running(service)),
    };
    let failed = count(primary, "failedTasks");
    if failed > 0 && status != ObjectStatus::Succeeded {
        let plural = if failed == 1 { "" } else { "s" };
        told.push_str(&format!("; {failed} task{plural} failed"));
        if let Some(event) = list(service, "events").first() {
            told.push_str(&format!(", last event: {}", text(event, "message")));
        }
    }
    told
}

/// The first few of them.
fn some(differences: &[String]) -> String {
    let mut some = differences.iter().take(DIFFERENCES).cloned().collect::<Vec<_>>().join(", ");
    if differences.len() > DIFFERENCES {
        some.push_str(&format!(" and {} more", differences.len() - DIFFERENCES));
    }
    some
}

fn events(service: &Value) -> Vec<DebugEvent> {
    let events = list(service, "events").iter().take(EVENTS);
    let event = |event: &Value| {
        let timestamp = instant(event, "createdAt")?;
        Some(DebugEvent { timestamp, message: text(event, "message").to_owned() })
    };
    events.filter_map(event).collect()
}

fn links(service: &Value, revisions: &Revisions) -> Vec<ExternalLink> {
    let link = |kind, name: String, url| ExternalLink { kind, url, name };
    let page = links::of_service(service);
    let page = page.map(|url| link(LinkKind::Detail, "AWS console".to_owned(), url));
    let active = primary(service).and_then(|at| revisions.get(text(at, "taskDefinition")));
    let logs = active.map_or_else(Vec::new, |at| links::of_logs(service, at.definition()));
    let logs = logs.into_iter();
    page.into_iter()
        .chain(logs.map(|(name, url)| link(LinkKind::Log, format!("logs of {name}"), url)))
        .collect()
}

fn one_line(text: &str) -> String {
    text.chars().map(|c| if steers(c) { ' ' } else { c }).collect()
}

#[cfg(test)]
mod tests;
