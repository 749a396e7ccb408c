//! Whose word a job's end on a cluster is: which reports wait for what the cluster says, and whether the container's or the Job's
//! end counts beside them. Called by the job's task; the rule itself is [`crate::runner::learned`]'s.

use super::follow::{Course, Follower};
use super::sight::{Sight, decided_by_job, taken};
use crate::delivery::Holds;
use crate::runner::learned::Decides;

impl Follower {
    /// Has its wrapper's report wait for what the cluster says, where that is to end the Pod without us: its end is not the command's
    /// own then, whatever the report says.
    pub(super) fn hold(&self, course: &mut Course, sight: &Sight) {
        let subject = self.subject(course);
        course.was_taken |= !subject.ended_by_us && sight.pod.as_ref().is_some_and(|pod| taken(pod, sight, subject).is_some());
        self.inner.delivery.hold(self.job, if course.was_taken { Holds::All } else { Holds::Stopped });
    }

    /// Whose word is the outcome.
    pub(super) fn decides(&self, sight: &Sight) -> Option<Decides> {
        match (self.record.tries_again, &self.record.place.wrapper_image) {
            (true, _) => Some(decided_by_job(sight)),
            (false, None) => Some(Decides::Container),
            (false, Some(_)) => None,
        }
    }
}
