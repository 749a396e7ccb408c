//! Keeps what one stream wrote: small ones in memory, larger ones in a file, and beyond the cap the
//! head and the tail. Called by `capture`. What always holds:
//! - memory stays flat whatever the size;
//! - the file can be read while it grows: byte `i` of the stream is byte `i` of the file, up to the
//!   head's end, and to the cap while the stream is not longer;
//! - nothing fails: what cannot be kept is counted.

use std::fs::File;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use schema::id::BlobId;
use schema::report::INLINE_LIMIT_BYTES;
use schema::spool::Stream;

use crate::live::Live;

pub(crate) use self::home::{Home, LazyDirectory, temporary};
pub(crate) use self::kept::{KeptBytes, KeptStream};
pub(crate) use files::{digest_of, ordered};

pub(crate) use files::is_at;
use files::{create, cut, in_order, push_ring, read_head, readable, write_at};
use hashing::Hashing;

mod files;
mod hashing;
mod home;
mod kept;

/// Bytes of a buffer into which a stream is read: what a pipe of the largest unprivileged size
/// holds is read in four.
pub(crate) const BUFFER_BYTES: usize = 256 << 10;

/// What is kept of a stream for which there is no file, half of it head, half tail: flat memory is
/// worth more than a whole log.
const WITHOUT_FILE_BYTES: u64 = 512 << 10;

/// One stream, as far as it came.
pub(crate) struct StreamStore {
    stream: Stream,
    live: Option<Arc<Live>>,
    /// Where the file may be made, while it is not.
    directory: Option<LazyDirectory>,
    /// The file, once it is made.
    path: Option<PathBuf>,
    live_after: Option<Duration>,
    live_at: Option<Instant>,
    /// What was declared, and what can be kept at present.
    declared: u64,
    cap: u64,
    total: u64,
    held: StreamBuffer,
    /// Of the file, while the stream is not longer than the cap.
    hash: Option<Hashing>,
}

enum StreamBuffer {
    Memory(Vec<u8>),
    File(File),
    /// The file took `written` bytes and then no more: the disk is full, say. The tail of what came
    /// later is in a ring.
    Broken {
        file: File,
        written: u64,
        ring: Vec<u8>,
        seen: u64,
    },
}

impl StreamStore {
    /// An empty stream of which at most `cap` bytes are kept.
    pub(crate) fn new(home: Option<&Home>, stream: Stream, cap: u64) -> Self {
        Self {
            stream,
            live: home.and_then(|home| home.live.clone()),
            directory: home.and_then(|home| home.directory.clone()),
            path: None,
            live_after: home.and_then(|home| home.live_after),
            live_at: None,
            declared: cap,
            cap: if home.is_some_and(|home| home.directory.is_some()) {
                cap
            } else {
                cap.min(WITHOUT_FILE_BYTES)
            },
            total: 0,
            held: StreamBuffer::Memory(Vec::new()),
            hash: Some(Hashing::new()),
        }
    }

    /// All bytes that came so far.
    pub(crate) fn total(&self) -> u64 {
        self.total
    }

    /// The next piece.
    pub(crate) fn push(&mut self, bytes: &[u8], now: Instant) {
        self.keep(bytes, now);
        if let Some(hash) = self.hashing() {
            hash.update(bytes);
        }
    }

    /// The next piece, the first `count` bytes of a buffer of [`BUFFER_BYTES`], which may be
    /// another one afterwards.
    pub(crate) fn push_read(&mut self, buffer: &mut Vec<u8>, count: usize, now: Instant) {
        self.keep(&buffer[..count], now);
        if let Some(hash) = self.hashing() {
            hash.update_with(buffer, count);
        }
    }

    /// The digest of the file, while it is that of the stream.
    fn hashing(&mut self) -> Option<&mut Hashing> {
        if self.total > self.cap {
            self.hash = None;
        }
        self.hash.as_mut().filter(|_| matches!(self.held, StreamBuffer::File(_)))
    }

