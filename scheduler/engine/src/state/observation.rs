//! What is known of the world: what was seen last and what it means, and when it is looked at
//! again.

use schema::id::{BlobId, JobId};
use schema::output::RuntimeObject;
use schema::status::Reason;
use schema::time::Timestamp;
use serde::{Deserialize, Serialize};

use super::{is_false, is_zero};

/// What is known of the world, and when it is looked at again.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub(crate) struct ObservedState {
    /// When the next fetch is due. What is told by a watch is due at no time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) due: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) answered_at: Option<Timestamp>,
    /// Looks in a row that brought no answer, whoever is to blame.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub(crate) misses: u32,
    /// When the first of those ended, or since when nothing was heard.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) missed_since: Option<Timestamp>,
    /// Of those, failures of the command in a row: what the retry policy counts.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub(crate) failures: u32,
    /// Of those, in a row not even started through no fault of the command.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub(crate) misfires: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) error: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) objects: Vec<RuntimeObject>,
    pub(crate) finding: Finding,
    /// Since when every answer was of its kind.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) since: Option<Timestamp>,
    /// Why to doubt it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) doubt: Option<String>,
    /// Whether the finding is younger than the last apply (and than a resume, a retry, a change of
    /// the commands). Only fresh work is applied.
    #[serde(default, skip_serializing_if = "is_false")]
    pub(crate) fresh: bool,
    /// A fetch that was under way when somebody wanted to know how it is now: its answer is of
    /// before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) of_before: Option<JobId>,
    /// That fetch began since somebody had wanted to know before: it is young enough to apply what
    /// it finds, or who asks more often than a fetch lasts would keep every apply away.
    #[serde(default, skip_serializing_if = "is_false")]
    pub(crate) of_before_is_fresh: bool,
    /// Whether somebody wanted to know how it is now, and no fetch since then has ended.
    #[serde(default, skip_serializing_if = "is_false")]
    pub(crate) asked: bool,
    /// Whether the commands have changed since a fetch last answered.
    #[serde(default, skip_serializing_if = "is_false")]
    pub(crate) other_commands: bool,
    /// The newest fetch that found what is desired, of whatever release.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) matched: Option<Matched>,
    /// The watch that is wanted now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) watch: Option<WatchState>,
    /// Since when nothing was heard of a watch, while that is what is wrong.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) silent_since: Option<Timestamp>,
}

/// What is known of the watch itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct WatchState {
    /// When it was last heard of, or began.
    pub(crate) heard_at: Timestamp,
    /// When it has been silent for too long.
    pub(crate) stale_at: Timestamp,
    /// Whether this generation has told anything that counted.
    #[serde(default, skip_serializing_if = "is_false")]
    pub(crate) is_answered: bool,
}

impl ObservedState {
    /// Nothing is known of what is desired now.
    pub(crate) fn anew(&mut self) {
        *self = Self { matched: self.matched.take(), ..Self::default() };
    }

    /// Something was seen then, whatever it means: nothing is in the way of seeing any more.
    pub(crate) fn answered(&mut self, at: Timestamp) {
        self.answered_at = Some(at);
        (self.misses, self.failures, self.misfires) = (0, 0, 0);
        (self.missed_since, self.silent_since, self.error) = (None, None, None);
    }
}

/// A fetch that found what is desired: what its commands were given is what the world has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Matched {
    /// The commands of its release.
    pub compiled: BlobId,
    /// When it was decided.
    pub decided_at: Timestamp,
    /// When it ended, by the clock of the machine that it ran on.
    pub ended_at: Timestamp,
}

/// What was found when this release was last looked at.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(crate) enum Finding {
    /// No answer yet.
    #[default]
    Nothing,
    /// As desired.
    Clean,
    /// Work to do.
    Work(Box<Work>),
    /// The versions match, but something is still on its way.
    Pending(String),
    /// The versions match, but something is broken.
    Broken(String),
}

impl Finding {
    /// Whether this is the same state of affairs, whatever its words.
    pub(crate) fn is_as(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Work(one), Self::Work(other)) => one.reason == other.reason,
            _ => std::mem::discriminant(self) == std::mem::discriminant(other),
        }
    }
}

/// Work that was found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Work {
    pub(crate) reason: Reason,
    /// What, as the middle of a sentence: "`web` runs v1".
    pub(crate) what: String,
    /// The fetch that found it; `None` = a watch did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) job: Option<JobId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) fingerprint: Option<BlobId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) plan: Option<BlobId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) explanation: Option<String>,
    /// An apply found the plan stale: the next fetch with the same fingerprint brings the plan
    /// that runs.
    #[serde(default, skip_serializing_if = "is_false")]
    pub(crate) stale_plan: bool,
    /// Whether what tells it is not kept whole: then no later fetch has the same fingerprint.
    #[serde(default, skip_serializing_if = "is_false")]
    pub(crate) is_cut: bool,
}
