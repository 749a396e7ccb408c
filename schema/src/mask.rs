//! Hides the values of secrets in whatever is shown or kept, also when a read cuts one in two. Called by the wrapper for
//! all that leaves it, and by the scheduler for what no wrapper of ours has masked.
//!
//! Text is looked through twice: as it stands, for the value and its escaped forms; and without its line breaks, for the forms
//! that programs break into lines (base64), wherever they break them. Both passes are linear, and what is held back until more
//! comes is bounded by the longest form.

use std::borrow::Cow;
use std::ffi::OsString;
use std::ops::Range;
use std::os::unix::ffi::OsStrExt;

use aho_corasick::{AhoCorasick, MatchKind};

use self::unbroken::Unbroken;

mod forms;
mod unbroken;

/// What stands in place of a secret.
const SHOWN_MASK: &str = "***";
const MASK: &[u8] = SHOWN_MASK.as_bytes();

/// Shortest value that is masked: a shorter one would black out ordinary words.
const SHORTEST_BYTES: usize = 6;

/// The forms to hide.
pub struct Secrets {
    as_they_stand: Patterns,
    /// Those that may have line breaks anywhere.
    breakable: Patterns,
}

/// Texts to find.
struct Patterns {
    patterns: Vec<Vec<u8>>,
    finder: AhoCorasick,
    /// The patterns by their first byte: a key of many lines has a thousand.
    by_first: Vec<Vec<usize>>,
    longest: usize,
}

/// What was found in a text.
struct Found {
    /// Secrets, in their order, none within another.
    ranges: Vec<Range<usize>>,
    /// Where the first thing begins that may be the start of a secret cut off by the end.
    open_from: usize,
}

impl Secrets {
    /// Those that `PVN_SECRET_KEYS` names, and the keys whose values are too short to be masked. `None` without any.
    pub fn of_environment(variables: &[(OsString, OsString)]) -> (Option<Self>, Vec<String>) {
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
    pub fn of(values: &[&[u8]]) -> Option<Self> {
        let plain: Vec<&[u8]> = values.iter().flat_map(|value| forms::parts(value)).filter(|part| part.len() >= SHORTEST_BYTES).collect();
        if plain.is_empty() {
            return None;
        }
        let as_they_stand = Patterns::of(plain.iter().flat_map(|part| forms::escaped(part)).collect());
        Some(Self { as_they_stand, breakable: Patterns::of(plain.iter().flat_map(|part| forms::encoded(part)).collect()) })
    }

    /// Bytes of the longest form of any of them, without line breaks.
    pub fn longest(&self) -> usize {
        self.as_they_stand.longest.max(self.breakable.longest)
    }

    /// The text with every secret hidden.
    pub fn hide(&self, text: &str) -> String {
        String::from_utf8_lossy(&Masker::default().push(self, text.as_bytes(), true)).into_owned()
    }

    /// The secrets in `bytes`, and from where on more has to come before anything can be said; `last`: nothing more comes.
    fn find(&self, bytes: &[u8], last: bool) -> Found {
        let Found { mut ranges, open_from } = self.as_they_stand.find(bytes, bytes, last);
        let unbroken = Unbroken::of(bytes);
        let beside = self.breakable.find(unbroken.text(), unbroken.certain(), last);
        ranges.extend(beside.ranges.iter().flat_map(|range| unbroken.in_original(range)));
        ranges.sort_by_key(|range| (range.start, range.end));
        let mut apart: Vec<Range<usize>> = Vec::with_capacity(ranges.len());
        for range in ranges {
            match apart.last_mut() {
                Some(before) if range.start < before.end => before.end = before.end.max(range.end),
                _ => apart.push(range),
            }
        }
        if last {
            return Found { ranges: apart, open_from: bytes.len() };
        }
        let mut open_from = open_from.min(unbroken.position(beside.open_from));
        // Nothing is cut in two: no secret, and no escape.
        loop {
            let cut = apart.iter().rev().find(|range| range.start < open_from && open_from < range.end).map(|range| range.start);
            let escape = (open_from > 0 && bytes[open_from - 1] == b'\\').then(|| open_from - 1);
            match cut.or(escape) {
                Some(earlier) => open_from = earlier,
                None => break,
            }
        }
        apart.retain(|range| range.start < open_from);
        Found { ranges: apart, open_from }
    }
}

impl Patterns {
    fn of(mut patterns: Vec<Vec<u8>>) -> Self {
        patterns.retain(|pattern| pattern.len() >= SHORTEST_BYTES);
        patterns.sort();
        patterns.dedup();
        let finder = AhoCorasick::builder().match_kind(MatchKind::LeftmostLongest).build(&patterns);
        let mut by_first = vec![Vec::new(); 256];
        patterns.iter().enumerate().for_each(|(which, pattern)| by_first[usize::from(pattern[0])].push(which));
        let longest = patterns.iter().map(Vec::len).max().unwrap_or(0);
        // The only failure is more pattern text than fits into 32 bits, which no environment can hold.
        Self { finder: finder.expect("an environment is smaller than 4 GiB"), patterns, by_first, longest }
    }

