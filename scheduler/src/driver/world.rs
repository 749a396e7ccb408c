//! What the loop holds in memory: every instance's state, the jobs that are not over, the lanes and
//! the timers. Owned by the loop alone; all of it follows from the database, so a start rebuilds
//! it.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use engine::desired::Gate;
use engine::event::Event;
use engine::limiter::{ConcurrencyLimiter, Limits};
use engine::{PursuedVersion, State};
use schema::id::{ChannelName, InstanceId, JobId, RuntimeName, ServiceId};
use schema::status::Reason;
use schema::target::PlacedJob;
use schema::time::Timestamp;

use super::breakers::Breakers;
use super::broken::Stopped;
use super::checks::ServedInstance;
use super::timers::Timers;
use super::together::{ConfiguredUpstream, together};
use crate::names::InstanceNames;
use crate::perform::StartClaim;
use crate::store::{Counters, InstanceRow, JobRow};

#[derive(Debug, Clone)]
pub(super) struct InstanceEntry {
    pub(super) names: Arc<InstanceNames>,
    /// The runtime that serves it.
    pub(super) runtime: RuntimeName,
    /// On its own: a table doubles when it is full, and one of what a batch began with has an
    /// entry also for what was not there.
    pub(super) state: Box<State>,
    /// Commits so far; 0 for one that is not stored yet.
    pub(super) revision: i64,
    /// When it is due.
    pub(super) wake: Option<Timestamp>,
}

impl InstanceEntry {
    /// An instance that nobody has asked anything of yet.
    pub(super) fn new(
        names: Arc<InstanceNames>,
        runtime: RuntimeName,
        observer: bool,
        now: Timestamp,
    ) -> Self {
        // An instance without a release asks for nothing.
        let (state, _) =
            engine::step(State::new(names.instance(), now), Event::Observe(observer), now);
        Self { names, runtime, state: Box::new(state), revision: 0, wake: None }
    }

    /// The channels that it waits for until they are stable.
    pub(super) fn upstream(&self) -> impl Iterator<Item = &ChannelName> {
        self.state.desired().into_iter().flat_map(|desired| &desired.gates).flat_map(Gate::upstream)
    }

    /// Whether a row of `later` would say what one of this said, but for the time of the last look
    /// at the clock.
    pub(super) fn says_the_same(&mut self, later: &Self) -> bool {
        self.runtime == later.runtime
            && self.wake == later.wake
            && self.state.says_the_same(&later.state)
    }

    /// The row after one more commit.
    pub(super) fn row(&self) -> InstanceRow {
        let standing = self.state.standing();
        let desired = self.state.desired();
        InstanceRow {
            id: self.state.instance(),
            service: self.names.service.0,
            channel: self.names.channel.0,
            runtime: self.runtime.clone(),
            state: serde_json::to_string(&self.state).expect("a state has a JSON form"),
            revision: self.revision,
            release: desired.map(|desired| desired.release),
            desired_version: desired.map(|desired| desired.version.clone()),
            status: standing.status,
            reason: standing.reason,
            message: standing.message.clone(),
            since: standing.since,
            next_wake: self.wake,
        }
    }
}

/// Everything that the loop holds.
#[derive(Debug)]
pub(super) struct World {
    pub(super) instances: HashMap<InstanceId, InstanceEntry>,
    /// Those that stand still.
    pub(super) broken: HashMap<InstanceId, Stopped>,
    /// The instances of each service: who is upstream of whom, who shares an approval.
    pub(super) services: HashMap<ServiceId, Vec<InstanceId>>,
    /// Jobs that are not over, and those that were given up and whose end still matters.
    pub(super) jobs: HashMap<JobId, JobRow>,
    /// Starts that no runner has been handed yet, as far as is known.
    pub(super) starts: HashMap<JobId, Arc<StartClaim>>,
    pub(super) lanes: ConcurrencyLimiter,
    /// Which runtimes have their applies stopped.
    pub(super) breakers: Breakers,
    pub(super) timers: Timers,
    pub(super) counters: Counters,
    /// Jobs of instances that stand still whose rows cannot be read: what is told of them is kept
    /// where it was told.
    pub(super) out_of_reach: HashSet<JobId>,
    /// What cannot be read and is no instance's, for whoever watches over the daemon.
    pub(super) unplaced: Vec<String>,
}

impl World {
    /// The world as the database has it.
    pub(super) fn load(
        instances: Vec<InstanceEntry>,
        jobs: Vec<JobRow>,
        counters: Counters,
        limits: Limits,
        now: Timestamp,
    ) -> Self {
        let mut world = Self {
            instances: HashMap::with_capacity(instances.len()),
            broken: HashMap::new(),
            services: HashMap::new(),
            jobs: jobs.into_iter().map(|job| (job.id, job)).collect(),
            starts: HashMap::new(),
            lanes: ConcurrencyLimiter::new(limits, now),
            breakers: Breakers::default(),
            timers: Timers::default(),
            counters,
            out_of_reach: HashSet::new(),
            unplaced: Vec::new(),
        };
        instances.into_iter().for_each(|kept| world.put(kept));
        world
    }

