//! One daemon per data directory: a lock file with the pid of the one that holds it. The lock is
//! the kernel's (`flock`), so it is gone when its holder is, however that ended; the pid in the
//! file is for people.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read, Seek, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Name of the lock file in the data directory.
const LOCK_FILE: &str = "lock";

/// How long the lock is waited for where its holder is there: one that was killed may be on its way
/// out.
const ENDING_WITHIN: Duration = Duration::from_millis(500);

/// The same where its holder is gone: then only what it was about to start can have it.
const GONE_WITHIN: Duration = Duration::from_secs(5);

/// How often it is tried.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// Why the data directory cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// Another daemon is there.
    #[error(
        "the data directory {} is in use by the pvn-scheduler with pid {pid}; stop that one first. \
         With another --data-dir it would be a second scheduler that knows nothing of this one: \
         give that only for other targets",
        path.display()
    )]
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
    /// Takes the directory. Of a daemon that was just killed the kernel, or a child that has not
    /// become its command yet, may hold the lock for a moment more, which is waited for.
    ///
    /// # Errors
    /// [`LockError::Held`] with the pid of the one that has it.
    pub async fn take(directory: &Path) -> Result<Self, LockError> {
        let io = |source| LockError::Io { path: directory.to_owned(), source };
        let path = directory.join(LOCK_FILE);
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(path)
            .map_err(io)?;
        let asked_at = Instant::now();
        loop {
            match file.try_lock() {
                Ok(()) => break,
                Err(TryLockError::Error(error)) => return Err(io(error)),
                Err(TryLockError::WouldBlock) => {}
            }
            let pid = read_pid(&mut file).map_err(io)?;
            if asked_at.elapsed() >= if is_gone(&pid) { GONE_WITHIN } else { ENDING_WITHIN } {
                return Err(LockError::Held { path: directory.to_owned(), pid });
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
        // For people alone: on a full disk the lock is as good without it.
        let _unwritten = file
            .set_len(0)
            .and_then(|()| file.rewind())
            .and_then(|()| writeln!(file, "{}", std::process::id()));
        Ok(Self { _file: file })
    }

    /// The pid of the one that has a directory, as it wrote it; `None` when nobody has, or that
    /// cannot be told.
    pub fn holder(directory: &Path) -> Option<String> {
        let mut file = File::open(directory.join(LOCK_FILE)).ok()?;
        // One that nobody has is ours for that moment only.
        let Err(TryLockError::WouldBlock) = file.try_lock_shared() else { return None };
        read_pid(&mut file).ok()
    }
}

fn read_pid(file: &mut File) -> std::io::Result<String> {
    let mut pid = String::new();
    file.rewind()?;
    file.read_to_string(&mut pid)?;
    Ok(pid.trim().to_owned())
}

/// Whether there is known to be no such process. Seen from a container there may be another one of
/// that number, or none.
fn is_gone(pid: &str) -> bool {
    let pid = pid.parse().ok().and_then(rustix::process::Pid::from_raw);
    pid.is_some_and(|pid| rustix::process::test_kill_process(pid) == Err(rustix::io::Errno::SRCH))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_second_daemon_is_refused_with_the_first_ones_pid() {
        let dir = tempfile::tempdir().unwrap();
        let first = DataDirLock::take(dir.path()).await.unwrap();
        let error = DataDirLock::take(dir.path()).await.unwrap_err().to_string();
        assert!(error.contains(&format!("pid {}", std::process::id())), "{error}");
        assert_eq!(DataDirLock::holder(dir.path()), Some(std::process::id().to_string()));
        drop(first);
        assert_eq!(DataDirLock::holder(dir.path()), None);
        DataDirLock::take(dir.path()).await.unwrap();
    }

    #[tokio::test]
    async fn the_lock_of_a_daemon_that_was_killed_is_waited_for_where_a_child_of_it_still_has_it() {
        let dir = tempfile::tempdir().unwrap();
        // What a child between fork and exec has: the open file, and nobody of the pid in it.
        let mut over = std::process::Command::new("true").spawn().unwrap();
        let pid = over.id();
        over.wait().unwrap();
        let path = dir.path().join(LOCK_FILE);
        std::fs::write(&path, format!("{pid}\n")).unwrap();
        let held = File::options().write(true).open(&path).unwrap();
        held.try_lock().unwrap();
        let (taken, ()) = tokio::join!(DataDirLock::take(dir.path()), async {
            tokio::time::sleep(ENDING_WITHIN * 2).await;
            drop(held);
        });
        taken.unwrap();
    }
}
