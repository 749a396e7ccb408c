//! The spool directory of one job, from the daemon's side: what it says about the job, what is in
//! it, and its end. All of it blocks on the disk. [`schema::spool`] is the protocol.

use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, symlink};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::FlockOperation;
use rustix::io::Errno;
use rustix::process::Pid;
use schema::id::BlobId;
use schema::report::Report;
use schema::spool::{self, Claim, Stream};
use schema::time::Timestamp;

use crate::blobs::read_range;

/// Most bytes of an order that are read at a time: all that there can be.
pub(super) const ORDER_LIMIT: usize = spool::ORDER_LIMIT_BYTES as usize;

/// What a spool directory says about its job.
#[derive(Debug)]
pub(super) enum SpoolContents {
    /// There is no directory.
    Nothing,
    /// It is over.
    Reported(Box<Report>),
    /// A wrapper runs it.
    Running { pid: Pid },
    /// A wrapper has just claimed it and has not written who it is: look again.
    Claiming,
    /// Nobody started it, and nobody will: this look saw to that.
    NeverStarted,
    /// A wrapper started it, is gone, and left no report.
    Lost,
}

/// What the wrapper said that claimed a job.
#[derive(Debug, Clone, Copy)]
pub(super) struct WrapperClaim {
    pub(super) pid: i32,
    pub(super) at: Timestamp,
    /// Time that its command gets between the request to stop and KILL.
    pub(super) kill_after: Duration,
}

/// The spool directory of a job.
#[derive(Debug, Clone)]
pub(super) struct SpoolDirectory {
    path: PathBuf,
}

impl SpoolDirectory {
    /// The one at `path`, whether it is there or not.
    pub(super) fn at(path: PathBuf) -> Self {
        Self { path }
    }

