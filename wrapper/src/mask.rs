//! Hides the values of secrets in whatever leaves the wrapper, also when a read cuts one in two. Called by `capture` for
//! the streams and by `report` for its texts. Without secrets nothing here runs.

use std::borrow::Cow;
use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;

use aho_corasick::{AhoCorasick, MatchKind};
use base64::Engine;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD, URL_SAFE_NO_PAD};

/// What stands in place of a secret.
const MASK: &[u8] = b"***";

/// Shortest value that is masked: a shorter one would black out ordinary words.
const SHORTEST_BYTES: usize = 6;

/// The patterns to hide.
pub(crate) struct Secrets {
    patterns: Vec<Vec<u8>>,
    finder: AhoCorasick,
}

impl Secrets {
    /// Those that `PVN_SECRET_KEYS` names, and the keys whose values are too short to be masked. `None` without any.
    pub(crate) fn of_environment(variables: &[(OsString, OsString)]) -> (Option<Self>, Vec<String>) {
        let Some((_, keys)) = variables.iter().find(|(key, _)| key == "PVN_SECRET_KEYS") else { return (None, Vec::new()) };
        let mut short = Vec::new();
        let mut values = Vec::new();
        for key in keys.as_bytes().split(|byte| *byte == b',').filter(|key| !key.is_empty()) {
            let Some((key, value)) = variables.iter().find(|(name, _)| name.as_bytes() == key) else { continue };
            if value.len() < SHORTEST_BYTES {
                short.push(key.to_string_lossy().into_owned());
            } else {
                values.push(value.as_bytes());
            }
        }
        (Self::of(&values), short)
    }

    /// These values, in every form in which a program is likely to print them; `None` without any.
    pub(crate) fn of(values: &[&[u8]]) -> Option<Self> {
        let mut patterns: Vec<Vec<u8>> = values.iter().flat_map(|value| forms(value)).collect();
        patterns.sort();
        patterns.dedup();
        if patterns.is_empty() {
            return None;
        }
        let finder = AhoCorasick::builder().match_kind(MatchKind::LeftmostLongest).build(&patterns);
        // The only failure is more pattern text than fits into 32 bits, which no environment can hold.
        Some(Self { finder: finder.expect("an environment is smaller than 4 GiB"), patterns })
    }

    /// The text with every secret hidden.
    pub(crate) fn hide(&self, text: &str) -> String {
        String::from_utf8_lossy(&self.finder.replace_all_bytes(text.as_bytes(), &vec![MASK; self.patterns.len()])).into_owned()
    }

    /// Where the first thing begins, in `bytes` from `from` on, that may be the start of a secret cut off by the end.
    fn possible_start(&self, bytes: &[u8], from: usize) -> usize {
        let longest = self.patterns.iter().map(Vec::len).max().unwrap_or(0);
        let first = bytes.len().saturating_sub(longest.saturating_sub(1)).max(from);
        (first..bytes.len())
            .find(|at| self.patterns.iter().any(|pattern| pattern.len() > bytes.len() - at && pattern.starts_with(&bytes[*at..])))
            .unwrap_or(bytes.len())
    }
}

/// The text with every secret hidden, if there are any.
pub(crate) fn hide<'a>(secrets: Option<&Secrets>, text: &'a str) -> Cow<'a, str> {
    secrets.map_or(Cow::Borrowed(text), |secrets| Cow::Owned(secrets.hide(text)))
}

/// A value as it stands, without a last newline, each of its long lines, and each of these in base64, percent-encoded and as
/// it stands in a JSON string.
fn forms(value: &[u8]) -> Vec<Vec<u8>> {
    let trimmed = value.trim_ascii_end();
    let lines = trimmed.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii);
    let mut forms = Vec::new();
    for plain in [value, trimmed].into_iter().chain(lines).filter(|plain| plain.len() >= SHORTEST_BYTES) {
        let mut add = |form: Vec<u8>| {
            if form.len() >= SHORTEST_BYTES && !forms.contains(&form) {
                forms.push(form);
            }
        };
        add(plain.to_owned());
        add(STANDARD.encode(plain).into_bytes());
        add(STANDARD_NO_PAD.encode(plain).into_bytes());
        add(URL_SAFE_NO_PAD.encode(plain).into_bytes());
        add(percent_encoded(plain));
        if let Ok(text) = std::str::from_utf8(plain) {
            let json = serde_json::to_vec(text).expect("a string is JSON");
            add(json[1..json.len() - 1].to_owned());
        }
    }
    forms
}

