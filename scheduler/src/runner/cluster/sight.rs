//! What the cluster shows of a job -> what it means. Pure. Called by the job's task whenever something changed.
//!
//! What always holds: an exit code is told only of a command that ended by itself or by its own limits; where the cluster ended it
//! (eviction, preemption, a node that is gone, a Pod that somebody deleted) the outcome is unknown, unless the wrapper wrote
//! down what became of it. That a command never started is told only when its container never did.

use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{ContainerState, ContainerStateTerminated, ContainerStatus, Pod, PodStatus};
use schema::time::Timestamp;

use super::waits::Wait;
use crate::runner::learned::{self, Exit, Learned, Never};

/// All that the cluster shows of one job.
#[derive(Debug, Clone, Default)]
pub(super) struct Sight {
    /// The Job, as it was last seen.
    pub(super) job: Option<Job>,
    /// Whether it is gone.
    pub(super) job_gone: bool,
    /// The newest Pod, as it was last seen.
    pub(super) pod: Option<Pod>,
    /// Whether that is gone.
    pub(super) pod_gone: bool,
}

/// What to look at.
#[derive(Debug, Clone, Copy)]
pub(super) struct Subject<'a> {
    /// Name of the container that is the command.
    pub(super) container: &'a str,
    /// Whether the Job has more than one try; then only it says when it is over.
    pub(super) tries_again: bool,
    /// Whether we deleted the Job because it did not start.
    pub(super) deleted: bool,
}

/// What it means.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Seen {
    /// It has not started.
    Waiting(Option<Wait>),
    /// Its command runs.
    Running {
        /// Since when.
        since: Option<Timestamp>,
    },
    /// It is over.
    Over {
        /// What is known.
        learned: Box<Learned>,
        /// Whether nothing of it is left.
        gone: bool,
    },
}

/// Looks. Jobs and Pods are seen on two ways of which neither waits for the other: a Job that is over says nothing of a Pod that
/// has not been seen yet.
pub(super) fn look(sight: &Sight, subject: Subject<'_>) -> Seen {
    let Some(pod) = &sight.pod else { return look_without_pod(sight, subject) };
    let seen = look_at_pod(pod, sight, subject);
    let job_is_over = sight.job_gone || sight.job.as_ref().is_some_and(|job| end_of(job).is_some());
    match seen {
        // One try of several.
        Seen::Over { .. } if subject.tries_again && !job_is_over => Seen::Waiting(None),
        seen => seen,
    }
}

fn look_without_pod(sight: &Sight, subject: Subject<'_>) -> Seen {
    if sight.job_gone {
        return if subject.deleted {
            never("it was ended before a Pod of it started".to_owned(), true)
        } else {
            lost("its Job was deleted, and nobody saw a Pod of it", true)
        };
    }
    match sight.job.as_ref().and_then(|job| Some((job, end_of(job)?))) {
        Some((job, why)) if !had_pods(job) => never(why, true),
        _ => Seen::Waiting(None),
    }
}

/// Whether a Job ever had a Pod, as far as its books say.
fn had_pods(job: &Job) -> bool {
    let status = job.status.as_ref();
    let counts = status.map(|status| [status.active, status.succeeded, status.failed, status.terminating]);
    counts.into_iter().flatten().flatten().any(|count| count > 0)
}

fn look_at_pod(pod: &Pod, sight: &Sight, subject: Subject<'_>) -> Seen {
    let empty = PodStatus::default();
    let status = pod.status.as_ref().unwrap_or(&empty);
    let main = status.container_statuses.iter().flatten().find(|status| status.name == subject.container);
    if let Some(why) = main.filter(|_| subject.deleted).and_then(never_made) {
        return never(why, true);
    }
    if let Some(ended) = main.and_then(ended) {
        return look_at_end(pod, sight.job_gone, status, ended);
    }
    let started = main.is_some_and(|main| main.started == Some(true) || state(main).is_some_and(|state| state.running.is_some()));
    if sight.pod_gone {
        let what = if sight.job_gone { "its Job and its Pod were deleted" } else { "its Pod was deleted" };
        return if started {
            lost(&disruption(status).unwrap_or_else(|| what.to_owned()), true)
        } else {
            never(format!("{what} before it started"), true)
        };
    }
    if status.phase.as_deref() == Some("Failed") {
        // Refused by the node, or evicted before anything started.
        let why = disruption(status).unwrap_or_else(|| words(status.reason.as_deref(), status.message.as_deref(), "its Pod failed"));
        return if started { lost(&why, true) } else { never(init_failure(status).unwrap_or(why), true) };
    }
    if started {
        let since = main.and_then(state).and_then(|state| state.running.as_ref()?.started_at.as_ref());
        return Seen::Running { since: since.map(time) };
    }
    Seen::Waiting(waits_for(status, main))
}

