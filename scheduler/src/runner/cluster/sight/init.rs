//! The init containers of a Pod: what the user's own did may have effects, and is not done again.
//! Pure. Called by `sight` and the job's task.

use k8s_openapi::api::core::v1::{ContainerStateTerminated, ContainerStatus, Pod, PodStatus};

use super::container::cannot_start;
use super::secretive::{ReadIt, knows_a_secret, node_words, untold};
use super::{asked_to_end, ended, runs, time, tries};
use crate::runner::cluster::blockers::{StartBlocker, WaitEnd};
use crate::runner::cluster::job;

/// The init container that failed and is begun anew, also one that is to run beside the command;
/// else the one of the user's own that runs now.
pub(super) fn waits_for_init(pod: &Pod) -> Option<StartBlocker> {
    let all = pod.status.as_ref()?.init_container_statuses.iter().flatten();
    let last_failure = |container: &ContainerStatus| {
        let last =
            ended(container).or_else(|| container.last_state.as_ref()?.terminated.as_ref())?;
        (last.exit_code != 0 && container.started != Some(true) && !container.ready)
            .then(|| last.clone())
    };
    if let Some((container, last)) =
        all.clone().find_map(|container| Some((container, last_failure(container)?)))
    {
        let said = said_by(pod, &container.name, &last);
        let (name, code, count) = (&container.name, last.exit_code, container.restart_count);
        let text = format!(
            "its init container `{name}` ended with {code}: {said}; it was begun anew {count} \
             times, and the command waits for it"
        );
        return Some(StartBlocker::new(WaitEnd::NodeStartsContainer, text));
    }
    let container = all
        .filter(|container| is_of_the_user(pod, &container.name))
        .find(|container| runs(container))?;
    let why = format!("its init container `{}` runs", container.name);
    Some(StartBlocker::new(WaitEnd::InitContainerEnds, why))
}

/// Whether an init container is the user's, and one that the command waits for.
fn is_of_the_user(pod: &Pod, name: &str) -> bool {
    let mut all = pod.spec.iter().flat_map(|spec| spec.init_containers.iter().flatten());
    name != job::WRAPPER
        && !all.any(|container| {
            container.name == name && container.restart_policy.as_deref() == Some("Always")
        })
}

/// The init container that failed.
pub(super) fn failed_init(
    status: &PodStatus,
) -> Option<(&ContainerStatus, &ContainerStateTerminated)> {
    let mut all = status.init_container_statuses.iter().flatten();
    all.find_map(|container| {
        Some((container, ended(container).filter(|ended| ended.exit_code != 0)?))
    })
}

/// Its name, and how it failed.
pub(super) fn init_failure(pod: &Pod) -> Option<(&str, String)> {
    let (container, ended) = failed_init(pod.status.as_ref()?)?;
    let said = said_by(pod, &container.name, ended);
    Some((
        container.name.as_str(),
        format!("its init container `{}` ended with {}: {said}", container.name, ended.exit_code),
    ))
}

/// What an init container that failed said of itself, or its node of it.
fn said_by(pod: &Pod, container: &str, ended: &ContainerStateTerminated) -> String {
    let (reason, message) = (ended.reason.as_deref(), ended.message.as_deref());
    if cannot_start(ended) || message.is_none() || !knows_a_secret(pod, container) {
        return node_words(pod, container, reason, message, "it failed");
    }
    untold(pod, container, reason, ReadIt::InItsLog)
}

/// An init container of the user's own that began.
pub(in super::super) fn init_that_began(pod: &Pod) -> Option<&str> {
    let mut all = pod.status.as_ref()?.init_container_statuses.iter().flatten();
    all.find(|container| is_of_the_user(pod, &container.name) && tries::ran(container))
        .map(|container| container.name.as_str())
}

