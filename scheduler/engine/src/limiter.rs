//! Who gets the next free place: the level above the instances. Three lanes (fetch, apply, getInfo)
//! that never wait for each other, each with a limit for the whole daemon and one per runtime.
//! Owned by the driver, which calls [`ConcurrencyLimiter::update`] with every state that it keeps,
//! asks [`ConcurrencyLimiter::next`], and sends the instance that is named `Event::Granted`; after
//! that step the instance no longer wants that place, whether it used it or not.
//!
//! A free place goes to the runtime that holds the fewest, in it to the service that holds the
//! fewest, in it to whoever is ready longest. And no runtime takes the last ones: unless it has a
//! limit of its own, a runtime gets another place only while it holds less than [`SHARE`] times as
//! many as are free. So one that hangs, with its places held for ever, ends at three quarters of
//! them, two at three sevenths each, and there is always room for those that work.
//!
//! It is an index and nothing else: everything in it follows from the states, so a restart rebuilds
//! it by calling [`ConcurrencyLimiter::update`] with each; those who are ready since one moment are
//! served in the order of these calls. Every operation is O(log n).

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use schema::id::{InstanceId, JobId, RuntimeName, ServiceId};
use schema::status::JobKind;
use schema::time::Timestamp;

use crate::state::State;

mod blocked;
mod lane;
mod limits;
mod line;
mod slots;

pub use blocked::{Blocked, HOLDERS_SHOWN, Holder};
pub use limits::{Limit, Limits};

use lane::Lane;
use line::{Line, Waiter};
use slots::{Hold, InstanceSlots, Want};

/// How many times as many places as are free a runtime may hold when it takes another one. Three,
/// so that a runtime that is alone has three quarters of all.
pub const SHARE: usize = 3;

/// Places a second for what was due before the daemon started. Quick enough that 10,000 instances
/// are through in under two minutes, slow enough that the daemon stays mostly free for what comes
/// up now.
pub const PILED_UP_PER_SECOND: i64 = 100;

/// Places given out at once from what was due before the daemon started, before the pace sets in: a
/// small installation notices no delay.
pub const PILED_UP_AT_ONCE: i64 = 50;

const PACE: Duration = Duration::from_millis(1_000 / PILED_UP_PER_SECOND.unsigned_abs());
/// How far [`PILED_UP_AT_ONCE`] places run ahead of the pace.
const AHEAD: Duration = Duration::from_millis(
    1_000 * PILED_UP_AT_ONCE.unsigned_abs() / PILED_UP_PER_SECOND.unsigned_abs(),
);

/// The lanes of all runtimes.
#[derive(Debug)]
pub struct ConcurrencyLimiter {
    started_at: Timestamp,
    /// Whether no apply gets a place for the time being.
    holds_applies: bool,
    limits: [Limit; 3],
    /// When the next piled-up one would be due if they came evenly; [`PILED_UP_AT_ONCE`] may run
    /// ahead of it.
    paced_until: Option<Timestamp>,
    names: BTreeMap<RuntimeName, usize>,
    lanes: [Vec<Lane>; 3],
    held: [usize; 3],
    /// The next ones of each runtime that is below its limit, the runtime with the fewest places
    /// first: those that piled up, and fresh ones.
    heads: [[BTreeSet<Head>; 2]; 3],
    entries: BTreeMap<InstanceId, InstanceSlots>,
    /// How often somebody came to wait.
    turns: u64,
}

/// Places of the runtime, and who would get the next one.
type Head = (usize, Waiter);

const KINDS: [JobKind; 3] = [JobKind::Apply, JobKind::Fetch, JobKind::GetInfo];
const APPLY: usize = 0;

fn index(kind: JobKind) -> usize {
    match kind {
        JobKind::Apply => APPLY,
        JobKind::Fetch => 1,
        JobKind::GetInfo => 2,
    }
}

const PILED_UP: usize = 0;
const FRESH: usize = 1;

impl ConcurrencyLimiter {
    /// Empty lanes; `started_at` is when the daemon started: what was due before is let through at
    /// a bounded pace.
    pub fn new(limits: Limits, started_at: Timestamp) -> Self {
        Self {
            started_at,
            holds_applies: false,
            limits: [limits.apply, limits.fetch, limits.get_info],
            paced_until: None,
            names: BTreeMap::new(),
            lanes: [Vec::new(), Vec::new(), Vec::new()],
            held: [0; 3],
            heads: Default::default(),
            entries: BTreeMap::new(),
            turns: 0,
        }
    }

