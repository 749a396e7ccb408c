//! Finds the command and starts it: one `posix_spawn`, its own process group, the signal mask that
//! we were given, and the descriptors, arguments and environment that a direct exec would have
//! given it, less `PVN_TOKEN` and `PVN_TOKEN_FILE`. Called by `main`.
//!
//! The child has exactly the dispositions that we were given, but for one: an "ignore" of SIGCHLD
//! is undone for it too. What it would do to us it would do to it, and no moment is safe to put it
//! back: a child may be gone, and its status with it, right after the start.

use std::ffi::{CString, OsStr, OsString};
use std::io::Read;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use nix::spawn::{PosixSpawnAttr, PosixSpawnFileActions, PosixSpawnFlags, posix_spawn};
use rustix::fs::{Access, FileType, Mode};
use rustix::io::Errno;
use rustix::pipe::PipeFlags;
use rustix::process::Pid;
use schema::wire::{HIDDEN_PREFIX, TOKEN_FILE_VARIABLE, TOKEN_VARIABLE};

use crate::signals::Inherited;
use crate::terminal::Terminal;
use crate::thread_result::ThreadResult;
use crate::{exit, raw};

/// Variables as we got them.
pub(crate) type Environment = Vec<(OsString, OsString)>;

/// The value of a variable, unless it is empty.
pub(crate) fn variable<'a>(environment: &'a Environment, name: &str) -> Option<&'a OsStr> {
    environment
        .iter()
        .find(|(key, value)| key == name && !value.is_empty())
        .map(|(_, value)| value.as_os_str())
}

/// Why nothing was started.
#[derive(Debug)]
pub(crate) struct SpawnRefusal {
    /// What the wrapper ends with.
    pub(crate) code: u8,
    /// For people, with the name of the command in it.
    pub(crate) why: String,
    /// Whether another try makes sense.
    pub(crate) surroundings: bool,
}

impl SpawnRefusal {
    /// A failure of our own, or a usage error.
    pub(crate) fn ours(why: String) -> Self {
        Self { code: exit::OURS, why, surroundings: false }
    }
}

/// A started command.
pub(crate) struct SpawnedCommand {
    pub(crate) pid: Pid,
    pub(crate) stdout: OwnedFd,
    pub(crate) stderr: OwnedFd,
}

/// Whether a variable is ours and the child does not see it: what speaks for the job is the
/// wrapper's alone, and so are values that are only to be masked.
pub(crate) fn is_hidden(key: &OsStr) -> bool {
    key == TOKEN_VARIABLE
        || key == TOKEN_FILE_VARIABLE
        || key.as_bytes().starts_with(HIDDEN_PREFIX.as_bytes())
}

/// How long a program that is open for writing is tried again, and how often: whoever starts
/// another process while writing it leaves it open in that one for a moment.
const BUSY_PATIENCE: Duration = Duration::from_secs(2);
const BUSY_EVERY: Duration = Duration::from_millis(10);

/// Where a command without a slash is looked up when there is no PATH. Source: `_PATH_DEFPATH` of
/// paths.h.
const DEFAULT_PATH: &str = "/usr/bin:/bin";

