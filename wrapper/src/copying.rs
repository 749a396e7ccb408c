//! Copies a declared output to where it is kept, in flat memory, and says what was written: the
//! digest is that of the bytes that are handed over, whatever happens to the file meanwhile. Called
//! by `outputs`, `job` and `deliver::spool`.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::AsRawFd;
use std::path::PathBuf;

use rustix::fs::MemfdFlags;
use schema::id::BlobId;
use schema::mask::{Masker, Secrets};

/// Largest output file, 4 GiB: a plan or an explanation has some megabytes, and what is stored for
/// thirty days needs a limit.
pub(crate) const FILE_LIMIT_BYTES: u64 = 4 << 30;

/// Longest text that is masked into memory where there is no disk, bytes: more than people read.
const MEMORY_LIMIT_BYTES: u64 = 4 << 20;

/// Bytes that are masked at once.
const PIECE_BYTES: usize = 64 << 10;

/// Writes all of `from`, and says what that was.
pub(crate) fn copy(from: impl Read, to: &mut impl Write) -> io::Result<BlobId> {
    BlobId::of_reader(Copying { from, to })
}

struct Copying<'a, R, W> {
    from: R,
    to: &'a mut W,
}

impl<R: Read, W: Write> Read for Copying<'_, R, W> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.from.read(buffer)?;
        self.to.write_all(&buffer[..count])?;
        Ok(count)
    }
}

/// A text as it may be shown.
pub(crate) struct Masked<'a, R> {
    from: R,
    secrets: &'a Secrets,
    masker: Masker,
    shown: Vec<u8>,
    at: usize,
    ended: bool,
}

impl<'a, R: Read> Masked<'a, R> {
    pub(crate) fn new(from: R, secrets: &'a Secrets) -> Self {
        Self { from, secrets, masker: Masker::default(), shown: Vec::new(), at: 0, ended: false }
    }
}

impl<R: Read> Read for Masked<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.at == self.shown.len() && !self.ended {
            let mut piece = vec![0; PIECE_BYTES];
            let count = self.from.read(&mut piece)?;
            self.ended = count == 0;
            self.shown = self.masker.push(self.secrets, &piece[..count], self.ended);
            self.at = 0;
        }
        let count = buffer.len().min(self.shown.len() - self.at);
        buffer[..count].copy_from_slice(&self.shown[self.at..self.at + count]);
        self.at += count;
        Ok(count)
    }
}

/// A copy in memory, as a path that is good as long as we live.
pub(crate) fn in_memory(from: impl Read) -> io::Result<(PathBuf, BlobId)> {
    let mut file = File::from(rustix::fs::memfd_create("output", MemfdFlags::CLOEXEC)?);
    let blob = copy(from.take(MEMORY_LIMIT_BYTES + 1), &mut file)?;
    if file.metadata()?.len() > MEMORY_LIMIT_BYTES {
        return Err(io::Error::other(format!(
            "it has more than {MEMORY_LIMIT_BYTES} bytes, and there is no disk to mask it on"
        )));
    }
    let path = PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()));
    std::mem::forget(file);
    Ok((path, blob))
}
