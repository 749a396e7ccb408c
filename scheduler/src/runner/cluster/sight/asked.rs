//! When a Pod was asked to end, and what its books have of it no more. Pure. Called by `sight`,
//! which keeps what was seen.
//!
//! The node deletes a Pod once more when its containers have ended, without any grace: from then on
//! the books have that time, and its container may have ended a second before it although it was
//! asked to long before. The node may forget, too, how an earlier run of a container ended.

use k8s_openapi::api::core::v1::Pod;
use schema::time::Timestamp;

use super::super::job::DEFAULT_GRACE_S;
use super::time;

/// How far the clock of a node, which tells when a container ended, may be behind that of the
/// cluster's books, which tell when its Pod was asked to end.
const CLOCKS_APART_MS: i64 = 10_000;

/// A time of the books for one that is compared with a node's: what seems to have ended shortly
/// before may have ended after it.
pub(in super::super) fn by_another_clock(at: Timestamp) -> Timestamp {
    at.plus_ms(-CLOCKS_APART_MS)
}

/// How far a node that tells ends at once may be behind in all: what was said to run in a Pod that
/// had been asked to end, and is told later to have ended earlier than this before, ended while its
/// node did not answer.
const NODE_AWAY_MS: i64 = 60_000;

/// The same for what was seen to run after that time.
pub(super) fn before_it_was_seen_to_run_on(at: Timestamp) -> Timestamp {
    at.plus_ms(-NODE_AWAY_MS)
}

/// When somebody asked a Pod to end, at the earliest. The books have the time at which its grace is
/// over; without any grace they may have that at which its node removed it, a moment after its
/// containers had ended, and it was asked up to its own grace before.
pub(in super::super) fn asked_to_end(pod: &Pod) -> Option<Timestamp> {
    let over = pod.metadata.deletion_timestamp.as_ref().map(time)?;
    let own = || {
        pod.spec
            .as_ref()
            .and_then(|spec| spec.termination_grace_period_seconds)
            .unwrap_or(DEFAULT_GRACE_S.into())
    };
    let grace = pod
        .metadata
        .deletion_grace_period_seconds
        .filter(|seconds| *seconds > 0)
        .unwrap_or_else(own);
    Some(over.plus_ms(grace.max(0).saturating_mul(1000).saturating_neg()))
}

/// Whether what ended then, by its node's clock, may have ended because its Pod was asked to.
pub(in super::super) fn ended_when_asked(pod: &Pod, ended: Timestamp) -> bool {
    asked_to_end(pod).is_some_and(|asked| ended >= by_another_clock(asked))
}

/// The same at the latest.
pub(super) fn asked_by(pod: &Pod) -> Option<Timestamp> {
    let over = pod.metadata.deletion_timestamp.as_ref().map(time)?;
    let grace_ms =
        pod.metadata.deletion_grace_period_seconds.unwrap_or_default().max(0).saturating_mul(1000);
    Some(over.plus_ms(grace_ms.saturating_neg()))
}

/// A Pod as it is now, with what its books had before and have no more: when it was first asked to
/// end, and how a run of a container ended that was the last one then.
pub(super) fn with_what_was_seen(now: &Pod, before: &Pod) -> Pod {
    let mut pod = now.clone();
    if asked_by(before).zip(asked_by(now)).is_some_and(|(before, now)| before < now) {
        pod.metadata.deletion_timestamp.clone_from(&before.metadata.deletion_timestamp);
        pod.metadata.deletion_grace_period_seconds = before.metadata.deletion_grace_period_seconds;
    }
    let old = before.status.as_ref().and_then(|status| status.container_statuses.as_ref());
    for container in
        pod.status.iter_mut().filter_map(|status| status.container_statuses.as_mut()).flatten()
    {
        let was = old
            .into_iter()
            .flatten()
            .find(|was| was.name == container.name && was.restart_count == container.restart_count);
        let has_last =
            container.last_state.as_ref().is_some_and(|state| state.terminated.is_some());
        if let Some(was) = was.filter(|_| !has_last) {
            container.last_state.clone_from(&was.last_state);
        }
    }
    pod
}
