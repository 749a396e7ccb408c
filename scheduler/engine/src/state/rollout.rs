//! The way of one release: its gates, its applies, and whether it comes through in time.

use std::collections::BTreeSet;
use std::time::Duration;

use schema::id::{ChannelName, JobId};
use schema::time::Timestamp;
use serde::{Deserialize, Serialize};

use super::{ApplyAttempts, BrokenInvariant, WindowLift, is_false};

/// The way of one release. Starts anew with each release.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(crate) struct Rollout {
    /// Channels of the gates that were once stable at this version.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    met: BTreeSet<ChannelName>,
    /// Whether it was converged once; what comes later is drift.
    #[serde(default, skip_serializing_if = "is_false")]
    arrived: bool,
    /// Whether the commands are others than those that were approved, or with which it arrived:
    /// then people are asked again before they run. Until a fetch with them finds it as
    /// desired.
    #[serde(default, skip_serializing_if = "is_false")]
    other_commands: bool,
    /// The applies since the last clean fetch or retry by hand, if any.
    #[serde(rename = "chain", default, skip_serializing_if = "Option::is_none")]
    attempts: Option<ApplyAttempts>,
    /// Since when every gate but the lane is open.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    ready_since: Option<Timestamp>,
    /// When the window opens or shuts, if that is what matters now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    window_at: Option<Timestamp>,
    /// That a person lets it start outside its window, until then or until it arrives.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    lift: Option<Box<WindowLift>>,
    /// When it is STUCK. Runs only while no gate and no person holds the release up, and there is
    /// a daemon that could go on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    stuck_at: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "is_false")]
    stuck: bool,
    /// Why it did not go back when it was stuck.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    rollback_refused: Option<String>,
}

impl Rollout {
    /// A release is taken up, which is to have arrived by then.
    pub(crate) fn begin(stuck_at: Option<Timestamp>) -> Self {
        Self { stuck_at, ..Self::default() }
    }

    /// The commands are others from now on: what comes is another attempt than the one that was
    /// stuck.
    pub(crate) fn commands_changed(&mut self, now: Timestamp) {
        self.other_commands = true;
        self.attempts.iter_mut().for_each(|attempts| attempts.commands_changed(now));
        self.forget_stuck();
    }

    /// Whether the commands are others than those that were approved, or with which it arrived.
    pub(crate) fn has_other_commands(&self) -> bool {
        self.other_commands
    }

    /// It is as desired: what comes later is new work. `is_seen`: whether that was seen with the
    /// commands of now, or nobody looks.
    pub(crate) fn arrive(&mut self, is_seen: bool) {
        self.arrived = true;
        self.other_commands &= !is_seen;
        self.attempts = None;
        self.stuck = false;
    }

    /// Whether it was converged once.
    pub(crate) fn has_arrived(&self) -> bool {
        self.arrived
    }

    /// `wants_apply`: whether a place for an apply is wanted.
    pub(crate) fn check(&self, wants_apply: bool) -> Result<(), BrokenInvariant> {
        self.lift.as_ref().map_or(Ok(()), |lift| lift.check())?;
        match wants_apply && self.ready_since.is_none() {
            true => Err(BrokenInvariant::WantsUnready),
            false => Ok(()),
        }
    }

    /// The plans of its gates and applies, for a clock that jumps.
    pub(crate) fn plans_mut(&mut self) -> impl Iterator<Item = &mut Timestamp> {
        let gates = [&mut self.ready_since, &mut self.window_at].into_iter().flatten();
        gates.chain(self.attempts.iter_mut().flat_map(ApplyAttempts::plans_mut))
    }
}

// ---- gates ----

impl Rollout {
    /// Channels of the gates that were once stable at this version.
    pub(crate) fn met(&self) -> &BTreeSet<ChannelName> {
        &self.met
    }

    /// These channels are stable at this version, and count as such from now on.
    pub(crate) fn meet(&mut self, channels: impl IntoIterator<Item = ChannelName>) {
        self.met.extend(channels);
    }

    /// Since when every gate but the lane is open, if all are.
    pub(crate) fn ready_since(&self) -> Option<Timestamp> {
        self.ready_since
    }

    /// When the window opens or shuts, if that is what matters now.
    pub(crate) fn window_at(&self) -> Option<Timestamp> {
        self.window_at
    }

    /// That a person lets it start outside its window.
    pub(crate) fn lift(&self) -> Option<&WindowLift> {
        self.lift.as_deref()
    }