    /// Takes an instance in, or back: index, lanes and timers follow.
    pub(super) fn put(&mut self, mut kept: InstanceEntry) {
        let id = kept.state.instance();
        kept.wake = engine::next_wake(&kept.state);
        if let Some(at) = kept.wake {
            self.timers.set(at, id);
        }
        let service = kept.names.service.0;
        self.lanes.update(&kept.state, service);
        let of_service = self.services.entry(service).or_default();
        if self.instances.insert(id, kept).is_none() && !of_service.contains(&id) {
            of_service.push(id);
        }
    }

    /// What the last run knew of runtimes whose applies were stopped.
    pub(super) fn put_breakers(&mut self, breakers: Breakers) {
        for (runtime, limit) in breakers.limits() {
            self.lanes.bound_applies(runtime, Some(limit));
        }
        self.breakers = breakers;
    }

    /// The row of an instance, whether it goes on or stands still.
    pub(super) fn row(&self, id: InstanceId) -> Option<InstanceRow> {
        self.instances
            .get(&id)
            .map(InstanceEntry::row)
            .or_else(|| self.broken.get(&id).map(Stopped::row))
    }

    /// A job for whoever has to find its runner.
    pub(super) fn placed(&self, job: JobId) -> PlacedJob {
        self.jobs.get(&job).map_or(PlacedJob { job, target: None }, JobRow::placed)
    }

    pub(super) fn names(&self, id: InstanceId) -> Option<&Arc<InstanceNames>> {
        self.instances
            .get(&id)
            .map(|kept| &kept.names)
            .or_else(|| self.broken.get(&id).map(|stopped| &stopped.names))
    }

    /// Forgets an instance, as if it had never been there.
    pub(super) fn remove(&mut self, id: InstanceId) {
        self.lanes.forget(id);
        if let Some(kept) = self.instances.remove(&id)
            && let Some(others) = self.services.get_mut(&kept.names.service.0)
        {
            others.retain(|other| *other != id);
        }
    }

    /// The instances that have a release on one of these runtimes and are wanted, by name.
    pub(super) fn served_by(&self, runtimes: &[RuntimeName]) -> Vec<ServedInstance> {
        let served = |kept: &InstanceEntry| {
            let desired = kept.state.desired()?;
            let is_wanted = !kept.state.is_deleted() && runtimes.contains(&desired.runtime);
            is_wanted
                .then(|| ServedInstance { names: kept.names.clone(), compiled: desired.compiled })
        };
        let mut all: Vec<_> = self.instances.values().filter_map(served).collect();
        all.sort_by(|a, b| a.order().cmp(&b.order()));
        all
    }

    /// The instances of the same service.
    pub(super) fn siblings(&self, service: ServiceId) -> Vec<InstanceId> {
        self.services.get(&service).cloned().unwrap_or_default()
    }

    /// What a channel of a service pursues.
    pub(super) fn pursued(
        &self,
        service: ServiceId,
        channel: &ChannelName,
    ) -> Option<PursuedVersion> {
        let siblings = self.services.get(&service)?.iter().filter_map(|id| self.instances.get(id));
        let mut there = siblings.filter(|kept| kept.names.channel.1 == *channel);
        there.find_map(|kept| {
            let desired = kept.state.desired()?;
            Some(PursuedVersion {
                version: desired.version.clone(),
                is_rollback: desired.is_rollback,
            })
        })
    }

    /// The channels of a service to which one release has to go, so that this one does not wait for
    /// another version there. What a channel waits for that has no release yet is only
    /// `configured`.
    pub(super) fn together(
        &self,
        names: &InstanceNames,
        configured: &ConfiguredUpstream,
    ) -> Vec<ChannelName> {
        let ids = self.services.get(&names.service.0).into_iter().flatten();
        let siblings: Vec<&InstanceEntry> = ids.filter_map(|id| self.instances.get(id)).collect();
        let upstream = siblings.iter().map(|kept| {
            let channel = &kept.names.channel.1;
            let first = match kept.state.desired() {
                Some(_) => kept.upstream().collect(),
                None => configured.get(channel).into_iter().flatten().collect(),
            };
            (channel, first)
        });
        let waits = |kept: &&&InstanceEntry| {
            kept.state.standing().reason == Some(Reason::ReleaseChannelDependencyUnmet)
        };
        let waiting = siblings.iter().filter(waits).map(|kept| &kept.names.channel.1).collect();
        together(&upstream.collect(), [&names.channel.1], &waiting).into_iter().cloned().collect()
    }

    /// `service/channel`, as explain names those who hold a place.
    pub(super) fn short_name(&self, id: InstanceId) -> String {
        self.names(id).map_or_else(
            || id.to_string(),
            |names| format!("{}/{}", names.service.1, names.channel.1),
        )
    }
}
