//! What the cluster shows of a job -> what it means. Pure. Called by the job's task whenever
//! something changed.
//!
//! What always holds: an exit code is told only of a command that ended by itself or by its own
//! limits; where the cluster ended it (eviction, preemption, a node that is gone, a Pod that
//! somebody deleted) the outcome is unknown, unless the wrapper wrote down what became of it. That
//! a command never started is told only of a Pod that never had a node, or of a container of which
//! its node says that it was never made: what the API shows lags behind the node. And what was on a
//! node is gone when the node says so, not when the Pod is gone from the books.

use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{
    ContainerStateTerminated, ContainerStatus, Pod, PodCondition, PodStatus,
};
use schema::id::JobId;
use schema::report::Report;
use schema::time::Timestamp;

use super::blockers::StartBlocker;
use super::job;
use super::lost_watch::LostWatch;
use crate::runner::evidence::{self, Exit, Never, OutcomeEvidence, Taken};

mod asked;
mod container;
pub(super) mod counts;
mod init;
mod job_end;
mod secretive;
mod taken;
pub(super) mod tries;
mod words;

pub(super) use asked::{asked_to_end, by_another_clock, ended_when_asked};
pub(super) use init::{init_that_began, init_that_ran};
pub(super) use job_end::{decided_by_job, is_failing, is_over, is_suspended_again};
pub(super) use secretive::event_words;
pub(super) use taken::taken;

use asked::with_what_was_seen;
use container::{cannot_start, ended, last_end, never_made, runs, state, was_made};
use counts::had_pods;
use init::{failed_init, init_failure, waits_for_init};
use job_end::{end_of, ended_by_deadline, failure};
use secretive::node_words;
use taken::run_although_asked;
use words::{disruption, waits_for, words};

/// All that the cluster shows of one job.
#[derive(Debug, Clone, Default)]
pub(super) struct Sight {
    /// The Job, as it was last seen.
    pub(super) job: Option<Job>,
    /// Whether it is gone.
    pub(super) job_gone: bool,
    /// The newest Pod, as it was last seen.
    pub(super) pod: Option<Pod>,
    /// Pods before that, as they were last seen: tries that are over, or on their way out.
    pub(super) older: Vec<Pod>,
    /// Whether the newest is gone.
    pub(super) pod_gone: bool,
    /// With `pod_gone`: whether nobody saw how it went, so that its last state is not known.
    pub(super) pod_missed: bool,
    /// Whether all Jobs, and all Pods, were listed since somebody looks.
    pub(super) jobs_listed: bool,
    pub(super) pods_listed: bool,
    /// How often the watch of the Pods was lost.
    pub(super) pods_broken: u32,
    /// That the cluster does not show us the Jobs, or the Pods, since it last did.
    pub(super) jobs_lost: Option<LostWatch>,
    pub(super) pods_lost: Option<LostWatch>,
    /// Containers that were seen to run in a Pod, by its uid, that had been asked to end.
    pub(super) outlived: Vec<(Option<String>, String)>,
}

impl Sight {
    /// Whether all that is there was seen once. Before that nothing is known to be absent.
    pub(super) fn is_listed(&self) -> bool {
        self.jobs_listed && self.pods_listed
    }

    /// What keeps us from seeing once all that is there.
    pub(super) fn unlisted(&self) -> Option<&LostWatch> {
        let pods = self.pods_lost.as_ref().filter(|_| !self.pods_listed);
        self.jobs_lost.as_ref().filter(|_| !self.jobs_listed).or(pods)
    }

    /// What keeps us from seeing what happens, although all was listed once.
    pub(super) fn unwatched(&self) -> Option<&LostWatch> {
        self.jobs_lost
            .iter()
            .chain(&self.pods_lost)
            .filter(|lost| lost.is_unlisted)
            .min_by_key(|lost| lost.since)
    }

    /// Whether its Job is over and had a Pod, and there is none.
    pub(super) fn lacks_its_pod(&self) -> bool {
        self.pod.is_none()
            && !self.job_gone
            && self.job.as_ref().is_some_and(|job| is_over(job) && had_pods(job))
    }

    /// Whether its Job makes no other Pod.
    pub(super) fn is_job_over(&self) -> bool {
        self.job_gone || self.job.as_ref().is_some_and(is_over)
    }

