//! Events of the parser -> tree. Keeps its own stack, so that no input is deeper than the
//! program's.

use std::collections::HashMap;
use std::ops::Range;

use saphyr_parser::{Event, Marker, Parser, ScalarStyle, ScanError, Span, Tag};

use super::{
    ALIAS_BYTE_LIMIT, ALIAS_NODE_LIMIT, DEPTH_LIMIT, MappingEntry, NODE_LIMIT, NodeKind, YamlError,
    YamlNode,
};

pub(super) fn parse(text: &str) -> Result<(Option<YamlNode>, Vec<MappingEntry>), YamlError> {
    let bytes = ByteOffsets::new(text);
    if let Some(at) =
        text.find(|c: char| c.is_control() && !matches!(c, '\n' | '\r' | '\t' | '\u{85}'))
    {
        let found = text[at..].chars().next().unwrap_or_default();
        return Err(error(
            at..at + found.len_utf8(),
            format!("the control character {found:?} is not allowed in YAML"),
            None,
        ));
    }
    let mut builder = Builder {
        text,
        bytes,
        open: Vec::new(),
        anchors: HashMap::new(),
        nodes: 0,
        alias_nodes: 0,
        alias_bytes: 0,
        root: None,
        shadowed: Vec::new(),
    };
    let mut documents = 0;
    for event in Parser::new_from_str(text) {
        let (event, span) = event.map_err(|error| builder.malformed(&error))?;
        match event {
            Event::DocumentStart(_) => {
                documents += 1;
                if documents > 1 {
                    let span = builder.range(span);
                    return Err(error(
                        span,
                        "a second document starts here".to_owned(),
                        Some("put a line `---` between documents".to_owned()),
                    ));
                }
            }
            Event::Nothing | Event::StreamStart | Event::StreamEnd | Event::DocumentEnd => {}
            event => builder.take(event, span)?,
        }
    }
    Ok((builder.root, builder.shadowed))
}

fn error(span: Range<usize>, message: String, help: Option<String>) -> YamlError {
    YamlError { span, message, help }
}

/// Byte positions of characters, as the parser counts in characters: exact every
/// [`ByteOffsets::STEP`] characters, walked between.
struct ByteOffsets<'a> {
    text: &'a str,
    marks: Vec<usize>,
}

impl<'a> ByteOffsets<'a> {
    const STEP: usize = 256;

    fn new(text: &'a str) -> Self {
        let marks = if text.is_ascii() {
            Vec::new()
        } else {
            text.char_indices().step_by(Self::STEP).map(|(at, _)| at).collect()
        };
        Self { text, marks }
    }

    fn at(&self, marker: &Marker) -> usize {
        let index = marker.index();
        if self.marks.is_empty() {
            return index.min(self.text.len());
        }
        let Some(&start) = self.marks.get(index / Self::STEP) else { return self.text.len() };
        self.text[start..]
            .char_indices()
            .nth(index % Self::STEP)
            .map_or(self.text.len(), |(offset, _)| start + offset)
    }
}

/// A list or mapping that is not closed yet.
struct Open {
    node: OpenNode,
    span: Range<usize>,
    anchor: usize,
}

enum OpenNode {
    List(Vec<YamlNode>),
    Mapping {
        entries: Vec<MappingEntry>,
        key: Option<(String, Range<usize>, bool)>,
        merged: Vec<YamlNode>,
    },
}

struct Builder<'a> {
    text: &'a str,
    bytes: ByteOffsets<'a>,
    open: Vec<Open>,
    /// Finished nodes by anchor, with their size; `None` while the node is still open.
    anchors: HashMap<usize, Option<(YamlNode, Size)>>,
    nodes: usize,
    alias_nodes: usize,
    alias_bytes: usize,
    root: Option<YamlNode>,
    /// Entries of merged mappings that the mapping says otherwise; bounded as all nodes are.
    shadowed: Vec<MappingEntry>,
}

#[derive(Debug, Clone, Copy)]
struct Size {
    nodes: usize,
    bytes: usize,
}

