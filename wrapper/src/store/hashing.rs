//! The digest of a stream while it grows: on the thread that reads the stream, and from
//! [`BESIDE_AFTER_BYTES`] on, where there is a second processor, on one of its own, because SHA-256
//! takes nearly as long as all the rest. Called by `store`.
//!
//! What always holds: a stream that stays small makes no thread; what waits to be hashed has a
//! limit, at which reading waits just as long as hashing it there would have taken; a thread that
//! cannot be had, or that fails, costs time and nothing else. What was read at once is not copied:
//! its buffer goes to the other thread, and an empty one comes back.

use std::sync::mpsc::{self, Receiver, SyncSender};
use std::thread::{Builder, JoinHandle};

use schema::id::BlobId;
use sha2::{Digest, Sha256};

use super::BUFFER_BYTES;

/// A stream of this size is likely to become far larger, and a thread costs less than a hundredth
/// of what hashing it has.
const BESIDE_AFTER_BYTES: usize = 1 << 20;

/// A read of this much goes over as it is; smaller ones are gathered, so that waking the other
/// thread costs nothing beside hashing it (0.04 ms).
const WHOLE_BYTES: usize = 64 << 10;

/// Buffers between the two: enough for either to go on while the other has no processor, 2 MiB a
/// stream.
const BUFFERS: usize = 8;

/// Hashing needs a page or two of it.
const STACK_BYTES: usize = 64 << 10;

/// A digest that is not finished.
pub(super) enum Hashing {
    /// On this thread, for as many bytes.
    Here { hash: Sha256, left: usize },
    /// On another.
    Beside(Beside),
    /// The thread is gone.
    Failed,
}

/// The other thread, as this one sees it.
pub(super) struct Beside {
    /// Where small reads are gathered, and how much of it is in use.
    filling: Vec<u8>,
    filled: usize,
    /// Has room for all buffers, so handing over never waits; getting an empty one may.
    full: SyncSender<(Vec<u8>, usize)>,
    empty: Receiver<Vec<u8>>,
    thread: JoinHandle<Sha256>,
}

impl Hashing {
    /// Of nothing yet.
    pub(super) fn new() -> Self {
        Self::Here { hash: Sha256::new(), left: BESIDE_AFTER_BYTES }
    }

    /// The next bytes.
    pub(super) fn update(&mut self, bytes: &[u8]) {
        match self {
            Self::Here { hash, left } => {
                hash.update(bytes);
                if *left > bytes.len() {
                    *left -= bytes.len();
                } else if let Some(beside) = Beside::start(hash) {
                    *self = Self::Beside(beside);
                } else {
                    *left = usize::MAX;
                }
            }
            Self::Beside(beside) => {
                if beside.gather(bytes).is_none() {
                    *self = Self::Failed;
                }
            }
            Self::Failed => {}
        }
    }

    /// The next bytes: the first `count` of a buffer of [`BUFFER_BYTES`], which may be another one
    /// afterwards.
    pub(super) fn update_with(&mut self, buffer: &mut Vec<u8>, count: usize) {
        match self {
            Self::Beside(beside) if count >= WHOLE_BYTES => {
                if beside.exchange(buffer, count).is_none() {
                    *self = Self::Failed;
                }
            }
            _ => self.update(&buffer[..count]),
        }
    }

    /// The content address of all; `None` when it is not known, so that the bytes must be read
    /// again.
    pub(super) fn finish(self) -> Option<BlobId> {
        let hash = match self {
            Self::Here { hash, .. } => hash,
            Self::Beside(beside) => beside.finish()?,
            Self::Failed => return None,
        };
        Some(BlobId::from_digest(hash.finalize().into()))
    }
}

impl Beside {
    /// `None` where another thread would not help, or cannot be had.
    fn start(hash: &Sha256) -> Option<Self> {
        if std::thread::available_parallelism().is_ok_and(|processors| processors.get() < 2) {
            return None;
        }
        let (full, to_hash) = mpsc::sync_channel::<(Vec<u8>, usize)>(BUFFERS);
        let (hashed, empty) = mpsc::sync_channel::<Vec<u8>>(BUFFERS);
        // Zeroed by the kernel, so that only those that are used become memory of ours.
        (1..BUFFERS).try_for_each(|_| hashed.send(vec![0; BUFFER_BYTES])).ok()?;
        let mut hash = hash.clone();
        let work = move || {
            for (buffer, count) in to_hash {
                hash.update(&buffer[..count]);
                // Nobody wants it back once the stream has ended.
                let _ = hashed.send(buffer);
            }
            hash
        };
        let thread =
            Builder::new().name("digest".to_owned()).stack_size(STACK_BYTES).spawn(work).ok()?;
        Some(Self { filling: vec![0; BUFFER_BYTES], filled: 0, full, empty, thread })
    }