/// Starts `command`, which has the `terminal` from then on. Not inlined, for the sake of the
/// caller's stack.
#[inline(never)]
pub(crate) fn start(
    command: &[OsString],
    environment: &[(OsString, OsString)],
    inherited: &Inherited,
    terminal: Option<Terminal>,
) -> Result<SpawnedCommand, SpawnRefusal> {
    let name = &command[0];
    let path =
        environment.iter().find(|(key, _)| key == "PATH").map(|(_, value)| value.as_os_str());
    let path = find(name, path)?;
    let arguments = command
        .iter()
        .map(|argument| c_string(argument.as_bytes().to_owned()))
        .collect::<Result<Vec<_>, _>>()?;
    let variables = environment
        .iter()
        .filter(|(key, _)| !is_hidden(key))
        .map(|(key, value)| c_string(assignment(key.as_bytes(), value.as_bytes())))
        .collect::<Result<Vec<_>, _>>()?;
    let faulty = |error: std::io::Error| SpawnRefusal {
        code: exit::OURS,
        why: format!("no pipe for the output of the command: {error}"),
        surroundings: true,
    };
    // Only our end must not block; the child gets an ordinary pipe.
    let (stdout, child_stdout) =
        rustix::pipe::pipe_with(PipeFlags::CLOEXEC).map_err(|error| faulty(error.into()))?;
    let (stderr, child_stderr) =
        rustix::pipe::pipe_with(PipeFlags::CLOEXEC).map_err(|error| faulty(error.into()))?;
    for end in [&stdout, &stderr] {
        rustix::fs::fcntl_setfl(end, rustix::fs::OFlags::NONBLOCK)
            .map_err(|error| faulty(error.into()))?;
    }
    let spawn = |with_terminal| {
        let (actions, attributes) =
            prepare(&child_stdout, &child_stderr, inherited, with_terminal)?;
        posix_spawn(path.as_os_str(), &actions, &attributes, &arguments, &variables)
    };
    // As root the command may become another user, and open `/dev/stdout` again as that one: a pipe
    // is its maker's alone.
    if raw::began_as_root() {
        for end in [&child_stdout, &child_stderr] {
            rustix::fs::fchmod(end, Mode::from_raw_mode(0o622))
                .map_err(|error| faulty(error.into()))?;
        }
    }
    // What was refused is the command, or a terminal that hung up meanwhile: without the terminal
    // we learn which.
    let mut spawned = spawn(terminal.is_some()).or_else(|error| {
        terminal.ok_or(error)?.regain();
        spawn(false)
    });
    let began = Instant::now();
    while spawned == Err(nix::Error::ETXTBSY) && began.elapsed() < BUSY_PATIENCE {
        ThreadResult::<()>::new().sleep(None, BUSY_EVERY);
        spawned = spawn(false);
    }
    match spawned {
        Ok(pid) => Ok(SpawnedCommand {
            pid: Pid::from_raw(pid.as_raw()).expect("a started process has a pid"),
            stdout,
            stderr,
        }),
        Err(error) => Err(refused(name, &path, std::io::Error::from_raw_os_error(error as i32))),
    }
}

fn prepare(
    stdout: &OwnedFd,
    stderr: &OwnedFd,
    inherited: &Inherited,
    with_terminal: bool,
) -> nix::Result<(PosixSpawnFileActions, PosixSpawnAttr)> {
    let mut actions = PosixSpawnFileActions::init()?;
    if with_terminal {
        raw::give_terminal(&mut actions)?;
    }
    actions.add_dup2(stdout.as_raw_fd(), 1)?;
    actions.add_dup2(stderr.as_raw_fd(), 2)?;
    let mut attributes = PosixSpawnAttr::init()?;
    attributes.set_flags(
        PosixSpawnFlags::POSIX_SPAWN_SETPGROUP | PosixSpawnFlags::POSIX_SPAWN_SETSIGMASK,
    )?;
    attributes.set_pgroup(nix::unistd::Pid::from_raw(0))?;
    attributes.set_sigmask(&inherited.0)?;
    Ok((actions, attributes))
}

/// `KEY=VALUE`.
fn assignment(key: &[u8], value: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(key.len() + 1 + value.len() + 1);
    bytes.extend_from_slice(key);
    bytes.push(b'=');
    bytes.extend_from_slice(value);
    bytes
}

fn c_string(bytes: Vec<u8>) -> Result<CString, SpawnRefusal> {
    CString::new(bytes).map_err(|_| {
        SpawnRefusal::ours("a zero byte stands in the command or its environment".to_owned())
    })
}

/// The file to execute, as `execvp` would find it; `path`: PATH. One that is there and may not be
/// executed is found where there is no other.
pub(crate) fn find(name: &OsStr, path: Option<&OsStr>) -> Result<PathBuf, SpawnRefusal> {
    let not_found =
        |why: String| Err(SpawnRefusal { code: exit::NOT_FOUND, why, surroundings: false });
    if name.is_empty() {
        return not_found("the name of the command is empty".to_owned());
    }
    if name.as_bytes().contains(&b'/') {
        return Ok(name.into());
    }
    let path = path.unwrap_or(OsStr::new(DEFAULT_PATH));
    let mut seen_but_not_executable = None;
    for directory in path.as_bytes().split(|byte| *byte == b':') {
        let directory = if directory.is_empty() {
            Path::new(".")
        } else {
            Path::new(OsStr::from_bytes(directory))
        };
        let file = directory.join(name);
        match rustix::fs::access(&file, Access::EXEC_OK) {
            // A directory can be "executed" too; like a shell, look on.
            Ok(()) if is_directory(&file) => {}
            Ok(()) => return Ok(file),
            Err(Errno::ACCESS) if rustix::fs::stat(&file).is_ok() => {
                seen_but_not_executable = seen_but_not_executable.or(Some(file))
            }
            Err(_) => {}
        }
    }
    match seen_but_not_executable {
        Some(file) => Ok(file),
        None => {
            let shown = name.to_string_lossy();
            not_found(format!(
                "`{shown}` was not found on PATH ({}){}",
                path.to_string_lossy(),
                of_a_blank(&shown)
            ))
        }
    }
}

