//! One stream of the child: read from its pipe, secrets hidden, passed through, kept. Called by
//! `supervise`, which waits for the descriptors; the buffer is shared by both streams.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Instant;

use rustix::io::Errno;
use schema::mask::{Masker, Secrets};
use schema::spool::Stream;

use crate::store::{Home, KeptStream, StreamStore};
use crate::tee::{self, Tee};

/// A read of this much says that the pipe was full: time for a larger one.
const PIPE_BYTES: usize = 64 << 10;
/// What a busy pipe is enlarged to: the largest size for an unprivileged user
/// (`/proc/sys/fs/pipe-max-size`). Only busy ones, since all pipes of a user together have a limit
/// too (`pipe-user-pages-soft`).
const BUSY_PIPE_BYTES: usize = 1 << 20;

/// One stream, from pipe to store.
pub(crate) struct Capture {
    pipe: Option<OwnedFd>,
    enlarged: bool,
    masker: Masker,
    pub(crate) tee: Tee,
    store: StreamStore,
    /// Whether it was cut before its end.
    pub(crate) incomplete: bool,
}

impl Capture {
    /// What comes out of `pipe` is this stream; a document, if the command is to print one there.
    pub(crate) fn new(
        pipe: OwnedFd,
        stream: Stream,
        is_document: bool,
        home: Option<&Home>,
        cap: u64,
    ) -> Self {
        Self {
            pipe: Some(pipe),
            enlarged: false,
            masker: if is_document { Masker::of_document() } else { Masker::default() },
            tee: Tee::new(tee::own(stream)),
            store: StreamStore::new(home, stream, cap),
            incomplete: false,
        }
    }

    /// The pipe, while it is open.
    pub(crate) fn pipe(&self) -> Option<BorrowedFd<'_>> {
        self.pipe.as_ref().map(AsFd::as_fd)
    }

    /// The pipe, while it is open and there is room for what it holds.
    pub(crate) fn wanted(&self) -> Option<BorrowedFd<'_>> {
        if self.tee.is_full() { None } else { self.pipe() }
    }

    /// Acts on whatever is due.
    pub(crate) fn tick(&mut self, now: Instant) {
        self.store.tick(now);
        self.tee.tick(now);
    }

    /// When to call [`Self::tick`].
    pub(crate) fn next(&self) -> Option<Instant> {
        self.store.next().into_iter().chain(self.tee.next()).min()
    }

    /// Reads once, and says how much. The pipe never blocks. The buffer may be another one
    /// afterwards.
    pub(crate) fn read(
        &mut self,
        buffer: &mut Vec<u8>,
        secrets: Option<&Secrets>,
        now: Instant,
    ) -> usize {
        let Some(pipe) = &self.pipe else { return 0 };
        match rustix::io::read(pipe, buffer.as_mut_slice()) {
            Ok(0) => self.end(secrets, now),
            Ok(count) => {
                if count >= PIPE_BYTES && !self.enlarged {
                    self.enlarged = true;
                    // A refusal only means more reads.
                    let _ = rustix::pipe::fcntl_setpipe_size(pipe, BUSY_PIPE_BYTES);
                }
                if let Some(secrets) = secrets {
                    self.take_masked(secrets, &buffer[..count], now, false);
                } else {
                    self.tee.push(&buffer[..count], now);
                    self.store.push_read(buffer, count, now);
                }
                return count;
            }
            Err(Errno::AGAIN | Errno::INTR) => {}
            Err(_) => {
                self.incomplete = true;
                self.end(secrets, now);
            }
        }
        0
    }

    /// Reads what is in the pipe now and, if others still hold it open, cuts the stream there.
    pub(crate) fn cut(&mut self, buffer: &mut Vec<u8>, secrets: Option<&Secrets>, now: Instant) {
        // Bounded, for a left-over process may go on writing: a full pipe, twice.
        let mut left = 2 * BUSY_PIPE_BYTES;
        while self.pipe.is_some() && left > 0 {
            match self.read(buffer, secrets, now) {
                0 => break,
                count => left = left.saturating_sub(count),
            }
        }
        if self.pipe.is_some() {
            self.incomplete = true;
            self.end(secrets, now);
        }
    }

    /// All bytes that came so far, as they are shown and kept.
    pub(crate) fn total(&self) -> u64 {
        self.store.total()
    }

    /// Nothing more comes.
    pub(crate) fn end(&mut self, secrets: Option<&Secrets>, now: Instant) {
        self.pipe = None;
        if let Some(secrets) = secrets {
            self.take_masked(secrets, b"", now, true);
        }
    }

    fn take_masked(&mut self, secrets: &Secrets, bytes: &[u8], now: Instant, last: bool) {
        let shown = self.masker.push(secrets, bytes, last);
        if !shown.is_empty() {
            self.tee.push(&shown, now);
            self.store.push(&shown, now);
        }
    }

    /// What is left of it.
    pub(crate) fn finish(self) -> KeptStream {
        self.store.finish()
    }
}
