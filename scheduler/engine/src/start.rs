//! A place is granted -> the job to start. And until the job is with its runner: whether it still
//! may start. Called by the step, and by the driver at the moment in which it hands a job over.

use std::time::Duration;

use schema::id::{BlobId, JobId};
use schema::log_kind::LogKind;
use schema::status::JobKind;
use schema::time::Timestamp;

use crate::action::log;
use crate::action::{Action, StartJob};
use crate::converge::Situation;
use crate::desired::{Desired, Observe};
use crate::limits::START_DEADLINE;
use crate::state::{ApplyAttempts, ApplyEnd, COMMANDS_KEPT, Finding, Job, State};

/// What became of a start that was decided and that no runner has been handed yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Start {
    /// It may be handed over before this instant; `None` = at any time.
    Holds {
        /// When a window shuts or an approval expires.
        until: Option<Timestamp>,
    },
    /// A gate has shut since it was decided: [`crate::event::Event::Unstarted`] withdraws it.
    Void {
        /// Which, as the end of the sentence "it was withdrawn before it started: …".
        why: &'static str,
    },
    /// Somebody asked it to stop: it must not start any more, and has ended if nobody has it.
    Stopped,
    /// It is not in flight.
    Over,
}

/// Whether a job that was decided may be handed to its runner now. For what was not handed over in
/// the same moment: time and people may have shut a gate since.
pub fn start_now(state: &State, job: JobId, now: Timestamp) -> Start {
    let Some(job) = state.job(job) else { return Start::Over };
    if job.stop.is_some() {
        return Start::Stopped;
    }
    match state.holds(job, now) {
        Ok(until) => Start::Holds { until },
        Err(why) => Start::Void { why },
    }
}

/// The apply that was decided, has not started as far as is known, and must not be handed over any
/// more.
pub fn void_start(state: &State, now: Timestamp) -> Option<JobId> {
    let job = state.main.as_deref().filter(|job| has_not_begun(job))?;
    state.holds(job, now).is_err().then_some(job.id)
}

/// The apply that was decided and has not started as far as is known, and that nobody asked to
/// stop: its runner may take it back.
pub fn unbegun(state: &State) -> Option<JobId> {
    state.main.as_deref().filter(|job| has_not_begun(job)).map(|job| job.id)
}

fn has_not_begun(job: &Job) -> bool {
    job.kind == JobKind::Apply && job.started_at.is_none() && job.stop.is_none()
}

impl State {
    pub(crate) fn start(&mut self, kind: JobKind, now: Timestamp, out: &mut Vec<Action>) {
        let why = self.why(kind);
        let Some(desired) = self.desired.as_deref() else { return };
        self.jobs += 1;
        // The instant, too: of two copies of a database both count on from the same number.
        let at = now.as_millis().to_le_bytes();
        let id = JobId::derive(&[
            self.instance.as_bytes(),
            kind.as_str().as_bytes(),
            &self.jobs.to_le_bytes(),
            &at,
        ]);
        let (timeout, _) = time_limits(desired, kind);
        let work = self.work().filter(|_| kind == JobKind::Apply);
        let mut start = StartJob {
            job: id,
            kind,
            attempt: 1,
            release: desired.release,
            compiled: desired.compiled,
            target: desired.target.clone(),
            version: desired.version.clone(),
            decided_at: now,
            timeout,
            fresh_after: self.fresh_after(kind, now),
            fetch_job: work.and_then(|work| work.job),
            plan: work.and_then(|work| work.plan),
            why,
            is_check: false,
        };
        let mut job = Box::new(Job::new(&start, desired));
        if kind == JobKind::Apply {
            let given = self.askers().filter_map(|asker| self.standing_approval(asker));
            job.uses = given.map(|at| self.approvals[at].id).collect();
            let (attempt, before) = self.rollout.start(id, desired.grace, now);
            (start.attempt, job.attempt) = (attempt, attempt);
            job.attempts_before = before.map(Box::new);
        }
        remember(&mut self.commands, desired.compiled);
        match kind {
            JobKind::GetInfo => {
                self.info.started();
                self.side = Some(job);
            }
            JobKind::Fetch | JobKind::Apply => {
                self.observed.cancel_due();
                self.main = Some(job);
            }
        }
        out.push(Action::Start(start));
    }

    /// What an answer has to be younger than for this job.
    fn fresh_after(&self, kind: JobKind, now: Timestamp) -> Option<Timestamp> {
        match kind {
            JobKind::Fetch => self.observed.fresh_after(now),
            JobKind::GetInfo => self.info.fresh_after(now),
            JobKind::Apply => None,
        }
    }

    fn why(&self, kind: JobKind) -> String {
        let version = self.desired.as_deref().map_or("", |desired| &desired.version);
        match (kind, self.rollout.attempts().and_then(ApplyAttempts::end)) {
            (JobKind::GetInfo, _) => "getInfo is due".to_owned(),
            (JobKind::Fetch, Some(_)) if !self.observed.is_fresh() => {
                "look at what the apply did".to_owned()
            }
            (JobKind::Fetch, _) if self.observed.misses() > 0 => {
                "look again after no answer".to_owned()
            }
            (JobKind::Fetch, _) if *self.observed.finding() == Finding::Nothing => {
                format!("first look at {version}")
            }
            (JobKind::Fetch, _) => "fetch is due".to_owned(),
            (
                JobKind::Apply,
                Some(ApplyEnd::Retryable(code) | ApplyEnd::RetryableSaying(code, _)),
            ) => {
                format!("another attempt after exit code {code}")
            }
            (JobKind::Apply, Some(ApplyEnd::Misfired(_))) => "another try to start it".to_owned(),
            (JobKind::Apply, _) => {
                self.work().map_or_else(|| format!("apply {version}"), |work| work.what.clone())
            }
        }
    }
}

