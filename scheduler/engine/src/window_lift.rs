//! A person lets one release start outside its apply window, for a while: what that is about, and
//! what ends it. Called by the step and by `desire.rs`. Of the other gates it says nothing, so it
//! is looked at where the window is (`converge.rs`) and nowhere else.

use schema::log_kind::LogKind;
use schema::time::Timestamp;

use crate::action::{Action, log};
use crate::converge::Situation;
use crate::limits::WINDOW_LIFTED_AT_MOST;
use crate::state::{State, WindowLift};

/// What ends it.
pub(crate) enum LiftEnd {
    /// Its time.
    Time,
    /// A person.
    Person(String),
    /// It did what it was for.
    Arrived,
    /// Another release is desired, for which nobody has asked.
    OtherRelease,
    Deleted,
}

impl State {
    /// That a person lets what is desired start outside its window, and until when.
    pub fn window_lift(&self) -> Option<&WindowLift> {
        self.rollout.lift()
    }

    /// Whether there is a window that could be lifted, and something that it could keep back.
    pub fn has_window_to_lift(&self) -> bool {
        let has_window = self.desired().is_some_and(|desired| desired.apply.window.is_some());
        has_window && self.situate(self.seen_at) != Situation::Converged
    }

    /// A person does so. What is for no time or nothing changes nothing.
    pub(crate) fn lift_window(&mut self, lift: WindowLift, now: Timestamp, out: &mut Vec<Action>) {
        let until = lift.until.min(now.plus(WINDOW_LIFTED_AT_MOST));
        let lift = WindowLift { at: now, until, ..lift };
        if self.deleted || !self.has_window_to_lift() || lift.check().is_err() {
            return;
        }
        let message = lift.in_words(self.version_in_words());
        let (version, until) = (self.version_in_words().to_owned(), until.to_string());
        let data = [
            ("version", version.as_str()),
            ("until", until.as_str()),
            ("reason", lift.reason.as_str()),
        ];
        out.push(log(LogKind::WindowLifted, Some(lift.who.clone()), message, &data));
        self.rollout.lift_window(lift);
    }

    /// The window counts again, if it was lifted.
    pub(crate) fn end_window_lift(&mut self, end: &LiftEnd, out: &mut Vec<Action>) {
        let Some(lift) = self.rollout.end_lift() else { return };
        let (who, why) = match end {
            LiftEnd::Time => (None, "its time is over".to_owned()),
            LiftEnd::Person(who) => (Some(who.clone()), format!("{who} ends it")),
            LiftEnd::Arrived => (None, "what it was lifted for has arrived".to_owned()),
            LiftEnd::OtherRelease => (None, "another release took its place".to_owned()),
            LiftEnd::Deleted => (None, "the instance was deleted".to_owned()),
        };
        let message = format!("the apply window, which {} lifted, counts again: {why}", lift.who);
        out.push(log(LogKind::WindowLiftEnded, who, message, &[("reason", lift.reason.as_str())]));
    }

    /// What was lifted until now is not any more.
    pub(crate) fn expire_window_lift(&mut self, now: Timestamp, out: &mut Vec<Action>) {
        if self.rollout.lift().is_some_and(|lift| !lift.holds(now)) {
            self.end_window_lift(&LiftEnd::Time, out);
        }
    }
}
