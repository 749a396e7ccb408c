//! Start and recovery, which are the same: the world as the database has it, and everything that was committed and is not
//! known to be performed, to be performed again. What piled up while the daemon was down is spread out by the engine's
//! lanes.

use std::collections::{BTreeSet, HashMap, HashSet, VecDeque};
use std::sync::Arc;

use engine::lanes::Limits;
use schema::id::{InstanceId, JobId};
use schema::status::{JobKind, JobStatus};
use schema::time::Timestamp;

use super::batch::{Task, is_over};
use super::broken::{Stopped, sound};
use super::calls;
use super::intake::Arrived;
use super::words::Words;
use super::world::{Kept, Names, World};
use crate::runner::{End, Runner};
use crate::spools;
use crate::store::{JobRow, LoadedInstance, Store, StoreError};

/// Where the loop goes on.
pub(super) struct Recovered {
    pub(super) world: World,
    pub(super) tasks: VecDeque<Task>,
    /// Starts that were decided and handed to nobody: the engine decides once more, as everything may have changed.
    pub(super) unstarted: Vec<Task>,
    /// Ends that are known at once.
    pub(super) ended: Vec<Arrived>,
    /// Jobs that the runner has and whose rows do not say so.
    pub(super) handed: BTreeSet<JobId>,
    /// Instances that stand still, and whose rows have to say so.
    pub(super) broken: Vec<InstanceId>,
    /// Instances whose rows say that they stand still, and that go on.
    pub(super) again: Vec<InstanceId>,
    /// Instances with an apply of which nobody can say whether it runs, because its spool directory is lost.
    pub(super) lost: Vec<InstanceId>,
}

/// Reads what the last run left, and asks the runner what became of its jobs.
pub(super) async fn recover(
    store: &Store,
    runner: &dyn Runner,
    limits: Limits,
    observer: bool,
    now: Timestamp,
) -> Result<Recovered, StoreError> {
    let mut instances = Vec::new();
    let mut broken = Vec::new();
    let mut going_on = Vec::new();
    for loaded in store.load_instances().await? {
        match usable(loaded) {
            Ok((kept, was_broken)) => {
                if was_broken {
                    going_on.push(kept.state.instance());
                }
                instances.push(kept);
            }
            Err((loaded, why)) => {
                let id = InstanceId::of(loaded.service.0, loaded.channel.0);
                tracing::error!(instance = %id, why, "the state of an instance cannot be used; the instance stands still");
                let desired = store.desired(id).await?;
                broken.push(Stopped::unreadable(*loaded, why, desired, observer, now));
            }
        }
    }
    let mut jobs = store.unfinished_jobs().await?;
    // Jobs that were given up and whose end still matters are over in their rows.
    for job in instances.iter().flat_map(|kept| kept.state.given_up()) {
        if jobs.iter().all(|row| row.id != job) {
            jobs.extend(store.job_row(job).await?);
        }
    }
    let pending = store.pending_actions().await?;
    let lost_up_to = spools::lost_up_to(store).await?;
    let mut world = World::load(instances, jobs.clone(), store.counters().await?, limits, now);
    let broken_ids: Vec<InstanceId> = broken.iter().map(|stopped| stopped.names.instance()).collect();
    broken.into_iter().for_each(|stopped| world.put_broken(stopped));

    let names: HashMap<InstanceId, Arc<Names>> = jobs
        .iter()
        .map(|job| job.instance)
        .chain(pending.iter().map(|action| action.instance))
        .filter_map(|id| Some((id, world.names(id)?.clone())))
        .collect();
    let kept = world.instances.iter().filter(|(_, kept)| !is_over(&kept.state)).map(|(id, _)| *id);
    runner.retain_instances(kept.chain(broken_ids.iter().copied()).collect()).await;
    let (gone_out_of_sight, jobs) = out_of_sight(jobs, runner, lost_up_to);
    let never_started: BTreeSet<JobId> = runner.recover(jobs.iter().map(|job| job.id).collect()).await.into_iter().collect();
    let mut unstarted = Vec::new();
    let mut ended = Vec::new();
    let mut handed = BTreeSet::new();
    let lost = gone_out_of_sight.iter().filter(|job| job.kind == JobKind::Apply && !job.once).map(|job| job.instance).collect();
    // One that was given up before stays what it is.
    ended.extend(gone_out_of_sight.into_iter().filter(|job| job.ended_at.is_none()).map(|job| unseen(job.id)));
    for job in jobs {
        let is_stopped = is_stopped(&world, &job);
        match (never_started.contains(&job.id), job.start, names.get(&job.instance)) {
            (false, ..) if job.status == JobStatus::Pending => drop(handed.insert(job.id)),
            (false, ..) => {}
            // Whoever asked for that got it: it was not started, and is not.
            (true, Some(_), _) if is_stopped => {
                ended.push(never(job.id, "it was stopped before it was started"));
            }
            (true, Some(start), Some(names)) => {
                world.starts.insert(job.id, Arc::default());
                unstarted.push(Task::Start(start, names.clone()));
            }
            // Given up, and now it is known that it never ran.
            (true, ..) => {
                ended.push(never(job.id, "it was given up before it was started"));
            }
        }
    }
    let again = pending.into_iter().filter_map(|action| {
        let names = names.get(&action.instance).cloned();
        calls::again(action, names)
    });
    let tasks: VecDeque<Task> = again.collect();
    if !tasks.is_empty() || !unstarted.is_empty() {
        tracing::info!(tasks = tasks.len() + unstarted.len(), "taking up what the last run left");
    }
    for job in &handed {
        world.jobs.entry(*job).and_modify(|row| row.status = JobStatus::Starting);
    }
    Ok(Recovered { world, tasks, unstarted, ended, handed, broken: broken_ids, again: going_on, lost })
}

