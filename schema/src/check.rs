//! Holds structured output against its schema (docs/commands.md), and, for the config reader,
//! documents against theirs. The one place that knows valico; it finds every problem, by JSON
//! pointer, and the words are ours.
//!
//! Called by the wrapper (`--expect`, `validate`), by the scheduler for what comes without a
//! wrapper, and by the config reader. Total and linear in its input: sizes, depth and the number of
//! problems are bounded.

mod checker;
mod json;
mod problem;

use serde::de::DeserializeOwned;
use serde_json::Value;

pub use checker::{Checker, FormatRule, SchemaNode};
pub use problem::{
    Notation, Problem, ValueFault, cut, nearest, nearest_first, pointer_segment, quoted,
};

use crate::mask::Secrets;
use crate::output::{FetchOutput, GetInfoOutput, OUTPUT_LIMIT_BYTES};
use crate::report::{OutputError, StructuredKind, each_text};

/// Most problems that are listed for one document. A hundred are more than anybody reads; a hostile
/// document could have millions.
pub const PROBLEM_LIMIT: usize = 100;

/// The JSON Schema (draft 7) of [`FetchOutput`], as published.
pub const FETCH_OUTPUT_SCHEMA: &str = include_str!("../json/fetch-output.json");

/// The JSON Schema (draft 7) of [`GetInfoOutput`], as published.
pub const GET_INFO_OUTPUT_SCHEMA: &str = include_str!("../json/get-info-output.json");

// Built when first asked for: a wrapper that checks nothing pays nothing. For each thread, as
// valico's are not shared.
thread_local! {
    static FETCH_OUTPUT: Checker = Checker::from_text(FETCH_OUTPUT_SCHEMA);
    static GET_INFO_OUTPUT: Checker = Checker::from_text(GET_INFO_OUTPUT_SCHEMA);
}

/// Checks what a command printed on stdout. The value that comes back is the document with `null`
/// for an absent optional field taken out, so that it deserialises as [`FetchOutput`] or
/// [`GetInfoOutput`].
///
/// # Errors
/// Every problem with its pointer, at most [`PROBLEM_LIMIT`] of them; only the first when the bytes
/// are not one JSON document, with the beginning of what they are.
pub fn check(bytes: &[u8], kind: StructuredKind) -> Result<Value, Vec<OutputError>> {
    check_hiding(bytes, kind, None)
}

/// The same without these secrets, also where the document spells one out that stood escaped in it:
/// they are gone from every text before a message repeats the beginning of one, which would else
/// show a part of a secret, or how long it is.
///
/// # Errors
/// As [`check`].
pub fn check_hiding(
    bytes: &[u8],
    kind: StructuredKind,
    secrets: Option<&Secrets>,
) -> Result<Value, Vec<OutputError>> {
    match kind {
        StructuredKind::Fetch => FETCH_OUTPUT
            .with(|checker| check_as::<FetchOutput>(bytes, checker, secrets, "FetchOutput")),
        StructuredKind::GetInfo => GET_INFO_OUTPUT
            .with(|checker| check_as::<GetInfoOutput>(bytes, checker, secrets, "GetInfoOutput")),
    }
}

fn check_as<T: DeserializeOwned>(
    bytes: &[u8],
    checker: &Checker,
    secrets: Option<&Secrets>,
    what: &str,
) -> Result<Value, Vec<OutputError>> {
    let whole = |message: String| vec![OutputError { pointer: String::new(), message }];
    if bytes.len() > OUTPUT_LIMIT_BYTES {
        return Err(whole(format!(
            "{} bytes of stdout are too many for a {what}; the limit is {OUTPUT_LIMIT_BYTES} (8 \
             MiB)",
            bytes.len()
        )));
    }
    let (mut value, mut errors) = json::read(bytes, what).map_err(|error| vec![error])?;
    checker.drop_nulls(&mut value);
    if let Some(secrets) = secrets {
        each_text(&mut value, &mut |text| *text = secrets.hide(text));
    }
    let room = PROBLEM_LIMIT.saturating_sub(errors.len());
    let problems = checker.check(&value, room);
    errors.extend(
        problems.into_iter().map(|problem| OutputError {
            message: problem.json_message(),
            pointer: problem.pointer,
        }),
    );
    if errors.len() >= PROBLEM_LIMIT {
        errors.push(OutputError {
            pointer: String::new(),
            message: format!("only the first {PROBLEM_LIMIT} problems are listed"),
        });
    }
    if !errors.is_empty() {
        return Err(errors);
    }
    // The schema is made from the types, so this finds nothing; it is what makes the promise on the
    // value certain.
    match T::deserialize(&value) {
        Ok(_) => Ok(value),
        Err(error) => Err(whole(format!("not a {what}: {error}"))),
    }
}

#[cfg(test)]
mod tests;
