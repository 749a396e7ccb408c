//! What is masked, in which forms, and in what time.

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD, URL_SAFE, URL_SAFE_NO_PAD};

use super::*;

mod escaped;
mod named;
mod nested;
mod unseen;

/// Pushes `text` cut in two at every place, and in single bytes: what is shown must be the same
/// each time.
fn check(values: &[&str], text: &str, expected: &str) {
    check_bytes(&values.iter().map(|value| value.as_bytes()).collect::<Vec<_>>(), text, expected);
}

fn check_bytes(values: &[&[u8]], text: &str, expected: &str) {
    let secrets = Secrets::of(values).unwrap();
    for cut in 0..=text.len() {
        let mut masker = Masker::default();
        let mut shown = masker.push(&secrets, &text.as_bytes()[..cut], false);
        shown.extend(masker.push(&secrets, &text.as_bytes()[cut..], true));
        assert_eq!(String::from_utf8_lossy(&shown), expected, "cut at {cut}");
    }
    let mut masker = Masker::default();
    let mut shown: Vec<u8> =
        text.bytes().flat_map(|byte| masker.push(&secrets, &[byte], false)).collect();
    shown.extend(masker.push(&secrets, b"", true));
    assert_eq!(String::from_utf8_lossy(&shown), expected, "byte by byte");
}

#[test]
fn a_secret_cut_anywhere_is_hidden() {
    check(&["hunter22"], "a hunter22 b hunter2 c hunter22", "a *** b hunter2 c ***");
    check(&["aabaab"], "aaabaabaab", "a***aab");
}

#[test]
fn the_longer_of_two_secrets_is_hidden_whole() {
    check(&["secret", "secret-and-more"], "secret secret-and-more secret-and", "*** *** ***-and");
}

#[test]
fn encoded_secrets_are_hidden() {
    check(
        &["pass/word+1\"x"],
        "cGFzcy93b3JkKzEieA== pass%2Fword%2B1%22x pass/word+1\\\"x",
        "*** *** ***",
    );
}

#[test]
fn base64_hides_a_secret_wherever_it_stands_in_a_longer_text() {
    let secret = b"pass/word+1?>\xc3\xbf";
    let secrets = Secrets::of(&[secret]).unwrap();
    for before in 0..7 {
        for after in 0..7 {
            let text = [&b"user:abc"[..before], secret, &b"@host/x"[..after]].concat();
            for engine in [STANDARD, STANDARD_NO_PAD, URL_SAFE, URL_SAFE_NO_PAD] {
                let shown = secrets.hide(&engine.encode(&text));
                assert!(shown.contains("***"), "{before} before, {after} after: {shown}");
                // At each side a character or two depend on the neighbours and tell a few bits at
                // most.
                let around = engine.encode(&text).len() - shown.len() + 3;
                assert!(
                    around + 5 >= secret.len() * 8 / 6,
                    "{before} before, {after} after: {shown}"
                );
            }
        }
    }
}

#[test]
fn base64_in_lines_is_hidden() {
    let secret = "0123456789".repeat(20);
    let text = STANDARD.encode(&secret);
    let lines = |width: usize| {
        text.as_bytes()
            .chunks(width)
            .map(|line| String::from_utf8_lossy(line).into_owned())
            .collect::<Vec<_>>()
    };
    check(&[&secret], &lines(76).join("\n"), "***\n***\n***\n***");
    check(&[&secret], &lines(64).join("\r\n"), "***\r\n***\r\n***\r\n***\r\n***");
}

#[test]
fn escapes_of_every_common_writer_of_json_and_addresses_are_known() {
    check(
        &["a/b <ü&😀>"],
        "a\\/b <ü&😀>|a/b \\u003cü\\u0026😀\\u003e|a/b <\\u00fc&\\ud83d\\ude00>",
        "***|***|***",
    );
    check(
        &["a/b <&ü"],
        "a%2Fb%20%3C%26%C3%BC|a%2fb%20%3c%26%c3%bc|a%2Fb+%3C%26%C3%BC|a%2fb+%3c%26%c3%bc",
        "***|***|***|***",
    );
    check(&["tab\tquote\"back\\"], "tab\\tquote\\\"back\\\\", "***");
}

