//! The jobs of a batch: those that it takes in, changes, and ends.

use std::sync::Arc;

use engine::action::StartJob;
use engine::event::Outcome;
use schema::id::{JobId, RuntimeName};
use schema::status::JobStatus;

use super::{Batch, Task};
use crate::driver::outcome::Ending;
use crate::driver::world::World;
use crate::names::InstanceNames;
use crate::store::JobRow;

impl Batch {
    /// Begins a job: its row, and what hands it to a runner once that is committed. `once`: a dry
    /// run, of which no state of the engine knows.
    pub(in crate::driver) fn start(
        &mut self,
        world: &mut World,
        names: &Arc<InstanceNames>,
        runtime: RuntimeName,
        start: StartJob,
        once: bool,
    ) {
        world.counters.job += 1;
        let start = Box::new(start);
        let job = JobRow {
            id: start.job,
            seq: world.counters.job,
            instance: names.instance(),
            service: names.service.0,
            channel: names.channel.0,
            release: start.release,
            kind: start.kind,
            version: start.version.clone(),
            runtime,
            target: start.target.clone(),
            attempt: start.attempt,
            status: JobStatus::Pending,
            exit_code: None,
            message: start.why.clone(),
            created_at: start.decided_at,
            started_at: None,
            ended_at: None,
            report: None,
            start: Some(start.clone()),
            stop: None,
            once,
        };
        self.jobs_before.entry(job.id).or_insert(None);
        self.jobs.insert(job.id);
        world.jobs.insert(job.id, job);
        self.tasks.push(Task::Start(start, names.clone()));
    }

    /// Changes a job that is not over; `None` when there is no such job.
    pub(in crate::driver) fn change_job(
        &mut self,
        world: &mut World,
        id: JobId,
        change: impl FnOnce(&mut JobRow),
    ) -> Option<()> {
        let job = world.jobs.get_mut(&id)?;
        self.jobs_before.entry(id).or_insert_with(|| Some(job.clone()));
        self.jobs.insert(id);
        change(job);
        Some(())
    }

    /// Notes that a job is to be written although this batch does not change it.
    pub(in crate::driver) fn write_job(&mut self, id: JobId) {
        self.jobs.insert(id);
    }

    /// Whether this batch writes the job.
    pub(in crate::driver) fn writes(&self, id: JobId) -> bool {
        self.jobs.contains(&id)
    }

    /// Takes a job that is over out of the world. One that was given up keeps that status: a late
    /// report is recorded and moves nothing that has ended.
    pub(in crate::driver) fn end_job(&mut self, world: &mut World, id: JobId, ending: &Ending) {
        self.change_job(world, id, |job| {
            if job.ended_at.is_some() {
                job.report.clone_from(&ending.report);
                return;
            }
            job.status = ending.status;
            job.exit_code = ending.exit_code;
            if ending.message.is_empty() {
                job.waits_no_more();
            } else {
                job.message.clone_from(&ending.message);
            }
            // A command that found its files held, say, was handed over and never ran.
            let never_ran =
                matches!(ending.outcome, Outcome::NotStarted { .. } | Outcome::InputLost { .. });
            job.started_at = ending.started_at.or(job.started_at).filter(|_| !never_ran);
            job.ended_at = Some(ending.ended_at);
            job.report.clone_from(&ending.report);
            job.start = None;
        });
        if let Some(job) = world.jobs.remove(&id) {
            self.over.insert(id, job);
        }
    }

    /// The end of this job is stored and not the last word on it: it stays known, here and to its
    /// runner.
    pub(in crate::driver) fn keep_unsettled(&mut self, world: &mut World, id: JobId) {
        self.ended.retain(|ended| ended.job != id);
        if let Some(job) = self.over.get(&id) {
            world.jobs.insert(id, job.clone());
        }
    }
}