    fn keep(&mut self, mut bytes: &[u8], now: Instant) {
        let held = match &self.held {
            StreamBuffer::Memory(held) => Some(held.len()),
            StreamBuffer::File(_) | StreamBuffer::Broken { .. } => None,
        };
        if held.is_some_and(|held| held + bytes.len() > INLINE_LIMIT_BYTES) {
            self.move_to_file();
        } else if self.live_at.is_none() {
            self.live_at = self.live_after.and_then(|after| now.checked_add(after));
        }
        while !bytes.is_empty() {
            let (at, room) = self.place(self.total);
            let take = usize::try_from(room).map_or(bytes.len(), |room| room.min(bytes.len()));
            if take == 0 {
                // A cap without a tail: the rest is only counted.
                self.total += bytes.len() as u64;
                return;
            }
            let (piece, rest) = bytes.split_at(take);
            self.write(at, piece);
            self.total += take as u64;
            bytes = rest;
        }
    }

    /// Makes the file now if somebody may be waiting to read along.
    pub(crate) fn tick(&mut self, now: Instant) {
        if self.next().is_some_and(|at| now >= at) {
            self.move_to_file();
        }
    }

    /// When to call [`Self::tick`].
    pub(crate) fn next(&self) -> Option<Instant> {
        if matches!(self.held, StreamBuffer::Memory(_)) { self.live_at } else { None }
    }

    /// How much of the beginning is kept whatever comes.
    fn head_len(&self) -> u64 {
        self.cap - self.cap / 2
    }

    /// Where byte `offset` of the stream is kept, and how many follow it there without a jump.
    fn place(&self, offset: u64) -> (u64, u64) {
        let (head, tail) = (self.head_len(), self.cap / 2);
        if offset < head {
            return (offset, head - offset);
        }
        if tail == 0 {
            return (head, 0);
        }
        let at = (offset - head) % tail;
        (head + at, tail - at)
    }

    fn write(&mut self, at: u64, piece: &[u8]) {
        match &mut self.held {
            StreamBuffer::Memory(held) => {
                let at = usize::try_from(at).expect("memory holds no more than it can address");
                held.resize(held.len().max(at + piece.len()), 0);
                held[at..at + piece.len()].copy_from_slice(piece);
                // Without a place for a file, and not merely before there is one.
                if let (Some(live), None) = (&self.live, &self.directory) {
                    tell(live, self.stream, self.cap - self.cap / 2, at as u64, piece);
                }
            }
            StreamBuffer::File(file) => {
                let written = write_at(file, piece, at);
                if let Some(live) = &self.live {
                    // What is written beyond the head may be written over.
                    live.grew(self.stream, (at + written as u64).min(self.head_len()));
                }
                if written < piece.len() {
                    self.broken(at + written as u64, &piece[written..]);
                }
            }
            StreamBuffer::Broken { ring, seen, .. } => push_ring(ring, seen, piece),
        }
    }

    fn move_to_file(&mut self) {
        let StreamBuffer::Memory(held) = &mut self.held else { return };
        // One attempt: where there is no disk now, there will be none later.
        self.live_after = None;
        self.live_at = None;
        let Some(directory) = self.directory.take() else { return };
        let made = directory.path().and_then(|place| {
            let path = place.join(self.stream.as_str());
            if !matches!(directory, LazyDirectory::At(_)) {
                // Of a process that had our number and was killed.
                let _ = std::fs::remove_file(&path);
                let _ = std::fs::remove_file(ordered(&path));
            }
            Ok((create(&path)?, path))
        });
        match made {
            Ok((file, path)) => {
                let held = std::mem::take(held);
                if let Some(live) = &self.live
                    && let Ok(file) = file.try_clone()
                {
                    live.in_file(self.stream, file, 0);
                }
                self.held = StreamBuffer::File(file);
                self.path = Some(path);
                let total = std::mem::take(&mut self.total);
                self.write(0, &held);
                self.total = total;
                if let Some(hash) = self.hashing() {
                    hash.update(&held);
                }
            }
            // What is held is within the head of the smaller cap, so it stands where it must.
            Err(_) => {
                self.cap = self.cap.min(WITHOUT_FILE_BYTES);
                if let Some(live) = &self.live {
                    tell(live, self.stream, self.cap - self.cap / 2, 0, held);
                }
            }
        }
    }

