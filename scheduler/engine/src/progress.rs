//! The progress deadline of a release, and going back when it has passed. Called by the step, and
//! by the driver at the moment in which it carries a rollback out: between the decision and that
//! moment the release may have arrived, or a person may have come.

use schema::id::ReleaseId;
use schema::log_kind::LogKind;
use schema::time::Timestamp;

use crate::action::Action;
use crate::action::log;
use crate::converge::Situation;
use crate::describe::HeldUpBy;
use crate::limits::{LANE_PATIENCE, RECOVERY};
use crate::state::{ApplyAttempts, RolledBack, State, TakenBack};

/// Whether a rollback that was decided is carried out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GoBack {
    /// It is.
    Now,
    /// The last apply went well, and the fetch that says whether it is all well has not answered.
    Later,
    /// It is not any more, why as the end of the sentence "it is not taken back: …".
    /// [`crate::event::Event::RollbackDropped`] says so.
    Dropped(&'static str),
}

/// Whether what was decided as [`Action::Rollback`] is carried out now.
pub fn go_back_now(state: &State, from: ReleaseId, now: Timestamp) -> GoBack {
    let Some(desired) = state.desired().filter(|_| !state.is_deleted()) else {
        return GoBack::Dropped("it is no longer wanted");
    };
    if desired.release != from {
        return GoBack::Dropped("another release took its place");
    }
    if state.only_looks() {
        return GoBack::Dropped(state.why_it_only_looks());
    }
    let situation = state.situate_idle(now);
    if let Some(why) = has_come_between(&situation) {
        return GoBack::Dropped(why);
    }
    if !state.rollout.is_stuck() {
        return GoBack::Dropped(
            "it was tried again, its commands changed, or it has arrived meanwhile",
        );
    }
    let is_to_tell =
        situation == Situation::Looking && state.observed.misses() == 0 && state.has_just_applied();
    if is_to_tell { GoBack::Later } else { GoBack::Now }
}

/// What a person, or the world, has done meanwhile.
fn has_come_between(situation: &Situation) -> Option<&'static str> {
    match situation {
        Situation::Paused => Some("it was paused"),
        Situation::Converged => Some("it is as desired by now"),
        Situation::Acknowledged(_) => Some("a person leaves its drift as it is"),
        Situation::Cancelled => Some("a person cancelled its apply"),
        Situation::Unsettled(_) => {
            Some("an earlier job of it may still run, which a person has to decide about")
        }
        Situation::Deleted
        | Situation::NoRelease
        | Situation::Applying
        | Situation::Unseen
        | Situation::Unlooked
        | Situation::Pending
        | Situation::Broken
        | Situation::ApplyFailed(_)
        | Situation::ApplyUnknown(_)
        | Situation::Retrying(_)
        | Situation::Misfired(_)
        | Situation::Looking
        | Situation::Grace(_)
        | Situation::Observing
        | Situation::Unmet(_)
        | Situation::Ask(_)
        | Situation::Approval(_)
        | Situation::Rejected(_)
        | Situation::WindowShut(_)
        | Situation::Ready(_) => None,
    }
}

