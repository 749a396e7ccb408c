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

use self::patterns::{Found, Patterns};
use self::unbroken::Unbroken;

mod forms;
mod patterns;
mod unbroken;

/// What stands in place of a secret.
const SHOWN_MASK: &str = "***";
const MASK: &[u8] = SHOWN_MASK.as_bytes();

/// Shortest value that is masked: a shorter one would black out ordinary words.
pub const SHORTEST_BYTES: usize = 6;

/// The forms to hide.
pub struct Secrets {
    as_they_stand: Patterns,
    /// Those that may have line breaks anywhere.
    breakable: Patterns,
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
        let whole = || values.iter().map(|value| value.trim_ascii_end()).filter(|value| value.len() >= SHORTEST_BYTES);
        let as_they_stand = plain.iter().flat_map(|part| forms::escaped(part)).chain(whole().flat_map(forms::rarely_escaped));
        let breakable = plain.iter().flat_map(|part| forms::encoded(part)).chain(whole().flat_map(forms::rarely_encoded));
        Some(Self { as_they_stand: Patterns::of(as_they_stand.collect()), breakable: Patterns::of(breakable.collect()) })
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
        // No secret is cut in two.
        if let Some(cut) = apart.get(apart.partition_point(|range| range.end <= open_from)) {
            open_from = open_from.min(cut.start);
        }
        apart.truncate(apart.partition_point(|range| range.start < open_from));
        Found { ranges: apart, open_from }
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
    /// Whether a backslash was shown last: together with what follows it may be a line break (`\\n`) as JSON writes one.
    after_backslash: bool,
}

impl Masker {
    /// The next piece as it may be shown; `last` when nothing follows.
    pub fn push(&mut self, secrets: &Secrets, piece: &[u8], last: bool) -> Vec<u8> {
        let shown_before = usize::from(self.after_backslash);
        let mut bytes = Vec::with_capacity(shown_before + self.held.len() + piece.len());
        bytes.extend_from_slice(&b"\\"[..shown_before]);
        bytes.append(&mut self.held);
        bytes.extend_from_slice(piece);
        let found = secrets.find(&bytes, last);
        let mut shown = Vec::with_capacity(bytes.len());
        // What may begin with a backslash holds it back, so nothing begins with one that was shown.
        let mut done = shown_before;
        for range in found.ranges {
            shown.extend_from_slice(&bytes[done..range.start.max(done)]);
            shown.extend_from_slice(MASK);
            done = range.end;
        }
        let open_from = found.open_from.max(done);
        shown.extend_from_slice(&bytes[done..open_from]);
        self.held = bytes.split_off(open_from);
        self.after_backslash = bytes.last() == Some(&b'\\');
        shown
    }
}

#[cfg(test)]
mod tests;
