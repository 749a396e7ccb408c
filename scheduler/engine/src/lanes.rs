//! Who gets the next free place: the level above the instances. Three lanes (fetch, apply, getInfo) that never wait for
//! each other, each with a limit per runtime and one for the whole daemon; first ready, first served. Owned by the
//! driver, which calls [`Lanes::update`] with every state that it keeps, asks [`Lanes::next`], and sends the instance
//! that is named `Event::Granted`; after that step the instance no longer wants that place, whether it used it or not.
//!
//! It is an index and nothing else: everything in it follows from the states, so a restart rebuilds it by calling
//! [`Lanes::update`] with each. Every operation is O(log n).

use std::collections::{BTreeMap, BTreeSet};

use schema::id::{InstanceId, JobId, RuntimeName};
use schema::status::JobKind;
use schema::time::Timestamp;

use crate::state::State;

/// Places a second for what was due before the daemon started. Quick enough that 10,000 instances are through in under
/// two minutes, slow enough that the daemon stays mostly free for what comes up now.
pub const PILED_UP_PER_SECOND: i64 = 100;

/// Places given out at once from what was due before the daemon started, before the pace sets in: a small installation
/// notices no delay.
pub const PILED_UP_AT_ONCE: i64 = 50;

const PACE_MS: i64 = 1_000 / PILED_UP_PER_SECOND;

/// How many jobs of one kind may be in flight.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limit {
    /// In the whole daemon, at least 1.
    pub total: u32,
    /// In one runtime, at least 1; `None` = no limit of the daemon's own. For apply the runtime's `maxConcurrency`
    /// counts as well.
    pub per_runtime: Option<u32>,
}

/// The limits of the three lanes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// For fetches.
    pub fetch: Limit,
    /// For applies.
    pub apply: Limit,
    /// For getInfos.
    pub get_info: Limit,
}

/// Who has a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Holder {
    /// The instance.
    pub instance: InstanceId,
    /// Its job.
    pub job: JobId,
    /// Since when.
    pub since: Timestamp,
}

/// Why a place is not free yet, for explain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Blocked {
    /// As many jobs of this kind are in flight in the runtime as may be.
    Runtime {
        /// The runtime.
        runtime: RuntimeName,
        /// Its limit.
        limit: u32,
        /// The first [`HOLDERS_SHOWN`] of those who have a place, longest first.
        holders: Vec<Holder>,
        /// How many have a place.
        held: usize,
        /// How many are served before this instance.
        ahead: usize,
    },
    /// As many jobs of this kind are in flight in the whole daemon as may be.
    Daemon {
        /// The limit.
        limit: u32,
    },
    /// There is room, and what piled up while the daemon was down is let through at a bounded pace.
    Pace,
    /// There is room; it is a matter of moments.
    NotBlocked,
}

/// Most holders that [`Lanes::blocked`] names.
pub const HOLDERS_SHOWN: usize = 5;

/// The lanes of all runtimes.
#[derive(Debug)]
pub struct Lanes {
    started_at: Timestamp,
    limits: [Limit; 3],
    /// When the next piled-up one would be due if they came evenly; [`PILED_UP_AT_ONCE`] may run ahead of it.
    paced_until: Timestamp,
    names: BTreeMap<RuntimeName, usize>,
    lanes: [Vec<Lane>; 3],
    held: [usize; 3],
    /// The first in each lane that has room: piled up and fresh ones apart.
    heads: [BTreeSet<(Timestamp, InstanceId)>; 3],
    entries: BTreeMap<InstanceId, Entry>,
}

/// One kind of job in one runtime.
#[derive(Debug, Default)]
struct Lane {
    queue: BTreeSet<(Timestamp, InstanceId)>,
    holders: BTreeSet<(Timestamp, InstanceId)>,
    /// The limits that instances know for this runtime; the least counts while a change of config is on its way.
    caps: BTreeMap<u32, usize>,
    shown: [Option<(Timestamp, InstanceId)>; 2],
}

/// What an instance wants and holds, by lane.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Entry {
    wants: [Option<(usize, Timestamp)>; 3],
    holds: [Option<(usize, Timestamp, JobId)>; 3],
    cap: Option<(usize, u32)>,
}

const KINDS: [JobKind; 3] = [JobKind::Apply, JobKind::Fetch, JobKind::GetInfo];
const APPLY: usize = 0;

fn index(kind: JobKind) -> usize {
    match kind {
        JobKind::Apply => APPLY,
        JobKind::Fetch => 1,
        JobKind::GetInfo => 2,
    }
}

