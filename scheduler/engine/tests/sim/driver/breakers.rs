//! The fleet breakers: fed with what ends and what people order, stored with the states, and never
//! in the way for longer than they say.

use engine::breaker::{EndedTry, FleetBreaker, LONGEST_PAUSE, RAMP_PATIENCE};
use schema::id::RuntimeName;

use super::*;

/// The longest that one goes without an instant at which it goes on.
const LONGEST: std::time::Duration =
    if LONGEST_PAUSE.as_secs() > RAMP_PATIENCE.as_secs() { LONGEST_PAUSE } else { RAMP_PATIENCE };

/// What an event may say of the runtime of its instance.
pub(super) enum Clue {
    End(EndedTry),
    Order,
    Nothing,
}

impl Driver {
    pub(super) fn clue(&self, instance: usize, event: &Event) -> Clue {
        match event {
            Event::JobEnded { job, outcome } => self.states[instance]
                .job(*job)
                .and_then(|job| EndedTry::of(job, outcome))
                .map_or(Clue::Nothing, Clue::End),
            Event::Desired(_) | Event::Retry { .. } => Clue::Order,
            _ => Clue::Nothing,
        }
    }

    /// What follows from it, in the same commit.
    pub(super) fn mind_runtime(&mut self, instance: usize, clue: Clue) {
        let (now, id) = (self.wall(), self.states[instance].instance());
        match clue {
            Clue::End(end) => {
                if let Some(is_failed) = end.failed(&self.states[instance]) {
                    self.change(&end.runtime, |breaker| {
                        breaker.record(id, end.kind, is_failed, now);
                    });
                }
            }
            Clue::Order => {
                let runtime = self.shapes[instance].runtime.clone();
                self.change(&runtime, |breaker| drop(breaker.encourage(now)));
            }
            Clue::Nothing => {}
        }
        self.tell_held(instance);
    }

    /// When one of them goes on by itself.
    pub(super) fn breaker_wake(&self) -> Option<Timestamp> {
        self.breakers.values().filter_map(FleetBreaker::next_wake).min()
    }

    pub(super) fn tick_breakers(&mut self) {
        let now = self.wall();
        let all: Vec<RuntimeName> = self.breakers.keys().cloned().collect();
        for runtime in all {
            self.change(&runtime, |breaker| {
                breaker.bound(now);
                breaker.tick(now);
            });
            let wake = self.breakers[&runtime].next_wake();
            assert!(
                wake.is_none_or(|at| at > now && at <= now.plus(LONGEST)),
                "`{runtime}` is held until {wake:?}"
            );
        }
    }

    fn change(&mut self, runtime: &RuntimeName, change: impl FnOnce(&mut FleetBreaker)) {
        let breaker = self.breakers.entry(runtime.clone()).or_default();
        let before = breaker.held();
        change(breaker);
        if breaker.held() == before {
            return;
        }
        self.lanes.bound_applies(runtime, breaker.limit());
        for instance in 0..self.states.len() {
            let is_there =
                self.states[instance].desired().is_some_and(|desired| desired.runtime == *runtime);
            if is_there {
                self.after(0, Happening::TellHeld(instance));
            }
        }
    }

    /// Whoever waits knows how it is.
    pub(super) fn tell_held(&mut self, instance: usize) {
        let state = &self.states[instance];
        let waits = state.wants(JobKind::Apply).is_some() || state.applies_held().is_some();
        let Some(desired) = state.desired().filter(|_| waits) else { return };
        let held = self.breakers.get(&desired.runtime).and_then(FleetBreaker::held);
        if held.as_ref() != state.applies_held() {
            self.after(0, Happening::Deliver(instance, Box::new(Event::Held(held.map(Box::new)))));
        }
    }

    /// A restart: only what is stored is known.
    pub(super) fn read_breakers(&mut self) {
        for breaker in self.breakers.values_mut() {
            let stored = serde_json::to_string(breaker).unwrap();
            *breaker = serde_json::from_str(&stored).unwrap();
        }
        for (runtime, breaker) in &self.breakers {
            self.lanes.bound_applies(runtime, breaker.limit());
        }
        (0..self.states.len()).for_each(|instance| self.after(0, Happening::TellHeld(instance)));
    }

    /// A place for an apply is given out: there is one, whatever failed.
    pub(super) fn check_bound(&self, instance: usize) {
        let Some(runtime) = self.states[instance].desired().map(|desired| &desired.runtime) else {
            return;
        };
        let limit = self.breakers.get(runtime).and_then(FleetBreaker::limit);
        let in_flight = self.states.iter().flat_map(State::jobs_in_flight);
        let held =
            in_flight.filter(|job| job.kind == JobKind::Apply && job.runtime == *runtime).count();
        assert!(
            limit.is_none_or(|limit| held < limit as usize),
            "rule 20: another apply in `{runtime}` beside {held}, of which there may be {limit:?}"
        );
    }

    /// Whether the applies of this runtime are held.
    pub(super) fn is_bound(&self, runtime: &RuntimeName) -> bool {
        self.breakers.get(runtime).is_some_and(|breaker| breaker.limit().is_some())
    }
}
