//! What is decided in one go: steps of the engine, and everything that has to be committed with
//! them. If the commit fails, [`Batch::undo`] makes the world as it was, so that nothing has
//! happened.

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::sync::Arc;

use engine::action::{Action, LogLine, StartJob, StopReason};
use engine::breaker::FleetBreaker;
use engine::event::Event;
use engine::state::State;
use schema::api::LogEntry;
use schema::id::{InstanceId, JobId, RuntimeName};
use schema::log_kind::LogKind;
use schema::status::JobStatus;
use schema::target::PlacedJob;
use schema::time::Timestamp;

use super::Caller;
use super::breakers::RuntimeClue;
use super::broken::{Stopped, guarded};
use super::going_back::Rollback;
use super::outcome::Ending;
use super::shown::{Shown, dependents, upstream_of};
use super::world::{InstanceEntry, World};
use crate::names::InstanceNames;
use crate::perform::StartClaim;
use crate::store::{Change, Counters, JobRow, PendingAction};

mod ends;
mod jobs;

/// Something to perform once the batch is committed.
#[derive(Debug, Clone)]
pub(super) enum Task {
    Start(Box<StartJob>, Arc<InstanceNames>),
    /// Stop a job; the number is the pending action's.
    Stop(i64, PlacedJob),
    /// Make a release that goes back.
    Rollback(Rollback),
    /// Tell the runner that the ends of these jobs are stored.
    Forget(Vec<PlacedJob>),
    /// Tell the runner that this instance is deleted for good.
    ForgetInstance(Arc<InstanceNames>),
}

#[derive(Debug)]
pub(super) struct Batch {
    pub(super) now: Timestamp,
    counters: Counters,
    pub(super) before: HashMap<InstanceId, Option<InstanceEntry>>,
    /// Instances that this batch stopped, wrote as standing still, and started anew.
    pub(super) stopped: Vec<InstanceId>,
    pub(super) written: Vec<InstanceId>,
    pub(super) mended: Vec<Stopped>,
    /// What held the applies of these runtimes.
    pub(super) breakers_before: BTreeMap<RuntimeName, FleetBreaker>,
    jobs_before: HashMap<JobId, Option<JobRow>>,
    /// Jobs to write.
    jobs: BTreeSet<JobId>,
    /// Jobs that are over, out of the world.
    over: HashMap<JobId, JobRow>,
    pub(super) changes: Vec<Change>,
    actions: Vec<PendingAction>,
    pub(super) performed: Vec<i64>,
    /// Rollbacks about which this batch stores what came of them.
    pub(super) settled: Vec<i64>,
    events: Vec<LogEntry>,
    pub(super) tasks: Vec<Task>,
    /// Jobs whose ends this batch stores, or that are over already.
    pub(super) ended: Vec<PlacedJob>,
    /// Starts that nobody may hand over from now on.
    withdrawn: Vec<Arc<StartClaim>>,
    /// Starts that waited and go on waiting once this is stored.
    pub(super) regated: Vec<Task>,
}

impl Batch {
    /// An empty one.
    pub(super) fn new(world: &World, now: Timestamp) -> Self {
        Self {
            now,
            counters: world.counters,
            before: HashMap::new(),
            stopped: Vec::new(),
            written: Vec::new(),
            mended: Vec::new(),
            breakers_before: BTreeMap::new(),
            jobs_before: HashMap::new(),
            jobs: BTreeSet::new(),
            over: HashMap::new(),
            changes: Vec::new(),
            actions: Vec::new(),
            performed: Vec::new(),
            settled: Vec::new(),
            events: Vec::new(),
            tasks: Vec::new(),
            ended: Vec::new(),
            withdrawn: Vec::new(),
            regated: Vec::new(),
        }
    }

