//! A text with its escapes decoded, and where each byte of it stood: programs escape the same text
//! in many ways, and mix them. Called by `mask`, for texts and for secrets alike: a secret that
//! looks escaped itself is looked for decoded too.
//!
//! What always holds: an escape is the same whatever stands before the last backslash of its
//! beginning, so a text may be cut between any two of them; what an escape has is bounded.

use std::ops::Range;

pub(super) use self::escapes::BACKSLASHES_LIMIT;
use self::escapes::{EscapeKind, Stop};
use super::SHORTEST_BYTES;
use crate::shown::has_string;

mod escapes;

/// One round decodes each of them in what the one before left.
const KINDS: [EscapeKind; 4] =
    [EscapeKind::Unseen, EscapeKind::Literal, EscapeKind::Address, EscapeKind::Markup];

/// The same of what a terminal draws.
const DRAWN_KINDS: [EscapeKind; 4] =
    [EscapeKind::Undrawn, EscapeKind::Literal, EscapeKind::Address, EscapeKind::Markup];

/// So many rounds read what was escaped so often, in any order; more only where each was escaped
/// after the next in `KINDS`.
const ROUNDS: usize = 4;

/// Most bytes that an escape has where its own characters were escaped: what is held back for it
/// has a limit.
const ESCAPE_LIMIT_BYTES: usize = 512;

/// Stands for a backslash that is no part of an escape, since too many follow it: no text in UTF-8
/// holds it.
const NO_BACKSLASH: u8 = 0xff;

/// A text without escapes of any kind.
pub(super) struct Decoded<'a> {
    bytes: &'a [u8],
    layers: Vec<Layer>,
}

/// A text after some of the decoding.
pub(super) struct DecodedView<'a> {
    layers: &'a [Layer],
}

/// A text without escapes of one kind.
struct Layer {
    text: Vec<u8>,
    escapes: Vec<Escape>,
    /// Up to where in the text below it was made of; what is left may be the beginning of an
    /// escape.
    covered: usize,
}

/// Where an escape stood in the text below, and what it became.
struct Escape {
    below: Range<usize>,
    here: Range<usize>,
}

impl<'a> Decoded<'a> {
    /// Of these bytes, if there is anything to decode. `hold`: a first backslash belongs to its
    /// escape; otherwise only what follows, so that it need not be held back. `last`: nothing
    /// follows.
    pub(super) fn of(bytes: &'a [u8], hold: bool, last: bool) -> Option<Self> {
        Self::by(KINDS, bytes, hold, last)
    }

    /// The same without what stands in the strings of a terminal, if there are any: a secret may
    /// stand in one, or one within it.
    pub(super) fn drawn(&self, hold: bool, last: bool) -> Option<Self> {
        let mut texts = self.layers.iter().map(|layer| layer.text.as_slice()).chain([self.bytes]);
        if texts.any(has_string) { Self::by(DRAWN_KINDS, self.bytes, hold, last) } else { None }
    }

    fn by(kinds: [EscapeKind; 4], bytes: &'a [u8], hold: bool, last: bool) -> Option<Self> {
        let mut decoded = Self { bytes, layers: Vec::new() };
        for round in 0..ROUNDS {
            let before = decoded.layers.len();
            for kind in kinds {
                // What stood before a backslash that another escape became is not known later.
                let layer = Layer::of(&decoded, kind, hold || round > 0, last);
                decoded.layers.extend(layer);
            }
            if decoded.layers[before..].iter().all(|layer| layer.escapes.is_empty()) {
                break;
            }
        }
        (!decoded.layers.is_empty()).then_some(decoded)
    }

    /// What each kind of decoding left, the last one first: more of it may be decoded than was
    /// escaped.
    pub(super) fn views(&self) -> impl Iterator<Item = DecodedView<'_>> {
        let last = self.layers.len();
        let changed =
            move |depth: &usize| *depth == last || !self.layers[*depth - 1].escapes.is_empty();
        (1..=last).rev().filter(changed).map(|depth| DecodedView { layers: &self.layers[..depth] })
    }

    fn view(&self) -> DecodedView<'_> {
        DecodedView { layers: &self.layers }
    }

    fn text(&self) -> &[u8] {
        self.layers.last().map_or(self.bytes, |layer| &layer.text)
    }

    /// Where the escape begins that `at` is within; `at` for none.
    pub(super) fn whole(&self, at: usize) -> usize {
        let mut original = at;
        for (which, layer) in self.layers.iter().enumerate() {
            let below = self.layers[..which].iter().fold(original, |at, layer| layer.decoded(at));
            if let Some(escape) = layer.around(below) {
                original = self.layers[..which]
                    .iter()
                    .rev()
                    .fold(escape.below.start, |at, layer| layer.start(at));
            }
        }
        original
    }
}

impl DecodedView<'_> {
    /// What is left.
    pub(super) fn text(&self) -> &[u8] {
        self.layers.last().map_or(b"", |layer| &layer.text)
    }

    /// Where a byte of it stood; the end is where something begins that may be an escape.
    pub(super) fn position(&self, at: usize) -> usize {
        self.layers.iter().rev().fold(at, |at, layer| layer.start(at))
    }

    /// Where a range of it stood.
    pub(super) fn in_original(&self, range: &Range<usize>) -> Range<usize> {
        self.layers
            .iter()
            .rev()
            .fold(range.clone(), |range, layer| layer.start(range.start)..layer.end(range.end))
    }

    /// Whether an escape there has too many bytes to be one.
    fn is_too_long(&self, range: Range<usize>) -> bool {
        !self.layers.is_empty()
            && self.position(range.end) - self.position(range.start) > ESCAPE_LIMIT_BYTES
    }
}

