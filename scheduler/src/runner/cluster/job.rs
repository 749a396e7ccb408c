//! A job -> the objects that are made for it: a `batch/v1` Job, and a Secret with what must not
//! stand in it. Pure. Called by the job's task.
//!
//! What the user's Job says stays, but for its name, and its namespace, which is that of the place.
//! Ours are labels, variables, the wrapper, and defaults for what it leaves open: no second try,
//! and an end of what is finished.
//!
//! A Job that Kubernetes may try again by its own file has one outcome, which the Job tells, and as
//! many wrappers as tries: none of them is told where to deliver, so that no report of one try
//! stands for all.

use std::collections::BTreeMap;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use schema::id::JobId;
use schema::status::JobKind;
use schema::time::Timestamp;
use serde_json::{Map, Value, json};

use super::stop::LEAST_GRACE_S;
use crate::compile::{AUTHORITIES, DEFAULT_TTL_S, JOB_DEADLINE_LIMIT_S, WRAPPER_CONTAINER};
use crate::runner::{ClusterJob, JobSpec};

mod variables;
mod wrapper;

use variables::{add_authorities, add_times, add_variables, secrets, variables};
use wrapper::wrap;

/// Label of the job's id; everything of ours has it.
pub(super) const JOB_LABEL: &str = "pvn.dev/job";

/// Labels of what a job is, and of its instance.
const KIND_LABEL: &str = "pvn.dev/kind";
const APPLICATION_LABEL: &str = "pvn.dev/application";
const SERVICE_LABEL: &str = "pvn.dev/service";
const CHANNEL_LABEL: &str = "pvn.dev/channel";

/// Most characters of the service's name in the name of a Job: with kind, id and what Kubernetes
/// adds for the Pod a name stays within the 63 that a label may have.
const SERVICE_LIMIT: usize = 16;

/// How much later than the job's timeout and the grace of its Pod the cluster ends it by itself,
/// seconds: after the scheduler, or the wrapper, which do so at the timeout, had their chance. Only
/// a scheduler that is away lets it come to this.
const BACKSTOP_S: i64 = 30;

/// When a Job makes another Pod: only once the one before has ended, not when it is asked to. The
/// cluster's own default makes two that run side by side when somebody suspends a Job and resumes
/// it. Source: batch/v1, since Kubernetes 1.28.
const REPLACEMENT: &str = "podReplacementPolicy";

/// How long a Pod has to end, seconds.
const GRACE: &str = "terminationGracePeriodSeconds";

/// That of a Pod that does not say. Source: `terminationGracePeriodSeconds` of core/v1.
pub(super) const DEFAULT_GRACE_S: u32 = 30;

/// The wrapper's program is called as the container that brings it.
pub(super) const WRAPPER: &str = WRAPPER_CONTAINER;

/// The file with those who may vouch for the scheduler, which is called so in the Secret too.
const AUTHORITIES_FILE: &str = "ca.pem";

/// What is made for a job.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Objects {
    /// Name of the Job, and of the Secret.
    pub(super) name: String,
    /// The Job, suspended.
    pub(super) job: Value,
    /// Whether the user's file leaves it open when another Pod is made.
    is_replacement_ours: bool,
    /// Values for the Secret by their variables, and the authorities; empty = no Secret.
    secrets: BTreeMap<String, String>,
    /// Whether the user's Job is suspended by itself.
    pub(super) held: bool,
    /// Whether the user's Job has more than one try.
    pub(super) tries_again: bool,
}

