//! A problem in a text of the user, with its place and the lines themselves. The one place that
//! knows annotate-snippets. Made by the config reader and, for what documents say about each other,
//! through `config::Document`.

use std::ops::Range;
use std::sync::Arc;

use annotate_snippets::{AnnotationKind, Group, Level, Origin, Renderer, Snippet};

use schema::api;

/// A text with the path that people know it by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedText {
    /// The path, for messages.
    pub path: Arc<str>,
    /// The text.
    pub text: Arc<str>,
    /// The line, from 1, that the text's first line has in its file.
    pub first_line: usize,
}

/// One problem.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnostic {
    /// Where it is.
    pub source: NamedText,
    /// Bytes of the source's text to look at; `None` when the whole file is meant.
    pub span: Option<Range<usize>>,
    /// Path of the field, dotted: `service.perReleaseChannel[0].env`.
    pub path: String,
    /// What is wrong and what was expected.
    pub message: String,
    /// What to do, or what was probably meant.
    pub help: Option<String>,
    /// Another place of the same text that has to do with it, and what.
    pub related: Option<(Range<usize>, String)>,
}

/// Farthest back that a related place is still shown, in bytes.
const RELATED_BYTES: usize = 4000;

/// Longest line that is taken whole, in bytes; of a longer one a part around the place is. The
/// drawing itself is cut to a terminal's width.
const LINE_BYTES: usize = 16 << 10;

impl Diagnostic {
    /// A problem of a whole file.
    pub fn of_file(path: &str, message: impl Into<String>) -> Self {
        let source = NamedText { path: path.into(), text: "".into(), first_line: 0 };
        Self {
            source,
            span: None,
            path: String::new(),
            message: message.into(),
            help: None,
            related: None,
        }
    }

    /// The same with advice.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    /// Line and column of the place, both from 1, the column in characters; 0 and 0 for a whole
    /// file.
    pub fn line_and_column(&self) -> (usize, usize) {
        let Some(span) = &self.span else { return (0, 0) };
        let before = &self.source.text[..floor(&self.source.text, span.start)];
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        (
            self.source.first_line + before.matches('\n').count(),
            before[line_start..].chars().count() + 1,
        )
    }

    /// As `rustc` shows an error, with its lines. Ends without a newline.
    pub fn render(&self, color: bool) -> String {
        self.draw(Level::ERROR, color)
    }

    fn draw(&self, level: Level<'_>, color: bool) -> String {
        let renderer = if color { Renderer::styled() } else { Renderer::plain() };
        let mut group = Group::with_title(level.primary_title(self.message.as_str()));
        match &self.span {
            None => group = group.element(Origin::path(self.source.path.as_ref())),
            Some(span) => {
                let SourceWindow { text, first_line, span, related, is_part } = self.window(span);
                let path = Some(self.path.as_str()).filter(|path| !path.is_empty());
                let mut snippet = Snippet::source(text)
                    .line_start(first_line)
                    .annotation(AnnotationKind::Primary.span(span).label(path));
                if let (Some(span), Some((_, label))) = (related, &self.related) {
                    snippet = snippet
                        .annotation(AnnotationKind::Context.span(span).label(label.as_str()));
                }
                if is_part {
                    // The column cannot be counted in a part of the line.
                    let (line, column) = self.line_and_column();
                    group = group.element(
                        Origin::path(self.source.path.as_ref()).line(line).char_column(column),
                    );
                } else {
                    snippet = snippet.path(self.source.path.as_ref());
                }
                group = group.element(snippet);
            }
        }
        if let Some(help) = &self.help {
            group = group.element(Level::HELP.message(help.as_str()));
        }
        renderer.render(&[group])
    }

    /// As the API tells it where nothing is refused because of it: shown as a warning.
    pub fn to_api_warning(&self) -> api::Diagnostic {
        api::Diagnostic { snippet: self.draw(Level::WARNING, false), ..self.to_api() }
    }

