//! What a runner told of a job, taken into its row and to its instance. A part of the loop's turn.

use engine::desired::FetchAnswer;
use engine::event::Event;
use schema::id::JobId;
use schema::log_kind::LogKind;
use schema::status::JobStatus;
use schema::time::Timestamp;

use super::batch::Batch;
use super::hand_over::never_began;
use super::intake::PreparedEvent;
use super::outcome::{self, JobPurpose};
use super::run::DriverLoop;
use super::words::Words;
use crate::runner::{End, JobWait};
use crate::store::JobRow;

impl DriverLoop {
    /// Takes in what a runner told.
    pub(super) fn arrive(&mut self, batch: &mut Batch, arrived: &PreparedEvent) {
        if self.world.out_of_reach.contains(&arrived.job()) {
            return;
        }
        let row = self.world.jobs.get(&arrived.job());
        if let Some(instance) = row.filter(|row| !row.once).map(|row| row.instance)
            && self.keep_for_broken(instance, arrived)
        {
            return;
        }
        match arrived {
            // Answered when everything else of the batch has happened.
            PreparedEvent::Asks { .. } => {}
            PreparedEvent::Started { job, at } => self.job_started(batch, *job, *at),
            PreparedEvent::Waits { job, wait } => self.job_waits(batch, *job, wait.as_ref()),
            PreparedEvent::Ended { job, end, gone, words } => {
                self.job_ended(batch, *job, end, *gone, words)
            }
        }
    }

    fn job_started(&mut self, batch: &mut Batch, job: JobId, at: Timestamp) {
        // One that was given up is followed on, and stays what it was told to be.
        let Some(row) = self.world.jobs.get(&job).filter(|row| row.ended_at.is_none()) else {
            return;
        };
        let (instance, once) = (row.instance, row.once);
        batch.change_job(&mut self.world, job, |row| {
            row.status = JobStatus::Running;
            row.started_at = Some(at);
            row.waits_no_more();
        });
        if once {
            self.time_once(job);
        } else {
            batch.send(&mut self.world, instance, Event::JobStarted { job, at }, None);
        }
    }

    /// `wait`: `None` when it waits for nothing any more.
    fn job_waits(&mut self, batch: &mut Batch, job: JobId, wait: Option<&JobWait>) {
        // What runs or is over waits for nothing but to be looked at: this was told too late.
        let says_nothing =
            |row: &JobRow| row.started_at.is_some() && wait.is_some_and(|wait| !wait.is_unseen);
        let row =
            self.world.jobs.get(&job).filter(|row| row.ended_at.is_none() && !says_nothing(row));
        let Some((instance, once)) = row.map(|row| (row.instance, row.once)) else { return };
        batch.change_job(&mut self.world, job, |row| {
            if row.started_at.is_none() {
                row.status = JobStatus::Starting;
            }
            match wait {
                Some(wait) if row.started_at.is_some() => {
                    row.message = format!("waits: {}; ends when {}", wait.why, wait.ends_when)
                }
                Some(wait) => {
                    row.message = format!(
                        "waits until {}: {}; ends when {}",
                        wait.until, wait.why, wait.ends_when
                    )
                }
                None => row.waits_no_more(),
            }
        });
        let wait =
            wait.cloned().map(|JobWait { why, ends_when, until, surroundings, is_unseen }| {
                Box::new(engine::event::Wait {
                    why,
                    ends_when,
                    until,
                    tried_again: surroundings,
                    is_unseen,
                })
            });
        if !once {
            batch.send(&mut self.world, instance, Event::JobWaits { job, wait }, None);
        }
    }

    fn job_ended(&mut self, batch: &mut Batch, job: JobId, end: &End, gone: bool, words: &Words) {
        batch.ended.push(self.world.placed(job));
        // Over already, or never ours: a result counts once.
        let Some(row) = self.world.jobs.get(&job) else { return };
        let kept = self.world.instances.get(&row.instance);
        if let Some(unstarted) = never_began(end, kept, job, batch.now) {
            let instance = row.instance;
            self.numbers.jobs_ended += 1;
            return batch.send(&mut self.world, instance, unstarted, None);
        }
        let flying = kept.and_then(|kept| kept.state.job(job));
        let poll =
            kept.and_then(|kept| kept.state.desired()).and_then(|desired| desired.observe.poll());
        // Its document is read by whoever asked for it.
        let by_code = row.start.as_ref().filter(|start| start.is_check);
        let asked = JobPurpose {
            kind: row.kind,
            mode: by_code
                .map(|_| FetchAnswer::ExitCode)
                .or(flying.and_then(|job| job.fetch_mode))
                .or(poll.map(|poll| poll.mode)),
            work: flying.map(|job| &job.work).or(poll.map(|poll| &poll.work)),
            stopped: flying.and_then(|job| job.stop.as_ref()).or(row.stop.as_ref()),
            stopped_at: flying.and_then(|job| job.stopped_at),
            decided_at: row.created_at,
            now: batch.now,
        };
        let ending = outcome::read(end.clone(), gone, words, &asked);
        let (instance, once) = (row.instance, row.once);
        let is_unsettled = kept.is_some_and(|kept| kept.state.given_up().any(|id| id == job));
        if row.ended_at.is_some() && !is_unsettled {
            let message =
                format!("the end of {job} was told after it was given up ({})", row.status);
            let said = serde_json::json!({"status": ending.status, "exitCode": ending.exit_code});
            let data = serde_json::json!({"job": job, "said": said});
            let names = kept.map(|kept| kept.names.clone());
            batch.log(
                &mut self.world,
                names.as_deref(),
                LogKind::JobLateReport,
                (None, None),
                message,
                data,
            );
        }
        batch.end_job(&mut self.world, job, &ending);
        self.once_until.remove(&job);
        self.numbers.jobs_ended += 1;
        if once {
            return;
        }
        batch.send(
            &mut self.world,
            instance,
            Event::JobEnded { job, outcome: ending.outcome },
            None,
        );
        if self
            .world
            .instances
            .get(&instance)
            .is_some_and(|kept| kept.state.given_up().any(|id| id == job))
        {
            // Its runner tells once more when it is known to be gone, also after a restart.
            batch.keep_unsettled(&mut self.world, job);
        }
    }
}