    /// `None` when the thread is gone.
    fn gather(&mut self, mut bytes: &[u8]) -> Option<()> {
        while !bytes.is_empty() {
            let (now, later) = bytes.split_at(bytes.len().min(BUFFER_BYTES - self.filled));
            self.filling[self.filled..][..now.len()].copy_from_slice(now);
            self.filled += now.len();
            bytes = later;
            if self.filled == BUFFER_BYTES {
                self.hand_over()?;
            }
        }
        Some(())
    }

    /// `None` when the thread is gone.
    fn exchange(&mut self, buffer: &mut Vec<u8>, count: usize) -> Option<()> {
        if self.filled > 0 {
            self.hand_over()?;
        }
        let next = self.empty.recv().ok()?;
        self.full.send((std::mem::replace(buffer, next), count)).ok()
    }

    /// What was gathered, before what comes now.
    fn hand_over(&mut self) -> Option<()> {
        let next = self.empty.recv().ok()?;
        self.full
            .send((std::mem::replace(&mut self.filling, next), std::mem::take(&mut self.filled)))
            .ok()
    }

    fn finish(self) -> Option<Sha256> {
        let Self { filling, filled, full, empty, thread } = self;
        full.send((filling, filled)).ok()?;
        drop((full, empty));
        thread.join().ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// More than enough for every buffer to be used twice.
    fn bytes() -> Vec<u8> {
        (0..BESIDE_AFTER_BYTES + 2 * BUFFERS * BUFFER_BYTES + 1)
            .map(|i| (i * 31 + i / 256 * 7) as u8)
            .collect()
    }

    #[test]
    fn a_large_stream_has_the_digest_of_its_bytes_however_they_come() {
        let bytes = bytes();
        let digest = Some(BlobId::of(&bytes));
        for step in [4096, WHOLE_BYTES - 1, WHOLE_BYTES, BUFFER_BYTES - 1, BUFFER_BYTES] {
            let mut hashing = Hashing::new();
            bytes.chunks(step).for_each(|piece| hashing.update(piece));
            assert_eq!(hashing.finish(), digest, "copied, {step}");
            check_read(&bytes, &digest, &[step]);
        }
        check_read(&bytes, &digest, &[WHOLE_BYTES, 1, 7, BUFFER_BYTES, 4096]);
    }

    /// The same in a buffer, in pieces of these sizes by turns.
    fn check_read(bytes: &[u8], digest: &Option<BlobId>, sizes: &[usize]) {
        let (mut hashing, mut buffer, mut left) = (Hashing::new(), vec![0; BUFFER_BYTES], bytes);
        for size in sizes.iter().cycle() {
            let (piece, rest) = left.split_at(left.len().min(*size));
            buffer[..piece.len()].copy_from_slice(piece);
            hashing.update_with(&mut buffer, piece.len());
            left = rest;
            if left.is_empty() {
                break;
            }
        }
        assert_eq!(hashing.finish(), *digest, "as read, {sizes:?}");
    }

    #[test]
    fn a_stream_that_stays_small_makes_no_thread() {
        let mut hashing = Hashing::new();
        hashing.update(&vec![7; BESIDE_AFTER_BYTES - 1]);
        assert!(matches!(hashing, Hashing::Here { left: 1, .. }));
        assert_eq!(hashing.finish(), Some(BlobId::of(&vec![7; BESIDE_AFTER_BYTES - 1])));
    }

    #[test]
    fn a_thread_that_is_gone_leaves_no_digest_and_holds_nobody_up() {
        let (full, empty) = (mpsc::sync_channel(BUFFERS).0, mpsc::sync_channel(BUFFERS).1);
        let beside = Beside {
            filling: vec![0; BUFFER_BYTES],
            filled: 0,
            full,
            empty,
            thread: std::thread::spawn(Sha256::new),
        };
        let mut hashing = Hashing::Beside(beside);
        hashing.update(&bytes());
        assert!(matches!(hashing, Hashing::Failed));
        hashing.update_with(&mut vec![0; BUFFER_BYTES], BUFFER_BYTES);
        assert_eq!(hashing.finish(), None);
    }
}