    /// All of them in `bytes`, of which `certain` is the part whose end may be the start of another.
    fn find(&self, bytes: &[u8], certain: &[u8], last: bool) -> Found {
        let open_from = |from: usize| if last { bytes.len() } else { self.possible_start(certain, from.min(certain.len())) };
        let mut found = Found { ranges: Vec::new(), open_from: open_from(0) };
        let mut done = 0;
        // A secret that begins before anything unfinished is a secret whatever comes.
        while let Some(next) = self.finder.find(&bytes[done..]).filter(|next| done + next.start() < found.open_from) {
            found.ranges.push(done + next.start()..done + next.end());
            done += next.end();
            if done > found.open_from {
                found.open_from = open_from(done).max(done);
            }
        }
        if found.open_from == certain.len() {
            found.open_from = bytes.len();
        }
        found
    }

    /// Where the first thing begins, in `bytes` from `from` on, that may be the start of a secret cut off by the end.
    fn possible_start(&self, bytes: &[u8], from: usize) -> usize {
        let first = bytes.len().saturating_sub(self.longest.saturating_sub(1)).max(from);
        let may_start = |at: usize| {
            let rest = &bytes[at..];
            let candidates = self.by_first[usize::from(rest[0])].iter().map(|which| &self.patterns[*which]);
            candidates.into_iter().any(|pattern| pattern.len() > rest.len() && pattern.starts_with(rest))
        };
        (first..bytes.len()).find(|at| may_start(*at)).unwrap_or(bytes.len())
    }
}

/// The text with every secret hidden, if there are any.
pub fn hide<'a>(secrets: Option<&Secrets>, text: &'a str) -> Cow<'a, str> {
    secrets.map_or(Cow::Borrowed(text), |secrets| Cow::Owned(secrets.hide(text)))
}

/// Whether `shown` may be what masking left of `text`: each mask stands for something, and all else is the same.
pub fn may_hide(shown: &str, text: &str) -> bool {
    let Some((first, others)) = shown.split_once(SHOWN_MASK) else { return shown == text };
    let Some(mut rest) = text.strip_prefix(first) else { return false };
    let (between, last) = others.rsplit_once(SHOWN_MASK).map_or((None, others), |(between, last)| (Some(between), last));
    for part in between.iter().flat_map(|between| between.split(SHOWN_MASK)) {
        let Some(at) = rest.find(part) else { return false };
        rest = &rest[at + part.len()..];
    }
    rest.ends_with(last)
}

/// Hides secrets in one stream, piece by piece. Holds back only what may be the beginning of a secret.
#[derive(Default)]
pub struct Masker {
    held: Vec<u8>,
}

impl Masker {
    /// The next piece as it may be shown; `last` when nothing follows.
    pub fn push(&mut self, secrets: &Secrets, piece: &[u8], last: bool) -> Vec<u8> {
        let mut bytes = std::mem::take(&mut self.held);
        bytes.extend_from_slice(piece);
        let found = secrets.find(&bytes, last);
        let mut shown = Vec::with_capacity(bytes.len());
        let mut done = 0;
        for range in found.ranges {
            shown.extend_from_slice(&bytes[done..range.start]);
            shown.extend_from_slice(MASK);
            done = range.end;
        }
        shown.extend_from_slice(&bytes[done..found.open_from]);
        self.held = bytes.split_off(found.open_from);
        shown
    }
}