    /// As the API tells it.
    pub fn to_api(&self) -> api::Diagnostic {
        let (line, column) = self.line_and_column();
        api::Diagnostic {
            file: self.source.path.to_string(),
            line: line as u64,
            column: column as u64,
            path: self.path.clone(),
            message: self.message.clone(),
            help: self.help.clone(),
            snippet: self.render(false),
        }
    }

    fn window(&self, span: &Range<usize>) -> SourceWindow {
        let text = &*self.source.text;
        let start = floor(text, span.start);
        let line_start = text[..start].rfind('\n').map_or(0, |newline| newline + 1);
        let line_end = text[start..].find('\n').map_or(text.len(), |newline| start + newline);
        let line_end = if text[..line_end].ends_with('\r') && line_end > start {
            line_end - 1
        } else {
            line_end
        };
        // A field that goes on over many lines is marked on its first one.
        let end = floor(text, span.end).clamp(start, line_end.max(start));
        let from = if start - line_start > LINE_BYTES {
            floor(text, start - LINE_BYTES / 4)
        } else {
            line_start
        };
        let mut window_start = from;
        let mut related = None;
        if let Some((span, _)) =
            self.related.as_ref().filter(|(span, _)| from == line_start && span.start < start)
        {
            let span = floor(text, span.start)..floor(text, span.end);
            let related_line = text[..span.start].rfind('\n').map_or(0, |newline| newline + 1);
            if line_start - related_line <= RELATED_BYTES {
                window_start = related_line;
                let first_line_end = text[span.start..]
                    .find('\n')
                    .map_or(text.len(), |newline| span.start + newline);
                related = Some(span.start..span.end.min(first_line_end));
            }
        }
        let window_end = floor(text, end.max(from + LINE_BYTES).min(line_end.max(end)));
        let first_line = self.source.first_line + text[..window_start].matches('\n').count();
        let shift = |span: Range<usize>| span.start - window_start..span.end - window_start;
        SourceWindow {
            text: text[window_start..window_end].replace('\r', " "),
            first_line,
            span: shift(start..end),
            related: related.map(shift),
            is_part: from > line_start,
        }
    }
}

/// The lines around a place, and the spans relative to them.
struct SourceWindow {
    text: String,
    /// Number of the first of the lines.
    first_line: usize,
    span: Range<usize>,
    related: Option<Range<usize>>,
    /// Whether they begin inside a line.
    is_part: bool,
}

/// The nearest character boundary at or before `at`.
fn floor(text: &str, at: usize) -> usize {
    let mut at = at.min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

/// A JSON pointer as people write a path: `/service/env/A` is `service.env.A`, `/a/0` is `a[0]`.
pub fn dotted(pointer: &str) -> String {
    let mut path = String::new();
    for segment in pointer.split('/').skip(1) {
        let key = segment.replace("~1", "/").replace("~0", "~");
        if !path.is_empty() && key.bytes().all(|byte| byte.is_ascii_digit()) && !key.is_empty() {
            path.push_str(&format!("[{key}]"));
        } else {
            if !path.is_empty() {
                path.push('.');
            }
            path.push_str(&key);
        }
    }
    path
}

/// The last name of a pointer.
pub(crate) fn last_name(pointer: &str) -> String {
    pointer.rsplit('/').next().unwrap_or_default().replace("~1", "/").replace("~0", "~")
}

/// The JSON pointer of a path as [`dotted`] writes it. A key with a dot or bracket in it cannot be
/// written so.
pub fn pointer(dotted: &str) -> String {
    let mut pointer = String::with_capacity(dotted.len() + 1);
    for segment in dotted
        .split(['.', '['])
        .map(|segment| segment.trim_end_matches(']'))
        .filter(|segment| !segment.is_empty())
    {
        schema::check::pointer_segment(&mut pointer, segment);
    }
    pointer
}
