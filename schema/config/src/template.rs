//! Templates in config texts: `{{.Params.x}}`. A text is parsed once, when its document is read,
//! and all its mistakes are found then; a value is put in as it is and never looked at again, so no
//! value can change what a document means. Here is what a text says; putting values in is the
//! scheduler's `compile`. Time is linear in the text.

use std::fmt::Write;
use std::ops::Range;

use schema::check::nearest_first;
use schema::shown::steers;

use crate::builtins;
use crate::written::kept_as_written;

/// Most names that an error lists; the nearest come first.
const NAMES_SHOWN: usize = 12;

/// Longest name in a tag; far above any that exists, and short enough to look for the nearest one.
const NAME_LIMIT_BYTES: usize = 512;

/// A text of a document that may name values. A malformed one is kept with its mistakes: its
/// document can be read and used, so that all that is wrong with it is told in one go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Template {
    text: String,
    /// In order, none overlapping another; else every malformed one, in order.
    tags: Result<Vec<Tag>, Vec<TemplateError>>,
}

/// What stands between `{{` and `}}`, and where with them.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Tag {
    span: Range<usize>,
    says: TagContent,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum TagContent {
    /// `{{"{{"}}`
    Braces,
    /// The name without its leading dot: bytes of the text.
    Name(Range<usize>),
}

/// A piece of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TemplatePart<'a> {
    /// Taken as it is; not empty.
    Text(&'a str),
    /// The place of a value.
    Name(TemplateName<'a>),
}

/// A name as it stands in a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TemplateName<'a> {
    /// Without its leading dot (`Params.image.Tag`).
    pub name: &'a str,
    /// The first line of the tag, as it is written.
    pub tag: &'a str,
    /// Bytes from the start of the text to the tag.
    pub at: usize,
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
    /// The text as it is written.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// What the text consists of, in order.
    ///
    /// # Errors
    /// Every malformed tag of the text, in order.
    pub fn parts(&self) -> Result<impl Iterator<Item = TemplatePart<'_>>, &[TemplateError]> {
        let tags = self.tags.as_ref().map_err(Vec::as_slice)?;
        let before = move |index: usize| match index.checked_sub(1) {
            Some(last) => tags[last].span.end,
            None => 0,
        };
        let rest = TemplatePart::Text(&self.text[before(tags.len())..]);
        let tags = tags.iter().enumerate().flat_map(move |(index, tag)| {
            [TemplatePart::Text(&self.text[before(index)..tag.span.start]), self.part(tag)]
        });
        Ok(tags.chain([rest]).filter(|part| !matches!(part, TemplatePart::Text(""))))
    }

    fn part(&self, tag: &Tag) -> TemplatePart<'_> {
        match &tag.says {
            TagContent::Braces => TemplatePart::Text("{{"),
            TagContent::Name(name) => TemplatePart::Name(TemplateName {
                name: &self.text[name.clone()],
                tag: first_line(&self.text[tag.span.clone()]),
                at: tag.span.start,
            }),
        }
    }

    /// The name that the text is, when it is one name and nothing else.
    pub fn only_name(&self) -> Option<&str> {
        match self.tags.as_deref() {
            Ok([Tag { span, says: TagContent::Name(name) }]) if span.len() == self.text.len() => {
                Some(&self.text[name.clone()])
            }
            _ => None,
        }
    }

    /// Whether nothing in it asks to be replaced, so that it comes to itself.
    pub fn is_plain(&self) -> bool {
        self.tags.as_ref().is_ok_and(Vec::is_empty)
    }
}

impl From<String> for Template {
    fn from(text: String) -> Self {
        Self { tags: parse(&text), text }
    }
}

impl From<&str> for Template {
    fn from(text: &str) -> Self {
        text.to_owned().into()
    }
}

kept_as_written!(Template);

fn parse(text: &str) -> Result<Vec<Tag>, Vec<TemplateError>> {
    let mut tags = Vec::new();
    let mut errors = Vec::new();
    let mut at = 0;
    while let Some(start) = text[at..].find("{{").map(|offset| at + offset) {
        let Some(end) = text[start + 2..].find("}}").map(|offset| start + 2 + offset) else {
            errors.push(TemplateError {
                at: start,
                tag: first_line(&text[start..]).to_owned(),
                message: format!("`{}` is never closed", shown(&text[start..])),
                help: Some(
                    "close it with `}}`, or write `{{\"{{\"}}` for two braces as they are"
                        .to_owned(),
                ),
            });
            break;
        };
        let span = start..end + 2;
        match content(text, start + 2..end) {
            Ok(says) => tags.push(Tag { span, says }),
            Err((message, help)) => errors.push(TemplateError {
                at: start,
                tag: first_line(&text[span]).to_owned(),
                message,
                help: Some(help),
            }),
        }
        at = end + 2;
    }
    if errors.is_empty() { Ok(tags) } else { Err(errors) }
}

/// What to do about a secret with text around it.
const WHOLE_VALUE: &str =
    "a secret can only be the whole value of an environment variable, or of a secret parameter";

/// A secret with text around it, where it could not be masked.
pub fn mixed_secret(TemplateName { name, tag, at }: TemplateName<'_>) -> TemplateError {
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
    TemplateName { name, tag, at }: TemplateName<'_>,
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

/// What stands at `inner`, between the braces; else message and help.
fn content(text: &str, inner: Range<usize>) -> Result<TagContent, (String, String)> {
    let start = inner.end - text[inner.clone()].trim_start().len();
    let inner = &text[inner];
    let trimmed = inner.trim();
    if trimmed == "\"{{\"" {
        return Ok(TagContent::Braces);
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
    let start = start + ".".len();
    Ok(TagContent::Name(start..start + name.len()))
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
fn first_line(tag: &str) -> &str {
    const LIMIT_CHARS: usize = 200;
    let line = tag.lines().next().unwrap_or_default();
    line.char_indices().nth(LIMIT_CHARS).map_or(line, |(end, _)| &line[..end])
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
