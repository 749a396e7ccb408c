//! Dry runs: one command of one instance, asked for by a person, or what its fetch needs, tried.
//! They are jobs as others are, with deadlines of their own here (P3), because no state of the
//! engine knows of them.

use std::time::Duration;

use engine::action::{StartJob, StopReason};
use engine::desired::Desired;
use engine::limits::{OVERTIME, RECOVERY, START_DEADLINE, STOP_DEADLINE};
use schema::id::{InstanceId, JobId};
use schema::log_kind::LogKind;
use schema::status::JobKind;
use schema::time::{self, Timestamp};

use super::batch::Batch;
use super::outcome::Ending;
use super::run::DriverLoop;
use super::world::InstanceEntry;
use super::{Caller, Refusal};
use crate::clock;
use crate::store::JobRow;

/// Most dry runs at a time: they have no lane, and a person looks at one at a time.
const ONCE_LIMIT: usize = 8;

/// Longest dry run of a command whose policy names no timeout: the default of fetch, 10 minutes.
const ONCE_TIMEOUT: Duration = Duration::from_secs(600);

/// Longest check of a tool: with what removing a job takes, less than whoever asked waits.
const CHECK_TIMEOUT: Duration = Duration::from_secs(45);

/// What is run dry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DryRun {
    /// This command.
    Command(JobKind),
    /// What the fetch needs is tried, by its tool.
    Check,
}

/// How long until the next deadline of a dry run: for its start, its end, or its end after a stop.
fn patience(row: &JobRow) -> Duration {
    let timeout = row.start.as_ref().and_then(|start| start.timeout).unwrap_or(ONCE_TIMEOUT);
    match (&row.stop, row.started_at) {
        (Some(_), _) => STOP_DEADLINE,
        (None, Some(_)) => timeout.saturating_add(OVERTIME),
        (None, None) => timeout.max(START_DEADLINE),
    }
}

/// Why there is no such command to run.
fn no_command(desired: &Desired, kind: JobKind, label: &str) -> String {
    if kind == JobKind::Fetch && desired.observe.watch().is_some() {
        return format!(
            "{label} is watched, so there is no fetch to run: `pvnctl services get` shows what \
             the watch told last, and `pvnctl services retry` has it look anew"
        );
    }
    format!("the runtime `{}` of {label} has no {kind} command", desired.runtime)
}

impl DriverLoop {
    /// A dry run began, goes on or was stopped: from now on it has so much time.
    pub(super) fn time_once(&mut self, job: JobId) {
        let row = self.world.jobs.get(&job).filter(|row| row.once && row.ended_at.is_none());
        match row.map(patience) {
            Some(patience) => drop(self.once_until.insert(job, self.once_after(patience))),
            None => drop(self.once_until.remove(&job)),
        }
    }

    /// When so much time has passed, by the steady clock.
    fn once_after(&self, span: Duration) -> i64 {
        self.clock.read().steady_ms.saturating_add(time::millis(span))
    }

    /// While nothing could be stored no end of a dry run was heard of: there is time for that
    /// before a deadline ends it.
    pub(super) fn listen_to_once(&mut self) {
        let soonest = self.once_after(RECOVERY);
        self.once_until.values_mut().for_each(|until| *until = (*until).max(soonest));
    }

    /// When the next deadline of a dry run is, by the clock on the wall as it is now.
    pub(super) fn next_once(&self) -> Option<Timestamp> {
        let until = self.once_until.values().min()?;
        let now = self.clock.read();
        Some(now.wall.plus_ms(until.saturating_sub(now.steady_ms)))
    }

    /// Stops dry runs that are overdue, and gives up those that heed nothing.
    pub(super) fn mind_once(&mut self, batch: &mut Batch) {
        if self.once_until.is_empty() {
            return;
        }
        let now_ms = self.clock.read().steady_ms;
        let overdue: Vec<JobId> = self
            .once_until
            .iter()
            .filter(|(_, until)| **until <= now_ms)
            .map(|(job, _)| *job)
            .collect();
        for job in overdue {
            let Some(row) = self.world.jobs.get(&job).filter(|row| row.ended_at.is_none()) else {
                self.once_until.remove(&job);
                continue;
            };
            let instance = row.instance;
            if row.stop.is_some() {
                let why = "it was stopped and nothing was heard of it since".to_owned();
                batch.end_job(&mut self.world, job, &Ending::unknown(why, batch.now));
            } else {
                batch.change_job(&mut self.world, job, |row| row.stop = Some(StopReason::Deadline));
                batch.stop(&mut self.world, instance, job, StopReason::Deadline);
            }
            self.time_once(job);
        }
    }

