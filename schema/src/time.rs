//! The one instant type of pvn. Reading the clock is somebody else's business (`scheduler::clock`).

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use chrono::{DateTime, SecondsFormat, Utc};
use schemars::JsonSchema;

use crate::text_form::written_as_text;

/// A span in whole milliseconds, as rows and the wire have it; what is too long for them is the
/// longest that they can say.
pub fn millis(span: Duration) -> i64 {
    i64::try_from(span.as_millis()).unwrap_or(i64::MAX)
}

/// An instant in UTC, to the millisecond, of the years 0 to 9999: those that RFC 3339 can write, so
/// that each instant reads back what it wrote. In JSON an RFC 3339 text ending in `Z`; in the
/// database epoch milliseconds. Whatever lies outside becomes the nearer end, as does an instant
/// whose offset from UTC puts it there (`9999-12-31T23:59:59-01:00`).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, JsonSchema)]
#[schemars(transparent)]
pub struct Timestamp(#[schemars(with = "DateTime<Utc>")] i64);

impl Timestamp {
    /// The first one: 0000-01-01T00:00:00.000Z.
    pub const MIN: Self = Self(-62_167_219_200_000);

    /// The last one: 9999-12-31T23:59:59.999Z.
    pub const MAX: Self = Self(253_402_300_799_999);

    /// The instant this many milliseconds after 1970-01-01T00:00:00Z.
    pub const fn from_millis(millis: i64) -> Self {
        if millis < Self::MIN.0 {
            Self::MIN
        } else if millis > Self::MAX.0 {
            Self::MAX
        } else {
            Self(millis)
        }
    }

    /// Milliseconds since 1970-01-01T00:00:00Z.
    pub const fn as_millis(self) -> i64 {
        self.0
    }

    /// The instant `millis` later (earlier if negative), stopping at the ends of the range.
    #[must_use]
    pub const fn plus_ms(self, millis: i64) -> Self {
        Self::from_millis(self.0.saturating_add(millis))
    }

    /// The instant so much later, stopping at the last one.
    #[must_use]
    pub fn plus(self, span: Duration) -> Self {
        self.plus_ms(millis(span))
    }

    /// The instant so much earlier, stopping at the first one.
    #[must_use]
    pub fn minus(self, span: Duration) -> Self {
        self.plus_ms(-millis(span))
    }

    /// How long after `earlier` this is; nothing if `earlier` is later.
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_millis(u64::try_from(self.since_ms(earlier)).unwrap_or(0))
    }

    /// Milliseconds from `earlier` to this; negative if `earlier` is later.
    pub const fn since_ms(self, earlier: Self) -> i64 {
        self.0.saturating_sub(earlier.0)
    }

    /// The same instant for chrono.
    pub fn to_utc(self) -> DateTime<Utc> {
        DateTime::from_timestamp_millis(self.0).expect("the years 0 to 9999 are chrono's too")
    }
}

impl From<DateTime<Utc>> for Timestamp {
    fn from(instant: DateTime<Utc>) -> Self {
        Self::from_millis(instant.timestamp_millis())
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.to_utc().to_rfc3339_opts(SecondsFormat::Millis, true))
    }
}

impl fmt::Debug for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for Timestamp {
    type Err = chrono::ParseError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(DateTime::parse_from_rfc3339(text)?.with_timezone(&Utc).into())
    }
}

written_as_text!(Timestamp);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_instant_reads_back_what_it_wrote() {
        let instant = Timestamp::from_millis(1_700_000_000_123);
        assert_eq!(instant.to_string(), "2023-11-14T22:13:20.123Z");
        assert_eq!(instant.to_string().parse(), Ok(instant));
    }

    fn check(text: &str, expected: &str) {
        let read: Timestamp = text.parse().unwrap();
        assert_eq!(read.to_string(), expected, "{text}");
        assert_eq!(read.to_string().parse(), Ok(read), "{text} reads back what it wrote");
    }

    #[test]
    fn bad_input_an_instant_that_utc_puts_outside_the_years_0_to_9999_becomes_the_nearer_end() {
        check("9999-12-31T23:59:59-01:00", "9999-12-31T23:59:59.999Z");
        check("9999-12-31T23:59:59.9999999999Z", "9999-12-31T23:59:59.999Z");
        check("0000-01-01T00:00:00+01:00", "0000-01-01T00:00:00.000Z");
        check("0000-12-31T23:59:60-23:59", "0001-01-01T23:59:00.000Z");
        check("2016-12-31T23:59:60.5Z", "2017-01-01T00:00:00.500Z");
        check("1969-12-31T23:59:59.9991Z", "1969-12-31T23:59:59.999Z");
    }

    #[test]
    fn a_span_moves_an_instant_to_the_end_of_the_range_at_most_and_is_never_negative() {
        let (early, late) = (Timestamp::from_millis(1_000), Timestamp::from_millis(3_500));
        assert_eq!(
            (late.since(early), early.since(late)),
            (Duration::from_millis(2_500), Duration::ZERO)
        );
        assert_eq!((early.plus(late.since(early)), late.minus(late.since(early))), (late, early));
        assert_eq!(
            (early.plus(Duration::MAX), early.minus(Duration::MAX)),
            (Timestamp::MAX, Timestamp::MIN)
        );
    }

    #[test]
    fn the_ends_of_the_range_read_back_too() {
        for millis in [i64::MIN, -1, i64::MAX] {
            let instant = Timestamp::from_millis(millis).plus_ms(millis);
            assert_eq!(instant.to_string().parse(), Ok(instant));
        }
        assert_eq!(Timestamp::MIN.to_string(), "0000-01-01T00:00:00.000Z");
        assert_eq!(Timestamp::MAX.to_string(), "9999-12-31T23:59:59.999Z");
    }
}
