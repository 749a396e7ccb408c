//! One event, one instance: what it is afterwards and what is to be done. Events change facts; what
//! follows from the facts is settled in one place, the same for every event, so that a lost event
//! costs time and never truth.

use schema::status::JobKind;
use schema::time::Timestamp;

use crate::action::Action;
use crate::converge::Situation;
use crate::desired::WatchPolicy;
use crate::event::Event;
use crate::limits::{LANE_PATIENCE, LINGERING_FETCHES};
use crate::state::{ApplyAttempts, Converged, ObserveWish, SlotRequests, State, WatchState};
use crate::window_lift::LiftEnd;

mod job;

use job::stop_unwanted;

/// Takes one event into account. Total and deterministic; every event in every state has an answer.
///
/// After `Event::Granted(kind)` the instance no longer wants a place of this kind: it starts a job,
/// or a gate has shut meanwhile.
pub fn step(mut state: State, event: Event, now: Timestamp) -> (State, Vec<Action>) {
    let mut out = Vec::new();
    match event {
        Event::ClockStepped { by } => state.clock_stepped(by),
        Event::Recovered { stepped, looked_at } => {
            state.clock_stepped_unseen(stepped, looked_at, now)
        }
        _ => {}
    }
    let now = state.take_time(now);
    match event {
        Event::Desired(desired) => state.desire(desired, now, &mut out),
        Event::Deleted => state.delete(&mut out),
        Event::Tick => {}
        Event::ClockStepped { .. } => {}
        Event::Recovered { .. } => state.recovered(now),
        Event::Granted(kind) => {
            state.settle(now, &mut out);
            if state.wants(kind).is_some() {
                state.start(kind, now, &mut out);
            }
        }
        Event::Unstarted { job, taken_back } => state.unstarted(job, taken_back, now, &mut out),
        Event::JobStarted { job, at } => state.started(job, at, now),
        Event::JobWaits { job, wait } => state.waits(job, wait, now, &mut out),
        Event::JobEnded { job, outcome } => state.finish(job, outcome, now, &mut out),
        Event::Observed(observation) => state.observation(*observation, now, &mut out),
        Event::Upstream { channel, converged_version, rolled_back } => {
            state.hear(channel, converged_version, rolled_back)
        }
        Event::Decided { approval, who, decision, reason } => {
            state.decide(approval, who, decision, reason, now, &mut out)
        }
        Event::Disowned { who } => state.disown(&who, now, &mut out),
        Event::Pause { who, reason } => state.pause(who, reason, now, &mut out),
        Event::ObserveOnly { who, reason } => state.observe_only(who, reason, now),
        Event::Resume => state.resume(now),
        Event::Observe(observer) => state.observer = observer,
        Event::Refresh { who, tries_again } => state.refresh(who, tries_again, now, &mut out),
        Event::Retry { who } => state.retry(who, now, &mut out),
        Event::RollbackRefused { from, why } => state.rollback_refused(from, why),
        Event::RollbackDropped { from } => state.rollback_dropped(from, now, &mut out),
        Event::Acknowledge { fingerprint, by } => state.acknowledge(fingerprint, by, now, &mut out),
        Event::EndAcknowledged { who } => state.end_acknowledged(who, &mut out),
        Event::LiftWindow(lift) => state.lift_window(*lift, now, &mut out),
        Event::EndWindowLift { who } => state.end_window_lift(&LiftEnd::Person(who), &mut out),
        Event::Held(held) => state.held = held,
        Event::Cancel { job, who } => state.cancel(job, &who, now, &mut out),
    }
    state.settle(now, &mut out);
    (state, out)
}

/// When `Event::Tick` would change something, if it ever would by itself. Always later than the
/// last step's instant. A driver whose clock is set back sends `Event::ClockStepped` at once: the
/// plans move along.
pub fn next_wake(state: &State) -> Option<Timestamp> {
    let idle = state.main.is_none();
    let jobs = state.jobs_in_flight().filter_map(|job| job.deadline);
    let look = state.observed.due().filter(|_| idle && state.looks());
    let silence = state.observed.watch().map(WatchState::stale_at);
    let telling = state.info.due().filter(|_| state.side.is_none() && !state.deleted);
    let (rollout, applying) = (&state.rollout, state.applying());
    let again = rollout.attempts().filter(|_| !applying).map(ApplyAttempts::again_at);
    let patience = state.lacks_place_since(state.seen_at).map(|since| since.plus(LANE_PATIENCE));
    let expiry = state.approvals.expiries();
    let known = state.drifts.expires_at();
    let lifted = rollout.lift().map(|lift| lift.until);
    let gates = [rollout.window_at(), lifted, rollout.stuck_at()];
    let plans = [look, silence, telling, again, patience, known].into_iter().chain(gates);
    plans.flatten().chain(jobs).chain(expiry).filter(|at| *at > state.seen_at).min()
}

// ---- what follows from the facts ----

impl State {
    fn settle(&mut self, now: Timestamp, out: &mut Vec<Action>) {
        self.enforce_deadlines(now, out);
        self.mind_silence(now, out);
        self.expire(now, out);
        self.expire_acknowledged(now, out);
        self.expire_window_lift(now, out);
        let situation = loop {
            match self.situate(now) {
                Situation::Ask(asker) => self.ask(asker, now, out),
                situation => break situation,
            }
        };
        self.note(&situation, now, out);
        self.mind_progress(&situation, now, out);
        self.want(now);
        self.stand(&situation, now, out);
    }

