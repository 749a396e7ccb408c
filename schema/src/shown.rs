//! What is left out of a text before people see it: whatever steers the terminal, or makes it read otherwise than it is. Used
//! wherever the words of a command or a config are shown.

/// Whether a character is none that people see, and changes how they see others: a control character (ESC, carriage return,
/// also a line end), or one that turns the direction of a text round, by which `keep` can be shown where `destroy` stands.
/// Source: Unicode 16, `Bidi_Control`.
pub fn steers(character: char) -> bool {
    character.is_control() || matches!(character, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_steers_is_no_letter_of_any_script() {
        assert!(['\u{1b}', '\n', '\u{9b}', '\u{202e}', '\u{2066}', '\u{200f}'].into_iter().all(steers));
        assert!(!['a', ' ', 'ä', 'א', 'ع', '\u{200d}', '\u{2065}', '👩'].into_iter().any(steers));
    }
}
