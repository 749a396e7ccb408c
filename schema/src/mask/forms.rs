//! The forms in which programs print a value: as it stands, escaped for shells, addresses, JSON and markup, and encoded as base64
//! or digits. Called by `mask` once for each set of secrets.

use base64::Engine;
use base64::engine::general_purpose::{GeneralPurpose, STANDARD, STANDARD_NO_PAD, URL_SAFE, URL_SAFE_NO_PAD};

mod rare;

pub(super) use self::rare::{rarely_encoded, rarely_escaped};

/// What percent-encoders leave as it is beside letters and digits. Sources: RFC 3986, 2.3; Go's `net/url` (`shouldEscape`);
/// ECMAScript's `encodeURIComponent` and `encodeURI`; Python's `urllib.parse.quote`; the URL standard's forms, which
/// Java's `URLEncoder` has too; PHP's `urlencode`; the URL standard's user information and path.
const LEFT_BY_PERCENT_ENCODERS: [&[u8]; 12] = [
    b"-._~",
    b"-._~/",
    b"-_.!~*'()",
    b"-_.!~*'();,/?:@&=+$#",
    // Go's PathEscape, EscapedPath, and user information.
    b"-._~$&+=:@",
    b"-._~$&+,/:;=@",
    b"-._~$&+,;=",
    b"*-._",
    b"-_.",
    b"-._~!$&'()*+,%",
    b"-._~!$&'()*+,;=:@/%",
    b"",
];

/// What bash's `printf %q` puts a backslash before.
const QUOTED_BY_BASH: &[u8] = b" \t\\\"'|&;()<>!{}*[]?^$`,";
/// The same for zsh's and dash's, and for programs that quote everything that is not harmless.
const HARMLESS_IN_SHELLS: &[u8] = b"@%_-+=:,./";

/// A value, without what ends its last line, and each of its lines.
pub(super) fn parts(value: &[u8]) -> Vec<&[u8]> {
    let trimmed = value.trim_ascii_end();
    let lines = trimmed.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii);
    let mut parts: Vec<&[u8]> = [value, trimmed].into_iter().chain(lines).collect();
    parts.sort_unstable();
    parts.dedup();
    parts
}

/// As it stands, and escaped: for addresses, JSON, markup, shells and the literals of languages.
pub(super) fn escaped(plain: &[u8]) -> Vec<Vec<u8>> {
    let mut forms = vec![plain.to_owned()];
    for left in LEFT_BY_PERCENT_ENCODERS {
        for lower in [false, true] {
            let percent = percent_encoded(plain, left, lower);
            forms.push(replaced(&percent, &[(b"%20", b"+")]));
            forms.push(percent);
        }
    }
    // Within '…', as Python's `shlex.quote` and as bash, Ruby and PHP write a quote there.
    forms.push(replaced(plain, &[(b"'", b"'\"'\"'")]));
    forms.push(replaced(plain, &[(b"'", b"'\\''")]));
    // Within "…".
    forms.push(before_each(plain, b'\\', |byte| b"\\\"$`".contains(&byte)));
    forms.push(before_each(plain, b'\\', |byte| b"\\\"$`!".contains(&byte)));
    // Without quotes.
    forms.push(before_each(plain, b'\\', |byte| QUOTED_BY_BASH.contains(&byte)));
    forms.push(before_each(plain, b'\\', |byte| byte.is_ascii() && !byte.is_ascii_alphanumeric() && !HARMLESS_IN_SHELLS.contains(&byte)));
    // $'…', and the literals of Python, C and the like.
    let literal = replaced(plain, &[(b"\\", b"\\\\"), (b"\n", b"\\n"), (b"\r", b"\\r"), (b"\t", b"\\t")]);
    forms.push(replaced(&literal, &[(b"'", b"\\'")]));
    forms.push(literal);
    for [double, single] in [
        [b"&quot;".as_slice(), b"&#39;".as_slice()],
        [b"&#34;", b"&#39;"],
        [b"&quot;", b"&apos;"],
        [b"&quot;", b"&#x27;"],
        [b"&quot;", b"&#039;"],
        [b"\"", b"'"],
    ] {
        forms.push(replaced(plain, &[(b"&", b"&amp;"), (b"<", b"&lt;"), (b">", b"&gt;"), (b"\"", double), (b"'", single)]));
    }
    if let Ok(text) = std::str::from_utf8(plain) {
        let json = &json(text);
        forms.push(json.as_bytes().to_owned());
        // As PHP writes it, as Go does, and with nothing but ASCII, as Python does.
        forms.push(json.replace('/', "\\/").into_bytes());
        let go = json.replace('<', "\\u003c").replace('>', "\\u003e").replace('&', "\\u0026");
        // A document within a string of another.
        for text in [json, &go] {
            forms.push(self::json(text).into_bytes());
        }
        forms.push(go.into_bytes());
        forms.push(ascii(json, false).into_bytes());
        forms.push(ascii(json, true).into_bytes());
        forms.push(ascii(&json.replace('<', "\\u003C").replace('>', "\\u003E").replace('&', "\\u0026"), true).into_bytes());
    }
    forms
}

