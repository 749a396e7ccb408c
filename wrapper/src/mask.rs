//! Hides the values of secrets in whatever leaves the wrapper, also when a read cuts one in two. Called by `capture` for
//! the streams and by `report` for its texts. Without secrets nothing here runs.

use std::borrow::Cow;
use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;

use aho_corasick::{AhoCorasick, MatchKind};
use base64::Engine;
use base64::engine::general_purpose::{GeneralPurpose, STANDARD, STANDARD_NO_PAD, URL_SAFE, URL_SAFE_NO_PAD};

/// What stands in place of a secret.
const MASK: &[u8] = b"***";

/// Shortest value that is masked: a shorter one would black out ordinary words.
const SHORTEST_BYTES: usize = 6;

/// Lengths of the lines into which programs break base64. Source: base64(1), RFC 7468.
const BASE64_LINES: [usize; 2] = [76, 64];

/// The patterns to hide.
pub(crate) struct Secrets {
    patterns: Vec<Vec<u8>>,
    finder: AhoCorasick,
    /// The patterns by their first byte: a key of many lines has a thousand.
    by_first: Vec<Vec<usize>>,
}

impl Secrets {
    /// Those that `PVN_SECRET_KEYS` names, and the keys whose values are too short to be masked. `None` without any.
    pub(crate) fn of_environment(variables: &[(OsString, OsString)]) -> (Option<Self>, Vec<String>) {
        let Some((_, keys)) = variables.iter().find(|(key, _)| key == "PVN_SECRET_KEYS") else { return (None, Vec::new()) };
        let mut short = Vec::new();
        let mut values = Vec::new();
        // People who write it by hand put a blank after the comma, and a secret must not show for that.
        for key in keys.as_bytes().split(|byte| *byte == b',').map(<[u8]>::trim_ascii).filter(|key| !key.is_empty()) {
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
        let mut by_first = vec![Vec::new(); 256];
        patterns.iter().enumerate().for_each(|(which, pattern)| by_first[usize::from(pattern[0])].push(which));
        // The only failure is more pattern text than fits into 32 bits, which no environment can hold.
        Some(Self { finder: finder.expect("an environment is smaller than 4 GiB"), patterns, by_first })
    }

    /// The text with every secret hidden.
    pub(crate) fn hide(&self, text: &str) -> String {
        String::from_utf8_lossy(&self.finder.replace_all_bytes(text.as_bytes(), &vec![MASK; self.patterns.len()])).into_owned()
    }

    /// Where the first thing begins, in `bytes` from `from` on, that may be the start of a secret cut off by the end.
    fn possible_start(&self, bytes: &[u8], from: usize) -> usize {
        let longest = self.patterns.iter().map(Vec::len).max().unwrap_or(0);
        let first = bytes.len().saturating_sub(longest.saturating_sub(1)).max(from);
        let may_start = |at: usize| {
            let rest = &bytes[at..];
            let candidates = self.by_first[usize::from(rest[0])].iter().map(|which| &self.patterns[*which]);
            candidates.into_iter().any(|pattern| pattern.len() > rest.len() && pattern.starts_with(rest))
        };
        (first..bytes.len()).find(|at| may_start(*at)).unwrap_or(bytes.len())
    }
}

/// The text with every secret hidden, if there are any.
pub(crate) fn hide<'a>(secrets: Option<&Secrets>, text: &'a str) -> Cow<'a, str> {
    secrets.map_or(Cow::Borrowed(text), |secrets| Cow::Owned(secrets.hide(text)))
}

/// A value as it stands, without a last newline, each of its long lines, and each of these in base64 (alone or within a longer
/// text), percent-encoded and as it stands in a JSON string.
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
        let base64 = STANDARD.encode(plain).into_bytes();
        // A long one in lines, as `base64` and `openssl` print it.
        BASE64_LINES.iter().flat_map(|width| base64.chunks(*width)).for_each(|line| add(line.to_owned()));
        add(base64);
        add(STANDARD_NO_PAD.encode(plain).into_bytes());
        add(URL_SAFE.encode(plain).into_bytes());
        add(URL_SAFE_NO_PAD.encode(plain).into_bytes());
        for before in 0..3 {
            add(within_base64(&STANDARD_NO_PAD, plain, before));
            add(within_base64(&URL_SAFE_NO_PAD, plain, before));
        }
        for lower in [false, true] {
            let percent = percent_encoded(plain, lower);
            add(form_encoded(&percent));
            add(percent);
        }
        if let Ok(text) = std::str::from_utf8(plain) {
            let json = serde_json::to_string(text).expect("a string is JSON");
            let json = &json[1..json.len() - 1];
            add(json.as_bytes().to_owned());
            // As PHP writes it, as Go does, and with nothing but ASCII, as Python does.
            add(json.replace('/', "\\/").into_bytes());
            let go = json.replace('<', "\\u003c").replace('>', "\\u003e").replace('&', "\\u0026");
            add(go.into_bytes());
            add(ascii(json).into_bytes());
        }
    }
    forms
}

