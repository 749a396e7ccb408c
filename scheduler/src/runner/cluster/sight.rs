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
use k8s_openapi::api::core::v1::{ContainerStateTerminated, Pod, PodCondition, PodStatus};
use schema::id::JobId;
use schema::report::Report;
use schema::time::Timestamp;

use super::blockers::StartBlocker;
use crate::runner::evidence::{self, Exit, Never, NeverCause, OutcomeEvidence, Taken};

mod asked;
mod container;
pub(super) mod counts;
mod failed;
mod init;
mod job_end;
mod secretive;
mod seen;
mod taken;
pub(super) mod tries;
mod words;

pub(super) use asked::{asked_to_end, by_another_clock, ended_when_asked};
pub(super) use init::{init_that_began, init_that_ran};
pub(super) use job_end::{decided_by_job, is_failing, is_over, is_suspended_again};
pub(super) use secretive::event_words;
pub(super) use seen::{Sight, is_pod_over};
pub(super) use taken::taken;

use container::{cannot_start, ended, last_end, never_made, runs, state};
use counts::had_pods;
use failed::look_at_failure;
use init::waits_for_init;
use job_end::{end_of, ended_by_deadline};
use secretive::node_words;
use words::{disruption, waits_for, words};

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
            never: Some(Never { why, cause: NeverCause::of(surroundings) }),
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
