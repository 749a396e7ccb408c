//! The service as Cloud Run has it. Called by `google_cloud_run`, `drift`, `info` and `object`.
//! Pure.

use schema::output::ObjectStatus;
use serde_json::Value;

use super::super::ownership::Ownership;
use super::drift;
use super::wanted::{ATTEMPT, DIGEST, ID, VERSION, WantedService};

/// A service as gcloud prints it; what is absent reads as nothing.
#[derive(Debug)]
pub(super) struct LiveService(Value);

/// What a service that is there is for an apply.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Standing {
    /// Nothing is to be done: it has the content and the version that are wanted.
    AsWanted,
    /// It has them, and Cloud Run has not taken note of that yet.
    NotSeen,
    /// It has them, and could not be rolled out.
    Failed,
    /// It has another content, another version, or another owner.
    Other,
}

impl LiveService {
    pub(super) fn new(service: Value) -> Self {
        Self(service)
    }

    pub(super) fn service(&self) -> &Value {
        &self.0
    }

    pub(super) fn into_value(self) -> Value {
        self.0
    }

    /// A text, by its JSON pointer.
    pub(super) fn text(&self, pointer: &str) -> &str {
        self.0.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
    }

    pub(super) fn name(&self) -> &str {
        self.text("/metadata/name")
    }

    pub(super) fn generation(&self) -> i64 {
        self.0["metadata"]["generation"].as_i64().unwrap_or_default()
    }

    /// Whether what the status says is about what was asked for last.
    fn is_seen(&self) -> bool {
        self.0["status"]["observedGeneration"].as_i64().unwrap_or_default() >= self.generation()
    }

    pub(super) fn deleted_at(&self) -> Option<&str> {
        self.0["metadata"]["deletionTimestamp"].as_str()
    }

    fn annotation(&self, key: &str) -> &str {
        self.0["metadata"]["annotations"][key].as_str().unwrap_or_default()
    }

    /// The annotations of the next revision, or of the last one if there is none on its way.
    pub(super) fn of_template(&self) -> &Value {
        &self.0["spec"]["template"]["metadata"]["annotations"]
    }

    /// The mark of the last apply that tried a failed content again.
    pub(super) fn attempt(&self) -> Option<&str> {
        self.of_template()[ATTEMPT].as_str()
    }

    /// The service instance that deployed it last, if that is another one.
    pub(super) fn other_owner(&self, own: &Ownership) -> Option<&str> {
        Some(self.annotation(ID)).filter(|id| !id.is_empty() && *id != own.id)
    }

    pub(super) fn conditions(&self) -> impl Iterator<Item = &Value> {
        self.0["status"]["conditions"].as_array().into_iter().flatten()
    }

    /// The condition that sums up all others.
    fn ready(&self) -> Option<&Value> {
        self.conditions().find(|condition| condition["type"] == "Ready")
    }

    pub(super) fn status(&self) -> ObjectStatus {
        let ready = self.ready().and_then(|ready| ready["status"].as_str());
        match ready {
            _ if !self.is_seen() || self.deleted_at().is_some() => ObjectStatus::Pending,
            Some("True") => ObjectStatus::Succeeded,
            Some("False") => ObjectStatus::Failed,
            _ => ObjectStatus::Pending,
        }
    }

    /// How it fares, for people.
    pub(super) fn condition_text(&self) -> String {
        if let Some(since) = self.deleted_at() {
            return format!("somebody deletes the service, since {since}");
        }
        if !self.is_seen() {
            return format!("Cloud Run has not looked at generation {} yet", self.generation());
        }
        self.ready().map_or_else(|| "Cloud Run says nothing of it yet".to_owned(), condition_text)
    }

    /// The revisions that get traffic, with how many percent. What only has a tag gets none.
    pub(super) fn serving(&self) -> Vec<(&str, i64)> {
        let traffic = self.0["status"]["traffic"].as_array();
        let mut serving: Vec<(&str, i64)> = Vec::new();
        for target in traffic.into_iter().flatten() {
            let percent = target["percent"].as_i64().unwrap_or_default();
            let revision = match target["revisionName"].as_str() {
                Some(revision) => revision,
                None => self.text("/status/latestReadyRevisionName"),
            };
            if percent <= 0 || revision.is_empty() {
                continue;
            }
            match serving.iter_mut().find(|(known, _)| *known == revision) {
                Some((_, sum)) => *sum += percent,
                None => serving.push((revision, percent)),
            }
        }
        serving
    }

    /// The revision that was made of the template as it stands, once that is certain.
    pub(super) fn revision_of_template(&self) -> Option<&str> {
        let [ready, created] =
            ["/status/latestReadyRevisionName", "/status/latestCreatedRevisionName"]
                .map(|pointer| self.text(pointer));
        (self.is_seen() && ready == created && !ready.is_empty()).then_some(ready)
    }

    /// The revisions with traffic of which the service itself does not tell whose they are.
    pub(super) fn revisions_to_ask_for(&self) -> Vec<&str> {
        let known = self.revision_of_template();
        let serving = self.serving().into_iter().map(|(revision, _)| revision);
        serving.filter(|revision| Some(*revision) != known).collect()
    }

