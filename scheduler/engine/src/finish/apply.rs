//! The end of an apply: how it ended, what that means for the release that it was for, and when
//! another one may come.

use schema::log_kind::LogKind;
use schema::time::Timestamp;

use crate::action::{Action, StopReason, log};
use crate::desired::{Desired, Observe};
use crate::event::Outcome;
use crate::late::{ended_at, overdue, timed_out};
use crate::observed::ended_with;
use crate::retry::backoff;
use crate::state::{ApplyEnd, Job, State};

impl State {
    pub(super) fn finish_apply(
        &mut self,
        job: &Job,
        outcome: Outcome,
        now: Timestamp,
        out: &mut Vec<Action>,
    ) {
        let Some(desired) = self.desired() else { return };
        let is_of_release = job.release == desired.release;
        let is_of_commands = job.compiled == desired.compiled;
        let ended_at = ended_at(job, &outcome, now);
        let needs_new_plan = matches!(outcome, Outcome::InputLost { .. });
        let ran = matches!(
            outcome,
            Outcome::Exited { .. } | Outcome::BadOutput { .. } | Outcome::TimedOut
        );
        let may_still_run = outcome.may_still_run();
        let end = self.end_of_apply(job, desired, outcome, ended_at);
        if may_still_run {
            (self.unsettled, self.unsettled_in) = (Some(job.id), Some(job.runtime.clone()));
        }
        out.push(log(
            LogKind::JobEnded,
            None,
            format!("apply {} of {} {}", job.id, job.version, end.in_words()),
            &[("job", &job.id.to_string())],
        ));
        if let ApplyEnd::SucceededLeaving(left) = &end {
            let message = format!("apply {} of {} {left}", job.id, job.version);
            let data = [("job", &job.id.to_string() as &str)];
            out.push(log(LogKind::JobLeftBehind, None, message, &data));
        }
        self.remember_applied(job, &end);
        self.look_after_apply(now);
        self.tell_now(now);
        if needs_new_plan {
            self.observed.outdate();
            self.observed.take_next_plan();
        }
        if is_of_release {
            self.after_apply(job, end, ran, ended_at);
            if let Some(attempts) = self.rollout.attempts_mut().filter(|_| !is_of_commands) {
                attempts.commands_changed(ended_at);
            }
            self.try_again_as_asked();
        }
        // As many people as the config says by now, for what comes next.
        self.regate(now);
    }

    fn end_of_apply(
        &self,
        job: &Job,
        desired: &Desired,
        outcome: Outcome,
        ended_at: Timestamp,
    ) -> ApplyEnd {
        let retryable = &desired.apply.retryable_exit_codes;
        match (outcome, &job.stop) {
            (_, Some(StopReason::Person(who))) => ApplyEnd::Cancelled(who.clone()),
            (Outcome::Exited { code: 0, said, .. }, _) if said.is_empty() => ApplyEnd::Succeeded,
            (Outcome::Exited { code: 0, said, .. }, _) => ApplyEnd::SucceededLeaving(said),
            (Outcome::NotStarted { why, .. } | Outcome::InputLost { why }, Some(_)) => {
                ApplyEnd::Failed(format!("{}: {why}", overdue(job)))
            }
            (Outcome::Unknown { why, .. }, _) => ApplyEnd::Unknown(why),
            (Outcome::Exited { .. }, Some(_)) | (Outcome::TimedOut, _) => {
                ApplyEnd::Failed(timed_out(job))
            }
            (Outcome::Cancelled { .. }, Some(_)) => ApplyEnd::Failed(overdue(job)),
            (Outcome::BadOutput { why }, _) => ApplyEnd::Failed(why),
            (Outcome::Exited { code, said, .. }, None) if retryable.contains(&code) => {
                self.retryable(job, desired, (code, &said), ended_at)
            }
            (Outcome::Exited { code, said, .. }, None) => {
                ApplyEnd::Failed(ended_with(&code.to_string(), &said))
            }
            (
                Outcome::NotStarted { why, surroundings: true } | Outcome::InputLost { why },
                None,
            ) => ApplyEnd::Misfired(why),
            (Outcome::NotStarted { why, surroundings: false }, None) => {
                ApplyEnd::Failed(format!("could not be started: {why}"))
            }
            (Outcome::Cancelled { .. }, None) => ApplyEnd::Cancelled("someone".to_owned()),
        }
    }

