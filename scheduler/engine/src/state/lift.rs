//! That a person lets the applies of one release start outside their window for a while.

use schema::time::Timestamp;
use serde::{Deserialize, Serialize};

use super::BrokenInvariant;
use crate::limits::WINDOW_LIFTED_AT_MOST;

/// Until then the window of this release keeps nothing back. Of all other gates it says nothing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WindowLift {
    /// Name of the token used.
    pub who: String,
    pub at: Timestamp,
    /// By the clock on the wall, as the window itself is.
    pub until: Timestamp,
    /// In their words.
    pub reason: String,
}

impl WindowLift {
    /// Whether it is a person's wish that is not over at this instant.
    pub(crate) fn holds(&self, at: Timestamp) -> bool {
        at < self.until
    }

    pub(crate) fn check(&self) -> Result<(), BrokenInvariant> {
        let is_bounded = self.until.since(self.at) <= WINDOW_LIFTED_AT_MOST;
        let is_said = !self.who.is_empty() && !self.reason.is_empty() && self.at < self.until;
        if is_bounded && is_said { Ok(()) } else { Err(BrokenInvariant::LiftUnsaid) }
    }

    /// As a sentence of its own, of this version.
    pub(crate) fn in_words(&self, version: &str) -> String {
        let Self { who, until, reason, .. } = self;
        format!("{who} lifted the apply window for {version} until {until} ({reason})")
    }
}
