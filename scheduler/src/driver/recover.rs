//! Start and recovery, which are the same: the world as the database has it, and everything that
//! was committed and is not known to be performed, to be performed again. What piled up while the
//! daemon was down is spread out by the engine's lanes.

use std::collections::{BTreeSet, HashMap, HashSet, VecDeque};
use std::sync::Arc;

use engine::limiter::Limits;
use schema::id::{InstanceId, JobId};
use schema::status::{JobKind, JobStatus};
use schema::target::PlacedJob;
use schema::time::Timestamp;

use super::batch::{Task, is_over};
use super::breakers::Breakers;
use super::broken::{Stopped, sound};
use super::calls;
use super::intake::PreparedEvent;
use super::world::{InstanceEntry, World};
use crate::names::InstanceNames;
use crate::runner::registry::Runners;
use crate::spools;
use crate::store::{JobRow, LoadedInstance, PendingAction, Store, StoreError, Unreadable};

mod unseen;

pub(super) use unseen::never;
use unseen::{OUT_OF_SIGHT, VANISHED, Whereabouts, out_of_sight, unknown, unseen, whereabouts};

/// Where the loop goes on.
pub(super) struct Recovered {
    pub(super) world: World,
    pub(super) tasks: VecDeque<Task>,
    /// Starts that were decided and handed to nobody: the engine decides once more, as everything
    /// may have changed.
    pub(super) unstarted: Vec<Task>,
    /// Ends that are known at once.
    pub(super) ended: Vec<PreparedEvent>,
    /// Jobs that the runner has and whose rows do not say so.
    pub(super) handed: BTreeSet<JobId>,
    /// Instances that stand still, and whose rows have to say so.
    pub(super) broken: Vec<InstanceId>,
    /// Instances whose rows say that they stand still, and that go on.
    pub(super) again: Vec<InstanceId>,
    /// Instances with an apply of which nobody can say whether it runs, because its spool
    /// directory is lost.
    pub(super) lost: Vec<InstanceId>,
}

/// Reads what the last run left, and asks the runners what became of their jobs.
pub(super) async fn recover(
    store: &Store,
    runners: &Runners,
    limits: Limits,
    observer: bool,
    now: Timestamp,
) -> Result<Recovered, StoreError> {
    let LastRun { mut world, jobs, pending, broken, again, out_of_reach, is_placed } =
        load(store, limits, observer, now).await?;
    let lost_up_to = spools::lost_up_to(store).await?;

    let names: HashMap<InstanceId, Arc<InstanceNames>> = jobs
        .iter()
        .map(|job| job.instance)
        .chain(pending.iter().map(|action| action.instance))
        .filter_map(|id| Some((id, world.names(id)?.clone())))
        .collect();
    let kept = world.instances.iter().filter(|(_, kept)| !is_over(&kept.state)).map(|(id, _)| *id);
    // What runs of those whose rows cannot be read goes on too; its end is kept until somebody can
    // say what it means.
    let known = |jobs: &[JobRow]| {
        jobs.iter().map(|job| job.id).chain(out_of_reach.iter().copied()).collect::<Vec<_>>()
    };
    if is_placed {
        runners
            .retain_instances(&kept.chain(broken.iter().copied()).collect(), &known(&jobs))
            .await;
    }
    runners.spare(&unknown(store, runners).await?);
    let (gone_out_of_sight, jobs) = out_of_sight(jobs, runners, lost_up_to);
    let placed = jobs
        .iter()
        .map(JobRow::placed)
        .chain(out_of_reach.iter().map(|job| PlacedJob { job: *job, target: None }));
    let never_started: BTreeSet<JobId> =
        runners.recover(placed.collect()).await.into_iter().collect();
    world.out_of_reach = out_of_reach;
    let (vanished, jobs): (Vec<_>, Vec<_>) = jobs
        .into_iter()
        .partition(|job| job.started_at.is_some() && never_started.contains(&job.id));
    let lost = gone_out_of_sight
        .iter()
        .chain(&vanished)
        .filter(|job| job.kind == JobKind::Apply && !job.once)
        .map(|job| job.instance)
        .collect();
    // One that was given up before stays what it is.
    let is_open = |job: &JobRow| job.ended_at.is_none();
    let unseen_ends =
        gone_out_of_sight.into_iter().filter(is_open).map(|job| unseen(job.id, OUT_OF_SIGHT));
    let mut ended: Vec<PreparedEvent> = unseen_ends
        .chain(vanished.into_iter().filter(is_open).map(|job| unseen(job.id, VANISHED)))
        .collect();
    let (mut unstarted, mut handed) = (Vec::new(), BTreeSet::new());
    for job in jobs {
        match whereabouts(&world, &names, job, &never_started) {
            Whereabouts::Handed(job) => drop(handed.insert(job)),
            Whereabouts::Known => {}
            Whereabouts::Over(end) => ended.push(end),
            Whereabouts::Unstarted(job, task) => {
                world.starts.insert(job, Arc::default());
                unstarted.push(task);
            }
        }
    }
    let pending = pending.into_iter().filter_map(|action| {
        let names = names.get(&action.instance).cloned();
        calls::again(action, names, &world)
    });
    let tasks: VecDeque<Task> = pending.collect();
    if !tasks.is_empty() || !unstarted.is_empty() {
        tracing::info!(tasks = tasks.len() + unstarted.len(), "taking up what the last run left");
    }
    for job in &handed {
        world.jobs.entry(*job).and_modify(|row| row.status = JobStatus::Starting);
    }
    Ok(Recovered { world, tasks, unstarted, ended, handed, broken, again, lost })
}

