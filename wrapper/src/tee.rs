//! Passes a stream through to our own descriptor, at once. A reader that is slow holds the command
//! up as it would without us; one that takes nothing for [`STALLED_AFTER`] is taken for dead and
//! holds up nothing any more. Called by `capture`.

use std::collections::VecDeque;
use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant};

use rustix::io::Errno;

use crate::writer::Writer;

/// When so many bytes wait for a slow reader no more are read from the command, 1 MiB.
const WAITING_BYTES: usize = 1 << 20;

/// A reader that takes nothing for this long is taken for dead: from then on what it does not take
/// at once is not shown (it is kept all the same) until it takes something again.
const STALLED_AFTER: Duration = Duration::from_secs(5);

/// Where a stream goes.
pub(crate) struct Tee {
    to: BorrowedFd<'static>,
    /// Made when there is something to show.
    writer: Option<Writer>,
    /// At most [`WAITING_BYTES`] and what was read last: what is shown leaves it, whether or not
    /// the rest ever does.
    waiting: VecDeque<u8>,
    /// When the reader last took something, while something waits.
    taken_at: Option<Instant>,
    stalled: bool,
    /// What the reader took last.
    last: Option<u8>,
    /// Bytes that were not shown because the reader was taken for dead, or because there is no
    /// room where they go.
    dropped: u64,
    /// Those of them that no mark stands for yet where they are missing.
    unmarked: u64,
    /// Why there is none.
    full: Option<Errno>,
}

impl Tee {
    /// To this descriptor of ours.
    pub(crate) fn new(to: BorrowedFd<'static>) -> Self {
        Self {
            to,
            writer: None,
            waiting: VecDeque::new(),
            taken_at: None,
            stalled: false,
            last: None,
            dropped: 0,
            unmarked: 0,
            full: None,
        }
    }

    /// Shows the next piece, as far as the reader takes it; the rest waits.
    pub(crate) fn push(&mut self, bytes: &[u8], now: Instant) {
        if !self.waiting.is_empty() {
            self.flush(now);
        }
        if self.unmarked > 0 && !self.stalled {
            self.mark(now);
        }
        let taken = if self.waiting.is_empty() { self.write(bytes) } else { 0 };
        let rest = &bytes[taken..];
        if self.full.is_some() {
            self.dropped += rest.len() as u64;
        }
        if rest.is_empty() || self.is_gone() {
            return;
        }
        if self.stalled {
            self.dropped += rest.len() as u64;
            self.unmarked += rest.len() as u64;
            return;
        }
        self.taken_at = self.taken_at.or(Some(now));
        self.waiting.extend(rest);
    }

    /// Says where something is missing, to a reader that takes something again: what follows would
    /// else go on in the middle of a line.
    fn mark(&mut self, now: Instant) {
        let missing = std::mem::take(&mut self.unmarked);
        let last = self.waiting.back().copied().or(self.last);
        let start = if last.is_some_and(|last| last != b'\n') { "\n" } else { "" };
        let mark = format!(
            "{start}[pvn-wrapper: {missing} bytes are missing here: nobody read for {} s]\n",
            STALLED_AFTER.as_secs()
        );
        self.taken_at = self.taken_at.or(Some(now));
        self.waiting.extend(mark.as_bytes());
        self.flush(now);
    }

    /// Shows what waits, as far as the reader takes it.
    pub(crate) fn flush(&mut self, now: Instant) {
        let mut waiting = std::mem::take(&mut self.waiting);
        loop {
            let (first, _) = waiting.as_slices();
            let (length, taken) = (first.len(), self.write(first));
            if taken > 0 {
                self.stalled = false;
                self.taken_at = Some(now);
            }
            waiting.drain(..taken);
            // What is behind the ring's end follows when all before it was taken.
            if taken < length || waiting.is_empty() {
                break;
            }
        }
        if self.full.is_some() {
            self.dropped += waiting.len() as u64;
        }
        if self.is_gone() || waiting.is_empty() {
            self.taken_at = None;
        } else {
            self.waiting = waiting;
        }
    }

    /// Whether so much waits that no more should be read.
    pub(crate) fn is_full(&self) -> bool {
        !self.stalled && self.waiting.len() >= WAITING_BYTES
    }

    /// Bytes that the reader has not taken, now or because it was taken for dead.
    pub(crate) fn not_shown(&self) -> u64 {
        self.dropped + self.waiting.len() as u64
    }

    /// That what was to be shown is cut, because there was no room where it goes: how much is
    /// missing, and why.
    pub(crate) fn cut(&self) -> Option<(u64, Errno)> {
        Some((self.dropped, self.full?))
    }

    /// Whether the reader is taken for dead.
    pub(crate) fn is_stalled(&self) -> bool {
        self.stalled
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
        if self.waiting.is_empty() { None } else { self.writer.as_ref()?.waits_on() }
    }

    fn is_gone(&self) -> bool {
        self.writer.as_ref().is_some_and(Writer::is_gone)
    }

    /// Whether what the reader has ends within a line: what is written next would continue it.
    pub(crate) fn is_within_a_line(&self) -> bool {
        self.last.is_some_and(|last| last != b'\n')
    }

    fn write(&mut self, bytes: &[u8]) -> usize {
        let writer = self.writer.get_or_insert_with(|| Writer::of(self.to));
        let mut taken = 0;
        while taken < bytes.len() {
            match writer.write(&bytes[taken..]) {
                Ok(count) => {
                    taken += count;
                    self.last = bytes[..taken].last().copied();
                }
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => break,
                // Closed, or the disk behind it is full: showing is over, keeping is not.
                Err(error) => {
                    let is_cut = matches!(error, Errno::NOSPC | Errno::DQUOT | Errno::FBIG)
                        || (error == Errno::IO && writer.is_file());
                    self.full = self.full.or(is_cut.then_some(error));
                    *writer = Writer::Gone;
                    return taken;
                }
            }
        }
        taken
    }
}

/// Our own standard output or standard error as a descriptor that is never closed.
pub(crate) fn own(stream: schema::spool::Stream) -> BorrowedFd<'static> {
    match stream {
        schema::spool::Stream::Stdout => rustix::stdio::stdout(),
        schema::spool::Stream::Stderr => rustix::stdio::stderr(),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::os::fd::AsFd;

    use super::*;

    #[test]
    fn what_a_reader_missed_is_marked_where_it_is_missing() {
        let (reader, writer) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::NONBLOCK).unwrap();
        // Never closed, as our own descriptors are not.
        let to: &'static std::os::fd::OwnedFd = Box::leak(Box::new(writer));
        let mut tee = Tee::new(to.as_fd());
        let start = Instant::now();
        let much = vec![b'a'; 4 * WAITING_BYTES];
        tee.push(&much, start);
        tee.tick(start + STALLED_AFTER);
        assert!(tee.is_stalled());
        tee.push(b"missed\nmissed", start + STALLED_AFTER);
        let mut reader = std::fs::File::from(reader);
        let mut seen = Vec::new();
        let mut read = |tee: &mut Tee| {
            for _ in 0..1000 {
                tee.flush(start + STALLED_AFTER);
                let _ = reader.read_to_end(&mut seen);
            }
            String::from_utf8(seen.clone()).unwrap()
        };
        read(&mut tee);
        tee.push(b"later\n", start + STALLED_AFTER);
        let shown = read(&mut tee);
        let whole = shown.trim_start_matches('a');
        assert_eq!(
            whole,
            "\n[pvn-wrapper: 13 bytes are missing here: nobody read for 5 s]\nlater\n"
        );
        assert_eq!(tee.not_shown(), 13);
    }
}