/// An instance with a state that can be gone on with, and whether its row says that it stands still.
fn usable(mut loaded: LoadedInstance) -> Result<(Kept, bool), (Box<LoadedInstance>, String)> {
    let state = match std::mem::replace(&mut loaded.state, Err(String::new())) {
        Ok(state) => state,
        Err(why) => return Err((Box::new(loaded), format!("its row cannot be read: {why}"))),
    };
    // A damaged row may break what checks it.
    if let Err(why) = sound(&state) {
        loaded.stored = serde_json::to_string(&state).unwrap_or_default();
        return Err((Box::new(loaded), format!("its row holds what cannot be: {why}")));
    }
    let LoadedInstance { application, service, channel, runtime, revision, is_broken, .. } = loaded;
    let names = Arc::new(Names { application, service, channel });
    Ok((Kept { names, runtime, state, revision, wake: None }, is_broken))
}

/// Those of these jobs that were decided for a spool directory that is not there any more, and the others.
fn out_of_sight(jobs: Vec<JobRow>, runner: &dyn Runner, lost_up_to: i64) -> (Vec<JobRow>, Vec<JobRow>) {
    let known: HashSet<JobId> = if lost_up_to == 0 {
        HashSet::new()
    } else {
        runner.known_elsewhere(&jobs.iter().map(|job| job.id).collect::<Vec<_>>()).into_iter().collect()
    };
    jobs.into_iter().partition(|job| job.seq <= lost_up_to && !known.contains(&job.id))
}

/// The end of a job of which nobody can say anything.
fn unseen(job: JobId) -> Arrived {
    let why = "the spool directory that it was to run in is lost or another daemon's, so nobody can say whether it runs".to_owned();
    Arrived::Ended { job, end: End::Unknown { why, report: None }, gone: false, words: Words::default() }
}

/// The end of a job that is known never to have run.
pub(super) fn never(job: JobId, why: &str) -> Arrived {
    let end = End::NotStarted { why: why.to_owned(), surroundings: true };
    Arrived::Ended { job, end, gone: true, words: Words::default() }
}

fn is_stopped(world: &World, row: &JobRow) -> bool {
    let flying = world.instances.get(&row.instance).and_then(|kept| kept.state.job(row.id));
    row.stop.is_some() || flying.is_some_and(|job| job.stop.is_some())
}
