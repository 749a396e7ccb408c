//! Hides the values of secrets in whatever is shown or kept, also when a read cuts one in two.
//! Called by the wrapper for all that leaves it, and by the scheduler for what no wrapper of ours
//! has masked.
//!
//! Text is looked through as it stands and, where it has escapes or colours, with them decoded
//! (`decoded`), for the value; and both without line breaks (`unbroken`) for the forms that
//! programs break into lines (base64). All of it is linear, the preparation too, and what is
//! held back until more comes is bounded by the longest form.

use std::borrow::Cow;
use std::ffi::OsString;
use std::ops::Range;
use std::os::unix::ffi::OsStrExt;

use self::decoded::{BACKSLASHES_LIMIT, Decoded, DecodedView};
use self::document::ScannedDocument;
use self::patterns::{Patterns, SecretMatch};
use self::unbroken::Unbroken;

mod decoded;
mod document;
mod forms;
mod named;
mod patterns;
mod unbroken;

/// What stands in place of a secret.
pub const SHOWN_MASK: &str = "***";
const MASK: &[u8] = SHOWN_MASK.as_bytes();

/// Shortest value that is masked: a shorter one would black out ordinary words.
pub const SHORTEST_BYTES: usize = 6;

/// Most bytes that an escape usually has for each byte: `\\u00e4` is `ä` in JSON in JSON,
/// `&amp;#039;` a quote in markup twice.
const ESCAPED_BYTES: usize = 12;

/// How often what is held back is made longer so that it ends between two escapes: only what was
/// made for it needs more.
const SETTLE_LIMIT: usize = 16;

/// The forms to hide.
pub struct Secrets {
    plain: Patterns,
    /// What short values that look escaped become when they are decoded: hidden only where it was
    /// escaped.
    short: Option<Patterns>,
    /// Those that may have line breaks anywhere.
    breakable: Patterns,
    /// Whether one may begin with an escape of which nothing may be shown: those of letters and
    /// digits are hardly ever escaped, and a prompt (`C:\`) is to be seen at once.
    hold: bool,
    /// Whether one ends with a backslash, which decoding cannot tell from those of what follows.
    trailing: bool,
}

