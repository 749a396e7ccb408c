//! Why and since when the cluster ends a Pod, without us asking for that. Pure. Called by `sight`
//! and the job's task.

use k8s_openapi::api::core::v1::Pod;

use super::asked::{asked_to_end, before_it_was_seen_to_run_on, by_another_clock};
use super::job_end::{ended_by_deadline, is_suspended_again};
use super::words::{disruption, is_disrupted, words};
use super::{Sight, SightSubject, runs, time, tries};
use crate::runner::evidence::Taken;

/// Why and since when the cluster ends a Pod, which we did not ask for.
pub(in super::super) fn taken(
    pod: &Pod,
    sight: &Sight,
    subject: SightSubject<'_>,
) -> Option<Taken> {
    let status = pod.status.as_ref();
    let by_cluster = status.and_then(|status| {
        let at = status.conditions.iter().flatten().find(|condition| is_disrupted(condition));
        let at = at
            .and_then(|condition| condition.last_transition_time.as_ref())
            .map(time)
            .map(by_another_clock);
        disruption(status).map(|why| Taken { why, at })
    });
    let deleted = || {
        let at = Some(by_another_clock(
            asked_to_end(pod)
                .filter(|_| !subject.ended_by_us && !tries::is_cut_by_its_job(pod, sight))?,
        ));
        let job = sight.job.as_ref();
        let why = match job.and_then(|job| ended_by_deadline(job, pod)) {
            Some(why) => why,
            None if job.is_some_and(|job| is_suspended_again(job, Some(pod))) => {
                "somebody suspended its Job, which ends what runs".to_owned()
            }
            None if sight.job_gone => "its Job was deleted while it ran".to_owned(),
            None => "its Pod was deleted while it ran".to_owned(),
        };
        Some(Taken { why, at })
    };
    // One may follow the other: the first in time is what ended it, in the words of the most
    // special.
    let all = [by_cluster, own_deadline(pod), deleted()].into_iter().flatten();
    let first = all.reduce(|first, other| Taken {
        at: first.at.zip(other.at).map(|(one, other)| one.min(other)),
        ..first
    })?;
    let ran_on = sight
        .outlived
        .iter()
        .any(|(of, container)| *of == pod.metadata.uid && container == subject.container);
    Some(if ran_on {
        Taken { at: first.at.map(before_it_was_seen_to_run_on), ..first }
    } else {
        first
    })
}

/// Containers that run in a Pod that was asked to end.
pub(super) fn run_although_asked(pod: &Pod) -> impl Iterator<Item = &str> {
    let asked = pod.metadata.deletion_timestamp.as_ref().and(pod.status.as_ref());
    let all = asked.into_iter().flat_map(|status| status.container_statuses.iter().flatten());
    all.filter(|container| runs(container)).map(|container| container.name.as_str())
}

/// That a Pod has run past the deadline of its own, which its Job's file says.
fn own_deadline(pod: &Pod) -> Option<Taken> {
    let status = pod
        .status
        .as_ref()
        .filter(|status| status.reason.as_deref() == Some("DeadlineExceeded"))?;
    let limit_ms = pod
        .spec
        .as_ref()
        .and_then(|spec| spec.active_deadline_seconds)
        .map(|seconds| seconds.saturating_mul(1000));
    let at = status
        .start_time
        .as_ref()
        .zip(limit_ms)
        .map(|(start, limit_ms)| time(start).plus_ms(limit_ms));
    Some(Taken {
        why: format!(
            "its Pod ran past its own deadline: {}",
            words(status.reason.as_deref(), status.message.as_deref(), "")
        ),
        at,
    })
}
