//! The forms in which programs print a value that no decoding of escapes (`decoded`) leads back to
//! it: with its quotes doubled, and encoded as base64 or digits. Called by `mask` once for each set
//! of secrets.

use base64::Engine;
use base64::engine::general_purpose::{
    GeneralPurpose, STANDARD, STANDARD_NO_PAD, URL_SAFE, URL_SAFE_NO_PAD,
};

mod rare;

pub(super) use self::rare::{rarely_encoded, rarely_written};

/// A value, without what ends its last line, and each of its lines.
pub(super) fn parts(value: &[u8]) -> Vec<&[u8]> {
    let trimmed = value.trim_ascii_end();
    let lines = trimmed.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii);
    let mut parts: Vec<&[u8]> = [value, trimmed].into_iter().chain(lines).collect();
    parts.sort_unstable();
    parts.dedup();
    parts
}

/// As it stands, and as it is written where no escape tells: quotes are doubled or taken out of
/// quotes, a blank is `+`. And as JSON, for JSON that was escaped as a whole, and because decoding
/// drops backslashes at the end.
pub(super) fn written(plain: &[u8]) -> Vec<Vec<u8>> {
    let mut forms = vec![plain.to_owned()];
    let pairs: [&[(&[u8], &[u8])]; 5] = [
        // YAML, SQL and PowerShell; CSV.
        &[(b"'", b"''")],
        &[(b"\"", b"\"\"")],
        // Within '…', as Python's `shlex.quote` and as bash, Ruby and PHP write a quote there.
        &[(b"'", b"'\"'\"'")],
        &[(b"'", b"'\\''")],
        // HCL.
        &[(b"${", b"$${"), (b"%{", b"%%{")],
    ];
    forms.extend(pairs.iter().map(|pairs| replaced(plain, pairs)));
    if let Ok(text) = std::str::from_utf8(plain) {
        let json = json(text);
        forms.push(ascii(&json, false).into_bytes());
        if plain.ends_with(b"\\") {
            forms.push(self::json(&json).into_bytes());
        }
        forms.push(json.into_bytes());
        // What escapes of bytes make of it where they are of characters: of all that fit (Python's
        // ascii() writes `\xe4`, and `\u20ac` beside it), and of those that are not to be
        // seen (its repr()).
        forms.extend([
            with_bytes(text, |_| true),
            with_bytes(text, |byte| matches!(byte, 0x80..=0xa0 | 0xad)),
        ]);
    }
    // A form of an address writes a blank so, also one in JSON.
    let with_plus: Vec<_> = forms
        .iter()
        .filter(|form| form.contains(&b' '))
        .map(|form| replaced(form, &[(b" ", b"+")]))
        .collect();
    forms.extend(with_plus);
    forms.sort_unstable();
    forms.dedup();
    forms
}

/// As base64, alone or within a longer text, and as hexadecimal digits: what programs break into
/// lines.
pub(super) fn encoded(plain: &[u8]) -> Vec<Vec<u8>> {
    let mut forms = base64(plain);
    for upper in [false, true] {
        forms.push(digits(plain, upper).concat());
    }
    forms
}

/// Each byte as two hexadecimal digits.
fn digits(bytes: &[u8], upper: bool) -> Vec<Vec<u8>> {
    bytes
        .iter()
        .map(|byte| if upper { format!("{byte:02X}") } else { format!("{byte:02x}") }.into_bytes())
        .collect()
}

/// As base64, alone and within a longer text.
fn base64(plain: &[u8]) -> Vec<Vec<u8>> {
    let mut forms: Vec<Vec<u8>> = [STANDARD, STANDARD_NO_PAD, URL_SAFE, URL_SAFE_NO_PAD]
        .iter()
        .map(|engine| engine.encode(plain).into_bytes())
        .collect();
    for before in 0..3 {
        forms.push(within_base64(&STANDARD_NO_PAD, plain, before));
        forms.push(within_base64(&URL_SAFE_NO_PAD, plain, before));
    }
    forms
}

/// What of the value's base64 does not depend on what stands around it, when `before` bytes more
/// than a multiple of three stand before it: `Basic` authorization has `user:` there.
fn within_base64(engine: &GeneralPurpose, value: &[u8], before: usize) -> Vec<u8> {
    let padded = [&[0; 2][..before], value].concat();
    let text = engine.encode(&padded);
    // A character holds six bits: those that hold any bit of a neighbour are left out.
    let (first, end) = ((before * 8).div_ceil(6), padded.len() * 8 / 6);
    text.as_bytes()[first..end].to_owned()
}

/// With each of these texts replaced, in one pass.
fn replaced(bytes: &[u8], pairs: &[(&[u8], &[u8])]) -> Vec<u8> {
    let mut text = Vec::with_capacity(bytes.len());
    let mut left = bytes;
    while let Some((first, rest)) = left.split_first() {
        let found =
            pairs.iter().find_map(|(from, to)| left.strip_prefix(*from).map(|rest| (rest, *to)));
        left = match found {
            Some((rest, to)) => {
                text.extend_from_slice(to);
                rest
            }
            None => {
                text.push(*first);
                rest
            }
        };
    }
    text
}

/// With one byte for each character beyond ASCII of which one is the number and is `chosen`.
fn with_bytes(text: &str, chosen: fn(u8) -> bool) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(text.len());
    for character in text.chars() {
        match u8::try_from(character) {
            Ok(byte) if chosen(byte) => bytes.push(byte),
            _ => bytes.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes()),
        }
    }
    bytes
}

/// As a string of JSON, without its quotes.
fn json(text: &str) -> String {
    let json = serde_json::to_string(text).expect("a string is JSON");
    json[1..json.len() - 1].to_owned()
}

/// With `\uXXXX` for everything beyond ASCII, in digits of either case.
fn ascii(json: &str, upper: bool) -> String {
    let mut text = String::with_capacity(json.len());
    for character in json.chars() {
        if character.is_ascii() {
            text.push(character);
        } else {
            let mut units = [0; 2];
            let units = character.encode_utf16(&mut units).iter();
            units.for_each(|unit| {
                text.push_str(&if upper {
                    format!("\\u{unit:04X}")
                } else {
                    format!("\\u{unit:04x}")
                })
            });
        }
    }
    text
}
