//! A job on a cluster that is followed: rounds of a look at what is there, what that says, and a
//! wait for what happens next. Called by the job's task.

use std::ops::ControlFlow;
use std::time::Duration;

use futures::FutureExt as _;
use schema::time::Timestamp;
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::blockers::StartBlocker;
use super::course::Course;
use super::faults::WatchRefusal;
use super::follow::{BEHIND_WITHIN, HEARD_OUT_FOR, JobFollower, LISTEN_EVERY, UNSEEN_WITHIN};
use super::lost_watch::LostWatch;
use super::over::{lost, never_learned, taken_unseen};
use super::sight::{Sight, SightOutcome, look, taken};
use super::stop::RemainingPods;
use crate::delivery::Holds;
use crate::runner::evidence::{OutcomeEvidence, Taken};
use crate::runner::job_tasks::sleep_until;

/// How often somebody is asked why nothing goes on.
const ASK_WHY_EVERY: Duration = Duration::from_secs(15);

/// How often the log of a job is listened to where a wrapper is at most in the image: most images
/// have none, and their jobs are never heard of.
const LISTEN_TO_IMAGES_EVERY: Duration = Duration::from_secs(60);

/// How often it is tried to find out whether a Job was let go.
const RESUME_EVERY: Duration = Duration::from_secs(5);

/// What is said of a job whose Pod nobody saw end.
const WENT_UNSEEN: &str = "its Pod went while nobody watched";

/// What is known of a job that is over, and whether nothing of it is left.
type Over = (OutcomeEvidence, bool);

/// What a round looks at.
struct Round {
    sight: Sight,
    /// Whether everything that the cluster has of it was listed once.
    is_listed: bool,
    /// Whether it is known, too, what ran before a Pod that was counted.
    is_seen: bool,
    /// Whether it is to be found out whether its Job was let go.
    finds_out: bool,
}

/// What ends the wait of a round.
enum Happened {
    Changed,
    Unwatched,
    Asked,
    StartOverdue,
    TimeOver,
    StopIsDue,
    NodeIsLost,
    AbsenceIsDue,
    ListeningIsDue,
    WhyIsDue,
    LeaveIsDue,
    UnseenForLong,
    /// It is looked at, tried, or told, in the next round.
    Due,
}

impl JobFollower {
    /// Follows the job to its end: what is known of it, and whether nothing of it is left.
    pub(super) async fn until_over(mut self, stops: &mut mpsc::Receiver<()>) -> Over {
        if let Some(known) = self.known.take() {
            return known;
        }
        let mut course = self.begin_course().await;
        loop {
            if let ControlFlow::Break(over) = self.round(&mut course, stops).await {
                return over;
            }
        }
    }

    /// What an earlier life of the daemon left to be done is done.
    async fn begin_course(&self) -> Course {
        let now = self.inner.clock.now();
        let at = |by: Timestamp| {
            Instant::now() + Duration::from_millis(by.since_ms(now).max(0).unsigned_abs())
        };
        let started = self.record.started || self.inner.delivery.was_heard(self.job);
        let times_out_at = self
            .record
            .end_by
            .map(|by| self.hears_out_until.map_or_else(|| at(by), |until| at(by).max(until)));
        let mut course = Course::new(at(self.record.start_by), times_out_at, started);
        if let Some(line) = self.record.line.clone() {
            // Whether that was done an earlier life of the daemon did not note.
            course.line = Some(line);
            self.make_stop(&mut course, false).await;
        }
        if self.is_stopped {
            // Of one that nobody knows to be suspended nobody knows that it has not started.
            self.stop(&mut course, !self.is_unsure).await;
        } else if self.inner.delivery.is_cancelled(self.job) {
            course.stop_soon();
        }
        // Until it was looked at once nobody knows whether its Pod was deleted.
        self.inner.delivery.hold(self.job, Holds::All);
        course
    }

    async fn round(
        &mut self,
        course: &mut Course,
        stops: &mut mpsc::Receiver<()>,
    ) -> ControlFlow<Over> {
        let mut sight = self.view.sight.borrow_and_update().clone();
        sight.job_gone |= self.is_orphaned;
        sight.job = sight.job.or_else(|| self.paused.clone());
        let is_listed = sight.is_listed();
        course.started = course.started || self.inner.delivery.was_heard(self.job);
        self.see_deletion(course, &sight);
        let finds_out = self.is_unsure && is_listed && !course.started && !course.deleted;
        if finds_out && Instant::now() >= self.resume_at {
            return self.find_out(course, stops).await;
        }
        if is_listed {
            if self.has_second_pod(&sight).await {
                return ControlFlow::Break(self.end_both(course, stops).await);
            }
            self.try_ran(course, &sight).await;
            self.tell_unseen(course, &sight);
        }
        // Before everything was listed nobody knows what is there, nor what ran before a Pod that
        // was counted is seen.
        let is_seen = is_listed && (course.started || course.counted_at.is_none());
        let round = Round { sight, is_listed, is_seen, finds_out };
        self.take_in(course, &round).await?;
        if is_listed {
            self.close(course, &round.sight).await;
        }
        let happened = self.next(course, &round, stops).await;
        self.act(course, &round, happened).await
    }

