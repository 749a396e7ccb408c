//! Processes of local jobs: how they are started, signalled, found. [`schema::spool`] says what makes a wrapper known to be
//! alive; this is about everything else.

use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::process::{Pid, PidfdFlags, Signal};
use schema::id::JobId;
use tokio::process::Child;

/// Time that left-over processes of a lost wrapper get between TERM and KILL. Source: the wrapper's `--kill-after`.
const STRAY_GRACE: Duration = Duration::from_secs(10);

/// Time after KILL until what is still there is reported as not gone.
const KILLED_GRACE: Duration = Duration::from_secs(2);

/// How often left-over processes are looked for meanwhile. They are nobody's children any more, so nothing tells their end.
const STRAY_LOOK: Duration = Duration::from_millis(50);

/// How often an adopted wrapper is looked at. Only those that outlived a daemon are; waiting on a descriptor that is none of
/// tokio's own takes code that its authors call unsafe.
const ADOPTED_LOOK: Duration = Duration::from_millis(50);

/// A running wrapper.
#[derive(Debug)]
pub(super) enum Wrapper {
    /// Our child.
    Started(Child),
    /// Started by a daemon before us.
    Adopted(OwnedFd),
}

impl Wrapper {
    /// Takes hold of a process that is not our child. `None` when it is gone. The caller makes sure afterwards that the pid
    /// was still the wrapper's: by the lock.
    pub(super) fn adopt(pid: Pid) -> std::io::Result<Option<Self>> {
        match rustix::process::pidfd_open(pid, PidfdFlags::NONBLOCK) {
            Ok(descriptor) => Ok(Some(Self::Adopted(descriptor))),
            Err(rustix::io::Errno::SRCH) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Waits for its end. Dropping the future changes nothing.
    pub(super) async fn ended(&mut self) -> std::io::Result<()> {
        match self {
            Self::Started(child) => child.wait().await.map(drop),
            Self::Adopted(descriptor) => {
                while !is_readable(descriptor)? {
                    tokio::time::sleep(ADOPTED_LOOK).await;
                }
                Ok(())
            }
        }
    }

    /// Sends it a signal; one that has ended needs none.
    pub(super) fn signal(&self, signal: Signal) {
        // The only way to fail is that it is gone: it runs as the same user.
        let _ = match self {
            // Not reaped yet, for `ended` and this are called by the same task, so the pid is still its own.
            Self::Started(child) => match child.id().and_then(|pid| Pid::from_raw(pid.cast_signed())) {
                Some(pid) => rustix::process::kill_process(pid, signal),
                None => Ok(()),
            },
            Self::Adopted(descriptor) => rustix::process::pidfd_send_signal(descriptor, signal),
        };
    }
}

/// A pid descriptor is readable once its process has ended.
fn is_readable(descriptor: &OwnedFd) -> std::io::Result<bool> {
    let mut poll = [PollFd::new(descriptor, PollFlags::IN)];
    match rustix::event::poll(&mut poll, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })) {
        Ok(ready) => Ok(ready > 0),
        Err(rustix::io::Errno::INTR) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// The processes that have the job's id in their environment: those that a lost wrapper left. Blocks.
fn strays(job: JobId) -> Vec<Pid> {
    let wanted = format!("PVN_JOB_ID={job}");
    let own = std::process::id().to_string();
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc").into_iter().flatten().flatten() {
        let name = entry.file_name();
        let Some(pid) = name.to_str().filter(|name| *name != own).and_then(|name| name.parse().ok()).and_then(Pid::from_raw) else {
            continue;
        };
        // That of another user cannot be read, nor could it be signalled; that of a zombie is empty.
        let Ok(environment) = std::fs::read(entry.path().join("environ")) else { continue };
        if environment.split(|byte| *byte == 0).any(|variable| variable == wanted.as_bytes()) {
            found.push(pid);
        }
    }
    found
}

/// Ends what a lost wrapper left of the job: TERM, then KILL. Says how many there were, and whether all are gone.
pub(super) async fn end_strays(job: JobId) -> std::io::Result<(usize, bool)> {
    let look = || async move { tokio::task::spawn_blocking(move || strays(job)).await.map_err(std::io::Error::other) };
    let first = look().await?;
    let count = first.len();
    let mut left = first;
    for (signal, patience) in [(Signal::TERM, STRAY_GRACE), (Signal::KILL, KILLED_GRACE)] {
        let until = tokio::time::Instant::now() + patience;
        signal_all(&left, signal);
        while !left.is_empty() && tokio::time::Instant::now() < until {
            tokio::time::sleep(STRAY_LOOK).await;
            left = look().await?;
            if signal == Signal::KILL {
                signal_all(&left, signal);
            }
        }
    }
    Ok((count, left.is_empty()))
}

fn signal_all(pids: &[Pid], signal: Signal) {
    for pid in pids {
        // Gone meanwhile, or not ours to signal; the next look tells.
        let _ = rustix::process::kill_process(*pid, signal);
    }
}

/// The wrapper's program: the one given, else beside this program, else on PATH.
///
/// # Errors
/// A sentence when it is nowhere.
pub fn find_wrapper(given: Option<&Path>) -> Result<PathBuf, String> {
    let usable = |path: &PathBuf| rustix::fs::access(path, rustix::fs::Access::EXEC_OK).is_ok() && path.is_file();
    if let Some(given) = given {
        let given = std::path::absolute(given).unwrap_or_else(|_| given.to_owned());
        return if usable(&given) { Ok(given) } else { Err(format!("the wrapper {} is no executable file", given.display())) };
    }
    let own = std::env::current_exe().ok();
    let directory = own.as_deref().and_then(Path::parent);
    // Tests of Cargo stand one directory below the programs.
    let beside = [directory, directory.and_then(Path::parent)].into_iter().flatten().map(|directory| directory.join("pvn-wrapper"));
    let path = std::env::var_os("PATH").unwrap_or_default();
    let on_path: Vec<PathBuf> = std::env::split_paths(&path).map(|directory| directory.join("pvn-wrapper")).collect();
    beside
        .chain(on_path)
        .find(usable)
        .and_then(|found| std::path::absolute(found).ok())
        .ok_or_else(|| "`pvn-wrapper` is neither beside this program nor on PATH; say where it is with --wrapper".to_owned())
}
