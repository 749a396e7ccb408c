//! The service as somebody wants it, and whose it is. Called by `google_cloud_run`, `drift` and
//! `object`. Pure, but for the file in which it may be.

use std::borrow::Cow;

use schema::id::BlobId;
use serde_json::{Map, Value};

use super::super::Fault;
use super::super::ownership::Ownership;

/// Whose service it is: `SERVICE_ID/CHANNEL_ID`.
pub(super) const ID: &str = "prodvana.io/id";
/// Which version of it.
pub(super) const VERSION: &str = "prodvana.io/version";
/// Of which content: it tells whether the same was applied already.
pub(super) const DIGEST: &str = "prodvana.io/digest";
/// The job that tries a failed content again, on the template: so it becomes another revision.
pub(super) const ATTEMPT: &str = "prodvana.io/attempt";

/// What somebody gives of metadata. All else in it is the server's, and stands where a service that
/// is there was printed: an old `resourceVersion` would be a conflict.
const GIVEN_METADATA: &[&str] = &["name", "namespace", "labels", "annotations"];

/// Annotations that the platform writes alone; it would refuse them, or have others next time.
const OF_THE_PLATFORM: &[&str] = &[
    "run.googleapis.com/ingress-status",
    "run.googleapis.com/operation-id",
    "run.googleapis.com/urls",
];
/// And those whose names begin so: who made the service, who changed it last; and our own, which an
/// export may have from an earlier version.
const BY_OTHERS: &[&str] = &["serving.knative.dev/", "prodvana.io/"];

/// The service that is wanted, as somebody wrote it but for what the server alone can say.
#[derive(Debug)]
pub(super) struct WantedService {
    service: Value,
    digest: String,
}

impl WantedService {
    /// That of the flag: the text itself, or the path of a file with it.
    pub(super) fn read(given: &str, project: &str) -> Result<Self, Fault> {
        let start = given.trim_start();
        let is_text =
            given.contains('\n') || start.starts_with('{') || start.starts_with("apiVersion");
        let text = if is_text {
            Cow::Borrowed(given)
        } else {
            Cow::Owned(std::fs::read_to_string(given).map_err(|error| {
                Fault::usage(format!("--service-spec: {given} cannot be read: {error}"))
            })?)
        };
        Self::parse(&text, project)
    }

    fn parse(text: &str, project: &str) -> Result<Self, Fault> {
        let mut service: Value = serde_json::from_str(text).map_err(|error| {
            let yaml = if text.trim_start().starts_with('{') { "" } else { ", and not YAML" };
            Fault::usage(format!(
                "--service-spec must be JSON{yaml}, as `gcloud run services describe NAME --format \
                 json` prints it: {error}"
            ))
        })?;
        let digest = BlobId::of(service.to_string().as_bytes()).to_string();
        check(&service).map_err(|why| Fault::usage(format!("--service-spec: {why}")))?;
        if let Some(fields) = service.as_object_mut() {
            fields.retain(|name, _| name != "status");
        }
        for pointer in ["/metadata", "/spec/template/metadata"] {
            service.pointer_mut(pointer).map(keep_given);
        }
        if let Some(metadata) = service["metadata"].as_object_mut() {
            // gcloud would ask another API, which may be off, whether it is the project's number.
            metadata.retain(|name, value| name != "namespace" || *value != *project);
        }
        Ok(Self { service, digest })
    }

    pub(super) fn name(&self) -> &str {
        self.service["metadata"]["name"].as_str().unwrap_or_default()
    }

    pub(super) fn service(&self) -> &Value {
        &self.service
    }

    pub(super) fn digest(&self) -> &str {
        &self.digest
    }

    /// The name that it gives its revision, which Cloud Run else makes up.
    pub(super) fn revision_name(&self) -> Option<&str> {
        self.service["spec"]["template"]["metadata"]["name"].as_str()
    }

    /// Whether it sends traffic to revisions by name, so that a new one may get none.
    pub(super) fn names_revisions(&self) -> bool {
        let traffic = self.service["spec"]["traffic"].as_array();
        traffic.into_iter().flatten().any(|target| target["revisionName"].is_string())
    }

    /// What is handed over: with whose it is, for the service and for its next revision.
    pub(super) fn document(&self, own: &Ownership, attempt: Option<&str>) -> Value {
        let mut service = self.service.clone();
        let annotations = annotations(&mut service["metadata"]);
        for (key, value) in [(ID, &own.id), (VERSION, &own.version), (DIGEST, &self.digest)] {
            annotations.insert(key.to_owned(), value.as_str().into());
        }
        let annotations = self::annotations(&mut service["spec"]["template"]["metadata"]);
        for (key, value) in [(ID, &own.id), (VERSION, &own.version)] {
            annotations.insert(key.to_owned(), value.as_str().into());
        }
        if let Some(attempt) = attempt {
            annotations.insert(ATTEMPT.to_owned(), attempt.into());
        }
        service
    }
}

/// The annotations of an object's metadata, made if they are not there. (That they are an object if
/// they are was checked.)
fn annotations(metadata: &mut Value) -> &mut Map<String, Value> {
    let annotations = &mut metadata["annotations"];
    if !annotations.is_object() {
        *annotations = Map::new().into();
    }
    annotations.as_object_mut().expect("it is one now")
}

/// Takes out of metadata what is the server's.
fn keep_given(metadata: &mut Value) {
    let Some(fields) = metadata.as_object_mut() else { return };
    fields.retain(|name, _| GIVEN_METADATA.contains(&name.as_str()));
    if let Some(annotations) = fields.get_mut("annotations").and_then(Value::as_object_mut) {
        annotations.retain(|name, _| {
            !BY_OTHERS.iter().any(|start| name.starts_with(start))
                && !OF_THE_PLATFORM.contains(&name.as_str())
        });
    }
}