    /// Sends an event to an instance, and what follows from it to the others of its service.
    /// `caller` is the person behind it. An instance that the engine leaves in a state that
    /// must not be stops there, and it alone.
    pub(super) fn send(
        &mut self,
        world: &mut World,
        id: InstanceId,
        event: Event,
        caller: Option<&Caller>,
    ) {
        let mut queue = VecDeque::from([(id, event)]);
        // Ends: an Upstream event is sent only when what a channel shows to others changed, and the
        // graph of channels has no cycle.
        while let Some((id, event)) = queue.pop_front() {
            self.step(world, id, event, caller, &mut queue);
        }
    }

    fn step(
        &mut self,
        world: &mut World,
        id: InstanceId,
        event: Event,
        caller: Option<&Caller>,
        queue: &mut VecDeque<(InstanceId, Event)>,
    ) {
        let Some(mut kept) = world.instances.remove(&id) else { return world.note(id, event) };
        let mut sound = None;
        match self.before.entry(id) {
            Entry::Vacant(before) => {
                before.insert(Some(kept.clone()));
            }
            Entry::Occupied(_) => sound = Some(kept.state.clone()),
        }
        let is_desired = matches!(event, Event::Desired(_));
        let shown = Shown::by(&kept.state);
        let flying: Vec<JobId> = kept.state.jobs_in_flight().map(|job| job.id).collect();

        let was_over = is_over(&kept.state);
        let clue = RuntimeClue::of(&event, &kept.state);
        let now = self.now;
        let state = *kept.state;
        let (state, actions) = match guarded(move || engine::step(state, event, now)) {
            Ok(stepped) => stepped,
            Err(why) => {
                // As it was before this event, which is lost: what the runner tells it tells again.
                let before =
                    || self.before.get(&id).and_then(Option::as_ref).map(|kept| kept.state.clone());
                kept.state = sound.or_else(before).expect("it was copied before the step");
                return self.stop_instance(world, kept, why, queue);
            }
        };
        kept.state = Box::new(state);
        if is_over(&kept.state) && !was_over {
            self.tasks.push(Task::ForgetInstance(kept.names.clone()));
        }
        if let Some(desired) = kept.state.desired() {
            kept.runtime = desired.runtime.clone();
        }
        kept.wake = engine::next_wake(&kept.state);
        if let Some(at) = kept.wake {
            world.timers.set(at, id);
        }
        world.lanes.update(&kept.state, kept.names.service.0);

        let is_withdrawn = |job: &JobId| {
            actions
                .iter()
                .any(|action| matches!(action, Action::Withdraw { job: at, .. } if at == job))
        };
        for job in
            flying.into_iter().filter(|job| kept.state.job(*job).is_none() && !is_withdrawn(job))
        {
            self.give_up(world, job);
        }
        queue.extend(
            self.withdraw_void_start(world, &kept.state)
                .map(|job| (id, Event::Unstarted { job, taken_back: None })),
        );
        self.changes.extend(shown.changes(&kept.state, kept.names.channel.0, now));
        if shown.tells_others(&kept.state) {
            queue.extend(dependents(world, &kept.names, Some(&kept.state)));
        }
        if is_desired {
            queue.extend(upstream_of(world, &kept).map(|event| (id, event)));
        }
        for action in actions {
            self.action(world, &kept, action, caller);
        }
        queue.extend(self.mind_runtime(world, &kept, clue));
        world.instances.insert(id, kept);
    }

    /// Takes back the start of a job for which a gate has shut before it was handed over.
    fn withdraw_void_start(&mut self, world: &World, state: &State) -> Option<JobId> {
        let job = engine::void_start(state, self.now)?;
        let claim = world.starts.get(&job).filter(|claim| claim.withdraw())?;
        self.withdrawn.push(claim.clone());
        Some(job)
    }

    /// The engine waits no longer for this job. If nobody told its end, its row says so; what comes
    /// later is still taken in.
    fn give_up(&mut self, world: &mut World, id: JobId) {
        let now = self.now;
        self.change_job(world, id, |job| {
            job.status = JobStatus::Unknown;
            job.ended_at = Some(now);
            job.message = "nobody told how it ended within its deadline".to_owned();
            job.start = None;
        });
    }

