//! What is left out of a text before people see it: whatever steers the terminal, or makes it read
//! otherwise than it is. Used wherever the words of a command or a config are shown.

use std::path::Path;

/// Whether a character is none that people see, and changes how they see others: a control
/// character (ESC, carriage return, also a line end), or one that turns the direction of a text
/// round, by which `keep` can be shown where `destroy` stands. Source: Unicode 16, `Bidi_Control`.
pub fn steers(character: char) -> bool {
    character.is_control()
        || matches!(character, '\u{61c}' | '\u{200e}' | '\u{200f}')
        || matches!(character, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// The beginning of a text, of at most so many bytes, for a sentence that cannot hold all of it;
/// then `…` says so.
pub fn beginning(text: &str, most: usize) -> String {
    let end = text.floor_char_boundary(most);
    if end < text.len() { format!("{}…", &text[..end]) } else { text.to_owned() }
}

/// What a line begins and ends with that stands in the place of what is left out of a long text.
const CUT: [&str; 2] = ["… cut: ", " …"];

/// The line that stands in the place of what is left out of a long text, with what it tells.
pub fn cut_line(told: &str) -> String {
    format!("{}{told}{}", CUT[0], CUT[1])
}

/// What such a line tells, where a text has one.
pub fn told_of_cut(text: &str) -> Option<&str> {
    text.lines().find_map(|line| line.strip_prefix(CUT[0])?.strip_suffix(CUT[1]))
}

/// A word as a shell reads it back.
pub fn shell_word(text: &str) -> String {
    let plain =
        |character: char| character.is_ascii_alphanumeric() || "/._-+=:@".contains(character);
    if !text.is_empty() && text.chars().all(plain) {
        text.to_owned()
    } else {
        format!("'{}'", text.replace('\'', r"'\''"))
    }
}

/// A path as a shell reads it back.
pub fn shell_path(path: &Path) -> String {
    shell_word(&path.display().to_string())
}

/// Longest sequence that is passed over, bytes: what begins like one and does not end is none, so
/// that what is held back for it has a limit. Source: a colour has 20, a title or a link some more.
pub const SEQUENCE_LIMIT_BYTES: usize = 256;

const ESC: u8 = 0x1b;

/// How many bytes at the beginning of `text` nobody sees: a sequence of ESC, or a character that
/// [`steers`], but no blank (tab, line end); 0 where something else begins, `None` where the end of
/// the text cuts it off. `last`: nothing follows the text.
pub fn steering(text: &[u8], last: bool) -> Option<usize> {
    passed_over(text, last, Strings::Shown)
}

/// The same of what a terminal draws, which leaves out its strings, too: titles, addresses of
/// links.
pub fn undrawn(text: &[u8], last: bool) -> Option<usize> {
    passed_over(text, last, Strings::LeftOut)
}

/// Whether a string of a terminal may begin somewhere in the text.
pub fn has_string(text: &[u8]) -> bool {
    text.windows(2).any(|two| two[0] == ESC && opens_string(two[1]))
}

/// What becomes of the strings of a terminal.
#[derive(Clone, Copy, PartialEq)]
enum Strings {
    Shown,
    LeftOut,
}

fn opens_string(byte: u8) -> bool {
    matches!(byte, b']' | b'P' | b'X' | b'^' | b'_')
}

fn passed_over(text: &[u8], last: bool, strings: Strings) -> Option<usize> {
    let length = match text {
        [ESC, ..] => return sequence(text, last, strings),
        [b'\t' | b'\n' | b'\r', ..] => 0,
        [0..=0x1f | 0x7f, ..] => 1,
        [0xc2, 0x80..=0x9f, ..] | [0xd8, 0x9c, ..] => 2,
        [0xe2, 0x80, 0x8e | 0x8f | 0xaa..=0xae, ..] | [0xe2, 0x81, 0xa6..=0xa9, ..] => 3,
        [0xc2 | 0xd8 | 0xe2] | [0xe2, 0x80 | 0x81] if !last => return None,
        _ => 0,
    };
    Some(length)
}

/// The bytes of the sequence that begins with ESC. Of a string (a title, the address of a link)
/// these are what opens and what closes it: what stands between them is shown as text, because
/// whoever approves is to see all that is there, and masked as text. Source: ECMA-48, 5.3 to 5.6
/// and 8.3.
fn sequence(text: &[u8], last: bool, strings: Strings) -> Option<usize> {
    let within = &text[..text.len().min(SEQUENCE_LIMIT_BYTES)];
    let run = |at: usize, of: std::ops::RangeInclusive<u8>| {
        at + within[at..].iter().take_while(|byte| of.contains(byte)).count()
    };
    let end = match within.get(1) {
        None => None,
        Some(b'[') => {
            let at = run(run(2, 0x30..=0x3f), 0x20..=0x2f);
            within.get(at).map(|byte| if (0x40..=0x7e).contains(byte) { at + 1 } else { 1 })
        }
        // Until BEL or ESC and a backslash.
        Some(byte) if strings == Strings::LeftOut && opens_string(*byte) => {
            // No other control character stands in one, so that a line is not held back for what
            // was never ended.
            let at = (2..within.len()).find(|at| within[*at] < 0x20);
            match at.map(|at| &within[at..]) {
                None | Some([ESC]) => None,
                Some([7, ..]) => at.map(|at| at + 1),
                Some([ESC, b'\\', ..]) => at.map(|at| at + 2),
                Some(_) => Some(1),
            }
        }
        Some(_) => {
            let at = run(1, 0x20..=0x2f);
            within.get(at).map(|byte| if (0x30..=0x7e).contains(byte) { at + 1 } else { 1 })
        }
    };
    // What has no end is no sequence, and ESC itself is not seen all the same.
    end.or_else(|| (last || within.len() == SEQUENCE_LIMIT_BYTES).then_some(1))
}

/// The text as people see it: without sequences of ESC and without what [`steers`], but for tabs
/// and line ends.
pub fn seen(text: &str) -> String {
    let mut seen = String::with_capacity(text.len());
    let mut at = 0;
    while let Some(next) = text[at..].chars().next() {
        match steering(&text.as_bytes()[at..], true) {
            Some(length @ 1..) => at += length,
            _ => {
                seen.push(next);
                at += next.len_utf8();
            }
        }
    }
    seen
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_seen_of_a_text_is_what_a_terminal_shows() {
        let check = |text: &str, expected: &str| assert_eq!(seen(text), expected, "{text:?}");
        check("\u{1b}[1;31mred\u{1b}[0m\u{1b}[K\u{1b}[?25l", "red");
        check("a\u{1b}(Bb\u{1b}7c\u{1b}", "abc");
        check(
            "\u{1b}]8;;http://x\u{1b}\\link\u{1b}]8;;\u{7} \u{1b}]0;title",
            "8;;http://xlink8;; 0;title",
        );
        check(
            "keep\n\u{1b}]\nDESTROY db\n\u{7}\u{1b}P1$r\u{1b}\\ done",
            "keep\n\nDESTROY db\n1$r done",
        );
        check("\0a\u{8}\u{9b}b\u{202e}\u{61c}\u{2066}\tä\r\n", "ab\tä\r\n");
        check("\u{1b}[1ä \u{1b}ä", "[1ä ä");
    }

    #[test]
    fn what_may_go_on_is_not_decided_before_it_does() {
        for (text, last, expected) in [
            ("\u{1b}[1", false, None),
            ("\u{1b}[1", true, Some(1)),
            ("\u{1b}", false, None),
            ("\u{1b}[1m", false, Some(4)),
        ] {
            assert_eq!(steering(text.as_bytes(), last), expected, "{text:?}");
        }
        assert_eq!(
            (steering(b"\xe2", false), steering(b"\xe2", true), steering("…".as_bytes(), false)),
            (None, Some(0), Some(0))
        );
        let endless = [b"\x1b[".as_slice(), &[b'0'; SEQUENCE_LIMIT_BYTES]].concat();
        assert_eq!(steering(&endless, false), Some(1));
        for number in 0..=0x2100 {
            let Some(character) = char::from_u32(number)
                .filter(|character| !matches!(character, '\t' | '\n' | '\r' | '\u{1b}'))
            else {
                continue;
            };
            let mut bytes = [0; 4];
            let text = character.encode_utf8(&mut bytes);
            let expected = if steers(character) { text.len() } else { 0 };
            assert_eq!(steering(text.as_bytes(), false), Some(expected), "{character:?}");
        }
    }

    #[test]
    fn what_steers_is_no_letter_of_any_script() {
        assert!(
            ['\u{1b}', '\n', '\u{9b}', '\u{202e}', '\u{2066}', '\u{200f}'].into_iter().all(steers)
        );
        assert!(!['a', ' ', 'ä', 'א', 'ع', '\u{200d}', '\u{2065}', '👩'].into_iter().any(steers));
    }

    #[test]
    fn words_are_as_a_shell_reads_them() {
        for (text, word) in [
            ("/a/b-c.d", "/a/b-c.d"),
            ("", "''"),
            ("it's a b", r"'it'\''s a b'"),
            ("[::1]", "'[::1]'"),
        ] {
            assert_eq!(shell_word(text), word);
        }
    }
}