impl Secrets {
    /// Those that `PVN_SECRET_KEYS` names, and the keys whose values are too short to be masked.
    /// `None` without any.
    pub fn of_environment(variables: &[(OsString, OsString)]) -> (Option<Self>, Vec<String>) {
        let Some((_, keys)) = variables.iter().find(|(key, _)| key == "PVN_SECRET_KEYS") else {
            return (None, Vec::new());
        };
        let mut short = Vec::new();
        let mut values = Vec::new();
        // People who write it by hand put a blank after the comma, and a secret must not show for
        // that.
        for key in keys
            .as_bytes()
            .split(|byte| *byte == b',')
            .map(<[u8]>::trim_ascii)
            .filter(|key| !key.is_empty())
        {
            let Some((key, value)) = variables.iter().find(|(name, _)| name.as_bytes() == key)
            else {
                continue;
            };
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
        let fields: Vec<Vec<u8>> = values.iter().flat_map(|value| named::fields(value)).collect();
        let values: Vec<&[u8]> =
            values.iter().copied().chain(fields.iter().map(Vec::as_slice)).collect();
        let parts: Vec<&[u8]> = values
            .iter()
            .flat_map(|value| forms::parts(value))
            .filter(|part| part.len() >= SHORTEST_BYTES)
            .collect();
        if parts.is_empty() {
            return None;
        }
        let long = |form: &Vec<u8>| form.len() >= SHORTEST_BYTES;
        let whole = || {
            values
                .iter()
                .map(|value| value.trim_ascii_end())
                .filter(|value| value.len() >= SHORTEST_BYTES)
        };
        let (mut plain, short) =
            decoded::forms(parts.iter().flat_map(|part| forms::written(part)).collect());
        let hold = plain.iter().chain(&short).any(|form| !form[0].is_ascii_alphanumeric());
        plain.extend(whole().flat_map(forms::rarely_written));
        plain.retain(long);
        let breakable = parts
            .iter()
            .flat_map(|part| forms::encoded(part))
            .chain(whole().flat_map(forms::rarely_encoded));
        let trailing = parts.iter().any(|part| part.ends_with(b"\\"));
        let short = (!short.is_empty()).then(|| Patterns::of(short));
        Some(Self {
            plain: Patterns::of(plain),
            short,
            breakable: Patterns::of(breakable.filter(long).collect()),
            hold,
            trailing,
        })
    }

    /// Bytes of the longest form of any of them, without line breaks.
    pub fn longest(&self) -> usize {
        (self.plain.longest * ESCAPED_BYTES).max(self.breakable.longest)
    }

    /// The text with every secret hidden.
    pub fn hide(&self, text: &str) -> String {
        String::from_utf8_lossy(&Masker::default().push(self, text.as_bytes(), true)).into_owned()
    }

    /// The secrets in `bytes`, and from where on more has to come before anything can be said;
    /// `last`: nothing more comes. `hold`: nothing of an escape is shown before all of it is
    /// there.
    fn find(&self, bytes: &[u8], hold: bool, last: bool) -> SecretMatch {
        let found = self.plain.find(bytes, bytes, last);
        let mut open_from = found.open_from;
        let mut pieces: Vec<SecretPiece> =
            found.ranges.into_iter().map(SecretPiece::whole).collect();
        let broken = |bytes: &[u8], escaped| {
            let unbroken = Unbroken::of(bytes, escaped, last);
            let found = self.breakable.find(unbroken.text(), unbroken.certain(), last);
            let pieces: Vec<SecretPiece> = found
                .ranges
                .iter()
                .flat_map(|range| SecretPiece::several(unbroken.in_original(range)))
                .collect();
            (pieces, unbroken.position(found.open_from))
        };
        let (beside, open) = broken(bytes, true);
        pieces.extend(beside);
        open_from = open_from.min(open);
        let decoded = Decoded::of(bytes, self.hold || hold, last);
        let drawn = decoded.as_ref().and_then(|decoded| decoded.drawn(self.hold || hold, last));
        let decodings = || decoded.iter().chain(&drawn);
        for view in decodings().flat_map(Decoded::views) {
            let text = view.text();
            let found = self.plain.find(text, text, last);
            pieces.extend(
                found.ranges.iter().map(|range| SecretPiece::whole(view.in_original(range))),
            );
            let (beside, open) = broken(text, false);
            pieces.extend(beside.into_iter().map(|piece| piece.in_original(&view)));
            open_from = open_from.min(view.position(found.open_from)).min(view.position(open));
            if let Some(short) = &self.short {
                let found = short.find(text, text, last);
                let escaped =
                    found.ranges.iter().map(|range| (range.len(), view.in_original(range)));
                let hidden = escaped.filter(|(length, range)| {
                    range.len() > *length && range.len() >= SHORTEST_BYTES
                });
                pieces.extend(hidden.map(|(_, range)| SecretPiece::whole(range)));
                open_from = open_from.min(view.position(found.open_from));
            }
        }
        for piece in pieces.iter_mut().filter(|piece| self.trailing && piece.is_last) {
            let behind = bytes[piece.range.end..]
                .iter()
                .take(BACKSLASHES_LIMIT)
                .take_while(|byte| **byte == b'\\')
                .count();
            piece.range.end += behind;
            if piece.range.end == bytes.len() && behind < BACKSLASHES_LIMIT {
                open_from = open_from.min(piece.from);
            }
        }
        let mut apart = merged(pieces);
        if !last {
            // No secret is cut in two, and no escape.
            let uncut = |at: usize| {
                let behind = &apart[apart.partition_point(|piece| piece.range.end <= at)..];
                behind.iter().map(|piece| piece.from).fold(at, usize::min)
            };
            for _ in 0..SETTLE_LIMIT {
                let earlier = uncut(open_from);
                let earlier = decodings().fold(earlier, |at, decoded| decoded.whole(at));
                if earlier == open_from {
                    break;
                }
                open_from = earlier;
            }
            open_from = uncut(open_from);
            apart.truncate(apart.partition_point(|piece| piece.range.start < open_from));
        }
        let open_from = if last { bytes.len() } else { open_from };
        SecretMatch { ranges: apart.into_iter().map(|piece| piece.range).collect(), open_from }
    }
}

/// A part of a secret that was found: one that is broken into lines has several.
struct SecretPiece {
    range: Range<usize>,
    /// Where the secret begins.
    from: usize,
    is_last: bool,
}

impl SecretPiece {
    fn whole(range: Range<usize>) -> Self {
        Self { from: range.start, range, is_last: true }
    }

