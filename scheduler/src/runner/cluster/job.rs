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

use std::collections::{BTreeMap, BTreeSet};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use schema::id::JobId;
use schema::status::JobKind;
use schema::time::Timestamp;
use schema::wire::{
    self, CA_VARIABLE, ENDED_BY_VARIABLE, KILL_AFTER_VARIABLE, SECRET_KEYS_VARIABLE, SPOOL_VARIABLE,
};
use serde_json::{Map, Value, json};

use super::stop::LEAST_GRACE_S;
use crate::compile::{
    AUTHORITIES, AUTHORITIES_DIRECTORY, DEFAULT_TTL_S, EnvValue, JOB_DEADLINE_LIMIT_S,
    WRAPPER_CONTAINER, WRAPPER_DIRECTORY, environment, verbatim,
};
use crate::runner::{ClusterJob, JobSpec, wrapped};

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

/// The user that brings the wrapper where none may be root and nobody says which. Source: that of
/// the wrapper's own image.
const WRAPPER_USER: i64 = 65532;

/// When a Job makes another Pod: only once the one before has ended, not when it is asked to. The
/// cluster's own default makes two that run side by side when somebody suspends a Job and resumes
/// it. Source: batch/v1, since Kubernetes 1.28.
const REPLACEMENT: &str = "podReplacementPolicy";

/// How long a Pod has to end, seconds.
const GRACE: &str = "terminationGracePeriodSeconds";

/// That of a Pod that does not say. Source: `terminationGracePeriodSeconds` of core/v1.
pub(super) const DEFAULT_GRACE_S: u32 = 30;

