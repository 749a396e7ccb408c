//! Durations and cron text as types. The next instant after a given one, never the current time.

use std::fmt;
use std::str::FromStr;

use chrono_tz::Tz;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::time::Timestamp;

/// A cron schedule in a time zone. Six fields with seconds (`0 */15 * * * *`), a seventh for the year, or the classic five.
#[derive(Clone)]
pub struct Schedule {
    text: Box<str>,
    zone: Tz,
    cron: Box<cron::Schedule>,
}

/// Why a text is not a schedule.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ScheduleError {
    /// The cron text is wrong.
    #[error("`{text}` is not a cron schedule: {why}; write second, minute, hour, day of month, month, day of week, as in `0 */15 * * * *`")]
    Cron {
        /// As given.
        text: String,
        /// What the reader objects to.
        why: String,
    },
    /// The zone is not in the IANA database.
    #[error("`{0}` is not a time zone; write one of the IANA names, as in `Europe/Berlin`")]
    Zone(String),
}

impl Schedule {
    /// Reads a schedule; `zone` is an IANA name, `None` means UTC.
    ///
    /// # Errors
    /// [`ScheduleError`] when either text is not what it should be.
    pub fn parse(text: &str, zone: Option<&str>) -> Result<Self, ScheduleError> {
        let six = match text.split_whitespace().count() {
            5 => format!("0 {text}"),
            _ => text.to_owned(),
        };
        let cron = cron::Schedule::from_str(&six).map_err(|error| ScheduleError::Cron { text: text.to_owned(), why: error.to_string() })?;
        let zone = match zone {
            None => Tz::UTC,
            Some(name) => name.parse().map_err(|_| ScheduleError::Zone(name.to_owned()))?,
        };
        Ok(Self { text: text.into(), zone, cron: Box::new(cron) })
    }

    /// The first instant of the schedule strictly after `after`; `None` when there is none left.
    pub fn next_after(&self, after: Timestamp) -> Option<Timestamp> {
        let local = after.to_utc().with_timezone(&self.zone);
        self.cron.after(&local).next().map(|instant| instant.to_utc().into())
    }
}

impl fmt::Display for Schedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.text, self.zone)
    }
}

impl fmt::Debug for Schedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl PartialEq for Schedule {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text && self.zone == other.zone
    }
}

impl Eq for Schedule {}

#[derive(Serialize, Deserialize)]
struct Written {
    cron: String,
    zone: String,
}

impl Serialize for Schedule {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Written { cron: self.text.to_string(), zone: self.zone.name().to_owned() }.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Schedule {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let written = Written::deserialize(deserializer)?;
        Self::parse(&written.cron, Some(&written.zone)).map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_next(cron: &str, zone: &str, after: &str, expected: &str) {
        let schedule = Schedule::parse(cron, Some(zone)).unwrap();
        let next = schedule.next_after(after.parse().unwrap());
        assert_eq!(next, Some(expected.parse().unwrap()), "{schedule} after {after}");
    }

    #[test]
    fn the_next_instant_is_strictly_later() {
        check_next("0 */15 * * * *", "UTC", "2026-01-01T00:00:00Z", "2026-01-01T00:15:00Z");
        check_next("*/15 * * * *", "UTC", "2026-01-01T00:14:59.999Z", "2026-01-01T00:15:00Z");
        check_next("0 0 9 * * Mon-Fri", "Europe/Berlin", "2026-07-03T07:00:00Z", "2026-07-06T07:00:00Z");
    }

    #[test]
    fn wrong_text_says_what_is_expected() {
        assert!(Schedule::parse("every day", None).unwrap_err().to_string().contains("0 */15 * * * *"));
        assert!(Schedule::parse("0 0 * * * *", Some("Mars")).unwrap_err().to_string().contains("Europe/Berlin"));
    }
}
