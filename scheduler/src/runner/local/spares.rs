//! Empty spool directories that wait for their next job. Called by `local` when a job is forgotten,
//! and by `start` when one needs a directory or takes one away. All of it blocks on the disk.
//!
//! Why: making and removing a directory for each job was the dearest thing that a trivial job asked
//! of the disk, and all those calls wait for one lock, that of the spool. Measured on ext4 with two
//! threads, claim and report included: 350 to 640 us of CPU for a job with a directory of its own,
//! 100 to 190 us for one that gets a used one by rename.
//!
//! What always holds: a job's directory is gone under its name in one step, and only then is
//! anything in it removed, the claim above all: a wrapper that comes late finds it claimed, or not
//! at all. What a job gets is empty; a job that has a directory gets no second one. What a crash
//! leaves half removed is removed at the next start.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::{CWD, RenameFlags};
use rustix::io::Errno;
use schema::spool;

use crate::removal::remove_all;

use super::directory::SpoolDirectory;

/// What the name of a spare one begins with: no job's id does.
const PREFIX: &str = "spare-";

/// Most spare ones: as many as jobs of a busy moment end before the next ones start. More would
/// only lie about.
const SPARES_LIMIT: usize = 64;

/// The spare directories of one spool.
#[derive(Debug)]
pub(super) struct Spares {
    spool: PathBuf,
    free: Mutex<Vec<PathBuf>>,
    made: AtomicU64,
}

impl Spares {
    /// None yet. Removes those of the daemon before, which may not be empty.
    pub(super) fn open(spool: &Path) -> io::Result<Self> {
        for entry in std::fs::read_dir(spool)? {
            let entry = entry?;
            if entry.file_name().as_encoded_bytes().starts_with(PREFIX.as_bytes()) {
                remove_all(&entry.path())?;
            }
        }
        Ok(Self { spool: spool.to_owned(), free: Mutex::default(), made: AtomicU64::new(0) })
    }

    /// Makes a job's directory, of a spare one if there is one; `false` when it is there already.
    pub(super) fn make(&self, directory: &SpoolDirectory) -> io::Result<bool> {
        let Some(spare) = self.free().pop() else { return directory.make() };
        match rustix::fs::renameat_with(CWD, &spare, CWD, directory.path(), RenameFlags::NOREPLACE)
        {
            Ok(()) => Ok(true),
            Err(Errno::EXIST) => {
                self.free().push(spare);
                Ok(false)
            }
            // Somebody removed it, or the file system has no such rename: then the other way tells
            // what is wrong, if anything.
            Err(_) => {
                let _ = std::fs::remove_dir(&spare);
                directory.make()
            }
        }
    }

    /// Takes a job's directory away and keeps it for the next one. One that is not there is away
    /// already.
    pub(super) fn take(&self, directory: &SpoolDirectory) -> io::Result<()> {
        let spare =
            self.spool.join(format!("{PREFIX}{}", self.made.fetch_add(1, Ordering::Relaxed)));
        match std::fs::rename(directory.path(), &spare) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            other => other?,
        }
        // An ordinary job leaves these two.
        for file in [spool::REPORT, spool::CLAIM] {
            let _ = std::fs::remove_file(spare.join(file));
        }
        let is_empty = std::fs::read_dir(&spare)?.next().is_none();
        let mut free = self.free();
        if is_empty && free.len() < SPARES_LIMIT {
            free.push(spare);
            return Ok(());
        }
        drop(free);
        remove_all(&spare)
    }

    fn free(&self) -> std::sync::MutexGuard<'_, Vec<PathBuf>> {
        self.free.lock().expect("nobody panics with the lock")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn world() -> (tempfile::TempDir, Spares) {
        let spool = tempfile::tempdir().unwrap();
        let spares = Spares::open(spool.path()).unwrap();
        (spool, spares)
    }

    /// A job's directory with these files in it.
    fn used(spool: &Path, spares: &Spares, name: &str, files: &[&str]) -> SpoolDirectory {
        let directory = SpoolDirectory::at(spool.join(name));
        assert!(spares.make(&directory).unwrap());
        for file in files {
            std::fs::create_dir_all(directory.path().join(file).parent().unwrap()).unwrap();
            std::fs::write(directory.path().join(file), "x").unwrap();
        }
        directory
    }

    fn names(spool: &Path) -> Vec<String> {
        let mut names: Vec<_> = std::fs::read_dir(spool)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn what_an_ordinary_job_leaves_is_the_next_ones_directory_and_empty() {
        let (spool, spares) = world();
        let first = used(spool.path(), &spares, "job-1", &[spool::CLAIM, spool::REPORT]);
        spares.take(&first).unwrap();
        assert_eq!(names(spool.path()), ["spare-0"]);
        spares.take(&first).unwrap();
        let second = used(spool.path(), &spares, "job-2", &[]);
        assert_eq!(names(spool.path()), ["job-2"]);
        assert_eq!(names(second.path()), [""; 0]);
    }

    #[test]
    fn what_has_more_in_it_is_removed_with_all_of_it() {
        let (spool, spares) = world();
        let job = used(
            spool.path(),
            &spares,
            "job-1",
            &[spool::CLAIM, spool::REPORT, "stdout", "files/plan"],
        );
        spares.take(&job).unwrap();
        assert_eq!(names(spool.path()), [""; 0]);
    }

    #[test]
    fn a_job_that_has_a_directory_gets_no_second_one() {
        let (spool, spares) = world();
        spares.take(&used(spool.path(), &spares, "job-1", &[])).unwrap();
        let job = SpoolDirectory::at(spool.path().join("job-2"));
        std::fs::create_dir(job.path()).unwrap();
        assert!(!spares.make(&job).unwrap());
        assert_eq!(names(spool.path()), ["job-2", "spare-0"], "the spare one waits for another");
    }

    #[test]
    fn a_spare_one_that_somebody_removed_is_not_missed() {
        let (spool, spares) = world();
        spares.take(&used(spool.path(), &spares, "job-1", &[])).unwrap();
        std::fs::remove_dir(spool.path().join("spare-0")).unwrap();
        used(spool.path(), &spares, "job-2", &[]);
        assert_eq!(names(spool.path()), ["job-2"]);
    }

    #[test]
    fn those_of_the_daemon_before_are_removed_and_jobs_are_not() {
        let (spool, spares) = world();
        spares.take(&used(spool.path(), &spares, "job-1", &[])).unwrap();
        std::fs::write(spool.path().join("spare-0/left"), "x").unwrap();
        used(spool.path(), &Spares::open(spool.path()).unwrap(), "job-2", &[]);
        Spares::open(spool.path()).unwrap();
        assert_eq!(names(spool.path()), ["job-2"]);
    }

    #[test]
    fn no_more_than_a_busy_moments_worth_is_kept() {
        let (spool, spares) = world();
        let jobs: Vec<_> = (0..SPARES_LIMIT + 3)
            .map(|number| used(spool.path(), &spares, &format!("job-{number}"), &[]))
            .collect();
        jobs.iter().for_each(|job| spares.take(job).unwrap());
        assert_eq!(names(spool.path()).len(), SPARES_LIMIT);
    }
}
