//! What an escape stands for, and where it ends: of the literals of languages and shells, of
//! addresses, of markup, and what steers a terminal, which stands for nothing. Called by `decoded`.
//!
//! What was escaped several times (JSON in JSON, `%25`, `&amp;`) is decoded in one go, so that no
//! escape depends on what stands before it.

use crate::shown::{steering, undrawn};

mod names;

/// How often the mark of an escape may itself have been escaped: with JSON twice as many
/// backslashes each time.
pub(in crate::mask) const BACKSLASHES_LIMIT: usize = 32;
const AGAIN_LIMIT: usize = 4;

/// Most digits between `&#` or `\u{` and their end: leading zeros are allowed.
const DIGITS_LIMIT: usize = 8;

/// What an escape stands for.
#[derive(Clone, Copy)]
pub(super) enum Meaning {
    Nothing,
    Byte(u8),
    Character(char),
}

impl Meaning {
    pub(super) fn write(self, text: &mut Vec<u8>) {
        match self {
            Self::Nothing => {}
            Self::Byte(byte) => text.push(byte),
            Self::Character(character) => {
                text.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes())
            }
        }
    }
}

const BACKSLASH: Meaning = Meaning::Byte(b'\\');

/// Why nothing was read.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Stop {
    /// It is no escape.
    Not,
    /// The end of the text cuts it off.
    Cut,
}

/// What was read, and how many bytes it has.
pub(super) type Read = Result<(Meaning, usize), Stop>;

/// A kind of escape.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum EscapeKind {
    /// Colours and characters that nobody sees: what is shown without them must hold no secret
    /// either.
    Unseen,
    /// The same as terminals draw them, without what stands in their strings.
    Undrawn,
    Literal,
    Address,
    Markup,
}

impl EscapeKind {
    /// Whether an escape of it may begin with this byte.
    pub(super) fn begins(self, byte: u8) -> bool {
        match self {
            // The first bytes of all that `steering` knows.
            Self::Unseen | Self::Undrawn => {
                matches!(byte, 0..=8 | 0x0b | 0x0c | 0x0e..=0x1f | 0x7f | 0xc2 | 0xd8 | 0xe2)
            }
            Self::Literal => byte == b'\\',
            Self::Address => byte == b'%',
            Self::Markup => byte == b'&',
        }
    }

    /// The escape at the beginning of `text`; of a literal what follows its backslashes. `last`:
    /// nothing follows the text.
    pub(super) fn read(self, text: &[u8], last: bool) -> Read {
        let read = match self {
            Self::Unseen => passed_over(steering(text, last)),
            Self::Undrawn => passed_over(undrawn(text, last)),
            Self::Literal => literal(text),
            Self::Address => marked(text, b"25", last, address),
            Self::Markup => marked(text, b"amp;", last, markup),
        };
        match (read, self) {
            (Err(Stop::Cut), Self::Address | Self::Markup) if last => Err(Stop::Not),
            // With nothing behind them backslashes mean nothing, and else the character that
            // follows.
            (Err(stop), Self::Literal) if last || stop == Stop::Not => {
                Ok(text.first().map_or((BACKSLASH, 0), |byte| (Meaning::Byte(*byte), 1)))
            }
            (read, _) => read,
        }
    }
}

fn passed_over(length: Option<usize>) -> Read {
    match length {
        None => Err(Stop::Cut),
        Some(0) => Err(Stop::Not),
        Some(length) => Ok((Meaning::Nothing, length)),
    }
}

/// After backslashes: any character stands for itself but these.
fn literal(text: &[u8]) -> Read {
    let byte = match text.first().ok_or(Stop::Cut)? {
        b'n' => b'\n',
        b'r' => b'\r',
        b't' => b'\t',
        b'a' => 7,
        b'b' => 8,
        b'v' => 11,
        b'f' => 12,
        b'e' | b'E' => 27,
        b'u' | b'x' if text.get(1) == Some(&b'{') => return until(text, 2, 16, b'}'),
        b'u' if text.len() == 1 => return Err(Stop::Cut),
        b'u' => return unit(text),
        b'U' => return Ok((character(number(text, 1, 8, 16)?), 9)),
        b'x' => return Ok((Meaning::Byte(number(text, 1, 2, 16)? as u8), 3)),
        b'0'..=b'3' => return Ok((Meaning::Byte(number(text, 0, 3, 8)? as u8), 3)),
        byte => *byte,
    };
    Ok((Meaning::Byte(byte), 1))
}

