//! Locks on declared files: two jobs that declare the same file exclude each other, so that none
//! reads or writes what the other declared. Called by `run`, before inputs are put in place and
//! until outputs are collected, and by `supervise` now and then meanwhile; a run that declares
//! nothing asks the kernel for nothing of it.
//!
//! ```text
//! tf.plan                 declared
//! .tf.plan.pvn-lock       beside it: locked (flock) by the wrapper whose job it names; removed when that is through
//! PLACE/DIGEST.pvn-lock   the same, in a place of ours that all wrappers of one daemon share: `files`
//! ```
//!
//! What always holds:
//! - **The lock is the kernel's.** It ends with its owner, whatever ends that; a file that is left
//!   is locked by the next one.
//! - **A lock file is removed only by who has it locked**, and whoever locks one that has lost its
//!   name meanwhile tries again.
//! - **All are taken in one order**, so two wrappers never wait for each other.
//! - **A command that removes the directory removes no lock of the place.** The one beside the
//!   file, which all know who share nothing but the directory, is made again as soon as it can be.
//! - **A wait says for whom**, obeys TERM, counts in the timeout and has an end.
//! - **A wrapper within a job's command passes by the locks of the wrappers around it**, which wait
//!   for it, and by nobody else's: it takes the lock within theirs (`.tf.plan.pvn-lock.1`, within
//!   that `.2`), which excludes others within the same command.

