//! Passes a stream through to our own descriptor, at once. A reader that is slow holds the command up as it would without
//! us; one that takes nothing for [`STALLED_AFTER`] is taken for dead and holds up nothing any more. Called by `capture`.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::fs::{FileType, Mode, OFlags};
use rustix::io::Errno;

/// When so many bytes wait for a slow reader no more are read from the command, 1 MiB.
const WAITING_BYTES: usize = 1 << 20;

/// A reader that takes nothing for this long is taken for dead: from then on what it does not take at once is not shown
/// (it is kept all the same) until it takes something again.
const STALLED_AFTER: Duration = Duration::from_secs(5);

/// Where a stream goes.
pub(crate) struct Tee {
    target: Target,
    waiting: Vec<u8>,
    /// How many of `waiting` are shown already.
    shown: usize,
    /// When the reader last took something, while something waits.
    taken_at: Option<Instant>,
    stalled: bool,
    /// What the reader took last.
    last: Option<u8>,
    /// Bytes that were not shown because the reader was taken for dead.
    pub(crate) dropped: u64,
}

enum Target {
    /// Not looked at yet.
    Unknown(BorrowedFd<'static>),
    /// A file or a device: takes everything at once.
    Direct(BorrowedFd<'static>),
    /// A pipe or terminal, opened again for ourselves so that it never blocks and others who share it notice nothing.
    Reopened(OwnedFd),
    /// What cannot be opened again (a socket): asked before each small piece.
    Asked(BorrowedFd<'static>),
    /// Nobody reads any more, or it goes to /dev/null.
    Gone,
}

impl Tee {
    /// To this descriptor of ours.
    pub(crate) fn new(to: BorrowedFd<'static>) -> Self {
        Self { target: Target::Unknown(to), waiting: Vec::new(), shown: 0, taken_at: None, stalled: false, last: None, dropped: 0 }
    }

    /// Shows the next piece, as far as the reader takes it; the rest waits.
    pub(crate) fn push(&mut self, bytes: &[u8], now: Instant) {
        if let Target::Unknown(to) = self.target {
            self.target = look_at(to);
        }
        if !self.waiting.is_empty() {
            self.flush(now);
        }
        let taken = if self.waiting.is_empty() { self.write(bytes) } else { 0 };
        let rest = &bytes[taken..];
        if rest.is_empty() || matches!(self.target, Target::Gone) {
            return;
        }
        if self.stalled {
            self.dropped += rest.len() as u64;
            return;
        }
        self.taken_at = self.taken_at.or(Some(now));
        self.waiting.extend_from_slice(rest);
    }

    /// Shows what waits, as far as the reader takes it.
    pub(crate) fn flush(&mut self, now: Instant) {
        let waiting = std::mem::take(&mut self.waiting);
        let taken = self.write(&waiting[self.shown..]);
        self.shown += taken;
        if taken > 0 {
            self.stalled = false;
            self.taken_at = Some(now);
        }
        if matches!(self.target, Target::Gone) || self.shown == waiting.len() {
            self.shown = 0;
            self.taken_at = None;
        } else {
            self.waiting = waiting;
        }
    }

    /// Whether so much waits that no more should be read.
    pub(crate) fn is_full(&self) -> bool {
        !self.stalled && self.waiting.len() - self.shown >= WAITING_BYTES
    }

    /// Looks whether the reader is to be taken for dead.
    pub(crate) fn tick(&mut self, now: Instant) {
        if self.is_full() && self.next().is_some_and(|at| now >= at) {
            self.stalled = true;
        }
    }

    /// When to call [`Self::tick`].
    pub(crate) fn next(&self) -> Option<Instant> {
        if self.is_full() { self.taken_at.map(|at| at + STALLED_AFTER) } else { None }
    }

    /// The descriptor to wait for before [`Self::flush`], while something waits.
    pub(crate) fn blocked(&self) -> Option<BorrowedFd<'_>> {
        if self.waiting.is_empty() {
            return None;
        }
        match &self.target {
            Target::Reopened(to) => Some(to.as_fd()),
            Target::Asked(to) => Some(*to),
            Target::Unknown(_) | Target::Direct(_) | Target::Gone => None,
        }
    }

    /// Whether what the reader has ends within a line: what is written next would continue it.
    pub(crate) fn is_within_a_line(&self) -> bool {
        self.last.is_some_and(|last| last != b'\n')
    }

    fn write(&mut self, bytes: &[u8]) -> usize {
        let mut taken = 0;
        while taken < bytes.len() {
            let rest = &bytes[taken..];
            let wrote = match &self.target {
                Target::Reopened(to) => rustix::io::write(to, rest),
                Target::Direct(to) => rustix::io::write(to, rest),
                // A reader with room takes a page at once.
                Target::Asked(to) if is_writable(*to) => rustix::io::write(to, &rest[..rest.len().min(4096)]),
                Target::Asked(_) => Err(Errno::AGAIN),
                Target::Unknown(_) | Target::Gone => return 0,
            };
            match wrote {
                Ok(count) => {
                    taken += count;
                    self.last = bytes[..taken].last().copied();
                }
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => break,
                // Closed, or the disk behind it is full: showing is over, keeping is not.
                Err(_) => {
                    self.target = Target::Gone;
                    return 0;
                }
            }
        }
        taken
    }
}

fn is_writable(to: BorrowedFd<'_>) -> bool {
    let mut poll = [PollFd::new(&to, PollFlags::OUT)];
    rustix::event::poll(&mut poll, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })).is_ok_and(|ready| ready > 0)
}

fn look_at(to: BorrowedFd<'static>) -> Target {
    let Ok(status) = rustix::fs::fstat(to) else { return Target::Gone };
    match FileType::from_raw_mode(status.st_mode) {
        FileType::RegularFile | FileType::Directory => Target::Direct(to),
        FileType::CharacterDevice if is_null(status.st_rdev) => Target::Gone,
        FileType::Fifo | FileType::CharacterDevice => {
            let path = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&to));
            let flags = OFlags::WRONLY | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOCTTY;
            rustix::fs::open(path, flags, Mode::empty()).map_or(Target::Asked(to), Target::Reopened)
        }
        _ => Target::Asked(to),
    }
}

fn is_null(device: rustix::fs::Dev) -> bool {
    (rustix::fs::major(device), rustix::fs::minor(device)) == (1, 3)
}

/// Our own standard output or standard error as a descriptor that is never closed.
pub(crate) fn own(stream: schema::spool::Stream) -> BorrowedFd<'static> {
    match stream {
        schema::spool::Stream::Stdout => rustix::stdio::stdout(),
        schema::spool::Stream::Stderr => rustix::stdio::stderr(),
    }
}

/// Writes a message of ours to standard error, one line, after what the command wrote there.
pub(crate) fn say(message: &str) {
    let line = format!("pvn-wrapper: {message}\n");
    let mut left = line.as_bytes();
    while !left.is_empty() {
        match rustix::io::write(rustix::stdio::stderr(), left) {
            Ok(count) => left = &left[count..],
            Err(Errno::INTR) => {}
            // Nobody reads it; there is nobody else to tell.
            Err(_) => return,
        }
    }
}
