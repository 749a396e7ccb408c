//! The output of a command as lines of HTML, as a terminal draws it: its colours as classes,
//! everything else that steers a terminal left out, titles and addresses of links too.

use schema::shown::{SEQUENCE_LIMIT_BYTES, undrawn};

use crate::markup::push_escaped;

/// Longest line that is shown as one, bytes: a command that never ends its line is shown as many,
/// so that nothing is held back without limit.
const LINE_LIMIT_BYTES: usize = 16 << 10;

/// How letters look at a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct LetterStyle {
    /// The number of ECMA-48 for one of the sixteen colours: 30 to 37, 90 to 97.
    colour: Option<u8>,
    /// The same behind the letters: 40 to 47, 100 to 107.
    behind: Option<u8>,
    bold: bool,
    dim: bool,
    italic: bool,
    underlined: bool,
    reversed: bool,
}

impl LetterStyle {
    fn classes(self) -> String {
        let mut classes = String::new();
        if let Some(colour) = self.colour {
            classes.push_str(&format!("a{colour} "));
        }
        if let Some(behind) = self.behind {
            classes.push_str(&format!("k{behind} "));
        }
        for (is, class) in [
            (self.bold, "ab "),
            (self.dim, "ad "),
            (self.italic, "ai "),
            (self.underlined, "au "),
            (self.reversed, "ar "),
        ] {
            classes.push_str(if is { class } else { "" });
        }
        classes.truncate(classes.trim_end().len());
        classes
    }

    /// Takes in the parameters of SGR. Source: ECMA-48, 8.3.117. Colours of 256 and of 24 bits are
    /// passed over: they say nothing that a page in two themes could keep.
    fn select(&mut self, parameters: &str) {
        let mut numbers = parameters.split([';', ':']).map(|number| number.parse().unwrap_or(0u8));
        while let Some(number) = numbers.next() {
            match number {
                0 => *self = Self::default(),
                1 => self.bold = true,
                2 => self.dim = true,
                3 => self.italic = true,
                4 => self.underlined = true,
                7 => self.reversed = true,
                22 => (self.bold, self.dim) = (false, false),
                23 => self.italic = false,
                24 => self.underlined = false,
                27 => self.reversed = false,
                30..=37 | 90..=97 => self.colour = Some(number),
                40..=47 | 100..=107 => self.behind = Some(number),
                39 => self.colour = None,
                49 => self.behind = None,
                38 | 48 => match numbers.next() {
                    Some(5) => drop(numbers.next()),
                    Some(2) => drop(numbers.nth(2)),
                    _ => {}
                },
                _ => {}
            }
        }
    }
}

/// Turns one stream into lines, piece by piece.
#[derive(Debug, Clone)]
pub struct AnsiPainter {
    /// What the ids of lines begin with, and a class of theirs.
    prefix: char,
    /// The number of the next line, where it is known.
    number: Option<u64>,
    style: LetterStyle,
    /// The line that has not ended yet.
    held: Vec<u8>,
}

impl AnsiPainter {
    /// For a stream whose lines have ids of this letter and their number, from `first` on; without
    /// it nobody knows how many came before.
    pub fn new(prefix: char, first: Option<u64>) -> Self {
        Self { prefix, number: first, style: LetterStyle::default(), held: Vec::new() }
    }

    /// The number of the next line.
    pub fn number(&self) -> Option<u64> {
        self.number
    }

    /// How many bytes are held until their line ends.
    pub fn held_bytes(&self) -> usize {
        self.held.len()
    }

    /// The lines that these bytes end. With `last` also the one that has not ended.
    pub fn paint(&mut self, bytes: &[u8], last: bool) -> String {
        let mut html = String::with_capacity(bytes.len() * 2);
        for byte in bytes {
            if *byte == b'\n' {
                self.line(&mut html);
                continue;
            }
            if self.held.len() >= LINE_LIMIT_BYTES {
                // What the next line begins with; without its beginning it would be text.
                let next = self.held.split_off(self.held.len() - unfinished(&self.held));
                self.line(&mut html);
                self.held = next;
            }
            self.held.push(*byte);
        }
        if last && !self.held.is_empty() {
            self.line(&mut html);
        }
        html
    }

