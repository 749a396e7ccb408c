//! One of the two output streams: what is written to it, and what is known of the terminal behind.

use std::io::{self, IsTerminal, Write};
use std::os::fd::AsFd;

use terminal_size::terminal_size_of;

use crate::failure::Failure;

/// Terminals report at least this many columns to us; narrower ones get this many and wrap by
/// themselves.
const NARROWEST: u16 = 40;

/// Columns of a terminal that does not say.
const USUAL_COLUMNS: u16 = 80;

/// Rows of a terminal that does not say: those of a VT100.
const USUAL_ROWS: u16 = 24;

/// Terminals have at least this many rows to us: a heading, a line of it, and the line that the
/// cursor stands on.
const FEWEST_ROWS: u16 = 4;

pub(super) struct ConsoleStream {
    pub(super) to: Box<dyn Write + Send>,
    /// Columns, when it is a terminal.
    pub(super) width: Option<u16>,
    pub(super) colour: bool,
    /// Whether it does not matter that nobody reads it.
    pub(super) may_be_unread: bool,
}

impl ConsoleStream {
    /// One of this process; `terminal` is the stream itself.
    pub(super) fn of_process(to: Box<dyn Write + Send>, terminal: impl AsFd + IsTerminal) -> Self {
        let width = terminal.is_terminal().then(|| {
            terminal_size_of(terminal)
                .map_or(USUAL_COLUMNS, |(columns, _)| columns.0.max(NARROWEST))
        });
        let wanted = std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
            && std::env::var_os("TERM").is_none_or(|term| term != "dumb");
        Self { to, width, colour: width.is_some() && wanted, may_be_unread: false }
    }

    /// Writes; once nobody reads any more that is an end, or nothing is written from then on.
    pub(super) fn write(
        &mut self,
        write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> Result<(), Failure> {
        match write(&mut *self.to) {
            Err(error) if self.may_be_unread && error.kind() == io::ErrorKind::BrokenPipe => {
                self.to = Box::new(io::sink());
                Ok(())
            }
            written => Ok(written?),
        }
    }

    /// Columns and rows as they are now, if it is a terminal: people change it under us. `terminal`
    /// is the stream itself, where it is this process's.
    pub(super) fn size(&self, terminal: Option<impl AsFd>) -> Option<(u16, u16)> {
        let width = self.width?;
        let now = terminal.and_then(terminal_size_of);
        Some(now.map_or((width, USUAL_ROWS), |(columns, rows)| {
            (columns.0.max(NARROWEST), rows.0.max(FEWEST_ROWS))
        }))
    }
}
