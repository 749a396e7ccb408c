//! Writes to descriptors that we were given, and that others share: pipes, terminals, sockets and
//! files. Called by `tee` for the streams, and by whatever says something of our own.
//!
//! What always holds: nothing here waits for a reader, but [`within`], which waits for so long and
//! no longer. A reader of our output that is stuck must not keep a report from being delivered, nor
//! us from hearing a signal.

use std::io::{self, IoSlice};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::fs::{FileType, Mode, OFlags};
use rustix::io::{Errno, ReadWriteFlags};
use schema::mask::{self, Secrets};
use schema::wire::WORDS_MARK;

/// What a pipe takes at once when it says that it takes anything. Source: `PIPE_BUF` of pipe(7).
const PIPE_BYTES: usize = 4096;

/// How long a message of ours waits for a reader of standard error. Once one was in vain, no other
/// waits.
const MESSAGE_PATIENCE: Duration = Duration::from_secs(1);

/// Where bytes go.
pub(crate) enum Writer {
    /// A file: takes everything at once.
    Direct(BorrowedFd<'static>),
    /// A pipe or terminal, opened for ourselves so that it never blocks and others who share it
    /// notice nothing.
    Own(OwnedFd),
    /// What cannot be opened again (a socket, or the pipe of another user): written to without
    /// waiting where the kernel can do that, else a small piece at a time, after asking.
    Asked { to: BorrowedFd<'static>, without_waiting: bool },
    /// Nobody reads any more, or it goes to /dev/null.
    Gone,
}

impl Writer {
    /// To this descriptor, which is never closed.
    pub(crate) fn of(to: BorrowedFd<'static>) -> Self {
        let Ok(status) = rustix::fs::fstat(to) else { return Self::Gone };
        let asked = Self::Asked { to, without_waiting: true };
        match FileType::from_raw_mode(status.st_mode) {
            FileType::RegularFile | FileType::Directory => Self::Direct(to),
            FileType::CharacterDevice if is_null(status.st_rdev) => Self::Gone,
            FileType::Fifo | FileType::CharacterDevice => {
                let path = format!("/proc/self/fd/{}", to.as_raw_fd());
                let flags = OFlags::WRONLY | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOCTTY;
                rustix::fs::open(path, flags, Mode::empty()).map_or(asked, Self::Own)
            }
            _ => asked,
        }
    }

    /// Writes what is taken at once, and says how much; `AGAIN` for nothing.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> Result<usize, Errno> {
        match self {
            Self::Own(to) => rustix::io::write(to, bytes),
            Self::Direct(to) => rustix::io::write(*to, bytes),
            Self::Asked { to, without_waiting } => {
                if *without_waiting {
                    // At the descriptor's own position, as `write` does.
                    let wrote = rustix::io::pwritev2(
                        *to,
                        &[IoSlice::new(bytes)],
                        u64::MAX,
                        ReadWriteFlags::NOWAIT,
                    );
                    if !matches!(
                        wrote,
                        Err(Errno::OPNOTSUPP
                            | Errno::NOSYS
                            | Errno::INVAL
                            | Errno::SPIPE
                            | Errno::PERM)
                    ) {
                        return wrote;
                    }
                    *without_waiting = false;
                }
                if is_writable(*to) {
                    rustix::io::write(*to, &bytes[..bytes.len().min(PIPE_BYTES)])
                } else {
                    Err(Errno::AGAIN)
                }
            }
            Self::Gone => Err(Errno::PIPE),
        }
    }

    /// The descriptor that says when more is taken; `None` for one that never has to be waited for.
    pub(crate) fn waits_on(&self) -> Option<BorrowedFd<'_>> {
        match self {
            Self::Own(to) => Some(to.as_fd()),
            Self::Asked { to, .. } => Some(*to),
            Self::Direct(_) | Self::Gone => None,
        }
    }

    /// Whether it is written to a file, of which nobody can hang up.
    pub(crate) fn is_file(&self) -> bool {
        matches!(self, Self::Direct(_))
    }

    /// Whether what is written goes nowhere.
    pub(crate) fn is_gone(&self) -> bool {
        matches!(self, Self::Gone)
    }
}

