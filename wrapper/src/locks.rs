//! Locks on declared files: two jobs that declare the same file exclude each other, so that none reads or writes what the other
//! declared. Called by `run`, before inputs are put in place and until outputs are collected; a run that declares nothing asks
//! the kernel for nothing of it.
//!
//! ```text
//! tf.plan                 declared
//! .tf.plan.pvn-lock       beside it: locked (flock) by the wrapper whose job it names; removed when that is through
//! ```
//!
//! What always holds:
//! - **The lock is the kernel's.** It ends with its owner, whatever ends that; a file that is left is locked by the next one.
//! - **A lock file is removed only by who has it locked**, and whoever locks one that has lost its name meanwhile tries again.
//! - **All are taken in one order**, so two wrappers never wait for each other.
//! - **A wait says for whom**, obeys TERM, counts in the timeout and has an end.
//! - **A wrapper within a job's command passes by the locks of its own job's wrapper**, which waits for it.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Component, Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, OFlags};
use rustix::io::Errno;
use rustix::process::Pid;
use schema::id::BlobId;

use crate::args::Exec;
use crate::deliver::done::Done;
use crate::hand_over::{Environment, Way};
use crate::spawn::Refusal;
use crate::writer::say;
use crate::{process, supervise};

/// End of the names of lock files.
const SUFFIX: &str = ".pvn-lock";

/// How long another job is waited for at most: then nothing is run, and another try makes sense. A fetch has ended by then, by
/// its timeout; whoever waits keeps a place from others.
const PATIENCE: Duration = Duration::from_secs(15 * 60);

/// How often it is tried again: nobody tells when another process lets go of a lock without a thread that waits for it.
const EVERY: Duration = Duration::from_millis(50);

/// Longest name of a lock file that is spelled out, bytes. A file system takes 255.
const NAME_LIMIT_BYTES: usize = 200;

/// Longest text of a lock file that is looked at, bytes.
const HOLDER_LIMIT_BYTES: u64 = 1024;

/// Locks that are held.
#[derive(Default)]
pub(crate) struct Locks(Vec<Lock>);

struct Lock {
    path: PathBuf,
    _file: File,
}

/// Who holds a lock, as the file says: `JOB PID HOST`, `-` for no job.
struct Holder {
    job: String,
    pid: Option<Pid>,
    host: String,
}

enum Tried {
    Locked(Lock),
    /// By somebody who said who it is, if it could be read.
    Held(Option<Holder>),
    /// It cannot be made here.
    Impossible(io::Error),
}

impl Locks {
    /// Takes the lock of each declared file. `began`: when the run did, from which its timeout counts.
    pub(crate) fn take(options: &Exec, environment: &Environment, way: &mut Way, began: Instant) -> Result<Self, Refusal> {
        let declared = options.inputs.iter().map(|input| &input.path).chain(options.outputs.iter().map(|output| &output.path));
        let files: BTreeMap<PathBuf, &Path> =
            declared.flat_map(|path| lock_files(path).into_iter().map(|file| (file, path.as_path()))).collect();
        let job = environment.iter().find(|(key, _)| key == schema::wire::JOB_VARIABLE).and_then(|(_, value)| value.to_str());
        let own = Holder {
            job: job.filter(|job| !job.is_empty() && !job.contains(char::is_whitespace)).unwrap_or("-").to_owned(),
            pid: Some(rustix::process::getpid()),
            host: host(),
        };
        let until = options.deadline().and_then(|timeout| began.checked_add(timeout));
        let mut locks = Self::default();
        for (file, declared) in files {
            locks.0.extend(wait_for(&file, declared, &own, way, until)?);
        }
        Ok(locks)
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // While it is locked: whoever waits for it finds that it has lost its name. In a directory where only its maker may remove
        // it, it stays.
        let _ = std::fs::remove_file(&self.path);
    }
}