/// The objects of a job. `reach` is what its wrapper needs to reach us, `authorities` are the
/// certificates (PEM) that alone may vouch for us, if not everybody's. `now`: when it is made.
///
/// # Errors
/// What is wrong with the Job, for people.
pub(super) fn objects(
    spec: &JobSpec,
    cluster: &ClusterJob,
    reach: &[(String, String)],
    authorities: Option<&str>,
    now: Timestamp,
) -> Result<Objects, String> {
    let mut job = spec
        .command
        .job
        .as_deref()
        .cloned()
        .ok_or("its commands were compiled for another place; push the service again")?;
    let name = name(spec.job, spec.kind, cluster.service.as_str());
    let labels = labels(spec, cluster);
    let tries_again = may_be_tried_again(&job);
    let mut secrets = secrets(spec, if tries_again { &[] } else { reach });
    let grace_s = job.pointer(&format!("/spec/template/spec/{GRACE}")).and_then(Value::as_u64);
    let grace_s = grace_s.map_or(DEFAULT_GRACE_S.into(), |given| given.max(LEAST_GRACE_S.into()));

    let root = mapping(&mut job, "the Job")?;
    let metadata = entry(root, "metadata")?;
    metadata.remove("generateName");
    metadata.insert("name".to_owned(), name.clone().into());
    metadata.insert("namespace".to_owned(), cluster.place.namespace.clone().into());
    add_labels(metadata, &labels)?;

    let body = entry(root, "spec")?;
    let held = body.get("suspend") == Some(&Value::Bool(true));
    body.insert("suspend".to_owned(), true.into());
    body.entry("backoffLimit").or_insert(json!(0));
    let is_replacement_ours = !body.contains_key(REPLACEMENT);
    body.entry(REPLACEMENT).or_insert(json!("Failed"));
    body.entry("ttlSecondsAfterFinished").or_insert(json!(DEFAULT_TTL_S));
    if let Some(timeout_ms) = spec.timeout_ms {
        body.entry("activeDeadlineSeconds").or_insert(json!(backstop_s(timeout_ms, grace_s)));
    }
    let ended_by = body
        .get("activeDeadlineSeconds")
        .and_then(Value::as_i64)
        .map(|seconds| now.plus_ms(seconds.saturating_mul(1000)));
    let template = entry(body, "template")?;
    add_labels(entry(template, "metadata")?, &labels)?;
    let pod = entry(template, "spec")?;
    pod.entry("restartPolicy").or_insert(json!("Never"));
    if pod.get(GRACE) == Some(&json!(0)) {
        pod.insert(GRACE.to_owned(), json!(grace_s));
    }
    let pod_context = pod.get("securityContext").cloned().unwrap_or_default();

    let main = container(pod, &spec.command.name)?;
    let mut variables = variables(spec, main, &name, &secrets)?;
    if let Some(authorities) = authorities {
        secrets.insert(AUTHORITIES_FILE.to_owned(), authorities.to_owned());
        add_authorities(main, &mut variables)?;
    }
    add_times(&mut variables, ended_by, grace_s);
    add_variables(main, variables)?;
    let wrapper = cluster
        .place
        .wrapper_image
        .as_ref()
        .map(|image| wrap(main, &pod_context, spec, image))
        .transpose()?;
    if let Some(init) = wrapper {
        list(pod, "volumes")?.push(json!({"name": WRAPPER, "emptyDir": {}}));
        list(pod, "initContainers")?.insert(0, init);
    }
    if authorities.is_some() {
        let items = [json!({"key": AUTHORITIES_FILE, "path": AUTHORITIES_FILE})];
        list(pod, "volumes")?
            .push(json!({"name": AUTHORITIES, "secret": {"secretName": name, "items": items}}));
    }
    Ok(Objects { name, job, is_replacement_ours, secrets, held, tries_again })
}

/// After how long the cluster ends a job with a timeout by itself, seconds.
fn backstop_s(timeout_ms: i64, grace_s: u64) -> i64 {
    timeout_ms
        .div_euclid(1000)
        .saturating_add_unsigned(grace_s)
        .saturating_add(BACKSTOP_S)
        .min(JOB_DEADLINE_LIMIT_S)
}

/// The container of a Pod that is the command.
fn container<'a>(
    pod: &'a mut Map<String, Value>,
    name: &str,
) -> Result<&'a mut Map<String, Value>, String> {
    pod.get_mut("containers")
        .and_then(Value::as_array_mut)
        .ok_or("the Job has no containers")?
        .iter_mut()
        .find(|container| container["name"] == name)
        .and_then(Value::as_object_mut)
        .ok_or_else(|| format!("the Job has no container `{name}`"))
}

/// Whether Kubernetes may run the command more than once by what the Job's file says. `null` there
/// is the cluster's own default, which is several tries.
fn may_be_tried_again(job: &Value) -> bool {
    let body = &job["spec"];
    let no_retry = body.get("backoffLimit").is_none_or(|limit| limit == 0);
    let no_restart =
        body.pointer("/template/spec/restartPolicy").is_none_or(|policy| policy == "Never");
    let plain = [
        "podFailurePolicy",
        "backoffLimitPerIndex",
        "maxFailedIndexes",
        "completionMode",
        "successPolicy",
    ];
    !(no_retry && no_restart && plain.iter().all(|field| body.get(*field).is_none()))
}

