//! The values of the secrets that a job was given, hidden in whatever the cluster says of it: logs of containers without a wrapper,
//! words of Pods and events. What a wrapper says it has masked itself. Called by the job's task.
//!
//! What always holds: the values are on disk only sealed.

use std::sync::Arc;

use aho_corasick::{AhoCorasick, MatchKind};
use base64::Engine;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD, URL_SAFE, URL_SAFE_NO_PAD};

use crate::runner::learned::Learned;
use crate::secrets::{SealError, Sealer};

/// What stands in place of a secret, as in what a wrapper masks.
const MASK: &str = "***";

/// Shortest value that is hidden: a shorter one would black out ordinary words. Source: the wrapper's own limit.
const SHORTEST_BYTES: usize = 6;

/// What the sealed values are bound to.
const PURPOSE: &str = "secrets of a job on a cluster";

/// Finds secrets. Cloned freely.
#[derive(Clone, Default)]
pub(super) struct Hidden(Option<Arc<Finder>>);

struct Finder {
    finder: AhoCorasick,
    patterns: usize,
    longest: usize,
}

impl std::fmt::Debug for Hidden {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Hidden")
    }
}

impl Hidden {
    /// These values, in the forms in which programs print them.
    pub(super) fn of<'a>(values: impl IntoIterator<Item = &'a str>) -> Self {
        let mut patterns: Vec<Vec<u8>> = values.into_iter().flat_map(forms).collect();
        patterns.sort();
        patterns.dedup();
        let Some(longest) = patterns.iter().map(Vec::len).max() else { return Self(None) };
        // The only failure is more pattern text than fits into 32 bits, which no environment can hold.
        let finder = AhoCorasick::builder().match_kind(MatchKind::LeftmostLongest).build(&patterns).expect("an environment is small");
        Self(Some(Arc::new(Finder { finder, patterns: patterns.len(), longest })))
    }

    /// Values as they are kept on disk; empty when there are none.
    pub(super) fn sealed(values: &[String], sealer: &Sealer) -> String {
        let text = serde_json::to_string(values).expect("texts are JSON");
        if values.is_empty() { String::new() } else { sealer.seal(PURPOSE, text.as_bytes()) }
    }

    /// Those that were kept.
    ///
    /// # Errors
    /// When they were sealed with another key.
    pub(super) fn unsealed(sealed: &str, sealer: &Sealer) -> Result<Self, SealError> {
        if sealed.is_empty() {
            return Ok(Self::default());
        }
        let values: Vec<String> = serde_json::from_slice(&sealer.unseal(PURPOSE, sealed)?).unwrap_or_default();
        Ok(Self::of(values.iter().map(String::as_str)))
    }

    /// The text without them.
    pub(super) fn hide(&self, text: &str) -> String {
        String::from_utf8_lossy(&self.hide_bytes(text.as_bytes())).into_owned()
    }

    /// The same of bytes.
    pub(super) fn hide_bytes(&self, bytes: &[u8]) -> Vec<u8> {
        match &self.0 {
            Some(found) => found.finder.replace_all_bytes(bytes, &vec![MASK; found.patterns]),
            None => bytes.to_owned(),
        }
    }

    /// How many bytes more must be read so that none is cut in two.
    pub(super) fn longest(&self) -> usize {
        self.0.as_ref().map_or(0, |found| found.longest)
    }

    /// Hides them in what is told of a job's end.
    pub(super) fn hide_in(&self, learned: &mut Learned) {
        let why = learned.never.as_mut().map(|never| &mut never.why);
        for text in why.into_iter().chain(learned.lost.as_mut()) {
            *text = self.hide(text);
        }
    }
}

/// A value as it stands, its long lines, and each of these in base64 (alone or within a longer text), percent-encoded and as it
/// stands in a JSON string.
fn forms(value: &str) -> Vec<Vec<u8>> {
    let trimmed = value.trim_end();
    let mut forms = Vec::new();
    for plain in [value, trimmed].into_iter().chain(trimmed.lines().map(str::trim)).filter(|plain| plain.len() >= SHORTEST_BYTES) {
        forms.push(plain.as_bytes().to_owned());
        for engine in [&STANDARD, &STANDARD_NO_PAD, &URL_SAFE, &URL_SAFE_NO_PAD] {
            forms.push(engine.encode(plain).into_bytes());
        }
        for engine in [&STANDARD_NO_PAD, &URL_SAFE_NO_PAD] {
            for before in 0..3 {
                let padded = [&[0; 2][..before], plain.as_bytes()].concat();
                // A character holds six bits: those that hold any bit of a neighbour are left out.
                let (first, end) = ((before * 8).div_ceil(6), padded.len() * 8 / 6);
                forms.push(engine.encode(&padded).as_bytes()[first..end].to_owned());
            }
        }
        let percent: String = plain.bytes().map(|byte| percent_encoded(byte, b"-._~")).collect();
        let component: String = plain.bytes().map(|byte| percent_encoded(byte, b"-._~!*'()")).collect();
        let path: String = plain.bytes().map(|byte| percent_encoded(byte, b"-._~$&+=:@")).collect();
        forms.extend([percent.replace("%20", "+"), percent, component, path].map(String::into_bytes));
        let json = serde_json::to_string(plain).expect("a text is JSON");
        forms.push(json.as_bytes()[1..json.len() - 1].to_owned());
    }
    forms.retain(|form| form.len() >= SHORTEST_BYTES);
    forms
}

fn percent_encoded(byte: u8, kept: &[u8]) -> String {
    if byte.is_ascii_alphanumeric() || kept.contains(&byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_hidden_in_each_form_in_which_programs_print_it() {
        let hidden = Hidden::of(["p@ss/w\u{f6}rd \"1\"", "short"]);
        let base64 = STANDARD.encode("user:p@ss/w\u{f6}rd \"1\"");
        let shown = hidden.hide(&format!(
            "a p@ss/w\u{f6}rd \"1\" b p%40ss%2Fw%C3%B6rd%20%221%22 c p%40ss%2Fw%C3%B6rd+%221%22 d {base64} e p@ss/w\u{f6}rd \\\"1\\\" f short"
        ));
        assert!(!shown.contains("ss/w") && !shown.contains("ss%2F") && shown.ends_with("f short"), "{shown}");
        assert_eq!(shown.matches(MASK).count(), 5, "{shown}");
        assert!(!shown.contains(&base64[10..16]), "{shown}");
    }

    #[test]
    fn what_is_kept_is_sealed_and_comes_back() {
        let sealer = Sealer::with_key([7; 32]);
        let sealed = Hidden::sealed(&["hunter22".to_owned()], &sealer);
        assert!(!sealed.contains("hunter22"));
        assert_eq!(Hidden::unsealed(&sealed, &sealer).unwrap().hide("x hunter22"), "x ***");
        assert!(Hidden::unsealed(&sealed, &Sealer::with_key([8; 32])).is_err());
        assert_eq!(Hidden::unsealed(&Hidden::sealed(&[], &sealer), &sealer).unwrap().hide("x"), "x");
    }
}
