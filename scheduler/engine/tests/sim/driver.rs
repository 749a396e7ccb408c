//! A model of the driver and of everything between it and the world: commits state and actions
//! together, performs afterwards, crashes in between, starts again, relists; a network that loses,
//! doubles, delays and reorders.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use engine::action::{Action, StartJob};
use engine::breaker::FleetBreaker;
use engine::desired::Desired;
use engine::event::{Event, Outcome, Wait};
use engine::limiter::{ConcurrencyLimiter, Limit, Limits};
use engine::{
    GoBack, Start, State, Surroundings, explain, go_back_now, next_wake, start_now, step, unbegun,
    void_start,
};
use schema::id::{BlobId, InstanceId, JobId, ReleaseId, RuntimeName, ServiceId};
use schema::status::{ApprovalKind, JobKind, Status};
use schema::time::Timestamp;

mod breakers;
mod calm;
mod clock;
mod commit;
mod network;
mod orders;
mod recover;
mod watch;

use crate::oracle::Oracle;
use crate::outputs;
use crate::people;
use crate::random::Random;
use crate::world::{Fate, Process, Target, World, destroys_nothing};
use watch::{Watcher, watches};

/// Wall time at true time 0.
const START_MS: i64 = 1_782_900_000_000;
/// The last two are on the runtime that hangs.
const SERVICES: usize = 9;
const SICK: usize = 7;
/// True time within which everything converges once the faults have ended: some apply windows open
/// once an hour, some approvals expire, some grace periods take ten minutes.
const CALM_BOUND_MS: i64 = 6 * 3_600_000;
const TRACED: usize = 80;

enum Happening {
    Deliver(usize, Box<Event>),
    /// A start that waited for its turn is handed over.
    HandOver(usize, Box<StartJob>),
    /// A rollback that waited for its turn is carried out.
    GoBack(usize, Box<Action>),
    /// A process ends by itself.
    End(JobId),
    /// An immortal is gone at last.
    Bury(JobId),
    /// The runner tells what became of a process.
    Tell(JobId),
    Relist,
    Whim,
    Drift,
    Release,
    Jump,
    /// An instance is told that the applies of its runtime are held, or not, if it is news.
    TellHeld(usize),
    /// The clock is set back by more than anybody would wait for.
    SetBack,
    Help,
    /// Somebody who watches looks: at which instance, in which turn, for which generation.
    Watch(usize, u64, u64),
}

pub(crate) struct Driver {
    seed: u64,
    random: Random,
    true_ms: i64,
    offset_ms: i64,
    shapes: Vec<Desired>,
    releases: u64,
    ids: BTreeMap<InstanceId, usize>,
    /// The database.
    states: Vec<State>,
    pending: Vec<(usize, Action)>,
    breakers: BTreeMap<RuntimeName, FleetBreaker>,
    /// Committed and not handed over; lost in a crash like all memory.
    waiting: BTreeSet<JobId>,
    /// What is handled now is one commit: no crash comes in between.
    whole: bool,
    /// How far the wall clock was off when the daemon last looked.
    known_offset_ms: i64,
    /// Whether this run of the daemon only looks.
    observer: bool,
    /// Memory, lost in a crash.
    lanes: ConcurrencyLimiter,
    wakes: BTreeSet<(Timestamp, usize)>,
    wake_of: Vec<Option<Timestamp>>,
    told: Vec<Option<String>>,
    crashed: bool,
    queue: BTreeMap<(i64, u64), Happening>,
    queued: u64,
    world: World,
    /// Who watches each instance, where somebody does.
    watchers: Vec<Watcher>,
    oracle: Oracle,
    calm: bool,
    steps: u64,
    trace: VecDeque<(Timestamp, usize, Event, Status)>,
}

fn limits() -> Limits {
    Limits {
        fetch: Limit { total: 8, per_runtime: None },
        apply: Limit { total: 8, per_runtime: None },
        get_info: Limit { total: 2, per_runtime: Some(1) },
    }
}

fn service_of(instance: usize) -> ServiceId {
    ServiceId::derive(&[&(instance / 2).to_le_bytes()])
}

fn max_concurrency(runtime: &str) -> Option<u32> {
    match runtime {
        "one" => Some(1),
        "two" => Some(2),
        _ => None,
    }
}

impl Driver {
    pub(crate) fn new(seed: u64) -> Self {
        let mut random = Random::new(seed);
        let watches = watches(seed);
        let now = Timestamp::from_millis(START_MS);
        let mut shapes: Vec<Desired> = (0..SERVICES * 2)
            .map(|at| people::configure(&mut random, at % 2 == 1, watches))
            .collect();
        for shape in &mut shapes {
            shape.max_concurrency = max_concurrency(shape.runtime.as_str());
        }
        for shape in &mut shapes[SICK * 2..] {
            (shape.runtime, shape.max_concurrency, shape.apply.timeout) =
                ("sick".parse().unwrap(), None, None);
        }
        let states: Vec<State> = (0..shapes.len())
            .map(|at| {
                State::new(InstanceId::derive(&[&seed.to_le_bytes(), &at.to_le_bytes()]), now)
            })
            .collect();
        let mut driver = Self {
            seed,
            random,
            true_ms: 0,
            offset_ms: 0,
            releases: 0,
            ids: states.iter().enumerate().map(|(at, state)| (state.instance(), at)).collect(),
            pending: Vec::new(),
            breakers: BTreeMap::new(),
            waiting: BTreeSet::new(),
            whole: false,
            known_offset_ms: 0,
            observer: false,
            lanes: ConcurrencyLimiter::new(limits(), now),
            wakes: BTreeSet::new(),
            wake_of: vec![None; shapes.len()],
            told: vec![None; shapes.len()],
            crashed: false,
            queue: BTreeMap::new(),
            queued: 0,
            world: World { targets: vec![Target::default(); shapes.len()], ..World::default() },
            watchers: vec![Watcher::default(); shapes.len()],
            oracle: Oracle::new(shapes.len()),
            calm: false,
            steps: 0,
            trace: VecDeque::new(),
            states,
            shapes,
        };
        for service in 0..SERVICES {
            driver.release(service, None);
        }
        for happening in [
            Happening::Relist,
            Happening::Whim,
            Happening::Drift,
            Happening::Release,
            Happening::Jump,
        ] {
            driver.after(1_000, happening);
        }
        driver
    }

