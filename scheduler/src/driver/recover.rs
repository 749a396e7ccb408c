//! Start and recovery, which are the same: the world as the database has it, and everything that was committed and is not
//! known to be performed, to be performed again. What piled up while the daemon was down is spread out by the engine's
//! lanes.

use std::collections::{BTreeSet, HashMap, HashSet, VecDeque};
use std::sync::Arc;

use engine::lanes::Limits;
use schema::id::{InstanceId, JobId};
use schema::status::JobStatus;
use schema::time::Timestamp;

use super::batch::Task;
use super::calls;
use super::intake::Arrived;
use super::words::Words;
use super::world::{Names, World};
use crate::runner::{End, Runner};
use crate::store::{JobRow, Store, StoreError};

/// Where the loop goes on.
pub(super) struct Recovered {
    pub(super) world: World,
    pub(super) tasks: VecDeque<Task>,
    /// Ends that are known at once.
    pub(super) ended: Vec<Arrived>,
    /// Jobs that the runner has and whose rows do not say so.
    pub(super) handed: BTreeSet<JobId>,
}

impl Recovered {
    /// The jobs among the tasks that are to be started.
    pub(super) fn starting(&self) -> HashSet<JobId> {
        let start = |task: &Task| match task {
            Task::Start(start, _) => Some(start.job),
            _ => None,
        };
        self.tasks.iter().filter_map(start).collect()
    }
}

/// Reads what the last run left, and asks the runner what became of its jobs.
pub(super) async fn recover(store: &Store, runner: &dyn Runner, limits: Limits, now: Timestamp) -> Result<Recovered, StoreError> {
    let instances = store.load_instances().await?;
    for loaded in &instances {
        loaded.state.check().map_err(|broken| StoreError::Corrupt(format!("the state of {}: {broken}", loaded.state.instance())))?;
    }
    let mut jobs = store.unfinished_jobs().await?;
    // Jobs that were given up and whose end still matters are over in their rows.
    for job in instances.iter().filter_map(|loaded| loaded.state.unsettled()) {
        if jobs.iter().all(|row| row.id != job) {
            jobs.extend(store.job_row(job).await?);
        }
    }
    let pending = store.pending_actions().await?;
    let mut world = World::load(instances, jobs.clone(), store.counters().await?, limits, now);

    let names: HashMap<InstanceId, Arc<Names>> = jobs
        .iter()
        .map(|job| job.instance)
        .chain(pending.iter().map(|action| action.instance))
        .filter_map(|id| Some((id, world.instances.get(&id)?.names.clone())))
        .collect();
    let never_started: BTreeSet<JobId> = runner.recover(jobs.iter().map(|job| job.id).collect()).await.into_iter().collect();
    let mut tasks = VecDeque::new();
    let mut ended = Vec::new();
    let mut handed = BTreeSet::new();
    for job in jobs {
        let is_stopped = is_stopped(&world, &job);
        match (never_started.contains(&job.id), job.start, names.get(&job.instance)) {
            (false, ..) if job.status == JobStatus::Pending => drop(handed.insert(job.id)),
            (false, ..) => {}
            // Whoever asked for that got it: it was not started, and is not.
            (true, Some(_), _) if is_stopped => {
                ended.push(never(job.id, "it was stopped before it was started"));
            }
            (true, Some(start), Some(names)) => tasks.push_back(Task::Start(start, names.clone())),
            // Given up, and now it is known that it never ran.
            (true, ..) => {
                ended.push(never(job.id, "it was given up before it was started"));
            }
        }
    }
    tasks.extend(pending.into_iter().filter_map(|action| {
        let names = names.get(&action.instance).cloned();
        calls::again(action, names)
    }));
    if !tasks.is_empty() {
        tracing::info!(tasks = tasks.len(), "taking up what the last run left");
    }
    for job in &handed {
        world.jobs.entry(*job).and_modify(|row| row.status = JobStatus::Starting);
    }
    Ok(Recovered { world, tasks, ended, handed })
}

/// The end of a job that is known never to have run.
fn never(job: JobId, why: &str) -> Arrived {
    let end = End::NotStarted { why: why.to_owned(), surroundings: true };
    Arrived::Ended { job, end, gone: true, words: Words::default() }
}

fn is_stopped(world: &World, row: &JobRow) -> bool {
    world.instances.get(&row.instance).and_then(|kept| kept.state.job(row.id)).is_some_and(|job| job.stop.is_some())
}