/// As RFC 3986 has it: everything but the unreserved characters.
fn percent_encoded(bytes: &[u8]) -> Vec<u8> {
    let mut encoded = Vec::with_capacity(bytes.len() * 3);
    for byte in bytes {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(byte) {
            encoded.push(*byte);
        } else {
            encoded.extend(format!("%{byte:02X}").into_bytes());
        }
    }
    encoded
}

/// Hides secrets in one stream, piece by piece. Holds back only what may be the beginning of a secret.
#[derive(Default)]
pub(crate) struct Masker {
    held: Vec<u8>,
}

impl Masker {
    /// The next piece as it may be shown; `last` when nothing follows.
    pub(crate) fn push(&mut self, secrets: &Secrets, piece: &[u8], last: bool) -> Vec<u8> {
        let mut bytes = std::mem::take(&mut self.held);
        bytes.extend_from_slice(piece);
        let mut shown = Vec::with_capacity(bytes.len());
        let mut done = 0;
        loop {
            let safe = if last { bytes.len() } else { secrets.possible_start(&bytes, done) };
            match secrets.finder.find(&bytes[done..]) {
                // A secret that begins before anything unfinished is a secret whatever comes.
                Some(found) if done + found.start() < safe => {
                    shown.extend_from_slice(&bytes[done..done + found.start()]);
                    shown.extend_from_slice(MASK);
                    done += found.end();
                }
                _ => {
                    shown.extend_from_slice(&bytes[done..safe]);
                    self.held = bytes.split_off(safe);
                    return shown;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pushes `text` cut in two at every place, and in single bytes: what is shown must be the same each time.
    fn check(values: &[&str], text: &str, expected: &str) {
        let secrets = Secrets::of(&values.iter().map(|value| value.as_bytes()).collect::<Vec<_>>()).unwrap();
        for cut in 0..=text.len() {
            let mut masker = Masker::default();
            let mut shown = masker.push(&secrets, &text.as_bytes()[..cut], false);
            shown.extend(masker.push(&secrets, &text.as_bytes()[cut..], true));
            assert_eq!(String::from_utf8_lossy(&shown), expected, "cut at {cut}");
        }
        let mut masker = Masker::default();
        let mut shown: Vec<u8> = text.bytes().flat_map(|byte| masker.push(&secrets, &[byte], false)).collect();
        shown.extend(masker.push(&secrets, b"", true));
        assert_eq!(String::from_utf8_lossy(&shown), expected, "byte by byte");
    }

    #[test]
    fn a_secret_cut_anywhere_is_hidden() {
        check(&["hunter22"], "a hunter22 b hunter2 c hunter22", "a *** b hunter2 c ***");
        check(&["aabaab"], "aaabaabaab", "a***aab");
    }

    #[test]
    fn the_longer_of_two_secrets_is_hidden_whole() {
        check(&["secret", "secret-and-more"], "secret secret-and-more secret-and", "*** *** ***-and");
    }

    #[test]
    fn encoded_secrets_are_hidden() {
        check(&["pass/word+1\"x"], "cGFzcy93b3JkKzEieA== pass%2Fword%2B1%22x pass/word+1\\\"x", "*** *** ***");
    }

    #[test]
    fn a_secret_of_several_lines_is_hidden_whole_and_line_by_line() {
        check(&["first line\nsecond line\n"], "first line\nsecond line\n|second line|", "***|***|");
    }

    #[test]
    fn nothing_is_held_back_that_is_no_beginning_of_a_secret() {
        let secrets = Secrets::of(&[b"hunter22"]).unwrap();
        assert_eq!(Masker::default().push(&secrets, b"prompt> ", false), b"prompt> ");
        assert_eq!(Masker::default().push(&secrets, b"prompt hun", false), b"prompt ");
    }

    #[test]
    fn a_short_secret_is_refused_and_named() {
        let variables = [("PVN_SECRET_KEYS", "A,B,C"), ("A", "short"), ("B", "long enough")].map(|(key, value)| (key.into(), value.into()));
        let (secrets, short) = Secrets::of_environment(&variables);
        assert_eq!(secrets.unwrap().hide("is long enough, short"), "is ***, short");
        assert_eq!(short, ["A"]);
    }
}