    /// Takes over what this instance of that service wants and holds. To be called with every state
    /// that is kept: after each step, and for each instance at the start.
    pub fn update(&mut self, state: &State, service: ServiceId) {
        let mut entry = InstanceSlots {
            service: Some(service),
            is_deleted: state.is_deleted(),
            ..InstanceSlots::default()
        };
        if let Some(desired) = state.desired() {
            let runtime = self.runtime(&desired.runtime);
            for kind in KINDS {
                entry.wants[index(kind)] =
                    state.wants(kind).map(|since| Want { runtime, since, turn: 0 });
            }
            entry.cap =
                desired.max_concurrency.filter(|_| !state.is_deleted()).map(|cap| (runtime, cap));
        }
        for job in state.jobs_in_flight() {
            let runtime = self.runtime(&job.runtime);
            entry.holds[index(job.kind)] =
                Some(Hold { runtime, since: job.decided_at, job: job.id });
        }
        // Where it ran, wherever the instance is now, and whether or not it is there at all.
        entry.given_up = state
            .unsettled_apply()
            .map(|(job, runtime)| self.given_up(job, runtime, state.standing().since));
        self.replace(state.instance(), entry);
    }

    /// An instance that asks for nothing any more and whose jobs run on: it keeps the places of
    /// these, and that of an apply which may still run.
    pub fn leave<'a>(
        &mut self,
        instance: InstanceId,
        service: ServiceId,
        jobs: impl IntoIterator<Item = (JobKind, &'a RuntimeName, Timestamp, JobId)>,
        may_run: Option<(JobId, &RuntimeName, Timestamp)>,
    ) {
        let mut entry = InstanceSlots { service: Some(service), ..InstanceSlots::default() };
        entry.given_up = may_run.map(|(job, runtime, since)| self.given_up(job, runtime, since));
        for (kind, runtime, since, job) in jobs {
            entry.holds[index(kind)] = Some(Hold { runtime: self.runtime(runtime), since, job });
        }
        self.replace(instance, entry);
    }

    /// Forgets an instance that is gone.
    pub fn forget(&mut self, instance: InstanceId) {
        self.replace(instance, InstanceSlots::default());
        self.entries.remove(&instance);
    }

    /// Who gets a place now: send it `Event::Granted` with this kind, then
    /// [`ConcurrencyLimiter::update`] with the state that comes out. `None` when nobody waits,
    /// or no one who waits has room yet.
    pub fn next(&mut self, now: Timestamp) -> Option<(InstanceId, JobKind)> {
        self.take_time(now);
        let pace_open = self.pace_opens_at().is_none_or(|at| at <= now);
        for (lane, kind) in KINDS.into_iter().enumerate().filter(|(lane, _)| !self.is_shut(*lane)) {
            let heads = &self.heads[lane];
            let piled_up = heads[PILED_UP].first().filter(|_| pace_open);
            let Some(&(held, (since, _, instance))) =
                piled_up.into_iter().chain(heads[FRESH].first()).min()
            else {
                continue;
            };
            // Who holds the fewest is first: when its share is full, so is everybody's.
            if !self.has_share(lane, held) {
                continue;
            }
            if since < self.started_at {
                self.paced_until =
                    Some(self.paced_until.map_or(now, |until| until.max(now)).plus(PACE));
            }
            return Some((instance, kind));
        }
        None
    }

    /// When [`ConcurrencyLimiter::next`] should be asked again although nothing happened: what
    /// piled up is let through by time. `None` when only events can change its answer; always
    /// later than `now`, once [`ConcurrencyLimiter::next`] has said `None`.
    pub fn next_wake(&self, now: Timestamp) -> Option<Timestamp> {
        let waits = |lane: usize| {
            self.heads[lane][PILED_UP].first().is_some_and(|(held, _)| self.has_share(lane, *held))
        };
        self.pace_opens_at().filter(|at| {
            *at > now && (0..KINDS.len()).any(|lane| !self.is_shut(lane) && waits(lane))
        })
    }

    /// From now on so many applies of this runtime run at a time, none perhaps; `None` = as many as
    /// may otherwise. As [`crate::breaker::FleetBreaker::limit`] has it.
    pub fn bound_applies(&mut self, runtime: &RuntimeName, limit: Option<u32>) {
        let runtime = self.runtime(runtime);
        self.lanes[APPLY][runtime].bound = limit;
        self.show(APPLY, runtime);
    }

    /// From now on no apply gets a place, or they do again.
    pub fn hold_applies(&mut self, holds: bool) {
        self.holds_applies = holds;
    }

    /// Whether no apply gets a place.
    pub fn holds_applies(&self) -> bool {
        self.holds_applies
    }

    fn is_shut(&self, lane: usize) -> bool {
        lane == APPLY && self.holds_applies
    }

    /// Jobs in flight in this lane, over all runtimes.
    pub fn in_flight(&self, kind: JobKind) -> usize {
        self.held[index(kind)]
    }

    /// Instances that wait for a place in this lane, over all runtimes.
    pub fn waiting(&self, kind: JobKind) -> usize {
        self.lanes[index(kind)].iter().flat_map(|lane| &lane.lines).map(Line::len).sum()
    }

    fn free(&self, lane: usize) -> usize {
        (self.limits[lane].total.max(1) as usize).saturating_sub(self.held[lane])
    }

    /// Whether a runtime that holds so many places may have another one of those that are free.
    fn has_share(&self, lane: usize, held: usize) -> bool {
        let free = self.free(lane);
        free > 0 && (self.limits[lane].per_runtime.is_some() || held < SHARE * free)
    }

