//! Escapes, in whatever mixture.

use super::*;

/// Forms of one value, made by others: what is expected is all of it hidden, and nothing beside it.
fn check_forms(secret: &str, forms: &[(&str, &str)]) {
    for (maker, form) in forms {
        // The backslash before a first letter is shown at once, since a prompt may end with one.
        let expected =
            if form.starts_with('\\') && secret.starts_with(|c: char| c.is_ascii_alphanumeric()) {
                "<\\***>"
            } else {
                "<***>"
            };
        let shown = Secrets::of(&[secret.as_bytes()]).unwrap().hide(&format!("<{form}>"));
        assert_eq!(shown, expected, "{maker}: {form}");
        check(&[secret], &format!("<{form}>"), expected);
    }
}

#[test]
fn every_way_to_escape_is_known_however_it_is_mixed() {
    const SECRET: &str = r#"it's "a"/b+c=ä{$x}\&<y>"#;
    let every = |escape: &dyn Fn(u8) -> String| SECRET.bytes().map(escape).collect::<String>();
    let units: String = SECRET.chars().map(|c| format!("\\u{:04x}", u32::from(c))).collect();
    let entities: String = SECRET.chars().map(|c| format!("&#{};", u32::from(c))).collect();
    let digits: String = SECRET.chars().map(|c| format!("&#X{:04X};", u32::from(c))).collect();
    check_forms(
        SECRET,
        &[
            ("YAML, SQL, PowerShell", r#"it''s "a"/b+c=ä{$x}\&<y>"#),
            ("CSV", r#"it's ""a""/b+c=ä{$x}\&<y>"#),
            ("every byte for an address", &every(&|byte| format!("%{byte:02x}"))),
            ("the same in capitals", &every(&|byte| format!("%{byte:02X}"))),
            ("every character for JSON", &units),
            ("every byte in octal", &every(&|byte| format!("\\{byte:03o}"))),
            ("every byte in hexadecimal", &every(&|byte| format!("\\x{byte:02x}"))),
            ("every character for markup", &entities),
            ("the same in hexadecimal", &digits),
            ("JSON, capitals", r#"it's \"a\"/b+c=\u00E4{$x}\\&<y>"#),
            ("Python's ascii()", r#"it\'s "a"/b+c=\xe4{$x}\\&<y>"#),
            ("the same, capitals", r#"it\'s "a"/b+c=\xE4{$x}\\&<y>"#),
            ("Python's bytes", r#"it\'s "a"/b+c=\xc3\xa4{$x}\\&<y>"#),
            ("octal", r#"it\'s "a"/b+c=\303\244{$x}\\&<y>"#),
            (".NET, one character", r#"it's \"a\"/b\u002Bc=ä{$x}\\&<y>"#),
            ("Gson, two of them", r#"it\u0027s \"a\"/b+c\u003dä{$x}\\&<y>"#),
            ("PHP, with units", r#"it's \"a\"\/b+c=\u00e4{$x}\\&<y>"#),
            ("one entity in plain text", r#"it's &quot;a&quot;/b+c=ä{$x}\&<y>"#),
            ("a numeric entity", r#"it's "a"/b+c=&#228;{$x}\&<y>"#),
            ("a numeric entity in hexadecimal", r#"it's "a"/b+c=&#xe4;{$x}\&<y>"#),
            ("the same in capitals", r#"it's "a"/b+c=&#XE4;{$x}\&<y>"#),
            (
                "markup within markup",
                r#"it&amp;#39;s &amp;quot;a&amp;quot;/b+c=ä{$x}\&amp;amp;&amp;lt;y&amp;gt;"#,
            ),
            ("JSON in JSON", r#"it's \\\"a\\\"/b+c=\\u00e4{$x}\\\\&<y>"#),
            ("JSON in JSON in JSON", r#"it's \\\\\\\"a\\\\\\\"/b+c=ä{$x}\\\\\\\\&<y>"#),
            (
                "JSON in an address",
                "it's%20%5C%22a%5C%22%2Fb%2Bc%3D%C3%A4%7B%24x%7D%5C%5C%26%3Cy%3E",
            ),
            ("JSON in markup", r#"it's \&quot;a\&quot;/b+c=ä{$x}\\&amp;&lt;y&gt;"#),
            (
                "markup in JSON",
                r#"it\u0026#39;s \u0026#34;a\u0026#34;/b+c=ä{$x}\\\u0026amp;\u0026lt;y\u0026gt;"#,
            ),
            ("YAML in JSON", r#"it''s \"a\"/b+c=ä{$x}\\&<y>"#),
            (
                "an address twice",
                "it%2527s%2520%2522a%2522%252Fb%252Bc%253D%25C3%25A4%257B%2524x%257D%255C%2526%\
                 253Cy%253E",
            ),
        ],
    );
    check_forms("pw${x}%{y}z", &[("HCL", "pw$${x}%%{y}z"), ("HCL in JSON", r"pw$${x}\u0025%{y}z")]);
    check_forms(
        "\"quoted\" äöü",
        &[
            ("JSON", r#"\"quoted\" äöü"#),
            ("JSON, ASCII", r#"\u0022quoted\" \u00e4\u00f6\u00FC"#),
            ("CSV", "\"\"quoted\"\" äöü"),
        ],
    );
    check_forms(
        "😀 hunter22",
        &[
            ("units", r"\ud83d\ude00 hunter22"),
            ("Rust", r"\u{1f600} hunter22"),
            ("Python", r"\U0001f600 hunter22"),
        ],
    );
}

#[test]
fn base64_that_was_escaped_itself_is_known() {
    // Its base64 holds `+`, `/` and `=`.
    let secret = "pw>>>???01";
    assert_eq!(STANDARD.encode(secret), "cHc+Pj4/Pz8wMQ==");
    for form in [
        "cHc%2BPj4%2FPz8wMQ%3D%3D",
        "cHc%2bPj4%2fPz8wMQ%3d%3d",
        r"cHc\u002BPj4\/Pz8wMQ\u003d\u003d",
        "cHc&#43;Pj4&#x2F;Pz8wMQ&#61;&#61;",
    ] {
        check(&[secret], &format!("<{form}>"), "<***>");
    }
}

#[test]
fn a_secret_that_looks_escaped_is_known_plain_and_escaped() {
    for (secret, forms) in [
        (
            "a%41b-hunter",
            ["a%41b-hunter", "a%2541b-hunter", "a%252541b-hunter", "%61%25%34%31%62%2dhunter"],
        ),
        (
            r"C:\new\user",
            [r"C:\new\user", r"C:\\new\\user", r"C:\\\\new\\\\user", "C%3A%5Cnew%5Cuser"],
        ),
        (
            r"C:\u0041-user",
            [r"C:\u0041-user", r"C:\\u0041-user", r"C:\u005cu0041-user", "C:&#92;u0041-user"],
        ),
        (
            "a&amp;b&lt;c-user",
            [
                "a&amp;b&lt;c-user",
                "a&amp;amp;b&amp;lt;c-user",
                r"a\u0026amp;b\u0026lt;c-user",
                "a%26amp%3Bb%26lt%3Bc-user",
            ],
        ),
        (r"hunter22\", [r"hunter22\", r"hunter22\\", r"hunter22\\\\", "hunter22%5C"]),
        (r"hunter<\", [r"hunter\u003c\\", r"hunter&lt;\", r"hunter\<\\", "hunter%3c%5c"]),
        (r"7''''\n", [r"7''''\n", r"7\'\'\'\'\\n", r"7&#39;&#39;&#39;&#39;\n", r"7''''''''\n"]),
        ("hunter22%", ["hunter22%", "hunter22%25", "hunter22&#37;", "%68unter22%25"]),
        ("''''\"\"ab", ["''''\"\"ab", "''''''''\"\"ab", "''''\"\"\"\"ab", r#"\'\'\'\'\"\"ab"#]),
    ] {
        for form in forms {
            check(&[secret], &format!("<{form}>"), "<***>");
        }
    }
}

#[test]
fn a_secret_of_several_lines_is_known_escaped() {
    let secret = "first \"line\"\nsecond ä line\n";
    check(&[secret], r#"<first \"line\"\nsecond \u00e4 line\n>"#, "<***>");
    check(&[secret], r"<first &quot;line&quot;|second %C3%A4 line>", "<***|***>");
}

#[test]
fn escapes_without_an_end_are_held_back_to_a_limit() {
    let secrets = Secrets::of(&[b"hunter22", b"\"quoted\""]).unwrap();
    for endless in ["\\", "25", "amp;", "0", "uuml", "\\u005c"] {
        for begin in ["", "hun", "hun%", "hun&", "hun&#", "hun\\"] {
            let mut masker = Masker::default();
            masker.push(&secrets, begin.as_bytes(), false);
            for _ in 0..20 {
                masker.push(&secrets, endless.repeat(100).as_bytes(), false);
                assert!(
                    masker.held.len() < 1_000,
                    "{begin} and {endless}: {} held",
                    masker.held.len()
                );
            }
        }
    }
}

#[test]
fn what_is_shown_does_not_depend_on_the_pieces_whatever_is_escaped() {
    // All sorts of escapes, whole and cut off, next to each other in many orders, by a generator
    // with a fixed seed.
    let words = [
        "\\",
        "\\\\",
        "\\u00",
        "\\u0068",
        "\\u005c",
        "\\ud83d",
        "\\ude00",
        "\\x68",
        "\\n",
        "\n",
        "%",
        "%25",
        "%68",
        "%5C",
        "&",
        "&amp;",
        "&#104;",
        "&#",
        "lt;",
        "hun",
        "h",
        "u0068",
        "ter22",
        "68",
        "\"",
        "'",
        "''",
        "aHVu",
        "dGVyMjI=",
        "h\\unter\\",
        "%41b",
    ];
    let secrets =
        Secrets::of(&[b"hunter22", b"\\u0068\"h%", b"h\\unter\\", b"&%68\\n'un"]).unwrap();
    let mut seed = 7_u64;
    let mut next = |limit: usize| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) as usize % limit
    };
    for _ in 0..3_000 {
        let text: String = (0..next(12)).map(|_| words[next(words.len())]).collect();
        let whole = Masker::default().push(&secrets, text.as_bytes(), true);
        let mut masker = Masker::default();
        let (mut shown, mut at) = (Vec::new(), 0);
        while at < text.len() {
            let end = (at + 1 + next(4)).min(text.len());
            shown.extend(masker.push(&secrets, &text.as_bytes()[at..end], false));
            at = end;
        }
        shown.extend(masker.push(&secrets, b"", true));
        assert_eq!(String::from_utf8_lossy(&shown), String::from_utf8_lossy(&whole), "{text:?}");
    }
}

#[test]
fn text_full_of_escapes_is_held_back_no_longer_than_other_text() {
    // What is held back is looked through anew with each piece: all of it would be quadratic.
    let secrets = Secrets::of(&[b"hunter22", b"\\u0068\\u0068\\u0068", b"8\\u006"]).unwrap();
    for escaped in
        ["\\u0068%2568&amp;#104;\\\\", "\\u0068", "%2568", "&amp;#104;", "%5C%75", "''\"\""]
    {
        let mut masker = Masker::default();
        for piece in escaped.repeat(1_000).as_bytes().chunks(100) {
            masker.push(&secrets, piece, false);
            assert!(masker.held.len() < 300, "{} of {escaped}", masker.held.len());
        }
    }
}

#[test]
fn characters_of_one_byte_beside_others_are_known_escaped() {
    // Python's ascii(), its repr() (which escapes what is not to be seen), and PHP's htmlentities.
    check_forms(
        "Grüße€uro-2026",
        &[
            ("ascii()", r"Gr\xfc\xdfe\u20acuro-2026"),
            ("in JSON", r"Gr\\xfc\\xdfe\\u20acuro-2026"),
            ("PHP", "Gr&uuml;&szlig;e&euro;uro-2026"),
        ],
    );
    check_forms(
        "pass–wörd 2026",
        &[
            ("ascii()", r"pass\u2013w\xf6rd 2026"),
            ("PHP, twice", "pass&amp;ndash;w&amp;ouml;rd 2026"),
        ],
    );
    check_forms(
        "Été\u{a0}2026 – œuvre",
        &[
            ("repr()", r"Été\xa02026 – œuvre"),
            ("PHP", "&Eacute;t&eacute;&nbsp;2026 &ndash; &oelig;uvre"),
        ],
    );
    check_forms("κωδικός-2026", &[("PHP", "&kappa;&omega;&delta;&iota;&kappa;ό&sigmaf;-2026")]);
    check(&["äöüß"], r"<\xe4\xf6\xfc\xdf>", "<***>");
    check(
        &["first ä€ line\nsecond ö€ line"],
        r"<first \xe4\u20ac line\nsecond \xf6\u20ac line|second \xf6\u20ac line>",
        "<***|***>",
    );
}
