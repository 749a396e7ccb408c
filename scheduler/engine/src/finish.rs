//! The end of a job -> what is known afterwards. A result counts once: an end of a job that is not
//! in flight changes nothing. Called by the step.

use schema::id::{ApprovalId, JobId};
use schema::log_kind::LogKind;
use schema::output::Info;
use schema::status::JobKind;
use schema::time::Timestamp;

use crate::action::{Action, StopReason, log};
use crate::desired::{Desired, Observe, PollPolicy};
use crate::event::Outcome;
use crate::late::{ended_at, overdue, timed_out};
use crate::limits::SHORTEST_PAUSE;
use crate::observation::Blame;
use crate::observed::{ended_with, of_fetch};
use crate::retry::{MISFIRE_POLICY, backoff, next_due};
use crate::state::{ApplyEnd, Finding, Job, Matched, State, had_ended};

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
            out.push(log(
                LogKind::JobEnded,
                None,
                format!("{id} is known to be gone now"),
                &[("job", &id.to_string())],
            ));
            // What it still did nobody has seen.
            self.look_now(now);
            if self.desired.as_deref().is_some_and(|desired| desired.get_info.is_some()) {
                self.telling.due = Some(now);
            }
        } else if self.lingering.contains(&id) {
            if outcome.may_still_run() {
                return;
            }
            self.lingering.remove(&id);
            out.push(log(
                LogKind::JobEnded,
                None,
                format!("{id} is known to be gone now"),
                &[("job", &id.to_string())],
            ));
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

    // ---- fetch ----

    fn finish_fetch(&mut self, job: &Job, outcome: Outcome, now: Timestamp, out: &mut Vec<Action>) {
        if outcome.may_still_run() {
            self.lingering.insert(job.id);
        }
        let Some(desired) = self.desired.take() else { return };
        let poll = desired.observe.poll();
        let policy =
            poll.filter(|_| job.release == desired.release && job.compiled == desired.compiled);
        match policy.filter(|_| job.stop != Some(StopReason::NotWanted)) {
            // An answer about something that is no longer asked.
            None => self.look.due = self.look.due.or(poll.map(|_| now)),
            Some(policy) => {
                let observation = of_fetch(job, policy.mode, outcome, now);
                let (ended_at, missed) =
                    (observation.at, observation.result.as_ref().err().map(|error| error.blame));
                self.take_in(observation, &desired.version, out);
                if missed.is_none() && self.work().is_none() {
                    self.look.matched = Some(Matched {
                        compiled: job.compiled,
                        decided_at: job.decided_at,
                        ended_at,
                    });
                }
                self.look.due = self.look.due.or(self.next_fetch(policy, missed, ended_at));
            }
        }
        self.desired = Some(desired);
    }

    /// When it is fetched again after this end of a fetch.
    fn next_fetch(
        &self,
        policy: &PollPolicy,
        missed: Option<Blame>,
        ended_at: Timestamp,
    ) -> Option<Timestamp> {
        let look = &self.look;
        let wait = match missed {
            None | Some(Blame::Person) => None,
            Some(Blame::Surroundings) => Some(backoff(&MISFIRE_POLICY, look.misfires)),
            Some(Blame::Command) => {
                let retry = policy
                    .retry
                    .as_ref()
                    .filter(|retry| retry.max_attempts.is_none_or(|most| look.failures < most));
                retry.map(|retry| backoff(retry, look.failures))
            }
        };
        match wait {
            Some(wait) => Some(ended_at.plus(wait)),
            None => {
                let is_clean = missed.is_none() && look.finding == Finding::Clean;
                next_due(&policy.cadence, is_clean, ended_at, self.instance, self.jobs)
            }
        }
    }

    // ---- apply ----

    fn finish_apply(&mut self, job: &Job, outcome: Outcome, now: Timestamp, out: &mut Vec<Action>) {
        let Some(desired) = self.desired.take() else { return };
        let ended_at = ended_at(job, &outcome, now);
        if outcome.may_still_run() {
            (self.unsettled, self.unsettled_in) = (Some(job.id), Some(job.runtime.clone()));
        }
        let needs_new_plan = matches!(outcome, Outcome::InputLost { .. });
        let ran = matches!(
            outcome,
            Outcome::Exited { .. } | Outcome::BadOutput { .. } | Outcome::TimedOut
        );
        let attempts = &desired.apply.retryable_exit_codes;
        let end = match (outcome, &job.stop) {
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
            (Outcome::Exited { code, said, .. }, None) if attempts.contains(&code) => {
                self.retryable(job, &desired, (code, &said), ended_at)
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
        };
        out.push(log(
            LogKind::JobEnded,
            None,
            format!("apply {} of {} {}", job.id, job.version, end.in_words()),
            &[("job", &job.id.to_string())],
        ));
        self.left_behind = match &end {
            ApplyEnd::SucceededLeaving(left) => {
                Some(format!("apply {} of {} {left}", job.id, job.version))
            }
            _ => None,
        };
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
            | ApplyEnd::Failed(_)
            | ApplyEnd::Unknown(_)
            | ApplyEnd::Cancelled(_) => {
                (self.applied, self.settled) = (None, None);
            }
        }
        self.look_after_apply(&desired, now);
        if desired.get_info.is_some() {
            self.telling.due = Some(now);
        }
        if needs_new_plan {
            self.look.fresh = false;
            self.take_next_plan();
        }
        if job.release == desired.release {
            self.after_apply(&desired, end, ended_at, &job.uses);
            if let Some(chain) = &mut self.pursuit.chain {
                chain.begun |= ran;
                if job.compiled != desired.compiled {
                    chain.commands_changed(ended_at);
                }
            }
            self.try_again_as_asked();
        }
        // As many people as the config says by now, for what comes next.
        self.regate(&desired, now);
        self.desired = Some(desired);
    }

    /// What the world is like after it is not known yet.
    fn look_after_apply(&mut self, desired: &Desired, now: Timestamp) {
        match &desired.observe {
            Observe::Poll(_) => self.look.due = Some(now),
            // What it told meanwhile may be of before the end.
            Observe::Watch(policy) => {
                self.look.fresh = false;
                self.begin_watch(policy.counts_for(), now);
            }
            Observe::Never => {}
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
        } else if self.pursuit.chain.as_ref().is_some_and(|chain| next_at > chain.grace_until) {
            ApplyEnd::Failed(ended_with(
                &format!(
                    "{code}, which is retryable, and the grace period ends before the next attempt"
                ),
                said,
            ))
        } else {
            ApplyEnd::Retryable(code)
        }
    }

    /// What the end of an apply means for the release that it was for.
    fn after_apply(
        &mut self,
        desired: &Desired,
        end: ApplyEnd,
        ended_at: Timestamp,
        used: &[ApprovalId],
    ) {
        let goes_on = matches!(end, ApplyEnd::Retryable(_) | ApplyEnd::Misfired(_));
        if !goes_on {
            self.use_up(used);
        }
        if !matches!(end, ApplyEnd::Misfired(_)) {
            self.look.fresh = false;
        }
        if matches!(end, ApplyEnd::Retryable(_)) {
            self.take_next_plan();
        }
        let Some(chain) = &mut self.pursuit.chain else { return };
        chain.ended_at = ended_at;
        chain.fruitless = chain.fruitless.saturating_add(u32::from(!goes_on));
        chain.misfires =
            if matches!(end, ApplyEnd::Misfired(_)) { chain.misfires.saturating_add(1) } else { 0 };
        let wait = match end {
            ApplyEnd::Retryable(_) => backoff(&desired.apply.retry, chain.attempt),
            ApplyEnd::Misfired(_) => backoff(&MISFIRE_POLICY, chain.misfires),
            _ => backoff(&desired.apply.retry, chain.fruitless)
                .min(desired.grace)
                .max(SHORTEST_PAUSE),
        };
        chain.again_at = ended_at.plus(wait);
        if !goes_on {
            chain.again_at = chain.again_at.max(chain.grace_until);
        }
        chain.end = Some(end);
    }

    /// The next fetch's plan takes the place of this one, also where its fingerprint is the same
    /// and people have said yes to it.
    fn take_next_plan(&mut self) {
        if let Finding::Work(work) = &mut self.look.finding {
            work.stale_plan = true;
        }
    }

    // ---- getInfo ----

    fn finish_info(&mut self, job: &Job, outcome: Outcome, now: Timestamp) {
        let Some(policy) = self.desired().and_then(|desired| desired.get_info.as_ref()) else {
            return;
        };
        let (cadence, retry) = (policy.cadence.clone(), policy.retry.clone());
        if job.stop == Some(StopReason::NotWanted) {
            self.telling.due = self.telling.due.or(Some(now));
            return;
        }
        let steady = self.standing.status.is_converged();
        let ended_at = ended_at(job, &outcome, now);
        let told: Result<Vec<Info>, String> = match outcome {
            Outcome::Exited { code: 0, info: Some(info), .. } => info,
            Outcome::Exited { code: 0, info: None, .. } => {
                Err("printed nothing readable".to_owned())
            }
            Outcome::Exited { code, said, .. } => Err(ended_with(&code.to_string(), &said)),
            Outcome::NotStarted { why, .. } | Outcome::InputLost { why } => {
                Err(format!("could not be started: {why}"))
            }
            Outcome::BadOutput { why } => Err(why),
            Outcome::TimedOut => Err(timed_out(job)),
            Outcome::Cancelled { .. } => Err("was cancelled".to_owned()),
            Outcome::Unknown { why, .. } => Err(format!("ended nobody knows how: {why}")),
        };
        let due = match told {
            Ok(info) => {
                self.telling.info = info;
                self.telling.told_at = Some(ended_at);
                self.telling.failures = 0;
                self.telling.error = None;
                self.telling.failed_at = None;
                next_due(&cadence, steady, ended_at, self.instance, self.jobs)
            }
            Err(why) => {
                self.telling.failures = self.telling.failures.saturating_add(1);
                self.telling.error = Some(format!("getInfo {} {why}", job.id));
                self.telling.failed_at = Some(ended_at);
                let tries = retry.max_attempts.is_none_or(|most| self.telling.failures < most);
                if tries {
                    Some(ended_at.plus(backoff(&retry, self.telling.failures)))
                } else {
                    next_due(&cadence, steady, ended_at, self.instance, self.jobs)
                }
            }
        };
        self.telling.due = self.telling.due.or(due);
    }
}