    /// What it is for an apply.
    pub(super) fn standing(&self, wanted: &WantedService, own: &Ownership) -> Standing {
        let is_ours = self.annotation(ID) == own.id && self.annotation(VERSION) == own.version;
        let is_of_template = version(self.of_template(), own) == own.version;
        if !is_ours
            || !is_of_template
            || self.annotation(DIGEST) != wanted.digest()
            || self.deleted_at().is_some()
            || !drift::differences(wanted.service(), &self.0).is_empty()
        {
            return Standing::Other;
        }
        match self.status() {
            _ if !self.is_seen() => Standing::NotSeen,
            ObjectStatus::Failed => Standing::Failed,
            ObjectStatus::Pending | ObjectStatus::Succeeded => Standing::AsWanted,
        }
    }
}

/// The version that annotations tell; nothing if they are not of this service instance.
pub(super) fn version<'a>(annotations: &'a Value, own: &Ownership) -> &'a str {
    match annotations[ID].as_str() {
        Some(id) if id == own.id => annotations[VERSION].as_str().unwrap_or_default(),
        _ => "",
    }
}

/// A condition in words: `Ready is False (RevisionFailed): MESSAGE`.
pub(super) fn condition_text(condition: &Value) -> String {
    let get = |name: &str| condition[name].as_str().unwrap_or_default();
    let mut text = format!("{} is {}", get("type"), get("status"));
    if !get("reason").is_empty() {
        text.push_str(&format!(" ({})", get("reason")));
    }
    if !get("message").is_empty() {
        // It is one line wherever it is shown.
        let words: Vec<&str> = get("message").split_whitespace().collect();
        text.push_str(&format!(": {}", words.join(" ")));
    }
    text
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn own() -> Ownership {
        Ownership { id: "svc-1/rc-1".to_owned(), version: "web-7".to_owned() }
    }

    fn wanted() -> WantedService {
        let service = json!({
            "apiVersion": "serving.knative.dev/v1", "kind": "Service",
            "metadata": {"name": "web"},
            "spec": {"template": {"spec": {"containers": [{"image": "a:1"}]}}}
        });
        WantedService::read(&service.to_string(), "p").unwrap()
    }

    /// The wanted one, deployed and rolled out.
    fn live() -> Value {
        let mut live = wanted().document(&own(), None);
        live["metadata"]["generation"] = 7.into();
        live["status"] = json!({
            "observedGeneration": 7,
            "conditions": [{"type": "Ready", "status": "True"}],
            "latestReadyRevisionName": "web-b", "latestCreatedRevisionName": "web-b",
            "traffic": [{"revisionName": "web-b", "percent": 100, "latestRevision": true}]
        });
        live
    }

    /// How a service fares and stands after a change.
    fn after(pointer: &str, value: Value) -> (ObjectStatus, Standing) {
        let mut live = live();
        let (parent, name) = pointer.rsplit_once('/').unwrap();
        live.pointer_mut(parent).unwrap()[name.replace("~1", "/")] = value;
        let live = LiveService::new(live);
        (live.status(), live.standing(&wanted(), &own()))
    }

    #[test]
    fn only_what_is_as_wanted_is_left_alone() {
        use ObjectStatus::{Failed, Pending, Succeeded};
        for (pointer, value, expected) in [
            ("/kind", json!("Service"), (Succeeded, Standing::AsWanted)),
            ("/status/observedGeneration", json!(6), (Pending, Standing::NotSeen)),
            ("/status/conditions/0/status", json!("Unknown"), (Pending, Standing::AsWanted)),
            ("/status/conditions/0/status", json!("False"), (Failed, Standing::Failed)),
            ("/status/conditions", json!([]), (Pending, Standing::AsWanted)),
            ("/metadata/deletionTimestamp", json!("2026"), (Pending, Standing::Other)),
            ("/metadata/annotations/prodvana.io~1digest", json!("x"), (Succeeded, Standing::Other)),
            ("/metadata/annotations/prodvana.io~1id", json!("x/y"), (Succeeded, Standing::Other)),
            ("/spec/template/metadata", json!({}), (Succeeded, Standing::Other)),
            ("/spec/template/spec/containers", json!([]), (Succeeded, Standing::Other)),
        ] {
            assert_eq!(after(pointer, value), expected, "{pointer}");
        }
    }

    #[test]
    fn traffic_is_that_of_revisions_and_only_one_is_known_by_the_template() {
        let mut live = live();
        live["status"]["traffic"] = json!([
            {"revisionName": "web-a", "percent": 10},
            {"percent": 60, "latestRevision": true},
            {"revisionName": "web-b", "percent": 30, "tag": "b"},
            {"revisionName": "web-0", "tag": "old"}
        ]);
        let seen = LiveService::new(live.clone());
        assert_eq!(seen.serving(), [("web-a", 10), ("web-b", 90)]);
        assert_eq!(seen.revisions_to_ask_for(), ["web-a"]);
        live["status"]["latestCreatedRevisionName"] = "web-c".into();
        let under_way = LiveService::new(live);
        assert_eq!(under_way.revisions_to_ask_for(), ["web-a", "web-b"]);
    }

    #[test]
    fn a_condition_is_told_on_one_line() {
        let condition = json!({
            "type": "Ready", "status": "False", "reason": "HealthCheckContainerError",
            "message": "The container failed.\n  Logs: https://x"
        });
        assert_eq!(
            condition_text(&condition),
            "Ready is False (HealthCheckContainerError): The container failed. Logs: https://x"
        );
    }
}