impl Builder<'_> {
    fn range(&self, span: Span) -> Range<usize> {
        let start = self.bytes.at(&span.start);
        start..self.bytes.at(&span.end).max(start)
    }

    fn take(&mut self, event: Event<'_>, span: Span) -> Result<(), YamlError> {
        let span = self.range(span);
        match event {
            Event::Scalar(text, style, anchor, tag) => {
                let plain =
                    style == ScalarStyle::Plain && !self.is_text_tag(tag.as_deref(), &span)?;
                // Blocks and multi-line plain scalars end where the next token begins; people mean
                // the text itself.
                let end = span.start + self.text[span.clone()].trim_end().len();
                let node = YamlNode {
                    kind: NodeKind::Scalar { text: text.into_owned(), plain },
                    span: span.start..end,
                };
                self.finish(node, anchor)
            }
            Event::SequenceStart(anchor, tag) => {
                self.is_text_tag(tag.as_deref(), &span)?;
                self.start(OpenNode::List(Vec::new()), span, anchor)
            }
            Event::MappingStart(anchor, tag) => {
                self.is_text_tag(tag.as_deref(), &span)?;
                self.start(
                    OpenNode::Mapping { entries: Vec::new(), key: None, merged: Vec::new() },
                    span,
                    anchor,
                )
            }
            Event::SequenceEnd | Event::MappingEnd => match self.open.pop() {
                Some(open) => self.close(open, span),
                None => Ok(()),
            },
            Event::Alias(anchor) => self.alias(anchor, span),
            _ => Ok(()),
        }
    }

    /// Whether the tag says that the value is text. Other core tags say what the schema knows
    /// better; all else is refused.
    fn is_text_tag(&self, tag: Option<&Tag>, span: &Range<usize>) -> Result<bool, YamlError> {
        match tag {
            None => Ok(false),
            Some(tag) if tag.is_yaml_core_schema() && tag.suffix == "str" => Ok(true),
            Some(tag)
                if tag.is_yaml_core_schema()
                    && matches!(
                        tag.suffix.as_str(),
                        "int" | "float" | "bool" | "null" | "map" | "seq"
                    ) =>
            {
                Ok(false)
            }
            Some(tag) if tag.handle.is_empty() && tag.suffix == "!" => Ok(true),
            Some(tag) => {
                let name = if tag.is_yaml_core_schema() {
                    format!("!!{}", tag.suffix)
                } else {
                    tag.to_string()
                };
                Err(error(
                    span.clone(),
                    format!("the tag `{}` is not supported", schema::check::cut(&name)),
                    None,
                ))
            }
        }
    }

    fn start(
        &mut self,
        node: OpenNode,
        span: Range<usize>,
        anchor: usize,
    ) -> Result<(), YamlError> {
        if self.open.len() >= DEPTH_LIMIT {
            return Err(error(span, format!("nested deeper than {DEPTH_LIMIT} levels"), None));
        }
        if anchor > 0 {
            self.anchors.insert(anchor, None);
        }
        self.open.push(Open { node, span, anchor });
        Ok(())
    }

    fn close(&mut self, open: Open, end: Range<usize>) -> Result<(), YamlError> {
        let is_flow = matches!(self.text.as_bytes().get(open.span.start), Some(b'{' | b'['));
        let kind = match open.node {
            OpenNode::List(items) => NodeKind::List(items),
            OpenNode::Mapping { mut entries, merged, .. } => {
                // `<<: *base`: what the mapping says itself wins, then the earlier of several
                // bases.
                for base in merged.into_iter().flat_map(|base| match base.kind {
                    NodeKind::Mapping(entries) => entries,
                    _ => Vec::new(),
                }) {
                    if entries.iter().any(|entry| entry.key == base.key) {
                        self.shadowed.push(base);
                    } else {
                        entries.push(base);
                    }
                }
                NodeKind::Mapping(entries)
            }
        };
        let last = match &kind {
            NodeKind::List(items) => items.last().map(|item| item.span.end),
            NodeKind::Mapping(entries) => {
                entries.last().map(|entry| entry.value.span.end.max(entry.key_span.end))
            }
            NodeKind::Scalar { .. } => None,
        };
        let end = if is_flow { end.end } else { last.unwrap_or(open.span.end) };
        self.finish(YamlNode { kind, span: open.span.start..end.max(open.span.start) }, open.anchor)
    }

    fn alias(&mut self, anchor: usize, span: Range<usize>) -> Result<(), YamlError> {
        match self.anchors.get(&anchor) {
            Some(Some((node, size))) => {
                self.alias_nodes = self.alias_nodes.saturating_add(size.nodes);
                self.alias_bytes = self.alias_bytes.saturating_add(size.bytes);
                if self.alias_nodes > ALIAS_NODE_LIMIT || self.alias_bytes > ALIAS_BYTE_LIMIT {
                    let message = format!(
                        "aliases blow the document up to more than {ALIAS_NODE_LIMIT} values or \
                         {ALIAS_BYTE_LIMIT} bytes"
                    );
                    return Err(error(span, message, Some("write out what is meant".to_owned())));
                }
                let node = node.clone();
                self.finish(node, 0)
            }
            Some(None) => {
                Err(error(span, "an alias stands inside the value that it names".to_owned(), None))
            }
            None => Err(error(span, "this alias names no anchor".to_owned(), None)),
        }
    }

    fn finish(&mut self, node: YamlNode, anchor: usize) -> Result<(), YamlError> {
        self.nodes += 1;
        if self.nodes > NODE_LIMIT {
            return Err(error(
                node.span,
                format!("more than {NODE_LIMIT} values in one document"),
                None,
            ));
        }
        if anchor > 0 {
            let size = size(&node);
            self.anchors.insert(anchor, Some((node.clone(), size)));
        }
        let Some(open) = self.open.last_mut() else {
            self.root.get_or_insert(node);
            return Ok(());
        };
        match &mut open.node {
            OpenNode::List(items) => items.push(node),
            OpenNode::Mapping { entries, key, merged } => match key.take() {
                None => match node.kind {
                    NodeKind::Scalar { text, plain } => *key = Some((text, node.span, plain)),
                    _ => {
                        let is_template = self.text[node.span.start..].starts_with('{');
                        let help = is_template.then(|| {
                            "a template has to stand in quotes, as in `\"{{.Params.x}}\"`"
                                .to_owned()
                        });
                        return Err(error(node.span, "a key must be a text".to_owned(), help));
                    }
                },
                Some((name, key_span, true)) if name == "<<" => match node.kind {
                    NodeKind::Mapping(_) => merged.push(node),
                    NodeKind::List(bases)
                        if bases.iter().all(|base| matches!(base.kind, NodeKind::Mapping(_))) =>
                    {
                        merged.extend(bases)
                    }
                    _ => {
                        return Err(error(
                            key_span,
                            "`<<` takes a mapping, or a list of mappings".to_owned(),
                            None,
                        ));
                    }
                },
                Some((key, key_span, _)) => {
                    entries.push(MappingEntry { key, key_span, value: node })
                }
            },
        }
        Ok(())
    }

    fn malformed(&self, failure: &ScanError) -> YamlError {
        let at = self.bytes.at(failure.marker()).min(self.text.len());
        let line_start = self.text[..at].rfind('\n').map_or(0, |newline| newline + 1);
        let line = self.text[line_start..].lines().next().unwrap_or_default();
        // After a text without quotes the parser complains of the line before the tab: it takes the
        // next one for more of it.
        let next_start = self.text[line_start..]
            .find('\n')
            .map_or(self.text.len(), |newline| line_start + newline + 1);
        for start in [line_start, next_start] {
            let rest = &self.text[start..];
            let at = start + rest.len() - rest.trim_start_matches(' ').len();
            if self.text[at..].starts_with('\t')
                && (start == line_start || failure.info().contains("tab"))
            {
                return error(
                    at..at + 1,
                    "a tab cannot indent YAML".to_owned(),
                    Some("use spaces".to_owned()),
                );
            }
        }
        let needs_quotes =
            ["mapping values are not allowed", "anchor", "cannot start", "did not find expected"];
        let help = if line[(at - line_start).min(line.len())..].contains("{{") {
            Some("a template has to stand in quotes, as in `\"{{.Params.x}}\"`".to_owned())
        } else if needs_quotes.iter().any(|part| failure.info().contains(part)) {
            Some(
                "a text with `: ` or ` #` in it, or with `*`, `&`, `{`, `[`, `@` in front, has to \
                 stand in quotes"
                    .to_owned(),
            )
        } else {
            None
        };
        // The end of the text is a place too, but the last line shows more.
        let at = if at == self.text.len() { self.text.trim_end().len() } else { at };
        let end = self.text[at..].chars().next().map_or(at, |c| at + c.len_utf8());
        error(at..end, format!("malformed YAML: {}", failure.info()), help)
    }
}

/// Nodes and bytes of text in a tree. Its depth is bounded by [`DEPTH_LIMIT`] once for itself and
/// once for each alias in it.
fn size(node: &YamlNode) -> Size {
    let mut sum = Size { nodes: 0, bytes: 0 };
    let mut stack = vec![node];
    while let Some(node) = stack.pop() {
        sum.nodes += 1;
        match &node.kind {
            NodeKind::Scalar { text, .. } => sum.bytes += text.len(),
            NodeKind::List(items) => stack.extend(items),
            NodeKind::Mapping(entries) => {
                sum.bytes += entries.iter().map(|entry| entry.key.len()).sum::<usize>();
                stack.extend(entries.iter().map(|entry| &entry.value));
            }
        }
    }
    sum
}
