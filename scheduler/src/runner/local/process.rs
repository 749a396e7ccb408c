//! Wrappers as processes: how they are waited for, signalled, taken hold of. [`schema::spool`] says
//! what makes one known to be alive; `left` is about what one that was killed left.

use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::process::{Pid, PidfdFlags, Signal};
use tokio::process::Child;

/// How often an adopted wrapper is looked at. Only those that outlived a daemon are; waiting on a
/// descriptor that is none of tokio's own takes code that its authors call unsafe.
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
    /// Takes hold of a process that is not our child. `None` when it is gone. The caller makes sure
    /// afterwards that the pid was still the wrapper's: by the lock.
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
            // Not reaped yet, for `ended` and this are called by the same task, so the pid is still
            // its own.
            Self::Started(child) => {
                match child.id().and_then(|pid| Pid::from_raw(pid.cast_signed())) {
                    Some(pid) => rustix::process::kill_process(pid, signal),
                    None => Ok(()),
                }
            }
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

/// The wrapper's program: the one given, else beside this program, else on PATH.
///
/// # Errors
/// A sentence when it is nowhere.
pub fn find_wrapper(given: Option<&Path>) -> Result<PathBuf, String> {
    let usable = |path: &PathBuf| {
        rustix::fs::access(path, rustix::fs::Access::EXEC_OK).is_ok() && path.is_file()
    };
    if let Some(given) = given {
        let given = std::path::absolute(given).unwrap_or_else(|_| given.to_owned());
        return if usable(&given) {
            Ok(given)
        } else {
            Err(format!("the wrapper {} is no executable file", given.display()))
        };
    }
    let own = std::env::current_exe().ok();
    let directory = own.as_deref().and_then(Path::parent);
    // Tests of Cargo stand one directory below the programs.
    let beside = [directory, directory.and_then(Path::parent)]
        .into_iter()
        .flatten()
        .map(|directory| directory.join("pvn-wrapper"));
    let path = std::env::var_os("PATH").unwrap_or_default();
    let on_path: Vec<PathBuf> =
        std::env::split_paths(&path).map(|directory| directory.join("pvn-wrapper")).collect();
    beside.chain(on_path).find(usable).and_then(|found| std::path::absolute(found).ok()).ok_or_else(
        || {
            "`pvn-wrapper` is neither beside this program nor on PATH; say where it is with \
             --wrapper"
                .to_owned()
        },
    )
}
