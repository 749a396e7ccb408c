//! The file of a stream and the ring that it becomes when it is full. Called by `store`.

use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::os::fd::IntoRawFd;
use std::os::unix::fs::{DirBuilderExt, FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use schema::id::BlobId;

use super::WITHOUT_FILE_BYTES;

/// Makes a new file, and the directories above it where they are missing, for our user alone.
/// Nothing that is there is opened, and no symlink followed.
pub(super) fn create(path: &Path) -> io::Result<File> {
    let mut options = File::options();
    options.read(true).write(true).create_new(true).mode(0o600);
    match options.open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let parent = path.parent().ok_or(error)?;
            std::fs::DirBuilder::new().recursive(true).mode(0o700).create(parent)?;
            options.open(path)
        }
        other => other,
    }
}

/// Writes all of `bytes`, and says how many the file took.
pub(super) fn write_at(file: &File, bytes: &[u8], at: u64) -> usize {
    let mut written = 0;
    while written < bytes.len() {
        match file.write_at(&bytes[written..], at + written as u64) {
            Ok(0) => break,
            Ok(count) => written += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => break,
        }
    }
    written
}

/// Puts the next bytes into a ring of the last ones of a stream, of which it has `seen` so many.
pub(super) fn push_ring(ring: &mut Vec<u8>, seen: &mut u64, bytes: &[u8]) {
    let limit = WITHOUT_FILE_BYTES / 2;
    for byte in bytes {
        let at = (*seen % limit) as usize;
        if at == ring.len() {
            ring.push(*byte)
        } else {
            ring[at] = *byte
        }
        *seen += 1;
    }
}

/// The first bytes of a file; `None` when it does not have so many any more.
pub(super) fn read_head(file: &File, length: u64) -> Option<Vec<u8>> {
    let mut bytes = vec![0; usize::try_from(length).ok()?];
    file.read_exact_at(&mut bytes, 0).ok().map(|()| bytes)
}

/// Cuts the file, and says how many bytes it has then.
pub(super) fn cut(file: &File, length: u64) -> u64 {
    match file.set_len(length) {
        Ok(()) => length,
        Err(_) => file.metadata().map_or(length, |metadata| metadata.len()),
    }
}

/// What a stream's file is called while its tail is put into order.
pub(crate) fn ordered(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".ordered");
    PathBuf::from(name)
}

/// Puts a tail that starts in its middle into order, through a second file.
pub(super) fn in_order(file: &File, path: &Path, head: u64, cap: u64, turn: u64) -> io::Result<()> {
    if turn == 0 {
        return Ok(());
    }
    let ordered = ordered(path);
    let copy = |to: &mut File| {
        for (from, until) in [(0, head), (head + turn, cap), (head, head + turn)] {
            let mut part = file;
            part.seek(io::SeekFrom::Start(from))?;
            let copied = io::copy(&mut part.take(until - from), to)?;
            if copied != until - from {
                return Err(io::Error::from(io::ErrorKind::UnexpectedEof));
            }
        }
        to.flush()
    };
    let done = create(&ordered)
        .and_then(|mut to| copy(&mut to))
        .and_then(|()| std::fs::rename(&ordered, path));
    if done.is_err() {
        // Nothing more can be done about a file that cannot be removed either.
        let _ = std::fs::remove_file(&ordered);
    }
    done
}

/// Content address of what is in a file.
pub(crate) fn digest_of(path: &Path) -> io::Result<BlobId> {
    BlobId::of_reader(File::open(path)?)
}

/// Where the rest of the run reads a stream that was written: where it lies, or, where the command
/// has taken that away (`rm -rf /tmp/*`), where the kernel shows what is open. It stays open then
/// until the wrapper ends, which is after its delivery.
pub(super) fn readable(path: PathBuf, file: File) -> PathBuf {
    if is_at(&file, &path) {
        path
    } else {
        PathBuf::from(format!("/proc/self/fd/{}", file.into_raw_fd()))
    }
}

/// Whether what lies at the path is this very file.
pub(crate) fn is_at(file: &File, path: &Path) -> bool {
    let same = |there: std::fs::Metadata| {
        file.metadata().is_ok_and(|ours| (ours.dev(), ours.ino()) == (there.dev(), there.ino()))
    };
    std::fs::symlink_metadata(path).is_ok_and(same)
}
