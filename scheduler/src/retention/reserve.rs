//! Room beside the database that is given up when the disk is full: without any room not even rows can be removed, because
//! the database writes down first what it removes.

use std::fs::File;
use std::io::{self, ErrorKind};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use rustix::fs::FallocateFlags;

/// Its size: some steps' worth of log, bytes.
const RESERVE_BYTES: u64 = 8 << 20;

/// No reserve is made on a disk that has less room than this: it would be missed.
const ROOM_BYTES: u64 = 8 * RESERVE_BYTES;

/// Where it is.
pub fn beside(database: &Path) -> PathBuf {
    crate::private::beside(database, "-reserve")
}

/// Makes it, when it is not there and there is room. A file system that cannot set room aside has none.
pub fn make(path: &Path) {
    if free_bytes(path).is_some_and(|free| free >= ROOM_BYTES) {
        set_aside(path, RESERVE_BYTES);
    }
}

/// Makes it anew after it was given up for a moment, as large as there is room for.
pub fn take_back(path: &Path) {
    if let Some(free @ 1..) = free_bytes(path) {
        set_aside(path, free.min(RESERVE_BYTES));
    }
}

/// The room on its disk, bytes. `None` when the disk does not tell.
pub fn free_bytes(path: &Path) -> Option<u64> {
    let disk = rustix::fs::statvfs(path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))).ok()?;
    Some(disk.f_bavail.saturating_mul(disk.f_frsize))
}

fn set_aside(path: &Path, bytes: u64) {
    let made = || -> io::Result<()> {
        let file = match File::options().write(true).create_new(true).mode(0o600).open(path) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => return Ok(()),
            other => other?,
        };
        if let Err(error) = rustix::fs::fallocate(&file, FallocateFlags::empty(), 0, bytes) {
            std::fs::remove_file(path)?;
            return Err(error.into());
        }
        Ok(())
    };
    if let Err(error) = made() {
        tracing::debug!(path = %path.display(), %error, "no room could be set aside for a full disk");
    }
}

/// Gives it up. Returns whether there was one.
///
/// # Errors
/// When the disk fails.
pub fn give_up(path: &Path) -> io::Result<bool> {
    match std::fs::remove_file(path) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}