/// What of the value's base64 does not depend on what stands around it, when `before` bytes more than a multiple of three
/// stand before it: `Basic` authorization has `user:` there.
fn within_base64(engine: &GeneralPurpose, value: &[u8], before: usize) -> Vec<u8> {
    let padded = [&[0; 2][..before], value].concat();
    let text = engine.encode(&padded);
    // A character holds six bits: those that hold any bit of a neighbour are left out.
    let (first, end) = ((before * 8).div_ceil(6), padded.len() * 8 / 6);
    text.as_bytes()[first..end].to_owned()
}

/// As RFC 3986 has it: everything but the unreserved characters.
fn percent_encoded(bytes: &[u8], lower: bool) -> Vec<u8> {
    let mut encoded = Vec::with_capacity(bytes.len() * 3);
    for byte in bytes {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(byte) {
            encoded.push(*byte);
        } else {
            encoded.extend(if lower { format!("%{byte:02x}") } else { format!("%{byte:02X}") }.into_bytes());
        }
    }
    encoded
}

/// As forms of web pages have it: a blank is a plus.
fn form_encoded(percent: &[u8]) -> Vec<u8> {
    let mut encoded = Vec::with_capacity(percent.len());
    let mut left = percent;
    while let Some((first, rest)) = left.split_first() {
        match left.strip_prefix(b"%20") {
            Some(rest) => {
                encoded.push(b'+');
                left = rest;
            }
            None => {
                encoded.push(*first);
                left = rest;
            }
        }
    }
    encoded
}

/// With `\uXXXX` for everything beyond ASCII.
fn ascii(json: &str) -> String {
    let mut text = String::with_capacity(json.len());
    for character in json.chars() {
        if character.is_ascii() {
            text.push(character);
        } else {
            let mut units = [0; 2];
            character.encode_utf16(&mut units).iter().for_each(|unit| text.push_str(&format!("\\u{unit:04x}")));
        }
    }
    text
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
    fn base64_hides_a_secret_wherever_it_stands_in_a_longer_text() {
        let secret = b"pass/word+1?>\xc3\xbf";
        let secrets = Secrets::of(&[secret]).unwrap();
        for before in 0..7 {
            for after in 0..7 {
                let text = [&b"user:abc"[..before], secret, &b"@host/x"[..after]].concat();
                for engine in [STANDARD, STANDARD_NO_PAD, URL_SAFE, URL_SAFE_NO_PAD] {
                    let shown = secrets.hide(&engine.encode(&text));
                    assert!(shown.contains("***"), "{before} before, {after} after: {shown}");
                    // At each side a character or two depend on the neighbours and tell a few bits at most.
                    let around = engine.encode(&text).len() - shown.len() + 3;
                    assert!(around + 5 >= secret.len() * 8 / 6, "{before} before, {after} after: {shown}");
                }
            }
        }
    }

    #[test]
    fn base64_in_lines_is_hidden() {
        let secret = "0123456789".repeat(20);
        let text = STANDARD.encode(&secret);
        let lines = |width: usize| text.as_bytes().chunks(width).map(|line| String::from_utf8_lossy(line).into_owned()).collect::<Vec<_>>();
        check(&[&secret], &lines(76).join("\n"), "***\n***\n***\n***");
        check(&[&secret], &lines(64).join("\r\n"), "***\r\n***\r\n***\r\n***\r\n***");
    }

    #[test]
    fn escapes_of_every_common_writer_of_json_and_addresses_are_known() {
        check(&["a/b <ü&😀>"], "a\\/b <ü&😀>|a/b \\u003cü\\u0026😀\\u003e|a/b <\\u00fc&\\ud83d\\ude00>", "***|***|***");
        check(&["a/b <&ü"], "a%2Fb%20%3C%26%C3%BC|a%2fb%20%3c%26%c3%bc|a%2Fb+%3C%26%C3%BC|a%2fb+%3c%26%c3%bc", "***|***|***|***");
        check(&["tab\tquote\"back\\"], "tab\\tquote\\\"back\\\\", "***");
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
    fn blanks_around_the_names_of_secrets_do_not_count() {
        let variables = [("PVN_SECRET_KEYS", " A, B "), ("A", "secret one"), ("B", "secret two")];
        let (secrets, _) = Secrets::of_environment(&variables.map(|(key, value)| (key.into(), value.into())));
        assert_eq!(secrets.unwrap().hide("secret one, secret two"), "***, ***");
    }

    #[test]
    fn a_short_secret_is_refused_and_named() {
        let variables = [("PVN_SECRET_KEYS", "A,B,C"), ("A", "short"), ("B", "long enough")].map(|(key, value)| (key.into(), value.into()));
        let (secrets, short) = Secrets::of_environment(&variables);
        assert_eq!(secrets.unwrap().hide("is long enough, short"), "is ***, short");
        assert_eq!(short, ["A"]);
    }
}
