//! Templates in config texts: `{{.Params.x}}`. A text is parsed once into parts, all its mistakes
//! found; a value is put in as it is and never looked at again, so no value can change what a
//! document means. Here is what a text says; putting values in is the scheduler's `compile`. Time
//! is linear in the text.

use std::fmt::Write;

use schema::check::nearest_first;
use schema::shown::steers;

use crate::builtins;

/// Most names that an error lists; the nearest come first.
const NAMES_SHOWN: usize = 12;

/// Longest name in a tag; far above any that exists, and short enough to look for the nearest one.
const NAME_LIMIT_BYTES: usize = 512;

/// A parsed text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Template {
    /// What it consists of, in order.
    pub parts: Vec<TemplatePart>,
}

/// A piece of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TemplatePart {
    /// Taken as it is.
    Text(String),
    /// A full name without its leading dot (`Params.image.Tag`), its tag as it is written, and
    /// where that starts.
    Name {
        /// Without its leading dot.
        name: String,
        /// The first line of the tag, as it is written.
        tag: String,
        /// Bytes from the start of the text.
        at: usize,
    },
}

/// What is wrong with a template, and where in the text.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct TemplateError {
    /// Bytes from the start of the text to the tag.
    pub at: usize,
    /// The tag as it is written, its first line.
    pub tag: String,
    /// What is wrong.
    pub message: String,
    /// What to do, or the names that do exist, nearest first.
    pub help: Option<String>,
}

impl TemplateError {
    /// The same without a word of the text, which is a secret.
    #[must_use]
    pub fn in_secret(self) -> Self {
        // Names a parameter, and nothing else of the text.
        if self.help.as_deref() == Some(WHOLE_VALUE) {
            return self;
        }
        Self {
            message: "a template in this secret is malformed, or its name does not exist"
                .to_owned(),
            help: Some("write `{{\"{{\"}}` for two braces as they are".to_owned()),
            ..self
        }
    }
}

impl Template {
    /// Reads a text.
    ///
    /// # Errors
    /// Every malformed tag of the text, in order.
    pub fn parse(text: &str) -> Result<Self, Vec<TemplateError>> {
        let mut parts: Vec<TemplatePart> = Vec::new();
        let mut errors = Vec::new();
        let mut at = 0;
        while let Some(start) = text[at..].find("{{").map(|offset| at + offset) {
            push_text(&mut parts, &text[at..start]);
            let Some(end) = text[start + 2..].find("}}").map(|offset| start + 2 + offset) else {
                errors.push(TemplateError {
                    at: start,
                    tag: first_line(&text[start..]),
                    message: format!("`{}` is never closed", shown(&text[start..])),
                    help: Some(
                        "close it with `}}`, or write `{{\"{{\"}}` for two braces as they are"
                            .to_owned(),
                    ),
                });
                at = text.len();
                break;
            };
            match tag(&text[start + 2..end]) {
                Ok(Tag::Braces) => push_text(&mut parts, "{{"),
                Ok(Tag::Name(name)) => parts.push(TemplatePart::Name {
                    name: name.to_owned(),
                    tag: first_line(&text[start..end + 2]),
                    at: start,
                }),
                Err((message, help)) => {
                    errors.push(TemplateError {
                        at: start,
                        tag: first_line(&text[start..end + 2]),
                        message,
                        help: Some(help),
                    });
                }
            }
            at = end + 2;
        }
        push_text(&mut parts, &text[at..]);
        if errors.is_empty() { Ok(Self { parts }) } else { Err(errors) }
    }
}

/// What to do about a secret with text around it.
const WHOLE_VALUE: &str =
    "a secret can only be the whole value of an environment variable, or of a secret parameter";

/// A secret with text around it, where it could not be masked.
pub fn mixed_secret(name: &str, tag: &str, at: usize) -> TemplateError {
    TemplateError {
        at,
        tag: tag.to_owned(),
        message: format!("`{{{{.{name}}}}}` is a secret and stands in the middle of other text"),
        help: Some(WHOLE_VALUE.to_owned()),
    }
}