/// `uXXXX`, or two of them for one character.
fn unit(text: &[u8]) -> Read {
    let high = number(text, 1, 4, 16)?;
    let alone = Ok((character(high), 5));
    if !(0xd800..0xdc00).contains(&high) {
        return alone;
    }
    let rest = &text[5..];
    let backslashes =
        rest.iter().take(BACKSLASHES_LIMIT + 1).take_while(|byte| **byte == b'\\').count();
    match rest.get(backslashes) {
        _ if backslashes > BACKSLASHES_LIMIT => alone,
        None => Err(Stop::Cut),
        Some(b'u') if backslashes > 0 => match number(rest, backslashes + 1, 4, 16) {
            Ok(low @ 0xdc00..0xe000) => Ok((
                character(0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00)),
                5 + backslashes + 5,
            )),
            Err(Stop::Cut) => Err(Stop::Cut),
            _ => alone,
        },
        Some(_) => alone,
    }
}

/// After `%`.
fn address(text: &[u8]) -> Read {
    Ok((Meaning::Byte(number(text, 0, 2, 16)? as u8), 2))
}

/// After `&`.
fn markup(text: &[u8]) -> Read {
    match text {
        [] | [b'#'] => return Err(Stop::Cut),
        [b'#', b'x' | b'X', ..] => return until(text, 2, 16, b';'),
        [b'#', ..] => return until(text, 1, 10, b';'),
        _ => {}
    }
    let length = text
        .iter()
        .take(names::LIMIT_BYTES + 1)
        .take_while(|byte| byte.is_ascii_alphanumeric())
        .count();
    match text.get(length) {
        None if names::begins(text) => Err(Stop::Cut),
        Some(b';') => names::number(&text[..length])
            .map(|number| (character(number), length + 1))
            .ok_or(Stop::Not),
        _ => Err(Stop::Not),
    }
}

/// An escape whose mark may have been escaped with `again` behind it.
fn marked(text: &[u8], again: &[u8], last: bool, read: fn(&[u8]) -> Read) -> Read {
    let mut at = 1;
    while at <= AGAIN_LIMIT * again.len() {
        let rest = &text[at..];
        if rest.starts_with(again) {
            at += again.len();
        } else if !last && again.starts_with(rest) {
            return Err(Stop::Cut);
        } else {
            break;
        }
    }
    match read(&text[at..]) {
        Ok((meaning, length)) => Ok((meaning, at + length)),
        Err(stop) if at > 1 && (last || stop == Stop::Not) => Ok((Meaning::Byte(text[0]), at)),
        stop => stop,
    }
}

/// The number from `at` on until `end`.
fn until(text: &[u8], at: usize, radix: u32, end: u8) -> Read {
    for length in 0..=DIGITS_LIMIT {
        match text.get(at + length) {
            None => return Err(Stop::Cut),
            Some(byte) if *byte == end && length > 0 => {
                return Ok((character(number(text, at, length, radix)?), at + length + 1));
            }
            Some(byte) if char::from(*byte).is_digit(radix) => {}
            Some(_) => break,
        }
    }
    Err(Stop::Not)
}

/// The number that so many digits from `at` on are, eight at most.
fn number(text: &[u8], at: usize, length: usize, radix: u32) -> Result<u32, Stop> {
    (at..at + length).try_fold(0, |number, at| {
        let byte = text.get(at).ok_or(Stop::Cut)?;
        Ok(number * radix + char::from(*byte).to_digit(radix).ok_or(Stop::Not)?)
    })
}

fn character(number: u32) -> Meaning {
    Meaning::Character(char::from_u32(number).unwrap_or(char::REPLACEMENT_CHARACTER))
}