impl Lanes {
    /// Empty lanes; `started_at` is when the daemon started: what was due before is let through at a bounded pace.
    pub fn new(limits: Limits, started_at: Timestamp) -> Self {
        Self {
            started_at,
            limits: [limits.apply, limits.fetch, limits.get_info],
            paced_until: Timestamp::from_millis(i64::MIN),
            names: BTreeMap::new(),
            lanes: [Vec::new(), Vec::new(), Vec::new()],
            held: [0; 3],
            heads: [BTreeSet::new(), BTreeSet::new(), BTreeSet::new()],
            entries: BTreeMap::new(),
        }
    }

    /// Takes over what this instance wants and holds. To be called with every state that is kept: after each step, and
    /// for each instance at the start.
    pub fn update(&mut self, state: &State) {
        let mut entry = Entry::default();
        if let Some(desired) = state.desired() {
            let runtime = self.runtime(&desired.runtime);
            for kind in KINDS {
                entry.wants[index(kind)] = state.wants(kind).map(|since| (runtime, since));
            }
            entry.cap = desired.max_concurrency.filter(|_| !state.is_deleted()).map(|cap| (runtime, cap));
        }
        for job in state.jobs_in_flight() {
            entry.holds[index(job.kind)] = Some((self.runtime(&job.runtime), job.decided_at, job.id));
        }
        self.replace(state.instance(), entry);
    }

    /// Forgets an instance that is gone.
    pub fn forget(&mut self, instance: InstanceId) {
        self.replace(instance, Entry::default());
        self.entries.remove(&instance);
    }

    /// Who gets a place now: send it `Event::Granted` with this kind, then [`Lanes::update`] with the state that comes
    /// out. `None` when nobody waits, or no one who waits has room yet.
    pub fn next(&mut self, now: Timestamp) -> Option<(InstanceId, JobKind)> {
        self.take_time(now);
        let pace_open = self.pace_opens_at().is_none_or(|at| at <= now);
        for (lane, kind) in KINDS.into_iter().enumerate() {
            if self.held[lane] >= self.limits[lane].total.max(1) as usize {
                continue;
            }
            let heads = &self.heads[lane];
            let fresh = || heads.range((self.started_at, InstanceId::from_bytes([0; 16]))..).next();
            let Some(&(since, instance)) = (if pace_open { heads.first() } else { fresh() }) else { continue };
            if since < self.started_at {
                self.paced_until = self.paced_until.max(now).plus_ms(PACE_MS);
            }
            return Some((instance, kind));
        }
        None
    }

    /// When [`Lanes::next`] should be asked again although nothing happened: what piled up is let through by time.
    /// `None` when only events can change its answer; always later than `now`, once [`Lanes::next`] has said `None`.
    pub fn next_wake(&self, now: Timestamp) -> Option<Timestamp> {
        let has_room = |lane: &usize| self.held[*lane] < self.limits[*lane].total.max(1) as usize;
        let piled_up = |lane: usize| self.heads[lane].first().is_some_and(|head| head.0 < self.started_at);
        let waits = (0..KINDS.len()).filter(has_room).any(piled_up);
        self.pace_opens_at().filter(|at| waits && *at > now)
    }

    /// Why this instance has no place in the lane of this kind yet.
    pub fn blocked(&self, instance: InstanceId, kind: JobKind, now: Timestamp) -> Blocked {
        let lane_index = index(kind);
        let Some((runtime, since)) = self.entries.get(&instance).and_then(|entry| entry.wants[lane_index]) else {
            return Blocked::NotBlocked;
        };
        let lane = &self.lanes[lane_index][runtime];
        if let Some(limit) = self.cap(lane_index, runtime).filter(|limit| lane.holders.len() >= *limit as usize) {
            let holders = lane.holders.iter().take(HOLDERS_SHOWN).filter_map(|(_, holder)| self.holder(*holder, lane_index)).collect();
            let ahead = lane.queue.range(..(since, instance)).count();
            let runtime = self.names.iter().find(|(_, at)| **at == runtime).map(|(name, _)| name.clone());
            return runtime.map_or(Blocked::NotBlocked, |runtime| Blocked::Runtime {
                runtime,
                limit,
                holders,
                held: lane.holders.len(),
                ahead,
            });
        }
        let limit = self.limits[lane_index].total.max(1);
        if self.held[lane_index] >= limit as usize {
            return Blocked::Daemon { limit };
        }
        if since < self.started_at && self.pace_opens_at().is_some_and(|at| at > now) { Blocked::Pace } else { Blocked::NotBlocked }
    }