    /// Takes in a Pod as it is now.
    pub(super) fn see(&mut self, pod: &Pod) {
        let before = self
            .older
            .iter()
            .chain(&self.pod)
            .find(|before| before.metadata.uid == pod.metadata.uid);
        let pod = &before.map_or_else(|| pod.clone(), |before| with_what_was_seen(pod, before));
        for container in run_although_asked(pod) {
            let outlived = (pod.metadata.uid.clone(), container.to_owned());
            if self.outlived.len() < OUTLIVED_LIMIT && !self.outlived.contains(&outlived) {
                self.outlived.push(outlived);
            }
        }
        let made_at = |pod: &Pod| pod.metadata.creation_timestamp.as_ref().map(time);
        let is_other = |of: &Pod| of.metadata.name != pod.metadata.name;
        self.older.retain(is_other);
        if self
            .pod
            .as_ref()
            .is_some_and(|newest| is_other(newest) && made_at(newest) > made_at(pod))
        {
            self.older.push(pod.clone());
        } else {
            (self.pod_gone, self.pod_missed) = (false, false);
            self.older.extend(self.pod.replace(pod.clone()).filter(is_other));
        }
        if self.older.len() > OLDER_LIMIT {
            self.older.sort_by_key(|pod| made_at(pod));
            self.older.remove(0);
        }
    }

    /// Whether every container of its Pod has ended.
    pub(super) fn is_pod_over(&self) -> bool {
        self.pod_gone || self.pod.as_ref().is_some_and(is_pod_over)
    }
}

/// Whether every container of a Pod has ended.
pub(super) fn is_pod_over(pod: &Pod) -> bool {
    let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
    matches!(phase, Some("Succeeded" | "Failed"))
}

/// Most Pods of one Job that are remembered beside the newest. What became of those before them its
/// Job's counts say.
const OLDER_LIMIT: usize = 8;

/// Most containers that are remembered to have run in a Pod that had been asked to end.
const OUTLIVED_LIMIT: usize = 256;

/// What to look at.
#[derive(Debug, Clone, Copy)]
pub(super) struct SightSubject<'a> {
    /// Name of the container that is the command.
    pub(super) container: &'a str,
    /// Whether the Job has more than one try; then only it says when it is over.
    pub(super) tries_again: bool,
    /// Whether we deleted the Job because it did not start.
    pub(super) deleted: bool,
    /// Whether its command is known to have started, whatever its status says now.
    pub(super) started: bool,
    /// Whether it was ended because we asked for that, or because its time is over.
    pub(super) ended_by_us: bool,
    /// Whose signature its termination message has when its own wrapper wrote it: the job's and
    /// its token. Other wrappers may run within the command, and any program may write there.
    pub(super) signer: Option<(JobId, &'a str)>,
    /// Whether the message needs that to count, because it alone says how the command ended.
    pub(super) needs_signature: bool,
}

/// What it means.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum SightOutcome {
    /// It has not started.
    Waiting(Option<StartBlocker>),
    /// Its command runs.
    Running {
        /// Since when.
        since: Option<Timestamp>,
    },
    /// It is over.
    Over {
        /// What is known.
        learned: Box<OutcomeEvidence>,
        /// Whether nothing of it is left.
        gone: bool,
    },
}

/// Looks. Jobs and Pods are seen on two ways of which neither waits for the other: a Job that is
/// over says nothing of a Pod that has not been seen yet.
pub(super) fn look(sight: &Sight, subject: SightSubject<'_>) -> SightOutcome {
    let Some(pod) = &sight.pod else { return look_without_pod(sight, subject) };
    let seen = look_at_pod(pod, sight, subject);
    match seen {
        // One try of several, and there are no more when its Job is suspended, which we delete
        // then.
        SightOutcome::Over { learned, gone }
            if subject.tries_again
                && sight.job.as_ref().is_some_and(|job| is_stopped_short(job, pod)) =>
        {
            let lost = learned.lost.clone().or_else(|| {
                Some("somebody suspended its Job, which makes no more tries".to_owned())
            });
            SightOutcome::Over { learned: Box::new(OutcomeEvidence { lost, ..*learned }), gone }
        }
        SightOutcome::Over { .. } if subject.tries_again && !sight.is_job_over() => {
            SightOutcome::Waiting(None)
        }
        // What ran before the last Pod, which did not, is what there is to tell.
        SightOutcome::Over { .. }
            if subject.tries_again
                && subject.started
                && tries::never_ran(pod, sight, subject.container) =>
        {
            match tries::last_run(sight, subject.container)
                .and_then(|last| Some((last, tries::end_of_run(last, subject.container)?)))
            {
                Some((last, ended)) => look_at_end(last, sight, ended, subject),
                None => lost(
                    "its last Pod did not run, and how its tries before that ended nobody saw",
                    true,
                ),
            }
        }
        seen => seen,
    }
}

