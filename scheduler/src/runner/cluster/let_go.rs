//! The last step before a command runs: its Job is there, suspended and noted, and is let go.
//! Called by the job's task at its beginning, after a restart, and whenever it is not known whether
//! an earlier try was done.
//!
//! What always holds: a Job is let go only with leave that was given right before
//! ([`super::leave`]); one that may not be let go is taken away, and is told as never started only
//! when it is known that nobody let it go: either no request to do so can be on its way, which is
//! noted before anything else is done, or the cluster deleted it as it was last seen, suspended.

use std::time::Duration;

use k8s_openapi::api::batch::v1::Job;
use kube::ResourceExt;
use kube::api::{DeleteParams, Patch, Preconditions};
use serde_json::json;
use tokio::time::Instant;

use super::ask::{Asking, RequestRefusal};
use super::begin::TIDY_WITHIN;
use super::blockers::StartBlocker;
use super::changed;
use super::follow::{AWAY_WITHIN, JobFollower, UNSEEN_WITHIN, as_ours};
use super::leave::May;
use super::over::{lost, taken_unseen};
use super::sight::counts::had_pods;
use super::stop::{RemainingPods, with_stray};
use super::unstarted::{later, told};
use crate::runner::evidence::{Never, OutcomeEvidence};

/// Annotation of a Job that was let go.
pub(super) const LET_GO_MARK: &str = "pvn.dev/let-go";

/// Longest time for which one of two applies that were made at once gives way: a few times what
/// it takes to make one.
const GIVE_WAY_FOR: Duration = Duration::from_secs(4);

/// What the cluster answers when an object is not any more as it was seen.
const CONFLICT: u16 = 409;
const NOT_FOUND: u16 = 404;

/// What became of a Job that is to be taken away before it runs.
enum Withdrawn {
    /// It is gone, and nobody let it go.
    Away,
    /// Somebody let it go.
    Late,
    /// The cluster does not say.
    Unanswered,
}

impl JobFollower {
    /// Lets the Job's Pod be made, once that is permitted. May be done twice.
    pub(super) async fn let_go(&mut self, deadline: Instant) {
        if self.record.held {
            return;
        }
        if let Err(never) = self.is_first(deadline).await {
            self.take_away(never).await;
            // Or both of two schedulers would come again at once, as often as they give way.
            return tokio::time::sleep(self.give_way_for()).await;
        }
        let jobs = self.jobs();
        // In one with the mark: whoever finds it suspended with the mark knows that somebody else
        // suspended it since.
        let metadata = json!({"uid": self.record.uid, "annotations": {LET_GO_MARK: "true"}});
        let patch = Patch::Merge(json!({"metadata": metadata, "spec": {"suspend": false}}));
        let params = as_ours();
        let may = May::AsDecided(&self.inner, self.job);
        let done = self
            .ask_until(deadline, may, "starting its Job", || {
                jobs.patch(&self.record.name, &params, &patch)
            })
            .await;
        let Err((refused, is_doubtful)) = done else { return };
        self.is_doubtful |= is_doubtful;
        match refused {
            RequestRefusal::Doubtful(why) => {
                tracing::warn!(
                    job = %self.job, why,
                    "nobody knows whether a Job was let go; the cluster is asked when it answers"
                );
                self.is_unsure = true;
            }
            refused => self.take_away(told(refused)).await,
        }
    }

    /// How long the end of one that gives way is held back: each job its own time, by its id, which
    /// is a digest.
    fn give_way_for(&self) -> Duration {
        let [first, second, ..] = *self.job.as_bytes();
        GIVE_WAY_FOR * u32::from(u16::from_le_bytes([first, second])) / (u32::from(u16::MAX) + 1)
    }

    /// Finds out whether a Job was let go, and lets it go if nobody did.
    pub(super) async fn resume(&mut self) {
        (self.is_unsure, self.unsure_why) = (false, None);
        let (jobs, job) = (self.jobs(), self.job);
        let found = {
            let told_at = Instant::now() + UNSEEN_WITHIN;
            let tell = |refused: &RequestRefusal| {
                if Instant::now() >= told_at && matches!(refused, RequestRefusal::Unauthorized(_)) {
                    self.teller.tell(Some(&StartBlocker::unseen(refused.why())));
                }
            };
            let (cluster, is_apply, deadline) =
                (&self.cluster, self.record.is_apply, Instant::now() + AWAY_WITHIN);
            let what = "looking for its Job";
            let asking = Asking {
                cluster,
                is_apply,
                deadline,
                what,
                may: May::Always,
                tell: &tell,
                gives_up_unreached: false,
            };
            let mut looked = std::pin::pin!(asking.until_answered(|| jobs.get(&self.record.name)));
            let found = tokio::select! {
                found = &mut looked => found,
                () = tokio::time::sleep_until(told_at) => {
                    self.teller.tell(Some(&StartBlocker::unseen("its cluster does not answer")));
                    looked.await
                }
            };
            found.map_err(|(refused, _)| refused)
        };
        match found {
            Ok(found) if found.uid() == self.record.uid => {
                let was_let_go =
                    found.annotations().contains_key(LET_GO_MARK) || self.record.started;
                if changed::is_paused(&found) && was_let_go {
                    self.end_paused(found).await;
                } else if is_suspended(&found) {
                    self.let_go_late().await;
                }
            }
            Ok(_) => self.known = Some((lost("another Job has taken the place of its own"), false)),
            Err(RequestRefusal::NotFound(_)) => match self.pods_there(AWAY_WITHIN).await {
                // It was deleted without them, and they run on; or they are about to end. They are
                // followed to their end.
                Ok(there) if !there.own.is_empty() => self.is_orphaned = true,
                there => {
                    let left = there.map_or(RemainingPods::Unanswered, |there| there.left());
                    self.known =
                        Some(self.unseen("its Job was deleted while nobody watched", left));
                }
            },
            Err(refused) => {
                tracing::warn!(
                    %job, why = refused.why(),
                    "a job on a cluster cannot be looked for; it is when the cluster answers"
                );
                self.is_unsure = true;
                self.unsure_why = Some(StartBlocker::unseen(refused.why()));
            }
        }
    }

