//! Where a command prints: data on stdout, talk on stderr. Knows whether people are watching, how
//! wide their terminal is and whether they want colour. Tests use one that remembers.

use std::fs::File;
use std::io::{self, IsTerminal, Read};
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
use crate::keyboard::Keyboard;
use crate::output_name::OutputName;
use crate::table::{Table, harmless};
use crate::typed::Typed;

mod paper;
mod remembered;
mod stream;

pub use paper::Paper;
pub use remembered::Remembered;

use paper::json;
pub(crate) use paper::yaml;
use stream::ConsoleStream;

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
        let out = Box::new(io::BufWriter::new(io::stdout()));
        let err = ConsoleStream::of_process(Box::new(io::stderr()), io::stderr());
        Self {
            input: Box::new(io::stdin()),
            can_ask: io::stdin().is_terminal() && err.width.is_some(),
            is_of_process: true,
            out: ConsoleStream::of_process(out, io::stdout()),
            err,
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

    /// Columns and rows of the terminal behind stderr as they are now, if it is one.
    pub fn talk_size(&self) -> Option<(u16, u16)> {
        self.err.size(self.is_of_process.then(io::stderr))
    }

    /// The same of the one behind stdout.
    pub fn data_size(&self) -> Option<(u16, u16)> {
        self.out.size(self.is_of_process.then(io::stdout))
    }

    /// Single keys of the person who watches stdout, if that is a terminal and so is stdin.
    pub fn keyboard(&self) -> Option<Keyboard> {
        (self.is_of_process && self.can_ask && self.out.width.is_some())
            .then(Keyboard::take)
            .flatten()
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

    /// What people's output is laid out for on a terminal of this width.
    pub fn paper(&self, width: u16) -> Paper {
        self.on_paper(Some(width))
    }

    /// The same for what is said on stderr.
    pub fn talk_paper(&self, width: u16) -> Paper {
        Paper { colour: self.err.colour, ..self.on_paper(Some(width)) }
    }

    fn on_paper(&self, width: Option<u16>) -> Paper {
        Paper {
            width,
            colour: self.out.colour,
            wide: self.format == OutputFormat::Wide,
            typed: self.typed.clone(),
        }
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
            OutputFormat::Table | OutputFormat::Wide | OutputFormat::Name => {
                let paper = self.on_paper(self.out.width);
                paper.typed.text(&people(&paper)).into_owned()
            }
        };
        self.data(&text)
    }

    /// The same for a thing that has a name, which is all that `-o name` prints.
    ///
    /// # Errors
    /// [`Failure::Output`] when nobody takes it.
    pub fn print_one<T: Serialize + OutputName>(
        &mut self,
        value: &T,
        people: impl FnOnce(&Paper) -> String,
    ) -> Result<(), Failure> {
        if self.format == OutputFormat::Name {
            return self.data(&format!("{}\n", harmless(&value.output_name())));
        }
        self.print(value, people)
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

    /// Prints a list: as a JSON array, as YAML, as names or as a table; people are told when it is
    /// empty, and after it what is missing because it cannot be read.
    ///
    /// # Errors
    /// [`Failure::Output`] when nobody takes it.
    pub fn print_list<T: Serialize + OutputName>(
        &mut self,
        list: &Listed<T>,
        none: &str,
        table: impl FnOnce(&[T]) -> Table,
    ) -> Result<(), Failure> {
        let is_data = self.format.is_data();
        match list.items.as_slice() {
            [] if !is_data && list.unreadable.is_empty() => return self.say(none),
            [] if !is_data => {}
            items if self.format == OutputFormat::Name => {
                let line = |item: &T| harmless(&item.output_name()) + "\n";
                self.data(&items.iter().map(line).collect::<String>())?;
            }
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
        // A line that never ends is no answer.
        let answer = self.ask_for(&format!("{question} [y/N]"), 64)?.unwrap_or_default();
        Ok(matches!(answer.to_ascii_lowercase().as_str(), "y" | "yes"))
    }

    /// Asks for a line of at most `limit` bytes; `None` where nobody answers (Ctrl-D).
    ///
    /// # Errors
    /// [`Failure::Output`] when the terminal is gone.
    pub fn ask_for(&mut self, question: &str, limit: usize) -> Result<Option<String>, Failure> {
        self.talk(&format!("{question} "))?;
        let mut answer = Vec::new();
        let mut byte = [0];
        while answer.len() < limit {
            if self.input.read(&mut byte)? == 0 {
                // Nobody ended the line of the question.
                self.talk("\n")?;
                if answer.is_empty() {
                    return Ok(None);
                }
                break;
            }
            if byte[0] == b'\n' {
                break;
            }
            answer.push(byte[0]);
        }
        Ok(Some(String::from_utf8_lossy(&answer).trim().to_owned()))
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
