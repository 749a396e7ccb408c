//! Where a command prints: data on stdout, talk on stderr. Knows whether people are watching, how
//! wide their terminal is and whether they want colour. Tests use one that remembers.

use std::fs::File;
use std::io::{self, IsTerminal, Read, Write};
use std::os::fd::AsFd;

use anstyle::{AnsiColor, Style};
use schema::api::Diagnostic;
use serde::Serialize;
use tokio::io::Interest;
use tokio::net::unix::pipe;

use crate::args::{Colour, OutputFormat};
use crate::client::Listed;
use crate::diagnostics;
use crate::failure::Failure;
use crate::table::{Table, harmless};
use crate::typed::Typed;

mod paper;
mod remembered;

pub use paper::Paper;
pub use remembered::Remembered;

use paper::json;
pub(crate) use paper::yaml;

/// Terminals report at least this many columns to us; narrower ones get this many and wrap by
/// themselves.
const NARROWEST: u16 = 40;

/// Rows of a terminal that does not say: those of a VT100.
const USUAL_ROWS: u16 = 24;

/// Terminals have at least this many rows to us: a heading, a line of it, and the line that the
/// cursor stands on.
const FEWEST_ROWS: u16 = 4;

/// One of the two output streams.
struct ConsoleStream {
    to: Box<dyn Write + Send>,
    /// Columns, when it is a terminal.
    width: Option<u16>,
    colour: bool,
    /// Whether it does not matter that nobody reads it.
    may_be_unread: bool,
}

impl ConsoleStream {
    /// Writes; once nobody reads any more that is an end, or nothing is written from then on.
    fn write(
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

    fn of_terminal(to: Box<dyn Write + Send>, width: Option<u16>) -> Self {
        let wanted = std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
            && std::env::var_os("TERM").is_none_or(|term| term != "dumb");
        Self { to, width, colour: width.is_some() && wanted, may_be_unread: false }
    }
}

/// Stdin, stdout and stderr, and what is known of who is behind them.
pub struct Console {
    input: Box<dyn Read + Send>,
    out: ConsoleStream,
    err: ConsoleStream,
    /// Whether a person can be asked: stdin and stderr are terminals.
    can_ask: bool,
    /// Whether stderr is this process's own, whose terminal is asked for its size each time.
    is_of_process: bool,
    /// How data is printed.
    pub format: OutputFormat,
    /// How the commands that are suggested to people are typed.
    pub typed: Typed,
}

impl Console {
    /// The one of this process.
    pub fn of_process() -> Self {
        let width = |size: Option<(terminal_size::Width, terminal_size::Height)>| {
            size.map(|(columns, _)| columns.0.max(NARROWEST))
        };
        let out = io::stdout()
            .is_terminal()
            .then(|| width(terminal_size::terminal_size_of(io::stdout())).unwrap_or(80));
        let err = io::stderr()
            .is_terminal()
            .then(|| width(terminal_size::terminal_size_of(io::stderr())).unwrap_or(80));
        Self {
            input: Box::new(io::stdin()),
            can_ask: io::stdin().is_terminal() && err.is_some(),
            is_of_process: true,
            out: ConsoleStream::of_terminal(Box::new(io::BufWriter::new(io::stdout())), out),
            err: ConsoleStream::of_terminal(Box::new(io::stderr()), err),
            format: OutputFormat::Table,
            typed: Typed::default(),
        }
    }

    /// One that remembers stdout and stderr and reads `input`; with a `width` it is a terminal with
    /// a person at it.
    pub fn remembering(input: &[u8], width: Option<u16>) -> (Self, Remembered, Remembered) {
        let (out, err) = (Remembered::default(), Remembered::default());
        let stream = |to: &Remembered| ConsoleStream {
            to: Box::new(to.clone()),
            width,
            colour: false,
            may_be_unread: false,
        };
        let console = Self {
            input: Box::new(io::Cursor::new(input.to_vec())),
            out: stream(&out),
            err: stream(&err),
            can_ask: width.is_some(),
            is_of_process: false,
            format: OutputFormat::Table,
            typed: Typed::default(),
        };
        (console, out, err)
    }

    /// From here on the command goes on to its end when nobody reads what it prints: its exit code
    /// is the answer.
    pub fn go_on_unread(&mut self) {
        (self.out.may_be_unread, self.err.may_be_unread) = (true, true);
    }