impl Layer {
    /// Of what was decoded so far.
    fn of(decoded: &Decoded<'_>, kind: EscapeKind, hold: bool, last: bool) -> Option<Self> {
        let (bytes, view) = (decoded.text(), decoded.view());
        let mut layer = Self { text: Vec::new(), escapes: Vec::new(), covered: bytes.len() };
        let (mut copied, mut at) = (0, 0);
        while let Some(found) = bytes[at..].iter().position(|byte| kind.begins(*byte)) {
            at += found;
            let (first, mut from, mut held) = (at, at, at);
            if kind == EscapeKind::Literal {
                let marks = bytes[at..].iter().take_while(|byte| kind.begins(**byte)).count();
                at += marks;
                // So many are no escape, so that what is held back has a limit; the last may be
                // one.
                if marks > BACKSLASHES_LIMIT || view.is_too_long(first..at) {
                    (from, held) = (at - 1, at - marks.min(BACKSLASHES_LIMIT));
                    while held < from && view.is_too_long(held..at) {
                        held += 1;
                    }
                }
            }
            let read = match kind.read(&bytes[at..], last) {
                Ok((_, length)) if view.is_too_long(from..at + length) => Err(Stop::Not),
                Err(Stop::Cut) if view.is_too_long(held..bytes.len()) => Err(Stop::Not),
                read => read,
            };
            let unescaped = |upto: usize, text: &mut Vec<u8>| {
                text.extend_from_slice(&bytes[copied..first.min(upto)]);
                text.extend(bytes[first.min(upto)..upto].iter().map(|_| NO_BACKSLASH));
            };
            match read {
                Ok((meaning, length)) => {
                    at += length;
                    unescaped(from, &mut layer.text);
                    let here = layer.text.len();
                    // With nothing behind them backslashes mean nothing.
                    if length > 0 {
                        meaning.write(&mut layer.text);
                    }
                    let begin =
                        if kind == EscapeKind::Literal && !hold { at - length } else { from };
                    layer.escapes.push(Escape { below: begin..at, here: here..layer.text.len() });
                    copied = at;
                }
                Err(Stop::Not) => at = at.max(from + 1),
                Err(Stop::Cut) => {
                    unescaped(held, &mut layer.text);
                    layer.covered = if kind == EscapeKind::Literal && !hold { at } else { held };
                    return Some(layer);
                }
            }
        }
        if layer.escapes.is_empty() {
            return None;
        }
        layer.text.extend_from_slice(&bytes[copied..]);
        Some(layer)
    }

    /// Where the byte at `at` stood below, or the whole escape that it came of began.
    fn start(&self, at: usize) -> usize {
        if at >= self.text.len() {
            return self.covered;
        }
        match self.before(at) {
            Some(escape) if at < escape.here.end => escape.below.start,
            Some(escape) => escape.below.end + (at - escape.here.end),
            None => at,
        }
    }

    /// Where what ends at `at` ended below.
    fn end(&self, at: usize) -> usize {
        match at.checked_sub(1).and_then(|at| self.before(at)) {
            Some(escape) => escape.below.end + at.saturating_sub(escape.here.end),
            None => at,
        }
    }

    /// What a place below has become; within an escape its beginning.
    fn decoded(&self, below: usize) -> usize {
        let which = self.escapes.partition_point(|escape| escape.below.start <= below);
        let at = match which.checked_sub(1).map(|which| &self.escapes[which]) {
            Some(escape) if below < escape.below.end => escape.here.start,
            Some(escape) => escape.here.end + (below - escape.below.end),
            None => below,
        };
        at.min(self.text.len())
    }

    /// The escape that this place below is within.
    fn around(&self, below: usize) -> Option<&Escape> {
        let which = self.escapes.partition_point(|escape| escape.below.start < below);
        which
            .checked_sub(1)
            .map(|which| &self.escapes[which])
            .filter(|escape| below < escape.below.end)
    }

    /// The last escape that became something at `at` or before.
    fn before(&self, at: usize) -> Option<&Escape> {
        self.escapes[..self.escapes.partition_point(|escape| escape.here.start <= at)].last()
    }
}

/// What is looked for where a text was decoded: each of these as it becomes by any kinds of
/// decoding. And those of them that are too short, or too blank, to be looked for where nothing was
/// escaped.
pub(super) fn forms(plain: Vec<Vec<u8>>) -> (Vec<Vec<u8>>, Vec<Vec<u8>>) {
    let mut all = plain.clone();
    for (round, kind) in (0..ROUNDS).flat_map(|round| KINDS.map(|kind| (round, kind))) {
        let layer = |form: &Vec<u8>| {
            Layer::of(&Decoded { bytes: form, layers: Vec::new() }, kind, true, true)
        };
        let decoded = all.iter().filter_map(layer).map(|layer| layer.text);
        // Where every character was escaped.
        let bare = all
            .iter()
            .filter(|form| round == 0 && kind == EscapeKind::Literal && form.contains(&b'\\'));
        let bare = bare.map(|form| form.iter().copied().filter(|byte| *byte != b'\\').collect());
        let more: Vec<Vec<u8>> = decoded.chain(bare).collect();
        all.extend(more);
        all.sort_unstable();
        all.dedup();
    }
    let is_long = |form: &Vec<u8>| {
        form.trim_ascii().len() >= SHORTEST_BYTES
            || (form.len() >= SHORTEST_BYTES && plain.contains(form))
    };
    all.into_iter().filter(|form| !form.is_empty()).partition(is_long)
}
