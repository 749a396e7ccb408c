//! What a clock that jumps does to the plans in a state, and what does not count as a change.
//!
//! Planned instants follow the wall clock. Forward: everything in between is due at once, and the
//! lanes bound what starts. Back: every planned instant moves along, so that a wait of ten minutes
//! stays one of ten minutes; nothing hangs until the old time comes round again, and nothing runs
//! twice in a burst.
//!
//! Deadlines of jobs in flight follow elapsed time: a job that was given an hour has it, whatever
//! the clock on the wall says meanwhile. The driver, which has a steady clock beside the wall's,
//! tells how far the wall has jumped ([`crate::event::Event::ClockStepped`]). Where nobody can know
//! that (another machine took over) the wall's time counts, and no deadline is farther away than
//! one that begins now. The progress deadline of a release follows elapsed time as well, and
//! of that only what there was a daemon for that could go on; and so does the time for which a
//! watch may be silent.

use std::time::Duration;

use schema::time::Timestamp;

use crate::clock_step::ClockStep;
use crate::desired::{Cadence, WatchPolicy};
use crate::limits::{
    CLOCK_SLACK, OVERTIME, RECOVERY, START_DEADLINE, STOP_DEADLINE, STOP_GRACE_LIMIT, USUAL_GRACE,
};
use crate::state::{Job, State};

impl State {
    /// Whether `later` says the same but for [`State::seen_at`], which moves with every event: then
    /// it need not be stored. Takes `self` for changing only to compare without a copy; it is
    /// left as it was.
    pub fn says_the_same(&mut self, later: &Self) -> bool {
        let seen_at = std::mem::replace(&mut self.seen_at, later.seen_at);
        let same = self == later;
        self.seen_at = seen_at;
        same
    }

    /// Takes note of the time and returns the one that counts.
    pub(crate) fn take_time(&mut self, now: Timestamp) -> Timestamp {
        if self.seen_at.since(now) > CLOCK_SLACK {
            self.shift_plans(ClockStep::between(self.seen_at, now));
            self.plan_what_had_run_out(now);
            self.seen_at = now;
            self.bound_deadlines(now);
        }
        self.seen_at = self.seen_at.max(now);
        self.seen_at
    }

    /// Whether it has a deadline that follows elapsed time.
    pub fn follows_elapsed_time(&self) -> bool {
        self.jobs_in_flight().next().is_some()
            || self.is_pressed()
            || self.observed.watch().is_some()
    }

    /// Whether its release has a progress deadline that runs.
    pub fn is_pressed(&self) -> bool {
        self.rollout.stuck_at().is_some()
    }

    /// The wall clock jumped by so much against elapsed time.
    pub(crate) fn clock_stepped(&mut self, by: ClockStep) {
        self.move_jobs(by);
        self.move_pressing(by);
    }

    /// The same while nobody looked: a release has as much time left as it had then, whatever the
    /// clock did.
    pub(crate) fn clock_stepped_unseen(
        &mut self,
        by: ClockStep,
        looked_at: Timestamp,
        now: Timestamp,
    ) {
        self.move_jobs(by);
        self.move_pressing(ClockStep::between(self.seen_at.max(looked_at), now));
    }

    /// What follows elapsed time beside jobs: the progress deadline, and that of a watch to be
    /// heard of.
    fn pressing(&mut self) -> impl Iterator<Item = &mut Timestamp> {
        self.rollout.stuck_at_mut().into_iter().chain(self.observed.stale_at_mut())
    }

    fn move_pressing(&mut self, by: ClockStep) {
        self.pressing().for_each(|at| *at = by.moves(*at));
    }

    fn move_jobs(&mut self, by: ClockStep) {
        for job in self.jobs_mut() {
            job.deadline = job.deadline.map(|at| by.moves(at));
            job.waits.iter_mut().for_each(|wait| wait.until = by.moves(wait.until));
        }
    }

    /// The daemon is back: what became of its jobs is heard of before any deadline ends them.
    pub(crate) fn recovered(&mut self, now: Timestamp) {
        let soonest = now.plus(RECOVERY);
        for job in self.jobs_mut() {
            job.deadline = job.deadline.map(|at| at.max(soonest));
        }
        // And before a release is taken back; a fetch can look, too, and a watch be heard of.
        self.pressing().for_each(|at| *at = (*at).max(soonest));
        // Whatever the machine said of its clocks: no time that has passed gives a job more of it.
        self.bound_deadlines(now);
    }

    fn bound_deadlines(&mut self, now: Timestamp) {
        for job in self.jobs_mut() {
            let longest = now.plus(job.longest());
            job.deadline = job.deadline.map(|at| at.min(longest));
            job.waits.iter_mut().for_each(|wait| wait.until = wait.until.min(longest));
        }
        let longest = self
            .desired()
            .and_then(|desired| desired.progress_deadline)
            .unwrap_or_default()
            .max(RECOVERY);
        if let Some(stuck_at) = self.rollout.stuck_at_mut() {
            *stuck_at = now.plus(longest).min(*stuck_at);
        }
        let silent_by = self
            .desired()
            .and_then(|desired| desired.observe.watch())
            .map(WatchPolicy::counts_for)
            .map(|fresh_for| now.plus(fresh_for).max(now.plus(RECOVERY)));
        if let (Some(stale_at), Some(silent_by)) = (self.observed.stale_at_mut(), silent_by) {
            *stale_at = silent_by.min(*stale_at);
        }
    }

    fn jobs_mut(&mut self) -> impl Iterator<Item = &mut Job> {
        [&mut self.main, &mut self.side].into_iter().flatten().map(|job| &mut **job)
    }

    fn shift_plans(&mut self, by: ClockStep) {
        let before = self.main.as_mut().and_then(|job| job.attempts_before.as_mut());
        let before = before.into_iter().flat_map(|attempts| attempts.plans_mut());
        let dues = [self.observed.due_mut(), self.info.due_mut()].into_iter();
        let maybe = dues.chain(self.approvals.expiries_mut()).flatten();
        for planned in maybe.chain(self.rollout.plans_mut()).chain(before) {
            *planned = by.moves(*planned);
        }
    }
}

impl State {
    /// A schedule that had no instant left at the time of before may have one now: that it ran out
    /// was a clock's mistake, perhaps.
    fn plan_what_had_run_out(&mut self, now: Timestamp) {
        let Some(desired) = self.desired.as_deref() else { return };
        let of = |cadence: &Cadence| matches!(cadence, Cadence::Cron(_));
        let looks = desired.observe.poll().is_some_and(|policy| of(&policy.cadence));
        let tells = desired.get_info.as_ref().is_some_and(|policy| of(&policy.cadence));
        if looks && self.observed.due().is_none() && self.main.is_none() {
            self.observed.due_at(now);
        }
        if tells && self.info.due().is_none() && self.side.is_none() {
            self.info.due_at(now);
        }
    }
}

impl Job {
    /// How long after a stop it may stay silent until its end is unknown.
    pub(crate) fn stop_within(&self) -> Duration {
        let grace = self.stop_grace.unwrap_or_default().clamp(USUAL_GRACE, STOP_GRACE_LIMIT);
        STOP_DEADLINE + (grace - USUAL_GRACE)
    }

    /// The most that its next deadline can be away.
    fn longest(&self) -> Duration {
        let timeout = self.timeout.unwrap_or_default();
        match (&self.stop, self.started_at) {
            (Some(_), _) => self.stop_within(),
            (None, Some(_)) => timeout.saturating_add(OVERTIME),
            (None, None) => timeout.max(START_DEADLINE),
        }
        .max(RECOVERY)
    }
}
