//! The loop. Takes what is queued, steps, commits everything of the batch in one transaction, and
//! only then performs and answers. While a commit is under way the next batch gathers by itself, so
//! the more there is to do, the more shares one commit.
//!
//! ```text
//! green: gather -> step -> commit -> perform, answer -> gather …
//!                            | fails: the world as before, callers are refused, news are held back
//! red:   answer what only reads, refuse the rest, try the held news again with back-off
//!                            | succeeds: green; what runs has a minute to be heard of before a deadline ends it
//! ```
//!
//! What always holds: nothing is performed or answered that is not committed; what a runner told is
//! never lost, because its spool keeps it until `forget`; nobody but this task changes the world.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use engine::State;
use engine::event::Event;
use schema::api::LogEntry;
use schema::id::{InstanceId, JobId};
use schema::status::JobStatus;
use schema::time::Timestamp;
use tokio::sync::{broadcast, watch};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::batch::{Batch, Task};
use super::degraded::Retry;
use super::going_back::GoingBack;
use super::intake::PreparedEvent;
use super::notices::Notices;
use super::planner;
use super::revisions::CommitRevisions;
use super::steps::Steps;
use super::world::World;
use super::{Health, LoopMetrics};
use crate::clock::Clock;
use crate::crash;
use crate::perform::Performer;
use crate::store::{Store, StoreError};

mod inbox;
mod input;

pub(super) use inbox::Inbox;
pub(super) use input::{TaskResult, TurnInput};

use input::TakenIn;

/// Most inputs of one batch: enough to share a commit among a burst, few enough that nobody waits
/// long for an answer.
pub(super) const BATCH_LIMIT: usize = 512;

/// How long a note that only people need (a job is STARTING, an action was performed) waits. As
/// long as the runner waits before it tells that a job runs: of a job that is over sooner only its
/// end is written.
const NOTE_DELAY: Duration = Duration::from_millis(50);

/// How long what is being performed may take to finish when the daemon stops; it is performed again
/// after the start.
const STOP_WAIT: Duration = Duration::from_secs(5);

/// Why the loop stopped although nobody asked it to.
#[derive(Debug, thiserror::Error)]
pub enum Fatal {
    /// Somebody else writes our rows.
    #[error("the database was changed by somebody else: {0}")]
    Foreign(String),
    /// The database holds what cannot be.
    #[error(transparent)]
    Store(StoreError),
}

/// The loop's own things.
pub(super) struct DriverLoop {
    pub(super) store: Store,
    pub(super) clock: Clock,
    pub(super) performer: Arc<Performer>,
    pub(super) planner: planner::Queue,
    pub(super) world: World,
    pub(super) inbox: Inbox,
    pub(super) log: broadcast::Sender<Arc<LogEntry>>,
    pub(super) revisions: CommitRevisions,
    pub(super) health: watch::Sender<Health>,
    pub(super) stop: CancellationToken,
    pub(super) numbers: LoopMetrics,
    pub(super) notices: Notices,
    /// To perform, once there is room. Bounded by the lanes (starts), by jobs in flight (stops,
    /// ends) and by instances (rollbacks).
    pub(super) waiting: VecDeque<Task>,
    pub(super) going_back: GoingBack,
    /// Starts about which the engine has to decide once more before they are performed.
    pub(super) late: Vec<Task>,
    /// Stops of jobs whose start is waiting or being performed: a stop that overtook its start
    /// would be lost.
    pub(super) deferred: Vec<Task>,
    /// Jobs whose rows do not say yet that they were handed over, and when they should.
    pub(super) jobs_noted: BTreeMap<JobId, Instant>,
    /// Actions that were performed; noted with the next commit.
    pub(super) performed: Vec<i64>,
    /// News of a commit that failed; at most one batch.
    pub(super) held: Vec<PreparedEvent>,
    pub(super) retry: Option<Retry>,
    /// The present of the last turn: what came due since is due, not missed.
    pub(super) turned_at: Timestamp,
    /// Look only, never apply: a setting of this run, whatever the last one's was.
    pub(super) observer: bool,
    /// Whether the instances of the last run know.
    pub(super) told_to_observe: bool,
    /// Instances that stood still at the start.
    pub(super) broken_at_start: Vec<InstanceId>,
    /// Instances whose rows say that they stand still, and that go on.
    pub(super) again_at_start: Vec<InstanceId>,
    /// Deadlines of dry runs, by the steady clock in milliseconds.
    pub(super) once_until: BTreeMap<JobId, i64>,
    /// Jumps of the clock.
    pub(super) steps: Steps,
    /// What stands still, for whoever watches.
    pub(super) broken: watch::Sender<Vec<String>>,
}

