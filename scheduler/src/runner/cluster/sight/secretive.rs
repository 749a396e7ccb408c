//! Containers that know a Secret: what they print, and what a node says of them (the command with
//! the values in it that cannot be started, what a probe printed), may hold its value, and nobody
//! masks that. So it is not told; where it stands is. Pure.

use k8s_openapi::api::core::v1::{Container, EnvVar, Pod, PodSpec, Volume};
use kube::ResourceExt;

use super::container::CANNOT_START;
use super::words;

/// Reasons of a node with which it repeats what a container was to run, or what a probe or a hook
/// of it printed, beside those of [`CANNOT_START`].
const REPEATING: &[&str] = &[
    "CreateContainerError",
    "FailedPostStartHook",
    "FailedPreStopHook",
    "PostStartHookError",
    "RunContainerError",
    "Unhealthy",
];

/// How the node begins a `Failed` event that repeats what was to run; of images it begins
/// otherwise.
const FAILED_TO_RUN: &str = "Error: failed to";

/// Where what is not told can be read.
#[derive(Clone, Copy)]
pub(super) enum ReadIt {
    /// In what it printed.
    InItsLog,
    /// In what its node says of its Pod.
    InItsPod,
}

/// Whether a container has a Secret in its variables or in a volume, beside the one that pvn made
/// for the job, whose values it knows.
pub(super) fn knows_a_secret(pod: &Pod, name: &str) -> bool {
    let Some(spec) = &pod.spec else { return false };
    let own = pod.owner_references().first().map(|owner| owner.name.as_str());
    let mut all = spec.init_containers.iter().flatten().chain(&spec.containers);
    all.find(|container| container.name == name)
        .is_some_and(|container| has_a_secret(spec, container, own))
}

fn has_a_secret(spec: &PodSpec, container: &Container, own: Option<&str>) -> bool {
    let is_secret = |volume: &Volume| {
        let projected =
            volume.projected.iter().flat_map(|projected| projected.sources.iter().flatten());
        volume.secret.is_some() || projected.into_iter().any(|source| source.secret.is_some())
    };
    let secrets: Vec<&str> = spec
        .volumes
        .iter()
        .flatten()
        .filter(|volume| is_secret(volume))
        .map(|volume| volume.name.as_str())
        .collect();
    let in_variable = |variable: &EnvVar| {
        let from = variable.value_from.as_ref().and_then(|from| from.secret_key_ref.as_ref());
        from.is_some_and(|from| own != Some(from.name.as_str()))
    };
    container.env.iter().flatten().any(in_variable)
        || container.env_from.iter().flatten().any(|from| from.secret_ref.is_some())
        || container
            .volume_mounts
            .iter()
            .flatten()
            .any(|mount| secrets.contains(&mount.name.as_str()))
}

/// That what was said of a container that knows a Secret is not told, after the reason in one word.
pub(super) fn untold(pod: &Pod, container: &str, reason: Option<&str>, read_it: ReadIt) -> String {
    let (name, namespace) = (pod.name_any(), pod.namespace().unwrap_or_default());
    let (who, command) = match read_it {
        ReadIt::InItsLog => {
            ("it said", format!("kubectl logs {name} -c {container} -n {namespace}"))
        }
        ReadIt::InItsPod => {
            ("its node said", format!("kubectl describe pod {name} -n {namespace}"))
        }
    };
    let reason = words(reason, None, "it failed");
    format!("{reason} (it knows a Secret, so what {who} is not told here: `{command}` shows it)")
}

/// What is told in place of what a node says of a container, if that may hold a Secret's value.
fn untold_of_node(pod: &Pod, container: &str, reason: &str, message: &str) -> Option<String> {
    let repeats = CANNOT_START.contains(&reason)
        || REPEATING.contains(&reason)
        || (reason == "Failed" && message.starts_with(FAILED_TO_RUN));
    (repeats && knows_a_secret(pod, container))
        .then(|| untold(pod, container, Some(reason), ReadIt::InItsPod))
}

/// What a node says of a container.
pub(super) fn node_words(
    pod: &Pod,
    container: &str,
    reason: Option<&str>,
    message: Option<&str>,
    otherwise: &str,
) -> String {
    reason
        .zip(message)
        .and_then(|(reason, message)| untold_of_node(pod, container, reason, message))
        .unwrap_or_else(|| words(reason, message, otherwise))
}

/// What an event says. `field`: the part of the Pod that it is about, as
/// `spec.initContainers{name}`.
pub(in super::super) fn event_words(
    pod: Option<&Pod>,
    field: Option<&str>,
    reason: &str,
    message: &str,
) -> String {
    let container = field.and_then(|field| field.split_once('{')?.1.strip_suffix('}'));
    pod.zip(container)
        .and_then(|(pod, container)| untold_of_node(pod, container, reason, message))
        .unwrap_or_else(|| format!("{reason}: {message}"))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn pod(env: &Value) -> Pod {
        let container = |name: &str| json!({"name": name, "env": env});
        serde_json::from_value(json!({
            "metadata": {"name": "p", "namespace": "n", "ownerReferences": [
                {"apiVersion": "batch/v1", "kind": "Job", "name": "j", "uid": "u", "controller": true},
            ]},
            "spec": {"initContainers": [container("i")], "containers": [container("c")]},
        }))
        .unwrap()
    }

    fn from(secret: &str) -> Value {
        json!([{"name": "K", "valueFrom": {"secretKeyRef": {"name": secret, "key": "k"}}}])
    }

    #[test]
    fn what_a_node_repeats_of_a_container_that_knows_a_secret_is_not_told() {
        let shown = "exec: \"hunter22\": executable file not found";
        let said = |pod: &Pod, name: &str, reason: &str| {
            node_words(pod, name, Some(reason), Some(shown), "it waits")
        };
        for name in ["i", "c"] {
            for reason in ["StartError", "RunContainerError"] {
                let expected = "(it knows a Secret, so what its node said is not told here: \
                                `kubectl describe pod p -n n` shows it)";
                assert_eq!(
                    said(&pod(&from("theirs")), name, reason),
                    format!("{reason} {expected}")
                );
                assert_eq!(
                    said(&pod(&from("j")), name, reason),
                    format!("{reason}: {shown}"),
                    "its value is masked by who made it"
                );
                assert_eq!(said(&pod(&json!([])), name, reason), format!("{reason}: {shown}"));
            }
            assert_eq!(
                said(&pod(&from("theirs")), name, "ErrImagePull"),
                format!("ErrImagePull: {shown}"),
                "the words of an image"
            );
        }
    }

    #[test]
    fn what_a_probe_of_a_container_that_knows_a_secret_printed_is_not_told() {
        let pod = pod(&from("theirs"));
        let told = |field: &str, reason: &str, message: &str| {
            event_words(Some(&pod), Some(field), reason, message)
        };
        let probe = "Startup probe failed: hunter22";
        assert!(!told("spec.initContainers{i}", "Unhealthy", probe).contains("hunter22"));
        assert!(!told("spec.containers{c}", "Unhealthy", probe).contains("hunter22"));
        assert!(
            !told(
                "spec.containers{c}",
                "Failed",
                "Error: failed to create task: exec: \"hunter22\""
            )
            .contains("hunter22")
        );
        assert!(
            told("spec.containers{c}", "Failed", "Error: ImagePullBackOff")
                .ends_with("ImagePullBackOff")
        );
        assert!(told("spec.containers{other}", "Unhealthy", probe).ends_with(probe));
        assert!(event_words(Some(&pod), None, "FailedMount", "no volume").ends_with("no volume"));
    }
}
