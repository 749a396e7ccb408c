//! An apply and its retries: which attempt it is, how the newest one ended, and when another one
//! may come.

use std::time::Duration;

use schema::id::JobId;
use schema::time::Timestamp;
use serde::{Deserialize, Serialize};

use super::{is_false, is_zero};
use crate::desired::RetryPolicy;
use crate::limits::{SHORTEST_PAUSE, WITHOUT_EFFECT, WITHOUT_EFFECT_GRACES};
use crate::retry::{MISFIRE_POLICY, backoff};

/// An apply and its retries.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ApplyAttempts {
    /// The newest apply.
    job: JobId,
    attempt: u32,
    /// End of the grace period, counted from the start of the first attempt.
    grace_until: Timestamp,
    /// How the newest apply ended; `None` while it runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    end: Option<ApplyEnd>,
    /// When the newest apply ended.
    ended_at: Timestamp,
    /// No other apply before this.
    again_at: Timestamp,
    /// Applies in a row after which there was still work.
    fruitless: u32,
    /// Of those, the newest ones that succeeded.
    #[serde(default, skip_serializing_if = "is_zero")]
    succeeded: u32,
    /// Starts in a row that the surroundings prevented.
    #[serde(default, skip_serializing_if = "is_zero")]
    misfires: u32,
    /// Whether a command of it began, with the commands of now: from then on a plan that differs
    /// is what is left to do.
    #[serde(default, skip_serializing_if = "is_false")]
    begun: bool,
    /// Whether the commands have changed since the newest apply ended.
    #[serde(default, skip_serializing_if = "is_false")]
    other_commands: bool,
    /// Whether somebody asked to try again what fails while an apply with commands of before was
    /// under way.
    #[serde(default, skip_serializing_if = "is_false")]
    tries_again: bool,
}

// ---- how it stands ----

impl ApplyAttempts {
    /// The newest apply.
    pub(crate) fn job(&self) -> JobId {
        self.job
    }

    /// Which attempt that is, from 1.
    pub(crate) fn attempt(&self) -> u32 {
        self.attempt
    }

    /// How it ended; `None` while it runs.
    pub(crate) fn end(&self) -> Option<&ApplyEnd> {
        self.end.as_ref()
    }

    /// When it ended.
    pub(crate) fn ended_at(&self) -> Timestamp {
        self.ended_at
    }

    /// No other apply before this.
    pub(crate) fn again_at(&self) -> Timestamp {
        self.again_at
    }

    /// Whether its grace period is over by then.
    pub(crate) fn is_past_grace(&self, at: Timestamp) -> bool {
        at > self.grace_until
    }

    /// Whether a command of it began, with the commands of now.
    pub(crate) fn has_begun(&self) -> bool {
        self.begun
    }

    /// Whether a command of any of them ran, or may have.
    pub(crate) fn may_have_run(&self) -> bool {
        let is_over = !matches!(self.end, None | Some(ApplyEnd::Misfired(_)));
        self.begun || self.attempt > 1 || is_over
    }

    /// Whether the newest apply is over and went well, as far as it says itself.
    pub(crate) fn has_succeeded(&self) -> bool {
        matches!(self.end, Some(ApplyEnd::Succeeded | ApplyEnd::SucceededLeaving(_)))
    }

    /// Whether the newest apply is over and did not do it, as far as is known, and nobody had a
    /// hand in that.
    pub(crate) fn has_failed(&self) -> bool {
        matches!(
            self.end,
            Some(
                ApplyEnd::Failed(_)
                    | ApplyEnd::Retryable(_)
                    | ApplyEnd::RetryableSaying(..)
                    | ApplyEnd::Misfired(_)
            )
        )
    }

    /// The same, or it went well once more with work left after it each time.
    pub(crate) fn has_come_to_nothing(&self) -> bool {
        self.has_failed() || self.without_effect().is_some()
    }

