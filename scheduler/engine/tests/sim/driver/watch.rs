//! Those who watch instead of being run: each looks anew for every generation, tells the same again
//! in time, and is late, twice, lost, wrong, of before, or silent for long.

use engine::observation::{
    Blame, Observation, ObservationError, ObservationSource, ObservedWorld, WorldReport,
};

use super::*;

/// How often a watch tells the same again at least: well within the shortest freshness that is
/// configured.
const AGAIN_MS: i64 = 30_000;

/// In every other world some instances are watched.
pub(super) fn watches(seed: u64) -> bool {
    seed.is_multiple_of(2)
}

/// Who watches one instance.
#[derive(Debug, Clone, Default)]
pub(super) struct Watcher {
    generation: Option<u64>,
    /// Counts how often somebody began to watch: what was begun before goes on no longer.
    turn: u64,
    /// True time until which nothing is heard.
    silent_until_ms: i64,
}

impl Watcher {
    /// The daemon comes back and has them all watch again.
    pub(super) fn forget(&mut self) {
        self.generation = None;
    }
}

impl Driver {
    /// After each commit: who watches does so for the generation that is wanted now.
    pub(super) fn follow(&mut self, instance: usize) {
        let (wanted, turn) =
            (self.states[instance].watch_generation(), self.watchers[instance].turn + 1);
        let watcher = &mut self.watchers[instance];
        if watcher.generation == wanted {
            return;
        }
        watcher.generation = wanted;
        watcher.turn = turn;
        if let Some(generation) = wanted {
            let delay = self.random.between(0, if self.calm { 500 } else { 5_000 });
            self.after(delay, Happening::Watch(instance, turn, generation));
        }
    }

    pub(super) fn watch(&mut self, instance: usize, turn: u64, generation: u64) {
        let (calm, true_ms) = (self.calm, self.true_ms);
        let is_of_now = self.watchers[instance].turn == turn;
        // Somebody who was told to stop may not have heard of it.
        if !is_of_now && (calm || !self.random.one_in(4)) {
            return;
        }
        if is_of_now {
            let again_ms = self.random.between(1_000, AGAIN_MS);
            self.after(again_ms, Happening::Watch(instance, turn, generation));
        }
        if !calm && self.random.one_in(100) {
            self.watchers[instance].silent_until_ms =
                true_ms + self.random.between(60_000, 3_600_000);
        }
        if !calm && (self.watchers[instance].silent_until_ms > true_ms || self.random.one_in(10)) {
            return;
        }
        let result = self.seen(instance);
        let observation =
            Observation { source: ObservationSource::Watch(generation), at: self.wall(), result };
        let times = if !calm && self.random.one_in(10) { 2 } else { 1 };
        for _ in 0..times {
            let delay = if !calm && self.random.one_in(20) {
                self.random.between(0, 300_000)
            } else {
                self.random.between(0, 500)
            };
            self.after(
                delay,
                Happening::Deliver(
                    instance,
                    Box::new(Event::Observed(Box::new(observation.clone()))),
                ),
            );
        }
    }

    /// How the target is, or what it is mistaken for.
    fn seen(&mut self, instance: usize) -> Result<WorldReport, ObservationError> {
        if !self.calm && self.random.one_in(12) {
            let blame = *self.random.pick(&[Blame::Command, Blame::Surroundings]);
            return Err(ObservationError { why: "could not see".to_owned(), blame });
        }
        let is_mistaken = !self.calm && self.random.one_in(25);
        let target = &self.world.targets[instance];
        let version = self.states[instance]
            .desired()
            .map(|desired| desired.version.clone())
            .unwrap_or_default();
        let is_clean =
            (target.version.as_ref() == Some(&version) && target.drift == 0) != is_mistaken;
        let what = format!("{:?} {} to {version}", target.version, target.drift);
        let compares = (instance / 2).is_multiple_of(2);
        let world = match (compares, is_clean) {
            (true, true) => ObservedWorld::AsDesired,
            (true, false) => ObservedWorld::Work(what.clone()),
            (false, is_clean) => {
                let runs = if is_clean { version } else { "something else".to_owned() };
                let object = serde_json::json!({"name": "web", "objectType": "Process", "status": "SUCCEEDED", "versions": [{"version": runs, "active": true}]});
                ObservedWorld::Objects(vec![serde_json::from_value(object).unwrap()])
            }
        };
        let (fingerprint, explanation) =
            (Some(BlobId::of(what.as_bytes())), compares.then_some(what));
        Ok(WorldReport {
            world,
            fingerprint,
            plan: None,
            explanation,
            may_destroy: !destroys_nothing(fingerprint),
            is_cut: false,
            doubt: None,
        })
    }
}