/// Whether somebody suspended a Job before it was over.
fn is_stopped_short(job: &Job, pod: &Pod) -> bool {
    !is_over(job) && is_suspended_again(job, Some(pod))
}

fn look_without_pod(sight: &Sight, subject: SightSubject<'_>) -> SightOutcome {
    let had_pod = subject.started || sight.job.as_ref().is_some_and(had_pods);
    if sight.job_gone {
        return match (subject.deleted, had_pod) {
            (true, false) => never("it was ended before a Pod of it started".to_owned(), true),
            (true, true) => lost("its Job was deleted before a Pod of it was seen to start", false),
            (false, _) => {
                let why = "its Job was deleted, and nobody saw a Pod of it".to_owned();
                let taken = Some(Taken { why: why.clone(), at: None });
                SightOutcome::Over {
                    learned: Box::new(OutcomeEvidence {
                        lost: Some(why),
                        taken,
                        ..OutcomeEvidence::default()
                    }),
                    gone: false,
                }
            }
        };
    }
    match sight.job.as_ref().and_then(|job| Some((job, end_of(job)?))) {
        Some((_, why)) if !had_pod => never(why, true),
        _ => SightOutcome::Waiting(None),
    }
}

fn look_at_pod(pod: &Pod, sight: &Sight, subject: SightSubject<'_>) -> SightOutcome {
    let empty = PodStatus::default();
    let status = pod.status.as_ref().unwrap_or(&empty);
    let main =
        status.container_statuses.iter().flatten().find(|status| status.name == subject.container);
    if let Some(why) = main.filter(|_| subject.deleted && !subject.started).and_then(never_made) {
        return never(why, true);
    }
    let is_cut = tries::is_cut_by_its_job(pod, sight);
    let end = |main| if is_cut { tries::whole_end(pod, main) } else { ended(main) };
    if let Some(ended) = main.and_then(|main| end(main).or_else(|| last_end(main, sight, subject)))
    {
        return look_at_end(pod, sight, ended, subject);
    }
    if is_cut && main.is_some_and(|main| ended(main).is_some()) {
        return lost(
            "its Job ended it after its last try, and how its last whole try ended nobody saw",
            true,
        );
    }
    let runs = main.is_some_and(|main| {
        main.started == Some(true) || state(main).is_some_and(|state| state.running.is_some())
    });
    if status.phase.as_deref() == Some("Failed") {
        return look_at_failure(
            pod,
            sight,
            main,
            SightSubject { started: subject.started || runs, ..subject },
        );
    }
    if sight.pod_gone {
        let what =
            if sight.job_gone { "its Job and its Pod were deleted" } else { "its Pod was deleted" };
        if !sight.pod_missed && !subject.started && !runs && !had_node(pod) {
            let by_deadline = sight.job.as_ref().and_then(|job| ended_by_deadline(job, pod));
            return never(
                by_deadline.unwrap_or_else(|| format!("{what} before it had a node")),
                true,
            );
        }
        let taken = taken(pod, sight, subject);
        let what = disruption(status).unwrap_or_else(|| what.to_owned());
        let why = format!(
            "{what}, and its node did not say what became of its command, which may still run \
             there"
        );
        let taken = taken.map(|taken| Taken { why: why.clone(), ..taken });
        return SightOutcome::Over {
            learned: Box::new(OutcomeEvidence {
                lost: Some(why),
                taken,
                ..OutcomeEvidence::default()
            }),
            gone: false,
        };
    }
    // The wrapper may be heard before its node has said that it runs.
    if runs || (subject.started && !subject.tries_again && !subject.deleted) {
        let since =
            main.and_then(state).and_then(|state| state.running.as_ref()?.started_at.as_ref());
        return SightOutcome::Running { since: since.map(time) };
    }
    SightOutcome::Waiting(waits_for(pod, status, main).or_else(|| waits_for_init(pod)))
}

