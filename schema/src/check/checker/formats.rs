//! The formats of the schema that are more than a pattern. Called by `checker`.

use serde_json::Value;
use valico::json_schema::errors;
use valico::json_schema::scope::Scope;
use valico::json_schema::validators::{BoxedValidator, ValidationState};

use super::super::problem::cut;

pub(super) type FormatRule = fn(&Value) -> Option<String>;

/// What a `format` of our schemas asks for; the answer is what is wrong.
pub(super) const FORMATS: &[(&str, FormatRule)] = &[
    ("date-time", |value| {
        let text = value.as_str()?;
        let error = text.parse::<crate::time::Timestamp>().err()?;
        Some(format!(
            "`{}` is not an RFC 3339 timestamp ({error}); write one as in `2026-01-31T12:00:00Z`",
            cut(text)
        ))
    }),
    ("int64", |value| out_of_range(value, i64::MIN.into(), i64::MAX.into())),
    ("int32", |value| out_of_range(value, i32::MIN.into(), i32::MAX.into())),
    ("uint32", |value| out_of_range(value, 0, u32::MAX.into())),
    ("pvn-duration", |value| {
        Some(value.as_str()?.parse::<crate::schedule::Duration>().err()?.to_string())
    }),
    ("pvn-cron", |value| {
        let text = value.as_str()?;
        match crate::schedule::Schedule::parse(text, None) {
            Ok(schedule) => (!schedule.ever_comes())
                .then(|| format!("`{}` never comes: there is no such day", cut(text))),
            Err(error) => Some(error.to_string()),
        }
    }),
    ("pvn-timezone", |value| {
        Some(
            crate::schedule::Schedule::parse("0 0 * * * *", Some(value.as_str()?))
                .err()?
                .to_string(),
        )
    }),
];

fn out_of_range(value: &Value, least: i128, most: i128) -> Option<String> {
    let number = value.as_number()?;
    let whole = number.as_i64().map(i128::from).or(number.as_u64().map(i128::from));
    // Fractions are the business of `type`, and a lower bound that the schema itself has is the
    // business of `minimum`.
    let outside = match whole {
        Some(whole) => whole > most || (whole < least && least != 0),
        None => number.as_f64().is_some_and(|value| value.fract() == 0.0),
    };
    outside.then(|| format!("must be from {least} to {most}, found {number}"))
}

pub(super) fn as_validator(rule: FormatRule) -> BoxedValidator {
    Box::new(move |value: &Value, path: &str, _: &Scope, _: &ValidationState| match rule(value) {
        Some(detail) => failed(path.to_owned(), detail),
        None => ValidationState::new(),
    })
}

pub(super) fn failed(path: String, detail: String) -> ValidationState {
    let mut state = ValidationState::new();
    state.errors.push(Box::new(errors::Format { path, detail }));
    state
}