use std::fs::File;
use std::io::{self, Seek, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use nix::sys::signalfd::SignalFd;
use rustix::fs::{FlockOperation, Timespec, Timestamps, UTIME_NOW};
use rustix::io::Errno;
use schema::wire::KIND_VARIABLE;

use crate::args::ExecArguments;
use crate::signals;
use crate::spawn::{Environment, SpawnRefusal};
use crate::thread_result::ThreadResult;
use crate::writer::say;

use self::files::{LockFile, LockPlace};
use self::holder::LockHolder;
use crate::store::is_at;

mod files;
mod holder;

/// How long another job is waited for at most: then nothing is run, and another try makes sense. A
/// fetch has ended by then, by its timeout; whoever waits keeps a place from others.
const PATIENCE: Duration = Duration::from_secs(15 * 60);

/// How long the wrapper of an apply waits: its gates were open when it was started, and may shut
/// meanwhile. Not run it gives its turn back, and passes them again before the next try.
const PATIENCE_OF_AN_APPLY: Duration = Duration::from_secs(2);

/// How often it is tried again: nobody tells when another process lets go of a lock without a
/// thread that waits for it.
const EVERY: Duration = Duration::from_millis(50);

/// How often we look whether the command has removed a lock of ours: between that and the next look
/// a wrapper that shares nothing but the directory with us would not be kept out.
const LOOK_EVERY: Duration = Duration::from_millis(250);

/// Locks that are held.
#[derive(Default)]
pub(crate) struct Locks {
    held: Vec<PathLock>,
    own: Option<LockHolder>,
    look_at: Option<Instant>,
}

struct PathLock {
    at: LockFile,
    file: File,
}

enum LockAttempt {
    Locked(PathLock),
    /// By somebody who said who it is, if it could be read.
    Held(Option<LockHolder>),
    /// Its directory is gone.
    Gone,
    /// It cannot be made here.
    Impossible(io::Error),
}

/// What came of waiting for one lock.
enum Waited {
    Locked(PathLock),
    /// None can be made.
    Without,
    /// Its directory is gone: what is to be locked has to be found out again.
    Gone,
}

/// Whoever takes the locks of a run: how its end is told decides where they are, and how it waits.
pub(crate) trait LockOwner {
    /// Where locks are that no command removes: in the spool of the daemon whose job it is, where
    /// all its jobs find it, else in the directory for whatever is temporary.
    fn lock_place(&self, environment: &Environment) -> Option<PathBuf>;
    /// Whether this wrapper is the one that reports the job: not one by hand, nor one within the
    /// job's command.
    fn is_of_the_job(&self) -> bool;
    /// Just after the start, or when that has to wait.
    fn start(&mut self);
    /// Whether the scheduler asks us to stop.
    fn is_cancelled(&self) -> bool;
}

impl Locks {
    /// Takes the lock of each declared file. `began`: when the run did, from which its timeout
    /// counts.
    pub(crate) fn take(
        options: &ExecArguments,
        environment: &Environment,
        owner: &mut dyn LockOwner,
        began: Instant,
    ) -> Result<Self, SpawnRefusal> {
        let declared: Vec<&Path> = options.declared().collect();
        let place = owner.lock_place(environment);
        let own = LockHolder::ourselves(environment, owner.is_of_the_job());
        let until = options.deadline().and_then(|most| began.checked_add(most));
        let patience = if owner.is_of_the_job() && is_apply(environment) {
            PATIENCE_OF_AN_APPLY
        } else {
            PATIENCE
        };
        let mut wait = LockWait {
            owner,
            own: &own,
            began: Instant::now(),
            patience,
            until,
            heard: None,
            said: false,
        };
        loop {
            match Self::all(files::of(&declared, place.as_deref()), &mut wait)? {
                Some(held) => {
                    return Ok(Self {
                        held,
                        own: Some(own),
                        look_at: Instant::now().checked_add(LOOK_EVERY),
                    });
                }
                // Whatever was taken is let go meanwhile.
                None => {
                    wait.rest("another job", declared.first().copied().unwrap_or(Path::new("")))?
                }
            }
        }
    }

    fn all(
        files: Vec<(LockFile, &Path)>,
        wait: &mut LockWait<'_>,
    ) -> Result<Option<Vec<PathLock>>, SpawnRefusal> {
        let mut held = Vec::with_capacity(files.len());
        for (file, declared) in files {
            match wait.until_locked(file, declared)? {
                Waited::Locked(lock) => held.push(lock),
                Waited::Without => {}
                Waited::Gone => return Ok(None),
            }
        }
        Ok(Some(held))
    }

    /// What time it is on the file systems of declared files, by their devices, as far as they
    /// tell: the time that they give to a lock file that is touched.
    pub(crate) fn clocks(&self) -> Vec<(u64, (i64, i64))> {
        let now = Timespec { tv_sec: 0, tv_nsec: UTIME_NOW };
        let touched = Timestamps { last_access: now, last_modification: now };
        let beside = self.held.iter().filter(|held| held.at.is == LockPlace::Beside);
        let touched = beside.filter(|held| rustix::fs::futimens(&held.file, &touched).is_ok());
        let metadata = touched.filter_map(|held| held.file.metadata().ok());
        metadata
            .map(|metadata| (metadata.dev(), (metadata.ctime(), metadata.ctime_nsec())))
            .collect()
    }

    /// When to call [`Self::look`].
    pub(crate) fn next(&self) -> Option<Instant> {
        self.look_at
    }

    /// Makes what the command removed again, where it can be.
    pub(crate) fn look(&mut self, now: Instant) {
        if self.look_at.is_none_or(|at| now < at) {
            return;
        }
        self.look_at = now.checked_add(LOOK_EVERY);
        let Some(own) = &self.own else { return };
        for held in self.held.iter_mut().filter(|held| !is_at(&held.file, &held.at.path)) {
            if let LockAttempt::Locked(lock) = lock(&held.at, own) {
                *held = lock;
            }
        }
    }
}

impl Drop for PathLock {
    fn drop(&mut self) {
        // While it is locked: whoever waits for it finds that it has lost its name. Another's, at
        // the same path since the command removed ours, is left alone. In a directory where
        // only its maker may remove it, it stays.
        if is_at(&self.file, &self.at.path) {
            let _ = std::fs::remove_file(&self.at.path);
        }
        if let (LockPlace::Place, Some(place)) = (self.at.is, self.at.path.parent()) {
            // Refused as long as there is another lock in it.
            let _ = std::fs::remove_dir(place);
        }
    }
}

fn is_apply(environment: &Environment) -> bool {
    environment.iter().any(|(key, value)| {
        key == KIND_VARIABLE && value == schema::status::JobKind::Apply.as_str()
    })
}

/// A wait for others' locks.
struct LockWait<'a> {
    owner: &'a mut dyn LockOwner,
    own: &'a LockHolder,
    began: Instant,
    patience: Duration,
    until: Option<Instant>,
    /// Made when it has to wait.
    heard: Option<(SignalFd, std::sync::Arc<ThreadResult<()>>)>,
    /// Whether it was said for whom.
    said: bool,
}