    /// Obeys `--color`.
    pub fn set_colour(&mut self, wish: Colour) {
        match wish {
            Colour::Auto => {}
            Colour::Always => (self.out.colour, self.err.colour) = (true, true),
            Colour::Never => (self.out.colour, self.err.colour) = (false, false),
        }
    }

    /// Whether stdout takes colour.
    pub fn colours_stdout(&self) -> bool {
        self.out.colour
    }

    /// Whether stderr takes colour.
    pub fn colours_stderr(&self) -> bool {
        self.err.colour
    }

    /// The same for clap, which writes help through us.
    pub fn clap_colour(&self) -> clap::ColorChoice {
        if self.out.colour || self.err.colour {
            clap::ColorChoice::Always
        } else {
            clap::ColorChoice::Never
        }
    }

    /// Columns and rows of the terminal behind stderr as they are now, if it is one: people change
    /// it under us.
    pub fn talk_size(&self) -> Option<(u16, u16)> {
        let width = self.err.width?;
        let now =
            if self.is_of_process { terminal_size::terminal_size_of(io::stderr()) } else { None };
        Some(now.map_or((width, USUAL_ROWS), |(columns, rows)| {
            (columns.0.max(NARROWEST), rows.0.max(FEWEST_ROWS))
        }))
    }

    /// Whether a person can be asked something.
    pub fn can_ask(&self) -> bool {
        self.can_ask
    }

    /// Writes text to stdout as it is.
    ///
    /// # Errors
    /// [`Failure::Output`] when nobody takes it.
    pub fn data(&mut self, text: &str) -> Result<(), Failure> {
        self.data_bytes(text.as_bytes())
    }

    /// Writes text for people to stdout, the commands in it as they are typed.
    ///
    /// # Errors
    /// [`Failure::Output`] when nobody takes it.
    pub fn tell(&mut self, text: &str) -> Result<(), Failure> {
        let text = self.typed.text(text).into_owned();
        self.data(&text)
    }

    /// Writes bytes to stdout as they are.
    ///
    /// # Errors
    /// [`Failure::Output`] when nobody takes it.
    pub fn data_bytes(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        self.out.write(|to| to.write_all(bytes))
    }

    /// Writes text to stderr, the commands in it as they are typed.
    ///
    /// # Errors
    /// [`Failure::Output`] when nobody takes it.
    pub fn talk(&mut self, text: &str) -> Result<(), Failure> {
        let text = self.typed.text(text).into_owned();
        self.talk_bytes(text.as_bytes())
    }

    /// Writes bytes to stderr as they are.
    ///
    /// # Errors
    /// [`Failure::Output`] when nobody takes it.
    pub fn talk_bytes(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        self.out.write(|to| to.flush())?;
        self.err.write(|to| to.write_all(bytes))
    }

    /// Writes a line to stderr.
    ///
    /// # Errors
    /// [`Failure::Output`] when nobody takes it.
    pub fn say(&mut self, line: &str) -> Result<(), Failure> {
        self.talk(&format!("{line}\n"))
    }

    /// Shows warnings about config files on stderr.
    ///
    /// # Errors
    /// [`Failure::Output`] when nobody takes it.
    pub fn warn(&mut self, warnings: &[Diagnostic]) -> Result<(), Failure> {
        self.talk(&diagnostics::render(warnings, self.err.colour))
    }

    /// Hands on what is buffered.
    ///
    /// # Errors
    /// [`Failure::Output`] when nobody takes it.
    pub fn flush(&mut self) -> Result<(), Failure> {
        self.out.write(|to| to.flush())?;
        self.err.write(|to| to.flush())
    }

    /// Prints one value: as JSON, as YAML, or what `people` makes of it.
    ///
    /// # Errors
    /// [`Failure::Output`] when nobody takes it.
    pub fn print<T: Serialize>(
        &mut self,
        value: &T,
        people: impl FnOnce(&Paper) -> String,
    ) -> Result<(), Failure> {
        let text = match self.format {
            OutputFormat::Json => json(value)?,
            OutputFormat::Yaml => yaml(value)?,
            OutputFormat::Table => {
                let paper = Paper {
                    width: self.out.width,
                    colour: self.out.colour,
                    typed: self.typed.clone(),
                };
                paper.typed.text(&people(&paper)).into_owned()
            }
        };
        self.data(&text)
    }

    /// Says what was done to people, on stderr; with JSON or YAML programs get the server's answer,
    /// on stdout.
    ///
    /// # Errors
    /// [`Failure::Output`] when nobody takes it.
    pub fn done<T: Serialize>(&mut self, answer: &T, line: &str) -> Result<(), Failure> {
        // Whoever wrote the words in it: of a reason, say.
        self.say(&harmless(line))?;
        self.print(answer, |_| String::new())
    }

