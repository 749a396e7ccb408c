//! What a Job says of itself: that it is over, has failed, or was suspended again.

use k8s_openapi::api::batch::v1::{Job, JobCondition};
use k8s_openapi::api::core::v1::Pod;

use super::super::changed;
use super::super::let_go::LET_GO_MARK;
use super::super::stop::END_NOW_S;
use super::asked::asked_by;
use super::words::words;
use super::{Sight, time};
use crate::runner::evidence::{Decides, JobEnd};

/// What a Job with several tries says of them.
pub(in crate::runner::cluster) fn decided_by_job(sight: &Sight) -> Decides {
    let said = sight.job.as_ref().and_then(|job| Some((job, end_of(job)?)));
    Decides::Job(said.map(|(job, why)| JobEnd { is_complete: failure(job).is_none(), why }))
}

/// Whether a Job is over.
pub(in crate::runner::cluster) fn is_over(job: &Job) -> bool {
    end_of(job).is_some()
}

/// Why a Job is over, when it is.
pub(super) fn end_of(job: &Job) -> Option<String> {
    let conditions = job.status.as_ref()?.conditions.as_ref()?;
    let end = conditions.iter().find(|condition| {
        matches!(condition.type_.as_str(), "Complete" | "Failed") && condition.status == "True"
    })?;
    Some(words(end.reason.as_deref(), end.message.as_deref(), "its Job is over"))
}

/// That a Job has failed, or is about to when its Pods have ended.
pub(super) fn failure(job: &Job) -> Option<&JobCondition> {
    let conditions = job.status.as_ref()?.conditions.as_ref()?;
    conditions.iter().find(|condition| {
        matches!(condition.type_.as_str(), "Failed" | "FailureTarget") && condition.status == "True"
    })
}

/// Whether a Job has failed, or ends this Pod because its own deadline has passed, which it says
/// only later.
pub(in crate::runner::cluster) fn is_failing(job: &Job, pod: &Pod) -> bool {
    failure(job).is_some() || is_past_deadline(job, pod)
}

fn deadline_s(job: &Job) -> Option<i64> {
    job.spec.as_ref().and_then(|spec| spec.active_deadline_seconds)
}

/// Whether a Job's own deadline had passed when this Pod was asked to end.
fn is_past_deadline(job: &Job, pod: &Pod) -> bool {
    let started_at = job.status.as_ref().and_then(|status| status.start_time.as_ref()).map(time);
    let ends_at = started_at
        .zip(deadline_s(job))
        .map(|(at, limit_s)| at.plus_ms(limit_s.saturating_mul(1000)));
    ends_at.zip(asked_by(pod)).is_some_and(|(ends_at, asked)| asked >= ends_at)
}

/// That a Job ended this Pod because the deadline of its file has passed, in its words, or in ours
/// before it says so.
pub(super) fn ended_by_deadline(job: &Job, pod: &Pod) -> Option<String> {
    // A deadline of now is how we keep a Job from making another Pod.
    let limit_s = deadline_s(job).filter(|limit_s| *limit_s != i64::from(END_NOW_S));
    // That too many tries have failed follows from the deletion.
    let said = failure(job).filter(|failure| failure.reason.as_deref() == Some("DeadlineExceeded"));
    let why = match (said, limit_s) {
        (Some(failure), _) if limit_s.is_some() || deadline_s(job).is_none() => {
            failure_words(failure)
        }
        (None, Some(limit_s)) if is_past_deadline(job, pod) => {
            format!(
                "DeadlineExceeded: it was active longer than its `activeDeadlineSeconds` of \
                 {limit_s}"
            )
        }
        _ => return None,
    };
    Some(format!("its Job ended it: {why}"))
}

fn failure_words(failure: &JobCondition) -> String {
    words(failure.reason.as_deref(), failure.message.as_deref(), "it failed")
}

/// Whether somebody has suspended a Job since it was let go, as far as its books say: they may be
/// older than its Pod.
pub(in crate::runner::cluster) fn is_suspended_again(job: &Job, pod: Option<&Pod>) -> bool {
    let is_suspended = changed::is_paused(job);
    let was_let_go =
        job.metadata.annotations.as_ref().is_some_and(|all| all.contains_key(LET_GO_MARK));
    let made_at = pod.and_then(|pod| pod.metadata.creation_timestamp.as_ref()).map(time);
    let conditions = job.status.as_ref().and_then(|status| status.conditions.as_ref());
    let since = conditions
        .into_iter()
        .flatten()
        .find(|condition| condition.type_ == "Suspended" && condition.status == "True");
    let since = since.and_then(|condition| condition.last_transition_time.as_ref()).map(time);
    is_suspended && (was_let_go || made_at.zip(since).is_some_and(|(made, since)| since > made))
}