    /// A person does so, in place of whoever did before.
    pub(crate) fn lift_window(&mut self, lift: WindowLift) {
        self.lift = Some(Box::new(lift));
    }

    /// The window counts again. Gives what was lifted.
    pub(crate) fn end_lift(&mut self) -> Option<WindowLift> {
        self.lift.take().map(|lift| *lift)
    }

    /// How it stands with the gates now.
    pub(crate) fn stand_at_gates(
        &mut self,
        is_ready: bool,
        window_at: Option<Timestamp>,
        now: Timestamp,
    ) {
        self.ready_since = is_ready.then(|| self.ready_since.unwrap_or(now));
        self.window_at = window_at;
    }
}

// ---- applies ----

impl Rollout {
    /// The applies since the last clean fetch or retry by hand, if any.
    pub(crate) fn attempts(&self) -> Option<&ApplyAttempts> {
        self.attempts.as_ref()
    }

    pub(crate) fn attempts_mut(&mut self) -> Option<&mut ApplyAttempts> {
        self.attempts.as_mut()
    }

    /// An apply is decided: gives which attempt it is, and the applies before it.
    pub(crate) fn start(
        &mut self,
        job: JobId,
        grace: Duration,
        now: Timestamp,
    ) -> (u32, Option<ApplyAttempts>) {
        let before = self.attempts.clone();
        let next = ApplyAttempts::next(self.attempts.take(), job, grace, now);
        (self.attempts.insert(next).attempt(), before)
    }

    /// This apply never was: `before` is all that there were.
    pub(crate) fn undo(&mut self, job: JobId, before: Option<ApplyAttempts>) {
        if self.attempts.as_ref().is_some_and(|attempts| attempts.job() == job) {
            self.attempts = before;
        }
    }

    /// These applies are all that is known of.
    pub(crate) fn salvage(&mut self, attempts: ApplyAttempts) {
        self.attempts = Some(attempts);
    }

    /// A person wants another try, whatever became of those before.
    pub(crate) fn begin_again(&mut self) {
        self.attempts = None;
        self.forget_stuck();
    }

    /// The same where the last one failed, or had no effect again. What went well has its grace
    /// period.
    pub(crate) fn forget_failed(&mut self) {
        self.attempts = self.attempts.take().filter(|attempts| !attempts.has_come_to_nothing());
        self.forget_stuck();
    }
}

// ---- progress ----

impl Rollout {
    /// When it is stuck, if it is pressed for time.
    pub(crate) fn stuck_at(&self) -> Option<Timestamp> {
        self.stuck_at
    }

    /// The plan itself, for a clock that jumps and a daemon that was away.
    pub(crate) fn stuck_at_mut(&mut self) -> Option<&mut Timestamp> {
        self.stuck_at.as_mut()
    }

    pub(crate) fn is_stuck(&self) -> bool {
        self.stuck
    }

    /// Why it did not go back when it was stuck.
    pub(crate) fn rollback_refused(&self) -> Option<&str> {
        self.rollback_refused.as_deref()
    }

    /// Its deadline runs while there is one (`deadline`), until it has arrived or is stuck. Gives
    /// the deadline once it has passed.
    pub(crate) fn press(&mut self, deadline: Option<Duration>, now: Timestamp) -> Option<Duration> {
        let Some(deadline) = deadline.filter(|_| !self.arrived && !self.stuck) else {
            self.stuck_at = None;
            return None;
        };
        let stuck_at = *self.stuck_at.get_or_insert(now.plus(deadline));
        (stuck_at <= now).then_some(deadline)
    }

    /// Its deadline has passed, and nobody could see whether it had arrived.
    pub(crate) fn give_time(&mut self, until: Timestamp) {
        self.stuck_at = Some(until);
    }

    /// It did not arrive in time.
    pub(crate) fn get_stuck(&mut self) {
        (self.stuck_at, self.stuck, self.rollback_refused) = (None, true, None);
    }

    /// It is stuck, and does not go back.
    pub(crate) fn refuse_rollback(&mut self, why: String) {
        self.rollback_refused = Some(why);
    }

    /// It was to go back and does not, because of what came between; past that its deadline starts
    /// anew.
    pub(crate) fn drop_rollback(&mut self) {
        self.stuck = false;
    }

    /// Its deadline is another one.
    pub(crate) fn forget_deadline(&mut self) {
        self.stuck_at = None;
    }

    /// What comes now is another attempt than the one that was stuck, and has the whole deadline.
    fn forget_stuck(&mut self) {
        (self.stuck, self.stuck_at) = (false, None);
    }
}

#[cfg(test)]
mod tests;
