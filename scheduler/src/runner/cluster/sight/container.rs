//! What the status of a container says by itself. Pure. Called by `sight`.

use k8s_openapi::api::core::v1::{ContainerState, ContainerStateTerminated, ContainerStatus};

use super::words::words;
use super::{Sight, SightSubject};

/// Reasons of a node for a container that was made and never ran.
pub(super) const CANNOT_START: &[&str] = &["ContainerCannotRun", "StartError"];

/// Whether a container was made and never ran.
pub(super) fn cannot_start(ended: &ContainerStateTerminated) -> bool {
    ended.reason.as_deref().is_some_and(|reason| CANNOT_START.contains(&reason))
}

/// Of a Pod that was deleted while it waited the node says "unknown" of a container that it never
/// made.
pub(super) fn never_made(status: &ContainerStatus) -> Option<String> {
    let ended =
        ended(status).filter(|ended| ended.reason.as_deref() == Some("ContainerStatusUnknown"))?;
    let had_time = ended.started_at.is_some();
    (!had_time && !was_made(status)).then(|| {
        words(ended.reason.as_deref(), ended.message.as_deref(), "its container was never made")
    })
}

/// Whether there ever was such a container, as far as its status says.
pub(super) fn was_made(status: &ContainerStatus) -> bool {
    let states = [status.state.as_ref(), status.last_state.as_ref()].into_iter().flatten();
    let mut ids = states
        .filter_map(|state| state.terminated.as_ref()?.container_id.as_ref())
        .chain(&status.container_id);
    ids.any(|id| !id.is_empty())
}

/// The end of the command's container, when it has ended and is not started again.
pub(super) fn ended(status: &ContainerStatus) -> Option<&ContainerStateTerminated> {
    state(status)?.terminated.as_ref()
}

/// The last end of one that was to be started again, when its Job is over and nobody does so any
/// more.
pub(super) fn last_end<'a>(
    status: &'a ContainerStatus,
    sight: &Sight,
    subject: SightSubject<'_>,
) -> Option<&'a ContainerStateTerminated> {
    let is_last = subject.tries_again
        && sight.is_job_over()
        && state(status).is_some_and(|state| state.waiting.is_some());
    status.last_state.as_ref().filter(|_| is_last)?.terminated.as_ref()
}

pub(super) fn state(status: &ContainerStatus) -> Option<&ContainerState> {
    status.state.as_ref()
}

pub(super) fn runs(container: &ContainerStatus) -> bool {
    state(container).is_some_and(|state| state.running.is_some())
}
