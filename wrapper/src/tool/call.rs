//! Calls a tool's program: shows the command line, hands signals on to it alone, waits for it, and
//! keeps what it says for whoever has to understand it. Called by the tools.
//!
//! A stop is the tool's to end by: it is waited for, however long it takes; whoever asked has a
//! deadline of his own. Once a stop was asked for nothing else is started.
//!
//! All that a tool prints is read here, also when nobody reads it from us any more: the wrapper
//! around us may be killed, and a tool that writes to a pipe without a reader dies before it has
//! saved what it did. We may be killed too: so the tool holds the reading ends of its own pipes.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signalfd::SignalFd;
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::process::{Pid, kill_process};
use schema::shown;
use serde::Deserialize;

use super::program::not_started;
use super::{Fault, faults};
use crate::oom::OomCounter;
use crate::{raw, signals};

/// Most bytes of an answer that are read: a document of a tool is text for a person or a program,
/// and one that is larger is not what we asked for.
const ANSWER_LIMIT_BYTES: usize = 64 << 20;

/// Most bytes of a stream's end that are kept: where a tool says why it failed. What terraform says
/// in its own name stands before what failed in resources, with 8 KiB of what each one's program
/// printed.
const WORDS_LIMIT_BYTES: usize = 1 << 20;

/// How long a pipe is read on after its tool has ended: somebody else may hold it open.
const LEFT_OPEN: Duration = Duration::from_secs(1);

/// How much is read at a time.
const PIECE_BYTES: usize = 16 << 10;

/// What a call left.
pub(super) struct CallEnd {
    /// Its exit code, or 128 and the number of the signal that ended it.
    pub(super) code: u8,
    /// The signal that ended it.
    pub(super) signal: Option<signals::Number>,
    /// Whether the kernel has killed somebody for want of memory since the first call.
    pub(super) oom_killed: bool,
    /// What it wrote to standard output, where that was asked for.
    pub(super) answer: Vec<u8>,
    /// The end of what it wrote to standard error.
    pub(super) words: String,
}

impl CallEnd {
    #[cfg(test)]
    pub(super) fn failed(code: u8, words: &str) -> Self {
        Self { code, signal: None, oom_killed: false, answer: Vec::new(), words: words.to_owned() }
    }

    /// The JSON that `call` answered.
    pub(super) fn json<'a, T: Deserialize<'a>>(&'a self, call: &str) -> Result<T, Fault> {
        serde_json::from_slice(&self.answer).map_err(|error| no_json(call, &error))
    }

    /// What it comes to where the stop of `call` was asked for.
    pub(super) fn stopped(&self, call: &str) -> Fault {
        Fault { code: self.code, why: format!("`{call}` was asked to stop, and did") }
    }
}

/// That a call answered something else than the JSON that was asked for.
pub(super) fn no_json(call: &str, error: &serde_json::Error) -> Fault {
    Fault::failed(format!("`{call}` printed no JSON as it should: {error}"))
}

/// Where standard output of a call goes.
pub(super) enum Output<'a> {
    /// To ours.
    Shown,
    /// To our standard error: ours is for a document.
    Aside,
    /// Into [`CallEnd::answer`].
    Kept,
    /// To ours, and its end into [`CallEnd::answer`]: some tools say there why they failed.
    Followed,
    /// Into this file.
    Into(&'a File),
}

impl Output<'_> {
    /// A piece of standard output; `answer`: what is kept of it.
    fn take(&self, piece: &[u8], answer: &mut Vec<u8>) {
        match self {
            Self::Shown => show(io::stdout(), piece),
            Self::Aside => show(io::stderr(), piece),
            Self::Followed => {
                show(io::stdout(), piece);
                keep_end(answer, piece);
            }
            // Enough to see that it is too much.
            Self::Kept if answer.len() <= ANSWER_LIMIT_BYTES => answer.extend_from_slice(piece),
            Self::Kept | Self::Into(_) => {}
        }
    }
}

/// Passes a piece on at once, if anybody reads it.
fn show(mut ours: impl Write, piece: &[u8]) {
    let _ = ours.write_all(piece).and_then(|()| ours.flush());
}

/// A pipe of a tool.
struct ToolPipe {
    /// The end that we read.
    ours: OwnedFd,
    /// The end that it writes to.
    tools: OwnedFd,
    /// What we read from, once more, for the tool to inherit: so that it never writes to a pipe
    /// that has no reader, which would kill it.
    held: OwnedFd,
}

impl ToolPipe {
    fn new() -> io::Result<Self> {
        let (ours, tools) = io::pipe()?;
        let held = rustix::io::dup(&ours)?;
        Ok(Self { ours: ours.into(), tools: tools.into(), held })
    }
}

