//! Desired against observed -> what the instance waits for or is ready to do. [`State::situate`] is
//! the one place that decides; status, explain, wishes for a lane and the check before a start all
//! follow from what it says.

use schema::id::JobId;
use schema::status::ApprovalStatus;
use schema::time::Timestamp;

use crate::approve::Asker;
use crate::desired::{Unmet, Window};
use crate::limits::MISSES_UNTIL_UNSEEN;
use crate::state::{ApplyAttempts, ApplyEnd, Finding, State, Work};

/// Where an instance is on its way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Situation {
    Deleted,
    NoRelease,
    Paused,
    /// An apply is in flight.
    Applying,
    Converged,
    /// Was converged, and has not been seen since.
    Unseen,
    /// Nothing was seen yet.
    Unlooked,
    /// The versions match, something is on its way.
    Pending,
    /// The versions match, something is broken.
    Broken,
    /// A person stopped the apply.
    Cancelled,
    /// An apply or fetch was given up and may still run.
    Unsettled(JobId),
    /// Failed; tried again then, or only by a person.
    ApplyFailed(Option<Timestamp>),
    /// Nobody knows how the apply ended; tried again then, or only by a person.
    ApplyUnknown(Option<Timestamp>),
    /// A retryable end; the next attempt comes then.
    Retrying(Timestamp),
    /// The surroundings kept it from starting; the next try comes then.
    Misfired(Timestamp),
    /// Somebody says that the drift that there is stays as it is, until then.
    Acknowledged(Timestamp),
    /// What is seen next decides.
    Looking,
    /// Applied, and the effect may take until then to show.
    Grace(Timestamp),
    /// Only looks.
    Observing,
    /// A gate that asks nobody waits for something.
    Unmet(Unmet),
    /// People are to be asked.
    Ask(Asker),
    /// Index of the approval that people were asked for.
    Approval(usize),
    /// Index of the approval that was refused.
    Rejected(usize),
    /// Shut until then, or for ever.
    WindowShut(Option<Timestamp>),
    /// Every gate but the lane is open, until the window shuts.
    Ready(Option<Timestamp>),
}

/// A gate that keeps back an apply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ShutGate {
    /// A gate that asks nobody waits for something.
    Unmet(Unmet),
    /// People have to be asked.
    Ask(Asker),
    /// Index of the approval that people were asked for.
    Approval(usize),
    /// Index of the approval that was refused.
    Rejected(usize),
    /// The window opens then, or never.
    Window(Option<Timestamp>),
}

macro_rules! situations {
    ($($pattern:pat => $name:literal,)*) => {
        /// Name of every situation there is; one with and without an instant at which it ends are
        /// two.
        pub const SITUATIONS: &[&str] = &[$($name),*];

        impl Situation {
            fn name(&self) -> &'static str {
                match self {
                    $($pattern => $name,)*
                }
            }
        }
    };
}

// A match without a wildcard, so that a new situation does not compile before it is named here; and
// then the walk through all of them in `tests/it/rule_18.rs` wants to know its way out.
situations! {
    Situation::Deleted => "deleted",
    Situation::NoRelease => "no release",
    Situation::Paused => "paused",
    Situation::Applying => "applying",
    Situation::Converged => "converged",
    Situation::Unseen => "unseen",
    Situation::Unlooked => "unlooked",
    Situation::Pending => "pending",
    Situation::Broken => "broken",
    Situation::Cancelled => "cancelled",
    Situation::Unsettled(_) => "unsettled",
    Situation::ApplyFailed(Some(_)) => "apply failed, again then",
    Situation::ApplyFailed(None) => "apply failed",
    Situation::ApplyUnknown(Some(_)) => "apply unknown, again then",
    Situation::ApplyUnknown(None) => "apply unknown",
    Situation::Retrying(_) => "retrying",
    Situation::Misfired(_) => "misfired",
    Situation::Acknowledged(_) => "acknowledged",
    Situation::Looking => "looking",
    Situation::Grace(_) => "grace",
    Situation::Observing => "observing",
    Situation::Unmet(_) => "unmet",
    Situation::Ask(_) => "ask",
    Situation::Approval(_) => "approval",
    Situation::Rejected(_) => "rejected",
    Situation::WindowShut(Some(_)) => "window shut, opens then",
    Situation::WindowShut(None) => "window shut",
    Situation::Ready(Some(_)) => "ready, shuts then",
    Situation::Ready(None) => "ready",
}

