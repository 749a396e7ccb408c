//! YAML text -> a tree that keeps every scalar as it is written and knows where everything stands.
//! The one place that knows saphyr-parser. Called by the config reader and for the Kubernetes files
//! inside configs.
//!
//! Total: size is the caller's to bound; depth, and what anchors may blow a document up to, are
//! bounded here.

mod build;
mod visit;

use std::ops::Range;

use serde_json::Value;

pub use visit::{Visited, YamlStep, pointer};

/// Deepest nesting; a config needs 15, a Kubernetes object 20.
pub const DEPTH_LIMIT: usize = 100;

/// Most nodes in a document: a mapping of short entries that fills 8 MiB has about as many. Bounds
/// the memory of a tree.
pub const NODE_LIMIT: usize = 1_000_000;

/// Most nodes that aliases may add to a document, so that a few anchors cannot stand for billions
/// of nodes.
pub const ALIAS_NODE_LIMIT: usize = 100_000;

/// Most bytes of text that aliases may add to a document.
pub const ALIAS_BYTE_LIMIT: usize = 8 << 20;

/// A value with its place.
#[derive(Debug, Clone, PartialEq)]
pub struct YamlNode {
    /// What it is.
    pub kind: NodeKind,
    /// Bytes of the text that it stands in; for what an alias brought, where the anchor is.
    pub span: Range<usize>,
}

/// What a node is.
#[derive(Debug, Clone, PartialEq)]
pub enum NodeKind {
    /// A scalar, its text after quotes, escapes and folding.
    Scalar {
        /// The text.
        text: String,
        /// Whether it is written without quotes (and without `!!str`), so that it may be more than
        /// a text.
        plain: bool,
    },
    /// A list.
    List(Vec<YamlNode>),
    /// A mapping in the order of the text. A key may be there twice; the reader says so.
    Mapping(Vec<MappingEntry>),
}

/// One entry of a mapping.
#[derive(Debug, Clone, PartialEq)]
pub struct MappingEntry {
    /// The key as it is written.
    pub key: String,
    /// Bytes of the text that the key stands in.
    pub key_span: Range<usize>,
    /// The value.
    pub value: YamlNode,
}

/// Why a text is not YAML.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct YamlError {
    /// Bytes of the text to look at.
    pub span: Range<usize>,
    /// What is wrong.
    pub message: String,
    /// What to do.
    pub help: Option<String>,
}

/// Reads one document. `None` when there is none: nothing, or only comments.
///
/// # Errors
/// What keeps the text from being one YAML document.
pub fn parse(text: &str) -> Result<Option<YamlNode>, YamlError> {
    build::parse(text).map(|(tree, _)| tree)
}

/// The same with what `<<` brought and the mapping itself says otherwise: it stands in the text and
/// not in the tree.
///
/// # Errors
/// What keeps the text from being one YAML document.
pub fn parse_whole(text: &str) -> Result<(Option<YamlNode>, Vec<MappingEntry>), YamlError> {
    build::parse(text)
}

/// The line that this byte of a text is on, from 1.
pub fn line(text: &str, at: usize) -> usize {
    text.get(..at).unwrap_or_default().matches('\n').count() + 1
}

/// Cuts a text into its documents, without reading them: at lines that start with `---` or are
/// `...`, which YAML keeps for this. Byte ranges; comments and directives before a `---` belong to
/// the document after it.
pub fn documents(text: &str) -> Vec<Range<usize>> {
    let mut documents = Vec::new();
    let (mut start, mut has_content, mut at) = (0, false, 0);
    for line in text.split_inclusive(['\n', '\r']) {
        let after = |mark: &str| {
            line.strip_prefix(mark)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with([' ', '\t', '\n', '\r']))
        };
        let opens = after("---");
        if (opens || after("...")) && has_content {
            documents.push(start..at);
            has_content = false;
            start = at;
        }
        if after("...") {
            start = at + line.len();
        } else {
            let rest = if opens { line[3..].trim_start() } else { line.trim_start() };
            let is_directive = line.starts_with('%') && !has_content;
            has_content |= opens || !(rest.is_empty() || rest.starts_with('#') || is_directive);
        }
        at += line.len();
    }
    if has_content {
        documents.push(start..text.len());
    }
    documents
}

impl YamlNode {
    /// Whether it is `null`, `~` or nothing, unquoted.
    pub fn is_null(&self) -> bool {
        match &self.kind {
            NodeKind::Scalar { text, plain: true } => {
                matches!(text.as_str(), "" | "~" | "null" | "Null" | "NULL")
            }
            _ => false,
        }
    }

    /// The node at a JSON pointer, or as near as there is one, and the entry that holds it when a
    /// mapping does.
    pub fn nearest(&self, pointer: &str) -> (&Self, Option<&MappingEntry>, bool) {
        let (mut node, mut entry) = (self, None);
        for segment in pointer.split('/').skip(1) {
            let found = match &node.kind {
                NodeKind::Scalar { .. } => None,
                NodeKind::List(items) => segment
                    .parse::<usize>()
                    .ok()
                    .and_then(|index| items.get(index))
                    .map(|item| (item, None)),
                NodeKind::Mapping(entries) => {
                    let key = segment.replace("~1", "/").replace("~0", "~");
                    // The last one, as it is the one that is told of when a field is given twice.
                    entries
                        .iter()
                        .rfind(|entry| entry.key == key)
                        .map(|entry| (&entry.value, Some(entry)))
                }
            };
            match found {
                Some(found) => (node, entry) = found,
                None => return (node, entry, false),
            }
        }
        (node, entry, true)
    }

    /// As JSON by YAML's core rules: plain `true`, `null`, numbers as such, everything else as
    /// text. Of a key that is there twice the last one counts; a whole number beyond 64 bits
    /// and a number that JSON cannot hold stay text.
    pub fn to_json(&self) -> Value {
        match &self.kind {
            NodeKind::Scalar { text, plain: false } => text.as_str().into(),
            NodeKind::Scalar { .. } if self.is_null() => Value::Null,
            NodeKind::Scalar { text, .. } => match text.as_str() {
                "true" | "True" | "TRUE" => true.into(),
                "false" | "False" | "FALSE" => false.into(),
                text => number(text).unwrap_or_else(|| text.into()),
            },
            NodeKind::List(items) => items.iter().map(Self::to_json).collect(),
            NodeKind::Mapping(entries) => Value::Object(
                entries.iter().map(|entry| (entry.key.clone(), entry.value.to_json())).collect(),
            ),
        }
    }
}

fn number(text: &str) -> Option<Value> {
    let radix = |prefix: &str, radix| {
        text.strip_prefix(prefix).and_then(|digits| u64::from_str_radix(digits, radix).ok())
    };
    if let Some(whole) = radix("0x", 16).or_else(|| radix("0o", 8)) {
        return Some(whole.into());
    }
    if !text.starts_with(|c: char| c.is_ascii_digit() || matches!(c, '-' | '+' | '.')) {
        return None;
    }
    if let Ok(whole) = text.parse::<i64>() {
        return Some(whole.into());
    }
    if let Ok(whole) = text.parse::<u64>() {
        return Some(whole.into());
    }
    let float =
        text.chars().any(|c| matches!(c, '.' | 'e' | 'E')).then(|| text.parse::<f64>().ok())??;
    serde_json::Number::from_f64(float).map(Value::Number)
}

#[cfg(test)]
mod tests;