/// As base64, alone or within a longer text, and as hexadecimal digits: what programs break into lines.
pub(super) fn encoded(plain: &[u8]) -> Vec<Vec<u8>> {
    let mut forms = base64(plain);
    for upper in [false, true] {
        forms.push(digits(plain, upper).concat());
    }
    forms
}

/// Each byte as two hexadecimal digits.
fn digits(bytes: &[u8], upper: bool) -> Vec<Vec<u8>> {
    bytes.iter().map(|byte| if upper { format!("{byte:02X}") } else { format!("{byte:02x}") }.into_bytes()).collect()
}

/// As base64, alone and within a longer text.
fn base64(plain: &[u8]) -> Vec<Vec<u8>> {
    let mut forms: Vec<Vec<u8>> =
        [STANDARD, STANDARD_NO_PAD, URL_SAFE, URL_SAFE_NO_PAD].iter().map(|engine| engine.encode(plain).into_bytes()).collect();
    for before in 0..3 {
        forms.push(within_base64(&STANDARD_NO_PAD, plain, before));
        forms.push(within_base64(&URL_SAFE_NO_PAD, plain, before));
    }
    forms
}

/// What of the value's base64 does not depend on what stands around it, when `before` bytes more than a multiple of three
/// stand before it: `Basic` authorization has `user:` there.
fn within_base64(engine: &GeneralPurpose, value: &[u8], before: usize) -> Vec<u8> {
    let padded = [&[0; 2][..before], value].concat();
    let text = engine.encode(&padded);
    // A character holds six bits: those that hold any bit of a neighbour are left out.
    let (first, end) = ((before * 8).div_ceil(6), padded.len() * 8 / 6);
    text.as_bytes()[first..end].to_owned()
}

/// With `%XX` for everything but letters, digits and what is `left`.
fn percent_encoded(bytes: &[u8], left: &[u8], lower: bool) -> Vec<u8> {
    let mut encoded = Vec::with_capacity(bytes.len() * 3);
    for byte in bytes {
        if byte.is_ascii_alphanumeric() || left.contains(byte) {
            encoded.push(*byte);
        } else {
            encoded.extend(if lower { format!("%{byte:02x}") } else { format!("%{byte:02X}") }.into_bytes());
        }
    }
    encoded
}

/// With each of these texts replaced, in one pass.
fn replaced(bytes: &[u8], pairs: &[(&[u8], &[u8])]) -> Vec<u8> {
    let mut text = Vec::with_capacity(bytes.len());
    let mut left = bytes;
    while let Some((first, rest)) = left.split_first() {
        let found = pairs.iter().find_map(|(from, to)| left.strip_prefix(*from).map(|rest| (rest, *to)));
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

/// With `mark` before each byte that needs it.
fn before_each(bytes: &[u8], mark: u8, needs: impl Fn(u8) -> bool) -> Vec<u8> {
    bytes.iter().flat_map(|byte| needs(*byte).then_some(mark).into_iter().chain([*byte])).collect()
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
            units.for_each(|unit| text.push_str(&if upper { format!("\\u{unit:04X}") } else { format!("\\u{unit:04x}") }));
        }
    }
    text
}
