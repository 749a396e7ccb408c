//! Where secrets stand in the text of a document: what hides them in whatever shows the text, the
//! lines under a problem and the diff of a change alike. Found in the tree, so that no way of
//! writing YAML gets around it; only of a text that is no YAML, lines are all there is. In doubt
//! more is hidden than need be.

use std::ops::Range;

use aho_corasick::{AhoCorasick, AhoCorasickKind, MatchKind};
use schema::check::cut;

use crate::yaml::{self, MappingEntry, NodeKind, Visited, YamlNode, YamlStep};

pub(super) use self::lines::of_lines;
use self::lines::{comments, with_raw_secret};

mod lines;

/// Shortest text that is hidden wherever else it stands, in bytes: a shorter one would black out
/// ordinary words.
const ELSEWHERE_BYTES: usize = 6;

/// Fields that name a secret by fields of their own, so that a text there is somebody's guess at
/// where the value goes.
const NAMES_A_SECRET: [&str; 5] =
    ["secret", "secretRef", "secret_ref", "kubernetesSecret", "kubernetes_secret"];

/// A secret in a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Secret {
    /// Bytes of the text, all that stands for the value.
    pub span: Range<usize>,
    /// Which field it is: the keys and the names of list items down to it. Empty where the text is
    /// found again in a comment or another field.
    pub path: String,
    /// The value, after quotes, escapes and folding.
    pub value: String,
}

/// Every secret of a document's text, in the order of the text; none overlaps another.
pub fn secrets(text: &str) -> Vec<Secret> {
    match yaml::parse_whole(text) {
        Ok((tree, shadowed)) => of_tree(text, tree.as_ref(), &shadowed).0,
        Err(_) => of_lines(text),
    }
}

/// The text with every one of its `secrets` replaced by what `mask` gives for it, and every value
/// of `also` that stands in it: those of another text beside which it is shown.
pub fn masked(
    text: &str,
    secrets: &[Secret],
    also: &[Secret],
    mask: impl Fn(&Secret) -> String,
) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut at = 0;
    let mut found = secrets.to_vec();
    found.extend(elsewhere(text, also));
    for secret in apart(found) {
        shown.push_str(&text[at..secret.span.start]);
        shown.push_str(&mask(&secret));
        at = secret.span.end;
    }
    shown.push_str(&text[at..]);
    shown
}

/// The text with a `*` for every byte of a secret, so that all places stay what they are. Ends of
/// lines stay.
pub(super) fn blanked(text: &str, secrets: &[Secret]) -> String {
    let mut bytes = text.as_bytes().to_vec();
    for byte in secrets.iter().flat_map(|secret| secret.span.clone()) {
        if !matches!(bytes[byte], b'\n' | b'\r') {
            bytes[byte] = b'*';
        }
    }
    // The spans begin and end between characters.
    String::from_utf8_lossy(&bytes).into_owned()
}

/// The secrets of a text whose tree this is, and what hides them in messages.
pub(super) fn of_tree(
    text: &str,
    tree: Option<&YamlNode>,
    shadowed: &[MappingEntry],
) -> (Vec<Secret>, HiddenValues) {
    let mut found = TextSecrets { text, secrets: Vec::new() };
    if let Some(tree) = tree {
        tree.visit(&mut Vec::new(), &mut |steps, visited| found.see(steps, visited, ""));
    }
    for entry in shadowed {
        entry.visit(&mut Vec::new(), &mut |steps, visited| found.see(steps, visited, "<<"));
    }
    let again = elsewhere(text, &found.secrets);
    let hidden = HiddenValues::of(&found.secrets);
    found.secrets.extend(again);
    found.secrets.extend(comments(text));
    (apart(found.secrets), hidden)
}

/// Values that no message repeats.
#[derive(Default)]
pub(super) struct HiddenValues {
    /// The longest first.
    values: Vec<String>,
}

impl HiddenValues {
    fn of(secrets: &[Secret]) -> Self {
        let lines = secrets
            .iter()
            .flat_map(|secret| std::iter::once(secret.value.as_str()).chain(secret.value.lines()))
            .map(str::trim);
        // A long value is repeated in part.
        let mut values: Vec<String> = lines
            .flat_map(|line| [line.to_owned(), cut(line).trim_end_matches('…').to_owned()])
            .collect();
        values.retain(|value| !value.is_empty());
        values.sort_by(|a, b| b.len().cmp(&a.len()).then_with(|| a.cmp(b)));
        values.dedup();
        Self { values }
    }