fn is_directory(path: &Path) -> bool {
    rustix::fs::stat(path)
        .is_ok_and(|status| FileType::from_raw_mode(status.st_mode) == FileType::Directory)
}

/// What the kernel's refusal to execute `path` means.
pub(crate) fn refused(name: &OsStr, path: &Path, error: std::io::Error) -> SpawnRefusal {
    let shown = name.to_string_lossy();
    let number = error.raw_os_error().map(Errno::from_raw_os_error);
    let (code, why) = match number {
        Some(Errno::NOENT | Errno::NOTDIR) => (exit::NOT_FOUND, not_there(&shown, path)),
        Some(Errno::ACCESS) if is_directory(path) => {
            (exit::NOT_EXECUTABLE, format!("`{shown}` is a directory, not a program"))
        }
        Some(Errno::ACCESS) => (
            exit::NOT_EXECUTABLE,
            format!(
                "`{shown}` may not be executed: it, or its interpreter, lacks the `x` permission"
            ),
        ),
        Some(Errno::NOEXEC) => (
            exit::NOT_EXECUTABLE,
            format!(
                "`{shown}` is no program for this machine: wrong architecture, or a script \
                 without its `#!` line"
            ),
        ),
        Some(Errno::TOOBIG) => (
            exit::NOT_EXECUTABLE,
            format!("`{shown}` cannot be executed: its arguments and environment are too long"),
        ),
        Some(Errno::AGAIN | Errno::NOMEM | Errno::NFILE | Errno::MFILE) => {
            let why = format!("`{shown}` cannot be started: no room for another process ({error})");
            return SpawnRefusal { code: exit::OURS, why, surroundings: true };
        }
        Some(Errno::TXTBSY) => {
            let why = format!("`{shown}` cannot be executed: it stays open for writing");
            return SpawnRefusal { code: exit::NOT_EXECUTABLE, why, surroundings: true };
        }
        _ => (exit::NOT_EXECUTABLE, format!("`{shown}` cannot be executed: {error}")),
    };
    SpawnRefusal { code, why, surroundings: false }
}

/// ENOENT for a file that is there means the interpreter of a script, or the loader of a program.
fn not_there(shown: &str, path: &Path) -> String {
    if !path.exists() {
        let place = match std::env::current_dir() {
            Ok(directory) if path.is_relative() => format!(" in {}", directory.display()),
            _ => String::new(),
        };
        return format!("`{shown}` was not found{place}{}", of_a_blank(shown));
    }
    let mut line = Vec::new();
    // 256 bytes is as much as the kernel reads of it (BINPRM_BUF_SIZE).
    let read = std::fs::File::open(path).and_then(|file| file.take(256).read_to_end(&mut line));
    let first = line.split(|byte| *byte == b'\n').next().unwrap_or_default();
    match (read, first.strip_prefix(b"#!")) {
        (Ok(_), Some(rest)) => {
            // Up to a blank, as the kernel takes it: it knows nothing of carriage returns.
            let interpreter = rest
                .trim_ascii_start()
                .split(|byte| matches!(byte, b' ' | b'\t'))
                .next()
                .unwrap_or_default();
            if interpreter.ends_with(b"\r") {
                return format!(
                    "the first line of `{shown}` ends with a carriage return, so that its \
                     interpreter was not found: save it with the line ends of Unix (`sed -i \
                     's/\\r$//' FILE`)"
                );
            }
            format!(
                "the interpreter `{}` of `{shown}` was not found",
                OsString::from_vec(interpreter.to_owned()).to_string_lossy()
            )
        }
        _ => format!("the loader of `{shown}` was not found: it was built for another system"),
    }
}

/// What is added for a name with a blank in it. Its words are not repeated: a secret among them
/// would no more be one piece, and not be masked.
fn of_a_blank(name: &str) -> &'static str {
    if name.contains([' ', '\t']) {
        "; its name has a blank in it: where that begins an argument, write each as an item of its \
         own, as in `[./work.sh, --now]`"
    } else {
        ""
    }
}
