//! What masking shows of a document (JSON), so that it stays one: secrets go from within its
//! strings, whose quotes and escapes stay whole. What stands around a string may look like the end
//! of a secret: the `\"` and the quote that end `"pass\""` are a doubled quote to whoever decodes
//! them. Called by `mask`.
//!
//! What always holds: nothing of what is to be hidden is shown but quotes, blanks and punctuation
//! around the one string that all the rest of it is in.

use super::MASK;

/// Bytes of `\uXXXX`, and of two of them for one character.
const UNIT_BYTES: usize = 6;
const PAIR_BYTES: usize = 2 * UNIT_BYTES;

/// A document as far as it was read.
#[derive(Clone, Default)]
pub(super) struct ScannedDocument {
    in_string: bool,
    /// The present escape, as far as it was read.
    escape: Vec<u8>,
    /// Whether a mask stands for it.
    is_masked: bool,
}

/// What a byte belongs to.
#[derive(PartialEq, Eq)]
enum ByteRole {
    /// Quotes and what stands between values.
    Structure,
    /// A number or a word, and whatever is no JSON.
    Bare,
    /// A character of a string.
    Text,
}

impl ScannedDocument {
    /// Adds what is no secret to `shown`.
    pub(super) fn show(&mut self, bytes: &[u8], shown: &mut Vec<u8>) {
        for byte in bytes {
            self.settle(*byte, shown);
            let in_escape = self.step(*byte) == ByteRole::Text && !self.escape.is_empty();
            if !in_escape {
                shown.push(*byte);
            } else if is_whole(&self.escape) {
                self.end_escape(shown);
            }
        }
    }

    /// Adds to `shown` what stands in place of a secret.
    pub(super) fn mask(&mut self, bytes: &[u8], shown: &mut Vec<u8>) {
        let keeps_structure = self.clone().keeps_to_one_string(bytes);
        let mut is_told = !keeps_structure;
        if is_told {
            shown.extend_from_slice(MASK);
            self.is_masked = !self.escape.is_empty();
        }
        for byte in bytes {
            self.settle(*byte, shown);
            let part = self.step(*byte);
            if part == ByteRole::Structure && keeps_structure {
                shown.push(*byte);
            } else if part == ByteRole::Text && !self.escape.is_empty() {
                self.is_masked = true;
                if is_whole(&self.escape) {
                    self.end_escape(shown);
                }
            }
            if part == ByteRole::Text && !is_told {
                shown.extend_from_slice(MASK);
                is_told = true;
            }
        }
    }

    /// Nothing follows.
    pub(super) fn end(&mut self, shown: &mut Vec<u8>) {
        self.end_escape(shown);
    }

    /// Whether all of it but structure is within one string.
    fn keeps_to_one_string(mut self, bytes: &[u8]) -> bool {
        let (mut strings, mut is_counted) = (0, false);
        for byte in bytes {
            self.settle(*byte, &mut Vec::new());
            match self.step(*byte) {
                ByteRole::Structure => is_counted &= *byte != b'"',
                ByteRole::Bare => return false,
                ByteRole::Text => {
                    strings += usize::from(!is_counted);
                    is_counted = true;
                    if is_whole(&self.escape) {
                        self.escape.clear();
                    }
                }
            }
        }
        strings == 1
    }

    /// Ends the first half of a pair when `next` does not begin the other.
    fn settle(&mut self, next: u8, shown: &mut Vec<u8>) {
        if self.escape.len() == UNIT_BYTES && next != b'\\' {
            self.end_escape(shown);
        }
    }

    fn step(&mut self, byte: u8) -> ByteRole {
        match byte {
            b'"' if self.escape.is_empty() => {
                self.in_string = !self.in_string;
                ByteRole::Structure
            }
            _ if self.in_string => {
                if byte == b'\\' || !self.escape.is_empty() {
                    self.escape.push(byte);
                }
                ByteRole::Text
            }
            b'{' | b'}' | b'[' | b']' | b':' | b',' => ByteRole::Structure,
            _ if byte.is_ascii_whitespace() => ByteRole::Structure,
            _ => ByteRole::Bare,
        }
    }

    fn end_escape(&mut self, shown: &mut Vec<u8>) {
        if !self.is_masked {
            shown.extend_from_slice(&self.escape);
        }
        self.escape.clear();
        self.is_masked = false;
    }
}

