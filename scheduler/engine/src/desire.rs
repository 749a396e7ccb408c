//! Another release, other commands or other gates are wanted, or a channel that a gate names has
//! moved: what is known and was said is kept as far as it is still about the same. Called by the
//! step.

use schema::id::ChannelName;
use schema::time::Timestamp;

use crate::action::Action;
use crate::desired::{Desired, Observe};
use crate::state::{Drifts, Finding, InfoState, RolledBack, Rollout, State, TakenBack};
use crate::window_lift::LiftEnd;

impl State {
    pub(crate) fn desire(&mut self, desired: Box<Desired>, now: Timestamp, out: &mut Vec<Action>) {
        // It does not move with its channel.
        self.unsettled_in = self.unsettled_in().cloned();
        if !self.deleted && self.desired.as_ref() == Some(&desired) {
            return;
        }
        let old = self.desired.replace(desired);
        let old = old.as_deref();
        let same_release = self.has_as_before(old, |desired| &desired.release);
        if self.deleted && same_release {
            // Configuring it again is no order to apply; a release is.
            return;
        }
        let was_deleted = std::mem::take(&mut self.deleted);
        if !same_release {
            self.end_window_lift(&LiftEnd::OtherRelease, out);
            self.take_up(old, now);
        } else if !self.has_as_before(old, |desired| &desired.compiled) {
            self.take_other_commands(now, out);
        } else if !self.has_as_before(old, |desired| &desired.shared_for) {
            self.withdraw_for_others(out);
        }
        self.carry_over_applied(old, was_deleted);
        if same_release {
            self.regate(now);
            if !self.has_as_before(old, |desired| &desired.progress_deadline) {
                self.rollout.forget_deadline();
            }
        }
        self.observe_anew(now);
        self.keep_named_channels();
    }

    /// Whether a part of what is desired is as it was.
    fn has_as_before<T: PartialEq>(
        &self,
        old: Option<&Desired>,
        part: impl Fn(&Desired) -> &T,
    ) -> bool {
        old.zip(self.desired()).is_some_and(|(old, new)| part(old) == part(new))
    }

    /// Without fetch: what counts as applied under what is desired now.
    fn carry_over_applied(&mut self, old: Option<&Desired>, was_deleted: bool) {
        let same_release = self.has_as_before(old, |desired| &desired.release);
        let same_place = !was_deleted && self.has_as_before(old, |desired| &desired.runtime);
        if !same_release {
            self.settled = None;
        } else if !self.is_looked_at() && old.is_some_and(|old| self.was_as_desired(old)) {
            // Where no fetch can tell, what was converged stays so: an order to apply is a release,
            // never a config.
            self.settled = self.desired().map(|desired| desired.release);
        }
        if !same_place {
            // Nothing was applied there.
            self.applied = None;
        }
        if !same_release && self.has_never_left() {
            self.applied = self.desired().map(|desired| desired.release.to_string());
        }
    }

    /// What is known of channels that no gate names any more is forgotten.
    fn keep_named_channels(&mut self) {
        let Some(desired) = self.desired.as_deref() else { return };
        self.upstream.retain(|channel, _| names(desired, channel));
        self.upstream_back.retain(|channel, _| names(desired, channel));
        let met = self
            .upstream
            .iter()
            .filter(|(_, version)| **version == desired.version)
            .map(|(channel, _)| channel.clone());
        self.rollout.meet(met);
    }

    /// Another release: what was asked for, tried and found out for the old one is over.
    fn take_up(&mut self, old: Option<&Desired>, now: Timestamp) {
        self.leave_refused(old.is_some_and(|old| old.is_rollback));
        self.approvals.withdraw_all();
        let Some(desired) = self.desired.as_deref() else { return };
        // The release that goes back has the version of the one that it goes back to.
        let went = self.rolled_back.take().and_then(|back| back.followed_by(desired, old));
        self.rolled_back = went.map(Box::new);
        if desired.is_rollback {
            let to = desired.stable_before.then(|| (desired.release, desired.version.clone()));
            let before =
                self.taken_back.take().map(|back| Box::new(TakenBack { before: None, ..*back }));
            self.taken_back = Some(Box::new(TakenBack { to, before }));
        }
        self.observed.take_up();
        self.drifts = Drifts::default();
        let stuck_at = desired.progress_deadline.map(|deadline| desired.released_at.plus(deadline));
        self.rollout = Rollout::begin(stuck_at.filter(|at| *at > now));
    }

