//! Forms that few programs print: of whole values of a moderate size alone, since each is another
//! text to look for, and a key of many lines has hundreds of the usual ones. Called by `mask` once
//! for each set of secrets.

use super::{ascii, base64, digits};

/// Longest value that is looked for in these forms, bytes: passwords and tokens.
const LIMIT_BYTES: usize = 512;

/// What base32 is written with. Source: RFC 4648, 6.
const BASE32: &[u8; 32] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";

/// In UTF-16.
pub(in crate::mask) fn rarely_written(plain: &[u8]) -> Vec<Vec<u8>> {
    if plain.len() > LIMIT_BYTES {
        return Vec::new();
    }
    std::str::from_utf8(plain).map_or_else(|_| Vec::new(), |text| utf16(text).to_vec())
}

/// Encoded: hexadecimal digits with something between them, base32, and as base64 what was escaped
/// for JSON or is UTF-16.
pub(in crate::mask) fn rarely_encoded(plain: &[u8]) -> Vec<Vec<u8>> {
    if plain.len() > LIMIT_BYTES {
        return Vec::new();
    }
    let mut forms = Vec::new();
    for between in [b":".as_slice(), b"-", b" "] {
        for upper in [false, true] {
            forms.push(digits(plain, upper).join(between));
        }
    }
    let within = (0..5).map(|before| within_base32(plain, before));
    for text in within.chain(base32(plain)) {
        forms.push(text.to_ascii_lowercase());
        forms.push(text);
    }
    if let Ok(text) = std::str::from_utf8(plain) {
        let json = super::json(text);
        let usual = [json.replace('/', "\\/"), ascii(&json, false), json];
        let all = usual
            .into_iter()
            .chain(json_escaped(text))
            .map(String::into_bytes)
            .filter(|form| form != plain);
        forms.extend(all.chain(utf16(text)).flat_map(|form| base64(&form)));
    }
    forms
}

/// As .NET (System.Text.Json) and Gson write a string, which escape for markup too.
fn json_escaped(text: &str) -> Vec<String> {
    let json = super::json(text);
    let with = |json: &str, escaped: &[char], upper: bool| -> String {
        let each = json.chars().map(|c| match escaped.contains(&c) {
            true if upper => format!("\\u{:04X}", u32::from(c)),
            true => format!("\\u{:04x}", u32::from(c)),
            false => c.to_string(),
        });
        each.collect()
    };
    let net = with(&json.replace("\\\"", "\\u0022"), &['<', '>', '&', '\'', '+', '`'], true);
    vec![ascii(&net, true), with(&json, &['<', '>', '&', '\'', '='], false)]
}

/// Both orders of bytes.
fn utf16(text: &str) -> [Vec<u8>; 2] {
    [
        text.encode_utf16().flat_map(u16::to_le_bytes).collect(),
        text.encode_utf16().flat_map(u16::to_be_bytes).collect(),
    ]
}

/// What of the value's base32 does not depend on what stands around it, when `before` bytes more
/// than a multiple of five stand before it.
fn within_base32(value: &[u8], before: usize) -> Vec<u8> {
    let padded = [&[0; 4][..before], value].concat();
    // A character holds five bits: those that hold any bit of a neighbour are left out.
    let (first, end) = ((before * 8).div_ceil(5), padded.len() * 8 / 5);
    (first..end).map(|at| base32_character(&padded, at)).collect()
}

/// The value alone, without and with what fills the last eight characters.
fn base32(value: &[u8]) -> [Vec<u8>; 2] {
    let bare: Vec<u8> =
        (0..(value.len() * 8).div_ceil(5)).map(|at| base32_character(value, at)).collect();
    let mut filled = bare.clone();
    filled.resize(bare.len().next_multiple_of(8), b'=');
    [bare, filled]
}

/// The character for five bits; beyond the end they are 0.
fn base32_character(bytes: &[u8], at: usize) -> u8 {
    let bit = |at: usize| bytes.get(at / 8).map_or(0, |byte| byte >> (7 - at % 8) & 1);
    BASE32[(0..5).fold(0, |number, more| number << 1 | usize::from(bit(at * 5 + more)))]
}
