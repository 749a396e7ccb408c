//! The digest of a stream while it grows: on the thread that reads the stream, and from [`BESIDE_AFTER_BYTES`] on, where there
//! is a second processor, on one of its own, because SHA-256 takes nearly as long as all the rest. Called by `store`.
//!
//! What always holds: a stream that stays small makes no thread; what waits to be hashed has a limit, at which reading waits
//! just as long as hashing it there would have taken; a thread that cannot be had, or that fails, costs time and nothing else.

use std::sync::mpsc::{self, Receiver, SyncSender};
use std::thread::{Builder, JoinHandle};

use schema::id::BlobId;
use sha2::{Digest, Sha256};

/// A stream of this size is likely to become far larger, and a thread costs less than a hundredth of what hashing it has.
const BESIDE_AFTER_BYTES: usize = 1 << 20;

/// What is handed over at once: so much that waking the other thread costs nothing beside hashing it (0.15 ms).
const PIECE_BYTES: usize = 256 << 10;

/// One that is filled, one that is hashed, and one between them.
const PIECES: usize = 3;

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
    filling: Vec<u8>,
    /// Has room for all pieces, so handing over never waits; getting an empty one may.
    full: SyncSender<Vec<u8>>,
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
                if beside.push(bytes).is_none() {
                    *self = Self::Failed;
                }
            }
            Self::Failed => {}
        }
    }

    /// The content address of all; `None` when it is not known, so that the bytes must be read again.
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
        let (full, to_hash) = mpsc::sync_channel::<Vec<u8>>(PIECES);
        let (hashed, empty) = mpsc::sync_channel::<Vec<u8>>(PIECES);
        (1..PIECES).try_for_each(|_| hashed.send(Vec::with_capacity(PIECE_BYTES))).ok()?;
        let mut hash = hash.clone();
        let work = move || {
            for mut piece in to_hash {
                hash.update(&piece);
                piece.clear();
                // Nobody wants it back once the stream has ended.
                let _ = hashed.send(piece);
            }
            hash
        };
        let thread = Builder::new().name("digest".to_owned()).stack_size(STACK_BYTES).spawn(work).ok()?;
        Some(Self { filling: Vec::with_capacity(PIECE_BYTES), full, empty, thread })
    }

    /// `None` when the thread is gone.
    fn push(&mut self, mut bytes: &[u8]) -> Option<()> {
        while !bytes.is_empty() {
            let (now, later) = bytes.split_at(bytes.len().min(PIECE_BYTES - self.filling.len()));
            self.filling.extend_from_slice(now);
            bytes = later;
            if self.filling.len() == PIECE_BYTES {
                let next = self.empty.recv().ok()?;
                self.full.send(std::mem::replace(&mut self.filling, next)).ok()?;
            }
        }
        Some(())
    }

    fn finish(self) -> Option<Sha256> {
        let Self { filling, full, empty, thread } = self;
        full.send(filling).ok()?;
        drop((full, empty));
        thread.join().ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// More than enough for every piece to be used twice.
    fn bytes() -> Vec<u8> {
        (0..BESIDE_AFTER_BYTES + 7 * PIECE_BYTES + 1).map(|i| (i * 31 + i / 256 * 7) as u8).collect()
    }

    #[test]
    fn a_large_stream_has_the_digest_of_its_bytes_however_they_come() {
        let bytes = bytes();
        for step in [4096, PIECE_BYTES - 1, PIECE_BYTES, bytes.len()] {
            let mut hashing = Hashing::new();
            bytes.chunks(step).for_each(|piece| hashing.update(piece));
            assert_eq!(hashing.finish(), Some(BlobId::of(&bytes)), "{step}");
        }
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
        let (full, empty) = (mpsc::sync_channel(PIECES).0, mpsc::sync_channel(PIECES).1);
        let mut hashing = Hashing::Beside(Beside { filling: Vec::new(), full, empty, thread: std::thread::spawn(Sha256::new) });
        hashing.update(&bytes());
        assert!(matches!(hashing, Hashing::Failed));
        hashing.update(b"more");
        assert_eq!(hashing.finish(), None);
    }
}
