//! An instance that cannot go on: its row cannot be read, or a step of the engine broke an
//! invariant. It stops there, and it alone: nothing is started for it and nothing is killed, what
//! its jobs tell is kept, and people see BROKEN with the reason until somebody starts it anew
//! (`pvnctl services retry`). Its row stays as it was, so that a version of the program that can
//! read it goes on with it.

use std::collections::VecDeque;

use engine::State;
use engine::event::Event;
use engine::{Flying, Salvaged};
use schema::id::InstanceId;
use schema::log_kind::LogKind;
use schema::status::{JobKind, JobStatus, Status};

use super::batch::Batch;
use super::intake::PreparedEvent;
use super::run::DriverLoop;
use super::world::{InstanceEntry, World};
use super::{Caller, Refusal};
use crate::store::{Change, JobRow};

mod guard;
mod stopped;

pub(super) use stopped::Stopped;

pub(super) use guard::{guarded, sound};

impl World {
    /// What somebody wants of an instance that stands still is for the time after.
    pub(super) fn note(&mut self, id: InstanceId, event: Event) {
        let Some(stopped) = self.broken.get_mut(&id) else { return };
        match event {
            Event::Desired(desired) => {
                let is_new =
                    stopped.known.desired.as_ref().is_none_or(|old| old.release != desired.release);
                stopped.known.deleted &= !is_new;
                stopped.known.desired = Some(desired);
            }
            Event::Deleted => stopped.known.deleted = true,
            Event::Observe(observer) => stopped.known.observer = observer,
            _ => {}
        }
    }

    /// Takes in one that stands still; its jobs keep their places, and so does an apply that may
    /// still run.
    pub(super) fn put_broken(&mut self, stopped: Stopped) {
        let (id, service) = (stopped.names.instance(), stopped.names.service.0);
        let jobs = self
            .jobs
            .values()
            .filter(|job| job.instance == id && job.ended_at.is_none() && !job.once);
        let may_run = stopped.may_run().filter(|(job, ..)| jobs.clone().all(|row| row.id != *job));
        self.lanes.leave(
            id,
            service,
            jobs.map(|job| (job.kind, &job.runtime, job.created_at, job.id)),
            may_run,
        );
        let of_service = self.services.entry(service).or_default();
        if !of_service.contains(&id) {
            of_service.push(id);
        }
        self.broken.insert(id, stopped);
    }
}

impl Batch {
    /// The instance goes no further. It is as it was before the step that failed.
    pub(super) fn stop_instance(
        &mut self,
        world: &mut World,
        kept: InstanceEntry,
        why: String,
        queue: &mut VecDeque<(InstanceId, Event)>,
    ) {
        let id = kept.state.instance();
        tracing::error!(
            instance = %kept.names.label(), why,
            "an invariant is broken; the instance stops, please report this"
        );
        let names = kept.names.clone();
        if let Some(release) = kept.state.desired().map(|desired| desired.release) {
            self.changes.push(Change::ReleaseStatus {
                release,
                channel: names.channel.0,
                status: Status::Broken,
                at: self.now,
            });
        }
        if kept.state.converged_version().is_some() {
            queue.extend(super::shown::dependents(world, &names, None));
        }
        let why = format!("an invariant of the engine is broken: {why}");
        self.log(
            world,
            Some(&names),
            LogKind::InstanceBroken,
            (None, None),
            why.clone(),
            serde_json::json!({}),
        );
        self.stopped.push(id);
        world.put_broken(Stopped::of(kept, why, self.now));
    }

    /// Puts a state made anew in the place of one that stands still. `false` when that is broken
    /// too.
    fn begin_anew(&mut self, world: &mut World, stopped: Stopped, known: Salvaged) -> bool {
        let (id, now) = (stopped.names.instance(), self.now);
        let (state, actions) = match guarded(|| State::anew(id, known, now)) {
            Ok(made) => made,
            Err(why) => {
                tracing::error!(
                    instance = %stopped.names.label(), why,
                    "an instance cannot be started anew; please report this"
                );
                world.put_broken(stopped);
                return false;
            }
        };
        let (names, runtime) = (stopped.names.clone(), stopped.runtime.clone());
        let kept = InstanceEntry {
            names: names.clone(),
            runtime,
            state: Box::new(state),
            revision: stopped.revision,
            wake: None,
        };
        if let Some(release) = kept.state.desired().map(|desired| desired.release) {
            let status = kept.state.standing().status;
            self.changes.push(Change::ReleaseStatus {
                release,
                channel: names.channel.0,
                status,
                at: now,
            });
        }
        for action in actions {
            self.action(world, &kept, action, None);
        }
        let upstream: Vec<Event> = super::shown::upstream_of(world, &kept).collect();
        self.mended.push(stopped);
        self.before.entry(id).or_insert(None);
        world.put(kept);
        upstream.into_iter().for_each(|event| self.send(world, id, event, None));
        true
    }

