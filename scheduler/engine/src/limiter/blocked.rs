//! What [`super::ConcurrencyLimiter`] says of a place that is not free: who has it. For explain.

use schema::id::{InstanceId, JobId, RuntimeName};
use schema::status::JobKind;
use schema::time::Timestamp;

use super::{ConcurrencyLimiter, Hold, Want, index};
use crate::state::State;

/// Who has a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Holder {
    pub instance: InstanceId,
    pub job: JobId,
    /// Since when.
    pub since: Timestamp,
    /// Whether the job was given up and may still run. Such an apply keeps its place where the
    /// config counts applies (`maxConcurrency`), because people use that as a lock; the
    /// daemon's own places it does not take.
    pub is_given_up: bool,
    /// Whether its channel has left the config, so that nobody can ask for a retry there before it
    /// is back.
    pub is_deleted: bool,
}

/// Why a place is not free yet, for explain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Blocked {
    /// As many jobs of this kind are in flight in the runtime as may be.
    Runtime {
        runtime: RuntimeName,
        limit: u32,
        /// The first [`HOLDERS_SHOWN`] of those who have a place, longest first.
        holders: Vec<Holder>,
        /// How many have a place.
        held: usize,
        /// How many have waited longer in the runtime.
        ahead: usize,
    },
    /// The runtime has its fair share; what is free is kept for others.
    Share {
        runtime: RuntimeName,
        /// Places in the whole daemon.
        limit: u32,
        /// Those that are free.
        free: usize,
        /// The first [`HOLDERS_SHOWN`] of those who have a place, longest first.
        holders: Vec<Holder>,
        /// How many have a place.
        held: usize,
    },
    /// As many jobs of this kind are in flight in the whole daemon as may be.
    Daemon {
        limit: u32,
        /// The runtimes that hold most, at most [`HOLDERS_SHOWN`], with the number of their places
        /// and who has had one longest.
        holders: Vec<(RuntimeName, usize, Holder)>,
    },
    /// There is room, and what piled up while the daemon was down is let through at a bounded pace.
    Pace,
    /// There is room; it is a matter of moments.
    NotBlocked,
}

/// Most holders that [`super::ConcurrencyLimiter::blocked`] names.
pub const HOLDERS_SHOWN: usize = 5;

impl ConcurrencyLimiter {
    /// Why this instance has no place in the lane of this kind yet, or would have none if it came
    /// now.
    pub fn blocked(&self, state: &State, kind: JobKind, now: Timestamp) -> Blocked {
        let (instance, lane_index) = (state.instance(), index(kind));
        let waits = self.entries.get(&instance).and_then(|entry| entry.wants[lane_index]);
        let as_if = || {
            let runtime = *self.names.get(&state.desired()?.runtime)?;
            Some(Want { runtime, since: now, turn: self.turns })
        };
        let Some(want) = waits.or_else(as_if) else { return Blocked::NotBlocked };
        let Want { runtime, since, .. } = want;
        let lane = &self.lanes[lane_index][runtime];
        let name =
            || self.names.iter().find(|(_, at)| **at == runtime).map(|(name, _)| name.clone());
        if let Some((limit, held)) = self.full(lane_index, runtime) {
            let ahead = lane.lines.iter().map(|line| line.before(want.waiter(instance))).sum();
            let holders = self.holders(lane_index, runtime, held > lane.holders.len());
            return name().map_or(Blocked::NotBlocked, |runtime| Blocked::Runtime {
                runtime,
                limit,
                holders,
                held,
                ahead,
            });
        }
        let held = lane.holders.len();
        let limit = self.limits[lane_index].total.max(1);
        let free = self.free(lane_index);
        if free == 0 {
            return Blocked::Daemon { limit, holders: self.largest(lane_index) };
        }
        if !self.has_share(lane_index, held) {
            let holders = self.holders(lane_index, runtime, false);
            return name().map_or(Blocked::NotBlocked, |runtime| Blocked::Share {
                runtime,
                limit,
                free,
                holders,
                held,
            });
        }
        if since < self.started_at && self.pace_opens_at().is_some_and(|at| at > now) {
            Blocked::Pace
        } else {
            Blocked::NotBlocked
        }
    }

    /// The first ones of those who have a place in a runtime, longest first.
    fn holders(&self, lane: usize, runtime: usize, with_given_up: bool) -> Vec<Holder> {
        let this = &self.lanes[lane][runtime];
        let given_up =
            this.given_up.iter().filter(|_| with_given_up).map(|(_, instance)| (*instance, true));
        let all = this
            .holders
            .iter()
            .map(|(_, instance)| (*instance, false))
            .take(HOLDERS_SHOWN)
            .chain(given_up.take(HOLDERS_SHOWN));
        let mut holders: Vec<Holder> =
            all.filter_map(|(instance, given_up)| self.holder(instance, lane, given_up)).collect();
        holders.sort_by_key(|holder| (holder.since, holder.instance));
        holders.truncate(HOLDERS_SHOWN);
        holders
    }

    fn holder(&self, instance: InstanceId, lane: usize, is_given_up: bool) -> Option<Holder> {
        let entry = self.entries.get(&instance)?;
        let Hold { since, job, .. } = if is_given_up { entry.given_up } else { entry.holds[lane] }?;
        Some(Holder { instance, job, since, is_given_up, is_deleted: entry.is_deleted })
    }

    fn largest(&self, lane: usize) -> Vec<(RuntimeName, usize, Holder)> {
        let mut holders: Vec<_> = self
            .names
            .iter()
            .filter_map(|(name, at)| {
                let holders = &self.lanes[lane][*at].holders;
                let longest = self.holder(holders.first()?.1, lane, false)?;
                Some((name.clone(), holders.len(), longest))
            })
            .collect();
        holders.sort_by_key(|(_, held, _)| std::cmp::Reverse(*held));
        holders.truncate(HOLDERS_SHOWN);
        holders
    }
}
