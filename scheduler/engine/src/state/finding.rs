//! What was found when the world was last looked at.

use schema::id::{BlobId, JobId};
use schema::status::Reason;
use schema::time::Timestamp;
use serde::{Deserialize, Serialize};

use super::is_false;

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
    /// Whether carrying it out may destroy something. True in what was found before that was told.
    #[serde(default = "yes", skip_serializing_if = "Clone::clone")]
    pub(crate) may_destroy: bool,
    /// An apply found the plan stale: the next fetch with the same fingerprint brings the plan
    /// that runs.
    #[serde(default, skip_serializing_if = "is_false")]
    pub(crate) stale_plan: bool,
    /// Whether what tells it is not kept whole: then no later fetch has the same fingerprint.
    #[serde(default, skip_serializing_if = "is_false")]
    pub(crate) is_cut: bool,
}

impl Work {
    /// By what it is known again, where anything tells it from other work.
    pub(crate) fn known_by(&self) -> Option<BlobId> {
        self.fingerprint.filter(|_| !self.is_cut)
    }
}

fn yes() -> bool {
    true
}
