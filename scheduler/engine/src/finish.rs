//! The end of a job -> what is known afterwards. A result counts once: an end of a job that is not
//! in flight changes nothing. Called by the step. Each command's end has a part of its own.

use schema::id::JobId;
use schema::log_kind::LogKind;
use schema::status::JobKind;
use schema::time::Timestamp;

use crate::action::{Action, StopReason, log};
use crate::event::Outcome;
use crate::state::{Job, State, had_ended};

mod apply;
mod fetch;
mod info;

impl State {
    /// A job is over.
    pub(crate) fn finish(
        &mut self,
        id: JobId,
        outcome: Outcome,
        now: Timestamp,
        out: &mut Vec<Action>,
    ) {
        if self.unsettled == Some(id) {
            if outcome.may_still_run() {
                return; // told once more that nobody knows
            }
            (self.unsettled, self.unsettled_in) = (None, None);
            out.push(known_gone(id));
            // What it still did nobody has seen.
            self.look_now(now);
            self.tell_now(now);
        } else if self.lingering.contains(&id) {
            if outcome.may_still_run() {
                return;
            }
            self.lingering.remove(&id);
            out.push(known_gone(id));
        } else if self.main.as_ref().is_some_and(|job| job.id == id) {
            let Some(mut job) = self.main.take() else { return };
            self.forget_late_stop(&mut job, &outcome);
            if job.kind == JobKind::Apply {
                self.finish_apply(&job, outcome, now, out);
            } else {
                self.finish_fetch(&job, outcome, now, out);
            }
        } else if self.side.as_ref().is_some_and(|job| job.id == id) {
            let Some(mut job) = self.side.take() else { return };
            self.forget_late_stop(&mut job, &outcome);
            self.finish_info(&job, outcome, now);
        }
    }

    /// A stop that came when the command had ended by itself, which was heard of later, is none. A
    /// cancelled apply counts as cancelled all the same where fetch decides what is next, and
    /// where it failed: no further attempt is what was asked for.
    fn forget_late_stop(&self, job: &mut Job, outcome: &Outcome) {
        let (Outcome::Exited { code, ended_at, .. }, Some(stopped_at)) = (outcome, job.stopped_at)
        else {
            return;
        };
        let is_cancelled_apply =
            job.kind == JobKind::Apply && matches!(job.stop, Some(StopReason::Person(_)));
        let asks_for_no_other =
            *code == 0 && self.desired().is_some_and(|desired| !desired.observe.looks());
        if had_ended(*ended_at, stopped_at) && (!is_cancelled_apply || asks_for_no_other) {
            job.stop = None;
        }
    }
}

/// Of a job that was given up.
fn known_gone(id: JobId) -> Action {
    let message = format!("{id} is known to be gone now");
    log(LogKind::JobEnded, None, message, &[("job", &id.to_string())])
}
