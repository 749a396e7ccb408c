//! That the applies of a runtime are held, as an instance that waits for one knows it. For people:
//! it is the lanes that hold them.

use schema::time::Timestamp;
use serde::{Deserialize, Serialize};

/// Why no apply starts in the runtime, or few at a time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AppliesHeld {
    pub since: Timestamp,
    /// What failed, as a sentence without its end.
    pub why: String,
    /// How many at a time; none = stopped.
    pub width: u32,
    /// When that goes on by itself.
    pub until: Timestamp,
}

impl AppliesHeld {
    /// How it is, as the end of the sentence "applies of runtime `…` …".
    pub(crate) fn in_words(&self) -> String {
        let Self { why, width, until, .. } = self;
        match width {
            0 => format!("are stopped until {until}, because {why}"),
            1 => format!("are tried one at a time, because {why}"),
            width => format!("go on {width} at a time and more while they go well, because {why}"),
        }
    }
}