/// What is wrong with it that gcloud would say badly, or too late.
fn check(service: &Value) -> Result<(), String> {
    if !service.is_object() {
        return Err("it must be a JSON object".to_owned());
    }
    for (field, wanted) in [("apiVersion", "serving.knative.dev/v1"), ("kind", "Service")] {
        if service[field] != wanted {
            return Err(format!("`{field}` must be `{wanted}`"));
        }
    }
    let name = service["metadata"]["name"].as_str().unwrap_or_default();
    let is_letter = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    if !name.starts_with(|c: char| c.is_ascii_lowercase()) || !name.chars().all(is_letter) {
        return Err(
            "`metadata.name` must be the name of the service: lower-case letters, digits and `-`"
                .to_owned(),
        );
    }
    if !service["spec"]["template"].is_object() {
        return Err("`spec.template` must be an object: what a revision is made of".to_owned());
    }
    for pointer in [
        "/metadata/annotations",
        "/metadata/labels",
        "/spec/template/metadata",
        "/spec/template/metadata/annotations",
    ] {
        if service.pointer(pointer).is_some_and(|found| !found.is_object() && !found.is_null()) {
            let path = pointer.trim_start_matches('/').replace('/', ".");
            return Err(format!("`{path}` must be an object"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn own() -> Ownership {
        Ownership { id: "svc-1/rc-1".to_owned(), version: "web-7".to_owned() }
    }

    fn minimal() -> Value {
        json!({
            "apiVersion": "serving.knative.dev/v1", "kind": "Service",
            "metadata": {"name": "web"},
            "spec": {"template": {"spec": {"containers": [{"image": "a:1"}]}}}
        })
    }

    fn refusal(text: &str) -> String {
        let fault = WantedService::read(text, "p").unwrap_err();
        assert_eq!(fault.code, 125, "{}", fault.why);
        fault.why
    }

    #[test]
    fn what_is_handed_over_says_whose_it_is() {
        let wanted = WantedService::read(&minimal().to_string(), "p").unwrap();
        let digest = wanted.digest().to_owned();
        assert!(digest.starts_with("sha256:"));
        let both = json!({ID: "svc-1/rc-1", VERSION: "web-7"});
        let mut expected = minimal();
        expected["metadata"]["annotations"] = both.clone();
        expected["metadata"]["annotations"][DIGEST] = digest.into();
        expected["spec"]["template"]["metadata"]["annotations"] = both;
        assert_eq!(wanted.document(&own(), None), expected);
        expected["spec"]["template"]["metadata"]["annotations"][ATTEMPT] = "job-1".into();
        assert_eq!(wanted.document(&own(), Some("job-1")), expected);
    }

    #[test]
    fn what_only_the_server_can_say_is_taken_out_of_an_export() {
        let mut export = minimal();
        export["metadata"] = json!({
            "name": "web", "namespace": "p", "generation": 7, "resourceVersion": "AAA",
            "uid": "u", "creationTimestamp": "2026-01-01T00:00:00Z", "selfLink": "/x",
            "labels": {"team": "a"},
            "annotations": {
                "run.googleapis.com/ingress": "all", "run.googleapis.com/ingress-status": "all",
                "run.googleapis.com/operation-id": "o", "serving.knative.dev/creator": "me",
                ID: "svc-1/rc-1", VERSION: "web-6"
            }
        });
        export["spec"]["template"]["metadata"] =
            json!({"creationTimestamp": null, "name": "web-a"});
        export["status"] = json!({"url": "https://web"});
        let wanted = WantedService::read(&export.to_string(), "p").unwrap();
        assert_eq!(wanted.revision_name(), Some("web-a"));
        assert_eq!(
            wanted.service()["metadata"],
            json!({
                "name": "web", "labels": {"team": "a"},
                "annotations": {"run.googleapis.com/ingress": "all"}
            })
        );
        assert!(wanted.service().get("status").is_none());
        let elsewhere = WantedService::read(&export.to_string(), "q").unwrap();
        assert_eq!(elsewhere.service()["metadata"]["namespace"], "p", "gcloud refuses it");
    }

    #[test]
    fn what_is_no_service_in_json_is_a_usage_error() {
        let yaml = refusal("apiVersion: serving.knative.dev/v1\nkind: Service\n");
        assert!(
            yaml.starts_with("--service-spec must be JSON, and not YAML, as `gcloud"),
            "{yaml}"
        );
        assert!(refusal("{").starts_with("--service-spec must be JSON, as `gcloud"));
        assert!(refusal("no/such.json").starts_with("--service-spec: no/such.json cannot be read"));
        for (pointer, value, why) in [
            ("/kind", json!("Job"), "`kind` must be `Service`"),
            ("/apiVersion", json!("v1"), "`apiVersion` must be `serving.knative.dev/v1`"),
            ("/metadata/name", json!("-x"), "`metadata.name` must be"),
            ("/metadata/name", json!("a/b"), "`metadata.name` must be"),
            ("/metadata", json!([]), "`metadata.name` must be"),
            ("/spec/template", json!([]), "`spec.template` must be"),
        ] {
            let mut service = minimal();
            *service.pointer_mut(pointer).unwrap() = value;
            let told = refusal(&service.to_string());
            assert!(told.starts_with(&format!("--service-spec: {why}")), "{told}");
        }
        let mut service = minimal();
        service["metadata"]["annotations"] = json!("x");
        assert_eq!(
            refusal(&service.to_string()),
            "--service-spec: `metadata.annotations` must be an object"
        );
    }
}
