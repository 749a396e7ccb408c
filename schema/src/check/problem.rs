//! One problem that a schema finds, and the words for it.

use serde_json::Value;

use crate::shown::steers;

/// A problem at one place of a document.
#[derive(Debug, Clone, PartialEq)]
pub struct Problem {
    /// JSON pointer (RFC 6901) to the value; to where it should be, when it is missing.
    pub pointer: String,
    /// What is wrong.
    pub fault: ValueFault,
}

/// What can be wrong with a value.
#[derive(Debug, Clone, PartialEq)]
pub enum ValueFault {
    /// Another type than the schema says.
    Type {
        /// The JSON type that the schema says.
        expected: String,
        /// The value.
        found: Value,
    },
    /// A required field is not there.
    Missing {
        /// Its name.
        field: String,
    },
    /// A field that the schema does not know.
    Unknown {
        /// Its name.
        field: String,
        /// The names that it knows.
        known: Vec<String>,
    },
    /// A word that is none of the allowed ones.
    Word {
        /// The value.
        found: Value,
        /// The allowed words.
        allowed: Vec<String>,
    },
    /// A rule in words.
    Rule(String),
}

impl Problem {
    /// The message for readers of JSON, help included.
    pub fn json_message(&self) -> String {
        let (message, help) = self.fault.words(Notation::Json);
        match help {
            Some(help) => format!("{message}; {help}"),
            None => message,
        }
    }
}

/// How the reader of a message wrote the document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Notation {
    /// `an object`, `an array`, strings in quotes.
    Json,
    /// `a mapping`, `a list`, scalars as written.
    Yaml,
}

/// Longest part of a value that a message repeats, in characters.
const FOUND_CHARS: usize = 60;

/// Most known names that a message lists; a longer list is no help.
const KNOWN_NAMES: usize = 24;

impl ValueFault {
    /// The message, and what to do when that is known.
    pub fn words(&self, notation: Notation) -> (String, Option<String>) {
        match self {
            Self::Type { expected, found } => (
                format!(
                    "expected {}, found {}",
                    type_words(expected, notation),
                    found_words(found, notation)
                ),
                None,
            ),
            Self::Missing { field } => (format!("`{field}` is required and missing"), None),
            Self::Unknown { field, known } => {
                let known_names: Vec<&str> = known.iter().map(String::as_str).collect();
                let help = match nearest(field, &known_names) {
                    Some(name) => Some(format!("did you mean `{name}`?")),
                    None if known.is_empty() => Some("no fields are known here".to_owned()),
                    None if known.len() > KNOWN_NAMES => None,
                    None => Some(format!("known here: {}", quoted(&known_names))),
                };
                (format!("unknown field `{field}`"), help)
            }
            Self::Word { found, allowed } => {
                let words: Vec<&str> = allowed.iter().map(String::as_str).collect();
                let help = found
                    .as_str()
                    .and_then(|text| nearest(text, &words))
                    .map(|word| format!("did you mean `{word}`?"));
                (
                    format!(
                        "expected one of {}, found {}",
                        quoted(&words),
                        found_words(found, notation)
                    ),
                    help,
                )
            }
            Self::Rule(rule) => (rule.clone(), None),
        }
    }
}

/// Names as a list in a message.
pub fn quoted(names: &[&str]) -> String {
    names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}

fn type_words(json_type: &str, notation: Notation) -> &'static str {
    match (json_type, notation) {
        ("object", Notation::Json) => "an object",
        ("object", Notation::Yaml) => "a mapping",
        ("array", Notation::Json) => "an array",
        ("array", Notation::Yaml) => "a list",
        ("string", Notation::Json) => "a string",
        ("string", Notation::Yaml) => "a text",
        ("boolean", _) => "`true` or `false`",
        ("integer", _) => "a whole number",
        ("number", _) => "a number",
        _ => "another type",
    }
}

/// What a value is, in the words of its notation.
pub(crate) fn found_words(value: &Value, notation: Notation) -> String {
    match (value, notation) {
        (Value::Null, _) => "null".to_owned(),
        (Value::Array(_), _) => type_words("array", notation).to_owned(),
        (Value::Object(_), _) => type_words("object", notation).to_owned(),
        (Value::String(text), Notation::Yaml) => format!("`{}`", cut(text)),
        (Value::String(text), Notation::Json) => format!("the string {:?}", cut(text)),
        (other, _) => format!("`{}`", cut(&other.to_string())),
    }
}

/// The beginning of a text, on one line.
pub fn cut(text: &str) -> String {
    let line: String =
        text.chars().take(FOUND_CHARS).map(|c| if steers(c) { ' ' } else { c }).collect();
    if text.chars().nth(FOUND_CHARS).is_some() { format!("{line}…") } else { line }
}

/// The candidates, nearest to `name` first; equally near ones by name. Each once.
pub fn nearest_first<'a>(
    name: &str,
    candidates: impl IntoIterator<Item = &'a str>,
) -> Vec<&'a str> {
    let mut near: Vec<_> = candidates
        .into_iter()
        .map(|candidate| (strsim::osa_distance(name, candidate), candidate))
        .collect();
    near.sort_unstable();
    near.dedup();
    near.into_iter().map(|(_, candidate)| candidate).collect()
}

/// The known name that was probably meant: the same but for case and separators, or a few slips
/// away.
pub fn nearest<'a>(name: &str, known: &[&'a str]) -> Option<&'a str> {
    /// A name longer than this is no slip of a field's name, and comparing costs its length.
    const COMPARED_CHARS: usize = 64;
    if name.chars().nth(COMPARED_CHARS).is_some() {
        return None;
    }
    let plain = |text: &str| {
        text.chars()
            .filter(|c| c.is_alphanumeric())
            .flat_map(char::to_lowercase)
            .collect::<String>()
    };
    let wanted = plain(name);
    known
        .iter()
        .map(|known| (strsim::damerau_levenshtein(&wanted, &plain(known)), *known))
        .filter(|(distance, known)| *distance <= known.len().min(wanted.len()) / 3)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, known)| known)
}

/// Appends one segment to a pointer, escaped as RFC 6901 says.
pub fn pointer_segment(pointer: &mut String, segment: &str) {
    pointer.push('/');
    pointer.push_str(&segment.replace('~', "~0").replace('/', "~1"));
}