impl LockWait<'_> {
    /// The lock, when it can be had.
    fn until_locked(&mut self, file: LockFile, declared: &Path) -> Result<Waited, SpawnRefusal> {
        let mut at = file.clone();
        loop {
            let holder = match lock(&at, self.own) {
                LockAttempt::Locked(lock) => return Ok(Waited::Locked(lock)),
                LockAttempt::Gone => return Ok(Waited::Gone),
                LockAttempt::Impossible(error) => {
                    if file.is == LockPlace::Beside {
                        let shown = declared.display();
                        say(&format!(
                            "{shown} is not locked ({error}): nothing keeps another job from \
                             using it at the same time"
                        ));
                    }
                    return Ok(Waited::Without);
                }
                LockAttempt::Held(Some(holder))
                    if !self.owner.is_of_the_job() && holder.is_around(self.own) =>
                {
                    at = at.within();
                    continue;
                }
                LockAttempt::Held(holder) => holder,
            };
            let who = holder.map_or_else(|| "another job".to_owned(), |holder| holder.to_string());
            if !std::mem::replace(&mut self.said, true) {
                say(&format!("waits for {who}, which uses {}", declared.display()));
            }
            self.rest(&who, declared)?;
            // Whoever is around us may be gone.
            at = file.clone();
        }
    }

    /// Until it is to be tried again, if it is.
    fn rest(&mut self, who: &str, declared: &Path) -> Result<(), SpawnRefusal> {
        if self.heard.is_none() {
            // Signs of life, and whether we are to stop, go on meanwhile.
            self.owner.start();
            let signals = signals::descriptor().map_err(|error| SpawnRefusal {
                surroundings: true,
                ..SpawnRefusal::ours(format!("cannot wait for signals: {error}"))
            })?;
            self.heard = Some((signals, ThreadResult::new()));
        }
        let timed_out = self.until.is_some_and(|until| Instant::now() >= until);
        if timed_out || self.began.elapsed() >= self.patience {
            let why = format!("nothing was run: {who} still uses {}", declared.display());
            return Err(SpawnRefusal { surroundings: true, ..SpawnRefusal::ours(why) });
        }
        if let Some((signals, nobody)) = &self.heard
            && (nobody.sleep(Some(signals), EVERY) || self.owner.is_cancelled())
        {
            return Err(SpawnRefusal::ours(
                "asked to stop before the command was started".to_owned(),
            ));
        }
        Ok(())
    }
}

fn lock(at: &LockFile, own: &LockHolder) -> LockAttempt {
    let mut tried = false;
    loop {
        let mut file = match at.open() {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound && !at.has_directory() => {
                return LockAttempt::Gone;
            }
            // Its directory came back just then; or none can be made there, as below `/proc` and in
            // one that has lost its name.
            Err(error)
                if error.kind() == io::ErrorKind::NotFound
                    && !std::mem::replace(&mut tried, true) =>
            {
                continue;
            }
            Err(error) => return LockAttempt::Impossible(error),
        };
        match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(Errno::INTR) => continue,
            Err(Errno::WOULDBLOCK) => return LockAttempt::Held(LockHolder::read(&mut file)),
            Err(error) => return LockAttempt::Impossible(error.into()),
        }
        if !is_at(&file, &at.path) {
            continue;
        }
        // For people, and for wrappers within our command.
        let told = file
            .set_len(0)
            .and_then(|()| file.rewind())
            .and_then(|()| file.write_all(own.line().as_bytes()));
        // It would go on naming somebody else, whom ours would wait for; where it may not be
        // removed either, that is so.
        if told.is_err() && std::fs::remove_file(&at.path).is_ok() {
            continue;
        }
        return LockAttempt::Locked(PathLock { at: at.clone(), file });
    }
}

#[cfg(test)]
mod tests;
