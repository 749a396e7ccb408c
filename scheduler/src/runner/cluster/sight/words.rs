//! What a Pod's status says in words: why the cluster ended it, what keeps it from starting.

use k8s_openapi::api::core::v1::{ContainerStatus, Pod, PodCondition, PodStatus};

use super::super::blockers::StartBlocker;
use super::secretive::node_words;
use super::state;

pub(super) fn is_disrupted(condition: &PodCondition) -> bool {
    condition.type_ == "DisruptionTarget" && condition.status == "True"
}

/// Why the cluster ended the Pod, if it did.
pub(super) fn disruption(status: &PodStatus) -> Option<String> {
    if let Some(target) =
        status.conditions.iter().flatten().find(|condition| is_disrupted(condition))
    {
        let what = match target.reason.as_deref() {
            Some("PreemptionByScheduler") => "its Pod made room for another",
            Some("EvictionByEvictionAPI") => "its Pod was evicted",
            Some("DeletionByTaintManager") => "its node is lost or was emptied",
            Some("DeletionByPodGC") => "its node is gone",
            Some("TerminationByKubelet") => "its node ended the Pod",
            _ => "the cluster ended its Pod",
        };
        return Some(words(Some(what), target.message.as_deref(), what));
    }
    let reason = status.reason.as_deref()?;
    let by_node = matches!(
        reason,
        "Evicted"
            | "Preempting"
            | "NodeLost"
            | "NodeShutdown"
            | "Shutdown"
            | "Terminated"
            | "UnexpectedAdmissionError"
    );
    by_node.then(|| words(Some(reason), status.message.as_deref(), reason))
}

/// What keeps a Pod from starting.
pub(super) fn waits_for(
    pod: &Pod,
    status: &PodStatus,
    main: Option<&ContainerStatus>,
) -> Option<StartBlocker> {
    let unscheduled = status
        .conditions
        .iter()
        .flatten()
        .find(|condition| condition.type_ == "PodScheduled" && condition.status == "False");
    if let Some(condition) = unscheduled {
        let reason = condition.reason.as_deref().unwrap_or("Unschedulable");
        return Some(StartBlocker::said(
            reason,
            words(Some(reason), condition.message.as_deref(), reason),
        ));
    }
    let others = status.init_container_statuses.iter().flatten().chain(main);
    for container in others {
        let Some(waiting) = state(container).and_then(|state| state.waiting.as_ref()) else {
            continue;
        };
        if !matches!(
            waiting.reason.as_deref(),
            None | Some("ContainerCreating" | "PodInitializing")
        ) {
            let reason = waiting.reason.as_deref().unwrap_or_default();
            let said = node_words(
                pod,
                &container.name,
                Some(reason),
                waiting.message.as_deref(),
                "its container waits",
            );
            return Some(StartBlocker::said(reason, said));
        }
    }
    None
}

pub(super) fn words(reason: Option<&str>, message: Option<&str>, otherwise: &str) -> String {
    let filled =
        |text: Option<&str>| text.map(str::trim).filter(|text| !text.is_empty()).map(str::to_owned);
    match (filled(reason), filled(message)) {
        (Some(reason), Some(message)) => format!("{reason}: {message}"),
        (Some(text), None) | (None, Some(text)) => text,
        (None, None) => otherwise.to_owned(),
    }
}
