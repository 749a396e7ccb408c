//! That no line of code makes you scroll sideways either. rustfmt leaves what it cannot read as it
//! is: bodies of macros, attributes, long texts, and the whole chain around one of these.

use std::path::Path;

use super::{text, tracked};

/// Columns of a line: as `rustfmt.toml` has it.
const CODE_COLUMNS: usize = 100;

/// What a place in a file is part of.
#[derive(Clone, Copy, PartialEq)]
enum Inside {
    Code,
    Comment,
    Text,
    /// A raw text, with so many `#`.
    Raw(usize),
}

/// What each line of a file begins in, and what stands at its first column too many.
fn insides(text: &str) -> Vec<(Inside, Inside)> {
    let mut inside = Inside::Code;
    let mut found = Vec::new();
    let mut skipped = 0;
    for line in text.lines() {
        let (begin, mut beyond) = (inside, inside);
        let letters: Vec<char> = line.chars().collect();
        for at in 0..letters.len() {
            if skipped > 0 {
                skipped -= 1;
            } else {
                (inside, skipped) = step(inside, &letters, at);
            }
            if at <= CODE_COLUMNS {
                beyond = inside;
            }
        }
        // What was skipped beyond the end of a line is the line's end itself.
        skipped = 0;
        found.push((begin, beyond));
    }
    found
}

/// What follows a letter is part of, and how many letters belong to it.
fn step(inside: Inside, letters: &[char], at: usize) -> (Inside, usize) {
    let rest = &letters[at..];
    let is_word = at > 0 && (letters[at - 1].is_alphanumeric() || letters[at - 1] == '_');
    match (inside, rest) {
        (Inside::Comment, ['*', '/', ..]) => (Inside::Code, 1),
        (Inside::Text, ['\\', ..]) => (Inside::Text, 1),
        (Inside::Text, ['"', ..]) => (Inside::Code, 0),
        (Inside::Raw(marks), ['"', after @ ..]) if after.starts_with(&vec!['#'; marks]) => {
            (Inside::Code, marks)
        }
        (Inside::Code, ['/', '/', ..]) => (Inside::Code, rest.len()),
        (Inside::Code, ['/', '*', ..]) => (Inside::Comment, 1),
        (Inside::Code, ['\'', '\\', _, after @ ..]) => {
            let end = after.iter().position(|letter| *letter == '\'').unwrap_or_default();
            (Inside::Code, 3 + end)
        }
        (Inside::Code, ['\'', _, '\'', ..]) => (Inside::Code, 2),
        (Inside::Code, ['"', ..]) => (Inside::Text, 0),
        (Inside::Code, ['r', after @ ..]) if !is_word || letters[at - 1] == 'b' => {
            let marks = after.iter().take_while(|letter| **letter == '#').count();
            let is_text = after.get(marks) == Some(&'"');
            if is_text { (Inside::Raw(marks), marks + 1) } else { (Inside::Code, 0) }
        }
        (inside, _) => (inside, 0),
    }
}

/// The lines of code that are wider, by their numbers. A raw text is as it is, and so is what tests
/// are about: their texts and the values in which these stand, and their names.
fn wide_code(text: &str, is_test: bool) -> Vec<usize> {
    let mut wide = Vec::new();
    let mut is_test = is_test;
    for ((number, line), (begin, beyond)) in (1..).zip(text.lines()).zip(insides(text)) {
        is_test = is_test || line.starts_with("#[cfg(test)]");
        let is_comment = begin == Inside::Comment || line.trim_start().starts_with("//");
        let is_raw = matches!(beyond, Inside::Raw(_));
        let is_of_test = is_test
            && (begin == Inside::Text
                || line.contains('"')
                || (line.contains("fn ") && line.ends_with("()")));
        if line.chars().count() > CODE_COLUMNS && !is_comment && !is_raw && !is_of_test {
            wide.push(number);
        }
    }
    wide
}

#[test]
fn no_line_of_code_makes_you_scroll_sideways() {
    let is_test = |path: &Path| {
        path.ends_with("tests.rs") || path.components().any(|part| part.as_os_str() == "tests")
    };
    let wide: Vec<_> = tracked(".rs")
        .into_iter()
        .flat_map(|path| {
            let wide = wide_code(&text(&path), is_test(&path));
            wide.into_iter().map(move |line| format!("{}:{line}", path.display()))
        })
        .collect();
    assert!(wide.is_empty(), "wider than {CODE_COLUMNS} columns:\n{}", wide.join("\n"));
}

#[test]
fn a_line_of_code_that_is_too_wide_is_found_unless_its_text_is_raw_or_of_a_test() {
    let wide = "x".repeat(CODE_COLUMNS + 1);
    let text = format!(
        "let {wide};\nlet a = '\"'; let b: &'static str = \"{wide}\";\nlet c = r#\"\n{wide}\"{wide}\n\
         \"#; // {wide}\nlet d = \"a\\\n{wide}\";\n/* \"\n{wide} */ let {wide} = '\\'';\n\
         let e = br\"\\\"; {wide}\nfn {wide}()\n"
    );
    assert_eq!(wide_code(&text, false), [1, 2, 5, 7, 10, 11]);
    assert_eq!(wide_code(&text, true), [1]);
    assert_eq!(wide_code(&format!("#[cfg(test)]\n{text}"), false), [2]);
}
