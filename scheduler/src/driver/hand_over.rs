//! From what is committed to what is performed. A start is handed to its runner only while every
//! gate is as open as when it was decided: it may have waited here, or the daemon was down
//! meanwhile. The loop looks when it takes a start up, and whatever shuts a gate after that
//! withdraws the start unless its runner has it already ([`StartClaim`]).
//!
//! ```text
//! committed ─▶ waiting ─▶ holds? ─▶ performing ─▶ claimed: the runner has it
//!                 ▲         │ no        │ withdrawn, or its time has passed
//!                 │         ▼           ▼
//!                 └─holds─ late: the engine withdraws or confirms it, in a commit
//! ```
//!
//! A runner that needs a while until the command runs asks once more, right before
//! ([`RunnerEvent::Asks`](crate::runner::RunnerEvent)): it is given leave when the turn in which it
//! asks is stored, by the same rules. One that is refused leave has not started.

use std::sync::Arc;

use engine::Start;
use engine::action::StartJob;
use engine::event::Event;
use schema::id::{InstanceId, JobId};
use schema::time::Timestamp;

use super::batch::{Task, is_over};
use super::intake::PreparedEvent;
use super::recover::never;
use super::run::{DriverLoop, TaskResult};
use super::words::Words;
use super::world::InstanceEntry;
use crate::perform::{Performer, StartClaim, StartOutcome};
use crate::runner::{End, Leave, LeaveRefusal};

/// Tasks that are performed at a time. Each is one short call of the runner; more would only queue
/// up there. Rollbacks, which wait for the planner, are not among them.
const PERFORM_LIMIT: usize = 32;

/// Why a start is over that a person or a deadline stopped.
const STOPPED: &str = "it was stopped before it was started";

/// What a start needs besides its words.
struct Turn {
    claim: Arc<StartClaim>,
    until: Option<Timestamp>,
}

impl DriverLoop {
    pub(super) fn perform_waiting(&mut self) {
        while self.inbox.performing.len() < PERFORM_LIMIT {
            let Some(task) = self.waiting.pop_front() else { return };
            if let Task::Rollback(rollback) = task {
                self.going_back.add(rollback);
                continue;
            }
            if matches!(&task, Task::Stop(_, placed) if self.world.starts.contains_key(&placed.job))
            {
                self.deferred.push(task);
                continue;
            }
            if matches!(&task, Task::ForgetInstance(names) if self.is_wanted(names.instance())) {
                continue;
            }
            let turn = match &task {
                Task::Start(start, _) => match self.look_at(start) {
                    Ok(turn) => Some(turn),
                    Err(waits_on) => {
                        if waits_on {
                            self.late.push(task);
                        }
                        continue;
                    }
                },
                _ => None,
            };
            self.inbox.performing.spawn(perform(self.performer.clone(), task, turn));
        }
    }

    /// Whether an instance that was over is one again, or is not known to be over: then it keeps
    /// what it has.
    fn is_wanted(&self, id: InstanceId) -> bool {
        self.world.broken.contains_key(&id)
            || self.world.instances.get(&id).is_some_and(|kept| !is_over(&kept.state))
    }

    /// Whether this start may be performed now. `Err` says whether the engine has to decide about
    /// it once more.
    fn look_at(&mut self, start: &StartJob) -> Result<Turn, bool> {
        let job = start.job;
        let Some(claim) = self.world.starts.get(&job).cloned() else { return Err(false) };
        if claim.is_withdrawn() {
            self.started(job);
            return Err(false);
        }
        let row = self.world.jobs.get(&job);
        let kept = row.and_then(|row| self.world.instances.get(&row.instance));
        let is_once = row.is_some_and(|row| row.once && row.ended_at.is_none());
        let now = self.clock.now();
        let why = match kept.map_or(Start::Over, |kept| engine::start_now(&kept.state, job, now)) {
            Start::Holds { until } => return Ok(Turn { claim, until }),
            Start::Void { .. } => return Err(true),
            _ if is_once => return Ok(Turn { claim, until: None }),
            Start::Stopped => STOPPED,
            Start::Over => "it was given up before it was started",
        };
        claim.withdraw();
        self.started(job);
        self.held.push(never(job, why));
        Err(false)
    }