    pub(super) fn action(
        &mut self,
        world: &mut World,
        kept: &InstanceEntry,
        action: Action,
        caller: Option<&Caller>,
    ) {
        match action {
            Action::Start(start) => {
                self.start(world, &kept.names, kept.runtime.clone(), start, false);
            }
            Action::Stop { job, why } => self.stop(world, kept.state.instance(), job, why),
            Action::Withdraw { job, why } => {
                self.end_job(world, job, &Ending::withdrawn(why, self.now))
            }
            Action::Rollback { from, to } => {
                let id = self.pending(world, kept.state.instance(), action);
                self.tasks.push(Task::Rollback(Rollback {
                    action: id,
                    names: kept.names.clone(),
                    from,
                    to,
                }));
            }
            Action::Log(LogLine { kind, actor, message, data }) => {
                let data = data
                    .into_iter()
                    .map(|(key, value)| (key, value.into()))
                    .collect::<serde_json::Map<_, _>>();
                let origin = caller.filter(|_| actor.is_some()).map(|caller| caller.origin.clone());
                self.log(world, Some(&kept.names), kind, (actor, origin), message, data.into());
            }
        }
    }

    /// Nobody has this start; it is withdrawn, or waits on.
    pub(super) fn regate(&mut self, world: &mut World, task: Task) {
        let Task::Start(start, names) = &task else { return };
        let job = start.job;
        if let Some(claim) = world.starts.get(&job).filter(|claim| claim.withdraw()).cloned() {
            self.withdrawn.push(claim);
            let unstarted = Event::Unstarted { job, taken_back: None };
            self.send(world, names.instance(), unstarted, None);
        }
        self.regated.push(task);
    }

    /// Has a job stopped.
    pub(super) fn stop(
        &mut self,
        world: &mut World,
        instance: InstanceId,
        job: JobId,
        why: StopReason,
    ) {
        let id = self.pending(world, instance, Action::Stop { job, why });
        self.tasks.push(Task::Stop(id, world.placed(job)));
    }

    fn pending(&mut self, world: &mut World, instance: InstanceId, action: Action) -> i64 {
        world.counters.action += 1;
        self.actions.push(PendingAction {
            id: world.counters.action,
            instance,
            action,
            created_at: self.now,
        });
        world.counters.action
    }

    /// Writes a line into the log.
    pub(super) fn log(
        &mut self,
        world: &mut World,
        names: Option<&InstanceNames>,
        kind: LogKind,
        (actor, origin): (Option<String>, Option<String>),
        message: String,
        data: serde_json::Value,
    ) {
        world.counters.event += 1;
        self.events.push(LogEntry {
            seq: world.counters.event.unsigned_abs(),
            at: self.now,
            kind: kind.to_string(),
            actor,
            origin,
            application: names.map(|names| names.application.1.clone()),
            service: names.map(|names| names.service.1.clone()),
            channel: names.map(|names| names.channel.1.clone()),
            message,
            data,
        });
    }

    /// Writes an entry that is complete but for its number and time.
    pub(super) fn log_entry(&mut self, world: &mut World, mut entry: LogEntry) {
        world.counters.event += 1;
        entry.seq = world.counters.event.unsigned_abs();
        entry.at = self.now;
        self.events.push(entry);
    }

    /// Takes in an instance that was not there.
    pub(super) fn add_instance(&mut self, world: &mut World, kept: InstanceEntry) {
        self.before.insert(kept.state.instance(), None);
        world.put(kept);
    }
}

/// Whether an instance is deleted for good: nothing of it runs, or may.
pub(super) fn is_over(state: &State) -> bool {
    state.is_deleted()
        && state.jobs_in_flight().next().is_none()
        && state.given_up().next().is_none()
}
