//! A cron schedule in a time zone. What the fields mean is `fields`' business, walking over the
//! calendar the `cron` crate's, and what becomes of a time that a change of the clock skips or
//! repeats is decided here: the crate walks over times as a clock on the wall shows them, and each
//! of them is then looked up in the zone.

use std::fmt;
use std::str::FromStr;

use chrono::{DateTime, Datelike, LocalResult, NaiveDateTime, TimeDelta, TimeZone, Timelike, Utc};
use chrono_tz::{GapInfo, Tz};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::fields;
use crate::time::Timestamp;

/// A cron schedule in a time zone: the classic five fields with the meaning of crontab(5), or six
/// with the second first (`0 */15 * * * *`), or a seventh for the year. A time that a change of the
/// clock skips is the first instant after the change; one that comes twice counts the first time
/// only.
#[derive(Clone)]
pub struct Schedule {
    text: Box<str>,
    zone: Tz,
    /// The schedule's times are those of all of these together. They walk over times of the zone's
    /// wall clock, taken for UTC.
    walks: Box<[cron::Schedule]>,
}

/// Why a text is not a schedule.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ScheduleError {
    /// The cron text is wrong.
    #[error(
        "`{text}` is not a cron schedule: {why}; write minute, hour, day of month, month, day of \
         week, as in `0 9 * * 1-5`, with the second before them where there are six"
    )]
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

/// The first year that a schedule is asked about; the crate knows those from 1970 to 2100.
const FIRST_YEAR: i32 = 1969;
/// The last one.
const LAST_YEAR: i32 = 2101;

impl Schedule {
    /// Reads a schedule; `zone` is an IANA name, `None` means UTC.
    ///
    /// # Errors
    /// [`ScheduleError`] when either text is not what it should be.
    pub fn parse(text: &str, zone: Option<&str>) -> Result<Self, ScheduleError> {
        let wrong = |why| ScheduleError::Cron { text: text.to_owned(), why };
        let walks = fields::for_the_crate(text).map_err(wrong)?;
        let walks = walks
            .iter()
            .map(|walk| cron::Schedule::from_str(walk).map_err(|error| wrong(error.to_string())));
        let walks = walks.collect::<Result<_, _>>()?;
        let zone = match zone {
            None => Tz::UTC,
            Some(name) => name.parse().map_err(|_| ScheduleError::Zone(name.to_owned()))?,
        };
        Ok(Self { text: text.into(), zone, walks })
    }

    /// The same text in another zone.
    pub(super) fn with_zone(self, zone: Tz) -> Self {
        Self { zone, ..self }
    }

    /// The cron text.
    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// The first instant of the schedule strictly after `after`; `None` when there is none left.
    pub fn next_after(&self, after: Timestamp) -> Option<Timestamp> {
        let after = after.to_utc();
        let after = match after.year() {
            ..FIRST_YEAR => DateTime::UNIX_EPOCH - TimeDelta::days(1),
            FIRST_YEAR..=LAST_YEAR => after,
            _ => return None,
        };
        let from = last_shown_by(self.zone, after);
        // Times never stand in another order than their instants, so the first time's instant is
        // the first instant.
        let time = self
            .walks
            .iter()
            .filter_map(|walk| walk.after(&from.and_utc()).next())
            .min()?
            .naive_utc();
        Some(instant(self.zone, time).into())
    }

    /// The instant as a clock in the schedule's own zone shows it, with the zone:
    /// `Mon 2026-07-06 09:00 in Europe/Berlin`, with seconds where it has some. `None` for a
    /// schedule in UTC, in which instants are written anyhow.
    pub fn shown_in_zone(&self, at: Timestamp) -> Option<String> {
        let shown = at.to_utc().with_timezone(&self.zone);
        let format = if shown.second() == 0 { "%a %Y-%m-%d %H:%M" } else { "%a %Y-%m-%d %H:%M:%S" };
        (self.zone != Tz::UTC).then(|| format!("{} in {}", shown.format(format), self.zone.name()))
    }

    /// Whether it names any instant at all; the 31st of February does not, in no time zone. Asked
    /// of UTC: the tables of the others would be linked into the wrapper, which checks
    /// documents too, and are a megabyte.
    pub fn ever_comes(&self) -> bool {
        self.walks.iter().any(|walk| walk.after(&DateTime::UNIX_EPOCH).next().is_some())
    }
}

/// The instant at which a clock in `zone` shows `time` for the first time, or, where it is never
/// shown, has passed it.
fn instant(zone: Tz, time: NaiveDateTime) -> DateTime<Utc> {
    match zone.from_local_datetime(&time) {
        LocalResult::Single(instant) | LocalResult::Ambiguous(instant, _) => instant.to_utc(),
        LocalResult::None => match GapInfo::new(&time, &zone).and_then(|gap| gap.end) {
            Some(end) => end.to_utc(),
            // No zone ends with a gap; were there one, UTC is as good as any.
            None => time.and_utc(),
        },
    }
}

/// The last time, in whole seconds, whose instant is not after `instant`: what a clock in `zone`
/// shows then, except while it shows an hour for the second time, all of whose times are past.
fn last_shown_by(zone: Tz, at: DateTime<Utc>) -> NaiveDateTime {
    let shown = at.with_timezone(&zone).naive_local();
    let is_past = |seconds: i64| instant(zone, shown + TimeDelta::seconds(seconds)) <= at;
    if !is_past(1) {
        return shown;
    }
    // No zone was ever set back by more than a day.
    let (mut past, mut ahead) = (1, 24 * 3600 + 1);
    while ahead - past > 1 {
        let middle = (past + ahead) / 2;
        if is_past(middle) { past = middle } else { ahead = middle }
    }
    shown + TimeDelta::seconds(past)
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
struct WrittenCron {
    cron: String,
    zone: String,
}

impl Serialize for Schedule {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        WrittenCron { cron: self.text.to_string(), zone: self.zone.name().to_owned() }
            .serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Schedule {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let written = WrittenCron::deserialize(deserializer)?;
        Self::parse(&written.cron, Some(&written.zone)).map_err(serde::de::Error::custom)
    }
}
