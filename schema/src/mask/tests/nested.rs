//! Escapes within escapes, in any order: what was escaped for JSON stands in an address, and that
//! in markup.

use super::*;

type Encoding = (&'static str, fn(&str) -> String);

/// What programs make of a text that stands in another one.
const ENCODINGS: [Encoding; 12] =
    [
        ("JSON of Go", |text| json(text, "&<>", false)),
        ("JSON of PHP", |text| json(text, "", true).replace('/', r"\/")),
        ("JSON of .NET", |text| json(text, "&<>'+`", true).replace(r#"\""#, r"\u0022")),
        ("JSON of Django for scripts", |text| {
            json(text, "", true).replace(r"\\", r"\u005C").replace(r#"\""#, r"\u0022")
        }),
        ("Python's repr", python),
        ("octal of C", |text| {
            bytes(
                text,
                |byte| byte.is_ascii_graphic() && !br#""\"#.contains(&byte),
                |byte| format!("\\{byte:03o}"),
            )
        }),
        ("hexadecimal", |text| {
            bytes(
                text,
                |byte| byte.is_ascii_graphic() && !br#""\"#.contains(&byte),
                |byte| format!("\\x{byte:02x}"),
            )
        }),
        ("an address", |text| address(text, "/-_.~", |byte| format!("%{byte:02X}"))),
        ("an address of few escapes", |text| {
            address(text, "/-_.~!*'();:@&=+$,?#", |byte| format!("%{byte:02x}"))
        }),
        ("a form", |text| {
            address(text, "-_.~", |byte| {
                if byte == b' ' { "+".to_owned() } else { format!("%{byte:02X}") }
            })
        }),
        ("markup", |text| markup(text, |c| c.is_ascii() && !"&<>\"'".contains(c))),
        ("markup with every sign in numbers", |text| markup(text, |c| c.is_ascii_alphanumeric())),
    ];

fn json(text: &str, escaped: &str, ascii: bool) -> String {
    let json = serde_json::to_string(text).unwrap();
    let mut written = String::new();
    for c in json[1..json.len() - 1].chars() {
        if escaped.contains(c) || (ascii && !c.is_ascii()) {
            c.encode_utf16(&mut [0; 2])
                .iter()
                .for_each(|unit| written.push_str(&format!("\\u{unit:04x}")));
        } else {
            written.push(c);
        }
    }
    written
}

fn python(text: &str) -> String {
    let quote = if text.contains('\'') && !text.contains('"') { '"' } else { '\'' };
    text.replace('\\', r"\\")
        .replace(quote, &format!("\\{quote}"))
        .replace('\n', r"\n")
        .replace('\t', r"\t")
}

fn bytes(text: &str, stays: fn(u8) -> bool, escape: fn(u8) -> String) -> String {
    text.bytes()
        .map(|byte| if stays(byte) { char::from(byte).to_string() } else { escape(byte) })
        .collect()
}

fn address(text: &str, stays: &str, escape: fn(u8) -> String) -> String {
    let stays = |byte: u8| byte.is_ascii_alphanumeric() || stays.as_bytes().contains(&byte);
    text.bytes()
        .map(|byte| if stays(byte) { char::from(byte).to_string() } else { escape(byte) })
        .collect()
}

fn markup(text: &str, stays: fn(char) -> bool) -> String {
    let named = |c| match c {
        '&' => "&amp;".to_owned(),
        '<' => "&lt;".to_owned(),
        '"' => "&quot;".to_owned(),
        c => format!("&#{};", u32::from(c)),
    };
    text.chars().map(|c| if stays(c) { c.to_string() } else { named(c) }).collect()
}

/// Shows it whole, in single bytes, and in two pieces.
fn shown(secrets: &Secrets, text: &str) -> String {
    let pushed = |pieces: &mut dyn Iterator<Item = &[u8]>| {
        let mut masker = Masker::default();
        let mut shown: Vec<u8> =
            pieces.flat_map(|piece| masker.push(secrets, piece, false)).collect();
        shown.extend(masker.push(secrets, b"", true));
        String::from_utf8_lossy(&shown).into_owned()
    };
    let whole = secrets.hide(text);
    for size in [1, 7, text.len() / 2 + 1] {
        assert_eq!(
            pushed(&mut text.as_bytes().chunks(size)),
            whole,
            "{text:?} in pieces of {size}"
        );
    }
    whole
}

fn random() -> impl FnMut(usize) -> usize {
    let mut seed = 5_u64;
    move |limit| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) as usize % limit
    }
}

#[test]
fn json_in_an_address_is_hidden_whoever_wrote_it() {
    // Others made what is expected here: Go's json.Marshal and url.QueryEscape, PHP's json_encode
    // and urlencode, .NET, Python.
    for (secret, form) in [
        ("P@ss&word<2026>", r"P%40ss%5Cu0026word%5Cu003c2026%5Cu003e"),
        ("kL9/xQ2+aa=secret", r"kL9%5C%2FxQ2%2Baa%3Dsecret"),
        ("it's+hunter22", r"it%5Cu0027s%5Cu002Bhunter22"),
        (r#"pa"ss+word-1"#, r"pa%5C%5C%5C%22ss%2Bword-1"),
        ("it's-\"hunter22\"", r"it%5C%27s-%22hunter22%22"),
        ("pässwörd-22", r"p%5C303%5C244ssw%5C303%5C266rd-22"),
        ("pässwörd-22", r"p%5Cxc3%5Cxa4ssw%5Cxc3%5Cxb6rd-22"),
        ("P@ss&word<2026>", r"P@ss&#37;5Cu0026word&#37;5Cu003c2026&#37;5Cu003e"),
        ("P@ss&word<2026>", r"P@ss\u00255Cu0026word%5Cu003c2026%255Cu003e"),
        ("P@ss&word<2026>", r"P@ss&#92;u0026word&#x5c;u003c2026&amp;#92;u003e"),
        ("P@ss&word<2026>", r"P@ss\u005Cu0026word\u005Cu003c2026\u005Cu003e"),
    ] {
        check(&[secret], &format!("<{form}|"), "<***|");
    }
}

#[test]
fn what_is_escaped_twice_or_three_times_is_hidden_in_every_order() {
    let signs: Vec<char> =
        "abcXYZ019\"'\\/&<>%+=$ {}!@#;:,.-_~`|()[]*?^\täß€é😀n".chars().collect();
    let mut next = random();
    for _ in 0..30 {
        let body: String = (0..6 + next(14)).map(|_| signs[next(signs.len())]).collect();
        // Where it begins and ends is told from what stands around it.
        let secret = format!("k{body}z");
        let secrets = Secrets::of(&[secret.as_bytes()]).unwrap();
        for (first, one) in ENCODINGS {
            for (second, two) in ENCODINGS {
                let (third, three) = ENCODINGS[next(ENCODINGS.len())];
                let twice = two(&one(&secret));
                for text in [&twice, &three(&twice)] {
                    let shown = shown(&secrets, &format!("<{text}>"));
                    assert_eq!(
                        shown, "<***>",
                        "{secret:?} as {first} in {second} (in {third}): {text}"
                    );
                }
            }
        }
    }
}

#[test]
fn what_is_no_secret_stays_however_it_is_escaped() {
    let secrets = Secrets::of(&[b"P@ss&word<2026>", b"C:\\new\\user", b"hunter22%41"]).unwrap();
    for (_, one) in ENCODINGS {
        for (_, two) in ENCODINGS {
            for text in [
                "P@ss&word<2025>",
                "C:\\old\\user",
                "hunter2%2241",
                "{\"url\": \"a?b=c&d=%20e\"}",
                "100%\\&amp;\\u0026%5Cu0026",
            ] {
                let text = two(&one(text));
                assert_eq!(shown(&secrets, &text), text);
            }
        }
    }
}

#[test]
fn escapes_in_escapes_are_held_back_to_a_limit_and_take_time_in_proportion() {
    let secrets = Secrets::of(&[b"P@ss&word<2026>", b"\"quoted\"", b"hunter22"]).unwrap();
    for endless in [
        "\\",
        "%5C",
        "%255C",
        "\\u005c",
        "&#92;",
        "&amp;#92;",
        "%25",
        "25",
        "\\u0025",
        "&#37;",
        "%26",
        "%26amp%3B",
        "\\u0026",
        "&#37;5C",
        "\\\\\\\\u0025255C",
        "%5Cu0025",
        "%26%2337;5C",
        "%5C%75%30%30%32%35",
        "%5Cu0026#37;5C",
    ] {
        let mut masker = Masker::default();
        let text = endless.repeat(30_000 / endless.len());
        for piece in text.as_bytes().chunks(100) {
            masker.push(&secrets, piece, false);
            assert!(masker.held.len() < 6_000, "{endless}: {} held", masker.held.len());
        }
        let least = |text: &str| {
            let once = || {
                let began = std::time::Instant::now();
                secrets.hide(text);
                began.elapsed()
            };
            (0..3).map(|_| once()).min().unwrap()
        };
        let (once, more) = (least(&text[..text.len() / 4]), least(&text));
        assert!(
            more <= once * 10 + std::time::Duration::from_millis(100),
            "{endless}: {once:?}, and {more:?} for four times as much"
        );
    }
}

#[test]
fn digits_in_lines_with_blanks_between_are_hidden() {
    // `printf %s ... | od -An -tx1`, wherever its lines end within the secret.
    let secret = "hunter22-and-more-of-it-for-lines";
    let secrets = Secrets::of(&[secret.as_bytes()]).unwrap();
    for before in 0..17 {
        let text = format!("{}{secret}x", "u".repeat(before));
        let lines: Vec<String> = text
            .as_bytes()
            .chunks(16)
            .map(|line| line.iter().map(|byte| format!(" {byte:02x}")).collect())
            .collect();
        for line_end in ["\n", "\\n"] {
            let shown = shown(&secrets, &lines.join(line_end));
            let left = shown.replace(line_end, "").replace([' ', '*'], "");
            assert_eq!(left, format!("{}78", "75".repeat(before)), "{shown}");
        }
    }
    // Lines of base64 that look like digits stay lines of base64.
    check(&[secret], "aHVudGVy\n MjItYW5kLW1vcmUtb2YtaXQtZm9yLWxpbmVz.", "***\n ***.");
}
