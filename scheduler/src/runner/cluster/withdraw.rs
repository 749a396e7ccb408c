//! A job that was let go and has not begun: its Pod waits for a node, an image, a quota, for
//! minutes perhaps, and meanwhile a gate shuts. Called by the job's rounds.
//!
//! What always holds: only what has not begun is withdrawn, as far as the cluster knows at that
//! moment. A node needs a moment to say that a command runs; one that began in it is told as
//! stopped, never as one that did not run.

use std::time::Duration;

use futures::FutureExt as _;
use k8s_openapi::api::batch::v1::Job;
use kube::ResourceExt;
use kube::api::{DeleteParams, Patch};
use serde_json::json;
use tokio::time::Instant;

use super::ask::{LOOK_WITHIN, RequestRefusal, within};
use super::blockers::StartBlocker;
use super::course::Course;
use super::follow::{JobFollower, as_ours};
use super::sight::init_that_began;
use super::sight::tries::{PodAttempts, tried};
use super::sight::{Sight, SightOutcome, look};
use super::unstarted;
use crate::runner::LeaveRefusal;
use crate::runner::evidence::OutcomeEvidence;

/// How often it is asked whether what has not begun still may: a Pod that nothing keeps waiting
/// begins within a second or two.
pub(super) const LEAVE_EVERY: Duration = Duration::from_secs(3);

/// Annotation of a Job that goes on after a request to delete it was not answered: when that was
/// seen. It is there to be another version of the Job.
const KEPT_MARK: &str = "pvn.dev/kept";

/// After so many answers in a row that the Job is not as it was looked at it is deleted however it
/// is: somebody changes it all the time, or it has a finalizer that the API server changes as it
/// deletes it, which it takes for such a change.
const CONFLICTS_LIMIT: u8 = 2;

/// When it is looked at again where it changed meanwhile.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// How long an answer is waited for: neither a database that hangs nor a cluster keeps a job from
/// being followed and stopped.
const ANSWER_WITHIN: Duration = Duration::from_secs(5);

/// How far a job is with being taken away before it begins.
#[derive(Debug, Default)]
pub(super) struct Withdrawal {
    /// Why it may not begin any more, once its Job was to be deleted for that.
    why: Option<String>,
    /// That it is not deleted yet, and why.
    blocker: Option<StartBlocker>,
    /// Whether a request by which it was to be withdrawn may be carried out that nobody answered.
    may_come_late: bool,
    /// How often in a row it was not as it was looked at.
    conflicts: u8,
    /// Whether a request that deletes it before it begins may be carried out that nobody answered,
    /// whatever it was made for.
    may_be_deleted: bool,
}

impl Withdrawal {
    /// What keeps its Job there.
    pub(super) fn blocker(&self) -> Option<&StartBlocker> {
        self.blocker.as_ref()
    }

    /// It is not to be taken away any more: nobody is told that it is, unless it still may be.
    fn goes_on(&mut self) {
        (self.blocker, self.conflicts) = (None, 0);
        self.why.take_if(|_| !self.may_come_late);
    }
}

impl JobFollower {
    /// Whether it is an apply that nobody has seen begin. What only looks changes nothing, and of
    /// one of which nobody knows whether it was let go this is found out first.
    pub(super) fn may_be_withdrawn(&self, course: &Course) -> bool {
        self.record.is_apply && !course.started && !course.deleted && !self.is_unsure
    }

    /// Whether a deletion may still be carried out by which it was to be withdrawn.
    pub(super) fn may_be_ended_late(course: &Course) -> bool {
        course.withdrawal.may_come_late && !course.deleted && course.asked == 0
    }

    /// Takes it away if it may not begin any more.
    pub(super) async fn mind_leave(&self, course: &mut Course) {
        course.leave_at = Instant::now() + LEAVE_EVERY;
        if course.started {
            return self.let_be(course).await;
        }
        let asked = tokio::time::timeout(ANSWER_WITHIN, self.inner.has_leave(self.job)).await;
        let why = match asked {
            Ok(Err(LeaveRefusal { why, is_over: false })) => why,
            // Its report came before it was seen to run: its Pod ends by itself.
            Ok(Ok(()) | Err(LeaveRefusal { is_over: true, .. })) => {
                return self.let_be(course).await;
            }
            Err(_) => return,
        };
        // A database that is another's by now says nothing of our jobs.
        if self.inner.is_ours().await.is_err() {
            return;
        }
        let done = match self.not_begun(course).await {
            Ok(None) => return self.let_be(course).await,
            // Its wrapper was heard of meanwhile.
            Ok(Some(_)) if self.inner.delivery.was_heard(self.job) => {
                course.started = true;
                return self.let_be(course).await;
            }
            Ok(Some(seen)) => {
                tracing::info!(
                    job = %self.job, why,
                    "a job that was let go and has not begun is withdrawn"
                );
                let as_seen = Some(seen).filter(|_| course.withdrawal.conflicts < CONFLICTS_LIMIT);
                let done = self.delete_what_has_not_begun(course, as_seen).await;
                course.withdrawal.may_come_late |= matches!(done, Err(RequestRefusal::Doubtful(_)));
                done
            }
            Err(refused) => Err(refused),
        };
        match done {
            // It changed since it was looked at: it may have begun.
            Err(RequestRefusal::Changed(_)) if course.withdrawal.conflicts < CONFLICTS_LIMIT => {
                course.withdrawal.conflicts += 1;
                course.leave_at = Instant::now() + LOOK_AGAIN;
            }
            done => {
                let refused = done.err();
                course.withdrawal.blocker =
                    refused.map(|refused| StartBlocker::unwithdrawn(&why, &refused));
                course.withdrawal.why = Some(why);
            }
        }
    }

