//! Tables for people: no lines, two spaces between columns, sentences wrapped to the terminal where
//! words stay whole, one row a line elsewhere.

use comfy_table::presets::NOTHING;
use comfy_table::{Attribute, Color, ColumnConstraint, ContentArrangement};
use schema::shown::seen;
use schema::status::{ApprovalStatus, JobStatus, Status};

use crate::typed::Typed;

/// Spaces between columns.
const GAP: u16 = 2;

/// The longest text without a space that is never broken: a content address, which people copy.
const WHOLE_CHARS: usize = 72;

/// Least width of a column of sentences. Where it is not left beside what is never broken, a row is
/// a line as where no terminal is.
const SENTENCE_CHARS: u16 = 14;

/// How a cell is coloured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tone {
    /// Not at all.
    Plain,
    /// All is well: green.
    Good,
    /// Something failed: red.
    Bad,
    /// A person is asked: yellow.
    Wait,
    /// On its way: cyan.
    Busy,
    /// Less important: dim.
    Faint,
}

#[derive(Debug, Clone)]
pub struct Cell {
    text: String,
    tone: Tone,
}

impl Cell {
    /// A cell with this tone.
    pub fn toned(text: impl Into<String>, tone: Tone) -> Self {
        Self { text: text.into(), tone }
    }
}

impl<T: ToString> From<T> for Cell {
    fn from(value: T) -> Self {
        Self::toned(value.to_string(), Tone::Plain)
    }
}

/// How a status is coloured.
pub const fn status_tone(status: Status) -> Tone {
    match status {
        Status::Converged => Tone::Good,
        Status::Failed | Status::Broken => Tone::Bad,
        Status::WaitingManualApproval | Status::WaitingPreconditions | Status::Paused => Tone::Wait,
        Status::Converging => Tone::Busy,
        Status::Replaced | Status::Deleted => Tone::Faint,
    }
}

/// A status in its colour.
pub fn status(status: Status) -> Cell {
    Cell::toned(status.as_str(), status_tone(status))
}

/// A job's status in its colour.
pub fn job_status(status: JobStatus) -> Cell {
    let tone = match status {
        JobStatus::Succeeded => Tone::Good,
        JobStatus::Failed | JobStatus::Unknown => Tone::Bad,
        JobStatus::Cancelled => Tone::Wait,
        JobStatus::Pending | JobStatus::Starting | JobStatus::Running => Tone::Busy,
    };
    Cell::toned(status.as_str(), tone)
}

/// An approval's status in its colour.
pub fn approval_status(status: ApprovalStatus) -> Cell {
    let tone = match status {
        ApprovalStatus::Approved => Tone::Good,
        ApprovalStatus::Rejected => Tone::Bad,
        ApprovalStatus::Pending => Tone::Wait,
        ApprovalStatus::Expired => Tone::Faint,
    };
    Cell::toned(status.as_str(), tone)
}

/// Rows under a header.
#[derive(Debug, Clone)]
pub struct Table {
    header: Vec<&'static str>,
    rows: Vec<Vec<Cell>>,
}