    /// Where it is.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Makes it; `false` when it is there already.
    pub(super) fn make(&self) -> io::Result<bool> {
        match std::fs::DirBuilder::new().mode(0o700).create(&self.path) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Makes what `--in` can name: the blob, a link to its file, which is absolute, or an empty
    /// file, for a blob that has none; and `reference`, a link to that one, so that whoever
    /// reads it knows which blob it must be. What is there already stays.
    pub(super) fn put_input(
        &self,
        reference: &str,
        blob: BlobId,
        file: Option<&Path>,
    ) -> io::Result<()> {
        let directory = self.path.join(spool::INPUTS);
        let there = |made: io::Result<()>| match made {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
            _ => Ok(()),
        };
        there(std::fs::DirBuilder::new().mode(0o700).create(&directory))?;
        let name = blob.to_string();
        let path = directory.join(&name);
        there(match file {
            Some(file) => symlink(file, path),
            None => File::options().write(true).create_new(true).open(path).map(drop),
        })?;
        there(symlink(name, directory.join(reference)))
    }

    /// Looks at the job. When nobody started it, takes the claim, so that nobody will.
    pub(super) fn look(&self) -> io::Result<SpoolContents> {
        if let Some(report) = self.report()? {
            return Ok(SpoolContents::Reported(report));
        }
        let claim = match File::options().read(true).write(true).open(self.path.join(spool::CLAIM))
        {
            Ok(claim) => claim,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return self.take_claim(),
            Err(error) => return Err(error),
        };
        match rustix::fs::flock(&claim, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => self.unlocked(&claim),
            Err(Errno::WOULDBLOCK) => Ok(match read_claim(&claim)? {
                Some(Claim::Wrapper { pid, .. }) => match Pid::from_raw(pid) {
                    Some(pid) => SpoolContents::Running { pid },
                    None => SpoolContents::Lost,
                },
                // Another look at the same directory, or a wrapper before its first word.
                Some(Claim::Scheduler) | None => SpoolContents::Claiming,
            }),
            Err(error) => Err(error.into()),
        }
    }

    /// The claim's owner is not alive, or has not locked it yet. We hold the lock.
    fn unlocked(&self, mut claim: &File) -> io::Result<SpoolContents> {
        match read_claim(claim)? {
            None => {
                claim.write_all(&serde_json::to_vec(&Claim::Scheduler)?)?;
                Ok(SpoolContents::NeverStarted)
            }
            Some(Claim::Scheduler) => Ok(SpoolContents::NeverStarted),
            // It may have put its report in place after we looked for that and before we had the
            // lock.
            Some(Claim::Wrapper { .. }) => {
                Ok(self.report()?.map_or(SpoolContents::Lost, SpoolContents::Reported))
            }
        }
    }

    fn take_claim(&self) -> io::Result<SpoolContents> {
        match File::options().write(true).create_new(true).open(self.path.join(spool::CLAIM)) {
            Ok(mut claim) => {
                // Without the lock a wrapper that opens it now would find it empty and free; but it
                // cannot open it, for it only ever makes a new one.
                claim.write_all(&serde_json::to_vec(&Claim::Scheduler)?)?;
                Ok(SpoolContents::NeverStarted)
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                Ok(SpoolContents::Claiming)
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(SpoolContents::Nothing),
            Err(error) => Err(error),
        }
    }

    /// The report, when it is there and whole. One that is cut (the machine crashed) is none.
    pub(super) fn report(&self) -> io::Result<Option<Box<Report>>> {
        match std::fs::read(self.path.join(spool::REPORT)) {
            Ok(text) => Ok(serde_json::from_slice(&text).ok()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// What the wrapper said that claimed it, if one did.
    pub(super) fn claim(&self) -> Option<WrapperClaim> {
        match File::open(self.path.join(spool::CLAIM)).and_then(|claim| read_claim(&claim)) {
            Ok(Some(Claim::Wrapper { pid, at, kill_after_ms })) => {
                Some(WrapperClaim { pid, at, kill_after: Duration::from_millis(kill_after_ms) })
            }
            // Unreadable is as good as not there yet: it is asked again, and the end is told in any
            // case.
            _ => None,
        }
    }

    /// Whether the wrapper that claimed it is alive.
    pub(super) fn is_locked(&self) -> io::Result<bool> {
        let claim = match File::open(self.path.join(spool::CLAIM)) {
            Ok(claim) => claim,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
            Err(error) => return Err(error),
        };
        match rustix::fs::flock(&claim, FlockOperation::NonBlockingLockShared) {
            Ok(()) => Ok(false),
            Err(Errno::WOULDBLOCK) => Ok(true),
            Err(error) => Err(error.into()),
        }
    }

    /// Whether its command may run: a wrapper has it, or is about to. When nobody started it, sees
    /// to it that nobody will.
    pub(super) fn may_run(&self) -> io::Result<bool> {
        // The last thing that a wrapper puts there.
        if self.path.join(spool::REPORT).exists() {
            return Ok(false);
        }
        Ok(matches!(self.look()?, SpoolContents::Running { .. } | SpoolContents::Claiming))
    }

    /// The file of a stream, there or not.
    pub(super) fn stream(&self, stream: Stream) -> PathBuf {
        self.path.join(stream.as_str())
    }

    /// The order in which pieces of both streams were read, where the wrapper wrote one.
    pub(super) fn order(&self) -> PathBuf {
        self.path.join(spool::ORDER)
    }

    /// A piece of one of its files; `None` when there is no directory, nothing where there is no
    /// such file.
    pub(super) fn read(
        &self,
        file: &Path,
        offset: u64,
        limit: usize,
    ) -> io::Result<Option<Vec<u8>>> {
        match File::open(file) {
            Ok(file) => read_range(&file, offset, limit).map(Some),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                Ok(self.path.exists().then(Vec::new))
            }
            Err(error) => Err(error),
        }
    }

    /// The outputs that were handed over.
    pub(super) fn files(&self) -> io::Result<Vec<(String, PathBuf)>> {
        let entries = match std::fs::read_dir(self.path.join(spool::FILES)) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(error),
        };
        let mut files = Vec::new();
        for entry in entries {
            let entry = entry?;
            if let Some(name) =
                entry.file_name().to_str().filter(|name| spool::is_output_name(name))
            {
                files.push((name.to_owned(), entry.path()));
            }
        }
        files.sort();
        Ok(files)
    }
}

fn read_claim(mut claim: &File) -> io::Result<Option<Claim>> {
    let mut text = Vec::new();
    io::Read::read_to_end(&mut claim, &mut text)?;
    Ok(serde_json::from_slice(&text).ok())
}
