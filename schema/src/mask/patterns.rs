//! Finds many texts at once in another that comes piece by piece, and where one of them may begin
//! that is cut off by the end. Called by `mask`.
//!
//! What always holds: preparing takes time in proportion to the patterns; looking through a text in
//! proportion to it, and to the patterns at most some times for each piece; however often either
//! repeats itself.

use std::ops::Range;
use std::sync::OnceLock;

use aho_corasick::automaton::Automaton;
use aho_corasick::nfa::contiguous::NFA;
use aho_corasick::{Anchored, Input, MatchKind};

/// By so many first bytes a pattern is looked for, many bytes of the text at a time. More would be
/// compared in vain at every place of a text that goes on as a pattern does.
const HEAD_BYTES: usize = 8;

/// A prefix of this many bytes tells most texts apart: where it is the same, comparing the rest
/// counts as work.
const NEAR_BYTES: usize = 8;

/// Times the longest pattern: so much may be compared in vain before all beginnings, or all
/// patterns, are found in one go.
const PATIENCE: usize = 4;

/// Texts to find.
pub(super) struct Patterns {
    patterns: Vec<Vec<u8>>,
    /// Finds where one may begin.
    heads: NFA,
    /// Finds them from there on. No DFA: to make one of a pattern takes the square of its length
    /// where it repeats itself.
    finder: NFA,
    /// Finds where they end that are read backwards, for texts in which one begins as another,
    /// everywhere.
    backwards: OnceLock<NFA>,
    /// The patterns by their first byte: a key of many lines has a thousand.
    by_first: Vec<Vec<usize>>,
    pub(super) longest: usize,
}

/// What was found in a text.
pub(super) struct SecretMatch {
    /// Secrets, in their order, none within another.
    pub(super) ranges: Vec<Range<usize>>,
    /// Where the first thing begins that may be the start of a secret cut off by the end.
    pub(super) open_from: usize,
}

impl Patterns {
    pub(super) fn of(mut patterns: Vec<Vec<u8>>) -> Self {
        patterns.sort();
        patterns.dedup();
        let finder =
            NFA::builder().match_kind(MatchKind::LeftmostLongest).prefilter(false).build(&patterns);
        let mut heads: Vec<&[u8]> =
            patterns.iter().map(|pattern| &pattern[..pattern.len().min(HEAD_BYTES)]).collect();
        heads.dedup();
        let heads = NFA::builder().match_kind(MatchKind::LeftmostFirst).build(heads);
        let mut by_first = vec![Vec::new(); 256];
        patterns
            .iter()
            .enumerate()
            .for_each(|(which, pattern)| by_first[usize::from(pattern[0])].push(which));
        let longest = patterns.iter().map(Vec::len).max().unwrap_or(0);
        // The only failure is more pattern text than fits into 31 bits, which no environment can
        // hold.
        let (heads, finder) = (
            heads.expect("an environment is smaller than 2 GiB"),
            finder.expect("an environment is smaller than 2 GiB"),
        );
        Self { patterns, heads, finder, backwards: OnceLock::new(), by_first, longest }
    }

    /// The first one in `bytes` from `from` on, and of those that begin there the longest. And up
    /// to where was looked for a longer.
    fn next(&self, bytes: &[u8], from: usize) -> Option<(Range<usize>, usize)> {
        let nothing = self.finder.start_state(Anchored::No).ok()?;
        let (mut at, mut state, mut found) = (from, nothing, None);
        loop {
            if state == nothing {
                // Nothing has been found then: after that the finder knows no way back to its
                // beginning.
                let head = self.heads.try_find(&Input::new(bytes).range(at..)).ok()??;
                count(head.end() - at);
                at = head.start();
            }
            let Some(byte) = bytes.get(at) else { return found.map(|found| (found, at)) };
            (state, at) = (self.finder.next_state(Anchored::No, state, *byte), at + 1);
            count(1);
            if self.finder.is_dead(state) {
                return found.map(|found| (found, at));
            }
            if self.finder.is_match(state) {
                let length = self.finder.pattern_len(self.finder.match_pattern(state, 0));
                found = Some(at - length..at);
            }
        }
    }

    /// For each place the length of the longest one that begins there, or 0: nothing is looked at
    /// twice.
    fn all(&self, bytes: &[u8]) -> Vec<usize> {
        let backwards = self.backwards.get_or_init(|| {
            let patterns = self
                .patterns
                .iter()
                .map(|pattern| pattern.iter().rev().copied().collect::<Vec<u8>>());
            NFA::builder()
                .match_kind(MatchKind::Standard)
                .prefilter(false)
                .build(patterns)
                .expect("an environment is smaller than 2 GiB")
        });
        let mut lengths = vec![0; bytes.len()];
        let Ok(mut state) = backwards.start_state(Anchored::No) else { return lengths };
        for (byte, length) in bytes.iter().zip(&mut lengths).rev() {
            state = backwards.next_state(Anchored::No, state, *byte);
            if backwards.is_match(state) {
                // The first one is that of the state itself, the others are shorter.
                *length = backwards.pattern_len(backwards.match_pattern(state, 0));
            }
        }
        count(bytes.len());
        lengths
    }

    /// All of them in `bytes`, of which `certain` is the part whose end may be the start of
    /// another.
    pub(super) fn find(&self, bytes: &[u8], certain: &[u8], last: bool) -> SecretMatch {
        let mut beginnings = Beginnings::of(self, certain, PATIENCE * self.longest);
        let mut open_from = |from: usize| {
            if last { bytes.len() } else { beginnings.first(from.min(certain.len())) }
        };
        let mut found = SecretMatch { ranges: Vec::new(), open_from: open_from(0) };
        let (mut done, mut patience) = (0, PATIENCE * self.longest);
        let mut all: Option<(usize, Vec<usize>)> = None;
        // A secret that begins before anything unfinished is a secret whatever comes.
        loop {
            let next = match &all {
                None => self.next(bytes, done),
                Some((from, lengths)) => following(lengths, done - from)
                    .map(|next| (next.start + from..next.end + from, next.end + from)),
            };
            let Some((next, seen)) = next.filter(|(next, _)| next.start < found.open_from) else {
                break;
            };
            done = next.end;
            patience = patience.saturating_sub(seen - done);
            if patience == 0 && all.is_none() {
                all = Some((done, self.all(&bytes[done..])));
            }
            found.ranges.push(next);
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

/// The first pattern at `from` or later, of which these are the lengths at each place.
fn following(lengths: &[usize], from: usize) -> Option<Range<usize>> {
    let at = from + lengths[from..].iter().position(|length| *length > 0)?;
    Some(at..at + lengths[at])
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

    /// The first one at `from` or later; the end when there is none. Later calls ask for later
    /// ones.
    fn first(&mut self, from: usize) -> usize {
        (from.max(self.from)..self.text.len())
            .find(|at| self.is_one(*at))
            .unwrap_or(self.text.len())
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

    /// All of them: for each pattern the ends of the text that it begins with, by its borders
    /// (Knuth, Morris and Pratt).
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

/// Of each length the longest beginning of the pattern, shorter than that, with which what is so
/// long ends.
fn borders_of(pattern: &[u8], borders: &mut Vec<usize>) {
    borders.clear();
    borders.extend([0, 0]);
    for at in 1..pattern.len() {
        let border = extended(pattern, borders, borders[at], pattern[at]);
        borders.push(border);
    }
}

/// How much of the pattern's beginning a text ends with that ended with `length` of it, one byte
/// later.
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
mod tests;