    /// Deletes a Job that somebody suspended since it was let go: letting it go again would run it
    /// a second time, and so would whoever resumed it. A Pod that is still about to end is
    /// followed to its end.
    async fn end_paused(&mut self, found: Job) {
        let is_deleted = self.delete().await;
        match self.left().await {
            // It is deleted when its Pod is seen.
            RemainingPods::Own if !is_deleted => {}
            RemainingPods::Own => (self.is_orphaned, self.paused) = (true, Some(found)),
            left => {
                self.known = Some(self.unseen(
                    "somebody suspended its Job while nobody watched, which ends what ran",
                    left,
                ))
            }
        }
    }

    /// What is known of a job whose Pod may have gone while nobody watched.
    fn unseen(&self, why: &str, left: RemainingPods) -> (OutcomeEvidence, bool) {
        match left {
            RemainingPods::Nothing => (taken_unseen(why), self.is_gone_unseen()),
            RemainingPods::Stray(pod) => (with_stray(taken_unseen(why), &pod), false),
            RemainingPods::Own | RemainingPods::Unanswered => (taken_unseen(why), false),
        }
    }

    /// Lets go of a Job that was made in another life of the daemon, or a while ago, if there is
    /// time left for its start.
    async fn let_go_late(&mut self) {
        // Whoever tried before may have been heard late.
        self.is_doubtful = true;
        let left_ms = self.record.start_by.since_ms(self.inner.clock.now());
        if left_ms <= 0 && !self.record.held {
            return self
                .take_away(later("its time to start was over before it was let go".to_owned()))
                .await;
        }
        let left = std::time::Duration::from_millis(left_ms.unsigned_abs());
        self.let_go(Instant::now() + left).await;
    }

    /// Takes away a Job that is not let go.
    async fn take_away(&mut self, never: Never) {
        let uid = self.record.uid.take();
        if !self.is_doubtful {
            // From now on nobody lets it go, whatever becomes of this daemon.
            self.note_or_warn().await;
        }
        let taken = tokio::time::timeout(TIDY_WITHIN, self.delete_suspended(uid.as_deref()))
            .await
            .unwrap_or(Withdrawn::Unanswered);
        match taken {
            Withdrawn::Away => {}
            // It is taken away when the job is forgotten.
            Withdrawn::Unanswered if !self.is_doubtful => {}
            taken => {
                self.record.uid = uid;
                if !self.is_doubtful {
                    self.note_or_warn().await;
                }
                self.is_unsure = matches!(taken, Withdrawn::Unanswered);
                return;
            }
        }
        if self.is_doubtful {
            self.note_or_warn().await;
        }
        self.known =
            Some((OutcomeEvidence { never: Some(never), ..OutcomeEvidence::default() }, true));
    }

    async fn note_or_warn(&self) {
        if let Err(Never { why, .. }) = self.inner.note(self.job, &self.record).await {
            tracing::warn!(job = %self.job, why, "what became of a Job cannot be noted");
        }
    }

    /// Deletes the Job as long as nobody lets it go.
    async fn delete_suspended(&self, uid: Option<&str>) -> Withdrawn {
        let jobs = self.jobs();
        loop {
            let found = match self
                .ask(TIDY_WITHIN, "looking for its Job", || jobs.get(&self.record.name))
                .await
            {
                Ok(found) if found.metadata.uid.as_deref() == uid => found,
                // Who deleted it did so before it ran, or after: nobody knows when a request may
                // have let it go.
                Ok(_) | Err(RequestRefusal::NotFound(_)) => {
                    return if self.is_doubtful { Withdrawn::Late } else { Withdrawn::Away };
                }
                Err(_) => return Withdrawn::Unanswered,
            };
            if !is_suspended(&found)
                || found.annotations().contains_key(LET_GO_MARK)
                || had_pods(&found)
            {
                return Withdrawn::Late;
            }
            let as_seen =
                Preconditions { uid: found.uid(), resource_version: found.resource_version() };
            let params = DeleteParams::background().preconditions(as_seen);
            self.cluster.throttle.pass(self.record.is_apply).await;
            match jobs.delete(&self.record.name, &params).await {
                Ok(_) => return Withdrawn::Away,
                Err(kube::Error::Api(status)) if matches!(status.code, CONFLICT | NOT_FOUND) => {}
                Err(_) => return Withdrawn::Unanswered,
            }
        }
    }
}

pub(super) fn is_suspended(job: &Job) -> bool {
    job.spec.as_ref().is_some_and(|spec| spec.suspend == Some(true))
}
