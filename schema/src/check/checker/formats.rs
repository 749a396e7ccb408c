//! The formats of the schema that are more than a pattern. Called by `checker`.
//!
//! The keyword `format` is our own too: valico's knows every format of JSON Schema, hostnames by
//! the list of all public suffixes among them, which is an eighth of the wrapper and asked for by
//! none of our schemas.

use serde_json::Value;
use valico::json_schema::errors;
use valico::json_schema::schema::WalkContext;
use valico::json_schema::scope::Scope;
use valico::json_schema::validators::{BoxedValidator, ValidationState};

use super::super::problem::cut;

/// What a `format` asks for; the answer is what is wrong.
pub type FormatRule = fn(&Value) -> Option<String>;

/// Formats of all our schemas; any other that no caller brings says something about the value and
/// asks for nothing.
const FORMATS: &[(&str, FormatRule)] = &[
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

/// `own`: formats that the schema has besides.
pub(super) fn add_to(scope: &mut Scope, own: &'static [(&'static str, FormatRule)]) {
    scope.add_keyword(vec!["format"], move |schema: &Value, _: &WalkContext<'_>| {
        let format = schema.get("format").and_then(Value::as_str);
        let rule = FORMATS.iter().chain(own).find(|(name, _)| format == Some(name));
        Ok(rule.map(|(_, rule)| as_validator(*rule)))
    });
}

fn as_validator(rule: FormatRule) -> BoxedValidator {
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