    /// What is known of what is applied now, and of what that left behind.
    fn remember_applied(&mut self, job: &Job, end: &ApplyEnd) {
        self.left_behind = match end {
            ApplyEnd::SucceededLeaving(left) => {
                Some(format!("apply {} of {} {left}", job.id, job.version))
            }
            ApplyEnd::Succeeded
            | ApplyEnd::Retryable(_)
            | ApplyEnd::RetryableSaying(..)
            | ApplyEnd::Misfired(_)
            | ApplyEnd::Failed(_)
            | ApplyEnd::Unknown(_)
            | ApplyEnd::Cancelled(_) => None,
        };
        let Some(desired) = self.desired.as_deref() else { return };
        match end {
            // What a config changed meanwhile is no order to apply.
            ApplyEnd::Succeeded | ApplyEnd::SucceededLeaving(_) => {
                self.applied = job.apply_key.clone().filter(|_| job.runtime == desired.runtime);
                self.settled = Some(desired.release)
                    .filter(|_| job.release == desired.release && !desired.observe.looks());
            }
            // It never ran.
            ApplyEnd::Misfired(_) => {}
            // How far it came nobody knows, so nothing counts as applied.
            ApplyEnd::Retryable(_)
            | ApplyEnd::RetryableSaying(..)
            | ApplyEnd::Failed(_)
            | ApplyEnd::Unknown(_)
            | ApplyEnd::Cancelled(_) => {
                (self.applied, self.settled) = (None, None);
            }
        }
    }

    /// What the world is like after it is not known yet.
    fn look_after_apply(&mut self, now: Timestamp) {
        match self.desired.as_deref().map(|desired| &desired.observe) {
            Some(Observe::Poll(_)) => self.observed.due_at(now),
            // What it told meanwhile may be of before the end.
            Some(Observe::Watch(policy)) => {
                let fresh_for = policy.counts_for();
                self.observed.outdate();
                self.begin_watch(fresh_for, now);
            }
            Some(Observe::Never) | None => {}
        }
    }

    /// Another attempt, or the end of attempts: too many, or past the grace period.
    fn retryable(
        &self,
        job: &Job,
        desired: &Desired,
        (code, said): (i32, &str),
        ended_at: Timestamp,
    ) -> ApplyEnd {
        let retry = &desired.apply.retry;
        let next_at = ended_at.plus(backoff(retry, job.attempt));
        if retry.max_attempts.is_some_and(|most| job.attempt >= most) {
            ApplyEnd::Failed(ended_with(
                &format!("{code}, which is retryable, at the last of {} attempts", job.attempt),
                said,
            ))
        } else if self.rollout.attempts().is_some_and(|attempts| attempts.is_past_grace(next_at)) {
            ApplyEnd::Failed(ended_with(
                &format!(
                    "{code}, which is retryable, and the grace period ends before the next attempt"
                ),
                said,
            ))
        } else if said.is_empty() {
            ApplyEnd::Retryable(code)
        } else {
            ApplyEnd::RetryableSaying(code, said.to_owned())
        }
    }

    /// What the end of an apply means for the release that it was for.
    fn after_apply(&mut self, job: &Job, end: ApplyEnd, ran: bool, ended_at: Timestamp) {
        if !end.goes_on() {
            self.approvals.use_up(&job.uses);
        }
        if !matches!(end, ApplyEnd::Misfired(_)) {
            self.observed.outdate();
        }
        if matches!(end, ApplyEnd::Retryable(_) | ApplyEnd::RetryableSaying(..)) {
            self.observed.take_next_plan();
        }
        if let (Some(attempts), Some(desired)) =
            (self.rollout.attempts_mut(), self.desired.as_deref())
        {
            attempts.ended(end, ran, &desired.apply.retry, desired.grace, ended_at);
        }
    }
}
