//! The fields of a cron text as crontab(5) reads them, made into the numbers that the `cron` crate
//! counts with. The crate parses, too, but with other numbers: it counts Sunday as 1, and always
//! asks for the day of the month and the weekday at once.

use std::collections::BTreeSet;

/// The values that one field names.
type Values = BTreeSet<u32>;

/// One field of a cron text: what it is called, its lowest and highest value, and how each is
/// called from the lowest on.
struct Field {
    name: &'static str,
    low: u32,
    high: u32,
    names: &'static [&'static str],
}

const SECOND: Field = Field { name: "second", low: 0, high: 59, names: &[] };
const MINUTE: Field = Field { name: "minute", low: 0, high: 59, names: &[] };
const HOUR: Field = Field { name: "hour", low: 0, high: 23, names: &[] };
const DAY: Field = Field { name: "day of month", low: 1, high: 31, names: &[] };
const MONTH: Field = Field {
    name: "month",
    low: 1,
    high: 12,
    names: &[
        "january",
        "february",
        "march",
        "april",
        "may",
        "june",
        "july",
        "august",
        "september",
        "october",
        "november",
        "december",
    ],
};
/// 7 is Sunday once more, so that `5-7` can be written. Source: crontab(5).
const WEEKDAY: Field = Field {
    name: "day of week",
    low: 0,
    high: 7,
    names: &["sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday"],
};
/// The years that the `cron` crate knows.
const YEAR: Field = Field { name: "year", low: 1970, high: 2100, names: &[] };

/// What crontab(5) abbreviates.
const NICKNAMES: &[(&str, &str)] = &[
    ("@yearly", "0 0 1 1 *"),
    ("@annually", "0 0 1 1 *"),
    ("@monthly", "0 0 1 * *"),
    ("@weekly", "0 0 * * 0"),
    ("@daily", "0 0 * * *"),
    ("@midnight", "0 0 * * *"),
    ("@hourly", "0 * * * *"),
];

/// The texts for the `cron` crate whose instants together are those of `text`: two where the day of
/// the month and the weekday are alternatives. The error is what is wrong, a fragment.
pub(super) fn for_the_crate(text: &str) -> Result<Vec<String>, String> {
    let text = match NICKNAMES.iter().find(|(nickname, _)| text.trim() == *nickname) {
        Some((_, meant)) => meant,
        None => text,
    };
    let mut fields: Vec<&str> = text.split_whitespace().collect();
    if fields.len() == 5 {
        fields.insert(0, "0");
    }
    if fields.len() == 6 {
        fields.push("*");
    }
    let &[second, minute, hour, day, month, weekday, year] = fields.as_slice() else {
        let plural = if fields.len() == 1 { "" } else { "s" };
        return Err(format!("it has {} field{plural}, not five or six", fields.len()));
    };
    let clock =
        format!("{} {} {}", SECOND.written(second)?, MINUTE.written(minute)?, HOUR.written(hour)?);
    let (month, year) = (MONTH.written(month)?, YEAR.written(year)?);
    let (days, weekdays) = (DAY.written(day)?, WEEKDAY.weekdays(weekday)?);
    // crontab(5): where both are restricted, either is enough; a field that starts with `*` is not
    // restricted, even as `*/2`.
    let restricted = |field: &str| !field.starts_with(['*', '?']);
    Ok(if restricted(day) && restricted(weekday) {
        vec![
            format!("{clock} {days} {month} * {year}"),
            format!("{clock} * {month} {weekdays} {year}"),
        ]
    } else {
        vec![format!("{clock} {days} {month} {weekdays} {year}")]
    })
}

impl Field {
    /// The field for the crate: `*` or a list of numbers.
    fn written(&self, text: &str) -> Result<String, String> {
        let values = self.values(text)?;
        Ok(if values.len() as u32 == self.high - self.low + 1 {
            "*".to_owned()
        } else {
            list(values)
        })
    }

    /// The same for weekdays, which the crate counts from Sunday as 1.
    fn weekdays(&self, text: &str) -> Result<String, String> {
        let values: Values = self.values(text)?.into_iter().map(|day| day % 7 + 1).collect();
        Ok(if values.len() == 7 { "*".to_owned() } else { list(values) })
    }

    fn values(&self, text: &str) -> Result<Values, String> {
        let mut values = Values::new();
        for part in text.split(',') {
            let (range, step) = match part.split_once('/') {
                None => (part, None),
                Some((range, step)) => (range, Some(self.step(step)?)),
            };
            // The second Sunday can be named, but nothing runs on to it by itself.
            let last = if self.high == 7 { 6 } else { self.high };
            let (from, to) = match range.split_once('-') {
                _ if range == "*"
                    || (range == "?" && matches!(self.name, "day of month" | "day of week")) =>
                {
                    (self.low, last)
                }
                Some((from, to)) => (self.value(from)?, self.value(to)?),
                None if step.is_some() => (self.value(range)?, last),
                None => (self.value(range)?, self.value(range)?),
            };
            if from > to {
                return Err(format!(
                    "the {} `{range}` ends before it begins; write two, with a comma between them",
                    self.name
                ));
            }
            values.extend((from..=to).step_by(step.unwrap_or(1)));
        }
        Ok(values)
    }

    fn step(&self, text: &str) -> Result<usize, String> {
        let most = self.high - self.low + u32::from(self.high != 7);
        match number(text) {
            Some(step) if (1..=most).contains(&step) => Ok(step as usize),
            _ => Err(format!(
                "the step `{text}` of the {} is not a number from 1 to {most}",
                self.name
            )),
        }
    }

    fn value(&self, text: &str) -> Result<u32, String> {
        let lower = text.to_ascii_lowercase();
        let named = || {
            let at = self.names.iter().position(|name| {
                *name == lower || name[..3] == lower || also(name) == Some(&*lower)
            })?;
            Some(self.low + at as u32)
        };
        match number(text) {
            Some(value) if (self.low..=self.high).contains(&value) => Ok(value),
            Some(_) => {
                Err(format!("the {} `{text}` is not from {} to {}", self.name, self.low, self.high))
            }
            None => named().ok_or_else(|| {
                let names = self.names.first().map_or_else(String::new, |name| {
                    format!(" or a name as `{}{}`", name[..1].to_uppercase(), &name[1..3])
                });
                format!(
                    "`{text}` is no {}: write a number from {} to {}{names}",
                    self.name, self.low, self.high
                )
            }),
        }
    }
}

/// The abbreviations of four or five letters that the `cron` crate takes.
fn also(name: &str) -> Option<&'static str> {
    match name {
        "tuesday" => Some("tues"),
        "thursday" => Some("thurs"),
        "september" => Some("sept"),
        _ => None,
    }
}

/// A number of at most four digits, the longest that any field has.
fn number(text: &str) -> Option<u32> {
    (text.len() <= 4 && !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()))
        .then(|| text.parse().ok())?
}

fn list(values: Values) -> String {
    let texts: Vec<_> = values.iter().map(u32::to_string).collect();
    texts.join(",")
}
