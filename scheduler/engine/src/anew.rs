//! A state made anew for an instance whose own cannot be used: nothing is known of its past, so
//! nothing is applied before a fetch has looked; without a fetch it is FAILED, for a person to
//! retry. Called by the driver for `pvnctl services retry` of a broken instance.

use std::time::Duration;

use schema::id::{BlobId, InstanceId, JobId, ReleaseId, RuntimeName};
use schema::status::JobKind;
use schema::time::Timestamp;

use crate::action::Action;
use crate::desired::{Desired, WorkExitCodes};
use crate::limits::{OVERTIME, RECOVERY, START_DEADLINE};
use crate::state::{ApplyAttempts, ApplyEnd, Job, ObserveWish, State};

/// An apply that is in flight, as its job's record tells.
#[derive(Debug, Clone)]
pub struct Flying {
    pub job: JobId,
    /// From 1.
    pub attempt: u32,
    /// The release that it is for.
    pub release: ReleaseId,
    pub version: String,
    /// The commands that it runs.
    pub compiled: BlobId,
    pub runtime: RuntimeName,
    /// When it was decided.
    pub decided_at: Timestamp,
    /// When its command started, as far as is known.
    pub started_at: Option<Timestamp>,
    /// Longest run.
    pub timeout: Option<Duration>,
}

/// What is still known of an instance whose state cannot be used.
#[derive(Debug, Clone, Default)]
pub struct Salvaged {
    /// What it should be.
    pub desired: Option<Box<Desired>>,
    /// Whether a person paused it. Where that is unknown it counts as paused.
    pub paused: bool,
    /// Who did.
    pub paused_by: Option<String>,
    /// What for, in their words.
    pub pause_reason: Option<String>,
    /// Whether it is unknown.
    pub pause_is_assumed: bool,
    /// Whether this run of the daemon only looks.
    pub observer: bool,
    /// That a person wants it to be observed only.
    pub observe_wish: Option<Box<ObserveWish>>,
    /// Whether it is no longer wanted.
    pub deleted: bool,
    /// Its apply that has not ended.
    pub flying: Option<Flying>,
    /// An apply that was given up and is not known to be gone.
    pub unsettled: Option<JobId>,
    /// The runtime in which that one ran, as far as is known.
    pub unsettled_in: Option<RuntimeName>,
}

impl State {
    /// The instance begins anew with what is still known. Ids of its jobs differ from all that it
    /// ever had: they are counted from the present in milliseconds, which no count of jobs
    /// reaches.
    pub fn anew(instance: InstanceId, known: Salvaged, now: Timestamp) -> (Self, Vec<Action>) {
        let Salvaged {
            desired,
            paused,
            paused_by,
            pause_reason,
            pause_is_assumed,
            observer,
            observe_wish,
            deleted,
            flying,
            unsettled,
            unsettled_in,
        } = known;
        let mut state = Self::new(instance, now);
        state.jobs = now.as_millis().unsigned_abs();
        state.watches = state.jobs;
        state.asked = u32::try_from(now.as_millis() / 1_000).unwrap_or(u32::MAX / 2);
        (state.paused, state.pause_is_assumed) = (paused, pause_is_assumed);
        (state.paused_by, state.pause_reason) = (paused_by, pause_reason);
        // What may have been a pause stops more.
        (state.observer, state.observe_wish) = (observer, observe_wish.filter(|_| !paused));
        (state.unsettled, state.unsettled_in) =
            (unsettled, unsettled_in.filter(|_| unsettled.is_some()));
        let Some(desired) = desired else { return (state, Vec::new()) };
        let (looks, grace) = (desired.observe.looks(), desired.grace);
        // There is nobody whose yes could be taken back.
        state.desire(desired, now, &mut Vec::new());
        if let Some(flying) = flying {
            let grace_until = flying.started_at.unwrap_or(flying.decided_at).plus(grace);
            let (job, attempt) = (flying.job, flying.attempt);
            state.rollout.salvage(ApplyAttempts::salvaged(job, attempt, grace_until, None, now));
            state.observed.cancel_due();
            state.main = Some(flying.into_job(now));
        } else if !looks {
            let end = ApplyEnd::Unknown("what it did before is not known any more".to_owned());
            let job = JobId::derive(&[instance.as_bytes(), b"before"]);
            state.rollout.salvage(ApplyAttempts::salvaged(job, 1, now, Some(end), now));
        }
        let event = if deleted { crate::event::Event::Deleted } else { crate::event::Event::Tick };
        crate::step(state, event, now)
    }
}

impl Flying {
    fn into_job(self, now: Timestamp) -> Box<Job> {
        let Self {
            job,
            attempt,
            release,
            version,
            compiled,
            runtime,
            decided_at,
            started_at,
            timeout,
        } = self;
        let deadline = match started_at {
            Some(at) => timeout.map(|timeout| at.plus(timeout).plus(OVERTIME)),
            None => Some(decided_at.plus(timeout.unwrap_or_default().max(START_DEADLINE))),
        };
        Box::new(Job {
            id: job,
            kind: JobKind::Apply,
            attempt: attempt.max(1),
            release,
            version,
            compiled,
            runtime,
            apply_key: None,
            uses: Vec::new(),
            decided_at,
            started_at,
            waits: None,
            waits_since: None,
            // It is heard of first.
            deadline: deadline.map(|at| at.max(now.plus(RECOVERY))),
            timeout,
            stop_grace: None,
            stop: None,
            stopped_at: None,
            attempts_before: None,
            fetch_mode: None,
            work: WorkExitCodes::default(),
        })
    }
}
