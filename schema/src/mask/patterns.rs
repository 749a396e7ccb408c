//! Finds many texts at once in another that comes piece by piece, and where one of them may begin that is cut off by the end. Called
//! by `mask`.
//!
//! What always holds: looking through a text takes time in proportion to it, and to the patterns at most once for each piece,
//! however often either repeats itself.

use std::ops::Range;

use aho_corasick::{AhoCorasick, MatchKind};

/// A prefix of this many bytes tells most texts apart: where it is the same, comparing the rest counts as work.
const NEAR_BYTES: usize = 8;

/// Times the longest pattern: so much may be compared in vain before all beginnings are found in one go.
const PATIENCE: usize = 4;

/// Texts to find.
pub(super) struct Patterns {
    patterns: Vec<Vec<u8>>,
    finder: AhoCorasick,
    /// The patterns by their first byte: a key of many lines has a thousand.
    by_first: Vec<Vec<usize>>,
    pub(super) longest: usize,
}

/// What was found in a text.
pub(super) struct Found {
    /// Secrets, in their order, none within another.
    pub(super) ranges: Vec<Range<usize>>,
    /// Where the first thing begins that may be the start of a secret cut off by the end.
    pub(super) open_from: usize,
}

impl Patterns {
    pub(super) fn of(mut patterns: Vec<Vec<u8>>) -> Self {
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
    pub(super) fn find(&self, bytes: &[u8], certain: &[u8], last: bool) -> Found {
        let mut beginnings = Beginnings::of(self, certain, PATIENCE * self.longest);
        let mut open_from = |from: usize| if last { bytes.len() } else { beginnings.first(from.min(certain.len())) };
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
}

/// Where a pattern may begin that is cut off by the end of a text.
struct Beginnings<'a> {
    patterns: &'a Patterns,
    text: &'a [u8],
    /// Before this no pattern is long enough.
    from: usize,
    /// How much may still be compared in vain.
    patience: usize,
    /// All of them, once that is the cheaper way: by their place after `from`.
    all: Option<Vec<bool>>,
}

impl<'a> Beginnings<'a> {
    fn of(patterns: &'a Patterns, text: &'a [u8], patience: usize) -> Self {
        let from = text.len().saturating_sub(patterns.longest.saturating_sub(1));
        Self { patterns, text, from, patience, all: None }
    }

    /// The first one at `from` or later; the end when there is none. Later calls ask for later ones.
    fn first(&mut self, from: usize) -> usize {
        (from.max(self.from)..self.text.len()).find(|at| self.is_one(*at)).unwrap_or(self.text.len())
    }

    fn is_one(&mut self, at: usize) -> bool {
        if let Some(all) = &self.all {
            return all[at - self.from];
        }
        let rest = &self.text[at..];
        let near = rest.len().min(NEAR_BYTES);
        for which in &self.patterns.by_first[usize::from(rest[0])] {
            let pattern = &self.patterns.patterns[*which];
            if pattern.len() <= rest.len() || pattern[..near] != rest[..near] {
                continue;
            }
            count(rest.len());
            if pattern.starts_with(rest) {
                return true;
            }
            self.patience = self.patience.saturating_sub(rest.len());
        }
        if self.patience == 0 {
            self.all = Some(self.find_all());
        }
        false
    }

    /// All of them: for each pattern the ends of the text that it begins with, by its borders (Knuth, Morris and Pratt).
    fn find_all(&self) -> Vec<bool> {
        let mut all = vec![false; self.text.len() - self.from];
        let mut borders = Vec::new();
        for pattern in &self.patterns.patterns {
            borders_of(pattern, &mut borders);
            let tail = &self.text[self.text.len() - (pattern.len() - 1).min(self.text.len())..];
            count(pattern.len() + tail.len());
            let mut length = 0;
            for byte in tail {
                length = extended(pattern, &borders, length, *byte);
            }
            while length > 0 {
                all[self.text.len() - length - self.from] = true;
                length = borders[length];
            }
        }
        all
    }
}

/// Of each length the longest beginning of the pattern, shorter than that, with which what is so long ends.
fn borders_of(pattern: &[u8], borders: &mut Vec<usize>) {
    borders.clear();
    borders.extend([0, 0]);
    for at in 1..pattern.len() {
        let border = extended(pattern, borders, borders[at], pattern[at]);
        borders.push(border);
    }
}

/// How much of the pattern's beginning a text ends with that ended with `length` of it, one byte later.
fn extended(pattern: &[u8], borders: &[usize], mut length: usize, byte: u8) -> usize {
    while length > 0 && (length == pattern.len() || pattern[length] != byte) {
        length = borders[length];
    }
    length + usize::from(pattern[length] == byte)
}

#[cfg(test)]
thread_local! {
    /// Bytes that were compared by this thread.
    static COMPARED: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

/// Notes work, for tests that show how it grows.
fn count(_bytes: usize) {
    #[cfg(test)]
    COMPARED.with(|compared| compared.set(compared.get() + _bytes));
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Work for a text of `size` bytes that comes in pieces.
    fn work(secret: &[u8], text: &[u8]) -> usize {
        let patterns = Patterns::of(vec![secret.to_owned()]);
        let before = COMPARED.get();
        patterns.find(text, text, false);
        COMPARED.get() - before
    }

    #[test]
    fn what_repeats_itself_takes_time_in_proportion() {
        // The text goes on as the secret does, almost to its end, wherever that begins.
        let of = |size: usize| {
            let secret = [vec![b'a'; size], b"b".to_vec()].concat();
            let text = [vec![b'a'; size - 1], b"c".to_vec()].concat();
            work(&secret, &text)
        };
        let periodic = |size: usize| {
            let secret = [b"abcabcab".repeat(size / 8), b"x".to_vec()].concat();
            let text = [b"abcabcab".repeat(size / 8), b"y".to_vec()].concat();
            work(&secret, &text)
        };
        for work in [&of as &dyn Fn(usize) -> usize, &periodic] {
            let (once, twice) = (work(4_000), work(8_000));
            assert!(once > 0 && twice <= once * 5 / 2, "{once} and {twice} bytes compared");
        }
    }

    #[test]
    fn both_ways_find_the_same_beginnings() {
        // All texts of up to nine letters over two, against patterns that overlap themselves and each other.
        let patterns = ["aaaaaab", "abababa", "bbabbabb", "aabaabaab"].map(|pattern| pattern.as_bytes().to_vec());
        let patterns = Patterns::of(patterns.to_vec());
        for length in 0..=9_u32 {
            for number in 0..1_u32 << length {
                let text: Vec<u8> = (0..length).map(|bit| b'a' + u8::from(number >> bit & 1 == 1)).collect();
                let naive =
                    |at: usize| patterns.patterns.iter().any(|pattern| pattern.len() > text.len() - at && pattern.starts_with(&text[at..]));
                for patience in [0, usize::MAX] {
                    let mut beginnings = Beginnings::of(&patterns, &text, patience);
                    if patience == 0 {
                        beginnings.all = Some(beginnings.find_all());
                    }
                    for from in 0..=text.len() {
                        let expected = (from..text.len()).find(|at| naive(*at)).unwrap_or(text.len());
                        assert_eq!(beginnings.first(from), expected, "{} from {from}", String::from_utf8_lossy(&text));
                    }
                }
            }
        }
    }
}