impl Objects {
    /// The Job for a cluster that refused it with these words because it is older than a field that
    /// is ours.
    pub(super) fn without_what_is_unknown(&self, said: &str) -> Option<Value> {
        let is_unknown = self.is_replacement_ours && said.contains(REPLACEMENT);
        let mut job = Some(self.job.clone()).filter(|_| is_unknown)?;
        job["spec"].as_object_mut()?.remove(REPLACEMENT);
        Some(job)
    }

    /// The Secret, owned by the Job of this uid, so that it is gone with it.
    pub(super) fn secret(&self, uid: &str) -> Option<Value> {
        if self.secrets.is_empty() {
            return None;
        }
        let data: Map<String, Value> = self
            .secrets
            .iter()
            .map(|(key, text)| (key.clone(), STANDARD.encode(text).into()))
            .collect();
        let metadata = &self.job["metadata"];
        let owner = json!({"apiVersion": "batch/v1", "kind": "Job", "name": self.name, "uid": uid});
        Some(json!({
            "apiVersion": "v1", "kind": "Secret", "type": "Opaque", "immutable": true,
            "metadata": {
                "name": self.name, "namespace": metadata["namespace"], "labels": metadata["labels"],
                "ownerReferences": [owner],
            },
            "data": data,
        }))
    }
}

/// `SERVICE-KIND-ID`: people see whose it is, and the same job always has the same name.
fn name(job: JobId, kind: JobKind, service: &str) -> String {
    let kind = match kind {
        JobKind::Fetch => "fetch",
        JobKind::Apply => "apply",
        JobKind::GetInfo => "info",
    };
    let service = service.get(..SERVICE_LIMIT).unwrap_or(service).trim_end_matches('-');
    let id = job.to_string();
    format!("{service}-{kind}-{}", id.trim_start_matches("job-"))
}

fn labels(spec: &JobSpec, cluster: &ClusterJob) -> Vec<(&'static str, String)> {
    vec![
        (JOB_LABEL, spec.job.to_string()),
        (KIND_LABEL, spec.kind.to_string()),
        (APPLICATION_LABEL, cluster.application.to_string()),
        (SERVICE_LABEL, cluster.service.to_string()),
        (CHANNEL_LABEL, cluster.channel.to_string()),
        ("pvn.dev/runtime", cluster.place.runtime.to_string()),
    ]
}

/// Selects the applies of a job's instance.
pub(super) fn applies_of(cluster: &ClusterJob) -> String {
    let ClusterJob { application, service, channel, .. } = cluster;
    let kind = JobKind::Apply;
    format!(
        "{KIND_LABEL}={kind},{APPLICATION_LABEL}={application},{SERVICE_LABEL}={service},\
         {CHANNEL_LABEL}={channel}"
    )
}

fn add_labels(metadata: &mut Map<String, Value>, labels: &[(&str, String)]) -> Result<(), String> {
    let own = entry(metadata, "labels")?;
    own.extend(labels.iter().map(|(key, value)| ((*key).to_owned(), value.clone().into())));
    Ok(())
}

fn mapping<'a>(value: &'a mut Value, what: &str) -> Result<&'a mut Map<String, Value>, String> {
    value.as_object_mut().ok_or_else(|| format!("{what} is no mapping"))
}

/// A mapping inside a mapping, made when it is missing.
fn entry<'a>(
    object: &'a mut Map<String, Value>,
    key: &str,
) -> Result<&'a mut Map<String, Value>, String> {
    let value = object.entry(key).or_insert(Value::Null);
    if value.is_null() {
        *value = json!({});
    }
    mapping(value, &format!("`{key}` of the Job"))
}

/// A list inside a mapping, made when it is missing.
fn list<'a>(object: &'a mut Map<String, Value>, key: &str) -> Result<&'a mut Vec<Value>, String> {
    let value = object.entry(key).or_insert(Value::Null);
    if value.is_null() {
        *value = json!([]);
    }
    value.as_array_mut().ok_or_else(|| format!("`{key}` of the Job is no list"))
}

#[cfg(test)]
mod tests;