/// Which of [`SITUATIONS`] the instance is in, as its last step left it.
pub fn situation(state: &State) -> &'static str {
    state.situate(state.seen_at()).name()
}

impl State {
    /// Where the instance is. Looks at the whole state, never at what just happened.
    pub(crate) fn situate(&self, now: Timestamp) -> Situation {
        let applying = !self.deleted && !self.paused && self.desired.is_some() && self.applying();
        if applying { Situation::Applying } else { self.situate_idle(now) }
    }

    /// Where it would be without the apply in flight, if there is one.
    pub(crate) fn situate_idle(&self, now: Timestamp) -> Situation {
        let Some(desired) = self.desired() else {
            return if self.deleted { Situation::Deleted } else { Situation::NoRelease };
        };
        if self.deleted {
            Situation::Deleted
        } else if self.paused {
            Situation::Paused
        } else if !desired.observe.looks() {
            if self.is_applied(desired) { Situation::Converged } else { self.situate_work(now) }
        } else {
            match self.observed.finding() {
                Finding::Nothing => Situation::Unlooked,
                Finding::Clean if self.observed.misses() >= MISSES_UNTIL_UNSEEN => {
                    Situation::Unseen
                }
                Finding::Clean => Situation::Converged,
                Finding::Pending(_) => Situation::Pending,
                Finding::Broken(_) => Situation::Broken,
                Finding::Work(_) => self.situate_work(now),
            }
        }
    }

    /// There is work to do: what the applies so far have to say about it, then the gates.
    fn situate_work(&self, now: Timestamp) -> Situation {
        let looks = self.is_looked_at();
        let blind = looks && !self.observed.is_fresh();
        let attempts = self.rollout.attempts();
        let end = attempts.and_then(ApplyAttempts::end);
        if matches!(end, Some(ApplyEnd::Cancelled(_))) {
            return Situation::Cancelled;
        }
        if let Some(job) = self.given_up().next() {
            return Situation::Unsettled(job);
        }
        if let Some(known) = self.acknowledged(now).filter(|_| !blind) {
            return match self.observed.misses() >= MISSES_UNTIL_UNSEEN {
                true => Situation::Unseen,
                false => Situation::Acknowledged(known.until),
            };
        }
        if let Some((attempts, end)) = attempts.zip(end) {
            let at = attempts.again_at();
            let (waits, again_at) = (now < at, looks.then_some(at));
            match end {
                ApplyEnd::Failed(_) if waits || blind || !looks => {
                    return Situation::ApplyFailed(again_at);
                }
                ApplyEnd::Unknown(_) if waits || blind || !looks => {
                    return Situation::ApplyUnknown(again_at);
                }
                ApplyEnd::Succeeded | ApplyEnd::SucceededLeaving(_) if waits && !blind => {
                    return Situation::Grace(at);
                }
                // A no that was said since is told at once, and not when the time of the next
                // attempt has come.
                ApplyEnd::Retryable(_) | ApplyEnd::RetryableSaying(..) | ApplyEnd::Misfired(_)
                    if waits =>
                {
                    return match (self.refusal(now), end) {
                        (Some(no), _) => Situation::Rejected(no),
                        (None, ApplyEnd::Misfired(_)) => Situation::Misfired(at),
                        (None, _) => Situation::Retrying(at),
                    };
                }
                _ => {}
            }
        }
        // After an apply only what was seen since says that there still is work.
        let ran = end.is_some_and(|end| !matches!(end, ApplyEnd::Misfired(_)));
        if blind || looks && ran && self.observed.misses() > 0 {
            Situation::Looking
        } else {
            self.situate_gates(now)
        }
    }

    /// The no that keeps an apply back, whatever else does.
    fn refusal(&self, now: Timestamp) -> Option<usize> {
        self.shut_gates(now).find_map(|gate| match gate {
            ShutGate::Rejected(at) => Some(at),
            ShutGate::Unmet(_) | ShutGate::Ask(_) | ShutGate::Approval(_) | ShutGate::Window(_) => {
                None
            }
        })
    }