/// The lock, when it can be had; `None` where none can be made, or where our own job's wrapper has it.
fn wait_for(file: &Path, declared: &Path, own: &Holder, way: &mut Way, until: Option<Instant>) -> Result<Option<Lock>, Refusal> {
    let began = Instant::now();
    let mut waiting: Option<(nix::sys::signalfd::SignalFd, std::sync::Arc<Done<()>>)> = None;
    loop {
        let holder = match lock(file, own) {
            Tried::Locked(lock) => return Ok(Some(lock)),
            Tried::Impossible(error) => {
                say(&format!("{} is not locked ({error}): nothing keeps another job from using it at the same time", declared.display()));
                return Ok(None);
            }
            Tried::Held(Some(holder)) if !way.is_of_the_job() && holder.is_around(own) => return Ok(None),
            Tried::Held(holder) => holder,
        };
        let who = holder.map_or_else(|| "another job".to_owned(), |holder| holder.to_string());
        if waiting.is_none() {
            say(&format!("waits for {who}, which uses {}", declared.display()));
            // Signs of life, and whether we are to stop, go on meanwhile.
            way.start();
            let signals = supervise::signal_descriptor()
                .map_err(|error| Refusal { surroundings: true, ..Refusal::ours(format!("cannot wait for signals: {error}")) })?;
            waiting = Some((signals, Done::new()));
        }
        let timed_out = until.is_some_and(|until| Instant::now() >= until);
        if timed_out || began.elapsed() >= PATIENCE {
            let why = format!("nothing was run: {who} still uses {}", declared.display());
            return Err(Refusal { surroundings: true, ..Refusal::ours(why) });
        }
        if let Some((signals, nobody)) = &waiting
            && (nobody.sleep(Some(signals), EVERY) || way.is_cancelled())
        {
            return Err(Refusal::ours("asked to stop before the command was started".to_owned()));
        }
    }
}

fn lock(path: &Path, own: &Holder) -> Tried {
    loop {
        let mut file = match open(path) {
            Ok(file) => file,
            Err(error) => return Tried::Impossible(error),
        };
        match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(Errno::INTR) => continue,
            Err(Errno::WOULDBLOCK) => return Tried::Held(Holder::read(&mut file)),
            Err(error) => return Tried::Impossible(error.into()),
        }
        if is_at(&file, path) {
            // For people, and for wrappers within our command.
            let _ = file.set_len(0).and_then(|()| file.rewind()).and_then(|()| file.write_all(own.line().as_bytes()));
            return Tried::Locked(Lock { path: path.to_owned(), _file: file });
        }
    }
}

/// Whether what lies at the path is this very file.
pub(crate) fn is_at(file: &File, path: &Path) -> bool {
    let same = |there: std::fs::Metadata| file.metadata().is_ok_and(|ours| (ours.dev(), ours.ino()) == (there.dev(), there.ino()));
    std::fs::symlink_metadata(path).is_ok_and(same)
}

/// The lock file, made if it is not there. One of another user's can be locked by whoever can read it.
fn open(path: &Path) -> io::Result<File> {
    let mut options = File::options();
    options.read(true).mode(0o644).custom_flags((OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed());
    options.clone().write(true).create(true).open(path).or_else(|error| match error.kind() {
        io::ErrorKind::PermissionDenied => options.open(path).map_err(|_| error),
        _ => Err(error),
    })
}

/// The lock files of a declared file: one beside it; where its directory is not made yet, one in the nearest directory that is,
/// and those that others hold there because it was not when they began.
fn lock_files(declared: &Path) -> Vec<PathBuf> {
    let absolute = std::path::absolute(declared).unwrap_or_else(|_| declared.to_owned());
    // One file has one name, however its directory is written.
    let mut directory = absolute.parent().unwrap_or(Path::new("/")).to_owned();
    let mut rest = PathBuf::from(absolute.file_name().unwrap_or_default());
    while let Err(error) = directory.canonicalize() {
        if error.kind() != io::ErrorKind::NotFound || directory.parent().is_none() {
            break;
        }
        rest = Path::new(directory.file_name().unwrap_or_default()).join(&rest);
        directory.pop();
    }
    let directory = directory.canonicalize().unwrap_or(directory);
    let mut files = vec![directory.join(name(&rest))];
    let mut above = directory.as_path();
    while let (Some(parent), Some(own)) = (above.parent(), above.file_name()) {
        rest = Path::new(own).join(&rest);
        files.extend(Some(parent.join(name(&rest))).filter(|file| std::fs::symlink_metadata(file).is_ok()));
        above = parent;
    }
    files
}

/// What the lock file of `rest` is called.
fn name(rest: &Path) -> OsString {
    let parts = rest.components().filter_map(|part| match part {
        Component::Normal(part) => Some(part.as_bytes()),
        _ => None,
    });
    let spelled = parts.collect::<Vec<_>>().join(b"%".as_slice());
    let spelled = if spelled.len() <= NAME_LIMIT_BYTES { spelled } else { BlobId::of(&spelled).to_string().into_bytes() };
    let mut name = OsString::from(".");
    name.push(std::ffi::OsStr::from_bytes(&spelled));
    name.push(SUFFIX);
    name
}

impl Holder {
    fn line(&self) -> String {
        format!("{} {} {}\n", self.job, self.pid.map_or(0, |pid| pid.as_raw_nonzero().get()), self.host)
    }

    fn read(file: &mut File) -> Option<Self> {
        let mut text = String::new();
        file.take(HOLDER_LIMIT_BYTES).read_to_string(&mut text).ok()?;
        let mut words = text.split_whitespace();
        let (job, pid, host) = (words.next()?.to_owned(), words.next()?.parse().ok()?, words.next().unwrap_or_default().to_owned());
        Some(Self { job, pid: Pid::from_raw(pid), host })
    }

    /// Whether this is the wrapper of the command that `own` is a part of.
    fn is_around(&self, own: &Self) -> bool {
        if own.job != "-" {
            return self.job == own.job;
        }
        let mut above = own.pid;
        while let Some(pid) = above {
            if Some(pid) == self.pid {
                return self.host == own.host;
            }
            above = process::parent_of(pid).and_then(Pid::from_raw);
        }
        false
    }
}

impl std::fmt::Display for Holder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.job == "-" {
            write!(f, "process {}", self.pid.map_or(0, |pid| pid.as_raw_nonzero().get()))?
        } else {
            f.write_str(&self.job)?
        }
        if self.host.is_empty() { Ok(()) } else { write!(f, " on {}", self.host) }
    }
}