/// What the database has of the last run.
struct LastRun {
    world: World,
    /// Jobs that are not over, or whose end still matters.
    jobs: Vec<JobRow>,
    pending: Vec<PendingAction>,
    /// Instances that stand still.
    broken: Vec<InstanceId>,
    /// Those whose rows say that they stand still, and that go on.
    again: Vec<InstanceId>,
    /// Jobs of which nobody can say what their end means.
    out_of_reach: HashSet<JobId>,
    /// Whether it is known of every instance whose it is.
    is_placed: bool,
}

async fn load(
    store: &Store,
    limits: Limits,
    observer: bool,
    now: Timestamp,
) -> Result<LastRun, StoreError> {
    let StoredInstances { instances, mut broken, going_on, unplaced } =
        sort_out(store, observer, now).await?;
    let (mut jobs, unreadable_jobs) = store.unfinished_jobs().await?;
    let (pending, unreadable_actions) = store.pending_actions().await?;
    let unreadable: Vec<Unreadable> =
        unreadable_jobs.into_iter().chain(unreadable_actions).collect();
    let instances =
        stop_the_damaged(store, instances, &mut broken, &jobs, &unreadable, now).await?;
    let mut out_of_reach: HashSet<JobId> = unreadable.iter().filter_map(|row| row.job).collect();
    out_of_reach.extend(add_given_up(store, &instances, &mut jobs).await?);
    let mut world = World::load(instances, jobs.clone(), store.counters().await?, limits, now);
    world.put_breakers(Breakers::stored(store, now).await?);
    let broken_ids = broken.iter().map(|stopped| stopped.names.instance()).collect();
    out_of_reach.extend(
        broken.iter().flat_map(Stopped::jobs).filter(|job| jobs.iter().all(|row| row.id != *job)),
    );
    broken.into_iter().for_each(|stopped| world.put_broken(stopped));
    world.unplaced = unreadable
        .iter()
        .filter(|row| row.instance.is_none_or(|id| !world.broken.contains_key(&id)))
        .map(|row| row.why.clone())
        .collect();
    let is_placed = unplaced.is_empty();
    world.unplaced.extend(unplaced);
    world.unplaced.iter().for_each(|why| {
        tracing::error!("a row of the database cannot be read and is left out: {why}")
    });
    Ok(LastRun {
        world,
        jobs,
        pending,
        broken: broken_ids,
        again: going_on,
        out_of_reach,
        is_placed,
    })
}

/// Adds the rows of jobs that were given up and whose end still matters: they are over in their
/// rows. Returns those whose row cannot be read: each stays given up, and its instance says so,
/// until a person decides.
async fn add_given_up(
    store: &Store,
    instances: &[InstanceEntry],
    jobs: &mut Vec<JobRow>,
) -> Result<Vec<JobId>, StoreError> {
    let mut unreadable = Vec::new();
    for job in instances.iter().flat_map(|kept| kept.state.given_up()) {
        if jobs.iter().all(|row| row.id != job) {
            match store.job_row(job).await {
                Err(StoreError::Corrupt(_)) => unreadable.push(job),
                row => jobs.extend(row?),
            }
        }
    }
    Ok(unreadable)
}

/// What the table of instances holds.
struct StoredInstances {
    instances: Vec<InstanceEntry>,
    broken: Vec<Stopped>,
    /// Those whose rows say that they stand still, and that go on.
    going_on: Vec<InstanceId>,
    /// Of rows of which nobody can tell whose they are, what is wrong with them.
    unplaced: Vec<String>,
}

async fn sort_out(
    store: &Store,
    observer: bool,
    now: Timestamp,
) -> Result<StoredInstances, StoreError> {
    let (loaded, unreadable) = store.load_instances().await?;
    let unplaced = unreadable.into_iter().map(|row| row.why).collect();
    let mut found = StoredInstances {
        instances: Vec::new(),
        broken: Vec::new(),
        going_on: Vec::new(),
        unplaced,
    };
    for loaded in loaded {
        match usable(loaded) {
            Ok((kept, was_broken)) => {
                if was_broken {
                    found.going_on.push(kept.state.instance());
                }
                found.instances.push(kept);
            }
            Err((loaded, why)) => {
                let id = InstanceId::of(loaded.service.0, loaded.channel.0);
                tracing::error!(
                    instance = %id, why,
                    "the row of an instance cannot be used; the instance stands still"
                );
                let desired = store.desired(id).await.or_else(none_if_unreadable)?;
                found.broken.push(Stopped::unreadable(*loaded, why, desired, observer, now));
            }
        }
    }
    Ok(found)
}