    /// Keeps what has to be remembered about where the instance is.
    fn note(&mut self, situation: &Situation, now: Timestamp, out: &mut Vec<Action>) {
        if *situation == Situation::Converged {
            self.end_window_lift(&LiftEnd::Arrived, out);
            self.arrive(now);
        }
        let is_ready = matches!(situation, Situation::Ready(_));
        let window_at = if let Situation::Ready(at) | Situation::WindowShut(at) = situation {
            *at
        } else {
            None
        };
        self.rollout.stand_at_gates(is_ready, window_at, now);
    }

    /// The release is as desired: what comes later is new work.
    fn arrive(&mut self, now: Timestamp) {
        let looks = self.is_looked_at();
        self.rollout.arrive(!looks || self.observed.is_fresh());
        if !looks {
            // Nor will anybody say that there is nothing to approve.
            self.approvals.withdraw_for_nothing_to_do(true);
        }
        self.rollback_spent = false;
        self.taken_back = None;
        let Some(desired) = self.desired.as_deref() else { return };
        if self.converged.as_ref().is_none_or(|converged| converged.release != desired.release) {
            self.converged = Some(Converged {
                release: desired.release,
                version: desired.version.clone(),
                at: now,
            });
        }
    }

    fn want(&mut self, now: Timestamp) {
        let idle = self.main.is_none();
        self.wants = SlotRequests {
            fetch: self.observed.due().filter(|due| *due <= now && idle && self.looks()),
            apply: self.rollout.ready_since().filter(|_| idle),
            info: self.info.due().filter(|due| *due <= now && self.side.is_none() && !self.deleted),
        };
    }

    /// Whether it is looked at by itself: fetched, or watched.
    pub(crate) fn looks(&self) -> bool {
        let looks = self.is_looked_at();
        looks && !self.paused && !self.deleted && !self.fetches_linger()
    }

    /// Whether as many fetches were given up and may still run as may be: no other starts before a
    /// person has said that it may.
    pub(crate) fn fetches_linger(&self) -> bool {
        self.lingering.len() >= LINGERING_FETCHES
            && self.desired().is_some_and(|desired| desired.observe.poll().is_some())
    }

    /// Whether an apply is in flight.
    pub(crate) fn applying(&self) -> bool {
        self.main.as_ref().is_some_and(|job| job.kind == JobKind::Apply)
    }

    /// What is known may be out of date: a fetch, or what the watch tells from now on, decides
    /// before anything else happens.
    pub(crate) fn look_now(&mut self, now: Timestamp) {
        let Some(desired) = self.desired().filter(|desired| desired.observe.looks()) else {
            return;
        };
        let watched = desired.observe.watch().map(WatchPolicy::counts_for);
        self.observed.outdate();
        match watched {
            Some(fresh_for) => self.begin_watch(fresh_for, now),
            None => self.fetch_now(now),
        }
    }

    fn fetch_now(&mut self, now: Timestamp) {
        let under_way = self.main.as_deref().filter(|job| job.kind == JobKind::Fetch);
        self.observed.fetch_now(under_way.map(|job| job.id), now);
    }
}

impl State {
    /// The same, but by the fetch that is due anyway: what comes again and again must not make
    /// fetch run more often than its config says.
    pub(crate) fn look_in_time(&mut self, now: Timestamp) {
        let Some(desired) = self.desired().filter(|desired| desired.observe.looks()) else {
            return;
        };
        let watched = desired.observe.watch().map(WatchPolicy::counts_for);
        self.observed.outdate();
        match watched {
            Some(fresh_for) => self.begin_watch_in_time(fresh_for, now),
            None if self.observed.due().is_none() && self.main.is_none() => self.fetch_now(now),
            None => {}
        }
    }
}

// ---- events ----

impl State {
    fn delete(&mut self, out: &mut Vec<Action>) {
        if std::mem::replace(&mut self.deleted, true) {
            return;
        }
        self.observed.end_watch();
        self.end_window_lift(&LiftEnd::Deleted, out);
        self.leave_refused(self.desired().is_some_and(|desired| desired.is_rollback));
        self.approvals.withdraw_all();
        for slot in [&mut self.main, &mut self.side] {
            stop_unwanted(slot, self.seen_at, out);
        }
    }

    /// Of what is paused only a reason is news: it is another person's pause from then on.
    fn pause(
        &mut self,
        who: String,
        reason: Option<String>,
        now: Timestamp,
        out: &mut Vec<Action>,
    ) {
        let is_sure = self.paused && !std::mem::take(&mut self.pause_is_assumed);
        if is_sure && reason.is_none() {
            return;
        }
        (self.paused_by, self.pause_reason) = (Some(who), reason);
        self.observe_wish = None;
        if !std::mem::replace(&mut self.paused, true) {
            stop_unwanted(&mut self.main, now, out);
            self.observed.forget_watch();
        }
    }

    /// Of what is observed only a reason is news: it is another person's wish from then on. What
    /// was paused is looked at again.
    fn observe_only(&mut self, who: String, reason: Option<String>, now: Timestamp) {
        if self.observe_wish.is_some() && reason.is_none() {
            return;
        }
        if self.end_pause() {
            self.look_now(now);
        }
        self.observe_wish = Some(Box::new(ObserveWish { who, since: now, reason }));
    }

    /// Somebody may have done by hand what was only looked at: it is looked at before anything is
    /// applied.
    fn resume(&mut self, now: Timestamp) {
        let was_observed = self.observe_wish.take().is_some();
        if self.end_pause() || was_observed {
            self.look_now(now);
        }
    }

    /// Whether it was paused.
    fn end_pause(&mut self) -> bool {
        (self.paused_by, self.pause_reason, self.pause_is_assumed) = (None, None, false);
        std::mem::replace(&mut self.paused, false)
    }
}