/// Calls one program after the other.
pub(super) struct ToolCaller {
    signals: SignalFd,
    /// Variables beside those that we got.
    variables: Vec<(OsString, OsString)>,
    /// How variables begin that are kept from the calls.
    hidden: Option<&'static str>,
    memory: OomCounter,
    /// Whether somebody asked us to stop.
    stopped: bool,
}

impl ToolCaller {
    pub(super) fn new() -> Result<Self, Fault> {
        let signals = signals::descriptor()
            .map_err(|error| Fault::failed(format!("cannot wait for signals: {error}")))?;
        Ok(Self {
            signals,
            variables: Vec::new(),
            hidden: None,
            memory: OomCounter::now(),
            stopped: false,
        })
    }

    /// Gives all calls a variable, unless somebody gave it another value.
    pub(super) fn default(&mut self, name: &str, value: impl AsRef<OsStr>) {
        if std::env::var_os(name).is_none() {
            self.variables.push((name.into(), value.as_ref().into()));
        }
    }

    /// What calls have for a variable.
    pub(super) fn given(&self, name: &str) -> Option<OsString> {
        let own =
            self.variables.iter().find(|(key, _)| key == name).map(|(_, value)| value.clone());
        own.or_else(|| std::env::var_os(name))
    }

    /// Gives all calls from now on a variable, whatever value somebody gave it.
    pub(super) fn set(&mut self, name: &str, value: impl AsRef<OsStr>) {
        self.variables.retain(|(key, _)| key != name);
        self.variables.push((name.into(), value.as_ref().into()));
    }

    /// Keeps variables that begin so from all calls from now on.
    pub(super) fn hide(&mut self, prefix: Option<&'static str>) {
        self.hidden = prefix;
    }

    /// Runs a program and shows its command line first, so that a person can run it again.
    pub(super) fn call(&mut self, command: &[OsString], to: Output<'_>) -> Result<CallEnd, Fault> {
        // Nobody may read it.
        let _ = writeln!(io::stderr(), "+ {}", shell_line(command));
        self.run(command, to)
    }

    /// The same without showing it.
    pub(super) fn in_silence(&mut self, command: &[OsString]) -> Result<CallEnd, Fault> {
        self.run(command, Output::Shown)
    }

    fn run(&mut self, command: &[OsString], to: Output<'_>) -> Result<CallEnd, Fault> {
        let name = command[0].to_string_lossy();
        if self.stopped {
            return Err(Fault::failed(format!("stopped before `{name}` was run")));
        }
        let faulty = |error: io::Error| Fault::failed(format!("`{name}`: {error}"));
        let errors = ToolPipe::new().map_err(faulty)?;
        let (output, stdout) = match to {
            Output::Into(file) => (None, Stdio::from(file.try_clone().map_err(faulty)?)),
            _ => {
                let ToolPipe { ours, tools, held } = ToolPipe::new().map_err(faulty)?;
                (Some((ours, held)), tools.into())
            }
        };
        let mut child = Command::new(&command[0]);
        child
            .args(&command[1..])
            .envs(self.variables.iter().map(|(key, value)| (key, value)))
            .stdin(Stdio::null())
            .stderr(errors.tools)
            .stdout(stdout)
            // Of its own, so that what is sent to our group reaches it once, by us.
            .process_group(0);
        if let Some(prefix) = self.hidden {
            let is_hidden =
                |name: &OsString| name.as_encoded_bytes().starts_with(prefix.as_bytes());
            for (name, _) in std::env::vars_os().filter(|(name, _)| is_hidden(name)) {
                child.env_remove(name);
            }
        }
        // We have all signals blocked, and a program that does not undo that hears of no stop.
        raw::give_mask(&mut child, signals::given());
        let spawned = child.spawn().map_err(|error| not_started(&command[0], error));
        // Our copies of its ends: a pipe is over once the tool has closed it.
        drop(child);
        let mut child = spawned?;
        drop(errors.held);
        let pipes = [output.map(|(ours, _)| ours), Some(errors.ours)];
        let (status, answer, words) = self.watch(&mut child, pipes, &to).map_err(faulty)?;
        if answer.len() > ANSWER_LIMIT_BYTES {
            return Err(Fault::failed(format!(
                "`{name}` wrote more than {ANSWER_LIMIT_BYTES} bytes where one document was \
                 expected"
            )));
        }
        let signal = status.signal();
        let code = status.code().or_else(|| signal.map(|number| 128 + number));
        let code = code.and_then(|code| u8::try_from(code).ok()).unwrap_or(u8::MAX);
        Ok(CallEnd {
            code,
            signal,
            oom_killed: code == faults::KILLED && self.memory.has_killed(),
            answer,
            words: String::from_utf8_lossy(&words).into_owned(),
        })
    }

    /// Whether a stop was asked for, so that what the tool ended with is about that.
    pub(super) fn is_stopped(&self) -> bool {
        self.stopped
    }

