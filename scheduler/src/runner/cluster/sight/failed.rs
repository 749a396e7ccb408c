//! A Pod that failed although its command's container did not end. Pure. Called by `sight`.

use k8s_openapi::api::core::v1::{ContainerStatus, Pod, PodStatus};

use super::super::job;
use super::container::{state, was_made};
use super::init::{failed_init, init_failure, init_that_began};
use super::taken::taken;
use super::words::{disruption, words};
use super::{Sight, SightOutcome, SightSubject, had_node, lost, never};

/// A Pod that failed although its command's container did not end: refused by its node, evicted
/// before anything started, or called so by somebody who does not hear of its node any more.
pub(super) fn look_at_failure(
    pod: &Pod,
    sight: &Sight,
    main: Option<&ContainerStatus>,
    subject: SightSubject<'_>,
) -> SightOutcome {
    let empty = PodStatus::default();
    let status = pod.status.as_ref().unwrap_or(&empty);
    let by_somebody =
        || taken(pod, sight, subject).filter(|_| !subject.deleted).map(|taken| taken.why);
    let by_whom = disruption(status).or_else(by_somebody);
    let why = by_whom.clone().unwrap_or_else(|| {
        words(status.reason.as_deref(), status.message.as_deref(), "its Pod failed")
    });
    let never_started =
        !subject.started && (!had_node(pod) || is_refused(status) || is_unmade(status, main));
    if !never_started {
        return lost(&why, false);
    }
    // What the user's own container does in its place has effects: it is not done again and again.
    match (init_failure(pod), init_that_began(pod)) {
        (Some((job::WRAPPER, failed)), None) => never(failed, true),
        (Some((_, failed)), _) => {
            never(by_whom.map_or(failed.clone(), |whom| format!("{whom}; {failed}")), false)
        }
        (None, Some(name)) => never(
            format!(
                "{why}; its init container `{name}` had begun and may have done something, so it \
                 is not tried again by itself"
            ),
            false,
        ),
        (None, None) => never(why, true),
    }
}

/// The node's own word on a container that it did not make, of a Pod that failed.
pub(super) fn is_unmade(status: &PodStatus, main: Option<&ContainerStatus>) -> bool {
    let waits = main.is_some_and(|main| {
        !was_made(main) && state(main).is_some_and(|state| state.waiting.is_some())
    });
    waits && (disruption(status).is_none() || failed_init(status).is_some())
}

/// Whether a node refused a Pod, so that nothing of it was ever made there. Source: `rejectPod` of
/// the kubelet, and the reasons of its admission handlers in releases that did not yet say so in
/// the message.
pub(super) fn is_refused(status: &PodStatus) -> bool {
    let reason = status.reason.as_deref().unwrap_or_default();
    let by_reason = reason.starts_with("OutOf")
        || matches!(
            reason,
            "NodeAffinity"
                | "NodePorts"
                | "UnexpectedAdmissionError"
                | "TopologyAffinityError"
                | "PodOSNotSupported"
                | "InvalidNodeInfo"
        );
    let by_message =
        status.message.as_deref().is_some_and(|message| message.starts_with("Pod was rejected"));
    (by_reason || by_message) && !status.container_statuses.iter().flatten().any(was_made)
}
