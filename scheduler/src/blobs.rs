//! Content-addressed files: job logs, output files, plans. Written by `runner`, read by `http` and
//! the driver, removed by `retention`.
//!
//! What always holds:
//! - **A blob is whole or absent.** It appears under its name by link or rename, complete, and is
//!   never changed; what is put under an id has that digest, because it is computed here, or by
//!   `delivery` from the same bytes as it writes them. Putting the same twice, at once even, is the
//!   same as once.
//! - **Absent is an ordinary answer**, never an error: retention removes blobs, and a crash of the
//!   machine can lose one that was put with [`Keep::Lazy`].
//! - **Durable as needed.** Output files are synced ([`Keep::Synced`]) before anything names them,
//!   whoever put the same bytes before: a plan that somebody approved must be there after a power
//!   cut. Logs are not: two syncs a job would cost more than the job, and a lost log is told as
//!   lost.
//! - **What is handed to a command is checked then** ([`Blobs::hand_over`]): a disk can lose or
//!   change what was whole. One that is not what its name says is told, never handed over, and put
//!   anew by whoever has the bytes.

use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, FileExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, RwLock};
use std::time::SystemTime;

use rustix::fs::{AtFlags, CWD, Timespec, Timestamps, UTIME_NOW};
use schema::id::BlobId;

mod hand_over;

pub use hand_over::{HandOver, unusable};

/// Directory of what is not complete yet. Emptied at start.
const UNFINISHED: &str = "new";

/// How hard to hold on to a blob when the machine crashes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Keep {
    /// On disk before the call returns.
    Synced,
    /// When the kernel gets to it: some seconds later.
    Lazy,
}

/// The store. Cloned freely.
#[derive(Debug, Clone)]
pub struct Blobs {
    root: Arc<Path>,
    next: Arc<AtomicU64>,
    /// Held to remove a blob, shared to say that one is needed: so that none goes between the look
    /// and the removal.
    sweeping: Arc<RwLock<()>>,
}

/// A blob as it lies on the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lying {
    pub id: BlobId,
    /// When it was last put, or needed.
    pub needed_at: SystemTime,
    /// Its size.
    pub bytes: u64,
}

/// What became of a blob that was to be removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Swept {
    /// It had this many bytes.
    Gone(u64),
    /// It was not there.
    Absent,
    /// Somebody put or needed it meanwhile.
    Stays,
}