/// The init container of the user's own that a deletion of its Pod ended: what it did in its place
/// it may have done.
pub(in super::super) fn init_that_ran(pod: &Pod) -> Option<&str> {
    let asked = asked_to_end(pod)?;
    let ran = pod.status.as_ref()?.init_container_statuses.iter().flatten().find(|container| {
        let was_ended = ended(container).filter(|ended| ended.started_at.is_some());
        let was_ended = was_ended
            .and_then(|ended| ended.finished_at.as_ref())
            .is_some_and(|at| time(at) >= asked);
        is_of_the_user(pod, &container.name) && (runs(container) || was_ended)
    });
    ran.map(|container| container.name.as_str())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn check_waits(restart_policy: Value, status: Value, expected: Option<&str>) {
        let pod: Pod = serde_json::from_value(json!({
            "spec": {"containers": [], "initContainers": [{"name": "s", "restartPolicy": restart_policy}]},
            "status": {"initContainerStatuses": [status]},
        }))
        .unwrap();
        assert_eq!(waits_for_init(&pod).map(|waits| waits.why), expected.map(str::to_owned));
    }

    fn status(state: Value, last: Value, started: bool) -> Value {
        json!({"name": "s", "image": "", "imageID": "", "ready": false, "restartCount": 3, "started": started, "state": state, "lastState": last})
    }

    #[test]
    fn an_init_container_that_fails_again_and_again_is_named_also_one_that_runs_beside_the_command()
    {
        let failed = || json!({"terminated": {"exitCode": 9, "reason": "Error"}});
        let running = || json!({"running": {}});
        let named = Some(
            "its init container `s` ended with 9: Error; it was begun anew 3 times, and the \
             command waits for it",
        );
        for policy in [json!("Always"), Value::Null] {
            check_waits(policy.clone(), status(failed(), json!({}), false), named);
            check_waits(policy.clone(), status(running(), failed(), false), named);
        }
        check_waits(json!("Always"), status(running(), failed(), true), None);
        check_waits(
            Value::Null,
            status(running(), json!({}), false),
            Some("its init container `s` runs"),
        );
        check_waits(
            Value::Null,
            status(json!({"terminated": {"exitCode": 0}}), json!({}), false),
            None,
        );
    }

    #[test]
    fn what_an_init_container_says_that_knows_a_secret_is_not_told() {
        let said = |container: Value, reason: &str| {
            let volumes = json!([
                {"name": "keys", "secret": {"secretName": "ks"}},
                {"name": "both", "projected": {"sources": [{"configMap": {"name": "c"}}, {"secret": {"name": "ks"}}]}},
                {"name": "plain", "projected": {"sources": [{"configMap": {"name": "c"}}]}},
            ]);
            let mut container = container;
            container["name"] = "pre".into();
            let ended = json!({"terminated": {"exitCode": 3, "reason": reason, "message": "login with hunter22 refused"}});
            let pod: Pod = serde_json::from_value(json!({
                "metadata": {"name": "p", "namespace": "n"},
                "spec": {"containers": [], "initContainers": [container], "volumes": volumes},
                "status": {"initContainerStatuses": [{"name": "pre", "image": "", "imageID": "", "ready": false, "restartCount": 1, "state": ended}]},
            }))
            .unwrap();
            let (failure, waits) =
                (init_failure(&pod).unwrap().1, waits_for_init(&pod).unwrap().why);
            assert_eq!(
                failure.contains("hunter22"),
                waits.contains("hunter22"),
                "{failure}; {waits}"
            );
            failure
        };
        let mounts = |volume: &str| json!({"volumeMounts": [{"name": volume, "mountPath": "/m"}]});
        for knowing in [
            json!({"env": [{"name": "K", "valueFrom": {"secretKeyRef": {"name": "ks", "key": "k"}}}]}),
            json!({"envFrom": [{"secretRef": {"name": "ks"}}]}),
            mounts("keys"),
            mounts("both"),
        ] {
            let expected = "its init container `pre` ended with 3: Error (it knows a Secret, so \
                            what it said is not told here: `kubectl logs p -c pre -n n` shows it)";
            assert_eq!(said(knowing.clone(), "Error"), expected);
            let expected = "StartError (it knows a Secret, so what its node said is not told \
                            here: `kubectl describe pod p -n n` shows it)";
            assert!(
                said(knowing, "StartError").ends_with(expected),
                "its node repeats the command, with the values in it"
            );
        }
        let variable = json!({"env": [{"name": "K", "value": "v"}], "envFrom": [{"configMapRef": {"name": "c"}}]});
        for plain in [json!({}), variable, mounts("plain")] {
            assert!(said(plain, "Error").ends_with("Error: login with hunter22 refused"));
        }
    }
}