    fn given_up(&mut self, job: JobId, runtime: &RuntimeName, since: Timestamp) -> Hold {
        Hold { runtime: self.runtime(runtime), since, job }
    }

    /// When the clock is set back, what is wanted from now on is new, and the pace does not wait
    /// for the old time.
    fn take_time(&mut self, now: Timestamp) {
        let latest = now.plus(AHEAD).plus(PACE);
        self.paced_until = self.paced_until.map(|until| until.min(latest));
        if now < self.started_at {
            self.started_at = now;
            for lane in 0..KINDS.len() {
                for runtime in 0..self.lanes[lane].len() {
                    let waiters: Vec<_> =
                        self.lanes[lane][runtime].lines.iter_mut().flat_map(Line::drain).collect();
                    waiters
                        .into_iter()
                        .for_each(|(service, waiter)| self.enqueue(lane, runtime, service, waiter));
                    self.show(lane, runtime);
                }
            }
        }
    }

    fn pace_opens_at(&self) -> Option<Timestamp> {
        self.paced_until.map(|until| until.minus(AHEAD))
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

    /// The limit that keeps a runtime from another place, if one does, with the number of places
    /// that count against it.
    fn full(&self, lane: usize, runtime: usize) -> Option<(u32, usize)> {
        let this = &self.lanes[lane][runtime];
        let held = this.holders.len();
        let configured =
            this.caps.first_key_value().map(|(cap, _)| (*cap, held + this.given_up.len()));
        let ours = self.limits[lane].per_runtime.map(|limit| (limit, held));
        configured
            .into_iter()
            .chain(ours)
            .map(|(limit, held)| (limit.max(1), held))
            .chain(this.bound.map(|limit| (limit, held)))
            .filter(|(limit, held)| *held >= *limit as usize)
            .min()
    }

    fn enqueue(&mut self, lane: usize, runtime: usize, service: ServiceId, waiter: Waiter) {
        let line = if waiter.0 < self.started_at { PILED_UP } else { FRESH };
        let this = &mut self.lanes[lane][runtime];
        let held = this.held_by.get(&service).copied().unwrap_or(0);
        this.lines[line].push(service, waiter, held);
    }

    fn replace(&mut self, instance: InstanceId, mut new: InstanceSlots) {
        let old = self.entries.get(&instance).copied().unwrap_or_default();
        for (want, before) in new.wants.iter_mut().zip(old.wants) {
            let Some(want) = want else { continue };
            let same = before.filter(|old| (old.runtime, old.since) == (want.runtime, want.since));
            want.turn = same.map_or_else(|| self.turns + 1, |old| old.turn);
            self.turns = self.turns.max(want.turn);
        }
        self.entries.insert(instance, new);
        if old == new {
            return;
        }
        let service =
            |entry: &InstanceSlots| entry.service.unwrap_or(ServiceId::from_bytes([0; 16]));
        let (before, after) = (service(&old), service(&new));
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
        if let Some(hold) = old.given_up {
            self.lanes[APPLY][hold.runtime].given_up.remove(&(hold.since, instance));
        }
        if let Some(hold) = new.given_up {
            self.lanes[APPLY][hold.runtime].given_up.insert((hold.since, instance));
        }
        for lane in 0..KINDS.len() {
            if let Some(want) = old.wants[lane] {
                self.lanes[lane][want.runtime].unqueue(before, want.waiter(instance));
            }
            if let Some(hold) = old.holds[lane] {
                self.lanes[lane][hold.runtime].release(before, (hold.since, instance));
                self.held[lane] -= 1;
            }
            if let Some(hold) = new.holds[lane] {
                self.lanes[lane][hold.runtime].hold(after, (hold.since, instance));
                self.held[lane] += 1;
            }
            if let Some(want) = new.wants[lane] {
                self.enqueue(lane, want.runtime, after, want.waiter(instance));
            }
            let touched = [&old, &new].map(|entry| entry.wants[lane].map(|want| want.runtime));
            let released = [
                old.holds[lane].map(|hold| hold.runtime),
                new.holds[lane].map(|hold| hold.runtime),
            ];
            let capped = [&old, &new].into_iter().filter(|_| lane == APPLY);
            let capped = capped.flat_map(|entry| {
                [entry.cap.map(|cap| cap.0), entry.given_up.map(|hold| hold.runtime)]
            });
            for runtime in touched.into_iter().chain(released).chain(capped).flatten() {
                self.show(lane, runtime);
            }
        }
    }

    /// Puts the right ones of this lane among the heads.
    fn show(&mut self, lane: usize, runtime: usize) {
        let room = self.full(lane, runtime).is_none();
        let this = &mut self.lanes[lane][runtime];
        let held = this.holders.len();
        for line in [PILED_UP, FRESH] {
            let head = this.lines[line].first().filter(|_| room).map(|waiter| (held, waiter));
            if head != this.shown[line] {
                if let Some(old) = std::mem::replace(&mut this.shown[line], head) {
                    self.heads[lane][line].remove(&old);
                }
                self.heads[lane][line].extend(head);
            }
        }
    }
}
