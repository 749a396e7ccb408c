//! One daemon per data directory: a lock file with the pid of the one that holds it. The lock is the kernel's (`flock`),
//! so it is gone when its holder is, however that ended; the pid in the file is for people.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read, Seek, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// Name of the lock file in the data directory.
const LOCK_FILE: &str = "lock";

/// Why the data directory cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// Another daemon is there.
    #[error("the data directory {} is in use by the pvn-scheduler with pid {pid}; stop that one first. With another --data-dir it would be a second scheduler that knows nothing of this one: give that only for other targets", path.display())]
    Held {
        /// The directory.
        path: PathBuf,
        /// The other's process id as it wrote it.
        pid: String,
    },
    /// The file cannot be made or locked.
    #[error("failed to lock the data directory {}", path.display())]
    Io {
        /// The directory.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
}

/// The data directory is ours as long as this lives.
#[derive(Debug)]
pub struct DataDirLock {
    _file: File,
}

impl DataDirLock {
    /// Takes the directory.
    ///
    /// # Errors
    /// [`LockError::Held`] with the pid of the one that has it.
    pub fn take(directory: &Path) -> Result<Self, LockError> {
        let io = |source| LockError::Io { path: directory.to_owned(), source };
        let path = directory.join(LOCK_FILE);
        let mut file = OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(0o600).open(path).map_err(io)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let mut pid = String::new();
                file.read_to_string(&mut pid).map_err(io)?;
                return Err(LockError::Held { path: directory.to_owned(), pid: pid.trim().to_owned() });
            }
            Err(TryLockError::Error(error)) => return Err(io(error)),
        }
        // For people alone: on a full disk the lock is as good without it.
        let _unwritten = file.set_len(0).and_then(|()| file.rewind()).and_then(|()| writeln!(file, "{}", std::process::id()));
        Ok(Self { _file: file })
    }

    /// The pid of the one that has a directory, as it wrote it; `None` when nobody has, or that cannot be told.
    pub fn holder(directory: &Path) -> Option<String> {
        let mut file = File::open(directory.join(LOCK_FILE)).ok()?;
        // One that nobody has is ours for that moment only.
        let Err(TryLockError::WouldBlock) = file.try_lock_shared() else { return None };
        let mut pid = String::new();
        file.read_to_string(&mut pid).ok()?;
        Some(pid.trim().to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_daemon_is_refused_with_the_first_ones_pid() {
        let dir = tempfile::tempdir().unwrap();
        let first = DataDirLock::take(dir.path()).unwrap();
        let error = DataDirLock::take(dir.path()).unwrap_err().to_string();
        assert!(error.contains(&format!("pid {}", std::process::id())), "{error}");
        assert_eq!(DataDirLock::holder(dir.path()), Some(std::process::id().to_string()));
        drop(first);
        assert_eq!(DataDirLock::holder(dir.path()), None);
        DataDirLock::take(dir.path()).unwrap();
    }
}
