//! Reads bytes as exactly one JSON document: UTF-8, no byte order mark, no key twice, nothing after
//! it, and no number that a double cannot hold. The depth is bounded by serde_json (128), so the
//! stack stays flat.

use std::cell::RefCell;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

use super::PROBLEM_LIMIT;
use super::problem::pointer_segment;
use crate::report::OutputError;

/// How much of stdout is shown when it is not JSON, in bytes: enough to recognise a log line.
const SHOWN_BYTES: usize = 120;

/// Reads the one document. Keys given twice are told beside the value, which then has the last one.
///
/// # Errors
/// What keeps the bytes from being one JSON document, with their beginning.
pub(super) fn read(bytes: &[u8], what: &str) -> Result<(Value, Vec<OutputError>), OutputError> {
    let whole = |message: String| OutputError { pointer: String::new(), message };
    let begins = || format!("stdout begins with {}", shown(bytes));
    if bytes.iter().all(u8::is_ascii_whitespace) {
        return Err(whole(format!(
            "stdout is empty; a {what} was expected there, a JSON object (stderr is not read for \
             it)"
        )));
    }
    let text = std::str::from_utf8(bytes).map_err(|error| {
        whole(format!("not UTF-8 at byte {}; {}", error.valid_up_to(), begins()))
    })?;
    if text.starts_with('\u{feff}') {
        return Err(whole(format!("not JSON: it starts with a byte order mark; {}", begins())));
    }
    let place = RefCell::new(JsonPlace::default());
    let mut reader = serde_json::Deserializer::from_str(text);
    let value = JsonNode(&place).deserialize(&mut reader).map_err(|error| {
        let pointer = place.borrow().pointer();
        let message = error.to_string();
        let message = if message.starts_with("recursion limit exceeded") {
            format!(
                "nested deeper than 128 levels at line {} column {}",
                error.line(),
                error.column()
            )
        } else {
            message
        };
        // A string in its place would be another document.
        let masked = match rest_at(text, error.line(), error.column()).starts_with("***") {
            true => {
                " (`***` stands where a secret was, as a number or bare text: print it as a \
                 string, or leave it out)"
            }
            false => "",
        };
        OutputError { pointer, message: format!("not JSON: {message}{masked}; {}", begins()) }
    })?;
    if let Err(error) = reader.end() {
        let rest = rest_at(text, error.line(), error.column());
        let found = if matches!(rest.as_bytes().first(), Some(b'{' | b'[')) {
            "a second document"
        } else {
            "more text"
        };
        return Err(whole(format!(
            "{found} follows the JSON document at line {} column {}: {}; print exactly one \
             document on stdout and all else on stderr",
            error.line(),
            error.column(),
            shown(rest.as_bytes())
        )));
    }
    Ok((value, place.into_inner().twice))
}

/// The text from a line and column on, both from 1, the column in bytes as serde_json counts.
fn rest_at(text: &str, line: usize, column: usize) -> &str {
    let start: usize = text.split_inclusive('\n').take(line.saturating_sub(1)).map(str::len).sum();
    text.get(start + column.saturating_sub(1)..).unwrap_or_default()
}

/// The beginning of some bytes, quoted and escaped.
fn shown(bytes: &[u8]) -> String {
    let cut = bytes.len() > SHOWN_BYTES;
    let head = String::from_utf8_lossy(&bytes[..bytes.len().min(SHOWN_BYTES)]);
    // A character cut in half at the end is no fault of the text.
    let head = if cut { head.trim_end_matches('\u{fffd}') } else { &head };
    format!("{head:?}{}", if cut { " …" } else { "" })
}

#[derive(Default)]
struct JsonPlace {
    steps: Vec<JsonStep>,
    twice: Vec<OutputError>,
}

enum JsonStep {
    Key(String),
    Index(usize),
}

impl JsonPlace {
    fn pointer(&self) -> String {
        let mut pointer = String::new();
        for step in &self.steps {
            match step {
                JsonStep::Key(key) => pointer_segment(&mut pointer, key),
                JsonStep::Index(index) => pointer_segment(&mut pointer, &index.to_string()),
            }
        }
        pointer
    }
}

/// One value, read where `JsonPlace` says.
struct JsonNode<'a>(&'a RefCell<JsonPlace>);

impl<'de> DeserializeSeed<'de> for JsonNode<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for JsonNode<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<Value, A::Error> {
        let mut items = Vec::new();
        self.0.borrow_mut().steps.push(JsonStep::Index(0));
        while let Some(item) = access.next_element_seed(JsonNode(self.0))? {
            items.push(item);
            if let Some(last) = self.0.borrow_mut().steps.last_mut() {
                *last = JsonStep::Index(items.len());
            }
        }
        self.0.borrow_mut().steps.pop();
        Ok(items.into())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Value, A::Error> {
        let mut members = Map::new();
        while let Some(key) = access.next_key::<String>()? {
            self.0.borrow_mut().steps.push(JsonStep::Key(key.clone()));
            let member = access.next_value_seed(JsonNode(self.0))?;
            let mut place = self.0.borrow_mut();
            if members.contains_key(&key) && place.twice.len() < PROBLEM_LIMIT {
                let pointer = place.pointer();
                place.twice.push(OutputError {
                    pointer,
                    message: format!("the field `{key}` is given twice"),
                });
            }
            place.steps.pop();
            members.insert(key, member);
        }
        Ok(members.into())
    }
}