    /// How many applies in a row succeeded, the newest among them, if they are so many that it is
    /// no accident when there still is work.
    pub(crate) fn without_effect(&self) -> Option<u32> {
        Some(self.succeeded).filter(|times| *times >= WITHOUT_EFFECT && self.has_succeeded())
    }

    /// From the second apply in a row on after which there was still work, how many there were:
    /// nobody is to take each for the first.
    pub(crate) fn in_a_row_in_words(&self) -> String {
        match self.fruitless {
            0 | 1 => String::new(),
            times => {
                format!("; it is the last of {times} in a row, with work left after each before it")
            }
        }
    }

    /// What is said beside the newest apply.
    pub(crate) fn other_commands_in_words(&self) -> &'static str {
        if self.other_commands { " with other commands than the config has now" } else { "" }
    }
}

// ---- what becomes of it ----

impl ApplyAttempts {
    /// Nothing was applied yet, and nothing keeps the first apply waiting.
    fn new(job: JobId, now: Timestamp) -> Self {
        Self {
            job,
            attempt: 0,
            grace_until: now,
            end: None,
            ended_at: now,
            again_at: now,
            fruitless: 0,
            succeeded: 0,
            misfires: 0,
            begun: false,
            other_commands: false,
            tries_again: false,
        }
    }

    /// The next apply: another attempt of the old ones, or the first of new ones with a grace
    /// period of their own.
    pub(super) fn next(old: Option<Self>, job: JobId, grace: Duration, now: Timestamp) -> Self {
        let old = old.unwrap_or_else(|| Self::new(job, now));
        let attempt = match &old.end {
            Some(ApplyEnd::Retryable(_) | ApplyEnd::RetryableSaying(..)) => {
                old.attempt.saturating_add(1)
            }
            Some(ApplyEnd::Misfired(_)) => old.attempt.max(1),
            _ => 1,
        };
        let grace_until = if attempt == 1 { now.plus(grace) } else { old.grace_until };
        Self { job, attempt, grace_until, end: None, again_at: now, other_commands: false, ..old }
    }

    /// One of which nothing else is known; `end`: of one that does not run.
    pub(crate) fn salvaged(
        job: JobId,
        attempt: u32,
        grace_until: Timestamp,
        end: Option<ApplyEnd>,
        now: Timestamp,
    ) -> Self {
        Self { attempt: attempt.max(1), grace_until, end, ..Self::new(job, now) }
    }

    /// The command of this apply began then: with the first one the grace period does.
    pub(crate) fn started(&mut self, job: JobId, grace: Option<Duration>, at: Timestamp) {
        if let Some(grace) = grace.filter(|_| self.job == job && self.attempt == 1) {
            self.grace_until = at.plus(grace);
        }
    }

    /// The newest one is over. What came of it shows by the end of the grace period; `ran`: whether
    /// its command is known to have begun.
    pub(crate) fn ended(
        &mut self,
        end: ApplyEnd,
        ran: bool,
        retry: &RetryPolicy,
        grace: Duration,
        ended_at: Timestamp,
    ) {
        let goes_on = end.goes_on();
        self.ended_at = ended_at;
        self.begun |= ran;
        self.fruitless = self.fruitless.saturating_add(u32::from(!goes_on));
        self.misfires =
            if matches!(end, ApplyEnd::Misfired(_)) { self.misfires.saturating_add(1) } else { 0 };
        self.succeeded = match end {
            ApplyEnd::Succeeded | ApplyEnd::SucceededLeaving(_) => self.succeeded.saturating_add(1),
            // Another attempt of the same is to come.
            ApplyEnd::Retryable(_) | ApplyEnd::RetryableSaying(..) | ApplyEnd::Misfired(_) => {
                self.succeeded
            }
            ApplyEnd::Failed(_) | ApplyEnd::Unknown(_) | ApplyEnd::Cancelled(_) => 0,
        };
        let wait = match end {
            ApplyEnd::Retryable(_) | ApplyEnd::RetryableSaying(..) => backoff(retry, self.attempt),
            ApplyEnd::Misfired(_) => backoff(&MISFIRE_POLICY, self.misfires),
            ApplyEnd::Succeeded
            | ApplyEnd::SucceededLeaving(_)
            | ApplyEnd::Failed(_)
            | ApplyEnd::Unknown(_)
            | ApplyEnd::Cancelled(_) => {
                backoff(retry, self.fruitless).min(grace).max(SHORTEST_PAUSE)
            }
        };
        self.again_at = ended_at.plus(wait);
        if !goes_on {
            self.again_at = self.again_at.max(self.grace_until);
        }
        self.end = Some(end);
        if let Some(graces) = self.pause_graces() {
            let pause = grace.max(SHORTEST_PAUSE).saturating_mul(graces);
            self.again_at = self.again_at.max(ended_at.plus(pause));
        }
    }

