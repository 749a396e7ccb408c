//! The end of a getInfo: what it told, or why it did not, and when it runs again. Nothing else
//! depends on it.

use schema::output::Info;
use schema::time::Timestamp;

use crate::action::StopReason;
use crate::event::Outcome;
use crate::late::{ended_at, timed_out};
use crate::observed::ended_with;
use crate::retry::{backoff, next_due};
use crate::state::{Job, State};

impl State {
    pub(super) fn finish_info(&mut self, job: &Job, outcome: Outcome, now: Timestamp) {
        let Some(policy) = self.desired.as_deref().and_then(|desired| desired.get_info.as_ref())
        else {
            return;
        };
        if job.stop == Some(StopReason::NotWanted) {
            self.info.due_by(Some(now));
            return;
        }
        let steady = self.standing.status.is_converged();
        let ended_at = ended_at(job, &outcome, now);
        let next = || next_due(&policy.cadence, steady, ended_at, self.instance, self.jobs);
        let due = match read(job, outcome) {
            Ok(info) => {
                self.info.told(info, ended_at);
                next()
            }
            Err(why) => {
                let failures = self.info.failed(format!("getInfo {} {why}", job.id), ended_at);
                let tries = policy.retry.max_attempts.is_none_or(|most| failures < most);
                if tries { Some(ended_at.plus(backoff(&policy.retry, failures))) } else { next() }
            }
        };
        self.info.due_by(due);
    }

    /// getInfo is due, if there is one.
    pub(crate) fn tell_now(&mut self, now: Timestamp) {
        if self.desired().is_some_and(|desired| desired.get_info.is_some()) {
            self.info.tell_anew(now);
        }
    }
}

/// What it told.
///
/// # Errors
/// Why it told nothing, as the end of the sentence "getInfo …".
fn read(job: &Job, outcome: Outcome) -> Result<Vec<Info>, String> {
    match outcome {
        Outcome::Exited { code: 0, info: Some(info), .. } => info,
        Outcome::Exited { code: 0, info: None, .. } => Err("printed nothing readable".to_owned()),
        Outcome::Exited { code, said, .. } => Err(ended_with(&code.to_string(), &said)),
        Outcome::NotStarted { why, .. } | Outcome::InputLost { why } => {
            Err(format!("could not be started: {why}"))
        }
        Outcome::BadOutput { why } => Err(why),
        Outcome::TimedOut => Err(timed_out(job)),
        Outcome::Cancelled { .. } => Err("was cancelled".to_owned()),
        Outcome::Unknown { why, .. } => Err(format!("ended with an unknown outcome: {why}")),
    }
}
