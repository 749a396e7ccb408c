//! Jobs that nobody sees any more after a restart, and what is told of them.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use schema::id::{InstanceId, JobId};
use schema::status::JobStatus;

use super::super::batch::Task;
use super::super::intake::PreparedEvent;
use super::super::words::Words;
use super::super::world::World;
use super::is_stopped;
use crate::names::InstanceNames;
use crate::runner::End;
use crate::runner::registry::Runners;
use crate::store::{JobRow, Store, StoreError};

/// Where a job stands that is not over in the database.
pub(super) enum Whereabouts {
    /// The runner has it, and its row does not say so yet.
    Handed(JobId),
    /// The runner has it.
    Known,
    /// It never ran, and will not.
    Over(PreparedEvent),
    /// Nobody has it.
    Unstarted(JobId, Task),
}

pub(super) fn whereabouts(
    world: &World,
    names: &HashMap<InstanceId, Arc<InstanceNames>>,
    job: JobRow,
    never_started: &BTreeSet<JobId>,
) -> Whereabouts {
    if !never_started.contains(&job.id) {
        return if job.status == JobStatus::Pending {
            Whereabouts::Handed(job.id)
        } else {
            Whereabouts::Known
        };
    }
    let is_stopped = is_stopped(world, &job);
    match (job.start, names.get(&job.instance)) {
        // Whoever asked for that got it: it was not started, and is not.
        (Some(_), _) if is_stopped => {
            Whereabouts::Over(never(job.id, "it was stopped before it was started"))
        }
        (Some(start), Some(names)) => {
            Whereabouts::Unstarted(job.id, Task::Start(start, names.clone()))
        }
        // Given up, and now it is known that it never ran.
        _ => Whereabouts::Over(never(job.id, "it was given up before it was started")),
    }
}

/// The jobs that the runners have recorded and the database does not know.
pub(super) async fn unknown(store: &Store, runners: &Runners) -> Result<Vec<JobId>, StoreError> {
    let mut unknown = Vec::new();
    for job in runners.recorded() {
        match store.job_row(job).await {
            Ok(Some(_)) | Err(StoreError::Corrupt(_)) => {}
            Ok(None) => unknown.push(job),
            Err(error) => return Err(error),
        }
    }
    Ok(unknown)
}

/// Those of these jobs that were decided for a spool directory that is not there any more, and the
/// others.
pub(super) fn out_of_sight(
    jobs: Vec<JobRow>,
    runners: &Runners,
    lost_up_to: i64,
) -> (Vec<JobRow>, Vec<JobRow>) {
    let known: HashSet<JobId> =
        if lost_up_to == 0 { HashSet::new() } else { runners.recorded().into_iter().collect() };
    jobs.into_iter().partition(|job| job.seq <= lost_up_to && !known.contains(&job.id))
}

/// What is said of a job that was decided for another spool directory.
pub(super) const OUT_OF_SIGHT: &str = "the spool directory that it was to run in is lost or \
                                       another daemon's, so nobody can say whether it runs";

/// What is said of a job that started, as the database knows, and of which its runner knows
/// nothing: what it left was removed.
pub(super) const VANISHED: &str =
    "it started, and its directory in the spool is gone, so nobody can say whether it runs";

/// The end of a job of which nobody can say anything.
pub(super) fn unseen(job: JobId, why: &str) -> PreparedEvent {
    PreparedEvent::Ended {
        job,
        end: End::Unknown { why: why.to_owned(), report: None },
        gone: false,
        words: Words::default(),
    }
}

/// The end of a job that is known never to have run.
pub(in crate::driver) fn never(job: JobId, why: &str) -> PreparedEvent {
    let end = End::NotStarted { why: why.to_owned(), surroundings: true };
    PreparedEvent::Ended { job, end, gone: true, words: Words::default() }
}
