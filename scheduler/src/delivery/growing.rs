//! One file that comes in pieces with offsets: a stream, or a declared file that is too large for
//! one request. Blocks on the disk. Called by [`super::staging`], one caller at a time.
//!
//! What always holds:
//! - **Only the end grows.** A byte that is held is never written again: of a piece that overlaps,
//!   what is held already is ignored; a piece that leaves a gap is refused. So whatever pieces
//!   come, in whatever order, how often and cut wherever, what is held is the beginning of what the
//!   sender has, if each piece was true.
//! - **The offset is what is on disk.** `length` counts bytes that the kernel has taken, so it is
//!   right after `kill -9` too: then it is the file's size. Nothing is synced: after a crash of the
//!   machine the file may be shorter than what was acknowledged, or hold zeros at its end. The
//!   digest in the report finds that, and the bytes are asked for again.
//! - **Hashing goes along.** The digest covers what was written as it was written; after a restart
//!   it is caught up with by reading, once, when it is asked for.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use schema::id::BlobId;
use sha2::{Digest, Sha256};

/// Piece in which a file is read to catch up with its digest.
const PIECE_BYTES: usize = 256 << 10;

/// What became of a piece.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Appended {
    /// It is held; this is the next byte wanted.
    Next(u64),
    /// It starts beyond what is held; this is the next byte wanted.
    Gap(u64),
    /// It would make the file longer than it may get, and nothing of it was taken; this is what is
    /// held.
    Full(u64),
}

/// A file that grows at its end.
#[derive(Debug)]
pub(super) struct GrowingFile {
    path: PathBuf,
    length: u64,
    hash: Sha256,
    hashed: u64,
}

