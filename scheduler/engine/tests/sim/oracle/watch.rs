//! What the oracle knows of those who watch an instance: which generation counts, and when it was
//! last heard of.

use engine::desired::WatchPolicy;
use engine::observation::{Observation, ObservedWorld};

use super::*;

#[derive(Default)]
pub(super) struct Watch {
    /// The one that was wanted after the last step.
    generation: Option<u64>,
    /// True time at which it began or was heard of.
    heard_ms: i64,
    /// How often the daemon came back since.
    pub(super) recovered: i64,
}

impl Watch {
    /// For how long it may have been silent at most.
    fn bound_ms(&self, policy: &WatchPolicy) -> i64 {
        policy.fresh_for.as_millis() as i64
            + SLACK_MS
            + self.recovered * RECOVERY.as_millis() as i64
    }
}

impl Oracle {
    /// What a watch tells, before anything else is known of this step.
    pub(super) fn watched(&mut self, instance: usize, event: &Event, true_ms: i64) {
        let Event::Observed(observation) = event else { return };
        let applying = self.applying(instance);
        let account = &mut self.accounts[instance];
        let ObservationSource::Watch(generation) = observation.source else { return };
        if account.watch.generation != Some(generation) {
            return;
        }
        (account.watch.heard_ms, account.watch.recovered) = (true_ms, 0);
        if let Some(desired) = account.desired.as_ref().filter(|_| !applying) {
            account.answered(told(observation, &desired.version), None);
        }
    }
}

impl Account {
    /// Another generation has to begin whenever what was told so far counts no more.
    pub(super) fn follow(&mut self, event: &Event, after: &State, has_landed: bool, true_ms: i64) {
        let (old, new) = (self.watch.generation, after.watch_generation());
        let wanted = self.desired.as_ref().is_some_and(|desired| desired.observe.watch().is_some())
            && !self.paused
            && !self.deleted;
        assert_eq!(
            new.is_some(),
            wanted,
            "a watch is wanted wherever one tells, but while it is paused or deleted"
        );
        assert!(new >= old || new.is_none(), "a generation never comes again");
        assert!(
            new.is_none() || !has_landed || new != old,
            "P2: what was told before the end of an apply counts no more: {event:?}"
        );
        if new != old {
            (self.watch.heard_ms, self.watch.recovered) = (true_ms, 0);
        }
        self.watch.generation = new;
    }

    /// Nothing is applied on what was told too long ago.
    pub(super) fn is_fresh(&self, true_ms: i64) {
        let Some(policy) = self.desired.as_ref().and_then(|desired| desired.observe.watch()) else {
            return;
        };
        let silent_ms = true_ms - self.watch.heard_ms;
        assert!(
            silent_ms <= self.watch.bound_ms(policy),
            "P2: an apply on what was told {silent_ms} ms ago: {policy:?}"
        );
    }

    /// P3: that a watch is silent is told.
    pub(super) fn tells_silence(&self, state: &State, true_ms: i64) {
        let Some(policy) = self
            .desired
            .as_ref()
            .and_then(|desired| desired.observe.watch())
            .filter(|_| self.watch.generation.is_some())
        else {
            return;
        };
        let silent_ms = true_ms - self.watch.heard_ms;
        let is_told = state.standing().message.contains("the watch was not heard of for");
        assert!(
            is_told || silent_ms <= self.watch.bound_ms(policy),
            "P3: silent for {silent_ms} ms: {state:#?}"
        );
    }
}

fn told(observation: &Observation, version: &str) -> Answer {
    let Ok(report) = &observation.result else { return Answer::None };
    let is_clean = match &report.world {
        ObservedWorld::AsDesired => true,
        ObservedWorld::Work(_) => false,
        ObservedWorld::Objects(objects) => {
            objects.iter().all(|object| object.versions.iter().any(|at| at.version == version))
        }
    };
    if is_clean { Answer::Clean } else { Answer::Work(report.fingerprint, report.plan) }
}