    /// How many grace periods pass before the next one where those so far had no effect.
    fn pause_graces(&self) -> Option<u32> {
        let more = self.without_effect()?.saturating_sub(WITHOUT_EFFECT);
        Some(2_u32.saturating_pow(more.saturating_add(1)).min(WITHOUT_EFFECT_GRACES))
    }

    /// The commands are others from now on. That those before failed says nothing about these:
    /// nothing but a look, where there is one, is to come before they are tried.
    pub(crate) fn commands_changed(&mut self, now: Timestamp) {
        let is_to_mend = matches!(self.end, Some(ApplyEnd::Failed(_) | ApplyEnd::Unknown(_)))
            || self.without_effect().is_some();
        if is_to_mend {
            self.again_at = self.again_at.min(now);
        }
        self.begun = false;
        self.succeeded = 0;
        self.other_commands = self.end.is_some();
    }

    /// Somebody asks to try again what fails while this runs with commands of before.
    pub(crate) fn ask_to_try_again(&mut self) {
        self.tries_again = true;
    }

    /// Whether somebody did; once.
    pub(crate) fn was_asked_to_try_again(&mut self) -> bool {
        std::mem::take(&mut self.tries_again)
    }

    /// Its plans, for a clock that jumps.
    pub(crate) fn plans_mut(&mut self) -> [&mut Timestamp; 2] {
        [&mut self.grace_until, &mut self.again_at]
    }
}

/// How an apply ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum ApplyEnd {
    Succeeded,
    /// It succeeded, and what it left behind was stopped: what, as the end of the sentence "the job
    /// …".
    SucceededLeaving(String),
    /// A retryable exit code, with another attempt to come.
    Retryable(i32),
    /// The same, with what the command said of it.
    RetryableSaying(i32, String),
    /// Never started, through no fault of the command.
    Misfired(String),
    Failed(String),
    Unknown(String),
    /// Who asked.
    Cancelled(String),
}

impl ApplyEnd {
    /// Whether another attempt of the same applies follows.
    pub(crate) fn goes_on(&self) -> bool {
        matches!(self, Self::Retryable(_) | Self::RetryableSaying(..) | Self::Misfired(_))
    }

    /// As the end of the sentence "apply …".
    pub(crate) fn in_words(&self) -> String {
        match self {
            Self::Succeeded => "succeeded".to_owned(),
            Self::SucceededLeaving(what) => format!("succeeded and {what}"),
            Self::Retryable(code) => format!("ended with the retryable exit code {code}"),
            Self::RetryableSaying(code, said) => {
                format!("ended with the retryable exit code {code}: {said}")
            }
            Self::Misfired(why) => format!("could not be started: {why}"),
            Self::Failed(why) => why.clone(),
            Self::Unknown(why) => format!("ended with an unknown outcome: {why}"),
            Self::Cancelled(who) => format!("was cancelled by {who}"),
        }
    }
}

#[cfg(test)]
mod tests;