    /// The file takes no more: `written` bytes of it are good, `rest` did not get in.
    fn broken(&mut self, written: u64, rest: &[u8]) {
        let head = self.head_len();
        let StreamBuffer::File(file) =
            std::mem::replace(&mut self.held, StreamBuffer::Memory(Vec::new()))
        else {
            return;
        };
        // A tail that was being overwritten is no longer in one piece.
        let written = if self.total > self.cap { written.min(head) } else { written };
        let (mut ring, mut seen) = (Vec::new(), 0);
        push_ring(&mut ring, &mut seen, rest);
        self.held = StreamBuffer::Broken { file, written, ring, seen };
    }

    /// Brings what is kept into its final order.
    pub(crate) fn finish(mut self) -> KeptStream {
        let (total, head, cap, tail) = (self.total, self.head_len(), self.cap, self.cap / 2);
        let wrapped = total > cap;
        let turn = if wrapped && tail > 0 { (total - head) % tail } else { 0 };
        // A local job has its spool alone.
        let is_delivered = self.live.is_some();
        let at_hand = |path, file| if is_delivered { readable(path, file) } else { path };
        let (place, kept, gap_at, digest) = match self.held {
            StreamBuffer::Memory(mut bytes) => {
                if wrapped {
                    let tail_start = usize::try_from(head).unwrap_or(usize::MAX).min(bytes.len());
                    let turn = usize::try_from(turn).expect("within what is held");
                    bytes[tail_start..].rotate_left(turn);
                }
                let digest = BlobId::of(&bytes);
                (KeptBytes::Memory(bytes), total.min(cap), head, Some(digest))
            }
            StreamBuffer::File(file) if !wrapped => {
                let digest = self.hash.and_then(Hashing::finish);
                let path = self.path.take().expect("a file has a path");
                (KeptBytes::File(at_hand(path, file)), total, head, digest)
            }
            StreamBuffer::File(file) => {
                let path = self.path.take().expect("a file has a path");
                match in_order(&file, &path, head, cap, turn) {
                    // By another file in its place.
                    Ok(()) if turn > 0 => (KeptBytes::File(path), cap, head, None),
                    Ok(()) => (KeptBytes::File(at_hand(path, file)), cap, head, None),
                    Err(_) => {
                        let kept = cut(&file, head);
                        (KeptBytes::File(at_hand(path, file)), kept, head, None)
                    }
                }
            }
            StreamBuffer::Broken { file, written, mut ring, seen } => {
                if seen > ring.len() as u64 {
                    let turn = usize::try_from(seen % ring.len() as u64).expect("within the ring");
                    ring.rotate_left(turn);
                }
                let added = write_at(&file, &ring, written);
                // Delivered from memory, as without a disk: what was said last tells why. A local
                // job has its spool alone.
                let is_for_memory =
                    added < ring.len() && self.live.is_some() && written <= WITHOUT_FILE_BYTES / 2;
                match is_for_memory.then(|| read_head(&file, written)).flatten() {
                    Some(mut bytes) => {
                        bytes.append(&mut ring);
                        let (kept, digest) = (bytes.len() as u64, BlobId::of(&bytes));
                        (KeptBytes::Memory(bytes), kept, written, Some(digest))
                    }
                    None => {
                        let kept = cut(&file, written + added as u64);
                        let path = self.path.take().expect("a file has a path");
                        (KeptBytes::File(at_hand(path, file)), kept, written, None)
                    }
                }
            }
        };
        let digest = digest.or_else(|| match &place {
            KeptBytes::File(path) => digest_of(path).ok(),
            KeptBytes::Memory(_) => None,
        });
        let (place, kept, digest) = match digest {
            Some(digest) => (place, kept, digest),
            // It cannot even be read back.
            None => (KeptBytes::Memory(Vec::new()), 0, BlobId::of(b"")),
        };
        KeptStream {
            total,
            kept,
            head: (kept < total).then_some(gap_at.min(kept)),
            truncated: total > self.declared,
            lost: total.min(self.declared).saturating_sub(kept),
            blob: digest,
            place,
        }
    }
}

/// Tells of a piece at `at` as far as it is within the head, which stays as it is.
fn tell(live: &Live, stream: Stream, head: u64, at: u64, piece: &[u8]) {
    let good =
        usize::try_from(head.saturating_sub(at)).map_or(piece.len(), |good| good.min(piece.len()));
    if good > 0 {
        live.in_memory(stream, &piece[..good]);
    }
}

#[cfg(test)]
mod tests;
