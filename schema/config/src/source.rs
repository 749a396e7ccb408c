//! The text of a document -> its tree and value, and where everything of it stands. Called when it
//! is read, and again when a problem is to be shown at its place.

use std::collections::BTreeMap;
use std::ops::Range;

use schema::check::{Checker, cut};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::WrittenDocument;
use crate::coerce::{self, Twice};
use crate::diagnostic::{self, Diagnostic};
use crate::formats::FORMATS;
use crate::secrets::{self, HiddenValues, Secret};
use crate::yaml::{self, NodeKind, YamlNode};

/// Most problems told of one document; nobody reads more, and a hostile one could have millions.
pub const DOCUMENT_PROBLEM_LIMIT: usize = 100;

thread_local! {
    pub(crate) static CHECKER: Checker = checker();
}

/// What holds documents against the language's schema.
pub(crate) fn checker() -> Checker {
    Checker::new(crate::json_schema::of::<WrittenDocument>(), FORMATS)
}

/// The text of one document and the local files that it refers to: all that is needed to read it
/// again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DocumentSource {
    /// Path of its file as the person knows it.
    pub file: String,
    /// Line, from 1, of the file on which `text` starts.
    pub first_line: usize,
    /// The document's own text.
    pub text: String,
    /// Local files by the path written in the document; those of a directory by that path, `/`,
    /// and the rest.
    pub attachments: BTreeMap<String, String>,
}

/// Where everything of a document stands, and the text as it may be shown.
#[derive(Debug, Clone)]
pub(crate) struct Places {
    pub(crate) shown: diagnostic::NamedText,
    pub(crate) tree: YamlNode,
}

/// What a text says.
pub(crate) struct Parsed {
    pub(crate) tree: YamlNode,
    pub(crate) value: Value,
    /// Of the text alone.
    pub(crate) problems: Vec<Diagnostic>,
}

/// The text as it may be shown, what no message may repeat, and what the text says.
pub(crate) fn parse(
    source: &DocumentSource,
) -> (diagnostic::NamedText, HiddenValues, Result<Option<Parsed>, Vec<Diagnostic>>) {
    let text = source.text.as_str();
    let shown = |secrets: &[Secret]| diagnostic::NamedText {
        path: source.file.as_str().into(),
        text: if secrets.is_empty() { text.into() } else { secrets::blanked(text, secrets).into() },
        first_line: source.first_line,
    };
    let (tree, shadowed) = match yaml::parse_whole(text) {
        Ok(parsed) => parsed,
        Err(error) => {
            let secrets = secrets::of_lines(text);
            let is_hidden = secrets.iter().any(|secret| secret.span.contains(&error.span.start));
            // A tag is repeated in the message, and a secret may begin with `!`.
            let message = if is_hidden && error.message.contains("tag") {
                "this tag is not supported".to_owned()
            } else {
                error.message
            };
            let shared = shown(&secrets);
            let problem =
                Diagnostic { help: error.help, ..diagnostic_at(&shared, error.span, "", message) };
            return (shared, HiddenValues::default(), Err(vec![problem]));
        }
    };
    let (secrets, hidden) = secrets::of_tree(text, tree.as_ref(), &shadowed);
    let shared = shown(&secrets);
    let parsed = match tree {
        None => Ok(None),
        // `---` with nothing after it.
        Some(tree) if tree.is_null() => Ok(None),
        Some(mut tree) => {
            let mut twice = Vec::new();
            let value = CHECKER.with(|checker| coerce::coerce(&mut tree, checker, &mut twice));
            let problems = twice
                .into_iter()
                .take(DOCUMENT_PROBLEM_LIMIT)
                .map(|twice| given_twice(twice, &shared))
                .collect();
            Ok(Some(Parsed { tree, value, problems }))
        }
    };
    (shared, hidden, parsed)
}

fn given_twice(twice: Twice, shared: &diagnostic::NamedText) -> Diagnostic {
    let Twice { pointer, first: (first, first_span), second: (second, second_span) } = twice;
    let message = if first == second {
        format!("the field `{}` is given twice", cut(&first))
    } else {
        format!(
            "the field `{}` is given twice, as `{}` and as `{}`",
            diagnostic::last_name(&pointer),
            cut(&first),
            cut(&second)
        )
    };
    Diagnostic {
        related: Some((first_span, "first given here".to_owned())),
        ..diagnostic_at(shared, second_span, &pointer, message)
    }
}

/// Where everything of a document that was read stands.
pub(crate) fn places(source: &DocumentSource) -> Places {
    let (shown, _, parsed) = parse(source);
    // What was a document once is one again; of nothing every place is the text's beginning.
    let tree = parsed.ok().flatten().map(|parsed| parsed.tree);
    let tree = tree.unwrap_or(YamlNode { kind: NodeKind::Mapping(Vec::new()), span: 0..0 });
    Places { shown, tree }
}

pub(crate) fn diagnostic_at(
    source: &diagnostic::NamedText,
    span: Range<usize>,
    pointer: &str,
    message: String,
) -> Diagnostic {
    Diagnostic {
        source: source.clone(),
        span: Some(span),
        path: diagnostic::dotted(pointer),
        message,
        help: None,
        related: None,
    }
}
