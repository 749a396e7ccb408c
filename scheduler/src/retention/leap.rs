//! Leaps of the wall clock. What is removed goes by ages, and no age is right by a clock that is
//! far ahead for a while: a machine that starts with a wrong time would lose its log in one pass.
//! So the database has a note until when time is accounted for, renewed at each start and each
//! pass, and a daemon that finds its clock far from it goes by the note for a day. Nobody can tell
//! a daemon that was down for so long from a clock that leapt; the former removes a day later.
//! Called by `pass`.
//!
//! ```text
//! near the note ──▶ the clock counts, and is noted
//! far from it ───▶ the note counts, moved on by the time that has passed; after a day of that, over restarts too, the clock
//! by hand ───────▶ the clock counts, and is noted: a person saw to it
//! ```

use std::sync::Mutex;

use schema::time::Timestamp;

use super::Retention;
use super::pass::PassError;
use crate::store::{Change, Commit, StoreError};

/// How far the clock may be from what is accounted for, milliseconds: a machine that is off over
/// some days off is ordinary, and nothing of it is told.
const LEAP_MS: i64 = 7 * DAY_MS;

/// For how long daemons have to run by a clock that leapt until it is believed, milliseconds: time
/// for a person, or for the network's time, to set it right.
const BELIEVED_AFTER_MS: i64 = DAY_MS;

const DAY_MS: i64 = 24 * 3_600_000;

const NOTE: &str = "time_accounted";

/// What a daemon knows of its clocks between two looks.
#[derive(Debug, Default)]
pub struct LeapWatch(Mutex<Looked>);

#[derive(Debug, Default, Clone, Copy)]
struct Looked {
    /// By the steady clock, at the last look that was noted.
    at_ms: Option<i64>,
    /// Whether people were told.
    told: bool,
}

/// Until when time is accounted for, by the clock that was believed then.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Accounted {
    until: Timestamp,
    /// How long daemons have run since the clock leapt from it, milliseconds; 0 when it has not.
    ran_ms: i64,
}

impl Accounted {
    fn read(text: &str) -> Option<Self> {
        let (until, ran_ms) = text.split_once(' ')?;
        Some(Self {
            until: Timestamp::from_millis(until.parse().ok()?),
            ran_ms: ran_ms.parse().ok()?,
        })
    }

    fn written(self) -> String {
        format!("{} {}", self.until.as_millis(), self.ran_ms)
    }

    /// What is accounted for when the clock shows `wall`, `ran_ms` after the last look.
    fn at(noted: Option<Self>, wall: Timestamp, ran_ms: i64) -> Self {
        let by_the_clock = Self { until: wall, ran_ms: 0 };
        let Some(noted) = noted else { return by_the_clock };
        let later = Self {
            until: noted.until.plus_ms(ran_ms),
            ran_ms: noted.ran_ms.saturating_add(ran_ms),
        };
        let is_near = wall.since_ms(later.until).saturating_abs() <= LEAP_MS;
        if is_near || later.ran_ms >= BELIEVED_AFTER_MS { by_the_clock } else { later }
    }
}

impl Retention {
    /// The time by which ages are measured, never later than the clock's.
    pub(super) async fn present(&self) -> Result<Timestamp, PassError> {
        let clock = self.clock.read();
        let looked = self.leap.as_ref().map(|leap| *leap.0.lock().expect("no holder panics"));
        let noted = match self.store.meta(NOTE).await {
            // As where there is none.
            Err(StoreError::Corrupt(_)) => None,
            read => read?.as_deref().and_then(Accounted::read),
        };
        let ran_ms = looked
            .and_then(|looked| looked.at_ms)
            .map_or(0, |at_ms| clock.steady_ms.saturating_sub(at_ms).max(0));
        let accounted = Accounted::at(noted.filter(|_| looked.is_some()), clock.wall, ran_ms);
        let note =
            Commit { changes: vec![Change::Meta(NOTE, accounted.written())], ..Commit::default() };
        let is_noted = match self.store.commit(&note).await {
            Ok(()) => true,
            // On a full disk: with what has passed until the next look.
            Err(StoreError::Unavailable(_)) => false,
            Err(error) => return Err(error.into()),
        };
        let is_far = accounted.until != clock.wall;
        if let (true, Some(Looked { told: false, .. }), Some(noted)) = (is_far, looked, noted) {
            let days = clock.wall.since_ms(noted.until).saturating_abs() / DAY_MS;
            tracing::warn!(
                "the clock shows {}, and a daemon was last known to run at {}, {days} days apart: \
                 it was down for so long, or the clock is wrong. Nothing is removed for its age \
                 by this clock before a day has passed; to remove at once what is not kept any \
                 more, stop this daemon and run `pvn-scheduler prune`",
                clock.wall,
                noted.until
            );
        }
        if let Some(leap) = &self.leap {
            let mut looked = leap.0.lock().expect("no holder panics");
            looked.told = is_far;
            if is_noted {
                looked.at_ms = Some(clock.steady_ms);
            }
        }
        Ok(accounted.until.min(clock.wall))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(days: i64) -> Timestamp {
        Timestamp::from_millis(days * DAY_MS)
    }

    #[test]
    fn a_clock_that_leaps_is_believed_after_a_day_and_one_that_goes_on_at_once() {
        let noted = |ran_ms| Some(Accounted { until: at(100), ran_ms });
        let check = |noted, wall, ran_ms, until, ran| {
            assert_eq!(Accounted::at(noted, wall, ran_ms), Accounted { until, ran_ms: ran });
        };
        check(None, at(500), 0, at(500), 0);
        check(noted(0), at(107), 0, at(107), 0);
        check(noted(0), at(93), 0, at(93), 0);
        for wall in [at(108), at(500), at(1)] {
            check(noted(0), wall, 1_000, at(100).plus_ms(1_000), 1_000);
            check(noted(DAY_MS - 1_000), wall, 1_000, wall, 0);
        }
        check(noted(DAY_MS / 2), at(101), 1_000, at(101), 0);
    }

    #[test]
    fn a_note_is_read_as_it_was_written() {
        let noted = Accounted { until: at(100), ran_ms: 17 };
        assert_eq!(Accounted::read(&noted.written()), Some(noted));
        for text in ["", "1", "1 x", "x 1"] {
            assert_eq!(Accounted::read(text), None, "{text}");
        }
    }
}
