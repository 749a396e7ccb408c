//! A cron text and a time zone as they stand in two fields: each a type of its own, so that whoever
//! reads them has told what is wrong with either, and both together always are a schedule.

use std::fmt;
use std::str::FromStr;

use chrono_tz::Tz;

use super::{Schedule, ScheduleError};
use crate::text_form::written_as_text;

/// A cron text, written as [`Schedule`] has it. What it is the schedule of, its zone says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CronText(Schedule);

impl CronText {
    /// The schedule of this text in a zone; `None` is UTC.
    pub fn in_zone(&self, zone: Option<Timezone>) -> Schedule {
        self.0.clone().with_zone(zone.map_or(Tz::UTC, |Timezone(zone)| zone))
    }
}

impl FromStr for CronText {
    type Err = ScheduleError;

    fn from_str(text: &str) -> Result<Self, ScheduleError> {
        Schedule::parse(text, None).map(Self)
    }
}

impl fmt::Display for CronText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.text())
    }
}

written_as_text!(CronText);

/// A time zone by its IANA name, as in `Europe/Berlin`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timezone(Tz);

impl FromStr for Timezone {
    type Err = ScheduleError;

    fn from_str(name: &str) -> Result<Self, ScheduleError> {
        name.parse().map(Self).map_err(|_| ScheduleError::Zone(name.to_owned()))
    }
}

impl fmt::Display for Timezone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.name())
    }
}

written_as_text!(Timezone);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_and_a_zone_are_written_as_they_were_read() {
        for text in ["0 9 * * 1-5", "0 */15 * * * *", "@daily"] {
            if let Ok(cron) = text.parse::<CronText>() {
                assert_eq!(serde_json::to_value(&cron).unwrap(), text);
                assert_eq!(cron.in_zone(None), Schedule::parse(text, None).unwrap());
                assert_eq!(
                    cron.in_zone("Europe/Berlin".parse().ok()),
                    Schedule::parse(text, Some("Europe/Berlin")).unwrap()
                );
            }
        }
        for name in chrono_tz::TZ_VARIANTS.iter().map(|zone| zone.name()) {
            assert_eq!(serde_json::to_value(name.parse::<Timezone>().unwrap()).unwrap(), name);
        }
        assert_eq!("Berlin".parse::<Timezone>(), Err(ScheduleError::Zone("Berlin".to_owned())));
    }
}