impl Blobs {
    /// Opens the store in a directory, which is made if it is not there. One daemon at a time.
    ///
    /// # Errors
    /// When the directory cannot be made or written.
    pub fn open(root: &Path) -> io::Result<Self> {
        let unfinished = root.join(UNFINISHED);
        match std::fs::remove_dir_all(&unfinished) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&unfinished)?;
        // Links to it are made in other directories.
        Ok(Self {
            root: std::path::absolute(root)?.into(),
            next: Arc::default(),
            sweeping: Arc::default(),
        })
    }

    /// The directory of all of them.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Where a blob is, if it is there: two digits, then the rest, so that no directory gets too
    /// long.
    pub fn path(&self, id: BlobId) -> PathBuf {
        let hex = id.hex();
        self.root.join(&hex[..2]).join(&hex[2..])
    }

    /// Whether it is there.
    pub fn has(&self, id: BlobId) -> bool {
        is_empty(id) || self.path(id).exists()
    }

    /// Whether it is there; then it is taken for put now, so that retention leaves it until whoever
    /// names it has said so.
    ///
    /// # Errors
    /// When the disk fails.
    pub fn need(&self, id: BlobId) -> io::Result<bool> {
        if is_empty(id) {
            return Ok(true);
        }
        let _not_removed_now = self.sweeping.read().expect("nobody panics with the lock");
        present(touch(&self.path(id))).map(|found| found.is_some())
    }

    /// Removes a blob that nobody put or needed since `before`.
    ///
    /// # Errors
    /// When the disk fails.
    pub fn sweep(&self, id: BlobId, before: SystemTime) -> io::Result<Swept> {
        let path = self.path(id);
        let _nobody_needs_it_now = self.sweeping.write().expect("nobody panics with the lock");
        let Some(metadata) = present(std::fs::metadata(&path))? else { return Ok(Swept::Absent) };
        if metadata.modified()? >= before {
            return Ok(Swept::Stays);
        }
        std::fs::remove_file(&path).map(|()| Swept::Gone(metadata.len()))
    }

    /// The blobs whose ids begin with this byte.
    ///
    /// # Errors
    /// When the disk fails.
    pub fn lying(&self, first: u8) -> io::Result<Vec<Lying>> {
        let prefix = format!("{first:02x}");
        let Some(entries) = present(std::fs::read_dir(self.root.join(&prefix)))? else {
            return Ok(Vec::new());
        };
        let mut found = Vec::new();
        for entry in entries {
            let entry = entry?;
            let name = entry.file_name();
            // What has another name is not ours.
            let Some(id) =
                name.to_str().and_then(|rest| format!("sha256:{prefix}{rest}").parse().ok())
            else {
                continue;
            };
            if let Some(metadata) = present(entry.metadata())? {
                found.push(Lying { id, needed_at: metadata.modified()?, bytes: metadata.len() });
            }
        }
        Ok(found)
    }

    /// Its size in bytes; `None` when absent.
    ///
    /// # Errors
    /// When the disk fails.
    pub fn size(&self, id: BlobId) -> io::Result<Option<u64>> {
        if is_empty(id) {
            return Ok(Some(0));
        }
        present(std::fs::metadata(self.path(id)).map(|metadata| metadata.len()))
    }

    /// At most `limit` of its bytes from `offset` on; fewer at its end, `None` when absent.
    ///
    /// # Errors
    /// When the disk fails.
    pub fn read(&self, id: BlobId, offset: u64, limit: usize) -> io::Result<Option<Vec<u8>>> {
        if is_empty(id) {
            return Ok(Some(Vec::new()));
        }
        let Some(file) = present(File::open(self.path(id)))? else { return Ok(None) };
        read_range(&file, offset, limit).map(Some)
    }

    /// The same off the async threads.
    ///
    /// # Errors
    /// When the disk fails.
    pub async fn read_later(
        &self,
        id: BlobId,
        offset: u64,
        limit: usize,
    ) -> io::Result<Option<Vec<u8>>> {
        let blobs = self.clone();
        tokio::task::spawn_blocking(move || blobs.read(id, offset, limit))
            .await
            .map_err(io::Error::other)?
    }

    /// Stores these bytes.
    ///
    /// # Errors
    /// When the disk fails or is full; then nothing is stored.
    pub fn put(&self, bytes: &[u8], keep: Keep) -> io::Result<BlobId> {
        let id = BlobId::of(bytes);
        if self.has_already(id, bytes.len() as u64, keep)? {
            return Ok(id);
        }
        let (mut file, unfinished) = self.unfinished()?;
        self.complete(file.write_all(bytes), &file, &unfinished, id, keep)?;
        Ok(id)
    }

    /// Stores a file's bytes; the file stays where it is. On the same file system nothing is
    /// copied: the file gets a second name, so it must not be changed any more, and is made
    /// read-only.
    ///
    /// # Errors
    /// When the file cannot be read, or the disk fails or is full; then nothing is stored.
    pub fn put_file(&self, from: &Path, keep: Keep) -> io::Result<BlobId> {
        let id = BlobId::of_reader(File::open(from)?)?;
        self.take(from, id, keep)?;
        Ok(id)
    }

    /// The same for a file whose digest the caller made as it wrote the file. A large upload is so
    /// read only once.
    ///
    /// # Errors
    /// When the disk fails or is full; then nothing is stored.
    pub fn take(&self, from: &Path, id: BlobId, keep: Keep) -> io::Result<()> {
        // Whoever wrote nothing may have no file.
        if is_empty(id) {
            return Ok(());
        }
        if self.has_already(id, std::fs::metadata(from)?.len(), keep)? {
            return Ok(());
        }
        // A command may have given it any time.
        touch(from)?;
        // For our user alone, and not to be changed.
        std::fs::set_permissions(from, std::fs::Permissions::from_mode(0o400))?;
        if keep == Keep::Synced {
            File::open(from)?.sync_all()?;
        }
        let path = self.path(id);
        let linked = with_directory(&path, || std::fs::hard_link(from, &path));
        match linked {
            Ok(()) => self.settle(&path, keep),
            // Another was first, with the same bytes; whether they are on disk is not known.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => self.sync(&path, keep),
            // Another file system, or one without links.
            Err(_) => {
                let (copy, unfinished) = self.unfinished()?;
                let written = std::fs::copy(from, &unfinished).map(drop);
                self.complete(written, &copy, &unfinished, id, keep)
            }
        }
    }

    /// Removes a blob. One that is absent is removed already.
    ///
    /// # Errors
    /// When the disk fails.
    pub fn remove(&self, id: BlobId) -> io::Result<()> {
        present(std::fs::remove_file(self.path(id))).map(drop)
    }

    /// Whether a blob of this length is there and kept so. One that is not what was put there is
    /// removed, so that it can be put anew; a log is compared by its length alone, for which
    /// nobody waits.
    fn has_already(&self, id: BlobId, length: u64, keep: Keep) -> io::Result<bool> {
        if is_empty(id) {
            return Ok(true);
        }
        // First, so that it does not go while it is looked at.
        if !self.need(id)? {
            return Ok(false);
        }
        let Some(found) = self.size(id)? else { return Ok(false) };
        let whole = found == length
            && (keep == Keep::Lazy || matches!(self.hand_over(id)?, HandOver::File(_)));
        if whole {
            self.sync(&self.path(id), keep)?;
        } else {
            self.remove(id)?;
        }
        Ok(whole)
    }

    /// Syncs a blob that is there: it may have been put as a log.
    fn sync(&self, path: &Path, keep: Keep) -> io::Result<()> {
        if keep == Keep::Synced {
            File::open(path)?.sync_all()?;
        }
        self.settle(path, keep)
    }

    fn unfinished(&self) -> io::Result<(File, PathBuf)> {
        let name = self.next.fetch_add(1, Ordering::Relaxed).to_string();
        let path = self.root.join(UNFINISHED).join(name);
        Ok((File::options().write(true).create_new(true).mode(0o600).open(&path)?, path))
    }

    /// Gives a file that was written its name.
    fn complete(
        &self,
        written: io::Result<()>,
        file: &File,
        unfinished: &Path,
        id: BlobId,
        keep: Keep,
    ) -> io::Result<()> {
        let path = self.path(id);
        let done = written
            .and_then(|()| if keep == Keep::Synced { file.sync_all() } else { Ok(()) })
            .and_then(|()| with_directory(&path, || std::fs::rename(unfinished, &path)))
            .and_then(|()| self.settle(&path, keep));
        if done.is_err() {
            // What is left of it is removed at the next start at the latest.
            let _ = std::fs::remove_file(unfinished);
        }
        done
    }

    /// Syncs the names that lead to a new blob.
    fn settle(&self, path: &Path, keep: Keep) -> io::Result<()> {
        if keep == Keep::Lazy {
            return Ok(());
        }
        let directory = path.parent().expect("a blob is in a directory");
        File::open(directory)?.sync_all()?;
        File::open(&self.root)?.sync_all()
    }
}

