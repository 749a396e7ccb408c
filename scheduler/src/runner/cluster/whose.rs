//! Whose word a job's end on a cluster is: which reports wait for what the cluster says, and
//! whether the container's or the Job's end counts beside them. Called by the job's task; the rule
//! itself is [`crate::runner::evidence`]'s.

use super::course::Course;
use super::follow::JobFollower;
use super::sight::{Sight, decided_by_job, taken};
use crate::delivery::Holds;
use crate::runner::evidence::{Decides, JobEnd};

impl JobFollower {
    /// Has its wrapper's report wait for what the cluster says, where that is to end the Pod
    /// without us: its end is not the command's own then, whatever the report says.
    pub(super) fn hold(&self, course: &mut Course, sight: &Sight) {
        let subject = self.subject(course, sight);
        course.was_taken |= !subject.ended_by_us
            && sight.pod.as_ref().is_some_and(|pod| taken(pod, sight, subject).is_some());
        // Its Pod may have been deleted, too, when there was one and it is not there.
        let is_missing = sight.pod.is_none() && (sight.job_gone || sight.lacks_its_pod());
        self.inner.delivery.hold(
            self.job,
            if course.was_taken || is_missing { Holds::All } else { Holds::Stopped },
        );
    }

    /// Whose word is the outcome.
    pub(super) fn decides(&self, course: &Course, sight: &Sight) -> Option<Decides> {
        match (self.record.tries_again, &self.record.place.wrapper_image) {
            (true, _) => match decided_by_job(sight) {
                // Its Job was deleted by us, before it was seen that a try had run.
                Decides::Job(None) if course.deleted && course.over_time.is_some() => {
                    Some(Decides::Job(Some(JobEnd {
                        is_complete: false,
                        why: "it ran past its timeout".to_owned(),
                    })))
                }
                decided => Some(decided),
            },
            (false, None) => Some(Decides::Container),
            (false, Some(_)) => None,
        }
    }
}