    /// Other commands of the same release: what the old ones found, and what people said to them,
    /// is not about these.
    fn take_other_commands(&mut self, now: Timestamp, out: &mut Vec<Action>) {
        self.observed.commands_changed();
        self.withdraw_for_commands(out);
        self.rollout.commands_changed(now);
    }

    /// Whatever changed, fetch and getInfo are due: even an interval alone, for what was due is of
    /// the old one and may be a day away.
    fn observe_anew(&mut self, now: Timestamp) {
        let Some(desired) = self.desired.as_deref() else { return };
        let tells = desired.get_info.is_some();
        match &desired.observe {
            Observe::Poll(_) => {
                self.observed.forget_watch();
                self.observed.due_at(now);
            }
            Observe::Watch(policy) => {
                let fresh_for = policy.counts_for();
                self.observed.cancel_due();
                self.begin_watch(fresh_for, now);
            }
            Observe::Never => self.observed.anew(),
        }
        if tells {
            self.info.tell_anew(now);
        } else {
            self.info = InfoState::default();
        }
    }

    /// Whether nothing was left to do for what was desired so far, whatever its status shows:
    /// paused, say, or not seen for a while.
    fn was_as_desired(&self, old: &Desired) -> bool {
        if !old.observe.looks() {
            self.is_applied(old)
        } else {
            *self.observed.finding() == Finding::Clean
        }
    }

    /// Without fetch: whether this is what was applied last, as far as is known.
    pub(crate) fn is_applied(&self, desired: &Desired) -> bool {
        let of_release = desired.release.to_string();
        let is_applied = self
            .applied
            .as_ref()
            .is_some_and(|applied| *applied == desired.apply_key() || *applied == of_release);
        is_applied || self.settled == Some(desired.release)
    }

    /// Without fetch: whether this goes back to what was applied last, since which no apply has
    /// begun. Then there is nothing to go back from.
    fn has_never_left(&self) -> bool {
        let goes_back = |desired: &&Desired| {
            desired.is_rollback && !desired.observe.looks() && !self.applying()
        };
        let Some(desired) = self.desired().filter(goes_back) else { return false };
        let at = self.converged.as_ref().filter(|converged| converged.version == desired.version);
        at.is_some_and(|converged| self.applied == Some(converged.release.to_string()))
    }

    /// It is not pursued any more: a rollback that somebody rejected took nothing back.
    pub(crate) fn leave_refused(&mut self, was_rollback: bool) {
        if was_rollback && self.is_refused() {
            self.taken_back = self.taken_back.take().and_then(|back| back.before);
        }
    }

    pub(crate) fn hear(
        &mut self,
        channel: ChannelName,
        converged_version: Option<String>,
        rolled_back: Option<Box<RolledBack>>,
    ) {
        let Some(desired) = self.desired.as_deref().filter(|desired| names(desired, &channel))
        else {
            return;
        };
        match rolled_back {
            Some(back) => drop(self.upstream_back.insert(channel.clone(), *back)),
            None => drop(self.upstream_back.remove(&channel)),
        }
        match converged_version {
            None => {
                self.upstream.remove(&channel);
            }
            Some(version) => {
                if version == desired.version {
                    self.rollout.meet([channel.clone()]);
                }
                self.upstream.insert(channel, version);
            }
        }
    }
}

/// Whether a gate names this channel.
fn names(desired: &Desired, channel: &ChannelName) -> bool {
    desired.gates.iter().any(|gate| gate.upstream().contains(channel))
}

impl Desired {
    /// Without fetch: what makes an apply of this the same as the last one.
    pub(crate) fn apply_key(&self) -> String {
        self.apply_id
            .as_ref()
            .map_or_else(|| self.release.to_string(), |id| format!("applyId:{id}"))
    }
}
