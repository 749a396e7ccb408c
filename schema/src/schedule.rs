//! Durations and cron text as types. The next instant after a given one, never the current time.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;

use crate::text_form::written_as_text;

mod cron;
mod fields;
#[cfg(test)]
mod tests;
mod written;

pub use cron::{Schedule, ScheduleError};
pub use written::{CronText, Timezone};

/// A length of time in milliseconds, at least one and at most [`Duration::MAX`]. Written as in
/// `300s`, `1.5s`, `10m`, `1h30m`, `250ms`; finer than a millisecond is cut off.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, JsonSchema)]
#[schemars(transparent)]
pub struct Duration(#[schemars(with = "String", extend("format" = "pvn-duration"))] i64);

/// Why a text is not a length of time.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DurationError {
    /// It is no duration at all.
    #[error(
        "`{0}` is not a duration; write numbers with their units, as in `300s`, `1.5s`, `10m` or \
         `1h30m`"
    )]
    Text(String),
    /// It is zero or less, or shorter than a millisecond.
    #[error("`{0}` is not a positive duration; write one of at least `1ms`")]
    NotPositive(String),
    /// It is longer than a hundred years.
    #[error("`{0}` is longer than a hundred years")]
    TooLong(String),
}

const HOUR_MS: i64 = 3_600_000;

impl Duration {
    /// The longest one: 100 years of 365 days, so that adding a few of them to any instant of this
    /// era stays in range.
    pub const MAX: Self = Self(100 * 365 * 24 * HOUR_MS);

    /// This many milliseconds; `None` when not positive or longer than [`Self::MAX`].
    pub const fn from_ms(ms: i64) -> Option<Self> {
        if ms >= 1 && ms <= Self::MAX.0 { Some(Self(ms)) } else { None }
    }

    /// Milliseconds.
    pub const fn as_ms(self) -> i64 {
        self.0
    }
}

impl From<Duration> for std::time::Duration {
    fn from(span: Duration) -> Self {
        Self::from_millis(span.0.unsigned_abs())
    }
}

impl FromStr for Duration {
    type Err = DurationError;

    fn from_str(text: &str) -> Result<Self, DurationError> {
        let wrong = || DurationError::Text(text.to_owned());
        let (negative, mut rest) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        if rest.is_empty() {
            return Err(wrong());
        }
        let mut ns: i128 = 0;
        while !rest.is_empty() {
            let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').ok_or_else(wrong)?;
            let (number, after) = rest.split_at(end);
            let (unit, unit_ns) = [
                ("ms", 1_000_000),
                ("h", 3_600_000_000_000),
                ("m", 60_000_000_000),
                ("s", 1_000_000_000),
            ]
            .into_iter()
            .find(|(unit, _)| after.starts_with(unit))
            .ok_or_else(wrong)?;
            let (whole, fraction) = number.split_once('.').unwrap_or((number, "0"));
            if whole.is_empty() || fraction.is_empty() || fraction.contains('.') {
                return Err(wrong());
            }
            // More than 15 digits of whole units is out of range whatever the unit; 9 digits of
            // fraction are a nanosecond of a second.
            let whole: i128 = if whole.len() > 15 {
                i128::from(u64::MAX)
            } else {
                whole.parse().map_err(|_| wrong())?
            };
            let digits = fraction.len().min(9);
            let part: i128 = fraction[..digits].parse().map_err(|_| wrong())?;
            ns = ns.saturating_add(whole * unit_ns + part * unit_ns / 10_i128.pow(digits as u32));
            rest = &after[unit.len()..];
        }
        let ms = if negative { -ns } else { ns } / 1_000_000;
        if ms < 1 {
            return Err(DurationError::NotPositive(text.to_owned()));
        }
        i64::try_from(ms)
            .ok()
            .and_then(Self::from_ms)
            .ok_or_else(|| DurationError::TooLong(text.to_owned()))
    }
}

/// As `1h30m`, `90s` is `1m30s`: the largest units first, none that is zero.
impl fmt::Display for Duration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut rest = self.0;
        for (unit, unit_ms) in [("h", HOUR_MS), ("m", 60_000), ("s", 1000), ("ms", 1)] {
            if rest >= unit_ms {
                write!(f, "{}{unit}", rest / unit_ms)?;
                rest %= unit_ms;
            }
        }
        Ok(())
    }
}

written_as_text!(Duration);

#[cfg(test)]
mod duration_tests {
    use super::*;

    fn check_duration(text: &str, expected: Result<i64, &str>) {
        match text.parse::<Duration>() {
            Ok(duration) => {
                assert_eq!(Ok(duration.as_ms()), expected, "{text:?}");
                assert_eq!(duration.to_string().parse(), Ok(duration), "{duration} reads back");
            }
            Err(error) => assert!(
                expected.is_err_and(|part| error.to_string().contains(part)),
                "{text:?}: {error}"
            ),
        }
    }

    #[test]
    fn durations_are_numbers_with_units() {
        check_duration("300s", Ok(300_000));
        check_duration("1.5s", Ok(1500));
        check_duration("10m", Ok(600_000));
        check_duration("1h30m", Ok(5_400_000));
        check_duration("250ms", Ok(250));
        check_duration("0.001s", Ok(1));
        check_duration("1.999999999s", Ok(1999));
        check_duration("876000h", Ok(Duration::MAX.as_ms()));
    }

    #[test]
    fn a_duration_is_positive_and_within_a_hundred_years() {
        for text in ["0s", "0h0m", "-5m", "0.0001s", "-1h30m"] {
            check_duration(text, Err("positive"));
        }
        for text in ["876001h", "99999999999999999999999999999h", "999999999999999h"] {
            check_duration(text, Err("hundred years"));
        }
    }

    #[test]
    fn a_duration_without_unit_or_with_another_is_refused_with_the_forms() {
        for text in ["", "-", "300", "5 m", "5d", "s", ".5s", "5.s", "1.2.3s", "5m ", "1h30", "٣s"]
        {
            check_duration(text, Err("1h30m"));
        }
    }
}
