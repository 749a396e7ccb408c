//! What the daemon does next by itself, over all service instances: what the engine says of those
//! that are due soonest. Asked by whoever shows how everything stands.

use std::collections::BinaryHeap;
use std::sync::Arc;

use schema::api::NextAction;
use schema::id::InstanceId;
use schema::status::Status;
use schema::time::Timestamp;

use super::run::DriverLoop;
use super::together::ConfiguredUpstream;
use super::world::InstanceEntry;
use crate::names::InstanceNames;

/// What comes next at one service instance.
#[derive(Debug, Clone)]
pub struct UpcomingAction {
    pub names: Arc<InstanceNames>,
    /// How the instance stands until then.
    pub status: Status,
    /// What, and when.
    pub next: NextAction,
}

impl DriverLoop {
    /// The soonest of what is not converged, at most `limit`, and the soonest of all else: looks at
    /// what is as desired would be all that is told of a large fleet.
    pub(super) fn upcoming(&self, limit: usize) -> Vec<UpcomingAction> {
        let is_converged =
            |kept: &&InstanceEntry| kept.state.standing().status == Status::Converged;
        let all = || self.world.instances.values();
        let steady = soonest(all().filter(is_converged), 1);
        let moving = soonest(all().filter(|kept| !is_converged(kept)), limit);
        let mut coming: Vec<_> =
            moving.into_iter().chain(steady).filter_map(|id| self.next(id)).collect();
        coming.sort_by_key(|one| one.next.at);
        coming
    }

    fn next(&self, id: InstanceId) -> Option<UpcomingAction> {
        let kept = self.world.instances.get(&id)?;
        let told = self.explain(kept, &ConfiguredUpstream::new());
        let next = told.next.into_iter().next()?;
        Some(UpcomingAction { names: kept.names.clone(), status: told.status, next })
    }
}

/// Those that are due first, in no order; no more is held of them than is asked for.
fn soonest<'a>(of: impl Iterator<Item = &'a InstanceEntry>, limit: usize) -> Vec<InstanceId> {
    let mut first: BinaryHeap<(Timestamp, InstanceId)> = BinaryHeap::with_capacity(limit + 1);
    for kept in of {
        let Some(at) = kept.wake else { continue };
        if first.len() == limit && first.peek().is_none_or(|(latest, _)| at >= *latest) {
            continue;
        }
        first.push((at, kept.state.instance()));
        if first.len() > limit {
            first.pop();
        }
    }
    first.into_iter().map(|(_, id)| id).collect()
}
