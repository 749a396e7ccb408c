//! A service and its revisions as the runtime object of a fetch. Called by `google_cloud_run`.
//! Pure.

use schema::output::{DebugEvent, ExternalLink, LinkKind, ObjectVersion, RuntimeObject};
use schema::time::Timestamp;
use serde_json::Value;

use super::super::ownership::Ownership;
use super::drift::{self, SpecDifference};
use super::live::{LiveService, condition_text, version};
use super::wanted::{ID, WantedService};

const OBJECT_TYPE: &str = "CloudRun";

/// What it tells. `revisions`: those that were asked for, by name; `place`: project and region.
pub(super) fn object(
    live: &LiveService,
    revisions: &[(String, Value)],
    wanted: &WantedService,
    own: &Ownership,
    place: (&str, &str),
) -> RuntimeObject {
    // The annotations of a revision with traffic.
    let of_revision = |name: &str| match revisions.iter().find(|(known, _)| known == name) {
        Some((_, revision)) => &revision["metadata"]["annotations"],
        None => live.of_template(),
    };
    let of_template = version(live.of_template(), own);
    // Of another version the content is another, and that is work already.
    let drift = if of_template == own.version {
        drift::differences(wanted.service(), live.service())
    } else {
        Vec::new()
    };
    let mut versions: Vec<ObjectVersion> = Vec::new();
    let mut told = Vec::new();
    told.extend(drift_text(&drift));
    told.push(live.condition_text());
    for (revision, percent) in live.serving() {
        let annotations = of_revision(revision);
        let version = version(annotations, own);
        if !versions.iter().any(|known| known.version == version) {
            let drifted = version == own.version && !drift.is_empty();
            versions.push(object_version(version, true, drifted));
        }
        let whose = match annotations[ID].as_str() {
            _ if !version.is_empty() => format!("version {version}"),
            Some(id) => format!("deployed by another service instance of pvn, {id}"),
            None => "not deployed by pvn".to_owned(),
        };
        told.push(format!("{revision} ({whose}) has {percent} % of the traffic"));
    }
    let is_wanted_alone = matches!(&versions[..], [only] if only.version == own.version);
    if !is_wanted_alone && wanted.names_revisions() {
        told.push(
            "the service's own `spec.traffic` names revisions: a new one gets only what it says"
                .to_owned(),
        );
    }
    // What is on its way.
    if !of_template.is_empty() && !versions.iter().any(|known| known.version == of_template) {
        versions.push(object_version(of_template, false, false));
    }
    RuntimeObject {
        name: live.name().to_owned(),
        object_type: OBJECT_TYPE.to_owned(),
        versions,
        status: live.status(),
        external_links: links(live, place),
        debug_events: live.conditions().filter_map(event).collect(),
        message: told.join("; "),
    }
}

fn object_version(version: &str, active: bool, drifted: bool) -> ObjectVersion {
    ObjectVersion {
        version: version.to_owned(),
        active,
        drifted,
        replicas: None,
        available_replicas: None,
        target_replicas: None,
    }
}

/// The first difference, and how many there are.
fn drift_text(drift: &[SpecDifference]) -> Option<String> {
    let (first, more) = drift.split_first()?;
    let more = match more.len() {
        0 => String::new(),
        1 => ", and 1 other field differs".to_owned(),
        count => format!(", and {count} other fields differ"),
    };
    Some(format!("drift: {}{more}", first.text()))
}

/// A condition, at the time since which it is so.
fn event(condition: &Value) -> Option<DebugEvent> {
    let timestamp: Timestamp = condition["lastTransitionTime"].as_str()?.parse().ok()?;
    Some(DebugEvent { timestamp, message: condition_text(condition) })
}

/// A page of the console about a service.
pub(super) fn console(name: &str, page: &str, (project, region): (&str, &str)) -> String {
    format!("https://console.cloud.google.com/run/detail/{region}/{name}/{page}?project={project}")
}

fn links(live: &LiveService, place: (&str, &str)) -> Vec<ExternalLink> {
    let link = |kind, name: &str, url: String| ExternalLink { kind, url, name: name.to_owned() };
    let mut links = vec![
        link(LinkKind::Detail, "Cloud Run", console(live.name(), "metrics", place)),
        link(LinkKind::Log, "logs", console(live.name(), "logs", place)),
    ];
    let url = live.text("/status/url");
    if !url.is_empty() {
        links.push(link(LinkKind::App, live.name(), url.to_owned()));
    }
    links
}
