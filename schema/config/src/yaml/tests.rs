//! The tree keeps what is written and where.

use serde_json::json;

use super::{NodeKind, documents, parse};

fn cut(text: &str) -> Vec<&str> {
    documents(text).into_iter().map(|range| &text[range]).collect()
}

#[test]
fn a_text_is_cut_at_its_document_lines() {
    assert_eq!(cut(""), [""; 0]);
    assert_eq!(cut("# c\n\n"), [""; 0]);
    assert_eq!(cut("a: 1\n"), ["a: 1\n"]);
    assert_eq!(cut("# c\n---\na: 1\n---\nb: 2\n"), ["# c\n---\na: 1\n", "---\nb: 2\n"]);
    assert_eq!(cut("a: 1\n...\n---\nb: 2"), ["a: 1\n", "---\nb: 2"]);
    assert_eq!(cut("a: 1\n...\nb: 2"), ["a: 1\n", "b: 2"]);
    assert_eq!(cut("%YAML 1.2\n---\na: 1\n"), ["%YAML 1.2\n---\na: 1\n"]);
    assert_eq!(
        cut("a: |\n  ---\n  b\n"),
        ["a: |\n  ---\n  b\n"],
        "an indented line opens no document"
    );
    assert_eq!(cut("---a: 1\n"), ["---a: 1\n"], "nor does a longer word");
    assert_eq!(cut("a: 1\r\n---\r\nb: 2\r\n"), ["a: 1\r\n", "---\r\nb: 2\r\n"]);
}

#[test]
fn json_is_read_by_the_core_rules() {
    let text = "{a: 1, b: -1, c: 0x10, d: 1.5, e: true, f: 'true', g: ~, h: 1.2.3, i: \
                18446744073709551616, j: .inf, k: yes, l: [x, 1e3], m: 0o7}";
    let expected = json!({"a": 1, "b": -1, "c": 16, "d": 1.5, "e": true, "f": "true", "g": null, "h": "1.2.3", "i": "18446744073709551616", "j": ".inf", "k": "yes", "l": ["x", 1000.0], "m": 7});
    assert_eq!(parse(text).unwrap().unwrap().to_json(), expected);
}

#[test]
fn spans_are_bytes_also_after_wide_characters() {
    let text = format!("{}: \"ä€\"\nlast: [x, ü]\n", "ä".repeat(1000));
    let tree = parse(&text).unwrap().unwrap();
    let NodeKind::Mapping(entries) = &tree.kind else { panic!("{tree:?}") };
    assert_eq!(&text[entries[0].value.span.clone()], "\"ä€\"");
    assert_eq!(&text[entries[1].key_span.clone()], "last");
    assert_eq!(&text[tree.nearest("/last/1").0.span.clone()], "ü");
    assert_eq!(&text[tree.nearest("/last").0.span.clone()], "[x, ü]");
}
