//! How far a clock was set. Told by whoever has a steady clock beside the wall's.

use schema::time::Timestamp;
use serde::{Deserialize, Serialize};

/// By how much a clock was set against elapsed time: ahead, or back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
pub struct ClockStep(i64);

impl ClockStep {
    /// So many milliseconds ahead, or back if negative.
    pub const fn from_millis(millis: i64) -> Self {
        Self(millis)
    }

    /// A clock that showed `from` and shows `to` at the same moment.
    pub const fn between(from: Timestamp, to: Timestamp) -> Self {
        Self(to.since_ms(from))
    }

    /// The instant by the clock that was set which is as far away as this one was before.
    pub(crate) const fn moves(self, at: Timestamp) -> Timestamp {
        at.plus_ms(self.0)
    }
}
