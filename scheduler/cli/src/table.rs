//! Tables for people: no lines, two spaces between columns, fitted to the terminal where words stay
//! whole; one row a line elsewhere.

use anstyle::{AnsiColor, Style};
use schema::shown::seen;
use schema::status::{ApprovalStatus, JobStatus, Status};
use unicode_width::UnicodeWidthStr;

use crate::short;
use crate::typed::Typed;

mod layout;

pub(crate) use layout::wrap;
use layout::{FEW_CHARS, GAP, INDENT, Layout, Measured, WHOLE_CHARS};

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
    /// What stands there where there is room for everything.
    whole: Option<String>,
    tone: Tone,
}

impl Cell {
    /// A cell with this tone.
    pub fn toned(text: impl Into<String>, tone: Tone) -> Self {
        Self { text: text.into(), whole: None, tone }
    }

    /// An id, in short.
    pub fn id(id: impl ToString) -> Self {
        let whole = id.to_string();
        Self { text: short::id(&whole), whole: Some(whole), tone: Tone::Plain }
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
    /// Columns that are for `-o wide` alone.
    wide: &'static [&'static str],
    /// Columns that a narrow terminal has no room for, the first to go first.
    going: &'static [&'static str],
}

impl Table {
    /// An empty one.
    pub fn new<const N: usize>(header: [&'static str; N]) -> Self {
        Self { header: header.to_vec(), rows: Vec::new(), wide: &[], going: &[] }
    }

    /// Shows these columns only where everything is wanted.
    #[must_use]
    pub fn only_wide(self, wide: &'static [&'static str]) -> Self {
        Self { wide, ..self }
    }

    /// Leaves these columns out where the terminal is too narrow, the first one first.
    #[must_use]
    pub fn first_to_go(self, going: &'static [&'static str]) -> Self {
        Self { going, ..self }
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

    /// Lays it out. Columns that are empty in every row are left out; words (ids, names, a status)
    /// are never broken, since people copy them.
    pub fn render(&self, width: Option<u16>, colour: bool) -> String {
        self.drawn(width, true, false, colour)
    }

    /// The same with every column and whole ids, one row a line.
    pub fn render_wide(&self, colour: bool) -> String {
        self.drawn(None, true, true, colour)
    }

    /// The same for a table that is drawn over again: no line is longer than `width` columns, so
    /// ids may be broken.
    pub fn render_live(&self, width: u16, colour: bool) -> String {
        self.drawn(Some(width), false, false, colour)
    }

    fn drawn(&self, width: Option<u16>, keeps_whole: bool, wide: bool, colour: bool) -> String {
        let kept: Vec<usize> = (0..self.header.len())
            .filter(|&at| {
                let is_empty =
                    !self.rows.is_empty() && self.rows.iter().all(|row| row[at].text.is_empty());
                !is_empty && (wide || !self.wide.contains(&self.header[at]))
            })
            .collect();
        let text = |cell: &Cell| match &cell.whole {
            Some(whole) if wide => one_line(whole),
            _ => one_line(&cell.text),
        };
        let rows: Vec<Vec<(String, Tone)>> = self
            .rows
            .iter()
            .map(|row| kept.iter().map(|&at| (text(&row[at]), row[at].tone)).collect())
            .collect();
        let measured: Vec<_> = kept
            .iter()
            .enumerate()
            .map(|(index, &at)| self.measure(at, rows.iter().map(|row| row[index].0.as_str())))
            .collect();
        let width = width.map(usize::from);
        let layout = layout::lay_out(&measured, width, keeps_whole);
        let painter = Painter { layout: &layout, width, keeps_whole, colour };
        let titles: Vec<_> = kept.iter().map(|&at| self.header[at]).collect();
        let mut drawn = painter.header(&titles);
        rows.iter().for_each(|row| painter.row(row, &titles, &mut drawn));
        drawn
    }

    fn measure<'a>(&self, at: usize, cells: impl Iterator<Item = &'a str> + Clone) -> Measured {
        let title = self.header[at];
        let words = cells.clone().flat_map(|text| text.split(' ')).map(UnicodeWidthStr::width);
        Measured {
            content: cells
                .clone()
                .map(UnicodeWidthStr::width)
                .max()
                .unwrap_or(0)
                .max(title.width()),
            longest_word: words.filter(|width| *width <= WHOLE_CHARS).max().unwrap_or(0),
            is_whole: cells.clone().all(|text| match text.contains(char::is_whitespace) {
                true => text.width() <= FEW_CHARS,
                false => text.width() <= WHOLE_CHARS,
            }),
            goes: self.going.iter().position(|going| *going == title),
        }
    }
}

