//! What would come of releases that nobody has made yet, by the engine's own words.

use std::sync::Arc;

use engine::desired::Desired;
use engine::{Forecast, Surroundings};

use super::super::run::DriverLoop;
use super::super::together::ConfiguredUpstream;
use super::super::world::InstanceEntry;
use crate::names::InstanceNames;

impl DriverLoop {
    /// One for each release, in order.
    pub(super) fn forecasts(
        &self,
        releases: Vec<(Arc<InstanceNames>, Box<Desired>)>,
    ) -> Vec<Forecast> {
        releases.into_iter().map(|(names, desired)| self.forecast(names, *desired)).collect()
    }

    fn forecast(&self, names: Arc<InstanceNames>, desired: Desired) -> Forecast {
        let (id, now) = (names.instance(), self.clock.now());
        if let Some(stopped) = self.world.broken.get(&id) {
            let next = "nothing: it stands still, and a release does not change that".to_owned();
            return Forecast { next, holds: stopped.explain().causes };
        }
        let state = match self.world.instances.get(&id) {
            Some(kept) => kept.state.clone(),
            None => {
                InstanceEntry::new(names.clone(), desired.runtime.clone(), self.observer, now).state
            }
        };
        let held = self.world.breakers.held_after_order(&desired.runtime, now);
        let nowhere = ConfiguredUpstream::new();
        let around = Surroundings {
            name: &|other| self.world.short_name(other),
            pursued: &|channel| self.world.pursued(names.service.0, channel),
            together: &|| self.world.together(&names, &nowhere),
            target: &names.target(),
        };
        engine::forecast(*state, desired, held, &self.world.lanes, now, around)
    }
}
