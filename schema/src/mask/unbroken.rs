//! A text without its line breaks, and where what is left stood: encoders break what they write
//! into lines of 64, 76 or whatever many characters, indented or not, and within a JSON string the
//! break is an escape. Called by `mask`.

use std::borrow::Cow;
use std::ops::Range;

/// Longest break that is passed over, bytes: a line break and deep indentation. A longer one is
/// none, so that what is held back has a limit.
const BREAK_LIMIT_BYTES: usize = 128;

/// The text without its breaks.
pub(super) struct Unbroken<'a> {
    text: Cow<'a, [u8]>,
    /// Where each run of it begins, here and in the original.
    runs: Vec<(usize, usize)>,
    original_len: usize,
    /// How much of the end may be the beginning of a break.
    uncertain: usize,
}

impl<'a> Unbroken<'a> {
    /// Of these bytes; `escaped`: a break may be written as an escape; `last`: nothing follows.
    pub(super) fn of(bytes: &'a [u8], escaped: bool, last: bool) -> Self {
        let mut unbroken = Self {
            text: Cow::Borrowed(bytes),
            runs: vec![(0, 0)],
            original_len: bytes.len(),
            uncertain: 0,
        };
        let mut text: Option<Vec<u8>> = None;
        let (mut run, mut at, mut undecided) = (0, 0, 0);
        while let Some(found) = bytes[at..]
            .iter()
            .position(|byte| matches!(byte, b'\n' | b'\r') || (escaped && *byte == b'\\'))
        {
            at += found;
            let end = break_end(bytes, at, escaped);
            if end == at {
                at += 1;
                continue;
            }
            let text = text.get_or_insert_with(|| Vec::with_capacity(bytes.len()));
            // No encoded text has a byte of a break in it.
            let kept = if end - at > BREAK_LIMIT_BYTES { at + 1 } else { at };
            text.extend_from_slice(&bytes[run..kept]);
            let between = between_digits(bytes, at, end, last);
            undecided = if between.is_none() { bytes.len() - end } else { 0 };
            let next = if between == Some(true) { end - 1 } else { end };
            unbroken.runs.push((text.len(), next));
            (run, at) = (next, end);
        }
        unbroken.uncertain = undecided
            .max(usize::from(escaped && run < bytes.len() && bytes.last() == Some(&b'\\')));
        if let Some(mut text) = text {
            text.extend_from_slice(&bytes[run..]);
            unbroken.text = Cow::Owned(text);
        }
        unbroken
    }

    /// What is left.
    pub(super) fn text(&self) -> &[u8] {
        &self.text
    }

    /// The same without what may turn out to be the beginning of a break.
    pub(super) fn certain(&self) -> &[u8] {
        &self.text[..self.text.len() - self.uncertain]
    }

    /// Where a byte of it stood; the end is the end.
    pub(super) fn position(&self, at: usize) -> usize {
        if at >= self.text.len() {
            return self.original_len;
        }
        let (here, there) = self.runs[self.runs.partition_point(|(here, _)| *here <= at) - 1];
        there + (at - here)
    }

    /// Where a range of it stood: a piece for each line.
    pub(super) fn in_original(&self, range: &Range<usize>) -> Vec<Range<usize>> {
        let mut pieces = Vec::new();
        let mut which = self.runs.partition_point(|(here, _)| *here <= range.start) - 1;
        let mut at = range.start;
        while at < range.end {
            let (here, there) = self.runs[which];
            let end =
                self.runs.get(which + 1).map_or(range.end, |(next, _)| (*next).min(range.end));
            if end > at {
                pieces.push(there + (at - here)..there + (end - here));
            }
            (at, which) = (end, which + 1);
        }
        pieces
    }
}

/// Where the break ends that begins at `at`; `at` for none.
fn break_end(bytes: &[u8], at: usize, escaped: bool) -> usize {
    let mut end = at;
    loop {
        end += match &bytes[end..] {
            [b'\n' | b'\r', ..] => 1,
            [b'\\', b'n' | b'r', ..] if escaped => 2,
            [b' ' | b'\t', ..] if end > at => 1,
            _ => return end,
        };
    }
}

/// Whether the last blank of this break belongs between two pairs of digits, as `od -tx1` writes
/// its lines; unknown while what follows is not there.
fn between_digits(bytes: &[u8], at: usize, end: usize, last: bool) -> Option<bool> {
    let is_pair = |pair: &[u8]| pair.iter().all(u8::is_ascii_hexdigit);
    let pair_before = at >= 2
        && is_pair(&bytes[at - 2..at])
        && (at == 2 || !bytes[at - 3].is_ascii_alphanumeric());
    if bytes[end - 1] != b' ' || !pair_before {
        return Some(false);
    }
    match &bytes[end..] {
        [first, second, third, ..] => Some(is_pair(&[*first, *second]) && !is_encoded(*third)),
        rest if last => Some(rest.len() == 2 && is_pair(rest)),
        rest if is_pair(rest) => None,
        _ => Some(false),
    }
}

/// Whether base64 may have it.
fn is_encoded(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"+/-_=".contains(&byte)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn breaks_are_left_out_and_every_byte_knows_where_it_stood() {
        let bytes = b"gh\n  ij\\r\\nkl\\mn\r\n";
        let unbroken = Unbroken::of(bytes, true, true);
        assert_eq!(unbroken.text(), b"ghijkl\\mn");
        for (at, byte) in unbroken.text().iter().enumerate() {
            assert_eq!(bytes[unbroken.position(at)], *byte);
        }
        assert_eq!(unbroken.in_original(&(1..5)), [1..2, 5..7, 11..12]);
        assert_eq!(unbroken.position(9), bytes.len());
    }

    #[test]
    fn a_long_break_is_none() {
        let bytes = [b"ab".as_slice(), &[b'\n'; BREAK_LIMIT_BYTES + 1], b"cd"].concat();
        assert_eq!(Unbroken::of(&bytes, true, true).text(), b"ab\ncd");
    }

    #[test]
    fn what_may_begin_a_break_is_uncertain() {
        let unbroken = Unbroken::of(b"a\nb\\", true, false);
        assert_eq!((unbroken.text(), unbroken.certain()), (b"ab\\".as_slice(), b"ab".as_slice()));
    }
}