    /// Runs that many steps with faults, then calm until all is converged; returns the steps taken.
    pub(crate) fn run(&mut self, steps: u64) -> u64 {
        while self.steps < steps {
            self.turn();
        }
        self.calm_down();
        let deadline = self.true_ms + CALM_BOUND_MS;
        while let Some(late) = self.unconverged() {
            assert!(
                self.true_ms < deadline,
                "calm for {CALM_BOUND_MS} ms and not converged: {}",
                self.describe(late)
            );
            self.turn();
        }
        self.steps
    }

    pub(crate) fn digest(&self) -> BlobId {
        BlobId::of(serde_json::to_string(&self.states).unwrap().as_bytes())
    }

    fn wall(&self) -> Timestamp {
        Timestamp::from_millis(START_MS + self.true_ms + self.offset_ms)
    }

    fn after(&mut self, ms: i64, happening: Happening) {
        self.queued += 1;
        self.queue.insert((self.true_ms + ms, self.queued), happening);
    }

    /// The next thing that happens, and everything that has room afterwards.
    fn turn(&mut self) {
        let wake = self
            .wakes
            .first()
            .map(|(at, _)| *at)
            .into_iter()
            .chain(self.lanes.next_wake(self.wall()))
            .chain(self.breaker_wake())
            .min();
        let wake_ms = wake.map(|at| at.as_millis() - START_MS - self.offset_ms);
        let (&(at_ms, number), _) = self.queue.first_key_value().unwrap();
        if wake_ms.is_some_and(|wake_ms| wake_ms <= at_ms) {
            self.true_ms = self.true_ms.max(wake_ms.unwrap_or(0));
            if let Some((_, instance)) =
                self.wakes.first().copied().filter(|(at, _)| *at <= self.wall())
            {
                self.handle(instance, Event::Tick);
            }
        } else {
            self.true_ms = self.true_ms.max(at_ms);
            let happening = self.queue.remove(&(at_ms, number)).unwrap();
            self.happen(happening);
        }
        self.tick_breakers();
        while !self.crashed {
            let now = self.wall();
            let Some((instance, kind)) = self.lanes.next(now) else { break };
            let instance = self.ids[&instance];
            if kind == JobKind::Apply {
                self.check_bound(instance);
            }
            self.handle(instance, Event::Granted(kind));
            assert!(
                self.crashed || self.states[instance].wants(kind).is_none(),
                "a grant is used or declined, never kept"
            );
        }
        if self.crashed {
            self.restart();
        }
    }

    fn happen(&mut self, happening: Happening) {
        let again_ms = self.random.between(1_000, 60_000);
        match happening {
            Happening::Deliver(instance, event) => self.handle(instance, *event),
            Happening::HandOver(instance, start) => self.hand_over(instance, *start),
            Happening::GoBack(instance, action) => self.go_back(instance, *action),
            Happening::End(job) => {
                let now = self.wall();
                self.world.end(job, now);
                self.tell_later(job);
            }
            Happening::Bury(job) => {
                self.world.bury(job);
                self.tell_later(job);
            }
            Happening::Tell(job) => self.tell(job),
            Happening::Watch(instance, turn, generation) => self.watch(instance, turn, generation),
            Happening::Relist => {
                self.relist();
                self.oracle.check_deadlines(&self.states, self.true_ms);
                self.after(20_000, Happening::Relist);
            }
            Happening::Whim if !self.calm => {
                let instance = self.random.below(self.states.len() as u64) as usize;
                if let Some(event) = people::whim(&self.states[instance], &mut self.random) {
                    self.ask(instance, event);
                }
                self.after(again_ms / 4, Happening::Whim);
            }
            Happening::Drift if !self.calm => {
                let instance = self.random.below(self.states.len() as u64) as usize;
                self.world.drift(instance, &mut self.random);
                self.after(again_ms * 3, Happening::Drift);
            }
            Happening::Release if !self.calm => {
                let service = self.random.below(SERVICES as u64) as usize;
                let only = self.random.one_in(4).then_some(service * 2 + 1);
                if self.random.one_in(3) {
                    self.recompile(service)
                } else {
                    self.release(service, only)
                }
                self.after(again_ms * 5, Happening::Release);
            }
            Happening::Jump if !self.calm => {
                self.jump();
                self.after(again_ms * 20, Happening::Jump);
            }
            Happening::TellHeld(instance) => self.tell_held(instance),
            Happening::SetBack => self.step_clock(-24 * 3_600_000),
            Happening::Help => {
                self.help();
                self.after(10_000, Happening::Help);
            }
            Happening::Whim | Happening::Drift | Happening::Release | Happening::Jump => {}
        }
    }

    /// People do what `explain` tells them to.
    fn help(&mut self) {
        for instance in 0..self.states.len() {
            let told =
                explain(&self.states[instance], &self.lanes, self.wall(), Surroundings::default());
            let codes: Vec<&str> = told.causes.iter().map(|cause| cause.code.as_str()).collect();
            if let Some(event) = people::help(&self.states[instance], &codes, &mut self.random) {
                self.ask(instance, event);
            }
        }
    }
}