impl DriverLoop {
    /// Runs until it is stopped or must stop.
    pub(super) async fn run(mut self) -> Result<(), Fatal> {
        let once: Vec<JobId> =
            self.world.jobs.values().filter(|row| row.once).map(|row| row.id).collect();
        once.into_iter().for_each(|job| self.time_once(job));
        // What was due or had room before the start asks for no event.
        self.turn(Vec::new()).await?;
        while !self.stop.is_cancelled() {
            self.perform_waiting();
            self.go_back();
            let inputs = self.gather().await;
            if self.stop.is_cancelled() {
                break;
            }
            match &self.retry {
                Some(retry) if retry.at > Instant::now() => self.refuse(inputs),
                Some(_) => {
                    self.hear();
                    self.turn(inputs).await?;
                }
                None => self.turn(inputs).await?,
            }
        }
        self.finish().await
    }

    /// Waits until there is something to do, then takes what else is there, up to the limit.
    async fn gather(&mut self) -> Vec<TurnInput> {
        let red = self.retry.clone();
        let wake = self
            .world
            .timers
            .next()
            .into_iter()
            .chain(self.world.lanes.next_wake(self.turned_at))
            .chain(self.world.breakers.next_wake())
            .chain(self.next_once())
            .min();
        let performed = (!self.performed.is_empty()).then(|| Instant::now() + NOTE_DELAY);
        let due = self.next_rollback().into_iter().chain([self.steps.look_noted]);
        let note = self.jobs_noted.values().copied().chain(performed).chain(due).min();
        let mut inputs = Vec::new();
        let is_late = !self.late.is_empty() && !self.world.lanes.holds_applies();
        let held = red.is_none() && (is_late || !self.held.is_empty());
        let (wakes, notes) = (red.is_none() && wake.is_some(), red.is_none() && note.is_some());
        let wake = wake.unwrap_or(Timestamp::from_millis(i64::MAX));
        let note = note.unwrap_or_else(Instant::now);
        let again = red.as_ref().map_or_else(Instant::now, |retry| retry.at);
        tokio::select! {
            () = std::future::ready(()), if held => {}
            () = self.stop.cancelled() => {}
            input = self.inbox.next(red.is_none()) => inputs.extend(input),
            () = self.clock.sleep_until(wake), if wakes => {}
            () = tokio::time::sleep_until(note), if notes => {}
            () = tokio::time::sleep_until(again), if red.is_some() => {}
        }
        while inputs.len() < BATCH_LIMIT
            && let Some(input) = self.inbox.next_here(red.is_none())
        {
            inputs.push(input);
        }
        inputs
    }

    /// One batch: step, commit, then perform and answer.
    async fn turn(&mut self, inputs: Vec<TurnInput>) -> Result<(), Fatal> {
        let reading = self.clock.read();
        let mut batch = Batch::new(&self.world, reading.wall);
        self.turned_at = batch.now;
        let stepped_ms = self.tell_steps(&mut batch, reading);
        let TakenIn { news, answers, plans } = self.take_in(&mut batch, inputs);
        if !self.told_to_observe {
            self.tell_start(&mut batch);
        }
        // What was decided before applies were held is decided once more when they are not.
        if !self.world.lanes.holds_applies() {
            for task in std::mem::take(&mut self.late) {
                batch.regate(&mut self.world, task);
            }
        }
        self.mind_once(&mut batch);
        self.tick(&mut batch);
        batch.tick_breakers(&mut self.world);
        self.grant(&mut batch);
        let leaves = self.leaves(&news, batch.now);
        let at = Instant::now();
        let noted: Vec<JobId> =
            self.jobs_noted.iter().filter(|(_, due)| **due <= at).map(|(job, _)| *job).collect();
        noted.iter().for_each(|job| batch.write_job(*job));
        batch.performed.append(&mut self.performed);

        let commit = self.transaction(&mut batch);
        if !commit.is_empty() {
            crash::at(crash::BEFORE_COMMIT);
            if let Err(error) = self.store.commit(&commit).await {
                return self.fall_back(batch, news, answers, plans, error);
            }
            crash::at(crash::AFTER_COMMIT);
            self.stored(&commit);
        }
        self.go_on(batch, commit.events, stepped_ms);
        leaves.into_iter().for_each(|(leave, answer)| leave.give(answer));
        let answered = !answers.is_empty() || !plans.is_empty();
        for answer in answers.into_iter().chain(plans) {
            answer.give(Ok(()));
        }
        if answered {
            crash::at(crash::AFTER_ANSWER);
        }
        let instances = &self.world.instances;
        self.world.timers.compact(instances.len(), |at, id| {
            instances.get(&id).is_some_and(|kept| kept.wake == Some(at))
        });
        Ok(())
    }

    /// Steps all that came: first what was told, then what people ask for.
    fn take_in(&mut self, batch: &mut Batch, inputs: Vec<TurnInput>) -> TakenIn {
        let mut taken = TakenIn {
            news: std::mem::take(&mut self.held),
            answers: Vec::new(),
            plans: Vec::new(),
        };
        let mut calls = Vec::new();
        for input in inputs {
            match input {
                TurnInput::Call(call) => calls.push(call),
                TurnInput::Arrived(arrived) => taken.news.push(*arrived),
                TurnInput::Done(TaskResult::Over(arrived)) => {
                    self.started(arrived.job());
                    taken.news.push(*arrived);
                }
                TurnInput::Done(done) => self.note(done),
            }
        }
        for arrived in &taken.news {
            self.arrive(batch, arrived);
        }
        for call in calls {
            self.call(batch, *call, &mut taken.answers, &mut taken.plans);
        }
        taken
    }