fn host() -> String {
    rustix::system::uname().nodename().to_string_lossy().split_whitespace().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn holder(job: &str) -> Holder {
        Holder { job: job.to_owned(), pid: Some(rustix::process::getpid()), host: host() }
    }

    fn is_locked(tried: &Tried) -> bool {
        matches!(tried, Tried::Locked(_))
    }

    #[test]
    fn one_file_has_one_lock_however_it_is_written() {
        let directory = tempfile::tempdir().unwrap();
        let base = directory.path().canonicalize().unwrap();
        std::fs::create_dir(base.join("real")).unwrap();
        std::os::unix::fs::symlink("real", base.join("link")).unwrap();
        let expected = vec![base.join("real/.tf.plan.pvn-lock")];
        for written in ["real/tf.plan", "link/tf.plan", "./real/./tf.plan", "link/../real/tf.plan"] {
            assert_eq!(lock_files(&base.join(written)), expected, "{written}");
        }
        let long = "x".repeat(250);
        assert!(lock_files(&base.join(&long))[0].file_name().unwrap().len() < 100);
    }

    #[test]
    fn a_directory_that_is_made_meanwhile_makes_no_second_lock() {
        let directory = tempfile::tempdir().unwrap();
        let base = directory.path().canonicalize().unwrap();
        let declared = base.join("build/out/tf.plan");
        let early = lock_files(&declared);
        assert_eq!(early, [base.join(".build%out%tf.plan.pvn-lock")]);
        let held = lock(&early[0], &holder("job-1"));
        assert!(is_locked(&held));
        std::fs::create_dir_all(declared.parent().unwrap()).unwrap();
        let late = lock_files(&declared);
        assert_eq!(late, [base.join("build/out/.tf.plan.pvn-lock"), early[0].clone()]);
        assert!(matches!(lock(&late[1], &holder("job-2")), Tried::Held(Some(held)) if held.job == "job-1"));
        drop(held);
        assert_eq!(lock_files(&declared).len(), 1);
    }

    #[test]
    fn what_a_dead_holder_left_is_taken_over_and_what_is_held_is_not() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join(".f.pvn-lock");
        std::fs::write(&path, "job-dead 1 host\n").unwrap();
        let first = lock(&path, &holder("job-1"));
        assert!(is_locked(&first));
        assert!(matches!(lock(&path, &holder("job-2")), Tried::Held(Some(held)) if held.job == "job-1"));
        drop(first);
        assert!(!path.exists());
        assert!(is_locked(&lock(&path, &holder("job-2"))));
    }

    #[test]
    fn of_many_that_take_and_release_one_has_it_at_a_time() {
        let directory = tempfile::tempdir().unwrap();
        let (path, inside) = (directory.path().join(".f.pvn-lock"), directory.path().join("inside"));
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..200 {
                        let held = loop {
                            if let Tried::Locked(held) = lock(&path, &holder("job-1")) {
                                break held;
                            }
                            std::thread::yield_now();
                        };
                        // Fails when another is inside.
                        File::options().write(true).create_new(true).open(&inside).unwrap();
                        std::fs::remove_file(&inside).unwrap();
                        drop(held);
                    }
                });
            }
        });
    }
}
