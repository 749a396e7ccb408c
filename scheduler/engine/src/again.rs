//! A person asks to look again, or to try again: what ends by that, and what stays for somebody to
//! decide. Called by the step.

use schema::log_kind::LogKind;
use schema::status::JobKind;
use schema::time::Timestamp;

use crate::action::Action;
use crate::action::log;
use crate::desired::Observe;
use crate::state::{ApplyAttempts, ApplyEnd, State};

impl State {
    pub(crate) fn refresh(
        &mut self,
        who: String,
        tries_again: bool,
        now: Timestamp,
        out: &mut Vec<Action>,
    ) {
        if self.deleted || self.desired.is_none() || self.paused {
            return;
        }
        let is_tried = tries_again && self.may_try_again();
        if is_tried {
            self.rollout.forget_failed();
        }
        let runs_others = self.applying()
            && self.main.as_ref().map(|job| job.compiled)
                != self.desired.as_ref().map(|desired| desired.compiled);
        if let Some(attempts) = self.rollout.attempts_mut().filter(|_| tries_again && runs_others) {
            attempts.ask_to_try_again();
        }
        let answers_already = self.answers_already() && !tries_again;
        if tries_again {
            self.observed.forget_failures();
        }
        self.ask_all(now);
        self.observed.count_what_is_of_before(answers_already);
        let what = if is_tried {
            "asks how it is now, and to try again what failed"
        } else {
            "asks how it is now"
        };
        out.push(log(
            LogKind::InstanceRefresh,
            Some(who.clone()),
            format!("{who} {what}{}", self.who_answers()),
            &[],
        ));
    }

    /// Whether an apply failed or the release is stuck, and nothing of that is for a person to
    /// decide.
    fn may_try_again(&self) -> bool {
        let attempts = self.rollout.attempts();
        let is_for_person = matches!(
            attempts.and_then(ApplyAttempts::end),
            Some(ApplyEnd::Cancelled(_) | ApplyEnd::Unknown(_))
        ) || self.given_up().next().is_some()
            || self.approvals.first_no().is_some();
        (self.rollout.is_stuck() || attempts.is_some_and(ApplyAttempts::has_come_to_nothing))
            && !is_for_person
            && !self.applying()
    }

    /// Whether a fetch is under way that began since somebody wanted to know how it is, or the like
    /// of one.
    fn answers_already(&self) -> bool {
        let fetch = self.main.as_deref().filter(|job| job.kind == JobKind::Fetch);
        fetch.is_some_and(|job| self.observed.answers_whoever_asked(job.id))
    }

    /// What somebody asked for while an apply with commands of before was under way, which is over
    /// now.
    pub(crate) fn try_again_as_asked(&mut self) {
        let attempts = self.rollout.attempts_mut();
        let is_asked = attempts.is_some_and(ApplyAttempts::was_asked_to_try_again);
        if is_asked && self.may_try_again() {
            self.rollout.forget_failed();
        }
    }

    /// Fetch and getInfo are due, or the watch is to look anew.
    fn ask_all(&mut self, now: Timestamp) {
        match self.desired().map(|desired| &desired.observe) {
            Some(Observe::Watch(_)) => self.look_in_time(now),
            Some(Observe::Poll(_) | Observe::Never) | None => self.look_now(now),
        }
        self.observed.ask(self.is_looked_at());
        self.tell_now(now);
    }

    /// Who answers whoever asked, where no fetch does.
    fn who_answers(&self) -> &'static str {
        match self.desired().map(|desired| &desired.observe) {
            Some(Observe::Watch(_)) => {
                "; it is watched, so the watch looks anew and no fetch is run"
            }
            Some(Observe::Poll(_) | Observe::Never) | None => "",
        }
    }

    pub(crate) fn retry(&mut self, who: String, now: Timestamp, out: &mut Vec<Action>) {
        if self.deleted || self.desired.is_none() || self.applying() {
            return;
        }
        self.rollout.begin_again();
        (self.unsettled, self.unsettled_in) = (None, None);
        self.lingering.clear();
        self.observed.forget_failures();
        self.approvals.forget_rejections();
        self.end_acknowledged(who.clone(), out);
        self.ask_all(now);
        out.push(log(
            LogKind::InstanceRetry,
            Some(who.clone()),
            format!("{who} asks to try again now{}", self.who_answers()),
            &[],
        ));
    }
}