    /// Writes the row of one that stands still since the start.
    pub(super) fn write_broken(&mut self, world: &mut World, id: InstanceId) {
        let Some(stopped) = world.broken.get_mut(&id) else { return };
        if !stopped.damage.needs_hand {
            stopped.revision += 1;
            self.written.push(id);
        }
        let (names, why) = (stopped.names.clone(), stopped.why.clone());
        if let Some(release) = stopped.known.desired.as_ref().map(|desired| desired.release) {
            self.changes.push(Change::ReleaseStatus {
                release,
                channel: names.channel.0,
                status: Status::Broken,
                at: self.now,
            });
        }
        self.log(
            world,
            Some(&names),
            LogKind::InstanceBroken,
            (None, None),
            why,
            serde_json::json!({}),
        );
    }
}

impl DriverLoop {
    /// Keeps the end of a job whose instance stands still, until that goes on. `false` when it does
    /// not stand still.
    pub(super) fn keep_for_broken(
        &mut self,
        instance: InstanceId,
        arrived: &PreparedEvent,
    ) -> bool {
        let Some(stopped) = self.world.broken.get_mut(&instance) else { return false };
        if let PreparedEvent::Ended { job, .. } = arrived {
            stopped.told.insert(*job, arrived.clone());
        }
        true
    }

    /// Says which instances stand still.
    pub(super) fn show_broken(&self) {
        let (broken, unplaced) = (&self.world.broken, &self.world.unplaced);
        if broken.is_empty() && unplaced.is_empty() && self.broken.borrow().is_empty() {
            return;
        }
        let lines: std::collections::BTreeSet<String> =
            broken.values().map(Stopped::line).chain(unplaced.iter().cloned()).collect();
        self.broken.send_replace(lines.into_iter().collect());
    }

    /// A person starts it anew.
    ///
    /// # Errors
    /// When only a change of the database by hand helps.
    pub(super) fn mend(
        &mut self,
        batch: &mut Batch,
        id: InstanceId,
        caller: &Caller,
    ) -> Result<(), Refusal> {
        let Some(stopped) = self.world.broken.get(&id) else { return Ok(()) };
        if stopped.damage.needs_hand {
            return Err(stopped.refusal());
        }
        let Some(stopped) = self.world.broken.remove(&id) else { return Ok(()) };
        let names = stopped.names.clone();
        let mut known = stopped.known.clone();
        let mut others = Vec::new();
        for job in self
            .world
            .jobs
            .values()
            .filter(|job| job.instance == id && job.ended_at.is_none() && !job.once)
        {
            match flying_apply(job) {
                Some(apply) if known.flying.is_none() => known.flying = Some(apply),
                _ => others.push(job.id),
            }
        }
        // Nobody waits for the answer of a look that was under way.
        let now = batch.now;
        for job in others {
            batch.change_job(&mut self.world, job, |job| {
                job.status = JobStatus::Unknown;
                job.ended_at = Some(now);
                job.message = "its instance was started anew".to_owned();
                job.start = None;
            });
            batch.stop(&mut self.world, id, job, engine::action::StopReason::NotWanted);
        }
        let paused = if stopped.damage.forgot_pause {
            ", PAUSED because nobody knows whether it was"
        } else {
            ""
        };
        let message = format!(
            "{} starts {} anew{paused}; it was broken: {}",
            caller.who,
            names.label(),
            stopped.why
        );
        batch.log(
            &mut self.world,
            Some(&names),
            LogKind::InstanceMended,
            caller.on_record(),
            message,
            serde_json::json!({}),
        );
        let why = "its row could not be read when its instance was started anew";
        let over = stopped.damage.jobs.iter().map(|job| Change::JobGivenUp {
            job: *job,
            at: now,
            why: why.to_owned(),
        });
        batch.changes.extend(over);
        batch.performed.extend(&stopped.damage.actions);
        if batch.begin_anew(&mut self.world, stopped.clone(), known) {
            self.held.extend(stopped.told.into_values());
        }
        Ok(())
    }
}

/// An apply that is under way, as the engine has to know it.
fn flying_apply(job: &JobRow) -> Option<Flying> {
    let start = job.start.as_ref().filter(|_| job.kind == JobKind::Apply)?;
    Some(Flying {
        job: job.id,
        attempt: job.attempt,
        release: job.release,
        version: job.version.clone(),
        compiled: start.compiled,
        runtime: job.runtime.clone(),
        decided_at: job.created_at,
        started_at: job.started_at,
        timeout: start.timeout,
    })
}
