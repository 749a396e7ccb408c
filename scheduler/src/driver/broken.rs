//! An instance that cannot go on: its row cannot be read, or a step of the engine broke an
//! invariant. It stops there, and it alone: nothing is started for it and nothing is killed, what
//! its jobs tell is kept, and people see BROKEN with the reason until somebody starts it anew
//! (`pvnctl services retry`). Its row stays as it was, so that a version of the program that can
//! read it goes on with it.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use engine::State;
use engine::desired::Desired;
use engine::event::Event;
use engine::{Flying, Salvaged};
use schema::api::{Cause, Explanation};
use schema::cause::CauseCode;
use schema::id::{InstanceId, JobId, RuntimeName};
use schema::log_kind::LogKind;
use schema::status::{JobKind, JobStatus, Status};
use schema::time::Timestamp;

use super::batch::Batch;
use super::intake::PreparedEvent;
use super::run::DriverLoop;
use super::world::{InstanceEntry, World};
use super::{Caller, Refusal};
use crate::names::InstanceNames;
use crate::store::{Change, InstanceRow, LoadedInstance, Unreadable};

mod guard;

pub(super) use guard::{guarded, sound};

/// The way out, for people.
const WAY_OUT: &str = "`pvnctl services retry` starts it anew: fetch then decides, or a person \
                       where there is no fetch";

/// The same where a person may have paused it, as far as anybody knows.
const WAY_OUT_PAUSED: &str = "`pvnctl services retry` starts it anew, as PAUSED because nobody \
                              knows any more whether it was; `pvnctl services resume` then lets \
                              fetch decide, or a person where there is no fetch";

/// The same where nobody but a person can tell what belongs into the row.
const BY_HAND: &str = "somebody mends that row by hand: stop the daemon, change it with `sqlite3 \
                       FILE` (`pvn-scheduler backup` before), and start it again";

/// An instance that stands still.
#[derive(Debug, Clone)]
pub(super) struct Stopped {
    pub(super) names: Arc<InstanceNames>,
    pub(super) runtime: RuntimeName,
    pub(super) revision: i64,
    /// Its state as it is stored.
    stored: String,
    /// What can still be said of it.
    known: Salvaged,
    why: String,
    since: Timestamp,
    /// What its jobs told meanwhile; one end for each at most.
    told: BTreeMap<JobId, PreparedEvent>,
    /// What else of it cannot be read.
    damage: UnreadableParts,
}

/// What of an instance cannot be read beside its state.
#[derive(Debug, Clone, Default)]
struct UnreadableParts {
    /// Whether only a change of the database by hand mends it; until then its row is not written.
    needs_hand: bool,
    /// Whether nobody knows if a person had paused it.
    forgot_pause: bool,
    /// Its jobs that may run, and whose rows cannot be read.
    jobs: Vec<JobId>,
    /// Numbers of pending actions that cannot be read.
    actions: Vec<i64>,
}

impl Stopped {
    /// One whose row cannot be used. What is known of it is read from the pieces.
    pub(super) fn unreadable(
        loaded: LoadedInstance,
        why: String,
        desired: Option<Box<Desired>>,
        observer: bool,
        now: Timestamp,
    ) -> Self {
        let LoadedInstance {
            application,
            service,
            channel,
            runtime,
            revision,
            stored,
            gone,
            damage,
            ..
        } = loaded;
        let pieces: serde_json::Value = serde_json::from_str(&stored).unwrap_or_default();
        let piece = |name: &str| pieces.get(name).cloned().unwrap_or_default();
        // Nobody can say that it is not paused, unless the row could be read so far.
        let forgot_pause = !pieces.is_object();
        let known = Salvaged {
            desired: serde_json::from_value(piece("desired")).ok().or(desired),
            paused: piece("paused").as_bool().unwrap_or(forgot_pause),
            paused_by: piece("paused_by").as_str().map(ToOwned::to_owned),
            pause_is_assumed: forgot_pause,
            observer,
            deleted: gone || piece("deleted").as_bool().unwrap_or(false),
            flying: None,
            unsettled: serde_json::from_value(piece("unsettled")).ok(),
            unsettled_in: serde_json::from_value(piece("unsettled_in")).ok(),
        };
        let names = Arc::new(InstanceNames { application, service, channel });
        let damage = UnreadableParts {
            needs_hand: damage.is_some_and(|damage| damage.needs_hand),
            forgot_pause,
            ..UnreadableParts::default()
        };
        Self {
            names,
            runtime,
            revision,
            stored,
            known,
            why,
            since: now,
            told: BTreeMap::new(),
            damage,
        }
    }

    /// One of whose jobs or pending actions rows cannot be read. `is_there` says of a job in flight
    /// whether its row can.
    pub(super) fn damaged(
        kept: InstanceEntry,
        why: String,
        rows: &[&Unreadable],
        is_there: &dyn Fn(JobId) -> bool,
        now: Timestamp,
    ) -> Self {
        let missing: Vec<_> =
            kept.state.jobs_in_flight().filter(|job| !is_there(job.id)).cloned().collect();
        let mut stopped = Self::of(kept, why, now);
        for job in missing {
            stopped.damage.jobs.push(job.id);
            if job.kind == JobKind::Apply {
                (stopped.known.unsettled, stopped.known.unsettled_in) =
                    (Some(job.id), Some(job.runtime));
            }
        }
        stopped.note_rows(rows);
        stopped
    }