    /// Jobs in flight in this lane, over all runtimes.
    pub fn in_flight(&self, kind: JobKind) -> usize {
        self.held[index(kind)]
    }

    /// Instances that wait for a place in this lane, over all runtimes.
    pub fn waiting(&self, kind: JobKind) -> usize {
        self.lanes[index(kind)].iter().map(|lane| lane.queue.len()).sum()
    }

    fn holder(&self, instance: InstanceId, lane: usize) -> Option<Holder> {
        let (_, since, job) = self.entries.get(&instance)?.holds[lane]?;
        Some(Holder { instance, job, since })
    }

    /// When the clock is set back, what is wanted from now on is new, and the pace does not wait for the old time.
    fn take_time(&mut self, now: Timestamp) {
        self.paced_until = self.paced_until.min(now.plus_ms(PACE_MS * (PILED_UP_AT_ONCE + 1)));
        if now < self.started_at {
            self.started_at = now;
            for lane in 0..KINDS.len() {
                (0..self.lanes[lane].len()).for_each(|runtime| self.show(lane, runtime));
            }
        }
    }

    fn pace_opens_at(&self) -> Option<Timestamp> {
        (self.paced_until.as_millis() != i64::MIN).then(|| self.paced_until.plus_ms(-PACE_MS * PILED_UP_AT_ONCE))
    }

    fn runtime(&mut self, name: &RuntimeName) -> usize {
        if let Some(at) = self.names.get(name) {
            return *at;
        }
        let at = self.names.len();
        self.names.insert(name.clone(), at);
        for lanes in &mut self.lanes {
            lanes.push(Lane::default());
        }
        at
    }

    fn cap(&self, lane: usize, runtime: usize) -> Option<u32> {
        let configured = self.lanes[lane][runtime].caps.first_key_value().map(|(cap, _)| *cap);
        let ours = self.limits[lane].per_runtime;
        configured.into_iter().chain(ours).min().map(|cap| cap.max(1))
    }

    fn replace(&mut self, instance: InstanceId, new: Entry) {
        let old = self.entries.insert(instance, new).unwrap_or_default();
        if old == new {
            return;
        }
        if let Some((runtime, cap)) = old.cap {
            let caps = &mut self.lanes[APPLY][runtime].caps;
            if let Some(count) = caps.get_mut(&cap) {
                *count -= 1;
                if *count == 0 {
                    caps.remove(&cap);
                }
            }
        }
        if let Some((runtime, cap)) = new.cap {
            *self.lanes[APPLY][runtime].caps.entry(cap).or_default() += 1;
        }
        for lane in 0..KINDS.len() {
            if let Some((runtime, since)) = old.wants[lane] {
                self.lanes[lane][runtime].queue.remove(&(since, instance));
            }
            if let Some((runtime, since)) = new.wants[lane] {
                self.lanes[lane][runtime].queue.insert((since, instance));
            }
            if let Some((runtime, since, _)) = old.holds[lane] {
                self.lanes[lane][runtime].holders.remove(&(since, instance));
                self.held[lane] -= 1;
            }
            if let Some((runtime, since, _)) = new.holds[lane] {
                self.lanes[lane][runtime].holders.insert((since, instance));
                self.held[lane] += 1;
            }
            let touched = [old.wants[lane].map(|want| want.0), new.wants[lane].map(|want| want.0)];
            let released = [old.holds[lane].map(|hold| hold.0), new.holds[lane].map(|hold| hold.0)];
            let capped = if lane == APPLY { [old.cap.map(|cap| cap.0), new.cap.map(|cap| cap.0)] } else { [None, None] };
            for runtime in touched.into_iter().chain(released).chain(capped).flatten() {
                self.show(lane, runtime);
            }
        }
    }

    /// Puts the right ones of this lane among the heads.
    fn show(&mut self, lane: usize, runtime: usize) {
        let cap = self.cap(lane, runtime);
        let this = &mut self.lanes[lane][runtime];
        let room = cap.is_none_or(|cap| this.holders.len() < cap as usize);
        let fresh_from = (self.started_at, InstanceId::from_bytes([0; 16]));
        let piled_up = this.queue.first().filter(|head| **head < fresh_from).filter(|_| room).copied();
        let fresh = this.queue.range(fresh_from..).next().filter(|_| room).copied();
        let shown = [piled_up, fresh];
        if shown != this.shown {
            for head in this.shown.iter().flatten() {
                self.heads[lane].remove(head);
            }
            self.heads[lane].extend(shown.iter().flatten());
            this.shown = shown;
        }
    }
}