    /// The gates in order: preconditions, approvals, window. The last one, the lane, is decided
    /// over all instances.
    fn situate_gates(&self, now: Timestamp) -> Situation {
        match self.shut_gates(now).next() {
            Some(ShutGate::Unmet(unmet)) => Situation::Unmet(unmet),
            _ if self.only_looks() => Situation::Observing,
            Some(ShutGate::Ask(asker)) => Situation::Ask(asker),
            Some(ShutGate::Approval(at)) => Situation::Approval(at),
            Some(ShutGate::Rejected(at)) => Situation::Rejected(at),
            Some(ShutGate::Window(opens_at)) => Situation::WindowShut(opens_at),
            None => Situation::Ready(match self.window(now) {
                Some(WindowNow::Open { shuts_at }) => Some(shuts_at),
                Some(WindowNow::Shut { .. }) | None => None,
            }),
        }
    }

    /// The gates that would keep back an apply at `at`, in order, as far as is known now.
    pub(crate) fn shut_gates(&self, at: Timestamp) -> impl Iterator<Item = ShutGate> {
        let unmet =
            self.desired().map_or_else(Vec::new, |desired| desired.unmet(self.rollout.met()));
        let unmet = unmet.into_iter().map(ShutGate::Unmet);
        let people = self.askers().filter_map(|asker| match self.standing_approval(asker) {
            None => Some(ShutGate::Ask(asker)),
            Some(at) => match self.approvals[at].status {
                ApprovalStatus::Approved => None,
                ApprovalStatus::Rejected => Some(ShutGate::Rejected(at)),
                ApprovalStatus::Pending | ApprovalStatus::Expired => Some(ShutGate::Approval(at)),
            },
        });
        let window = std::iter::once_with(move || match self.window(at) {
            Some(WindowNow::Shut { opens_at }) => Some(ShutGate::Window(opens_at)),
            Some(WindowNow::Open { .. }) | None => None,
        });
        let no = self.standing_no().map(ShutGate::Rejected);
        unmet.chain(no).chain(people).chain(window.flatten())
    }

    /// One that a person has lifted is open at least until that ends.
    fn window(&self, at: Timestamp) -> Option<WindowNow> {
        let window = self.desired()?.apply.window.as_ref()?;
        let Some(lift) = self.rollout.lift().filter(|lift| lift.holds(at)) else {
            return Some(window_at(window, at));
        };
        Some(match window_at(window, lift.until) {
            WindowNow::Shut { .. } => WindowNow::Open { shuts_at: lift.until },
            is_open => is_open,
        })
    }

    /// The work that was found, if there is some.
    pub(crate) fn work(&self) -> Option<&Work> {
        self.observed.work()
    }
}

/// An apply window at one instant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WindowNow {
    Open { shuts_at: Timestamp },
    Shut { opens_at: Option<Timestamp> },
}

/// A window is open from an instant of its schedule, that one included, for its duration, the end
/// excluded.
pub(crate) fn window_at(window: &Window, now: Timestamp) -> WindowNow {
    match window.opens.next_after(now.minus(window.duration)) {
        Some(opened_at) if opened_at <= now => {
            WindowNow::Open { shuts_at: opened_at.plus(window.duration) }
        }
        opens_at => WindowNow::Shut { opens_at },
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use schema::schedule::Schedule;

    use super::*;

    fn check_window(now: &str, expected: &str) {
        let window = Window {
            opens: Schedule::parse("0 0 9 * * Mon-Fri", Some("Europe/Berlin")).unwrap(),
            duration: Duration::from_secs(8 * 3_600),
        };
        let told = match window_at(&window, now.parse().unwrap()) {
            WindowNow::Open { shuts_at } => format!("until {shuts_at}"),
            WindowNow::Shut { opens_at } => format!("opens {}", opens_at.unwrap()),
        };
        assert_eq!(told, expected, "at {now}");
    }

    #[test]
    fn a_window_opens_at_its_instant_and_shuts_after_its_duration() {
        check_window("2026-07-03T06:59:59.999Z", "opens 2026-07-03T07:00:00.000Z");
        check_window("2026-07-03T07:00:00Z", "until 2026-07-03T15:00:00.000Z");
        check_window("2026-07-03T14:59:59.999Z", "until 2026-07-03T15:00:00.000Z");
        check_window("2026-07-03T15:00:00Z", "opens 2026-07-06T07:00:00.000Z");
    }

    #[test]
    fn a_schedule_that_has_run_out_never_opens() {
        let window = Window {
            opens: Schedule::parse("0 0 9 1 1 * 2020", None).unwrap(),
            duration: Duration::from_secs(1),
        };
        assert_eq!(
            window_at(&window, Timestamp::from_millis(1_800_000_000_000)),
            WindowNow::Shut { opens_at: None }
        );
    }
}