    /// These rows of it cannot be read, nor its state, which would say what runs.
    pub(super) fn note_damage(&mut self, rows: &[&Unreadable]) {
        self.note_rows(rows);
        if self.known.flying.is_none() && self.known.unsettled.is_none() {
            self.known.unsettled = self.damage.jobs.first().copied();
        }
    }

    fn note_rows(&mut self, rows: &[&Unreadable]) {
        for row in rows {
            self.damage.actions.extend(row.action);
            if let Some(job) = row.job
                && !self.damage.jobs.contains(&job)
            {
                self.damage.jobs.push(job);
            }
        }
    }

    /// Its jobs whose rows cannot be read.
    pub(super) fn jobs(&self) -> impl Iterator<Item = JobId> {
        self.damage.jobs.iter().copied()
    }

    /// The apply of it that may run and has no row which says so, with the runtime in which it
    /// holds a place: the one that is known, or else the instance's.
    fn may_run(&self) -> Option<(JobId, &RuntimeName, Timestamp)> {
        Some((
            self.known.unsettled?,
            self.known.unsettled_in.as_ref().unwrap_or(&self.runtime),
            self.since,
        ))
    }

    /// Whether nobody but a person can tell what belongs into its row.
    pub(super) fn needs_hand(&self) -> bool {
        self.damage.needs_hand
    }

    /// The way out, for people.
    fn way_out(&self) -> &'static str {
        match self.damage {
            UnreadableParts { needs_hand: true, .. } => BY_HAND,
            UnreadableParts { forgot_pause: true, .. } => WAY_OUT_PAUSED,
            _ => WAY_OUT,
        }
    }

    fn of(kept: InstanceEntry, why: String, now: Timestamp) -> Self {
        let state = &kept.state;
        let known = Salvaged {
            desired: state.desired().cloned().map(Box::new),
            paused: state.is_paused(),
            paused_by: state.paused_by().map(ToOwned::to_owned),
            pause_is_assumed: false,
            observer: state.is_observer(),
            deleted: state.is_deleted(),
            flying: None,
            unsettled: state.unsettled(),
            unsettled_in: state.unsettled_in().cloned(),
        };
        let stored = kept.row().state;
        Self {
            names: kept.names,
            runtime: kept.runtime,
            revision: kept.revision,
            stored,
            known,
            why,
            since: now,
            told: BTreeMap::new(),
            damage: UnreadableParts::default(),
        }
    }

    /// `application/service in channel: why`, for whoever watches over the daemon.
    pub(super) fn line(&self) -> String {
        format!("{}: {}", self.names.label(), self.why)
    }

    /// In a sentence.
    fn message(&self) -> String {
        format!("{}; nothing is started for it until {}", self.why, self.way_out())
    }

    /// The row after one more commit.
    pub(super) fn row(&self) -> InstanceRow {
        let desired = self.known.desired.as_ref();
        InstanceRow {
            id: self.names.instance(),
            service: self.names.service.0,
            channel: self.names.channel.0,
            runtime: self.runtime.clone(),
            state: self.stored.clone(),
            revision: self.revision,
            release: desired.map(|desired| desired.release),
            desired_version: desired.map(|desired| desired.version.clone()),
            status: Status::Broken,
            reason: None,
            message: self.message(),
            since: self.since,
            next_wake: None,
        }
    }

    pub(super) fn refusal(&self) -> Refusal {
        Refusal::Conflict(format!(
            "{} is BROKEN ({}) until {}",
            self.names.label(),
            self.why,
            self.way_out()
        ))
    }

    pub(super) fn explain(&self) -> Explanation {
        let cause = |code, message| Cause { code, message, since: Some(self.since), until: None };
        let causes = vec![
            cause(CauseCode::Broken, self.why.clone()),
            cause(CauseCode::WaitsForPerson, format!("ends when {}", self.way_out())),
        ];
        Explanation {
            status: Status::Broken,
            reason: None,
            message: self.message(),
            causes,
            next: Vec::new(),
        }
    }
}

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
        tracing::error!(instance = %kept.names.label(), why, "an invariant is broken; the instance stops, please report this");
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
                tracing::error!(instance = %stopped.names.label(), why, "an instance cannot be started anew; please report this");
                world.put_broken(stopped);
                return false;
            }
        };
        let (names, runtime) = (stopped.names.clone(), stopped.runtime.clone());
        let kept = InstanceEntry {
            names: names.clone(),
            runtime,
            state,
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
            match &job.start {
                Some(start) if job.kind == JobKind::Apply && known.flying.is_none() => {
                    known.flying = Some(Flying {
                        job: job.id,
                        attempt: job.attempt,
                        release: job.release,
                        version: job.version.clone(),
                        compiled: start.compiled,
                        runtime: job.runtime.clone(),
                        decided_at: job.created_at,
                        started_at: job.started_at,
                        timeout: start.timeout,
                    });
                }
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
        let who = (Some(caller.who.clone()), Some(caller.origin.clone()));
        batch.log(
            &mut self.world,
            Some(&names),
            LogKind::InstanceMended,
            who,
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