/// The container has ended: by itself, or not.
fn look_at_end(pod: &Pod, job_gone: bool, status: &PodStatus, ended: &ContainerStateTerminated) -> Seen {
    let reason = ended.reason.as_deref().unwrap_or_default();
    let said = ended.message.as_deref().unwrap_or_default();
    if matches!(reason, "StartError" | "ContainerCannotRun") {
        return never(words(Some(reason), Some(said), "its container cannot be started"), false);
    }
    let message = learned::in_message(said);
    let exit = Exit {
        code: ended.exit_code,
        oom_killed: reason == "OOMKilled",
        started_at: ended.started_at.as_ref().map(time),
        ended_at: ended.finished_at.as_ref().map(time),
    };
    // Of a command that somebody else ended, 0 does not say that it is done; nor does any code that nobody could read.
    let was_ended = disruption(status).or_else(|| {
        if reason == "ContainerStatusUnknown" {
            return Some(words(Some(reason), Some(said), "its end was not seen"));
        }
        let whose = if job_gone { "its Job" } else { "its Pod" };
        (pod.metadata.deletion_timestamp.is_some() && exit.code == 0).then(|| format!("{whose} was deleted while it ran"))
    });
    match (was_ended, message) {
        (Some(why), None) => lost(&why, true),
        (_, message) => Seen::Over { learned: Box::new(Learned { message, exit: Some(exit), ..Learned::default() }), gone: true },
    }
}

/// Of a Pod that was deleted while it waited the node says "unknown" of a container that it never made.
fn never_made(status: &ContainerStatus) -> Option<String> {
    let ended = ended(status).filter(|ended| ended.reason.as_deref() == Some("ContainerStatusUnknown"))?;
    let was_made = ended.started_at.is_some() || [&status.container_id, &ended.container_id].into_iter().flatten().any(|id| !id.is_empty());
    (!was_made).then(|| words(ended.reason.as_deref(), ended.message.as_deref(), "its container was never made"))
}

/// The end of the command's container: this one's, or, where it is started again, the last one's does not count.
fn ended(status: &ContainerStatus) -> Option<&ContainerStateTerminated> {
    state(status)?.terminated.as_ref()
}

fn state(status: &ContainerStatus) -> Option<&ContainerState> {
    status.state.as_ref()
}

/// Why the cluster ended the Pod, if it did.
fn disruption(status: &PodStatus) -> Option<String> {
    let target = status.conditions.iter().flatten().find(|condition| condition.type_ == "DisruptionTarget" && condition.status == "True");
    if let Some(target) = target {
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
    let by_node =
        matches!(reason, "Evicted" | "Preempting" | "NodeLost" | "NodeShutdown" | "Shutdown" | "Terminated" | "UnexpectedAdmissionError");
    by_node.then(|| words(Some(reason), status.message.as_deref(), reason))
}

/// What keeps a Pod from starting.
fn waits_for(status: &PodStatus, main: Option<&ContainerStatus>) -> Option<Wait> {
    let unscheduled = status.conditions.iter().flatten().find(|condition| condition.type_ == "PodScheduled" && condition.status == "False");
    if let Some(condition) = unscheduled {
        let reason = condition.reason.as_deref().unwrap_or("Unschedulable");
        return Some(Wait::new(reason, words(Some(reason), condition.message.as_deref(), reason)));
    }
    let others = status.init_container_statuses.iter().flatten().chain(main);
    for container in others {
        let Some(waiting) = state(container).and_then(|state| state.waiting.as_ref()) else { continue };
        if !matches!(waiting.reason.as_deref(), None | Some("ContainerCreating" | "PodInitializing")) {
            let reason = waiting.reason.as_deref().unwrap_or_default();
            return Some(Wait::new(reason, words(Some(reason), waiting.message.as_deref(), "its container waits")));
        }
    }
    None
}

fn init_failure(status: &PodStatus) -> Option<String> {
    status.init_container_statuses.iter().flatten().find_map(|container| {
        let ended = ended(container).filter(|ended| ended.exit_code != 0)?;
        let said = words(ended.reason.as_deref(), ended.message.as_deref(), "it failed");
        Some(format!("its init container `{}` ended with {}: {said}", container.name, ended.exit_code))
    })
}

/// Why a Job is over, when it is.
fn end_of(job: &Job) -> Option<String> {
    let conditions = job.status.as_ref()?.conditions.as_ref()?;
    let end =
        conditions.iter().find(|condition| matches!(condition.type_.as_str(), "Complete" | "Failed") && condition.status == "True")?;
    Some(words(end.reason.as_deref(), end.message.as_deref(), "its Job is over"))
}

fn words(reason: Option<&str>, message: Option<&str>, otherwise: &str) -> String {
    let filled = |text: Option<&str>| text.map(str::trim).filter(|text| !text.is_empty()).map(str::to_owned);
    match (filled(reason), filled(message)) {
        (Some(reason), Some(message)) => format!("{reason}: {message}"),
        (Some(text), None) | (None, Some(text)) => text,
        (None, None) => otherwise.to_owned(),
    }
}

fn never(why: String, surroundings: bool) -> Seen {
    Seen::Over { learned: Box::new(Learned { never: Some(Never { why, surroundings }), ..Learned::default() }), gone: true }
}

fn lost(why: &str, gone: bool) -> Seen {
    Seen::Over { learned: Box::new(Learned { lost: Some(why.to_owned()), ..Learned::default() }), gone }
}

fn time(time: &k8s_openapi::apimachinery::pkg::apis::meta::v1::Time) -> Timestamp {
    Timestamp::from_millis(time.0.as_millisecond())
}

#[cfg(test)]
mod tests;
