//! A job that was let go and has not begun: its Pod waits for a node, an image, a quota, for
//! minutes perhaps, and meanwhile a gate shuts. Called by the job's rounds.
//!
//! What always holds: only what has not begun is withdrawn, as far as the cluster knows at that
//! moment. A node needs a moment to say that a command runs; one that began in it is told as
//! stopped, never as one that did not run.

use std::time::Duration;

use k8s_openapi::api::batch::v1::Job;
use tokio::time::Instant;

use super::ask::RequestRefusal;
use super::blockers::StartBlocker;
use super::course::Course;
use super::follow::JobFollower;
use super::sight::init_that_began;
use super::sight::tries::{PodAttempts, tried};
use super::sight::{Sight, SightOutcome, look};
use super::unstarted::taken_back;
use crate::runner::LeaveRefusal;
use crate::runner::evidence::OutcomeEvidence;

/// How often it is asked whether what has not begun still may: a Pod that nothing keeps waiting
/// begins within a second or two.
pub(super) const LEAVE_EVERY: Duration = Duration::from_secs(3);

/// How long an answer is waited for: neither a database that hangs nor a cluster keeps a job from
/// being followed and stopped.
const ANSWER_WITHIN: Duration = Duration::from_secs(5);

impl JobFollower {
    /// Whether it is an apply that nobody has seen begin. What only looks changes nothing, and of
    /// one of which nobody knows whether it was let go this is found out first.
    pub(super) fn may_be_withdrawn(&self, course: &Course) -> bool {
        self.record.is_apply && !course.started && !course.deleted && !self.is_unsure
    }

    /// Takes it away if it may not begin any more.
    pub(super) async fn mind_leave(&self, course: &mut Course, sight: &Sight) {
        course.leave_at = Instant::now() + LEAVE_EVERY;
        let asked = tokio::time::timeout(ANSWER_WITHIN, self.inner.has_leave(self.job)).await;
        let why = match asked {
            Ok(Err(LeaveRefusal { why, is_over: false })) => why,
            // Its report came before it was seen to run: its Pod ends by itself.
            Ok(Ok(()) | Err(LeaveRefusal { is_over: true, .. })) => {
                course.unwithdrawn = None;
                return;
            }
            Err(_) => return,
        };
        // A database that is another's by now says nothing of our jobs.
        if self.inner.is_ours().await.is_err() || self.has_begun(course, sight).await {
            return;
        }
        tracing::info!(job = %self.job, why, "a job that was let go and has not begun is withdrawn");
        let refused = self.delete_what_has_not_begun(course).await.err();
        course.unwithdrawn = refused.map(|refused| StartBlocker::unwithdrawn(&why, &refused));
        course.withdrawn = Some(why);
    }

    /// Deletes its Job, by one request, which is made again where it was refused or is not answered
    /// soon: what begins meanwhile is to be seen.
    ///
    /// # Errors
    /// Why it is not known to be deleted.
    pub(super) async fn delete_what_has_not_begun(
        &self,
        course: &mut Course,
    ) -> Result<(), RequestRefusal> {
        let asked = tokio::time::timeout(ANSWER_WITHIN, self.try_to_delete(Duration::ZERO)).await;
        let done = asked.unwrap_or_else(|_| {
            let why = format!("the cluster has not answered for {} s", ANSWER_WITHIN.as_secs());
            Err(RequestRefusal::Doubtful(format!("deleting its Job: {why}")))
        });
        match &done {
            Ok(()) => self.note_deletion(course),
            Err(_) => course.may_be_deleted = true,
        }
        done
    }

    /// One that nobody answered was carried out.
    pub(super) fn see_deletion(&self, course: &mut Course, sight: &Sight) {
        let is_going = |job: &Job| job.metadata.deletion_timestamp.is_some();
        let is_seen = sight.job_gone || sight.job.as_ref().is_some_and(is_going);
        if course.may_be_deleted && is_seen && !course.started {
            self.note_deletion(course);
        }
    }

    /// Whether something of the user's own runs or ran, by what the cluster has now; also where
    /// that cannot be known.
    async fn has_begun(&self, course: &Course, sight: &Sight) -> bool {
        let found = tokio::time::timeout(ANSWER_WITHIN, self.its_pods()).await;
        let Ok(Ok(pods)) = found else { return true };
        let mut now = sight.clone();
        pods.iter().for_each(|pod| now.see(pod));
        let waits = matches!(look(&now, self.subject(course, &now)), SightOutcome::Waiting(_));
        let is_untried = tried(&now, &self.record.container) == PodAttempts::Never;
        !waits || !is_untried || pods.iter().any(|pod| init_that_began(pod).is_some())
    }
}

impl Course {
    /// What is known of one that was withdrawn, in the words of why.
    pub(super) fn with_its_withdrawal(&self, learned: &mut OutcomeEvidence) {
        let Some(why) = self.withdrawn.as_ref().filter(|_| self.deleted && !self.gave_up) else {
            return;
        };
        if let Some(never) = &mut learned.never {
            *never = taken_back(why.clone());
        }
        if let Some(taken) = &mut learned.taken {
            taken.why =
                format!("it began in the moment in which it was withdrawn ({why}) and was stopped");
        }
    }
}