/// Writes all of `bytes`, waiting for a reader that takes nothing for `idle` at most, and for
/// `total` in all.
///
/// # Errors
/// `TimedOut` when it is not all taken in that time; what was taken stays.
pub(crate) fn within(
    to: &mut Writer,
    bytes: &[u8],
    idle: Duration,
    total: Duration,
) -> io::Result<()> {
    if to.is_gone() {
        return Ok(());
    }
    let began = Instant::now();
    let mut taken_at = began;
    let mut left = bytes;
    while !left.is_empty() {
        match to.write(left) {
            Ok(count) => {
                left = &left[count..];
                taken_at = Instant::now();
            }
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) => {
                let patience = idle
                    .saturating_sub(taken_at.elapsed())
                    .min(total.saturating_sub(began.elapsed()));
                let Some(on) = to.waits_on().filter(|_| !patience.is_zero()) else {
                    return Err(io::Error::new(io::ErrorKind::TimedOut, "nobody reads it"));
                };
                let timeout = Timespec {
                    tv_sec: patience.as_secs().cast_signed(),
                    tv_nsec: patience.subsec_nanos().into(),
                };
                let mut poll = [PollFd::from_borrowed_fd(on, PollFlags::OUT)];
                match rustix::event::poll(&mut poll, Some(&timeout)) {
                    Ok(_) | Err(Errno::INTR) => {}
                    Err(error) => return Err(error.into()),
                }
            }
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// What is hidden in messages of ours, from when it is known: they may name paths and arguments.
static SECRETS: OnceLock<&'static Secrets> = OnceLock::new();

/// Hides these in all messages from now on.
pub(crate) fn hide(secrets: &'static Secrets) {
    let _ = SECRETS.set(secrets);
}

/// Writes a message of ours to standard error, one line, after what the command wrote there. Where
/// nobody takes it there is nobody else to tell.
pub(crate) fn say(message: &str) {
    static IN_VAIN: AtomicBool = AtomicBool::new(false);
    let patience = if IN_VAIN.load(Ordering::Relaxed) { Duration::ZERO } else { MESSAGE_PATIENCE };
    let mut to = Writer::of(rustix::stdio::stderr());
    let line = format!("{WORDS_MARK}{}\n", mask::hide(SECRETS.get().copied(), message));
    if within(&mut to, line.as_bytes(), patience, patience).is_err() {
        IN_VAIN.store(true, Ordering::Relaxed);
    }
}

fn is_writable(to: BorrowedFd<'_>) -> bool {
    let mut poll = [PollFd::new(&to, PollFlags::OUT)];
    rustix::event::poll(&mut poll, Some(&Timespec { tv_sec: 0, tv_nsec: 0 }))
        .is_ok_and(|ready| ready > 0)
}

fn is_null(device: rustix::fs::Dev) -> bool {
    (rustix::fs::major(device), rustix::fs::minor(device)) == (1, 3)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The writing end of a pipe that nobody reads, for as long as the test runs.
    fn stuck() -> (OwnedFd, BorrowedFd<'static>) {
        let (reader, writer) = rustix::pipe::pipe().unwrap();
        let writer: &'static OwnedFd = Box::leak(Box::new(writer));
        (reader, writer.as_fd())
    }

    #[test]
    fn a_reader_that_takes_nothing_is_not_waited_for_beyond_the_time() {
        for asked in [None, Some(true), Some(false)] {
            let (_reader, writer) = stuck();
            let mut to = asked.map_or_else(
                || Writer::of(writer),
                |without_waiting| Writer::Asked { to: writer, without_waiting },
            );
            let idle = Duration::from_millis(50);
            let error =
                within(&mut to, &vec![0; 1 << 20], idle, Duration::from_secs(3600)).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::TimedOut, "{asked:?}");
        }
    }

    #[test]
    fn a_reader_that_takes_a_little_now_and_then_is_not_waited_for_beyond_the_time_in_all() {
        let (reader, writer) = stuck();
        let done = std::sync::Arc::new(AtomicBool::new(false));
        let thread = {
            let done = std::sync::Arc::clone(&done);
            std::thread::spawn(move || {
                while !done.load(Ordering::Relaxed) {
                    let _ = rustix::io::read(&reader, &mut [0; 4096]);
                }
            })
        };
        let endless = vec![0; 1 << 30];
        let total = Duration::from_millis(100);
        let error = within(&mut Writer::of(writer), &endless, Duration::from_secs(3600), total)
            .unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        done.store(true, Ordering::Relaxed);
        let _ = rustix::io::write(writer, b"x");
        thread.join().unwrap();
    }

    #[test]
    fn nobody_at_the_other_end_is_an_error_at_once() {
        let (reader, writer) = stuck();
        drop(reader);
        let error = within(
            &mut Writer::of(writer),
            b"x",
            Duration::from_secs(3600),
            Duration::from_secs(3600),
        )
        .unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::BrokenPipe);
    }
}