/// Whether nothing more belongs to an escape, as far as that can be said of it alone.
fn is_whole(escape: &[u8]) -> bool {
    match escape {
        [_, b'u'] => false,
        [_, _] => true,
        [_, b'u', high, second, ..] if escape.len() == UNIT_BYTES => {
            !(high.eq_ignore_ascii_case(&b'd')
                && matches!(second.to_ascii_lowercase(), b'8'..=b'9' | b'a'..=b'b'))
        }
        // After the first half of a pair another escape.
        _ if escape.len() == UNIT_BYTES + 2 => escape[UNIT_BYTES + 1] != b'u',
        _ => escape.len() == PAIR_BYTES,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use crate::mask::{Masker, Secrets};

    /// Pushes the document cut in two at every place: what is shown must be the same each time.
    fn shown(secrets: &[&str], document: &str) -> String {
        let values: Vec<&[u8]> = secrets.iter().map(|secret| secret.as_bytes()).collect();
        let secrets = Secrets::of(&values).unwrap();
        let cut = |at| {
            let mut masker = Masker::of_document();
            let (first, second) = document.as_bytes().split_at(at);
            String::from_utf8(
                [masker.push(&secrets, first, false), masker.push(&secrets, second, true)].concat(),
            )
            .unwrap()
        };
        let whole = cut(0);
        for at in 1..document.len() {
            assert_eq!(cut(at), whole, "cut at {at}");
        }
        whole
    }

    #[test]
    fn a_document_stays_one_wherever_a_read_cuts_it() {
        assert_eq!(shown(&["hunter22"], r#"{"name": "\u0068unter22"}"#), r#"{"name": "***"}"#);
    }

    #[test]
    fn a_secret_that_ends_as_strings_do_leaves_the_quotes_of_strings() {
        assert_eq!(shown(&["hunter22\""], r#"["hunter22\"","x"]"#), r#"["***","x"]"#);
        assert_eq!(
            shown(&["\"hunter22"], r#"{"\"hunter22":"x \"hunter22"}"#),
            r#"{"***":"x ***"}"#
        );
        assert_eq!(
            shown(&["hunter22\\"], r#"["hunter22\\","hunter22\\\" x"]"#),
            r#"["***","*** x"]"#
        );
        assert_eq!(shown(&["n123456"], r#"["a\n123456"]"#), r#"["a***"]"#);
        assert_eq!(
            shown(&["de00123456"], r#"["\ud83d\ude00123456", "\ud83d\ude00"]"#),
            r#"["***", "\ud83d\ude00"]"#
        );
    }

    #[test]
    fn a_secret_that_is_no_part_of_a_string_is_hidden_whole() {
        assert_eq!(shown(&[r#"{"key":"a","more":"b"}"#], r#"[{"key":"a","more":"b"}]"#), "[***]");
        assert_eq!(shown(&["12345678"], "[912345678, \"x\\n\"]"), "[9***, \"x\\n\"]");
        assert_eq!(
            shown(&["correct,horse"], "no JSON: correct,horse \"a\\n"),
            "no JSON: *** \"a\\n"
        );
    }

    #[test]
    fn strings_made_of_what_means_something_in_json_stay_strings() {
        let words = [
            "\"",
            "\\",
            ",",
            ":",
            "n",
            "u0022",
            "é",
            "\u{1f600}",
            "\n",
            "'",
            "%22",
            "&quot;",
            " ",
            "{",
            "ab",
            "x7",
        ];
        let mut seed = 11_u64;
        let mut next = |limit: usize| {
            seed = seed
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (seed >> 33) as usize % limit
        };
        for _ in 0..2_000 {
            let mut text = |most: usize| -> String {
                (0..=next(most)).map(|_| words[next(words.len())]).collect()
            };
            let secret = format!("{}k3y{}", text(4), text(4));
            let values = [
                format!("{}{secret}", text(3)),
                format!("{secret}{}", text(3)),
                secret.clone(),
                text(6),
            ];
            let [a, b, c, d] = &values;
            let document = json!({"a": a, "b": [b, c, {"c": c}], d: [d, 7, c]});
            let document = match next(3) {
                0 => serde_json::to_string_pretty(&document).unwrap(),
                1 => document
                    .to_string()
                    .replace('é', "\\u00e9")
                    .replace('\u{1f600}', "\\ud83d\\ude00"),
                _ => document.to_string(),
            };
            if secret.trim_end().len() < crate::mask::SHORTEST_BYTES {
                continue;
            }
            let shown = shown(&[&secret], &document);
            let read: Value = serde_json::from_str(&shown)
                .unwrap_or_else(|error| panic!("{secret:?} in {document}: {shown}: {error}"));
            assert_eq!(
                read["b"].as_array().map(Vec::len),
                Some(3),
                "{secret:?} in {document}: {shown}"
            );
            assert!(
                !read.to_string().contains(&secret)
                    && !read["a"].as_str().unwrap().contains(&secret),
                "{secret:?}: {shown}"
            );
        }
    }
}
