//! The last word on a job: whether what was seen is really its end, what is known of that, and
//! whether nothing of it is left. Called by the job's task.
//!
//! What always holds: an apply is told as gone only when its end was seen (a container's last
//! state, its Pod's last phase), when its Job is complete and counts nothing but Pods that ended
//! well, or when no Pod of it was ever made. One that is merely not in the books may
//! run on: a forced deletion takes a Pod out of them and leaves its command alone. Of what only
//! looks, absence is enough: it may run twice, and it is common that its Pod went in good order
//! while nobody watched.

use schema::time::Timestamp;
use tokio::time::Instant;

use super::course::Course;
use super::follow::{AWAY_WITHIN, BEHIND_WITHIN, JobFollower};
use super::sight::counts::{had_pods, is_complete_alone};
use super::sight::tries::{has_unseen_end, last_run};
use super::sight::{Sight, asked_to_end, by_another_clock, ended_when_asked, init_that_ran, time};
use super::stop::with_stray;
use crate::runner::evidence::{Exit, Never, NeverCause, OutcomeEvidence, Taken};

impl JobFollower {
    /// Whether what was seen is really the end.
    pub(super) async fn is_over(
        &self,
        course: &mut Course,
        sight: &Sight,
        learned: &OutcomeEvidence,
    ) -> bool {
        // That its Job is gone, or over, and no Pod was seen says nothing of a Pod that is not seen
        // yet.
        if sight.pod.is_none() {
            let is_absent = course.is_absent;
            if !is_absent {
                course.absent_at.get_or_insert_with(|| Instant::now() + BEHIND_WITHIN);
            }
            return is_absent;
        }
        // Another Pod of the same Job may still be on its way out.
        if self.record.tries_again && learned.never.is_none() {
            let until = *course.others_until.get_or_insert_with(|| Instant::now() + AWAY_WITHIN);
            course.others_run = !self.pods_are_over(sight).await;
            if course.others_run && Instant::now() < until {
                course.absent_at = Some(Instant::now() + BEHIND_WITHIN);
                return false;
            }
        }
        true
    }

    /// Whether a job of which no Pod is in the books is gone although nobody saw one end.
    pub(super) fn is_gone_unseen(&self) -> bool {
        !self.record.is_apply
    }

    /// The same where there is a Job that is over.
    pub(super) fn is_gone_without_pod(&self, sight: &Sight) -> bool {
        self.is_gone_unseen() || sight.job.as_ref().is_some_and(is_complete_alone)
    }

    /// Whether it is known that its Job never made a Pod: none is there, none was ever seen, its
    /// Job counted none, and whoever watches for them missed nothing.
    fn never_had_pod(&self, course: &Course, sight: &Sight) -> bool {
        let is_known = !course.started
            && self.record.pod.is_none()
            && !self.is_orphaned
            && sight.pods_broken == 0;
        is_known && sight.job.as_ref().is_some_and(|job| !had_pods(job))
    }