    fn several(ranges: Vec<Range<usize>>) -> impl Iterator<Item = Self> {
        let (from, count) = (ranges.first().map_or(0, |range| range.start), ranges.len());
        ranges.into_iter().enumerate().map(move |(which, range)| Self {
            range,
            from,
            is_last: which + 1 == count,
        })
    }

    fn in_original(self, view: &DecodedView<'_>) -> Self {
        Self {
            range: view.in_original(&self.range),
            from: view.position(self.from),
            is_last: self.is_last,
        }
    }
}

/// Those that overlap as one, in their order.
fn merged(mut pieces: Vec<SecretPiece>) -> Vec<SecretPiece> {
    pieces.sort_by_key(|piece| (piece.range.start, piece.range.end));
    let mut apart: Vec<SecretPiece> = Vec::with_capacity(pieces.len());
    for piece in pieces {
        match apart.last_mut() {
            Some(before) if piece.range.start < before.range.end => {
                before.range.end = before.range.end.max(piece.range.end);
                before.from = before.from.min(piece.from);
            }
            _ => apart.push(piece),
        }
    }
    apart
}

/// The text with every secret hidden, if there are any.
pub fn hide<'a>(secrets: Option<&Secrets>, text: &'a str) -> Cow<'a, str> {
    secrets.map_or(Cow::Borrowed(text), |secrets| Cow::Owned(secrets.hide(text)))
}

/// Whether `shown` may be what masking left of `text`: each mask stands for something, and all else
/// is the same.
pub fn may_hide(shown: &str, text: &str) -> bool {
    let Some((first, others)) = shown.split_once(SHOWN_MASK) else { return shown == text };
    let Some(mut rest) = text.strip_prefix(first) else { return false };
    let (between, last) = others
        .rsplit_once(SHOWN_MASK)
        .map_or((None, others), |(between, last)| (Some(between), last));
    for part in between.iter().flat_map(|between| between.split(SHOWN_MASK)) {
        let Some(at) = rest.find(part) else { return false };
        rest = &rest[at + part.len()..];
    }
    rest.ends_with(last)
}

/// Hides secrets in one stream, piece by piece. Holds back only what may be the beginning of a
/// secret.
#[derive(Default)]
pub struct Masker {
    held: Vec<u8>,
    /// Whether a backslash was shown last: together with what follows it may be a line break
    /// (`\\n`) as JSON writes one.
    after_backslash: bool,
    document: Option<ScannedDocument>,
}

impl Masker {
    /// For a document (JSON), which has to stay one: quotes around strings stay, and a secret goes
    /// with the backslash before its first letter, so that a text that ends with a backslash is
    /// shown only with what follows. Nobody waits for that as for a prompt.
    pub fn of_document() -> Self {
        Self { document: Some(ScannedDocument::default()), ..Self::default() }
    }

    /// The next piece as it may be shown; `last` when nothing follows.
    pub fn push(&mut self, secrets: &Secrets, piece: &[u8], last: bool) -> Vec<u8> {
        let shown_before = usize::from(self.after_backslash);
        let mut bytes = Vec::with_capacity(shown_before + self.held.len() + piece.len());
        bytes.extend_from_slice(&b"\\"[..shown_before]);
        bytes.append(&mut self.held);
        bytes.extend_from_slice(piece);
        let found = secrets.find(&bytes, self.document.is_some(), last);
        let mut shown = Vec::with_capacity(bytes.len());
        // What may begin with a backslash holds it back, so nothing begins with one that was shown.
        let mut done = shown_before;
        for range in found.ranges {
            let from = range.start.max(done);
            self.show(&bytes[done..from], &mut shown);
            match &mut self.document {
                Some(document) => document.mask(&bytes[from..range.end], &mut shown),
                None => shown.extend_from_slice(MASK),
            }
            done = range.end;
        }
        let open_from = found.open_from.max(done);
        self.show(&bytes[done..open_from], &mut shown);
        if let Some(document) = self.document.as_mut().filter(|_| last) {
            document.end(&mut shown);
        }
        self.held = bytes.split_off(open_from);
        self.after_backslash = bytes.last() == Some(&b'\\');
        shown
    }

    fn show(&mut self, bytes: &[u8], shown: &mut Vec<u8>) {
        match &mut self.document {
            Some(document) => document.show(bytes, shown),
            None => shown.extend_from_slice(bytes),
        }
    }
}

#[cfg(test)]
mod tests;