    async fn find_out(
        &mut self,
        course: &mut Course,
        stops: &mut mpsc::Receiver<()>,
    ) -> ControlFlow<Over> {
        self.resume_at = Instant::now() + RESUME_EVERY;
        tokio::select! {
            () = self.resume() => {}
            Some(()) = stops.recv() => {
                self.is_unsure = true;
                self.stop(course, false).await;
            }
        }
        self.known.take().map_or(ControlFlow::Continue(()), ControlFlow::Break)
    }

    /// Tells of one that runs that its cluster does not let it be seen or stopped, or that it does
    /// again.
    fn tell_unseen(&mut self, course: &mut Course, sight: &Sight) {
        let lost = self.unwatched(sight).filter(|lost| Instant::now() >= lost.told_at());
        course.unwatched = lost.map(|lost| StartBlocker::unwatched(lost, &self.record.place));
        if course.started {
            // Also to whoever was told that it waits for its cluster.
            self.teller.tell(course.unstopped.as_ref().or(course.unwatched.as_ref()));
        }
    }

    /// What keeps us from seeing what happens to it, unless that passes by itself.
    fn unwatched<'a>(&self, sight: &'a Sight) -> Option<&'a LostWatch> {
        sight.unwatched().filter(|lost| !self.is_passing(lost))
    }

    /// After an outage an API server forbids what it will permit once it has read its roles.
    fn is_passing(&self, lost: &LostWatch) -> bool {
        matches!(lost.refusal, Some(WatchRefusal::Forbidden { .. }))
            && self.cluster.was_away_lately()
    }

    /// What is there says that it is over, runs, or waits.
    async fn take_in(
        &mut self,
        course: &mut Course,
        Round { sight, is_listed, is_seen, .. }: &Round,
    ) -> ControlFlow<Over> {
        let seen = if *is_seen {
            look(sight, self.subject(course, sight))
        } else {
            SightOutcome::Waiting(None)
        };
        let lost_at = course.lost_at.take();
        if *is_listed {
            self.hold(course, sight);
        }
        match seen {
            SightOutcome::Over { learned, gone } => {
                if self.is_over(course, sight, &learned).await {
                    let learned = course.with_what_is_known(*learned);
                    return ControlFlow::Break(self.over(learned, gone, course, sight).await);
                }
            }
            SightOutcome::Running { since } => self.running(course, sight, since, lost_at).await,
            SightOutcome::Waiting(wait) if *is_seen => self.waiting(course, sight, wait),
            SightOutcome::Waiting(_) => {}
        }
        if *is_listed && sight.lacks_its_pod() {
            if course.is_absent {
                let (went, gone) = match course.ended_for_its_line() {
                    true => (lost(WENT_UNSEEN), true),
                    false => (taken_unseen(WENT_UNSEEN), self.is_gone_without_pod(sight)),
                };
                let learned = course.with_what_is_known(went);
                return ControlFlow::Break(self.over(learned, gone, course, sight).await);
            }
            course.absent_at.get_or_insert_with(|| Instant::now() + BEHIND_WITHIN);
        }
        ControlFlow::Continue(())
    }

    /// Waits for a change, a stop, or the first time that is due.
    async fn next(
        &mut self,
        course: &Course,
        round: &Round,
        stops: &mut mpsc::Receiver<()>,
    ) -> Happened {
        let Round { sight, is_listed, is_seen, finds_out } = round;
        let (is_listed, is_seen) = (*is_listed, *is_seen);
        let is_ending = course.over_time.is_some() || course.line.is_some();
        let listens = course.started && !is_ending && !self.record.tries_again;
        // One that is heard of may fall silent without anything that the cluster would show.
        let listen_at =
            course.listen_at.max(Instant::now() + self.inner.delivery.silent_in(self.job));
        let is_overdue = is_seen && (!course.started || course.deleted) && !sight.lacks_its_pod();
        let asks_why = is_seen && course.is_silent && !course.started && !course.deleted;
        let minds_leave =
            is_seen && (self.may_be_withdrawn(course) || Self::may_be_ended_late(course));
        let times_out_at =
            course.times_out_at.filter(|_| is_listed && course.started && !is_ending);
        let lost_at = course.lost_at.as_ref().map(|(_, at)| *at);
        let counted_at = course.counted_at.filter(|_| is_listed && !is_seen);
        let unwatched_at = self
            .unwatched(sight)
            .map(LostWatch::told_at)
            .filter(|at| is_listed && Instant::now() < *at);
        let resume_at = finds_out.then_some(self.resume_at);
        let due_at =
            [counted_at, resume_at, unwatched_at, self.teller.due()].into_iter().flatten().min();
        tokio::select! {
            changed = self.view.sight.changed() => {
                if changed.is_err() { Happened::Unwatched } else { Happened::Changed }
            }
            Some(()) = stops.recv() => Happened::Asked,
            () = sleep_until(Some(course.deadline)), if is_overdue => Happened::StartOverdue,
            () = sleep_until(times_out_at) => Happened::TimeOver,
            () = sleep_until(course.stop_at) => Happened::StopIsDue,
            () = sleep_until(lost_at) => Happened::NodeIsLost,
            () = sleep_until(course.absent_at) => Happened::AbsenceIsDue,
            () = sleep_until(Some(listen_at)), if listens => Happened::ListeningIsDue,
            () = sleep_until(Some(course.why_at)), if asks_why => Happened::WhyIsDue,
            () = sleep_until(Some(course.leave_at)), if minds_leave => Happened::LeaveIsDue,
            () = sleep_until(Some(course.unseen_at)), if !is_listed => Happened::UnseenForLong,
            () = sleep_until(due_at) => Happened::Due,
        }
    }

    async fn act(
        &mut self,
        course: &mut Course,
        Round { sight, is_listed, .. }: &Round,
        happened: Happened,
    ) -> ControlFlow<Over> {
        match happened {
            Happened::Changed | Happened::Due => {}
            Happened::Unwatched => {
                return ControlFlow::Break((lost("its cluster is not watched any more"), false));
            }
            Happened::Asked => {
                if !course.is_spared() {
                    self.stop(course, *is_listed).await;
                }
            }
            Happened::StartOverdue => {
                if course.deleted {
                    let learned = course.with_what_is_known(never_learned(course));
                    return ControlFlow::Break(self.over(learned, false, course, sight).await);
                }
                course.gave_up = true;
                if course.times_out_at.is_some() {
                    // It may have started: its status is behind what happens on its node.
                    self.time_is_over(course);
                }
                self.note_deletion(course);
                self.delete().await;
            }
            Happened::TimeOver => {
                self.time_is_over(course);
                course.spares_until = self
                    .hears_out_until
                    .filter(|until| course.times_out_at == Some(*until))
                    .map(|until| until + HEARD_OUT_FOR);
                self.stop(course, true).await;
            }
            Happened::StopIsDue => self.make_stop(course, *is_listed).await,
            Happened::NodeIsLost => {
                let why = "its Pod was to end and did not: its node does not answer, and the \
                           command may still run there";
                let taken = sight
                    .pod
                    .as_ref()
                    .and_then(|pod| taken(pod, sight, self.subject(course, sight)));
                let taken = taken.map(|taken| Taken { why: why.to_owned(), ..taken });
                let learned = course.with_what_is_known(OutcomeEvidence { taken, ..lost(why) });
                return ControlFlow::Break(self.over(learned, false, course, sight).await);
            }
            Happened::AbsenceIsDue => self.look_for_pods(course).await,
            // It may have been heard of meanwhile.
            Happened::ListeningIsDue if self.inner.delivery.hears(self.job) => {}
            Happened::ListeningIsDue => self.listen(course, sight).await,
            Happened::WhyIsDue => {
                course.why_at = Instant::now() + ASK_WHY_EVERY;
                self.ask_why(course, sight).await;
            }
            Happened::LeaveIsDue => self.mind_leave(course).boxed().await,
            Happened::UnseenForLong => {
                course.unseen_at += UNSEEN_WITHIN;
                let lost = sight.unlisted().filter(|lost| !self.is_passing(lost));
                let wait = lost.map(|lost| StartBlocker::unlisted(lost, &self.record.place));
                self.teller.tell(Some(
                    &wait.unwrap_or_else(|| StartBlocker::unseen("its cluster does not answer")),
                ));
            }
        }
        ControlFlow::Continue(())
    }

    /// Looks whether a Pod is there that no watch shows.
    async fn look_for_pods(&mut self, course: &mut Course) {
        (course.absent_at, course.stray) = (None, None);
        match self.left().await {
            RemainingPods::Nothing => course.is_absent = true,
            RemainingPods::Stray(pod) => (course.is_absent, course.stray) = (true, Some(pod)),
            RemainingPods::Own | RemainingPods::Unanswered => {
                course.absent_at = Some(Instant::now() + BEHIND_WITHIN)
            }
        }
    }

    /// Looks whether its wrapper left its report in the log, because it reaches nobody, and ends
    /// its Pod then.
    async fn listen(&mut self, course: &mut Course, sight: &Sight) {
        // What its image brings may run more after a wrapper that is not all of the container.
        let is_ours = self.record.place.wrapper_image.is_some();
        course.listen_at =
            Instant::now() + if is_ours { LISTEN_EVERY } else { LISTEN_TO_IMAGES_EVERY };
        if let Some(pod) = &sight.pod
            && let Some(report) =
                self.marked_line(pod).await.filter(|report| is_ours || report.first_process)
        {
            // Its command has ended; what is left is a wrapper that goes on trying.
            self.keep_log_early(pod, &report).await;
            course.line = Some(report);
            self.note_line(course).await;
            self.make_stop(course, true).await;
        }
    }
}
