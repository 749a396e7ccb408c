//! That a person wants an instance to be observed only: it is looked at, and nothing is applied.

use schema::time::Timestamp;
use serde::{Deserialize, Serialize};

/// Who wants that, and what for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ObserveWish {
    /// Name of the token used.
    pub who: String,
    /// Since when.
    pub since: Timestamp,
    /// What for, in their words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

impl ObserveWish {
    /// Without a subject.
    pub(crate) fn in_words(&self) -> String {
        match &self.reason {
            Some(reason) => format!("observed by {} ({reason})", self.who),
            None => format!("observed by {}", self.who),
        }
    }
}