    /// The last word: what it waited for if it was given up, and the log where nothing was
    /// delivered.
    pub(super) async fn over(
        &self,
        mut learned: OutcomeEvidence,
        mut gone: bool,
        course: &Course,
        sight: &Sight,
    ) -> (OutcomeEvidence, bool) {
        if let Some(never) = &mut learned.never {
            if let Some(name) =
                sight.pod.as_ref().and_then(init_that_ran).filter(|_| course.gave_up)
            {
                let what = if course.over_time.is_some() {
                    "ran past its timeout"
                } else {
                    "did not start in time"
                };
                *never = Never {
                    why: format!("it {what} and was stopped while its init container `{name}` ran"),
                    cause: NeverCause::Job,
                };
            } else if let (true, Some(wait)) = (course.gave_up, &course.waits_for) {
                *never = Never {
                    why: format!("it did not start in time: {}", wait.why),
                    cause: NeverCause::of(wait.surroundings()),
                };
            } else if course.gave_up {
                never.why = "it did not start in time".to_owned();
            }
            // A Pod that came and went just then was perhaps not seen.
            if sight.pod.is_none() && course.deleted && sight.pods_broken != course.broken_before {
                let why = format!(
                    "{}; the cluster could not be watched when its Job was deleted, and it may \
                     have run",
                    never.why
                );
                (learned.never, learned.lost, gone) = (None, Some(why), false);
            }
        }
        course.with_its_withdrawal(&mut learned, sight);
        if let Some(pod) = &course.stray {
            learned = with_stray(learned, pod);
        }
        if let Some(why) = learned.lost.take() {
            let is_absent = sight.pod.is_none() && course.is_absent;
            gone |= is_absent && (self.is_gone_unseen() || self.never_had_pod(course, sight));
            learned.lost = Some(self.with_namespace(why).await);
        }
        if let Some(taken) = &mut learned.taken {
            taken.why = self.with_namespace(std::mem::take(&mut taken.why)).await;
        }
        learned.decides = self.decides(course, sight);
        self.end_other_tries(sight).await;
        if let Some(exit) = &learned.exit {
            let is_late = self.late(exit, learned.taken.is_some(), course, sight);
            let without_its_word = || is_late.into_iter().chain(learned.over_time).min();
            learned.over_time = self.asked_over_time(&learned, sight).or_else(without_its_word);
            let delivery = &self.inner.delivery;
            learned.delivered = delivery.accepted_report(self.job).await;
            let is_told = delivery.is_told(self.job)
                || (learned.delivered.is_some() && !learned.is_of_another_end());
            if let Some(pod) = last_run(sight, &self.record.container).filter(|_| !is_told) {
                learned = self.read_log(pod, learned).await;
            }
        }
        // An apply is remembered until its Job is over too, or the next one of its instance would
        // take that for a stranger's.
        if sight.is_pod_over() && !self.record.is_apply {
            self.inner.note_finished(self.job);
        }
        self.hidden.hide_in(&mut learned);
        // A try that went without its node's word may still run beside the one that was the last.
        let is_missed = self.record.tries_again
            && !self.is_gone_unseen()
            && has_unseen_end(sight, &self.record.container);
        (learned, gone && !is_missed && !course.others_run && course.stray.is_none())
    }

    /// When its Pod was asked to end because its time was over, by the cluster's own clock. Ours
    /// may be far ahead of it, and then what ended because of that would seem to have ended
    /// before; or behind, and what had ended long before would seem to have ended of it.
    fn asked_over_time(&self, learned: &OutcomeEvidence, sight: &Sight) -> Option<Timestamp> {
        learned.over_time?;
        last_run(sight, &self.record.container).and_then(asked_to_end).map(by_another_clock)
    }

    /// When its time was over, where it ended after that: badly, or because its Pod was asked to
    /// end. `is_taken`: by whom the end is told otherwise.
    fn late(
        &self,
        exit: &Exit,
        is_taken: bool,
        course: &Course,
        sight: &Sight,
    ) -> Option<Timestamp> {
        let ended = exit.ended_at?;
        let was_asked = || {
            last_run(sight, &self.record.container).is_some_and(|pod| ended_when_asked(pod, ended))
        };
        let is_because = (course.asked == 0 || course.over_time.is_some())
            && (exit.code != 0 || (!is_taken && was_asked()));
        self.time_over_there(sight).filter(|by| ended >= *by && is_because)
    }

    /// When its time is over by the cluster's own clock, by which its ends are told too.
    pub(super) fn time_over_there(&self, sight: &Sight) -> Option<Timestamp> {
        let made_at =
            sight.job.as_ref().and_then(|job| job.metadata.creation_timestamp.as_ref()).map(time);
        let by_the_cluster =
            made_at.zip(self.record.timeout_ms).map(|(made_at, timeout)| made_at.plus_ms(timeout));
        by_the_cluster.or(self.record.end_by)
    }
}

/// Somebody ended it while nobody watched: then no report says that its command ended by itself.
pub(super) fn taken_unseen(why: &str) -> OutcomeEvidence {
    OutcomeEvidence { taken: Some(Taken { why: why.to_owned(), at: None }), ..lost(why) }
}

pub(super) fn lost(why: &str) -> OutcomeEvidence {
    OutcomeEvidence { lost: Some(why.to_owned()), ..OutcomeEvidence::default() }
}

/// Its Job was deleted and something of it is still there: whether it ran in the last moment nobody
/// knows.
pub(super) fn never_learned(course: &Course) -> OutcomeEvidence {
    if !course.gave_up {
        return lost(
            "it was stopped before it had started, and its Job or its Pod could not be deleted",
        );
    }
    let why = course.waits_for.as_ref().map_or("nobody says why", |wait| wait.why.as_str());
    lost(&format!("it did not start in time ({why}), and its Job or its Pod could not be deleted"))
}
