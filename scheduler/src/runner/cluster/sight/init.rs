//! The init containers of a Pod: what the user's own did may have effects, and is not done again. Pure. Called by `sight` and the
//! job's task.

use k8s_openapi::api::core::v1::{Pod, PodStatus};

use super::{asked_to_end, ended, runs, time, tries, words};
use crate::runner::cluster::blockers::StartBlocker;
use crate::runner::cluster::job;

/// The init container of the user's own that runs now.
pub(super) fn waits_for_init(pod: &Pod) -> Option<StartBlocker> {
    let all = pod.status.as_ref()?.init_container_statuses.iter().flatten();
    let container = all.filter(|container| is_of_the_user(pod, &container.name)).find(|container| runs(container))?;
    Some(StartBlocker::new("InitRunning", format!("its init container `{}` runs", container.name)))
}

/// Whether an init container is the user's, and one that the command waits for.
fn is_of_the_user(pod: &Pod, name: &str) -> bool {
    let mut all = pod.spec.iter().flat_map(|spec| spec.init_containers.iter().flatten());
    name != job::WRAPPER && !all.any(|container| container.name == name && container.restart_policy.as_deref() == Some("Always"))
}

/// The init container that failed, and how.
pub(super) fn init_failure(status: &PodStatus) -> Option<(&str, String)> {
    status.init_container_statuses.iter().flatten().find_map(|container| {
        let ended = ended(container).filter(|ended| ended.exit_code != 0)?;
        let said = words(ended.reason.as_deref(), ended.message.as_deref(), "it failed");
        Some((container.name.as_str(), format!("its init container `{}` ended with {}: {said}", container.name, ended.exit_code)))
    })
}

/// An init container of the user's own that began.
pub(super) fn init_that_began(pod: &Pod) -> Option<&str> {
    let mut all = pod.status.as_ref()?.init_container_statuses.iter().flatten();
    all.find(|container| is_of_the_user(pod, &container.name) && tries::ran(container)).map(|container| container.name.as_str())
}

/// The init container of the user's own that a deletion of its Pod ended: what it did in its place it may have done.
pub(in super::super) fn init_that_ran(pod: &Pod) -> Option<&str> {
    let asked = asked_to_end(pod)?;
    let ran = pod.status.as_ref()?.init_container_statuses.iter().flatten().find(|container| {
        let was_ended = ended(container).filter(|ended| ended.started_at.is_some());
        let was_ended = was_ended.and_then(|ended| ended.finished_at.as_ref()).is_some_and(|at| time(at) >= asked);
        is_of_the_user(pod, &container.name) && (runs(container) || was_ended)
    });
    ran.map(|container| container.name.as_str())
}