    /// What the first turn has to say: whether this run only looks, and what the rows say of those
    /// that stand still, or go on.
    fn tell_start(&mut self, batch: &mut Batch) {
        let observer = self.observer;
        self.tell_all(batch, &Event::Observe(observer), |state| state.is_observer() != observer);
        for id in self.broken_at_start.clone() {
            batch.write_broken(&mut self.world, id);
        }
        batch.tell_all_held(&mut self.world);
        for id in self.again_at_start.clone() {
            batch.send(&mut self.world, id, Event::Tick, None);
        }
    }

    /// What a batch decided is stored: it is to be performed, and may be told.
    fn go_on(&mut self, mut batch: Batch, events: Vec<LogEntry>, stepped_ms: i64) {
        self.recovered();
        self.show_broken();
        self.told_to_observe = true;
        self.steps.settle(stepped_ms);
        self.jobs_noted.retain(|job, _| !batch.writes(*job));
        self.wait_on(std::mem::take(&mut batch.regated));
        self.world.starts.extend(batch.tasks.iter().filter_map(|task| match task {
            Task::Start(start, _) => Some((start.job, Arc::default())),
            _ => None,
        }));
        self.waiting.extend(batch.tasks);
        // In one go: each costs three calls, and a turn on a blocking thread costs more than those.
        if !batch.ended.is_empty() {
            self.waiting.push_back(Task::Forget(batch.ended));
        }
        for entry in events {
            // Nobody listening is no error.
            let _ = self.log.send(Arc::new(entry));
        }
    }

    /// Remembers what was performed, for the next commit.
    pub(super) fn note(&mut self, done: TaskResult) {
        match done {
            TaskResult::Handed(id) => {
                self.started(id);
                if let Some(job) = self.world.jobs.get_mut(&id)
                    && job.status == JobStatus::Pending
                {
                    job.status = JobStatus::Starting;
                    self.jobs_noted.insert(id, Instant::now() + NOTE_DELAY);
                }
            }
            TaskResult::Performed(action) => self.performed.extend(action),
            TaskResult::WentBack { rollback, is_settled } => {
                if !is_settled {
                    self.going_back.again(rollback);
                }
            }
            TaskResult::Unclaimed(start) => self.late.push(start),
            TaskResult::Over(arrived) => {
                self.started(arrived.job());
                self.held.push(*arrived);
            }
        }
    }

    /// The start of this job was performed, or never will be: its stops may follow.
    pub(super) fn started(&mut self, id: JobId) {
        self.world.starts.remove(&id);
        let (ready, deferred) = std::mem::take(&mut self.deferred)
            .into_iter()
            .partition(|task| matches!(task, Task::Stop(_, placed) if placed.job == id));
        self.deferred = deferred;
        self.waiting.extend::<Vec<Task>>(ready);
    }

    /// Wakes whoever is due.
    fn tick(&mut self, batch: &mut Batch) {
        while let Some((at, id)) = self.world.timers.pop_due(batch.now) {
            if self.world.instances.get(&id).is_some_and(|kept| kept.wake == Some(at)) {
                batch.send(&mut self.world, id, Event::Tick, None);
            }
        }
    }

    /// What concerns many instances at once.
    pub(super) fn tell_all(
        &mut self,
        batch: &mut Batch,
        event: &Event,
        concerned: impl Fn(&State) -> bool,
    ) {
        let ids: Vec<_> = self
            .world
            .instances
            .iter()
            .filter(|(_, kept)| concerned(&kept.state))
            .map(|(id, _)| *id)
            .collect();
        ids.into_iter().for_each(|id| batch.send(&mut self.world, id, event.clone(), None));
    }

    /// Gives out free places, first ready first served.
    fn grant(&mut self, batch: &mut Batch) {
        while let Some((id, kind)) = self.world.lanes.next(batch.now) {
            batch.send(&mut self.world, id, Event::Granted(kind), None);
        }
    }

    /// The daemon stops: what is under way may finish, and the last notes are written. Jobs go on.
    async fn finish(mut self) -> Result<(), Fatal> {
        // Nobody commits their plans any more.
        self.inbox.going_back.shutdown().await;
        let rest = async {
            while let Some(done) = self.inbox.performed().await {
                self.note(done);
            }
        };
        // What did not finish is performed again after the start.
        let _ = tokio::time::timeout(STOP_WAIT, rest).await;
        self.inbox.performing.shutdown().await;
        if self.retry.is_none() {
            let now = Instant::now();
            self.jobs_noted.values_mut().for_each(|due| *due = now);
            self.steps.look_noted = now;
            self.turn(Vec::new()).await?;
        }
        Ok(())
    }
}
