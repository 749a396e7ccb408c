//! The environment of a job's container, and which of it is secret. Called by `job`.

use std::collections::{BTreeMap, BTreeSet};

use schema::time::Timestamp;
use schema::wire::{
    self, CA_VARIABLE, ENDED_BY_VARIABLE, KILL_AFTER_VARIABLE, SECRET_KEYS_VARIABLE, SPOOL_VARIABLE,
};
use serde_json::{Map, Value, json};

use super::{AUTHORITIES_FILE, list};
use crate::compile::{AUTHORITIES, AUTHORITIES_DIRECTORY, EnvValue, environment, verbatim};
use crate::runner::JobSpec;

/// What a wrapper keeps for itself of the time that its Pod has to end, ms: it kills the command
/// before the cluster kills both, so that what is left behind is gone and the report is out.
/// Source: twice the wrapper's 2 s for what the command leaves, and a second.
const WRAPPER_SHARE_MS: u64 = 5_000;

/// The secret values, and what the wrapper needs to reach us, which is one too.
pub(super) fn secrets(spec: &JobSpec, reach: &[(String, String)]) -> BTreeMap<String, String> {
    let ours = spec.env.iter().filter(|(key, _)| spec.secret_keys.contains(key));
    let given = ours.chain(reach).map(|(key, value)| (key.clone(), value.clone()));
    given
        .chain(
            spec.hidden_variables().map(|(key, value)| (key, value.to_string_lossy().into_owned())),
        )
        .collect()
}

/// Every variable that is ours to set, in the form of a container's `env`.
pub(super) fn variables(
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
            let secret = json!({"name": name, "key": key});
            let reference = json!({"name": variable.key, "valueFrom": {"secretKeyRef": secret}});
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

/// Shows the container those who alone may vouch for us.
pub(super) fn add_authorities(
    container: &mut Map<String, Value>,
    variables: &mut BTreeMap<String, Value>,
) -> Result<(), String> {
    let file = format!("{AUTHORITIES_DIRECTORY}/{AUTHORITIES_FILE}");
    // Whoever names another file has a reason.
    variables
        .entry(CA_VARIABLE.to_owned())
        .or_insert_with(|| json!({"name": CA_VARIABLE, "value": file}));
    list(container, "volumeMounts")?
        .push(json!({"name": AUTHORITIES, "mountPath": AUTHORITIES_DIRECTORY, "readOnly": true}));
    Ok(())
}

/// Tells the wrapper when the cluster ends it, and in which time it has to end the command.
pub(super) fn add_times(
    variables: &mut BTreeMap<String, Value>,
    ended_by: Option<Timestamp>,
    grace_s: u64,
) {
    if let Some(by) = ended_by {
        variables.insert(
            ENDED_BY_VARIABLE.to_owned(),
            json!({"name": ENDED_BY_VARIABLE, "value": by.as_millis().to_string()}),
        );
    }
    // Whoever knows better says so, there or with a flag of the wrapper.
    variables.entry(KILL_AFTER_VARIABLE.to_owned()).or_insert_with(|| {
        let grace_ms = grace_s.saturating_mul(1000);
        let kill_after_ms = grace_ms.saturating_sub(WRAPPER_SHARE_MS).max(grace_ms / 2);
        json!({"name": KILL_AFTER_VARIABLE, "value": format!("{kill_after_ms}ms")})
    });
}

/// What the container's own file says of a variable stands, unless the name is ours; it comes last,
/// so that it can refer to the others.
pub(super) fn add_variables(
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
