//! The formats that only config documents have: durations and schedules. Called by the reader's
//! checker; here and not in `schema`, so that the wrapper links no calendar.

use schema::check::{FormatRule, cut};
use schema::schedule::{Duration, Schedule};

/// What these formats ask for.
pub(crate) const FORMATS: &[(&str, FormatRule)] = &[
    ("pvn-duration", |value| Some(value.as_str()?.parse::<Duration>().err()?.to_string())),
    ("pvn-cron", |value| {
        let text = value.as_str()?;
        match Schedule::parse(text, None) {
            Ok(schedule) => (!schedule.ever_comes())
                .then(|| format!("`{}` never comes: there is no such day", cut(text))),
            Err(error) => Some(error.to_string()),
        }
    }),
    ("pvn-timezone", |value| {
        Some(Schedule::parse("0 0 * * * *", Some(value.as_str()?)).err()?.to_string())
    }),
];

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    /// Formats that valico and ours leave alone: what they say of a value is said by its type too.
    const TELLING: &[&str] = &["uint16", "uint64"];

    /// Formats of every schema, which `schema` knows.
    const COMMON: &[&str] = &["date-time", "int64", "int32", "uint32"];

    fn formats(schema: &Value, found: &mut Vec<String>) {
        match schema {
            Value::Object(fields) => {
                found.extend(fields.get("format").and_then(Value::as_str).map(str::to_owned));
                fields.values().for_each(|value| formats(value, found));
            }
            Value::Array(items) => items.iter().for_each(|item| formats(item, found)),
            _ => {}
        }
    }

    #[test]
    fn every_format_of_the_language_is_checked_or_needs_no_check() {
        let mut found = Vec::new();
        formats(&crate::json_schema::of::<crate::WrittenDocument>(), &mut found);
        assert!(found.len() > 10, "formats are found: {found:?}");
        let own = FORMATS.iter().map(|(name, _)| *name);
        let known: Vec<&str> = own.chain(COMMON.iter().chain(TELLING).copied()).collect();
        let strange: Vec<_> = found.iter().filter(|name| !known.contains(&name.as_str())).collect();
        assert!(strange.is_empty(), "formats that nobody checks: {strange:?}");
    }
}
