//! What a release would lead to, before somebody makes it: it is tried on a copy of the state, and
//! what is said of that comes from the description by which an instance is explained, so that a dry
//! run cannot promise anything else than `explain` tells afterwards. Called for dry runs of a push.

use schema::api::Cause;
use schema::cause::CauseCode;
use schema::status::JobKind;
use schema::time::Timestamp;

use super::{CauseChain, Surroundings};
use crate::approve::Asker;
use crate::converge::{ShutGate, Situation};
use crate::desired::Desired;
use crate::event::Event;
use crate::limiter::{Blocked, ConcurrencyLimiter};
use crate::state::{AppliesHeld, State};
use crate::step;

/// What would come of a release in a channel.
#[derive(Debug, Clone, PartialEq)]
pub struct Forecast {
    /// What would happen first.
    pub next: String,
    /// What would keep back its apply, as far as is known now, in the order in which it counts. In
    /// each `until` is when that ends by itself.
    pub holds: Vec<Cause>,
}

/// What would come of `release` if it were made now. `held`: whether the applies of its runtime
/// are, once somebody has released something there.
pub fn forecast(
    state: State,
    release: Desired,
    held: Option<AppliesHeld>,
    lanes: &ConcurrencyLimiter,
    now: Timestamp,
    around: Surroundings<'_>,
) -> Forecast {
    let (state, _) = step(state, Event::Desired(Box::new(release)), now);
    let (state, _) = step(state, Event::Held(held.map(Box::new)), now);
    let mut chain = CauseChain { state: &state, lanes, now, around, causes: Vec::new() };
    chain.holds();
    Forecast { next: state.begins_with(chain.causes.is_empty()), holds: chain.causes }
}

impl State {
    /// What the release begins with. `is_free`: whether nothing is known that keeps back its apply.
    fn begins_with(&self, is_free: bool) -> String {
        if self.paused {
            return format!("nothing: it stays {}", self.paused_in_words());
        }
        let older = match self.main.as_deref().filter(|_| self.applying()) {
            Some(job) => {
                format!("apply {} of {} goes on to its end first; then ", job.id, job.version)
            }
            None => String::new(),
        };
        let unless_held = if is_free { "" } else { " and nothing keeps it back" };
        let begins = match self.desired().filter(|desired| desired.observe.looks()) {
            _ if self.fetches_linger() => {
                "nothing: fetches that were given up may still run".to_owned()
            }
            Some(desired) => format!(
                "{} looks at once, and apply follows if there is work{unless_held}",
                desired.observe.who_looks()
            ),
            None if self.situate_idle(self.seen_at) == Situation::Converged => {
                "nothing: its `applyId` is that of what was applied last".to_owned()
            }
            None if is_free || !older.is_empty() => "apply starts at once".to_owned(),
            None => "apply starts once nothing keeps it back".to_owned(),
        };
        older + &begins
    }
}

impl CauseChain<'_> {
    /// Everything that keeps back the apply.
    fn holds(&mut self) {
        let state = self.state;
        if state.paused {
            self.resume();
        }
        if let Some(job) = state.main.as_deref().filter(|_| state.applying()) {
            self.job(job);
        }
        state.given_up().for_each(|job| self.lingers(job));
        if state.observer {
            let text = "observer mode: it looks and never applies, until the scheduler is started \
                        without it";
            self.say(CauseCode::Observer, text.to_owned(), None, None);
        }
        if let Some(wish) = state.observe_wish() {
            let text = format!(
                "{}: it is looked at and nothing is applied, until `pvnctl services resume`",
                wish.in_words()
            );
            self.say(CauseCode::Observer, text, Some(wish.since), None);
        }
        for gate in state.shut_gates(self.now) {
            self.keeps_back(&gate);
        }
        self.breaker();
        let is_full = matches!(
            self.lanes.blocked(state, JobKind::Apply, self.now),
            Blocked::Runtime { .. } | Blocked::Share { .. } | Blocked::Daemon { .. }
        );
        // What else keeps it back may last longer than a place is taken.
        if is_full && self.causes.is_empty() {
            self.waits_for_place(JobKind::Apply, None);
        }
    }

    fn keeps_back(&mut self, gate: &ShutGate) {
        let (code, until) = match gate {
            ShutGate::Unmet(_) => (CauseCode::UpstreamUnstable, None),
            ShutGate::Ask(_) | ShutGate::Approval(_) => (CauseCode::ApprovalPending, None),
            ShutGate::Rejected(_) => (CauseCode::ApprovalRejected, None),
            ShutGate::Window(opens_at) => (CauseCode::WindowShut, *opens_at),
        };
        let unless = match gate {
            ShutGate::Ask(Asker::Destroy) => ", unless its plan destroys nothing",
            _ => "",
        };
        let condition = match gate {
            ShutGate::Unmet(unmet) => unmet.until(self.version()),
            gate => self.state.condition(gate),
        };
        self.say(code, format!("waits until {condition}{unless}"), None, until);
    }
}