    /// It goes on. What may still be carried out of a withdrawal names a version that its Job has
    /// no more from now on.
    async fn let_be(&self, course: &mut Course) {
        course.withdrawal.goes_on();
        if !Self::may_be_ended_late(course) {
            return;
        }
        let jobs = self.jobs();
        let annotations = json!({KEPT_MARK: self.inner.clock.now().to_string()});
        let metadata = json!({"uid": self.record.uid, "annotations": annotations});
        let patch = Patch::Merge(json!({"metadata": metadata}));
        let params = as_ours();
        let what = "keeping its Job";
        let kept =
            self.ask(Duration::ZERO, what, || jobs.patch(&self.record.name, &params, &patch));
        match within(ANSWER_WITHIN, what, kept.boxed()).await {
            Ok(_) => course.withdrawal = Withdrawal::default(),
            Err(refused) => self.note_refusal(Err(refused)),
        }
    }

    /// Deletes its Job, by one request, which is made again where it was refused or is not answered
    /// soon: what begins meanwhile is to be seen. `as_seen`: only while the Job is of this version,
    /// however late that is carried out.
    ///
    /// # Errors
    /// Why it is not known to be deleted.
    pub(super) async fn delete_what_has_not_begun(
        &self,
        course: &mut Course,
        as_seen: Option<String>,
    ) -> Result<(), RequestRefusal> {
        let delete = self.try_to_delete(Duration::ZERO, as_seen).boxed();
        let done = within(ANSWER_WITHIN, "deleting its Job", delete).await;
        match &done {
            Ok(()) => {
                self.note_deletion(course);
                // Not left to the garbage collector, whose turn comes when it comes: what begins
                // after this is to be stopped.
                let params = DeleteParams::default();
                let pods = self.delete_its_pods(&params).boxed();
                self.note_refusal(within(ANSWER_WITHIN, "deleting its Pods", pods).await);
            }
            Err(RequestRefusal::Changed(_)) => {}
            Err(_) => course.withdrawal.may_be_deleted = true,
        }
        done
    }

    /// One that nobody answered was carried out.
    pub(super) fn see_deletion(&self, course: &mut Course, sight: &Sight) {
        let is_going = |job: &Job| job.metadata.deletion_timestamp.is_some();
        let is_seen = sight.job_gone || sight.job.as_ref().is_some_and(is_going);
        if course.withdrawal.may_be_deleted && is_seen && !course.started {
            self.note_deletion(course);
        }
    }

    /// The version of its Job at which nothing of the user's own had begun; `None` where something
    /// had. What it does by then changes the Job soon. Where the cluster does not list its Pods,
    /// what their watch has shown counts.
    ///
    /// # Errors
    /// Why that is not known.
    async fn not_begun(&self, course: &mut Course) -> Result<Option<String>, RequestRefusal> {
        let jobs = self.jobs();
        let what = "looking for its Job";
        let found = self.ask(Duration::ZERO, what, || jobs.get(&self.record.name)).boxed();
        let found = within(LOOK_WITHIN, what, found).await;
        let listed = self.pods_there(Duration::ZERO).boxed();
        let listed = within(LOOK_WITHIN, "looking for its Pods", listed).await;
        let mut now = self.view.sight.borrow().clone();
        let pods = match listed {
            Ok(there) => there.own,
            Err(refused) if now.unwatched().is_some() => return Err(refused),
            Err(_) => Vec::new(),
        };
        pods.iter().for_each(|pod| now.see(pod));
        if let Some(pod) = &now.pod {
            course.started |= self.runs_unseen(pod).await?;
        }
        let waits = matches!(look(&now, self.subject(course, &now)), SightOutcome::Waiting(_));
        let is_untried = tried(&now, &self.record.container) == PodAttempts::Never;
        let has_begun = course.started
            || !waits
            || !is_untried
            || now.pod.iter().chain(&pods).any(|pod| init_that_began(pod).is_some());
        let job = found.or_else(|refused| now.job.clone().ok_or(refused))?;
        Ok(job.resource_version().filter(|_| !has_begun && job.uid() == self.record.uid))
    }
}

impl Course {
    /// What is known of one that was withdrawn, in the words of why.
    pub(super) fn with_its_withdrawal(&self, learned: &mut OutcomeEvidence, sight: &Sight) {
        let Some(why) = self.withdrawal.why.as_ref().filter(|_| !self.gave_up) else { return };
        if !self.deleted {
            if let Some(taken) = learned.taken.as_mut().filter(|_| self.withdrawal.may_come_late) {
                taken.why = format!(
                    "{}: it was to be withdrawn ({why}), and the cluster carried that out late",
                    taken.why
                );
            }
            return;
        }
        if let Some(never) = &mut learned.never {
            *never = match sight.pod.as_ref().and_then(init_that_began) {
                Some(name) => unstarted::never(format!(
                    "its init container `{name}` had begun when it was withdrawn ({why}), and may \
                     have done something"
                )),
                None => unstarted::taken_back(why.clone()),
            };
        }
        if let Some(taken) = &mut learned.taken {
            taken.why = format!(
                "it began in the moment in which it was withdrawn ({why}), and its Pod was deleted"
            );
        }
    }
}