    /// A message without them. A short one is hidden where it is quoted: it may be a part of any
    /// word.
    pub(super) fn hide(&self, message: &str) -> String {
        self.values.iter().fold(message.to_owned(), |message, value| {
            if value.len() >= ELSEWHERE_BYTES {
                message.replace(value, "***")
            } else {
                message.replace(&format!("`{value}`"), "`***`")
            }
        })
    }
}

/// Sorts, and makes one of those that overlap.
fn apart(mut secrets: Vec<Secret>) -> Vec<Secret> {
    secrets.retain(|secret| !secret.span.is_empty());
    secrets.sort_by(|a, b| (a.span.start, b.span.end).cmp(&(b.span.start, a.span.end)));
    let mut apart: Vec<Secret> = Vec::with_capacity(secrets.len());
    for secret in secrets {
        match apart.last_mut() {
            Some(last) if secret.span.start < last.span.end => {
                last.span.end = last.span.end.max(secret.span.end);
                if last.path.is_empty() {
                    (last.path, last.value) = (secret.path, secret.value);
                }
            }
            _ => apart.push(secret),
        }
    }
    apart
}

struct TextSecrets<'a> {
    text: &'a str,
    secrets: Vec<Secret>,
}

impl TextSecrets<'_> {
    fn see(&mut self, steps: &[YamlStep<'_>], visited: Visited<'_>, root: &str) -> bool {
        match visited {
            Visited::Scalar(text, node) => {
                self.inline(text, &node.span);
                true
            }
            // What stands in a secret is each a value, or names one.
            Visited::Mapping(entries) => {
                let around = match steps.last() {
                    Some(YamlStep::Entry(entry)) => entry.key.as_str(),
                    _ => "",
                };
                if around != "secret" {
                    self.after_commas(entries);
                }
                true
            }
            Visited::Entry(entry) => self.entry(entry, steps, root),
        }
    }

    /// Whether secrets may be in the value of an entry that is none itself.
    fn entry(&mut self, entry: &MappingEntry, steps: &[YamlStep<'_>], root: &str) -> bool {
        let is_scalar = matches!(entry.value.kind, NodeKind::Scalar { .. });
        // Somebody's guess at where the value goes.
        let names = ["key", "version", "secretName", "secret_name"].contains(&entry.key.as_str());
        let is_in_secret =
            matches!(steps, [.., YamlStep::Entry(outer), _] if outer.key == "secret");
        if is_in_secret && is_scalar && !names {
            self.value(entry, path(root, steps));
            return false;
        }
        self.inline(&entry.key, &entry.key_span);
        if is_raw_secret(&entry.key) || (is_scalar && NAMES_A_SECRET.contains(&entry.key.as_str()))
        {
            self.value(entry, path(root, steps));
            return false;
        }
        true
    }

    /// What stands behind a comma in the value, where it is not quoted: `{rawSecret: first,second}`
    /// is a field of its own to YAML.
    fn after_commas(&mut self, entries: &[MappingEntry]) {
        if !entries.iter().any(|entry| is_raw_secret(&entry.key)) {
            return;
        }
        for entry in entries {
            let after_key = self.text.get(entry.key_span.end..).unwrap_or_default().trim_start();
            let is_empty = match &entry.value.kind {
                NodeKind::Scalar { text, .. } => text.is_empty(),
                NodeKind::List(_) | NodeKind::Mapping(_) => false,
            };
            let is_alone = is_empty && !after_key.starts_with(':');
            if is_alone {
                self.secrets.push(Secret {
                    span: entry.key_span.clone(),
                    path: String::new(),
                    value: entry.key.clone(),
                });
            }
        }
    }

    /// A key or a text that holds both the field and its value, as where the blank behind the colon
    /// is missing.
    fn inline(&mut self, text: &str, span: &Range<usize>) {
        let Some(value) =
            with_raw_secret(text).map(|at| &text[at..]).filter(|value| !value.is_empty())
        else {
            return;
        };
        let written = self.text.get(span.clone()).unwrap_or_default();
        let start = span.start + with_raw_secret(written).unwrap_or_default();
        self.secrets.push(Secret {
            span: start..span.end,
            path: String::new(),
            // The quote that begins it is no part of it either.
            value: value.trim_end_matches(['"', '\'']).to_owned(),
        });
    }

    /// All that stands where one text is expected.
    fn within(&mut self, node: &YamlNode) {
        node.visit(&mut Vec::new(), &mut |_, visited| {
            let (value, span) = match visited {
                Visited::Scalar(text, node) => (text, &node.span),
                Visited::Entry(entry) => (entry.key.as_str(), &entry.key_span),
                Visited::Mapping(_) => return true,
            };
            self.secrets.push(Secret {
                span: span.clone(),
                path: String::new(),
                value: value.to_owned(),
            });
            true
        });
    }

    /// The value, with the tag and the anchor in front of it.
    fn value(&mut self, entry: &MappingEntry, path: String) {
        let span = &entry.value.span;
        let value = match &entry.value.kind {
            NodeKind::Scalar { text, .. } => text.clone(),
            _ => {
                self.within(&entry.value);
                self.text.get(span.clone()).unwrap_or_default().to_owned()
            }
        };
        let after_key = self.text.get(entry.key_span.end..).unwrap_or_default();
        let colon = after_key.find(':').map(|at| entry.key_span.end + at + 1);
        if let Some(colon) = colon.filter(|colon| *colon <= span.start || span.is_empty()) {
            let line_end = self.text[colon..].find('\n').map_or(self.text.len(), |at| colon + at);
            let blank = self.text[colon..].len() - self.text[colon..].trim_start().len();
            let end = if span.is_empty() {
                line_end
            } else {
                comment_after(self.text, span).map_or(span.end, |comment| comment.end)
            };
            self.secrets.push(Secret { span: (colon + blank).min(end)..end, path, value });
        } else {
            // An alias: what it stands for is written where the anchor is.
            self.secrets.push(Secret { span: span.clone(), path, value });
        }
    }
}

/// Whether a value is written without quotes and in one piece, so that ` #` ends it.
fn is_plain(written: &str) -> bool {
    !written.starts_with(['"', '\'', '|', '>', '&', '*', '!'])
}

/// The comment behind a value without quotes, which may have been meant as a part of it.
pub(super) fn comment_after(text: &str, value: &Range<usize>) -> Option<Range<usize>> {
    let rest = text.get(value.end..)?;
    let line = &rest[..rest.find('\n').unwrap_or(rest.len())];
    let comment = line.trim_start();
    let is_comment = is_plain(text.get(value.clone())?)
        && comment.starts_with('#')
        && comment.len() < line.len();
    is_comment.then(|| value.end + line.len() - comment.len()..value.end + line.trim_end().len())
}

/// The keys and the names of list items of these steps.
fn path(root: &str, steps: &[YamlStep<'_>]) -> String {
    let mut path = root.to_owned();
    for step in steps {
        path.push('/');
        match step {
            YamlStep::Entry(entry) => path.push_str(&entry.key),
            YamlStep::Item(index, item) => {
                path.push_str(name_of(item).unwrap_or(&index.to_string()))
            }
        }
    }
    path
}

/// The name by which people know an item of a list.
fn name_of(item: &YamlNode) -> Option<&str> {
    let NodeKind::Mapping(entries) = &item.kind else { return None };
    entries
        .iter()
        .find(|entry| matches!(entry.key.as_str(), "name" | "releaseChannel" | "release_channel"))
        .and_then(|entry| match &entry.value.kind {
            NodeKind::Scalar { text, .. } => Some(text.as_str()),
            _ => None,
        })
}

/// Whether a key is `rawSecret`, or somebody's slip of the pen for it.
fn is_raw_secret(key: &str) -> bool {
    let plain: String =
        key.chars().filter(|c| c.is_alphanumeric()).take(16).flat_map(char::to_lowercase).collect();
    strsim::osa_distance(&plain, "rawsecret") <= 2
}

/// Where the value of a secret, or a long line of it, stands again.
fn elsewhere(text: &str, secrets: &[Secret]) -> Vec<Secret> {
    let values = secrets.iter().filter(|secret| !secret.value.contains("{{"));
    let lines = values.flat_map(|secret| {
        std::iter::once(secret.value.trim()).chain(secret.value.lines().map(str::trim))
    });
    let mut patterns: Vec<&str> = lines.filter(|line| line.len() >= ELSEWHERE_BYTES).collect();
    patterns.sort_unstable();
    patterns.dedup();
    if patterns.is_empty() {
        return Vec::new();
    }
    // The kind that is made quickest, for it searches once; the others take very much longer of a
    // long secret than the search does.
    let builder = AhoCorasick::builder()
        .kind(Some(AhoCorasickKind::NoncontiguousNFA))
        .match_kind(MatchKind::LeftmostLongest)
        .to_owned();
    // The only failure is more text than fits into 32 bits; a document has 8 MiB.
    let Ok(finder) = builder.build(patterns) else { return Vec::new() };
    finder
        .find_iter(text)
        .map(|found| Secret { span: found.range(), path: String::new(), value: String::new() })
        .collect()
}

#[cfg(test)]
mod tests;
