//! Several tries of one command: what ran, how the last of them ended, and which one the Job itself
//! cut. Pure. Called by `sight` and the job's task.
//!
//! What always holds: a job of which one try may have run is not told as never started. Its Pods
//! say so, or its Job's counts: a Pod that nobody saw and that ended may have run.

use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{ContainerStateTerminated, ContainerStatus, Pod, PodStatus};
use schema::time::Timestamp;

use super::asked::asked_by;
use super::container::{cannot_start, ended, never_made, runs, state, was_made};
use super::failed::{is_refused, is_unmade};
use super::job_end::failure;
use super::seen::OLDER_LIMIT;
use super::{Sight, asked_to_end, had_node, is_pod_over, time};

/// What a Job allows when it does not say. Source: `backoffLimit` of batch/v1.
const BACKOFF_LIMIT: i32 = 6;

/// What is known of the tries so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) enum PodAttempts {
    /// None has run.
    Never,
    /// One has.
    Ran {
        /// Since when the first of them did, as far as it was seen.
        since: Option<Timestamp>,
    },
    /// The Job counts Pods that ended and were not seen: one may have, or their watch is behind.
    Counted,
}

/// Looks at all Pods that were seen, and at what the Job counts.
pub(in super::super) fn tried(sight: &Sight, container: &str) -> PodAttempts {
    let pods = || sight.older.iter().chain(&sight.pod);
    let runs: Vec<&ContainerStatus> =
        pods().filter_map(|pod| status_of(pod, container)).filter(|status| ran(status)).collect();
    if !runs.is_empty() {
        return PodAttempts::Ran { since: runs.into_iter().filter_map(began).min() };
    }
    // One that is on its way out and has not ended says what it was when it has.
    let is_ending = |pod: &&Pod| {
        pod.metadata.deletion_timestamp.is_some() && !is_pod_over(pod) && !sight.pod_gone
    };
    let idle = pods().filter(|pod| is_ending(pod) || never_ran(pod, sight, container)).count();
    if sight.job.as_ref().map_or(0, ended_pods) > idle {
        PodAttempts::Counted
    } else {
        PodAttempts::Never
    }
}

/// Whether a Job counts an end that nobody saw: one of a Pod that went before it was seen, or
/// before its node had said that it ended.
pub(in super::super) fn has_unseen_end(sight: &Sight, container: &str) -> bool {
    let has_ended =
        |pod: &&Pod| is_pod_over(pod) || !had_node(pod) || end_of_run(pod, container).is_some();
    let seen = sight.older.iter().chain(&sight.pod).filter(has_ended).count();
    // Of more than are remembered only the last ones are.
    sight.older.len() < OLDER_LIMIT && sight.job.as_ref().map_or(0, ended_pods) > seen
}

/// The Pod that ran last, or may run.
pub(in super::super) fn last_run<'a>(sight: &'a Sight, container: &str) -> Option<&'a Pod> {
    let newest = sight.pod.as_ref().filter(|pod| !never_ran(pod, sight, container));
    let older = sight.older.iter().filter(|pod| status_of(pod, container).is_some_and(ran));
    newest.or_else(|| older.max_by_key(|pod| pod.metadata.creation_timestamp.as_ref().map(time)))
}

/// How its container ended.
pub(super) fn end_of_run<'a>(
    pod: &'a Pod,
    container: &str,
) -> Option<&'a ContainerStateTerminated> {
    let status = status_of(pod, container)?;
    ended(status).or_else(|| status.last_state.as_ref()?.terminated.as_ref())
}

/// Whether it is known of a Pod that its command never ran and will not.
pub(super) fn never_ran(pod: &Pod, sight: &Sight, container: &str) -> bool {
    let empty = PodStatus::default();
    let status = pod.status.as_ref().unwrap_or(&empty);
    let main = status_of(pod, container);
    if main.is_some_and(ran) {
        return false;
    }
    let is_newest =
        sight.pod.as_ref().is_some_and(|newest| newest.metadata.name == pod.metadata.name);
    let is_failed = status.phase.as_deref() == Some("Failed");
    let is_deleted = pod.metadata.deletion_timestamp.is_some()
        || (is_newest && sight.pod_gone && !sight.pod_missed);
    let is_without_node = (is_failed || is_deleted) && !had_node(pod);
    is_without_node
        || (is_failed && (is_refused(status) || is_unmade(status, main)))
        || main.and_then(ended).is_some_and(cannot_start)
        || (is_deleted && main.and_then(never_made).is_some())
}

