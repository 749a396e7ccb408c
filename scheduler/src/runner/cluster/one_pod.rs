//! What keeps a job to one Pod although somebody in the cluster suspends its Job and resumes it, or
//! takes its Pod away from it; and how a job ends whose Job made a second one all the same. Called
//! by the job's task.
//!
//! What always holds: a Job that was let go and is seen suspended is deleted while its Pod still
//! ends, so that nobody can resume it; a Job with one try of which a second Pod was seen never ends
//! as a success, and is known to be gone only when every Pod that was seen of it is over.

use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::course::Course;
use super::follow::{AWAY_WITHIN, BEHIND_WITHIN, JobFollower, NODE_WITHIN};
use super::job::DEFAULT_GRACE_S;
use super::over::taken_unseen;
use super::sight::{Sight, had_node, is_failing, is_over, is_pod_over, is_suspended_again};
use super::stop::RemainingPods;
use crate::delivery::Holds;
use crate::runner::evidence::OutcomeEvidence;

/// Longest grace of a Pod that is waited for, a century: no clock adds up whatever a Job's file may
/// say.
const GRACE_LIMIT: Duration = Duration::from_secs(100 * 365 * 24 * 3600);

impl JobFollower {
    /// Whether a second Pod was seen of a Job with one try. Which was the first is noted, so that
    /// it is known after a restart, whether or not it is still there.
    pub(super) async fn has_second_pod(&mut self, sight: &Sight) -> bool {
        if self.record.tries_again {
            return false;
        }
        let pods = || sight.older.iter().chain(&sight.pod);
        if self.record.pod.is_none() {
            self.record.pod = pods()
                .min_by_key(|pod| pod.creation_timestamp().map(|at| at.0))
                .and_then(ResourceExt::uid);
            if self.record.pod.is_some() {
                self.note_record("the Pod of a job").await;
            }
        }
        pods().any(|pod| pod.uid().is_some() && pod.uid() != self.record.pod)
    }

    /// Lets its Job make no other Pod once the one that there is was asked to end. One that
    /// somebody suspended, or scaled to nothing, is deleted: it could be resumed while its Pod
    /// still ends.
    pub(super) async fn close(&self, course: &mut Course, sight: &Sight) {
        let Some(job) =
            sight.job.as_ref().filter(|job| !sight.job_gone && !course.deleted && !is_over(job))
        else {
            return;
        };
        let had_pod = sight.pod.is_some() || course.started;
        if had_pod && is_suspended_again(job, sight.pod.as_ref()) {
            course.is_removed = course.is_removed || self.delete().await;
            return;
        }
        // One that fails makes no other, and keeps its words.
        let is_ending = sight
            .pod
            .as_ref()
            .is_some_and(|pod| pod.metadata.deletion_timestamp.is_some() && !is_failing(job, pod));
        if is_ending
            && !self.record.tries_again
            && !self.subject(course, sight).ended_by_us
            && !std::mem::replace(&mut course.is_closed, true)
        {
            self.end_pods().await;
        }
    }

    /// Ends a job whose Job made a second Pod, and waits for the end of all of them as long as they
    /// may take.
    pub(super) async fn end_both(
        &self,
        course: &mut Course,
        stops: &mut mpsc::Receiver<()>,
    ) -> (OutcomeEvidence, bool) {
        // Either wrapper reports as the job's own.
        self.inner.delivery.hold(self.job, Holds::All);
        tracing::warn!(
            job = %self.job,
            "the Job of a job with one try made a second Pod; both are ended"
        );
        let mut sight = self.view.sight.borrow().clone();
        let longest = sight
            .older
            .iter()
            .chain(&sight.pod)
            .map(own_grace)
            .max()
            .unwrap_or_else(|| grace(DEFAULT_GRACE_S.into()));
        let until = Instant::now() + longest + NODE_WITHIN;
        let gone = loop {
            // Once its Job is gone those that it does not own any more are asked to end, too.
            self.delete().await;
            sight = self.view.sight.borrow().clone();
            if self.are_all_over(&sight).await {
                break true;
            }
            if Instant::now() >= until {
                break false;
            }
            tokio::select! {
                () = tokio::time::sleep(BEHIND_WITHIN) => {}
                Some(()) = stops.recv() => self.stop(course, true).await,
            }
        };
        let mut names: Vec<_> =
            sight.older.iter().chain(&sight.pod).map(ResourceExt::name_any).collect();
        names.sort_unstable();
        let why = format!(
            "its Job made a second Pod (seen: {}), so its command ran twice, or may have, maybe \
             both at once; somebody resumed the Job after it was suspended, or took a Pod away \
             from it",
            names.join(", ")
        );
        // Of a first one that went while nobody watched nobody knows that it has ended.
        let is_first_seen =
            sight.older.iter().chain(&sight.pod).any(|pod| pod.uid() == self.record.pod);
        self.over(
            taken_unseen(&why),
            gone && (is_first_seen || self.is_gone_unseen()),
            course,
            &sight,
        )
        .await
    }

    /// Whether every Pod that was seen is over, and none is there that is not.
    async fn are_all_over(&self, sight: &Sight) -> bool {
        let Ok(there) = self.pods_there(AWAY_WITHIN).await else { return false };
        let is_there = |pod: &Pod| there.own.iter().any(|other| other.uid() == pod.uid());
        // One that went without its node's word may still run there.
        let is_over = |pod: &Pod| is_pod_over(pod) || !had_node(pod) || is_there(pod);
        let seen_over = sight.older.iter().chain(&sight.pod).all(is_over);
        seen_over
            && there.own.iter().all(is_pod_over)
            && !matches!(there.left(), RemainingPods::Stray(_))
    }
}

fn own_grace(pod: &Pod) -> Duration {
    let seconds = pod.spec.as_ref().and_then(|spec| spec.termination_grace_period_seconds);
    grace(seconds.unwrap_or(DEFAULT_GRACE_S.into()))
}

/// A grace in seconds as one that is waited for.
pub(super) fn grace(seconds: i64) -> Duration {
    Duration::from_secs(seconds.max(0).unsigned_abs()).min(GRACE_LIMIT)
}
