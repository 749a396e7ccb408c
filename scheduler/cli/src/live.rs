//! Text that takes its own place on a terminal again and again, and nothing of anybody else's. Used
//! by whatever is watched: a wait, a status.

use schema::shown::seen;
use unicode_width::UnicodeWidthStr;

/// What stands on the terminal.
#[derive(Debug, Default)]
pub struct LiveText {
    /// Rows that stand there.
    drawn: usize,
    /// Columns that the terminal had when they were drawn.
    width: u16,
}

impl LiveText {
    /// What takes the last text off a terminal of this size and puts this one there, as much of it
    /// as fits: what has left it at the top cannot be taken back.
    pub fn draw(&mut self, shown: &str, (width, rows): (u16, u16)) -> String {
        let mut text = self.take_back(Some((width, rows)));
        let room = usize::from(rows.saturating_sub(1));
        let lines: Vec<(&str, usize)> =
            shown.split_inclusive('\n').map(|line| (line, rows_of(line, width))).collect();
        let needed: usize = lines.iter().map(|(_, rows)| rows).sum();
        if needed <= room {
            text.push_str(shown);
            self.drawn = needed;
        } else {
            let (mut taken, mut kept) = (0, 0);
            for (line, rows) in &lines {
                if taken + rows > room.saturating_sub(1) {
                    break;
                }
                text.push_str(line);
                (taken, kept) = (taken + rows, kept + 1);
            }
            text.push_str(&format!("… and {} more\n", lines.len() - kept));
            self.drawn = taken + 1;
        }
        self.width = width;
        text
    }

    /// The same for the last time: all of it, and it stays.
    pub fn draw_last(&mut self, shown: &str, width: u16) -> String {
        let text = self.draw(shown, (width, u16::MAX));
        self.drawn = 0;
        text
    }

    /// What takes the text off the terminal. On one that has become narrower nobody knows how many
    /// rows it takes, some wrap lines and some cut them: there it stays, and nothing above it is
    /// lost.
    pub fn take_back(&mut self, size: Option<(u16, u16)>) -> String {
        let width = size.map_or(self.width, |(width, _)| width);
        match std::mem::take(&mut self.drawn) {
            0 => String::new(),
            _ if width < self.width => String::new(),
            lines => format!("\u{1b}[{lines}A\u{1b}[J"),
        }
    }
}

/// Rows that a line takes on a terminal of this width, which wraps what is longer.
fn rows_of(line: &str, width: u16) -> usize {
    seen(line).trim_end().width().div_ceil(usize::from(width).max(1)).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "A  B\n1  2\n3  4\n";

    #[test]
    fn a_table_takes_the_place_of_the_last_one() {
        let mut live = LiveText::default();
        assert_eq!(live.draw(TABLE, (80, 24)), TABLE);
        assert_eq!(live.draw(TABLE, (80, 24)), format!("\u{1b}[3A\u{1b}[J{TABLE}"));
        assert_eq!(
            live.draw(TABLE, (120, 24)),
            format!("\u{1b}[3A\u{1b}[J{TABLE}"),
            "nothing wraps on a wider one"
        );
    }

    #[test]
    fn on_a_terminal_that_has_become_narrower_nothing_above_is_taken_away() {
        let mut live = LiveText::default();
        live.draw(TABLE, (80, 24));
        assert_eq!(live.draw(TABLE, (40, 24)), TABLE, "the old one stays above");
        assert_eq!(live.draw(TABLE, (40, 24)), format!("\u{1b}[3A\u{1b}[J{TABLE}"));
    }

    #[test]
    fn a_table_that_is_taller_than_the_terminal_is_cut() {
        let mut live = LiveText::default();
        let tall: String = (0..30).map(|line| format!("{line}\n")).collect();
        let drawn = live.draw(&tall, (80, 10));
        assert!(drawn.ends_with("7\n… and 22 more\n"), "{drawn}");
        assert!(
            live.draw(&tall, (80, 10)).starts_with("\u{1b}[9A"),
            "the cursor's line is the tenth"
        );
    }

    #[test]
    fn a_line_that_the_terminal_wraps_takes_the_rows_that_it_takes() {
        let mut live = LiveText::default();
        let long = format!("\u{1b}[31m{}\u{1b}[0m\n1\n", "x".repeat(81));
        live.draw(&long, (40, 24));
        assert!(live.draw(&long, (40, 24)).starts_with("\u{1b}[4A"), "three rows and one");
        // Of five rows one is the cursor's and one says what is missing.
        assert_eq!(live.draw_last("", 40), "\u{1b}[4A\u{1b}[J");
        assert!(live.draw(&long, (40, 5)).contains('1'));
        assert!(live.draw(&long, (40, 4)).ends_with("… and 2 more\n"));
    }
}
