//! When many fetches or applies of one runtime fail together it is the runtime, or what is behind
//! it, and not the releases: applies stop there, are tried one at a time after a pause, then two,
//! four and so on, and stop again at the first that fails. Owned by the driver, one for each
//! runtime; what it decides is an index over all instances, as the lanes are, and bounds them
//! ([`crate::limiter::ConcurrencyLimiter::bound_applies`]).
//!
//! ```text
//!            many fail               pause, or a person who does something about it
//!   whole ─────────────> Stopped ──────────────────────────────> Ramp(1) ─> (2) ─> … ─> whole
//!     ^                     ^                                       │
//!     │                     └────────── one fails ──────────────────┤
//!     └─────────── a person, or nothing to apply for an hour ───────┘
//! ```
//!
//! No state lasts for ever: each has an instant at which it goes on by itself. An instance whose
//! failure has stopped a ramp stops none again before it has succeeded, so that a single one that
//! is broken for good keeps nobody back.

use std::collections::BTreeSet;
use std::time::Duration;

use schema::id::{BlobId, InstanceId, RuntimeName};
use schema::log_kind::LogKind;
use schema::status::JobKind;
use schema::time::Timestamp;
use serde::{Deserialize, Serialize};

use crate::action::{LogLine, StopReason};
use crate::duration::duration;
use crate::event::Outcome;
use crate::state::{AppliesHeld, Job, State};

mod tally;

use tally::Tally;

/// Fewest instances of a runtime that fail together: of fewer each may have a reason of its own,
/// and whoever has three services looks at each.
pub const FAILING_AT_LEAST: usize = 5;

/// Within which time what ends counts as together. Twice the usual interval of fetch in steady
/// state, so that every instance is heard of.
pub const FAILING_WITHIN: Duration = Duration::from_secs(600);

/// First pause before one apply is tried; it doubles with each ramp that fails. Long enough for an
/// API to come back, short enough that nobody has to be woken for that.
pub const FIRST_PAUSE: Duration = Duration::from_secs(300);

/// Longest pause.
pub const LONGEST_PAUSE: Duration = Duration::from_secs(3_600);

/// With how many at a time that went well all is well again: as many as a daemon runs by default.
pub const RAMP_TOP: u32 = 16;

/// How long a ramp waits for something to apply before it is over: then nothing is left to be
/// tried.
pub const RAMP_PATIENCE: Duration = Duration::from_secs(3_600);

/// Most instances of which it is remembered that they stopped a ramp: more than that are a fleet
/// that is down.
const STOPPERS_KEPT: usize = 1_000;

/// Whether the applies of one runtime are held, and how the last tries there ended.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct FleetBreaker {
    #[serde(skip)]
    fetches: Tally,
    #[serde(skip)]
    applies: Tally,
    trip: Option<BreakerTrip>,
}

/// Since applies were stopped.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct BreakerTrip {
    since: Timestamp,
    /// What failed, as a sentence without its end.
    why: String,
    /// The pause before the ramp that comes next, or runs.
    #[serde(rename = "pause_ms", with = "crate::millis")]
    pause: Duration,
    /// Whose failure has stopped a ramp, and who has not succeeded since.
    #[serde(default)]
    stoppers: BTreeSet<InstanceId>,
    /// How many applies at a time; none = stopped.
    width: u32,
    /// How many of these have gone well.
    well: u32,
    /// When it goes on by itself.
    until: Timestamp,
}

/// Something that people should know of a runtime.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BreakerNews {
    pub kind: LogKind,
    /// As the end of the sentence "runtime `…`: …".
    pub message: String,
}

impl FleetBreaker {
    /// The same without what was counted so far, as it is stored.
    #[must_use]
    pub fn clone_held(&self) -> Self {
        Self { trip: self.trip.clone(), ..Self::default() }
    }

    /// How many applies may run at a time; `None` = as many as may otherwise.
    pub fn limit(&self) -> Option<u32> {
        self.trip.as_ref().map(|trip| trip.width)
    }

    /// What instances that wait for it are told.
    pub fn held(&self) -> Option<AppliesHeld> {
        let BreakerTrip { since, why, width, until, .. } = self.trip.as_ref()?;
        Some(AppliesHeld { since: *since, why: why.clone(), width: *width, until: *until })
    }

    /// When [`FleetBreaker::tick`] changes something by itself.
    pub fn next_wake(&self) -> Option<Timestamp> {
        self.trip.as_ref().map(|trip| trip.until)
    }

    /// A fetch or apply of this instance ended.
    pub fn record(
        &mut self,
        instance: InstanceId,
        kind: JobKind,
        failed: bool,
        now: Timestamp,
    ) -> Option<BreakerNews> {
        let tally = match kind {
            JobKind::Fetch => &mut self.fetches,
            JobKind::Apply => &mut self.applies,
            JobKind::GetInfo => return None,
        };
        tally.record(instance, failed, now);
        let many = tally.many_failing().map(|(failing, all)| {
            format!(
                "{kind} failed in {failing} of {all} instances that tried within {}",
                duration(FAILING_WITHIN)
            )
        });
        let Some(trip) = &mut self.trip else {
            let why = many.filter(|_| failed)?;
            return Some(self.stop(why, FIRST_PAUSE, BTreeSet::new(), now, now));
        };
        if trip.width == 0 {
            return None;
        }
        if kind == JobKind::Apply && !failed {
            return self.went_well(instance, now);
        }
        let why = match kind {
            JobKind::Apply if trip.stoppers.insert(instance) => {
                "an apply that was tried failed".to_owned()
            }
            JobKind::Fetch => many.filter(|_| failed)?,
            JobKind::Apply | JobKind::GetInfo => return None,
        };
        let pause = trip.pause.saturating_mul(2).min(LONGEST_PAUSE);
        let (stoppers, since) = (std::mem::take(&mut trip.stoppers), trip.since);
        Some(self.stop(why, pause, stoppers, since, now))
    }