    /// A person stops a dry run.
    pub(super) fn cancel_once(&mut self, batch: &mut Batch, id: JobId, caller: &Caller) {
        let Some(instance) = self.world.jobs.get(&id).map(|row| row.instance) else { return };
        let why = StopReason::Person(caller.who.clone());
        batch.change_job(&mut self.world, id, |row| row.stop = Some(why.clone()));
        let names = self.world.names(instance).cloned();
        let message = format!("{} cancels the dry run {id}", caller.who);
        batch.log(
            &mut self.world,
            names.as_deref(),
            LogKind::JobCancel,
            caller.on_record(),
            message,
            serde_json::json!({"job": id}),
        );
        batch.stop(&mut self.world, instance, id, why);
        self.time_once(id);
    }

    fn has_room_for_once(&self) -> Result<(), Refusal> {
        let under_way = self.world.jobs.values().filter(|job| job.once && job.ended_at.is_none());
        if under_way.count() < ONCE_LIMIT {
            return Ok(());
        }
        Err(Refusal::Conflict(format!(
            "{ONCE_LIMIT} dry runs are under way; wait for one to end, or cancel one"
        )))
    }

    /// The instance that one is to run of, within the caller's limits.
    fn dry_runner(&self, id: InstanceId, caller: &Caller) -> Result<&InstanceEntry, Refusal> {
        if let Some(names) = self.world.names(id) {
            caller.reaches_instance(names)?;
        }
        if let Some(stopped) = self.world.broken.get(&id) {
            return Err(stopped.refusal());
        }
        self.world.instances.get(&id).ok_or_else(|| {
            Refusal::NotFound("the service does not exist in that channel".to_owned())
        })
    }

    /// Starts one.
    pub(super) fn run_once(
        &mut self,
        batch: &mut Batch,
        id: InstanceId,
        what: DryRun,
        caller: &Caller,
    ) -> Result<JobId, Refusal> {
        let kept = self.dry_runner(id, caller)?;
        let label = kept.names.label();
        let desired = kept.state.desired().ok_or_else(|| {
            Refusal::Conflict(format!(
                "{label} has no release yet, so there is no command to run; make one with `pvnctl \
                 services push`"
            ))
        })?;
        let kind = match what {
            DryRun::Command(kind) => kind,
            DryRun::Check => JobKind::Fetch,
        };
        let timeout = match kind {
            JobKind::Fetch => desired.observe.poll().map(|policy| policy.timeout),
            JobKind::GetInfo => desired.get_info.as_ref().map(|policy| policy.timeout),
            JobKind::Apply => {
                return Err(Refusal::Invalid(
                    "apply changes the world and cannot be run dry; run fetch or getInfo"
                        .to_owned(),
                ));
            }
        };
        let Some(timeout) = timeout else {
            return Err(Refusal::Conflict(no_command(desired, kind, &label)));
        };
        self.has_room_for_once()?;
        let (timeout, did, why) = match what {
            DryRun::Check => {
                (CHECK_TIMEOUT, format!("tries what {kind} of {label} needs"), "check")
            }
            DryRun::Command(_) => {
                let timeout = if timeout.is_zero() { ONCE_TIMEOUT } else { timeout };
                (timeout, format!("runs {kind} of {label} dry"), "dry run")
            }
        };
        let job = JobId::from_bytes(clock::random());
        let start = StartJob {
            job,
            kind,
            attempt: 1,
            release: desired.release,
            compiled: desired.compiled,
            target: desired.target.clone(),
            version: desired.version.clone(),
            decided_at: batch.now,
            timeout: Some(timeout),
            fresh_after: None,
            fetch_job: None,
            plan: None,
            why: format!("{why} asked for by {}", caller.who),
            is_check: what == DryRun::Check,
        };
        let names = kept.names.clone();
        let runtime = desired.runtime.clone();
        batch.log(
            &mut self.world,
            Some(&names),
            LogKind::JobRun,
            caller.on_record(),
            format!("{} {did}", caller.who),
            serde_json::json!({"job": job}),
        );
        batch.start(&mut self.world, &names, runtime, start, true);
        self.time_once(job);
        Ok(job)
    }
}