impl Table {
    /// An empty one.
    pub fn new<const N: usize>(header: [&'static str; N]) -> Self {
        Self { header: header.to_vec(), rows: Vec::new() }
    }

    /// Adds a row with as many cells as the header has.
    pub fn row<const N: usize>(&mut self, cells: [Cell; N]) {
        assert_eq!(N, self.header.len(), "a row has a cell for each column");
        self.rows.push(cells.to_vec());
    }

    /// The same with the commands in it as they are typed.
    #[must_use]
    pub fn typed_as(&self, typed: &Typed) -> Self {
        let mut table = self.clone();
        table
            .rows
            .iter_mut()
            .flatten()
            .for_each(|cell| cell.text = typed.text(&cell.text).into_owned());
        table
    }

    /// Lays it out. Columns that are empty in every row are left out; those of ids, names and words
    /// are never broken, since people copy them.
    pub fn render(&self, width: Option<u16>, colour: bool) -> String {
        self.lay_out(width, true, colour)
    }

    /// The same for a table that is drawn over again: no line is longer than `width` columns, so
    /// ids may be broken.
    pub fn render_live(&self, width: u16, colour: bool) -> String {
        self.lay_out(Some(width), false, colour)
    }

    fn lay_out(&self, width: Option<u16>, keeps_whole: bool, colour: bool) -> String {
        let kept: Vec<usize> = (0..self.header.len())
            .filter(|&at| {
                self.rows.is_empty() || self.rows.iter().any(|row| !row[at].text.is_empty())
            })
            .collect();
        let mut table = comfy_table::Table::new();
        table.load_style(NOTHING).force_no_tty();
        if colour {
            table.enforce_styling();
        }
        table.set_header(
            kept.iter()
                .map(|&at| comfy_table::Cell::new(self.header[at]).add_attribute(Attribute::Bold)),
        );
        for row in &self.rows {
            table.add_row(kept.iter().map(|&at| painted(&row[at])));
        }
        let contents = table.column_max_content_widths();
        let mut least: u16 = 0;
        for column in table.column_iter_mut() {
            column.set_padding((0, GAP));
            let content = contents[column.index];
            let is_whole = keeps_whole && self.is_whole(kept[column.index]);
            if is_whole {
                column.set_constraint(ColumnConstraint::ContentWidth);
            }
            least = least
                .saturating_add(if is_whole { content } else { content.min(SENTENCE_CHARS) })
                .saturating_add(GAP);
        }
        match width.filter(|width| !keeps_whole || *width >= least) {
            Some(width) => {
                table.set_content_arrangement(ContentArrangement::Dynamic).set_width(width)
            }
            None => table.set_content_arrangement(ContentArrangement::Disabled),
        };
        table.trim_fmt() + "\n"
    }

    /// Whether this column has nothing that could be wrapped between words.
    fn is_whole(&self, at: usize) -> bool {
        self.rows.iter().all(|row| {
            row[at].text.chars().count() <= WHOLE_CHARS
                && !row[at].text.trim().contains(char::is_whitespace)
        })
    }
}

fn painted(cell: &Cell) -> comfy_table::Cell {
    let text = comfy_table::Cell::new(one_line(&cell.text));
    match cell.tone {
        Tone::Plain => text,
        Tone::Good => text.fg(Color::DarkGreen),
        Tone::Bad => text.fg(Color::DarkRed),
        Tone::Wait => text.fg(Color::DarkYellow),
        Tone::Busy => text.fg(Color::DarkCyan),
        Tone::Faint => text.add_attribute(Attribute::Dim),
    }
}

/// The text on one line and without what steers the terminal, so that what a job printed can
/// neither break the table nor do that.
pub fn one_line(text: &str) -> String {
    let seen = seen(text);
    seen.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The text without what steers the terminal, but with its line ends and tabs. A carriage return,
/// with which a later text could cover it, is seen as one.
pub fn harmless(text: &str) -> String {
    seen(text).replace("\r\n", "\n").replace('\r', "␍")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Table {
        let mut table = Table::new(["CHANNEL", "STATUS", "REASON", "MESSAGE"]);
        table.row(["staging".into(), status(Status::Converged), "".into(), "as desired".into()]);
        table.row([
            "production".into(),
            status(Status::Failed),
            "".into(),
            "apply ended with 1\nand said \u{1b}[31mno".into(),
        ]);
        table
    }

    #[test]
    fn a_row_is_a_line_where_no_terminal_is() {
        insta::assert_snapshot!(sample().render(None, false), @r"
        CHANNEL     STATUS     MESSAGE
        staging     CONVERGED  as desired
        production  FAILED     apply ended with 1 and said no
        ");
    }

    #[test]
    fn a_table_fits_the_terminal() {
        let text = sample().render(Some(40), false);
        assert!(text.lines().all(|line| line.chars().count() <= 40), "{text}");
        assert!(text.lines().count() > 3, "{text}");
    }

    #[test]
    fn what_people_copy_is_never_broken_however_narrow_the_terminal() {
        let mut table = Table::new(["JOB", "CONTENT", "MESSAGE"]);
        let (job, content) =
            ("0193b3f0-7c1e-7d52-9d1a-1f1f1f1f1f1f", format!("sha256:{}", "f".repeat(64)));
        table.row([job.into(), content.clone().into(), "apply ended with the exit code 1".into()]);
        for width in [1, 40, 80, 140] {
            let text = table.render(Some(width), false);
            assert!(text.contains(job) && text.contains(&content), "{width}: {text}");
            assert_eq!(text.lines().count() > 2, width == 140, "{text}");
            let live = table.render_live(width, false);
            assert!(
                width < 40 || live.lines().all(|line| line.chars().count() <= usize::from(width)),
                "{live}"
            );
        }
        let mut table = Table::new(["PARAMETER", "VALUE"]);
        table.row(["key".into(), "x".repeat(500).into()]);
        assert!(table.render(Some(80), false).lines().all(|line| line.chars().count() <= 80));
    }

    #[test]
    fn nothing_that_steers_a_terminal_or_turns_a_text_round_is_shown() {
        let text = "\u{1b}[31mkeep\u{202e}yortsed \u{2066}\u{61c}\u{200f}\u{9b}db\u{2069}";
        assert_eq!(
            (one_line(text), harmless(text)),
            ("keepyortsed db".to_owned(), "keepyortsed db".to_owned())
        );
    }

    #[test]
    fn colour_is_asked_for() {
        assert!(!sample().render(None, false).contains('\u{1b}'));
        assert!(sample().render(None, true).contains("\u{1b}["));
    }
}