#[test]
fn a_secret_of_several_lines_is_hidden_whole_and_line_by_line() {
    check(&["first line\nsecond line\n"], "first line\nsecond line\n|second line|", "***|***|");
}

#[test]
fn what_masking_left_of_a_text_is_known() {
    for (shown, text, expected) in [
        ("", "", true),
        ("a", "a", true),
        ("a", "ab", false),
        ("***", "hunter22", true),
        ("a *** b *** c", "a hunter22 b hunter22 b c", true),
        ("a *** b *** c", "a hunter22 c", false),
        ("a ***", "b hunter22", false),
        ("*** a", "hunter22 a b", false),
        ("aa***aa", "aaa", false),
    ] {
        assert_eq!(may_hide(shown, text), expected, "{shown} of {text}");
    }
}

#[test]
fn nothing_is_held_back_that_is_no_beginning_of_a_secret() {
    let secrets = Secrets::of(&[b"hunter22"]).unwrap();
    assert_eq!(Masker::default().push(&secrets, b"prompt> ", false), b"prompt> ");
    assert_eq!(Masker::default().push(&secrets, b"prompt hun", false), b"prompt ");
}

#[test]
fn a_secret_in_json_in_an_address_of_a_form_is_known() {
    let form = "b=%7B%22p%22%3A+%22my+%5C%22pass%5C%22+word%22%7D";
    check(&[r#"my "pass" word"#], form, "b=%7B%22p%22%3A+%22***%22%7D");
}

#[test]
fn blanks_around_the_names_of_secrets_do_not_count() {
    let variables = [("PVN_SECRET_KEYS", " A, B "), ("A", "secret one"), ("B", "secret two")];
    let (secrets, _) =
        Secrets::of_environment(&variables.map(|(key, value)| (key.into(), value.into())));
    assert_eq!(secrets.unwrap().hide("secret one, secret two"), "***, ***");
}

#[test]
fn a_short_secret_is_refused_and_named() {
    let variables = [("PVN_SECRET_KEYS", "A,B,C"), ("A", "short"), ("B", "long enough")]
        .map(|(key, value)| (key.into(), value.into()));
    let (secrets, short) = Secrets::of_environment(&variables);
    assert_eq!(secrets.unwrap().hide("is long enough, short"), "is ***, short");
    assert_eq!(short, ["A"]);
}

#[test]
fn quoted_for_shells_and_addresses_of_every_common_kind() {
    let secret = "pa'ss w$rd/+&=:@!(x)*~;,?";
    for form in [
        // Python's shlex.quote; bash's ${x@Q}; printf %q; within "…".
        r#"pa'"'"'ss w$rd/+&=:@!(x)*~;,?"#,
        r"pa'\''ss w$rd/+&=:@!(x)*~;,?",
        r"pa\'ss\ w\$rd/+\&=:@\!\(x\)\*~\;\,\?",
        r"pa'ss w\$rd/+&=:@!(x)*~;,?",
        // Python's urllib.parse.quote and quote_plus; encodeURIComponent and encodeURI; Go's
        // PathEscape and QueryEscape; Java's URLEncoder.
        "pa%27ss%20w%24rd/%2B%26%3D%3A%40%21%28x%29%2A~%3B%2C%3F",
        "pa%27ss+w%24rd%2F%2B%26%3D%3A%40%21%28x%29%2A~%3B%2C%3F",
        "pa'ss%20w%24rd%2F%2B%26%3D%3A%40!(x)*~%3B%2C%3F",
        "pa'ss%20w$rd/+&=:@!(x)*~;,?",
        "pa%27ss%20w$rd%2F+&=:@%21%28x%29%2A~%3B%2C%3F",
        "pa%27ss+w%24rd%2F%2B%26%3D%3A%40%21%28x%29%2A~%3B%2C%3F",
        "pa%27ss+w%24rd%2F%2B%26%3D%3A%40%21%28x%29*%7E%3B%2C%3F",
        // Markup.
        "pa&#39;ss w$rd/+&amp;=:@!(x)*~;,?",
    ] {
        check(&[secret], &format!("<{form}>"), "<***>");
    }
}

#[test]
fn base64_in_lines_is_hidden_wherever_it_stands_and_however_it_is_broken() {
    let secret = "0123456789-abcdefghij_ABCDEFGHIJ.klmnopqrst";
    let secrets = Secrets::of(&[secret.as_bytes()]).unwrap();
    for before in 0..80 {
        let text = STANDARD
            .encode(format!("{}{secret}@host/some/more/words/behind/it", "u".repeat(before)));
        for (width, line_end) in
            [(76, "\n"), (64, "\r\n"), (60, "\n    "), (76, "\\n"), (20, "\n"), (1, "\n")]
        {
            let lines: Vec<_> = text
                .as_bytes()
                .chunks(width)
                .map(|line| std::str::from_utf8(line).unwrap())
                .collect();
            let broken = lines.join(line_end);
            let shown = secrets.hide(&broken);
            // At each side a character or two depend on the neighbours.
            let hidden = text.len() - shown.replace(line_end, "").replace("***", "").len();
            assert!(
                hidden + 3 >= secret.len() * 8 / 6,
                "{before} before, lines of {width}: {shown}"
            );
            assert_eq!(
                shown.matches(line_end).count(),
                broken.matches(line_end).count(),
                "lines stay lines"
            );
        }
    }
}

#[test]
fn a_broken_form_is_hidden_wherever_a_read_cuts_it() {
    let secret = "hunter22-and-more-of-it";
    let text = STANDARD.encode(secret);
    for line_end in ["\n", "\r\n  ", "\\n", "\\r\\n"] {
        let broken = format!("{}{line_end}{}", &text[..9], &text[9..]);
        check(&[secret], &format!("a {broken} z"), &format!("a ***{line_end}*** z"));
    }
}

#[test]
fn a_broken_form_is_hidden_whole_when_its_end_may_begin_another() {
    let secret = "hunter22-and-more-of-it";
    let text = STANDARD.encode(secret);
    let broken = format!("{}\n{}", &text[..9], &text[9..]);
    let other = format!("{}-another-one", &text[text.len() - 4..]);
    check(&[secret, &other], &format!("a {broken} z"), "a ***\n*** z");
}

#[test]
fn what_is_held_back_is_bounded_whatever_comes() {
    let secret = "hunter22-and-more-of-it";
    let secrets = Secrets::of(&[secret.as_bytes()]).unwrap();
    let mut masker = Masker::default();
    masker.push(&secrets, &STANDARD.encode(secret).as_bytes()[..9], false);
    for _ in 0..100 {
        masker.push(&secrets, &[b'\n'; 1000], false);
        assert!(masker.held.len() < 300, "{}", masker.held.len());
    }
}

#[test]
fn backslashes_are_held_back_no_longer_than_other_bytes() {
    let secrets = Secrets::of(&[b"hunter22-and-more-of-it"]).unwrap();
    let mut masker = Masker::default();
    let mut shown = 0;
    for length in [1, 2, 3, 1_000, 1_001] {
        shown += length;
        assert_eq!(
            masker.push(&secrets, &vec![b'\\'; length], false).len(),
            length,
            "after {shown} of them"
        );
        assert!(masker.held.is_empty());
    }
    assert_eq!(Masker::default().push(&secrets, b"C:\\", false), b"C:\\", "a prompt");
}

#[test]
fn an_escaped_line_break_is_one_wherever_a_read_cuts_it() {
    // The base64 of another one begins with the `n` of the break, and would hide only a part of
    // what begins after it.
    let secret = "0123456789abcdef";
    let text = STANDARD.encode(secret);
    let other = STANDARD.decode(format!("n{}", &text[..11])).unwrap();
    for before in ["", "x", "\\", "\\\\"] {
        check_bytes(
            &[secret.as_bytes(), &other],
            &format!("{before}\\n{text}|"),
            &format!("{before}\\n***|"),
        );
    }
}

#[test]
fn forms_that_few_programs_print_are_known_too() {
    // Others made what is expected here: bash, Python, PHP, .NET, Gson, PowerShell, `base32`, `xxd
    // -p -c1 | paste -sd:`.
    let secret = "pä'ss<w&rd/+1=";
    for form in [
        r"p\303\244\'ss<w&rd/+1=",
        r"p\xc3\xa4'ss<w&rd/+1=",
        r"p\u00E4'ss<w&rd/+1=",
        r"p\u00E4\u0027ss\u003Cw\u0026rd/\u002B1=",
        r"pä\u0027ss\u003cw\u0026rd/+1\u003d",
        r"p\u00E4'ss\u003Cw\u0026rd/+1=",
        "pä&#039;ss&lt;w&amp;rd/+1=",
        "p%25C3%25A4%2527ss%253Cw%2526rd%252F%252B1%253D",
        "p%25c3%25a4%2527ss%253cw%2526rd%252f%252b1%253d",
        "70:c3:a4:27:73:73:3c:77:26:72:64:2f:2b:31:3d",
        "70-C3-A4-27-73-73-3C-77-26-72-64-2F-2B-31-3D",
        "70 c3 a4 27 73 73 3c 77 26 72 64 2f 2b 31 3d",
    ] {
        check(&[secret], &format!("<{form}>"), "<***>");
    }
    let secrets = Secrets::of(&[secret.as_bytes()]).unwrap();
    for json in [r"p\u00e4'ss<w&rd/+1=", r"pä'ss<w&rd\/+1="] {
        assert_eq!(secrets.hide(&STANDARD.encode(json)), "***", "{json}");
    }
    for order in [u16::to_le_bytes, u16::to_be_bytes] {
        let bytes: Vec<u8> = secret.encode_utf16().flat_map(order).collect();
        assert_eq!(
            Masker::default().push(&secrets, &[b"a".as_slice(), &bytes, b"z"].concat(), true),
            b"a***z"
        );
        assert_eq!(secrets.hide(&STANDARD.encode(&bytes)), "***", "as PowerShell takes a command");
    }
    check(&["hunter22"], "NB2W45DFOIZDE=== nb2w45dfoizde", "*** ***");
    check(&["hunter22-and"], "NB2W45DFOIZDELLBNZSA====", "***");
    // In the middle of a longer text: python3 -c "import base64;
    // print(base64.b32encode(b'x:hunter22:y').decode())"
    assert!(Secrets::of(&[b"hunter22"]).unwrap().hide("PA5GQ5LOORSXEMRSHJ4Q====").contains("***"));
}

#[test]
fn the_longest_secret_is_prepared_at_once_whatever_it_is_made_of() {
    // As long as a variable may be. Minutes, if it grew with the square of the length.
    let lines = |line: &str| line.repeat(100_000 / line.len());
    let rule = format!("user: a\n{}\npassword: hunter2hunter2", "-".repeat(2_000));
    for secret in
        [lines("A"), lines("ab"), lines("\\u0041"), lines("%41&"), lines("abcdefgh\n"), rule]
    {
        let began = std::time::Instant::now();
        let secrets = Secrets::of(&[secret.as_bytes()]).unwrap();
        assert_eq!(secrets.hide(&format!("<{}>", STANDARD.encode(&secret))), "<***>");
        assert_eq!(secrets.hide(&format!("<{}>", secret.trim_end())), "<***>");
        assert!(began.elapsed().as_secs() < 20, "{:?} for {:?}", began.elapsed(), &secret[..20]);
    }
}