/// A secret in a text that anybody on the machine can read: message and help. `tag` is the whole
/// text.
pub fn readable_secret(tag: &str) -> (String, &'static str) {
    (
        format!(
            "`{}` is a secret, and anybody can read this text while the command runs",
            tag.trim()
        ),
        "give it to the command in `env`, and let the command read it there",
    )
}

/// A name that does not exist; `known` are those that do.
pub fn undefined<'a>(
    name: &str,
    tag: &str,
    at: usize,
    known: impl IntoIterator<Item = &'a str>,
) -> TemplateError {
    let near = nearest_first(name, known);
    let help = if near.is_empty() {
        "no names exist here".to_owned()
    } else {
        let mut help = "the names that exist here: ".to_owned();
        for (index, name) in near.iter().take(NAMES_SHOWN).enumerate() {
            let comma = if index == 0 { "" } else { ", " };
            // Writing to a String cannot fail.
            let _ = write!(help, "{comma}`{{{{.{name}}}}}`");
        }
        if near.len() > NAMES_SHOWN {
            let _ = write!(help, " and {} more", near.len() - NAMES_SHOWN);
        }
        help
    };
    TemplateError {
        at,
        tag: tag.to_owned(),
        message: format!("undefined name `{{{{.{name}}}}}`"),
        help: Some(help),
    }
}

enum Tag<'a> {
    /// `{{"{{"}}`
    Braces,
    Name(&'a str),
}

fn push_text(parts: &mut Vec<TemplatePart>, text: &str) {
    match parts.last_mut() {
        _ if text.is_empty() => {}
        Some(TemplatePart::Text(last)) => last.push_str(text),
        _ => parts.push(TemplatePart::Text(text.to_owned())),
    }
}

/// What stands between the braces; else message and help.
fn tag(inner: &str) -> Result<Tag<'_>, (String, String)> {
    let trimmed = inner.trim();
    if trimmed == "\"{{\"" {
        return Ok(Tag::Braces);
    }
    let whole = shown(&format!("{{{{{inner}}}}}"));
    let name = trimmed.strip_prefix('.').unwrap_or(trimmed);
    if trimmed.is_empty() {
        return Err((format!("`{whole}` holds no name"), one_name()));
    }
    let plain = !name.is_empty()
        && name.len() <= NAME_LIMIT_BYTES
        && name.split('.').all(|word| !word.is_empty() && word.chars().all(in_name));
    if !plain {
        return Err((format!("`{whole}` is not a template that pvn knows"), one_name()));
    }
    if !trimmed.starts_with('.') {
        return Err(
            match builtins::ROOTS.iter().any(|root| format!("{name}.").starts_with(root)) {
                true => (
                    format!("`{whole}` has no dot in front of its name"),
                    format!("write `{{{{.{name}}}}}`"),
                ),
                false => (format!("`{whole}` is not a template that pvn knows"), one_name()),
            },
        );
    }
    Ok(Tag::Name(name))
}

fn in_name(character: char) -> bool {
    !(character.is_whitespace() || character.is_control() || "{}()|\"'`$,:=\\".contains(character))
}

fn one_name() -> String {
    "a tag holds one name and nothing else, as in `{{.Params.x}}`; conditions, loops, pipes, \
     comments, variables and trimming do not exist, and `{{\"{{\"}}` writes two braces as they are"
        .to_owned()
}

/// What of a tag stands in one line of the document, so that it can be found there.
fn first_line(tag: &str) -> String {
    const LIMIT_CHARS: usize = 200;
    tag.lines().next().unwrap_or_default().chars().take(LIMIT_CHARS).collect()
}

/// The start of a text, for messages.
fn shown(text: &str) -> String {
    const SHOWN_CHARS: usize = 60;
    let line: String = text
        .chars()
        .take(SHOWN_CHARS)
        .map(|character| if steers(character) { ' ' } else { character })
        .collect();
    if text.chars().nth(SHOWN_CHARS).is_some() { format!("{line}…") } else { line }
}