impl GrowingFile {
    /// The file as it is on disk; not there is the same as empty.
    pub(super) fn open(path: PathBuf) -> io::Result<Self> {
        let length = match std::fs::metadata(&path) {
            Ok(metadata) => metadata.len(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => 0,
            Err(error) => return Err(error),
        };
        Ok(Self { length, ..Self::new(path) })
    }

    /// A file that is not there yet.
    pub(super) fn new(path: PathBuf) -> Self {
        Self { path, length: 0, hash: Sha256::new(), hashed: 0 }
    }

    /// Where it is; there only when it is not empty.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// The next byte wanted.
    pub(super) fn length(&self) -> u64 {
        self.length
    }

    /// Takes a piece that starts at `offset`, of which nothing beyond `limit` may be.
    pub(super) fn append(&mut self, offset: u64, bytes: &[u8], limit: u64) -> io::Result<Appended> {
        if offset > self.length {
            return Ok(Appended::Gap(self.length));
        }
        let known = usize::try_from(self.length - offset).unwrap_or(usize::MAX);
        let Some(new) = bytes.get(known..).filter(|new| !new.is_empty()) else {
            return Ok(Appended::Next(self.length));
        };
        if self.length.saturating_add(new.len() as u64) > limit {
            return Ok(Appended::Full(self.length));
        }
        let file = File::options()
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(&self.path)?;
        if let Err(error) = file.write_all_at(new, self.length) {
            // A part of it may be there; it is not counted, and the next piece is written over it.
            let _ = file.set_len(self.length);
            return Err(error);
        }
        if self.hashed == self.length {
            self.hash.update(new);
            self.hashed += new.len() as u64;
        }
        self.length += new.len() as u64;
        Ok(Appended::Next(self.length))
    }

    /// The digest of what is held.
    pub(super) fn digest(&mut self) -> io::Result<BlobId> {
        if self.hashed < self.length {
            self.catch_up()?;
        }
        Ok(BlobId::from_digest(self.hash.clone().finalize().into()))
    }

    fn catch_up(&mut self) -> io::Result<()> {
        let mut file = File::open(&self.path)?;
        let mut piece = vec![0; PIECE_BYTES];
        (self.hash, self.hashed) = (Sha256::new(), 0);
        loop {
            match file.read(&mut piece)? {
                0 => break,
                count => {
                    self.hash.update(&piece[..count]);
                    self.hashed += count as u64;
                }
            }
        }
        // The file is the truth, also if somebody cut it.
        self.length = self.hashed;
        Ok(())
    }

    /// Gives the file another name; an empty one is made there.
    pub(super) fn rename(&mut self, to: PathBuf) -> io::Result<()> {
        if self.length == 0 {
            File::options().write(true).create(true).truncate(true).mode(0o600).open(&to)?;
        } else {
            std::fs::rename(&self.path, &to)?;
        }
        self.path = to;
        Ok(())
    }

    /// Forgets what is held: it is wanted again from the first byte on.
    pub(super) fn clear(&mut self) -> io::Result<()> {
        match std::fs::remove_file(&self.path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        *self = Self::new(std::mem::take(&mut self.path));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const LIMIT: u64 = 1 << 20;

    fn held() -> (tempfile::TempDir, GrowingFile) {
        let directory = tempfile::tempdir().unwrap();
        let held = GrowingFile::open(directory.path().join("stdout")).unwrap();
        (directory, held)
    }

    fn content(held: &GrowingFile) -> Vec<u8> {
        std::fs::read(held.path()).unwrap_or_default()
    }

    #[test]
    fn what_is_held_already_is_ignored_and_a_gap_is_refused() {
        let (_directory, mut held) = held();
        assert_eq!(held.append(0, b"hello", LIMIT).unwrap(), Appended::Next(5));
        assert_eq!(held.append(0, b"HELLO", LIMIT).unwrap(), Appended::Next(5), "repeated");
        assert_eq!(held.append(3, b"XX world", LIMIT).unwrap(), Appended::Next(11), "overlapping");
        assert_eq!(held.append(12, b"!", LIMIT).unwrap(), Appended::Gap(11));
        assert_eq!(held.append(11, b"", LIMIT).unwrap(), Appended::Next(11));
        assert_eq!(held.append(u64::MAX, b"!", LIMIT).unwrap(), Appended::Gap(11));
        assert_eq!(content(&held), b"hello world");
        assert_eq!(held.digest().unwrap(), BlobId::of(b"hello world"));
    }

    #[test]
    fn a_piece_over_the_limit_is_refused_whole() {
        let (_directory, mut held) = held();
        assert_eq!(held.append(0, b"123456", 8).unwrap(), Appended::Next(6));
        assert_eq!(held.append(6, b"789", 8).unwrap(), Appended::Full(6));
        assert_eq!(held.append(6, b"78", 8).unwrap(), Appended::Next(8));
        assert_eq!(content(&held), b"12345678");
    }

    #[test]
    fn what_was_cleared_is_wanted_from_the_first_byte_on() {
        let (_directory, mut held) = held();
        held.append(0, b"wrong", LIMIT).unwrap();
        held.clear().unwrap();
        assert_eq!((held.length(), held.digest().unwrap()), (0, BlobId::of(b"")));
        held.append(0, b"right", LIMIT).unwrap();
        assert_eq!(held.digest().unwrap(), BlobId::of(b"right"));
    }

    #[test]
    fn bad_input_disk_full_holds_what_it_held() {
        let (directory, mut held) = held();
        held.append(0, b"kept", LIMIT).unwrap();
        // A directory in its place cannot be written, also by root; a full disk answers alike.
        let elsewhere = directory.path().join("elsewhere");
        std::fs::rename(held.path(), &elsewhere).unwrap();
        std::fs::create_dir(held.path()).unwrap();
        assert!(held.append(4, b"more", LIMIT).is_err());
        std::fs::remove_dir(held.path()).unwrap();
        std::fs::rename(elsewhere, held.path()).unwrap();
        assert_eq!(held.append(4, b" more", LIMIT).unwrap(), Appended::Next(9));
        assert_eq!(held.digest().unwrap(), BlobId::of(b"kept more"));
    }

    /// What a sender that is cut off, comes back, repeats and overtakes itself may do.
    #[derive(Debug, Clone)]
    enum Step {
        /// Sends these bytes of the truth.
        Send(usize, usize),
        /// The scheduler is killed and started again.
        Restart,
        /// The machine crashed: so many bytes of the end are gone.
        Lose(usize),
        /// Somebody asks for the digest.
        Ask,
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            8 => (0_usize..600, 0_usize..300)
                .prop_map(|(offset, length)| Step::Send(offset, length)),
            1 => Just(Step::Restart),
            1 => (0_usize..50).prop_map(Step::Lose),
            1 => Just(Step::Ask),
        ]
    }

    proptest! {
        #[test]
        fn whatever_pieces_come_what_is_held_is_the_beginning_of_the_truth(
            steps in prop::collection::vec(step(), 0..40),
        ) {
            let truth: Vec<u8> = (0..700_u32).map(|at| (at * 7 % 251) as u8).collect();
            let (_directory, mut held) = held();
            // The model: how much of the truth is held.
            let mut model = 0;
            for step in steps {
                match step {
                    Step::Send(offset, length) => {
                        let piece = &truth[offset..(offset + length).min(truth.len())];
                        let expected = if offset > model {
                            Appended::Gap(model as u64)
                        } else {
                            model = model.max(offset + piece.len());
                            Appended::Next(model as u64)
                        };
                        let appended = held.append(offset as u64, piece, LIMIT).unwrap();
                        prop_assert_eq!(appended, expected);
                    }
                    Step::Restart => held = GrowingFile::open(held.path().to_owned()).unwrap(),
                    Step::Lose(bytes) if model > 0 => {
                        model = model.saturating_sub(bytes);
                        let file = File::options().write(true).open(held.path()).unwrap();
                        file.set_len(model as u64).unwrap();
                        held = GrowingFile::open(held.path().to_owned()).unwrap();
                    }
                    Step::Lose(_) => {}
                    Step::Ask => {
                        prop_assert_eq!(held.digest().unwrap(), BlobId::of(&truth[..model]));
                    }
                }
                prop_assert_eq!(held.length(), model as u64);
                prop_assert_eq!(content(&held), &truth[..model]);
            }
            prop_assert_eq!(held.digest().unwrap(), BlobId::of(&truth[..model]));
        }
    }
}
