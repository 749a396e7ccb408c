//! Secrets of which only lines tell: of a text that is no YAML, and in comments. Called by
//! `secrets`.

use std::ops::Range;

use super::{Secret, apart, is_raw_secret};

/// The same for a text that is no YAML: the rest of each line with the key in it, or with a key
/// that could be it in disguise, and all lines after it that are no field of their own.
pub(crate) fn of_lines(text: &str) -> Vec<Secret> {
    let mut secrets = Vec::new();
    let mut depth = None;
    for line in lines(text) {
        let bare = &text[line.clone()];
        let indent = bare.len() - bare.trim_start().len();
        let disguised = || bare.find('"').filter(|quote| bare[*quote..].contains('\\'));
        let from = if let Some(after) = after_raw_secret(bare).or_else(disguised) {
            let in_list =
                bare.trim_start().starts_with("- ") || bare.trim_start().starts_with("? ");
            depth = Some(indent + if in_list { 2 } else { 0 });
            Some(after)
        } else if depth.is_some_and(|depth| indent > depth || !is_field(bare)) {
            Some(indent)
        } else {
            depth = None;
            None
        };
        if let Some(from) = from {
            secrets.push(Secret {
                span: line.start + from..line.end,
                path: String::new(),
                value: String::new(),
            });
        }
    }
    apart(secrets)
}

/// What stands behind the key in comments.
pub(super) fn comments(text: &str) -> Vec<Secret> {
    let in_lines = lines(text).filter_map(|line| {
        let hash = text[line.clone()].find('#')?;
        let after = after_raw_secret(&text[line.start + hash..line.end])?;
        Some(Secret {
            span: line.start + hash + after..line.end,
            path: String::new(),
            value: String::new(),
        })
    });
    in_lines.collect()
}

/// The same, where the key has a colon or an equals sign behind it, or neither and begins the text.
pub(super) fn with_raw_secret(text: &str) -> Option<usize> {
    without_colon(text).or_else(|| {
        let at = after_raw_secret(text)?;
        let rest = &text[at..];
        let has_colon = text[..at].trim_end_matches([' ', '\t', '"', '\'']).ends_with(':');
        (rest.starts_with('=') || has_colon)
            .then(|| at + (rest.len() - rest.trim_start_matches([' ', '\t', '"', '\'', '=']).len()))
    })
}

/// Where the value begins behind a key, or a slip of the pen for it, that is the first word of a
/// text.
fn without_colon(text: &str) -> Option<usize> {
    let (key, value) = text.trim_start().split_once(char::is_whitespace)?;
    let value = value.trim_start();
    (is_raw_secret(key) && !value.is_empty()).then(|| text.len() - value.len())
}

/// Where the value begins that stands behind the key in a line.
fn after_raw_secret(line: &str) -> Option<usize> {
    let lower = line.to_ascii_lowercase();
    let key = ["rawsecret", "raw_secret", "raw-secret"]
        .into_iter()
        .filter_map(|key| lower.find(key).map(|at| at + key.len()))
        .min()?;
    let rest = &line[key..];
    Some(key + (rest.len() - rest.trim_start_matches([' ', '\t', '"', '\'', ':']).len()))
}

/// Every line, without its end.
fn lines(text: &str) -> impl Iterator<Item = Range<usize>> {
    let mut at = 0;
    text.split_inclusive('\n').map(move |line| {
        let start = at;
        at += line.len();
        start..start + line.trim_end_matches(['\n', '\r']).len()
    })
}

/// Whether a line looks like the beginning of a field. In quotes the key is rather one of JSON that
/// was pasted as the secret.
fn is_field(line: &str) -> bool {
    let line = line.trim_start().trim_start_matches("- ");
    line.split_once(':').is_some_and(|(key, _)| {
        !key.is_empty()
            && key.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte))
    })
}