    /// Waits for the end of a program and of its output.
    fn watch(
        &mut self,
        child: &mut Child,
        [mut stdout, mut stderr]: [Option<OwnedFd>; 2],
        to: &Output<'_>,
    ) -> io::Result<(ExitStatus, Vec<u8>, Vec<u8>)> {
        let (mut answer, mut words) = (Vec::new(), Vec::new());
        let mut ended: Option<(ExitStatus, Instant)> = None;
        loop {
            let left = match ended {
                Some((status, _)) if stdout.is_none() && stderr.is_none() => {
                    return Ok((status, answer, words));
                }
                Some((status, at)) => match LEFT_OPEN.checked_sub(at.elapsed()) {
                    Some(left) => Some(left),
                    None => return Ok((status, answer, words)),
                },
                None => None,
            };
            let [of_signals, of_stdout, of_stderr] =
                self.wait(stdout.as_ref(), stderr.as_ref(), left)?;
            if of_signals {
                self.forward(child)?;
            }
            if ended.is_none() {
                ended = child.try_wait()?.map(|status| (status, Instant::now()));
            }
            if of_stdout {
                stdout = read(stdout, |piece| to.take(piece, &mut answer))?;
            }
            if of_stderr {
                stderr = read(stderr, |piece| {
                    show(io::stderr(), piece);
                    keep_end(&mut words, piece);
                })?;
            }
        }
    }

    /// Which of the three has something.
    fn wait(
        &self,
        stdout: Option<&OwnedFd>,
        stderr: Option<&OwnedFd>,
        left: Option<Duration>,
    ) -> io::Result<[bool; 3]> {
        let descriptors =
            [Some(self.signals.as_fd()), stdout.map(AsFd::as_fd), stderr.map(AsFd::as_fd)];
        let mut polled: Vec<PollFd<'_>> = descriptors
            .iter()
            .flatten()
            .map(|descriptor| PollFd::from_borrowed_fd(*descriptor, PollFlags::IN))
            .collect();
        let left = left.map(|left| Timespec {
            tv_sec: left.as_secs().cast_signed(),
            tv_nsec: left.subsec_nanos().into(),
        });
        match rustix::event::poll(&mut polled, left.as_ref()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let mut polled = polled.iter();
        Ok(descriptors.map(|descriptor| {
            descriptor.is_some() && polled.next().is_some_and(|polled| !polled.revents().is_empty())
        }))
    }

    /// Hands on what we got.
    fn forward(&mut self, child: &Child) -> io::Result<()> {
        while let Some(signal) = self.signals.read_signal()? {
            let number = signal.ssi_signo.cast_signed();
            if !signals::is_forwarded(number) {
                continue;
            }
            // Who asks again, as whoever finds us without the wrapper around us does, means the
            // same stop; terraform takes a second one for "at once", and loses what it was making.
            if is_stop(number) && std::mem::replace(&mut self.stopped, true) {
                continue;
            }
            if let (Some(pid), Some(signal)) =
                (Pid::from_raw(child.id().cast_signed()), signals::of(number))
            {
                // It may have ended meanwhile.
                let _ = kill_process(pid, signal);
            }
        }
        Ok(())
    }
}

/// Adds a piece, and drops what is before the end that is kept.
fn keep_end(kept: &mut Vec<u8>, piece: &[u8]) {
    kept.extend_from_slice(piece);
    let over = kept.len().saturating_sub(WORDS_LIMIT_BYTES);
    kept.drain(..over);
}

/// Whether a signal asks for the end.
fn is_stop(number: signals::Number) -> bool {
    ["TERM", "INT", "HUP", "QUIT"].iter().any(|name| signals::parse(name) == Ok(number))
}

/// Reads a piece; `None` at the end.
fn read(pipe: Option<OwnedFd>, mut take: impl FnMut(&[u8])) -> io::Result<Option<OwnedFd>> {
    let Some(pipe) = pipe else { return Ok(None) };
    let mut piece = [0; PIECE_BYTES];
    let mut file = File::from(pipe);
    let length = file.read(&mut piece)?;
    take(&piece[..length]);
    Ok((length > 0).then(|| file.into()))
}

/// A command line as a shell takes it.
fn shell_line(command: &[OsString]) -> String {
    let words = command.iter().map(|word| shown::shell_word(&word.to_string_lossy()));
    words.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_line_is_shown_as_a_shell_takes_it() {
        for (word, shown) in [
            ("plan", "plan"),
            ("-backend-config=path=/a/b.tfstate", "-backend-config=path=/a/b.tfstate"),
            ("", "''"),
            ("a b", "'a b'"),
            ("it's", r"'it'\''s'"),
            ("$HOME", "'$HOME'"),
        ] {
            assert_eq!(shell_line(&[word.into()]), shown);
        }
    }
}
