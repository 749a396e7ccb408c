//! Who holds a lock, as its file says: for people, and for wrappers within the holder's command.
//! Called by `locks`.

use std::fs::File;
use std::io::Read;

use rustix::process::Pid;

use crate::process;
use crate::spawn::Environment;

/// Longest text of a lock file that is looked at, bytes.
const LIMIT_BYTES: u64 = 1024;

/// What stands for "none".
const NONE: &str = "-";

/// The last word of a wrapper within the command of a job, which is not the one that reports it.
const PART: &str = "part";

/// `JOB PID HOST ROLE`.
#[derive(Debug, Clone)]
pub(super) struct LockHolder {
    job: String,
    pid: Option<Pid>,
    host: String,
    /// Whether it reports the job, so that everything else of the job is within its command.
    is_of_the_job: bool,
}

impl LockHolder {
    /// This process.
    pub(super) fn ourselves(environment: &Environment, is_of_the_job: bool) -> Self {
        let job = environment
            .iter()
            .find(|(key, _)| key == schema::wire::JOB_VARIABLE)
            .and_then(|(_, value)| value.to_str());
        let host: String =
            rustix::system::uname().nodename().to_string_lossy().split_whitespace().collect();
        Self {
            job: job
                .filter(|job| !job.is_empty() && !job.contains(char::is_whitespace))
                .unwrap_or(NONE)
                .to_owned(),
            pid: Some(rustix::process::getpid()),
            host: if host.is_empty() { NONE.to_owned() } else { host },
            is_of_the_job,
        }
    }

    /// What is written into the file.
    pub(super) fn line(&self) -> String {
        let role = if self.is_of_the_job { "job" } else { PART };
        format!(
            "{} {} {} {role}\n",
            self.job,
            self.pid.map_or(0, |pid| pid.as_raw_nonzero().get()),
            self.host
        )
    }

    /// What somebody wrote there.
    pub(super) fn read(file: &mut File) -> Option<Self> {
        let mut text = String::new();
        file.take(LIMIT_BYTES).read_to_string(&mut text).ok()?;
        let mut words = text
            .split_whitespace()
            .map(|word| word.chars().filter(|c| !schema::shown::steers(*c)).collect::<String>());
        let (job, pid, host) = (
            words.next()?,
            words.next()?.parse().ok()?,
            words.next().unwrap_or_else(|| NONE.to_owned()),
        );
        Some(Self {
            job,
            pid: Pid::from_raw(pid),
            host,
            is_of_the_job: words.next().is_none_or(|role| role != PART),
        })
    }

    /// Whether `own` is a part of this wrapper's command: not only of the same job, in which two
    /// may run side by side.
    pub(super) fn is_around(&self, own: &Self) -> bool {
        if own.job != NONE && self.job == own.job && self.is_of_the_job {
            return true;
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

impl std::fmt::Display for LockHolder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.job == NONE {
            write!(f, "process {}", self.pid.map_or(0, |pid| pid.as_raw_nonzero().get()))?
        } else {
            f.write_str(&self.job)?
        }
        if self.host == NONE { Ok(()) } else { write!(f, " on {}", self.host) }
    }
}