/// What a wrapper keeps for itself of the time that its Pod has to end, ms: it kills the command
/// before the cluster kills both, so that what is left behind is gone and the report is out.
/// Source: twice the wrapper's 2 s for what the command leaves, and a second.
const WRAPPER_SHARE_MS: u64 = 5_000;

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
        let backstop_s = timeout_ms
            .div_euclid(1000)
            .saturating_add_unsigned(grace_s)
            .saturating_add(BACKSTOP_S)
            .min(JOB_DEADLINE_LIMIT_S);
        body.entry("activeDeadlineSeconds").or_insert(json!(backstop_s));
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
    let grace_ms = grace_s.saturating_mul(1000);
    let pod_context = pod.get("securityContext").cloned().unwrap_or_default();

    let containers = pod
        .get_mut("containers")
        .and_then(Value::as_array_mut)
        .ok_or("the Job has no containers")?;
    let main =
        containers.iter_mut().find(|container| container["name"] == spec.command.name.as_str());
    let main = main
        .and_then(Value::as_object_mut)
        .ok_or_else(|| format!("the Job has no container `{}`", spec.command.name))?;
    let mut variables = variables(spec, main, &name, &secrets)?;
    if let Some(authorities) = authorities {
        secrets.insert(AUTHORITIES_FILE.to_owned(), authorities.to_owned());
        let file = format!("{AUTHORITIES_DIRECTORY}/{AUTHORITIES_FILE}");
        // Whoever names another file has a reason.
        variables
            .entry(CA_VARIABLE.to_owned())
            .or_insert_with(|| json!({"name": CA_VARIABLE, "value": file}));
        list(main, "volumeMounts")?.push(
            json!({"name": AUTHORITIES, "mountPath": AUTHORITIES_DIRECTORY, "readOnly": true}),
        );
    }
    if let Some(by) = ended_by {
        variables.insert(
            ENDED_BY_VARIABLE.to_owned(),
            json!({"name": ENDED_BY_VARIABLE, "value": by.as_millis().to_string()}),
        );
    }
    // Whoever knows better says so, there or with a flag of the wrapper.
    variables.entry(KILL_AFTER_VARIABLE.to_owned()).or_insert_with(|| {
        let kill_after_ms = grace_ms.saturating_sub(WRAPPER_SHARE_MS).max(grace_ms / 2);
        json!({"name": KILL_AFTER_VARIABLE, "value": format!("{kill_after_ms}ms")})
    });
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
        Some(json!({
            "apiVersion": "v1", "kind": "Secret", "type": "Opaque", "immutable": true,
            "metadata": {
                "name": self.name, "namespace": metadata["namespace"], "labels": metadata["labels"],
                "ownerReferences": [{"apiVersion": "batch/v1", "kind": "Job", "name": self.name, "uid": uid}],
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

/// The secret values, and what the wrapper needs to reach us, which is one too.
fn secrets(spec: &JobSpec, reach: &[(String, String)]) -> BTreeMap<String, String> {
    let ours = spec.env.iter().filter(|(key, _)| spec.secret_keys.contains(key));
    let given = ours.chain(reach).map(|(key, value)| (key.clone(), value.clone()));
    given
        .chain(
            spec.hidden_variables().map(|(key, value)| (key, value.to_string_lossy().into_owned())),
        )
        .collect()
}

/// Every variable that is ours to set, in the form of a container's `env`.
fn variables(
    spec: &JobSpec,
    container: &Map<String, Value>,
    secret_name: &str,
    secrets: &BTreeMap<String, String>,
) -> Result<BTreeMap<String, Value>, String> {
    let mut variables = BTreeMap::new();
    for (key, value) in &spec.env {
        variables.insert(key.clone(), json!({"name": key, "value": verbatim(value)}));
    }
    for key in secrets.keys() {
        variables.insert(
            key.clone(),
            json!({"name": key, "valueFrom": {"secretKeyRef": {"name": secret_name, "key": key}}}),
        );
    }
    let mut secret_keys = spec.secret_keys.clone();
    secret_keys.extend(spec.hidden_variables().map(|(key, _)| key));
    for variable in &spec.command.env {
        if let EnvValue::KubernetesSecret { name, key } = &variable.value {
            let reference = json!({"name": variable.key, "valueFrom": {"secretKeyRef": {"name": name, "key": key}}});
            variables.insert(variable.key.clone(), reference);
            secret_keys.push(variable.key.clone());
        }
    }
    secret_keys.extend(own_secret_keys(container)?);
    let mut seen = BTreeSet::new();
    secret_keys.retain(|key| seen.insert(key.clone()));
    if !secret_keys.is_empty() {
        let joined = secret_keys.join(",");
        variables.insert(
            SECRET_KEYS_VARIABLE.to_owned(),
            json!({"name": SECRET_KEYS_VARIABLE, "value": joined}),
        );
    }
    Ok(variables)
}

/// The variables of the container's own file that are secret: those that come from a Secret, and
/// those that it calls so.
fn own_secret_keys(container: &Map<String, Value>) -> Result<Vec<String>, String> {
    let mut keys = Vec::new();
    for entry in container.get("env").and_then(Value::as_array).into_iter().flatten() {
        let Some(name) = entry["name"].as_str() else { continue };
        if name == SECRET_KEYS_VARIABLE {
            let listed = entry["value"]
                .as_str()
                .ok_or_else(|| format!("`{SECRET_KEYS_VARIABLE}` of the Job has no `value`"))?;
            keys.extend(wire::secret_keys(listed).map(str::to_owned));
        } else if entry.pointer("/valueFrom/secretKeyRef").is_some() {
            keys.push(name.to_owned());
        }
    }
    Ok(keys)
}

/// What the container's own file says of a variable stands, unless the name is ours; it comes last,
/// so that it can refer to the others.
fn add_variables(
    container: &mut Map<String, Value>,
    ours: BTreeMap<String, Value>,
) -> Result<(), String> {
    let own = list(container, "env")?;
    let is_ours = |entry: &Value| {
        // Where its spool is the wrapper is told by whoever knows the volumes.
        entry["name"]
            .as_str()
            .is_some_and(|name| name != SPOOL_VARIABLE && environment::is_ours(name))
    };
    own.retain(|entry| !is_ours(entry));
    let named: Vec<String> =
        own.iter().filter_map(|entry| entry["name"].as_str().map(str::to_owned)).collect();
    let mut all: Vec<Value> =
        ours.into_iter().filter(|(key, _)| !named.contains(key)).map(|(_, entry)| entry).collect();
    all.append(own);
    *own = all;
    Ok(())
}

/// Puts the wrapper before the container's command; returns the container that brings it.
fn wrap(
    container: &mut Map<String, Value>,
    pod_context: &Value,
    spec: &JobSpec,
    image: &str,
) -> Result<Value, String> {
    let texts = |list: Option<&Value>| -> Vec<String> {
        let items = list.and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        items.iter().filter_map(|item| item.as_str().map(str::to_owned)).collect()
    };
    let command = texts(container.get("command"));
    if command.is_empty() {
        return Err("there is no command to put the wrapper before".to_owned());
    }
    let argv = [command, texts(container.get("args"))].concat();
    let program = format!("{WRAPPER_DIRECTORY}/{WRAPPER}");
    container.insert("command".to_owned(), json!([program, "exec"]));
    container.insert("args".to_owned(), wrapped::arguments(spec, &argv).into());
    list(container, "volumeMounts")?
        .push(json!({"name": WRAPPER, "mountPath": WRAPPER_DIRECTORY, "readOnly": true}));
    let mut init = Map::new();
    init.insert("name".to_owned(), WRAPPER.into());
    init.insert("image".to_owned(), image.into());
    init.insert("command".to_owned(), json!([format!("/{WRAPPER}"), "install", WRAPPER_DIRECTORY]));
    init.insert(
        "volumeMounts".to_owned(),
        json!([{"name": WRAPPER, "mountPath": WRAPPER_DIRECTORY}]),
    );
    // What a quota or a policy asks of one container it asks of all; the two never run at the same
    // time.
    for field in ["securityContext", "resources"] {
        if let Some(value) = container.get(field) {
            init.insert(field.to_owned(), value.clone());
        }
    }
    let said = |field: &str| {
        container
            .get("securityContext")
            .and_then(|own| own.get(field))
            .or_else(|| pod_context.get(field))
    };
    if said("runAsNonRoot") == Some(&Value::Bool(true)) && said("runAsUser").is_none() {
        // The command's image has a user of its own; the wrapper's may have none.
        entry(&mut init, "securityContext")?.insert("runAsUser".to_owned(), WRAPPER_USER.into());
    }
    Ok(init.into())
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