fn none_if_unreadable<T>(error: StoreError) -> Result<Option<T>, StoreError> {
    match error {
        StoreError::Corrupt(why) => {
            tracing::error!("a row of the database cannot be read: {why}");
            Ok(None)
        }
        error => Err(error),
    }
}

/// Stops those of the instances one of whose jobs or pending actions cannot be read: what runs of
/// it nobody could tell from what does not, and it must not run beside itself (P1). Returns the
/// others.
async fn stop_the_damaged(
    store: &Store,
    instances: Vec<InstanceEntry>,
    broken: &mut Vec<Stopped>,
    jobs: &[JobRow],
    unreadable: &[Unreadable],
    now: Timestamp,
) -> Result<Vec<InstanceEntry>, StoreError> {
    let unfinished: HashMap<JobId, &JobRow> = jobs.iter().map(|job| (job.id, job)).collect();
    let mut damaged: HashMap<InstanceId, Vec<&Unreadable>> = HashMap::new();
    for row in unreadable {
        damaged
            .entry(row.instance.unwrap_or(InstanceId::from_bytes([0; 16])))
            .or_default()
            .push(row);
    }
    let mut sound = Vec::with_capacity(instances.len());
    for kept in instances {
        let id = kept.state.instance();
        let of_it = damaged.remove(&id).unwrap_or_default();
        let is_there =
            |job: JobId| unfinished.get(&job).is_some_and(|row| row.instance == id && !row.once);
        let missing = kept.state.jobs_in_flight().map(|job| job.id).find(|job| !is_there(*job));
        let why = match (of_it.first(), missing) {
            (None, None) => {
                sound.push(kept);
                continue;
            }
            (Some(row), _) => format!("a row of it cannot be read: {}", row.why),
            (None, Some(job)) => match store.job_row(job).await {
                Ok(Some(_)) => format!(
                    "its state says that {job} is under way, and the row of that job that it is \
                     over or another's"
                ),
                Ok(None) => format!(
                    "its state says that {job} is under way, and no row of a job has that id"
                ),
                Err(StoreError::Corrupt(why)) => {
                    format!(
                        "its state says that {job} is under way, and the row of that job cannot \
                         be read: {why}"
                    )
                }
                Err(error) => return Err(error),
            },
        };
        tracing::error!(instance = %kept.names.label(), why, "the instance stands still");
        broken.push(Stopped::damaged(kept, why, &of_it, &is_there, now));
    }
    for stopped in broken.iter_mut() {
        if let Some(rows) = damaged.remove(&stopped.names.instance()) {
            stopped.note_damage(&rows);
        }
    }
    Ok(sound)
}

/// An instance with a state that can be gone on with, and whether its row says that it stands
/// still.
fn usable(
    mut loaded: LoadedInstance,
) -> Result<(InstanceEntry, bool), (Box<LoadedInstance>, String)> {
    let state = match std::mem::replace(&mut loaded.state, Err(String::new())) {
        Ok(state) => state,
        Err(why) => return Err((Box::new(loaded), format!("its row cannot be read: {why}"))),
    };
    let id = InstanceId::of(loaded.service.0, loaded.channel.0);
    let unsound = if let Some(damage) = &loaded.damage {
        Some(format!("its row cannot be read: {}", damage.why))
    } else if state.instance() != id {
        Some(format!("its row holds what cannot be: the state of {}", state.instance()))
    } else if loaded.gone && !state.is_deleted() {
        Some(
            "its release channel, service or application is deleted, and its state is not"
                .to_owned(),
        )
    } else {
        // A damaged row may break what checks it.
        sound(&state).err().map(|why| format!("its row holds what cannot be: {why}"))
    };
    if let Some(why) = unsound {
        loaded.stored = serde_json::to_string(&state).unwrap_or_default();
        return Err((Box::new(loaded), why));
    }
    let LoadedInstance { application, service, channel, runtime, revision, is_broken, .. } = loaded;
    let names = Arc::new(InstanceNames { application, service, channel });
    Ok((InstanceEntry { names, runtime, state: Box::new(state), revision, wake: None }, is_broken))
}

fn is_stopped(world: &World, row: &JobRow) -> bool {
    let flying = world.instances.get(&row.instance).and_then(|kept| kept.state.job(row.id));
    row.stop.is_some() || flying.is_some_and(|job| job.stop.is_some())
}
