//! One database, one path. SQLite keeps the log of a database beside the name that it was opened
//! by, so over a hard link, or over a file that is mounted elsewhere too, two programs would have
//! two logs, see nothing of what the other one commits, and each believe that the lease is its own.
//!
//! The file itself says which path is in use. Each program that opens the database holds a shared
//! lock on one byte of it, far behind everything that SQLite locks or writes, whose place follows
//! from where the log is; a lock on any other of these bytes is somebody's with another log. Two
//! that come at the same moment see each other and are both refused. The lease decides
//! between those with the same log, as ever.
//!
//! The locks are those of open file descriptions, so that SQLite's own, which are the process's, do
//! not mix with them. A file that is closed takes the process's locks with it, SQLite's too: hence
//! what is opened here stays open until the process ends.

use std::collections::BTreeMap;
use std::fs::File;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use nix::errno::Errno;
use nix::fcntl::{FcntlArg, fcntl};
use nix::libc;
use sha2::{Digest, Sha256};

use super::{Result, StoreError};

/// Where the bytes begin. SQLite locks and writes far below: its lock bytes are at 2^30, its
/// largest database has 2^48 bytes.
const FIRST: i64 = 1 << 61;

/// How many there are.
const BYTES: i64 = 1 << 60;

/// What this process holds, by device, inode and byte; never closed.
static HELD: Mutex<BTreeMap<(u64, u64, i64), File>> = Mutex::new(BTreeMap::new());

/// Holds the database by this path until the process ends. Before its first connection is opened;
/// once more changes nothing.
///
/// # Errors
/// [`StoreError::Paths`] when the file has two names or is used by another path;
/// [`StoreError::Unavailable`] when that cannot be told.
pub(super) fn hold(path: &Path) -> Result<()> {
    let unavailable =
        |error: std::io::Error| StoreError::Unavailable(format!("{}: {error}", path.display()));
    // SQLite follows symbolic links before it names its log.
    let real = path.canonicalize().map_err(unavailable)?;
    let metadata = real.metadata().map_err(unavailable)?;
    if metadata.nlink() > 1 {
        let why = format!(
            "has {} names: remove the hard links to it (`find -inum {}` finds them), or make \
             copies of it with `pvn-scheduler backup`",
            metadata.nlink(),
            metadata.ino()
        );
        return Err(StoreError::Paths { path: path.to_owned(), why });
    }
    let byte = byte_of(&real).map_err(unavailable)?;
    let mut held = HELD.lock().unwrap_or_else(PoisonError::into_inner);
    let key = (metadata.dev(), metadata.ino(), byte);
    if held.contains_key(&key) {
        return Ok(());
    }
    let file = File::options().read(true).write(true).open(&real).map_err(unavailable)?;
    let locked = lock_alone(&file, byte);
    if matches!(locked, Ok(true)) {
        held.insert(key, file);
        return Ok(());
    }
    // What cannot be unlocked is when the process ends.
    let _unlocked = unlock(&file, byte);
    // Not closed: another connection of this process may use the database.
    std::mem::forget(file);
    match locked {
        Ok(_) => {
            let why = format!(
                "is in use by another path, a bind mount perhaps: start this one with the path \
                 that the other program uses, or stop that one first (`fuser {}` names it)",
                real.display()
            );
            Err(StoreError::Paths { path: path.to_owned(), why })
        }
        Err(error) => Err(unavailable(error.into())),
    }
}

/// The byte of this database's log: the same for all that have the same log, whatever they call the
/// directory that it is in.
fn byte_of(real: &Path) -> std::io::Result<i64> {
    let directory = real.parent().unwrap_or(real).metadata()?;
    let mut digest = Sha256::new();
    digest.update(directory.dev().to_be_bytes());
    digest.update(directory.ino().to_be_bytes());
    digest.update(real.file_name().unwrap_or_default().as_bytes());
    let digest: [u8; 32] = digest.finalize().into();
    let [a, b, c, d, e, f, g, h, ..] = digest;
    Ok(FIRST + i64::from_be_bytes([a, b, c, d, e, f, g, h]).rem_euclid(BYTES))
}

/// Takes the byte. `false` when somebody has another one.
fn lock_alone(file: &File, byte: i64) -> std::result::Result<bool, Errno> {
    lock(file, byte)?;
    Ok(!is_locked(file, FIRST, byte)? && !is_locked(file, byte + 1, FIRST + BYTES)?)
}

/// A lock of this kind on these bytes.
fn flock(kind: i32, from: i64, to: i64) -> libc::flock {
    let small = |number: i32| i16::try_from(number).expect("kinds of locks are small numbers");
    libc::flock {
        l_type: small(kind),
        l_whence: small(libc::SEEK_SET),
        l_start: from,
        l_len: to - from,
        l_pid: 0,
    }
}

fn lock(file: &File, byte: i64) -> std::result::Result<(), Errno> {
    fcntl(file, FcntlArg::F_OFD_SETLK(&flock(libc::F_RDLCK, byte, byte + 1))).map(drop)
}

fn unlock(file: &File, byte: i64) -> std::result::Result<(), Errno> {
    fcntl(file, FcntlArg::F_OFD_SETLK(&flock(libc::F_UNLCK, byte, byte + 1))).map(drop)
}

/// Whether somebody else holds one of these bytes.
fn is_locked(file: &File, from: i64, to: i64) -> std::result::Result<bool, Errno> {
    if from >= to {
        return Ok(false);
    }
    let mut asked = flock(libc::F_WRLCK, from, to);
    fcntl(file, FcntlArg::F_OFD_GETLK(&mut asked))?;
    Ok(i32::from(asked.l_type) != libc::F_UNLCK)
}