impl State {
    /// The progress deadline runs while nothing but the release itself is to blame; a gate or a
    /// person stops it, and past the gate it starts anew.
    pub(crate) fn mind_progress(
        &mut self,
        situation: &Situation,
        now: Timestamp,
        out: &mut Vec<Action>,
    ) {
        let Some(desired) = self.desired.as_deref() else { return };
        let held_up = self.is_held_up(situation, now);
        let deadline = desired.progress_deadline.filter(|_| !held_up);
        let Some(deadline) = self.rollout.press(deadline, now) else { return };
        if self.cannot_look(now) {
            return self.rollout.give_time(now.plus(deadline.min(RECOVERY)));
        }
        self.rollout.get_stuck();
        if !desired.auto_rollback {
            return;
        }
        let is_left = matches!(self.taken_back.as_deref(), Some(TakenBack { to: None, .. }));
        let earlier = match self.taken_back.as_deref() {
            Some(TakenBack { to, .. }) => to.clone(),
            None => self
                .converged
                .as_ref()
                .map(|converged| (converged.release, converged.version.clone())),
        };
        let why_not = match earlier.filter(|(_, version)| *version != desired.version) {
            _ if desired.is_rollback => {
                format!("{} is itself what it went back to", desired.version)
            }
            _ if self.rollback_spent => {
                "it went back once already, and nothing has converged here since".to_owned()
            }
            None if is_left => "it was taken back to a version that never converged here, and \
                                what was converged after that was left; `pvnctl services rollback \
                                --to VERSION` goes to one by name"
                .to_owned(),
            None => "no other version is known to have been converged here".to_owned(),
            Some((release, version)) => {
                self.rollback_spent = true;
                let from = desired.version.clone();
                self.rolled_back =
                    Some(Box::new(RolledBack { from, to: version, deadline, at: now, with: None }));
                return out.push(Action::Rollback { from: desired.release, to: release });
            }
        };
        self.rollout.refuse_rollback(why_not);
    }

    /// Whether something else than the release keeps it from arriving: a gate, a person who has to
    /// do something, or that pvn only looks.
    fn is_held_up(&self, situation: &Situation, now: Timestamp) -> bool {
        if self.only_looks() {
            return true;
        }
        match situation.held_up_by() {
            HeldUpBy::Nothing
            | HeldUpBy::Person
            | HeldUpBy::Gate
            | HeldUpBy::ObserverMode
            | HeldUpBy::LostJob
            | HeldUpBy::Surroundings => true,
            HeldUpBy::Lane => {
                self.rollout.ready_since().is_some_and(|since| now.since(since) >= LANE_PATIENCE)
            }
            // It comes after the end of an apply of another one.
            HeldUpBy::Apply => self.main.as_ref().is_some_and(|job| {
                self.desired().is_none_or(|desired| desired.release != job.release)
            }),
            // Nobody looks before a person has said that it may.
            HeldUpBy::Release => self.fetches_linger(),
        }
    }

    /// Whether a fetch is due that gets no place, or that the surroundings keep from starting, or a
    /// watch is silent: then nobody knows whether the release is stuck, and its time goes on
    /// until somebody could look.
    pub(crate) fn cannot_look(&self, now: Timestamp) -> bool {
        let waits = self.wants.fetch.is_some_and(|since| now.since(since) >= LANE_PATIENCE);
        waits || self.observed.misfires() > 0
    }

    /// Whether the newest apply went well, as far as it says itself.
    fn has_just_applied(&self) -> bool {
        self.rollout.attempts().is_some_and(ApplyAttempts::has_succeeded)
    }

    /// Nothing went back, so a later rollback would not go round in circles.
    pub(crate) fn rollback_refused(&mut self, from: ReleaseId, why: String) {
        if self.rollout.is_stuck() && self.desired().is_some_and(|desired| desired.release == from)
        {
            self.rollout.refuse_rollback(why);
            self.rolled_back = None;
            self.rollback_spent = false;
        }
    }

    /// Nothing went back either, and nothing is wrong with going back: past what came between, the
    /// deadline starts anew as past a gate.
    pub(crate) fn rollback_dropped(
        &mut self,
        from: ReleaseId,
        now: Timestamp,
        out: &mut Vec<Action>,
    ) {
        let GoBack::Dropped(why) = go_back_now(self, from, now) else { return };
        self.rolled_back = None;
        self.rollback_spent = false;
        self.rollout.drop_rollback();
        let message = format!("the automatic rollback that was decided is not done: {why}");
        out.push(log(
            LogKind::ReleaseRollbackDropped,
            None,
            message,
            &[("release", &from.to_string())],
        ));
    }
}
