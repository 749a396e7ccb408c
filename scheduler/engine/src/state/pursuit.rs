//! The way of one release: its gates, its applies and how they ended.

use std::collections::BTreeSet;

use schema::id::{ChannelName, JobId};
use schema::time::Timestamp;
use serde::{Deserialize, Serialize};

use super::{is_false, is_zero};

/// The way of one release. Starts anew with each release.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(crate) struct Rollout {
    /// Channels of the gates that were once stable at this version.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub(crate) met: BTreeSet<ChannelName>,
    /// Whether it was converged once; what comes later is drift.
    #[serde(default, skip_serializing_if = "is_false")]
    pub(crate) arrived: bool,
    /// Whether the commands are others than those that were approved, or with which it arrived:
    /// then people are asked again before they run. Until a fetch with them finds it as
    /// desired.
    #[serde(default, skip_serializing_if = "is_false")]
    pub(crate) other_commands: bool,
    /// The applies since the last clean fetch or retry by hand, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) chain: Option<ApplyAttempts>,
    /// Since when every gate but the lane is open.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) ready_since: Option<Timestamp>,
    /// When the window opens or shuts, if that is what matters now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) window_at: Option<Timestamp>,
    /// When it is STUCK. Runs only while no gate and no person holds the release up, and there is
    /// a daemon that could go on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) stuck_at: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "is_false")]
    pub(crate) stuck: bool,
    /// Why it did not go back when it was stuck.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) rollback_refused: Option<String>,
}

/// An apply and its retries.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ApplyAttempts {
    /// The newest apply.
    pub(crate) job: JobId,
    pub(crate) attempt: u32,
    /// End of the grace period, counted from the start of the first attempt.
    pub(crate) grace_until: Timestamp,
    /// How the newest apply ended; `None` while it runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) end: Option<ApplyEnd>,
    /// When the newest apply ended.
    pub(crate) ended_at: Timestamp,
    /// No other apply before this.
    pub(crate) again_at: Timestamp,
    /// Applies in a row after which there was still work.
    pub(crate) fruitless: u32,
    /// Starts in a row that the surroundings prevented.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub(crate) misfires: u32,
    /// Whether a command of it began, with the commands of now: from then on a plan that differs
    /// is what is left to do.
    #[serde(default, skip_serializing_if = "is_false")]
    pub(crate) begun: bool,
    /// Whether the commands have changed since the newest apply ended.
    #[serde(default, skip_serializing_if = "is_false")]
    pub(crate) other_commands: bool,
    /// Whether somebody asked to try again what fails while an apply with commands of before was
    /// under way.
    #[serde(default, skip_serializing_if = "is_false")]
    pub(crate) tries_again: bool,
}

impl ApplyAttempts {
    /// Nothing was applied yet, and nothing keeps the first apply waiting.
    pub(crate) fn new(job: JobId, now: Timestamp) -> Self {
        Self {
            job,
            attempt: 0,
            grace_until: now,
            end: None,
            ended_at: now,
            again_at: now,
            fruitless: 0,
            misfires: 0,
            begun: false,
            other_commands: false,
            tries_again: false,
        }
    }

    /// The commands are others from now on. That those before failed says nothing about these:
    /// nothing but a look, where there is one, is to come before they are tried.
    pub(crate) fn commands_changed(&mut self, now: Timestamp) {
        self.begun = false;
        self.other_commands = self.end.is_some();
        if matches!(self.end, Some(ApplyEnd::Failed(_) | ApplyEnd::Unknown(_))) {
            self.again_at = self.again_at.min(now);
        }
    }

    /// Whether the newest apply is over and did not do it, as far as is known, and nobody had a
    /// hand in that.
    pub(crate) fn has_failed(&self) -> bool {
        matches!(
            self.end,
            Some(ApplyEnd::Failed(_) | ApplyEnd::Retryable(_) | ApplyEnd::Misfired(_))
        )
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

/// How an apply ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum ApplyEnd {
    Succeeded,
    /// It succeeded, and what it left behind was stopped: what, as the end of the sentence "the job
    /// …".
    SucceededLeaving(String),
    /// A retryable exit code, with another attempt to come.
    Retryable(i32),
    /// Never started, through no fault of the command.
    Misfired(String),
    Failed(String),
    Unknown(String),
    /// Who asked.
    Cancelled(String),
}

impl ApplyEnd {
    /// As the end of the sentence "apply …".
    pub(crate) fn in_words(&self) -> String {
        match self {
            Self::Succeeded => "succeeded".to_owned(),
            Self::SucceededLeaving(what) => format!("succeeded and {what}"),
            Self::Retryable(code) => format!("ended with the retryable exit code {code}"),
            Self::Misfired(why) => format!("could not be started: {why}"),
            Self::Failed(why) => why.clone(),
            Self::Unknown(why) => format!("ended nobody knows how: {why}"),
            Self::Cancelled(who) => format!("was cancelled by {who}"),
        }
    }
}