/// Whether a node was chosen for a Pod: from then on its status is behind what happens there.
pub(super) fn had_node(pod: &Pod) -> bool {
    let status = pod.status.as_ref();
    let is_bound = |status: &PodStatus| {
        let was_chosen = |condition: &PodCondition| {
            condition.type_ == "PodScheduled" && condition.status == "True"
        };
        let by_node = status.host_ip.is_some()
            || status.start_time.is_some()
            || status.container_statuses.iter().flatten().count() > 0;
        by_node || status.conditions.iter().flatten().any(was_chosen)
    };
    pod.spec
        .as_ref()
        .is_some_and(|spec| spec.node_name.as_ref().is_some_and(|name| !name.is_empty()))
        || status.is_some_and(is_bound)
}

/// A Pod that failed although its command's container did not end: refused by its node, evicted
/// before anything started, or called so by somebody who does not hear of its node any more.
fn look_at_failure(
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
fn is_unmade(status: &PodStatus, main: Option<&ContainerStatus>) -> bool {
    let waits = main.is_some_and(|main| {
        !was_made(main) && state(main).is_some_and(|state| state.waiting.is_some())
    });
    waits && (disruption(status).is_none() || failed_init(status).is_some())
}

/// Whether a node refused a Pod, so that nothing of it was ever made there. Source: `rejectPod` of
/// the kubelet, and the reasons of its admission handlers in releases that did not yet say so in
/// the message.
fn is_refused(status: &PodStatus) -> bool {
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

/// The container has ended: by itself, or not.
fn look_at_end(
    pod: &Pod,
    sight: &Sight,
    ended: &ContainerStateTerminated,
    subject: SightSubject<'_>,
) -> SightOutcome {
    let reason = ended.reason.as_deref().unwrap_or_default();
    let said = ended.message.as_deref().unwrap_or_default();
    if cannot_start(ended) && !subject.started {
        let why = node_words(
            pod,
            subject.container,
            Some(reason),
            Some(said),
            "its container cannot be started",
        );
        return never(why, false);
    }
    let signed =
        subject.signer.and_then(|(job, token)| evidence::in_signed_message(said, job, token));
    let message = match signed {
        None if !subject.needs_signature => evidence::in_message(said)
            .map(|report| Box::new(Report { first_process: false, ..*report })),
        signed => signed,
    };
    let exit = Exit {
        code: ended.exit_code,
        oom_killed: reason == "OOMKilled",
        started_at: ended.started_at.as_ref().map(time),
        ended_at: ended.finished_at.as_ref().map(time),
    };
    // A code that nobody could read is none. Source: the kubelet's word, and containerd's for what
    // ended while it was not there.
    let lost = match reason {
        "ContainerStatusUnknown" => Some(words(Some(reason), Some(said), "its end was not seen")),
        "Unknown" => Some(
            "its node did not see its end: it lost power, say, or its container runtime was \
             restarted"
                .to_owned(),
        ),
        _ => None,
    };
    let exit = Some(exit).filter(|_| lost.is_none());
    let taken = taken(pod, sight, subject);
    SightOutcome::Over {
        learned: Box::new(OutcomeEvidence {
            message,
            exit,
            lost,
            taken,
            ..OutcomeEvidence::default()
        }),
        gone: true,
    }
}

fn never(why: String, surroundings: bool) -> SightOutcome {
    SightOutcome::Over {
        learned: Box::new(OutcomeEvidence {
            never: Some(Never { why, surroundings }),
            ..OutcomeEvidence::default()
        }),
        gone: true,
    }
}

fn lost(why: &str, gone: bool) -> SightOutcome {
    SightOutcome::Over {
        learned: Box::new(OutcomeEvidence {
            lost: Some(why.to_owned()),
            ..OutcomeEvidence::default()
        }),
        gone,
    }
}

pub(super) fn time(time: &k8s_openapi::apimachinery::pkg::apis::meta::v1::Time) -> Timestamp {
    Timestamp::from_millis(time.0.as_millisecond())
}

#[cfg(test)]
mod tests;