/// Timeout and stop grace of a job of this kind, as far as the release says any.
fn time_limits(desired: &Desired, kind: JobKind) -> (Option<Duration>, Option<Duration>) {
    match kind {
        JobKind::Fetch => desired
            .observe
            .poll()
            .map_or((None, None), |policy| (Some(policy.timeout), policy.stop_grace)),
        JobKind::Apply => (desired.apply.timeout, desired.apply.stop_grace),
        JobKind::GetInfo => desired
            .get_info
            .as_ref()
            .map_or((None, None), |policy| (Some(policy.timeout), policy.stop_grace)),
    }
}

impl Job {
    /// It is decided, and nobody has said that it has started.
    fn new(start: &StartJob, desired: &Desired) -> Self {
        let kind = start.kind;
        let (timeout, stop_grace) = time_limits(desired, kind);
        let fetch = desired.observe.poll().filter(|_| kind == JobKind::Fetch);
        let is_only_applied = kind == JobKind::Apply && !desired.observe.looks();
        Self {
            id: start.job,
            kind,
            attempt: start.attempt,
            release: desired.release,
            version: desired.version.clone(),
            compiled: desired.compiled,
            runtime: desired.runtime.clone(),
            fetch_mode: fetch.map(|policy| policy.mode),
            work: fetch.map(|policy| policy.work.clone()).unwrap_or_default(),
            apply_key: is_only_applied.then(|| desired.apply_key()),
            uses: Vec::new(),
            decided_at: start.decided_at,
            started_at: None,
            waits: None,
            waits_since: None,
            deadline: Some(start.decided_at.plus(timeout.unwrap_or_default().max(START_DEADLINE))),
            timeout,
            stop_grace,
            stop: None,
            stopped_at: None,
            attempts_before: None,
        }
    }
}

/// Notes the commands that are about to run, and forgets the oldest.
fn remember(commands: &mut Vec<BlobId>, compiled: BlobId) {
    if commands.contains(&compiled) {
        return;
    }
    commands.push(compiled);
    let old = commands.len().saturating_sub(COMMANDS_KEPT);
    commands.drain(..old);
}

// ---- until it is handed over ----

impl State {
    /// Until when everything holds that the start of this job was decided on.
    ///
    /// # Errors
    /// What holds no more, as the end of the sentence "it was withdrawn before it started: …".
    fn holds(&self, job: &Job, now: Timestamp) -> Result<Option<Timestamp>, &'static str> {
        if job.kind != JobKind::Apply {
            return Ok(None); // it changes nothing; what nobody wants any more is stopped
        }
        let Some(desired) = self.desired() else { return Err("nothing is desired") };
        if job.release != desired.release {
            return Err("another release took its place");
        }
        if job.compiled != desired.compiled || job.runtime != desired.runtime {
            return Err("its commands changed");
        }
        match self.situate_idle(now) {
            Situation::Ready(shuts_at) => {
                let asked = self.askers().filter_map(|asker| self.standing_approval(asker));
                let expires_at = asked.filter_map(|at| self.approvals[at].expires_at).min();
                if expires_at.is_some_and(|at| at <= now) {
                    return Err("its approval has expired");
                }
                Ok(shuts_at.into_iter().chain(expires_at).min())
            }
            Situation::Deleted => Err("it is no longer wanted"),
            Situation::Paused => Err("it was paused"),
            Situation::Observing => Err(self.why_it_only_looks()),
            Situation::WindowShut(_) => Err("the apply window has shut"),
            Situation::Unmet(unmet) => Err(unmet.comes_first()),
            Situation::Ask(_) | Situation::Approval(_) | Situation::Rejected(_) => {
                Err("an approval is missing")
            }
            Situation::Acknowledged(_) => Err("a person leaves the drift as it is"),
            Situation::NoRelease
            | Situation::Applying
            | Situation::Converged
            | Situation::Unseen
            | Situation::Unlooked
            | Situation::Pending
            | Situation::Broken
            | Situation::Cancelled
            | Situation::Unsettled(_)
            | Situation::ApplyFailed(_)
            | Situation::ApplyUnknown(_)
            | Situation::Retrying(_)
            | Situation::Misfired(_)
            | Situation::Looking
            | Situation::Grace(_) => Err("fetch has to look again first"),
        }
    }

    /// No runner has this job. Unless everything still holds that it was decided on, it is as if it
    /// had never been; and so it is when its runner took it back (`taken_back`), whatever holds by
    /// now.
    pub(crate) fn unstarted(
        &mut self,
        id: JobId,
        taken_back: Option<String>,
        now: Timestamp,
        out: &mut Vec<Action>,
    ) {
        let waits = |job: &&Job| job.id == id && has_not_begun(job);
        let Some(job) = self.main.as_deref().filter(waits) else { return };
        let shut = || self.holds(job, now).err().map(str::to_owned);
        let Some(why) = taken_back.or_else(shut) else { return };
        let Some(job) = self.main.take() else { return };
        self.rollout.undo(id, job.attempts_before.map(|before| *before));
        match self.desired().map(|desired| &desired.observe) {
            Some(Observe::Poll(_)) => self.observed.due_by(Some(now)),
            // What it told meanwhile decided nothing.
            Some(Observe::Watch(_)) => self.look_now(now),
            Some(Observe::Never) | None => {}
        }
        let why = format!("withdrawn before it started: {why}");
        out.push(log(
            LogKind::JobWithdrawn,
            None,
            format!("apply {id} of {} was {why}", job.version),
            &[("job", &id.to_string())],
        ));
        out.push(Action::Withdraw { job: id, why });
    }
}