#[cfg(test)]
mod tests {
    use base64::Engine;
    use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD, URL_SAFE, URL_SAFE_NO_PAD};

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
    fn what_masking_left_of_a_text_is_known() {
        for (shown, text, expected) in [
            ("", "", true),
            ("a", "a", true),
            ("a", "ab", false),
            ("***", "hunter22", true),
            ("a *** b *** c", "a hunter22 b hunter22 b c", true),
            ("a *** b *** c", "a hunter22 c", false),
            ("a ***", "b hunter22", false),
            ("*** a", "hunter22 a b", false),
            ("aa***aa", "aaa", false),
        ] {
            assert_eq!(may_hide(shown, text), expected, "{shown} of {text}");
        }
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

    #[test]
    fn quoted_for_shells_and_addresses_of_every_common_kind() {
        let secret = "pa'ss w$rd/+&=:@!(x)*~;,?";
        for form in [
            // Python's shlex.quote; bash's ${x@Q}; printf %q; within "…".
            r#"pa'"'"'ss w$rd/+&=:@!(x)*~;,?"#,
            r"pa'\''ss w$rd/+&=:@!(x)*~;,?",
            r"pa\'ss\ w\$rd/+\&=:@\!\(x\)\*~\;\,\?",
            r"pa'ss w\$rd/+&=:@!(x)*~;,?",
            // Python's urllib.parse.quote and quote_plus; encodeURIComponent and encodeURI; Go's PathEscape and QueryEscape;
            // Java's URLEncoder.
            "pa%27ss%20w%24rd/%2B%26%3D%3A%40%21%28x%29%2A~%3B%2C%3F",
            "pa%27ss+w%24rd%2F%2B%26%3D%3A%40%21%28x%29%2A~%3B%2C%3F",
            "pa'ss%20w%24rd%2F%2B%26%3D%3A%40!(x)*~%3B%2C%3F",
            "pa'ss%20w$rd/+&=:@!(x)*~;,?",
            "pa%27ss%20w$rd%2F+&=:@%21%28x%29%2A~%3B%2C%3F",
            "pa%27ss+w%24rd%2F%2B%26%3D%3A%40%21%28x%29%2A~%3B%2C%3F",
            "pa%27ss+w%24rd%2F%2B%26%3D%3A%40%21%28x%29*%7E%3B%2C%3F",
            // Markup.
            "pa&#39;ss w$rd/+&amp;=:@!(x)*~;,?",
        ] {
            check(&[secret], &format!("<{form}>"), "<***>");
        }
    }

    #[test]
    fn base64_in_lines_is_hidden_wherever_it_stands_and_however_it_is_broken() {
        let secret = "0123456789-abcdefghij_ABCDEFGHIJ.klmnopqrst";
        let secrets = Secrets::of(&[secret.as_bytes()]).unwrap();
        for before in 0..80 {
            let text = STANDARD.encode(format!("{}{secret}@host/some/more/words/behind/it", "u".repeat(before)));
            for (width, line_end) in [(76, "\n"), (64, "\r\n"), (60, "\n    "), (76, "\\n"), (20, "\n"), (1, "\n")] {
                let lines: Vec<_> = text.as_bytes().chunks(width).map(|line| std::str::from_utf8(line).unwrap()).collect();
                let broken = lines.join(line_end);
                let shown = secrets.hide(&broken);
                // At each side a character or two depend on the neighbours.
                let hidden = text.len() - shown.replace(line_end, "").replace("***", "").len();
                assert!(hidden + 3 >= secret.len() * 8 / 6, "{before} before, lines of {width}: {shown}");
                assert_eq!(shown.matches(line_end).count(), broken.matches(line_end).count(), "lines stay lines");
            }
        }
    }

    #[test]
    fn a_broken_form_is_hidden_wherever_a_read_cuts_it() {
        let secret = "hunter22-and-more-of-it";
        let text = STANDARD.encode(secret);
        for line_end in ["\n", "\r\n  ", "\\n", "\\r\\n"] {
            let broken = format!("{}{line_end}{}", &text[..9], &text[9..]);
            check(&[secret], &format!("a {broken} z"), &format!("a ***{line_end}*** z"));
        }
    }

    #[test]
    fn what_is_held_back_is_bounded_whatever_comes() {
        let secret = "hunter22-and-more-of-it";
        let secrets = Secrets::of(&[secret.as_bytes()]).unwrap();
        let mut masker = Masker::default();
        masker.push(&secrets, &STANDARD.encode(secret).as_bytes()[..9], false);
        for _ in 0..100 {
            masker.push(&secrets, &[b'\n'; 1000], false);
            assert!(masker.held.len() < 300, "{}", masker.held.len());
        }
    }
}
