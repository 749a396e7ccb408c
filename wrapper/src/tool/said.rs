//! What a tool says, in many lines -> what of it goes into a sentence. Pure. Called by the tools,
//! for the words of their failures.

use schema::shown;

/// Most characters of what a tool says that go into a sentence: the scheduler shows 400 of it, and
/// the words around it need theirs.
pub(super) const SAID_CHARS: usize = 300;

/// Of a text that is too long, how much of what is shown is its beginning: what failed stands there
/// more often than at the end.
const BEGINNING_PARTS: (usize, usize) = (2, 3);

/// What is left out between the beginning and the end of a text that is too long.
const GAP: &str = " … ";

/// All of it in one line: the lines of a paragraph follow one another, paragraphs are set apart. At
/// most [`SAID_CHARS`].
pub(super) fn in_one_line(said: &str) -> String {
    let said = shown::seen(said);
    let mut told = String::new();
    let mut is_new_paragraph = false;
    for line in said.lines().map(|line| line.trim_matches(in_a_frame)) {
        if line.is_empty() {
            is_new_paragraph = true;
            continue;
        }
        if !told.is_empty() {
            let is_set_apart = !is_new_paragraph || told.ends_with([':', ';', ',', '.']);
            told.push_str(if is_set_apart { " " } else { "; " });
        }
        is_new_paragraph = false;
        told.extend(line.split_whitespace().flat_map(|word| [word, " "]));
        told.truncate(told.trim_end().len());
    }
    bounded(&told, SAID_CHARS)
}

/// Blanks, and what terraform draws around an error.
fn in_a_frame(character: char) -> bool {
    character.is_whitespace() || matches!(character, '│' | '╷' | '╵')
}

/// The beginning and the end of a text, of at most so many characters.
pub(super) fn bounded(text: &str, most: usize) -> String {
    let count = text.chars().count();
    if count <= most {
        return text.to_owned();
    }
    let (part, of) = BEGINNING_PARTS;
    let rest = most.saturating_sub(GAP.chars().count());
    let beginning = rest * part / of;
    let end = text.chars().skip(count - (rest - beginning));
    text.chars().take(beginning).chain(GAP.chars()).chain(end).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_lines_become_one() {
        let check = |said: &str, told: &str| assert_eq!(in_one_line(said), told, "{said:?}");
        check("", "");
        check("\n\n  a\tb  \nc\n", "a b c");
        check("a\n\n\nb", "a; b");
        check("a:\n\nb.\n\nc", "a: b. c");
        check("╷\n│ Error: a\n│\n│   b\n│ c\n╵\n", "Error: a; b c");
        check("\u{1b}[31ma\u{1b}[0m\r\nb", "a b");
    }

    #[test]
    fn a_long_text_keeps_its_beginning_and_its_end() {
        let said = format!("begin{}end", "ä".repeat(900));
        let told = in_one_line(&said);
        assert_eq!(told.chars().count(), SAID_CHARS);
        assert!(told.starts_with("begin") && told.ends_with("end") && told.contains("ä … ä"));
        assert_eq!(bounded("abcdefghij", 9), "abcd … ij");
        assert_eq!(bounded("abcdefghij", 10), "abcdefghij");
    }
}