/// Whether the Job ended a Pod itself, because it had restarted the command often enough
/// (`restartPolicy: OnFailure`). It does so once the command runs again: that run is one too many.
/// A Pod that somebody deletes makes the Job give up too, but later.
pub(super) fn is_cut_by_its_job(pod: &Pod, sight: &Sight) -> bool {
    let restarts_in_place =
        pod.spec.as_ref().is_some_and(|spec| spec.restart_policy.as_deref() == Some("OnFailure"));
    let Some(asked) = asked_by(pod).filter(|_| restarts_in_place) else { return false };
    let Some(job) = &sight.job else { return false };
    let gave_up =
        failure(job).filter(|failure| failure.reason.as_deref() == Some("BackoffLimitExceeded"));
    let gave_up_at = gave_up.and_then(|failure| failure.last_transition_time.as_ref()).map(time);
    let limit = job.spec.as_ref().and_then(|spec| spec.backoff_limit).unwrap_or(BACKOFF_LIMIT);
    gave_up_at.is_some_and(|at| seconds(at) <= seconds(asked))
        && restarts(pod) >= i64::from(limit).max(1)
}

/// How the last whole run of a container ended that its Job cut: what ended when it was asked to is
/// none.
pub(super) fn whole_end<'a>(
    pod: &Pod,
    status: &'a ContainerStatus,
) -> Option<&'a ContainerStateTerminated> {
    let asked = asked_to_end(pod).filter(|_| !runs(status))?;
    let by_itself = |ended: &&ContainerStateTerminated| {
        ended.finished_at.as_ref().is_some_and(|at| seconds(time(at)) < seconds(asked))
    };
    ended(status).filter(by_itself).or_else(|| status.last_state.as_ref()?.terminated.as_ref())
}

fn status_of<'a>(pod: &'a Pod, container: &str) -> Option<&'a ContainerStatus> {
    pod.status.as_ref()?.container_statuses.iter().flatten().find(|status| status.name == container)
}

/// The ends of a container that are known.
fn ends(status: &ContainerStatus) -> impl Iterator<Item = &ContainerStateTerminated> {
    [status.state.as_ref(), status.last_state.as_ref()]
        .into_iter()
        .flatten()
        .filter_map(|state| state.terminated.as_ref())
}

pub(super) fn ran(status: &ContainerStatus) -> bool {
    let was_there = was_made(status);
    let by_its_end = |ended: &ContainerStateTerminated| {
        !cannot_start(ended) && (ended.started_at.is_some() || was_there)
    };
    status.started == Some(true) || runs(status) || ends(status).any(by_its_end)
}

fn began(status: &ContainerStatus) -> Option<Timestamp> {
    let now = state(status).and_then(|state| state.running.as_ref()?.started_at.as_ref());
    ends(status).filter_map(|ended| ended.started_at.as_ref()).chain(now).map(time).min()
}

/// Pods that ended, as far as a Job's books say.
fn ended_pods(job: &Job) -> usize {
    let Some(status) = &job.status else { return 0 };
    let uncounted = status.uncounted_terminated_pods.as_ref();
    let uncounted = uncounted.map_or(0, |pods| {
        [&pods.failed, &pods.succeeded].into_iter().flatten().map(Vec::len).sum()
    });
    let counted = [status.failed, status.succeeded]
        .into_iter()
        .flatten()
        .filter_map(|count| usize::try_from(count).ok());
    counted.fold(uncounted, usize::saturating_add)
}

fn restarts(pod: &Pod) -> i64 {
    let status = pod.status.as_ref();
    let all = status
        .into_iter()
        .flat_map(|status| [&status.init_container_statuses, &status.container_statuses]);
    all.flatten().flatten().map(|status| i64::from(status.restart_count)).sum()
}

/// Times are the cluster's, in whole seconds.
fn seconds(at: Timestamp) -> i64 {
    at.as_millis().div_euclid(1000)
}