    fn line(&mut self, html: &mut String) {
        let mut held = std::mem::take(&mut self.held);
        if held.last() == Some(&b'\r') {
            held.pop();
        }
        match &mut self.number {
            Some(number) => {
                let prefix = self.prefix;
                html.push_str(&format!(r#"<span class="l {prefix}" id="{prefix}{number}">"#));
                *number += 1;
            }
            None => html.push_str(&format!(r#"<span class="l {}">"#, self.prefix)),
        }
        // A progress bar draws its line again and again: what a terminal would show at the end.
        let drawn = held.rsplit(|byte| *byte == b'\r').next().unwrap_or_default();
        for over in held[..held.len() - drawn.len()].split(|byte| *byte == b'\r') {
            self.letters(over, &mut String::new());
        }
        self.letters(drawn, html);
        html.push_str("</span>");
        held.clear();
        self.held = held;
    }

    fn letters(&mut self, line: &[u8], html: &mut String) {
        let mut at = 0;
        let mut begin = 0;
        while at < line.len() {
            match undrawn(&line[at..], true) {
                Some(length @ 1..) => {
                    self.run(&line[begin..at], html);
                    let sequence = &line[at..at + length];
                    if let [0x1b, b'[', parameters @ .., b'm'] = sequence {
                        self.style.select(&String::from_utf8_lossy(parameters));
                    }
                    at += length;
                    begin = at;
                }
                _ => at += 1,
            }
        }
        self.run(&line[begin..], html);
    }

    fn run(&self, text: &[u8], html: &mut String) {
        if text.is_empty() {
            return;
        }
        let text = String::from_utf8_lossy(text);
        let classes = self.style.classes();
        if classes.is_empty() {
            push_escaped(html, &text);
        } else {
            html.push_str(&format!(r#"<span class="{classes}">"#));
            push_escaped(html, &text);
            html.push_str("</span>");
        }
    }
}

/// How many bytes at the end begin a sequence or a character that goes on behind it.
fn unfinished(text: &[u8]) -> usize {
    let tail = &text[text.len().saturating_sub(SEQUENCE_LIMIT_BYTES)..];
    let is_cut = |at: &usize| undrawn(&tail[*at..], false).is_none();
    if let Some(at) = (0..tail.len()).find(is_cut) {
        return tail.len() - at;
    }
    let ends_within = |chunk: std::str::Utf8Chunk<'_>| chunk.invalid().len();
    tail.utf8_chunks().last().map_or(0, ends_within)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(printed: &str, expected: &str) {
        let whole = AnsiPainter::new('o', None).paint(printed.as_bytes(), true);
        assert_eq!(whole, expected, "{printed:?}");
        // However it arrives.
        let mut painter = AnsiPainter::new('o', None);
        let mut pieces = String::new();
        for byte in printed.as_bytes() {
            pieces += &painter.paint(&[*byte], false);
        }
        assert_eq!(pieces + &painter.paint(&[], true), expected, "{printed:?}, byte by byte");
    }

    #[test]
    fn colours_are_classes_and_last_until_they_are_taken_back() {
        check(
            "\u{1b}[1;31mred\nstill\u{1b}[0m plain\n",
            "<span class=\"l o\"><span class=\"a31 ab\">red</span></span>\
             <span class=\"l o\"><span class=\"a31 ab\">still</span> plain</span>",
        );
        check(
            "\u{1b}[41;97mx\u{1b}[49my\u{1b}[7mz",
            "<span class=\"l o\"><span class=\"a97 k41\">x</span><span class=\"a97\">y</span>\
             <span class=\"a97 ar\">z</span></span>",
        );
        check(
            "see \u{1b}]8;;https://e.test/a\u{1b}\\here\u{1b}]8;;\u{1b}\\.",
            "<span class=\"l o\">see here.</span>",
        );
        check("\u{1b}[38;5;196mx\u{1b}[48;2;1;2;3my", "<span class=\"l o\">xy</span>");
        check(
            "\u{1b}[92;4mx\u{1b}[39;24my",
            "<span class=\"l o\"><span class=\"a92 au\">x</span>y</span>",
        );
    }

    #[test]
    fn what_a_command_prints_is_never_markup_and_steers_nothing() {
        check(
            "<b onclick='x'>&\u{1b}]0;title\u{7}\u{202e}end\u{1b}[2J",
            "<span class=\"l o\">&lt;b onclick=&#39;x&#39;&gt;&amp;end</span>",
        );
    }

    #[test]
    fn a_line_that_is_drawn_again_is_shown_as_it_is_at_last() {
        check(
            "10%\r50%\r100%\r\ndone",
            "<span class=\"l o\">100%</span><span class=\"l o\">done</span>",
        );
    }

    #[test]
    fn a_line_without_end_is_cut_within_no_sequence_and_no_letter() {
        for ahead in 0..12 {
            let printed =
                format!("{}{}é", "a".repeat(LINE_LIMIT_BYTES - ahead), "\u{1b}[31m\u{1b}[1m");
            let whole = AnsiPainter::new('o', None).paint(printed.as_bytes(), true);
            let mut rest = whole.replace('a', "");
            for markup in ["<spn clss=\"l o\">", "<spn clss=\"31 b\">", "</spn>"] {
                rest = rest.replace(markup, "");
            }
            assert_eq!(rest, "é", "{ahead}");
        }
    }

    #[test]
    fn lines_have_their_numbers_and_a_line_without_end_is_not_held_back() {
        let mut painter = AnsiPainter::new('e', Some(7));
        assert_eq!(
            painter.paint(b"a\n\n", false),
            "<span class=\"l e\" id=\"e7\">a</span><span class=\"l e\" id=\"e8\"></span>"
        );
        let endless = painter.paint(&vec![b'x'; 3 * LINE_LIMIT_BYTES], false);
        assert!(
            endless.matches("class=\"l e\"").count() >= 2
                && painter.held_bytes() <= LINE_LIMIT_BYTES
        );
        assert_eq!(String::from_utf8_lossy(b"\xff"), "\u{fffd}");
        assert!(AnsiPainter::new('o', None).paint(b"a\xffb", true).contains("a\u{fffd}b"));
    }
}