/// What puts the cells onto lines.
struct Painter<'a> {
    layout: &'a Layout,
    width: Option<usize>,
    keeps_whole: bool,
    colour: bool,
}

impl Painter<'_> {
    fn header(&self, titles: &[&str]) -> String {
        let bold = if self.colour { Style::new().bold() } else { Style::new() };
        let cells = self.layout.beside.iter().map(|&(at, width)| (titles[at].to_owned(), width));
        line(cells, |_| bold)
    }

    /// The cells side by side, and what stands below them.
    fn row(&self, row: &[(String, Tone)], titles: &[&str], drawn: &mut String) {
        let beside: Vec<_> = self
            .layout
            .beside
            .iter()
            .map(|&(at, width)| (wrap(&row[at].0, width, self.keeps_whole), width, row[at].1))
            .collect();
        let height = beside.iter().map(|(lines, _, _)| lines.len()).max().unwrap_or(0);
        for at in 0..height {
            let cells = beside
                .iter()
                .map(|(lines, width, _)| (lines.get(at).cloned().unwrap_or_default(), *width));
            drawn.push_str(&line(cells, |index| self.style(beside[index].2)));
        }
        let is_named = self.layout.below.len() > 1;
        for &at in self.layout.below.iter().filter(|&&at| !row[at].0.is_empty()) {
            let (text, tone) = &row[at];
            let named = format!("{}: {text}", titles[at].to_lowercase());
            let text = if is_named { &named } else { text };
            let width = self.width.map_or(usize::MAX, |width| width.saturating_sub(INDENT));
            for text in wrap(text, width, self.keeps_whole) {
                let style = self.style(*tone);
                drawn.push_str(&format!("{:INDENT$}{style}{text}{style:#}\n", ""));
            }
        }
    }

    fn style(&self, tone: Tone) -> Style {
        if self.colour { tone.style() } else { Style::new() }
    }
}

/// Cells on a line, which ends with the last one that has something in it.
fn line(cells: impl Iterator<Item = (String, usize)>, style: impl Fn(usize) -> Style) -> String {
    let (mut line, mut owed) = (String::new(), 0);
    for (index, (text, width)) in cells.enumerate() {
        if !text.is_empty() {
            let style = style(index);
            line.push_str(&format!("{:owed$}{style}{text}{style:#}", ""));
            owed = 0;
        }
        owed += width.saturating_sub(text.width()) + GAP;
    }
    line + "\n"
}

impl Tone {
    /// As a terminal shows it.
    pub(crate) fn style(self) -> Style {
        match self {
            Self::Plain => Style::new(),
            Self::Good => AnsiColor::Green.on_default(),
            Self::Bad => AnsiColor::Red.on_default(),
            Self::Wait => AnsiColor::Yellow.on_default(),
            Self::Busy => AnsiColor::Cyan.on_default(),
            Self::Faint => Style::new().dimmed(),
        }
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
    fn a_narrow_terminal_has_what_matters_and_a_wide_one_everything() {
        let mut table = Table::new(["JOB", "STATUS", "RUNTIME", "AGE", "MESSAGE"])
            .only_wide(&["RUNTIME"])
            .first_to_go(&["AGE"]);
        let id = format!("job-{}", "4".repeat(32));
        table.row([
            Cell::id(&id),
            status(Status::WaitingManualApproval),
            "vm".into(),
            "3m20s".into(),
            "approval `qa` of plan is asked for, and 0 of 1 said yes".into(),
        ]);
        insta::assert_snapshot!(table.render(Some(40), false), @r"
        JOB           STATUS
        job-44444444  WAITING_MANUAL_APPROVAL
          approval `qa` of plan is asked for,
          and 0 of 1 said yes
        ");
        insta::assert_snapshot!(table.render(Some(60), false), @r"
        JOB           STATUS                   AGE
        job-44444444  WAITING_MANUAL_APPROVAL  3m20s
          approval `qa` of plan is asked for, and 0 of 1 said yes
        ");
        let wide = table.render_wide(false);
        assert!(wide.lines().count() == 2 && wide.contains(&id) && wide.contains("vm"), "{wide}");
    }

    #[test]
    fn colour_is_asked_for() {
        assert!(!sample().render(None, false).contains('\u{1b}'));
        assert!(sample().render(None, true).contains("\u{1b}["));
    }
}