    /// Prints a list: as a JSON array, as YAML, or as a table; people are told when it is empty,
    /// and after it what is missing because it cannot be read.
    ///
    /// # Errors
    /// [`Failure::Output`] when nobody takes it.
    pub fn print_list<T: Serialize>(
        &mut self,
        list: &Listed<T>,
        none: &str,
        table: impl FnOnce(&[T]) -> Table,
    ) -> Result<(), Failure> {
        match list.items.as_slice() {
            [] if self.format == OutputFormat::Table && list.unreadable.is_empty() => {
                return self.say(none);
            }
            [] if self.format == OutputFormat::Table => {}
            items => self.print(&items, |paper| paper.table(&table(items)))?,
        }
        self.talk(&diagnostics::unreadable(&list.unreadable, self.err.colour))
    }

    /// Ends when nobody can read what is written to stdout any more (`pvnctl … | head`); never,
    /// where that cannot be known.
    pub fn reader_gone(&self) -> impl Future<Output = ()> + use<> {
        let stdout =
            self.is_of_process.then(|| io::stdout().as_fd().try_clone_to_owned().ok()).flatten();
        // Nothing is written through this one, so it does not matter that writing to it may block.
        // What is no pipe is refused.
        let pipe =
            stdout.and_then(|stdout| pipe::Sender::from_file_unchecked(File::from(stdout)).ok());
        async move {
            match pipe {
                // Readiness for errors alone comes when the last reader has gone.
                Some(pipe) => drop(pipe.ready(Interest::ERROR).await),
                None => std::future::pending().await,
            }
        }
    }

    /// Asks a yes-or-no question; anything but yes is no.
    ///
    /// # Errors
    /// [`Failure::Output`] when the terminal is gone.
    pub fn ask(&mut self, question: &str) -> Result<bool, Failure> {
        self.talk(&format!("{question} [y/N] "))?;
        let mut answer = Vec::new();
        let mut byte = [0];
        // A line that never ends is no answer.
        while answer.len() < 64 {
            if self.input.read(&mut byte)? == 0 {
                // Nobody ended the line of the question.
                self.talk("\n")?;
                break;
            }
            if byte[0] == b'\n' {
                break;
            }
            answer.push(byte[0]);
        }
        Ok(matches!(
            String::from_utf8_lossy(&answer).trim().to_ascii_lowercase().as_str(),
            "y" | "yes"
        ))
    }

    /// Reads stdin to its end, at most `limit` bytes.
    ///
    /// # Errors
    /// [`Failure::User`] when there is more, [`Failure::Output`] when it cannot be read.
    pub fn read_input(&mut self, limit: usize) -> Result<Vec<u8>, Failure> {
        let mut bytes = Vec::new();
        (&mut self.input).take(limit as u64 + 1).read_to_end(&mut bytes)?;
        if bytes.len() > limit {
            return Err(Failure::user(format!("stdin holds more than {limit} bytes")));
        }
        Ok(bytes)
    }

    /// Prints why a command failed: one line, what to do next, and config problems as a compiler
    /// shows them.
    ///
    /// # Errors
    /// [`Failure::Output`] when nobody takes it.
    pub fn report(&mut self, failure: &Failure) -> Result<(), Failure> {
        let (error, help) = if self.err.colour {
            (bold(AnsiColor::Red), bold(AnsiColor::Cyan))
        } else {
            (Style::new(), Style::new())
        };
        match failure {
            Failure::Ended(_) => return Ok(()),
            Failure::Output(source) if source.kind() == io::ErrorKind::BrokenPipe => return Ok(()),
            // What could not be written stays so, and would be in the way of these words.
            Failure::Output(_) | Failure::Untold { .. } => self.out.to = Box::new(io::sink()),
            Failure::Config(problems) => {
                self.talk(&diagnostics::render(problems, self.err.colour))?
            }
            Failure::Refused(problem) if !problem.problems.is_empty() => {
                self.talk(&diagnostics::render(&problem.problems, self.err.colour))?
            }
            _ => {}
        }
        self.talk(&format!("{error}error{error:#}: {}\n", harmless(&failure.to_string())))?;
        if let Some(next) = failure.next() {
            self.talk(&format!("  {help}help{help:#}: {}\n", harmless(&next)))?;
        }
        self.flush()
    }
}

fn bold(colour: AnsiColor) -> Style {
    colour.on_default().bold()
}
