//! A file that is known again later, whatever the command did to its path meanwhile. Called by
//! `inputs` and `aside`.
//!
//! A number of an inode names a file only as long as that lives: many file systems give the number
//! of a removed one to the very next that is made. A file that is kept open lives until it is
//! closed, so nobody else gets its number.

use std::fs::File;
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use rustix::fs::OFlags;

use crate::store;

/// A file, a symlink or whatever else lay at a path.
pub(super) struct PinnedFile(File);

impl PinnedFile {
    /// What lies here.
    pub(super) fn at(path: &Path) -> io::Result<Self> {
        // What cannot be read, and a symlink, is held all the same.
        Self::open(path, OFlags::NONBLOCK).or_else(|_| Self::open(path, OFlags::PATH))
    }

    fn open(path: &Path, how: OFlags) -> io::Result<Self> {
        // Opening a FIFO would wait for its writer.
        File::options()
            .read(true)
            .custom_flags((OFlags::NOFOLLOW | how).bits().cast_signed())
            .open(path)
            .map(Self)
    }

    /// Whether it is what lies there now.
    pub(super) fn is_at(&self, path: &Path) -> bool {
        store::is_at(&self.0, path)
    }
}
