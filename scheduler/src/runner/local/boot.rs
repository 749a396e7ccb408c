//! Knows whether the machine was started again since the spool directories were last complete.
//! After that a missing directory or claim says nothing: nothing there is synced. Called by `local`
//! when jobs are taken up and forgotten.
//!
//! The file `boot` holds the boot id of the last boot in which every job was accounted for. It is
//! written again only when the jobs that were taken up in a new boot are all forgotten, that is,
//! when their outcomes are stored; a daemon that dies before that comes to the same answers again.

use std::collections::HashSet;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use schema::id::JobId;

use crate::private;

/// Where the kernel tells which boot this is. Source: proc_sys_kernel(5).
const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";

#[derive(Debug)]
pub(super) struct BootRecord {
    path: PathBuf,
    current: String,
    state: Mutex<BootState>,
}

#[derive(Debug)]
struct BootState {
    /// Whether this boot is another than the one on file.
    is_new: bool,
    /// Jobs of before whose outcome is not stored yet.
    owed: HashSet<JobId>,
    recovered: bool,
}

impl BootRecord {
    /// Compares this boot with the one on file in the spool directory. None on file counts as
    /// another.
    pub(super) fn open(spool: &Path) -> io::Result<Self> {
        let path = spool.join("boot");
        let current = std::fs::read_to_string(BOOT_ID)?.trim().to_owned();
        let before = match std::fs::read_to_string(&path) {
            Ok(before) => before,
            Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
            Err(error) => return Err(error),
        };
        let state =
            BootState { is_new: before.trim() != current, owed: HashSet::new(), recovered: false };
        Ok(Self { path, current, state: Mutex::new(state) })
    }

    /// Whether jobs of before were decided in another boot, as far as anybody can tell.
    pub(super) fn is_new(&self) -> bool {
        self.lock().is_new
    }

    /// This job was decided before, and its outcome is not stored.
    pub(super) fn owes(&self, job: JobId) {
        self.lock().owed.insert(job);
    }

    /// Whether [`Self::owes`] was called for it.
    pub(super) fn is_owed(&self, job: JobId) -> bool {
        self.lock().owed.contains(&job)
    }

    /// All jobs of before are known now.
    pub(super) fn settle(&self) {
        self.lock().recovered = true;
        self.stamp();
    }

    /// The outcome of a job is stored. Blocks on the disk when it was the last one owed.
    pub(super) fn forgotten(&self, job: JobId) {
        if self.lock().owed.remove(&job) {
            self.stamp();
        }
    }

    fn stamp(&self) {
        let mut state = self.lock();
        if !state.is_new || !state.recovered || !state.owed.is_empty() {
            return;
        }
        match self.write() {
            Ok(()) => state.is_new = false,
            // The next start finds an older boot, and answers "unknown" where it could have known.
            Err(error) => {
                tracing::warn!(path = %self.path.display(), %error, "failed to write the boot id")
            }
        }
    }

    fn write(&self) -> io::Result<()> {
        private::replace(&self.path, self.current.as_bytes())
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, BootState> {
        self.state.lock().expect("nobody panics with the lock")
    }
}