/// Gives a file the present time.
fn touch(path: &Path) -> io::Result<()> {
    let now = Timespec { tv_sec: 0, tv_nsec: UTIME_NOW };
    let times = Timestamps { last_access: now, last_modification: now };
    Ok(rustix::fs::utimensat(CWD, path, &times, AtFlags::empty())?)
}

/// The empty blob is always there and needs no file.
pub(crate) fn is_empty(id: BlobId) -> bool {
    id.is_of_nothing()
}

/// Runs it again with its directory made, when that was missing.
fn with_directory(path: &Path, mut run: impl FnMut() -> io::Result<()>) -> io::Result<()> {
    match run() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let directory = path.parent().expect("a blob is in a directory");
            std::fs::DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
            run()
        }
        other => other,
    }
}

fn present<T>(result: io::Result<T>) -> io::Result<Option<T>> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// At most `limit` bytes from `offset` on.
pub(crate) fn read_range(file: &File, offset: u64, limit: usize) -> io::Result<Vec<u8>> {
    let left = file.metadata()?.len().saturating_sub(offset);
    let mut bytes = vec![0; usize::try_from(left).map_or(limit, |left| left.min(limit))];
    let mut read = 0;
    while read < bytes.len() {
        match file.read_at(&mut bytes[read..], offset + read as u64) {
            Ok(0) => break,
            Ok(count) => read += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    bytes.truncate(read);
    Ok(bytes)
}

#[cfg(test)]
mod tests;