    /// Applies stop, for so long.
    fn stop(
        &mut self,
        why: String,
        pause: Duration,
        mut stoppers: BTreeSet<InstanceId>,
        since: Timestamp,
        now: Timestamp,
    ) -> BreakerNews {
        while stoppers.len() > STOPPERS_KEPT {
            stoppers.pop_first();
        }
        let until = now.plus(pause);
        let message = format!(
            "{why}; no apply starts until {until}, and then one at a time, two, four and so on \
             while they go well; a release, a retry or other commands there begin that at once, \
             and `pvnctl runtimes resume` ends it"
        );
        self.trip = Some(BreakerTrip { since, why, pause, stoppers, width: 0, well: 0, until });
        BreakerNews { kind: LogKind::RuntimeAppliesStopped, message }
    }

    fn went_well(&mut self, instance: InstanceId, now: Timestamp) -> Option<BreakerNews> {
        let trip = self.trip.as_mut()?;
        trip.stoppers.remove(&instance);
        trip.until = now.plus(RAMP_PATIENCE);
        trip.well = trip.well.saturating_add(1);
        if trip.well < trip.width {
            return None;
        }
        (trip.width, trip.well) = (trip.width.saturating_mul(2), 0);
        (trip.width > RAMP_TOP).then(|| self.whole("applies went well again".to_owned()))
    }

    /// Nothing is held any more, and what failed until now is forgotten.
    fn whole(&mut self, why: String) -> BreakerNews {
        *self = Self::default();
        let message = format!("{why}; as many applies start as may");
        BreakerNews { kind: LogKind::RuntimeAppliesGoOn, message }
    }

    /// Time has passed.
    pub fn tick(&mut self, now: Timestamp) -> Option<BreakerNews> {
        let trip = self.trip.as_ref().filter(|trip| trip.until <= now)?;
        match trip.width {
            0 => self.try_again("the pause is over", now),
            _ => Some(self.whole("nothing was left to apply".to_owned())),
        }
    }

    /// A person does something about an instance of the runtime, which may be what it takes: one
    /// apply is tried, whatever is left of the pause.
    pub fn encourage(&mut self, now: Timestamp) -> Option<BreakerNews> {
        self.trip.as_ref().filter(|trip| trip.width == 0)?;
        self.try_again("a person has done something about it", now)
    }

    /// A person wants applies to go on, whatever failed.
    pub fn end(&mut self, who: &str) -> Option<BreakerNews> {
        self.trip.as_ref()?;
        Some(self.whole(format!("{who} lets applies go on")))
    }

    fn try_again(&mut self, why: &str, now: Timestamp) -> Option<BreakerNews> {
        let trip = self.trip.as_mut()?;
        (trip.width, trip.well, trip.until) = (1, 0, now.plus(RAMP_PATIENCE));
        let message = format!("{why}; one apply is tried, then two, four and so on");
        Some(BreakerNews { kind: LogKind::RuntimeAppliesTried, message })
    }

    /// The wall clock was set back: no wait is longer than one that begins now.
    pub fn bound(&mut self, now: Timestamp) {
        if let Some(trip) = &mut self.trip {
            let longest = if trip.width == 0 { trip.pause } else { RAMP_PATIENCE };
            trip.until = trip.until.min(now.plus(longest));
        }
    }
}

impl BreakerNews {
    /// As a line of the log.
    pub fn line(self, runtime: &str) -> LogLine {
        let data = [("runtime".to_owned(), runtime.to_owned())].into();
        let message = format!("runtime `{runtime}`: {}", self.message);
        LogLine { kind: self.kind, actor: None, message, data }
    }
}

/// The end of a job, as far as it may say something of its runtime.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EndedTry {
    pub kind: JobKind,
    pub runtime: RuntimeName,
    compiled: BlobId,
    /// `None`: it failed without one.
    code: Option<i32>,
}

impl EndedTry {
    /// `None` where it says nothing of the runtime: a person had a hand in it, it never began
    /// through no fault of its own, or nobody knows how it ended.
    pub fn of(job: &Job, outcome: &Outcome) -> Option<Self> {
        if matches!(job.stop, Some(StopReason::Person(_) | StopReason::NotWanted)) {
            return None;
        }
        let code = match outcome {
            Outcome::Exited { code, .. } => Some(*code),
            Outcome::NotStarted { surroundings: false, .. }
            | Outcome::BadOutput { .. }
            | Outcome::TimedOut => None,
            Outcome::NotStarted { surroundings: true, .. }
            | Outcome::InputLost { .. }
            | Outcome::Cancelled { .. }
            | Outcome::Unknown { .. } => return None,
        };
        let Job { kind, runtime, compiled, .. } = job;
        Some(Self { kind: *kind, runtime: runtime.clone(), compiled: *compiled, code })
    }

    /// Whether it failed, by the state that it led to; `None` where another attempt is to come, or
    /// where nobody waited for it any more.
    pub fn failed(&self, after: &State) -> Option<bool> {
        let desired = after.desired().filter(|desired| desired.compiled == self.compiled)?;
        let again = &desired.apply.retryable_exit_codes;
        match (self.kind, self.code) {
            (JobKind::GetInfo, _) => None,
            (JobKind::Fetch, _) => Some(after.observed.misses() > 0),
            (JobKind::Apply, Some(0)) => Some(false),
            (JobKind::Apply, Some(code)) if again.contains(&code) => None,
            (JobKind::Apply, _) => Some(true),
        }
    }
}

#[cfg(test)]
mod tests;
