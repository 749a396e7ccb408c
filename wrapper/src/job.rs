//! Our side of the spool directory of a local job; [`schema::spool`] has the protocol. Called by
//! `main`: [`JobSlot::claim`] before anything is started, [`JobSlot::report`] when all is over.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::FlockOperation;
use rustix::io::Errno;
use schema::id::BlobId;
use schema::report::Report;
use schema::spool::{self, Claim};
use schema::time::{Timestamp, millis};

use crate::args::DELIVER_FOR;
use crate::copying;
use crate::room::ReportReserve;
use crate::store::KeptStream;

/// The job that this process runs. Whoever holds it is the only one who does.
pub(crate) struct JobSlot {
    directory: PathBuf,
    room: ReportReserve,
    /// Locked as long as we live; the kernel lets go of it.
    _claim: File,
}

/// Why the job is not ours to run.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ClaimError {
    #[error("the job in {0} was claimed before, so nothing is started")]
    Taken(String),
    #[error("failed to claim the job in {0}")]
    Io(String, #[source] io::Error),
}

impl JobSlot {
    /// Makes the claim, or finds that another was first.
    pub(crate) fn claim(
        directory: &Path,
        now: Timestamp,
        kill_after: Duration,
    ) -> Result<Self, ClaimError> {
        let shown = || directory.display().to_string();
        let path = directory.join(spool::CLAIM);
        let claim = File::options().write(true).create_new(true).mode(0o600).open(&path).map_err(
            |error| match error.kind() {
                io::ErrorKind::AlreadyExists => ClaimError::Taken(shown()),
                _ => ClaimError::Io(shown(), error),
            },
        )?;
        let faulty = |error| ClaimError::Io(shown(), error);
        // The lock comes before the text: a claim that can be read and is not locked is that of a
        // dead wrapper.
        rustix::fs::flock(&claim, FlockOperation::NonBlockingLockExclusive).map_err(|error| {
            match error {
                Errno::WOULDBLOCK => ClaimError::Taken(shown()),
                _ => faulty(error.into()),
            }
        })?;
        // A daemon may have locked it, said that nobody starts the job, and let go, all between our
        // two calls.
        if claim.metadata().map_err(faulty)?.len() > 0 {
            return Err(ClaimError::Taken(shown()));
        }
        let text = serde_json::to_vec(&Claim::Wrapper {
            pid: rustix::process::getpid().as_raw_nonzero().get(),
            at: now,
            kill_after_ms: millis(kill_after).unsigned_abs(),
        });
        (&claim).write_all(&text.expect("a claim is JSON")).map_err(faulty)?;
        Ok(Self {
            directory: directory.to_owned(),
            room: ReportReserve::take(directory),
            _claim: claim,
        })
    }

    /// Where its files are.
    pub(crate) fn directory(&self) -> &Path {
        &self.directory
    }

    /// Puts the report in place, whole or not at all. On a full disk it tries for as long as a
    /// report is delivered elsewhere: that we live, and hold the claim, tells the daemon that
    /// the job is not over.
    pub(crate) fn report(&mut self, report: &Report, streams: &[KeptStream; 2]) -> io::Result<()> {
        self.room.put(
            &self.directory,
            report,
            streams.each_ref().map(KeptStream::is_in_memory),
            DELIVER_FOR,
        )
    }
}

/// Puts what `from` gives into the files of the job in `directory`, whole or not at all, and says
/// what it was.
pub(crate) fn hand_over(directory: &Path, name: &str, from: impl Read) -> io::Result<BlobId> {
    let files = directory.join(spool::FILES);
    match std::fs::DirBuilder::new().mode(0o700).create(&files) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        _ => {}
    }
    // The dot keeps it from being taken for an output, whose names start otherwise; the pid from
    // another wrapper's way.
    let temporary = files.join(format!(".{name}.{}", std::process::id()));
    let make =
        || File::options().write(true).create(true).truncate(true).mode(0o600).open(&temporary);
    let placed = make().and_then(|mut file| {
        let blob = copying::copy(from, &mut file)?;
        file.sync_all()?;
        std::fs::rename(&temporary, files.join(name))?;
        Ok(blob)
    });
    if placed.is_err() {
        // It may never have been made.
        let _ = std::fs::remove_file(&temporary);
    }
    placed
}