    /// What runners are told that ask for leave, once the turn is stored.
    pub(super) fn leaves(
        &self,
        news: &[PreparedEvent],
        now: Timestamp,
    ) -> Vec<(Leave, Result<(), LeaveRefusal>)> {
        let asks = news.iter().filter_map(|arrived| match arrived {
            PreparedEvent::Asks { job, leave } => Some((leave.clone(), self.may_run(*job, now))),
            _ => None,
        });
        asks.collect()
    }

    /// Whether the command of a job that its runner has may be let run.
    fn may_run(&self, job: JobId, now: Timestamp) -> Result<(), LeaveRefusal> {
        let refused = |why: &str| LeaveRefusal { why: why.to_owned(), is_over: false };
        let over =
            || LeaveRefusal { is_over: true, ..refused("it was given up before it was started") };
        let row =
            self.world.jobs.get(&job).filter(|row| row.ended_at.is_none()).ok_or_else(over)?;
        if row.once {
            return if row.stop.is_none() { Ok(()) } else { Err(refused(STOPPED)) };
        }
        if self.world.broken.contains_key(&row.instance) {
            return Err(refused("its instance stood still before it was started"));
        }
        let kept = self.world.instances.get(&row.instance).ok_or_else(over)?;
        // Its wrapper may have said so before its place shows it: there is no start to take back.
        if kept.state.job(job).is_some_and(|job| job.started_at.is_some()) {
            return Ok(());
        }
        match engine::start_now(&kept.state, job, now) {
            Start::Holds { .. } => Ok(()),
            Start::Stopped => Err(refused(STOPPED)),
            Start::Void { why } => Err(refused(why)),
            Start::Over => Err(over()),
        }
    }

    /// Is stored: starts that waited are either withdrawn, or wait for their turn again.
    pub(super) fn wait_on(&mut self, regated: Vec<Task>) {
        for task in regated {
            let Task::Start(start, names) = &task else { continue };
            let kept = self.world.instances.get(&names.instance());
            let is_wanted = kept.is_some_and(|kept| kept.state.job(start.job).is_some());
            match self
                .world
                .starts
                .get(&start.job)
                .filter(|claim| is_wanted && claim.is_withdrawn())
            {
                Some(claim) => {
                    claim.restore();
                    self.waiting.push_back(task);
                }
                None => {
                    if self.world.broken.contains_key(&names.instance()) {
                        // Whoever starts the instance anew knows that it never ran.
                        self.held.push(never(
                            start.job,
                            "its instance stood still before it was started",
                        ));
                    }
                    self.started(start.job);
                }
            }
        }
    }
}

/// What the engine is told of an apply that ends as if it had never been decided: its runner took
/// it back, or it never ran for a reason that may pass, and nobody would start it now because a
/// gate has shut.
pub(super) fn never_began(
    end: &End,
    kept: Option<&InstanceEntry>,
    job: JobId,
    now: Timestamp,
) -> Option<Event> {
    let state = &kept?.state;
    let (is_it, taken_back) = match end {
        End::TakenBack { why } => (engine::unbegun(state) == Some(job), Some(why.clone())),
        End::NotStarted { surroundings: true, .. } | End::InputLost { .. } => {
            (engine::void_start(state, now) == Some(job), None)
        }
        End::NotStarted { .. } | End::Reported(_) | End::Unknown { .. } => return None,
    };
    is_it.then_some(Event::Unstarted { job, taken_back })
}

async fn perform(performer: Arc<Performer>, task: Task, turn: Option<Turn>) -> TaskResult {
    match task {
        Task::Start(start, names) => {
            let Turn { claim, until } =
                turn.unwrap_or_else(|| Turn { claim: Arc::default(), until: None });
            match performer.start(&start, &names, &claim, until).await {
                StartOutcome::Handed => TaskResult::Handed(start.job),
                StartOutcome::Over(end) => TaskResult::Over(Box::new(PreparedEvent::Ended {
                    job: start.job,
                    end,
                    gone: true,
                    words: Words::default(),
                })),
                StartOutcome::Unclaimed => TaskResult::Unclaimed(Task::Start(start, names)),
            }
        }
        Task::Stop(action, placed) => {
            performer.stop(&placed);
            TaskResult::Performed(Some(action))
        }
        // The planner's, see `going_back`.
        Task::Rollback(rollback) => TaskResult::WentBack { rollback, is_settled: false },
        Task::Forget(jobs) => {
            performer.forget(&jobs).await;
            TaskResult::Performed(None)
        }
        Task::ForgetInstance(names) => {
            performer.forget_instance(&names).await;
            TaskResult::Performed(None)
        }
    }
}
