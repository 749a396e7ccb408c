//! What is held of a job that uploads, and what an earlier life of the daemon left of one. Called
//! by `delivery`.

use std::collections::HashSet;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, OnceLock};

use schema::id::{BlobId, JobId};
use schema::report::Report;
use schema::time::Timestamp;
use tokio_util::sync::CancellationToken;

use super::Signs;
use super::staging::{JobTerms, Staging};
use crate::removal::remove_all;
use crate::runner::News;

/// A job that uploads.
#[derive(Debug)]
pub(super) struct UploadingJob {
    pub(super) order: JobTerms,
    pub(super) directory: PathBuf,
    pub(super) news: News,
    pub(super) state: Mutex<UploadsState>,
    pub(super) cancelled: AtomicBool,
    /// From when on what ends of it was ended because its time is over, once that was done.
    pub(super) over_time: OnceLock<Timestamp>,
    pub(super) staging: Arc<tokio::sync::Mutex<Staging>>,
    /// The job's end is stored and the job forgotten.
    pub(super) stored: CancellationToken,
}

#[derive(Debug)]
pub(super) struct UploadsState {
    pub(super) signs: Signs,
    /// Whether the runner's news have the start.
    pub(super) started: bool,
    /// When the first sign of life came, also in an earlier life of the daemon.
    pub(super) started_at: Option<Timestamp>,
    /// Whether they have its end. Then the database decides about what still comes.
    pub(super) over: bool,
    pub(super) holds: Holds,
    /// The report of an earlier life that was accepted as its end, until it is told.
    pub(super) accepted: Option<Box<Report>>,
}

/// Which reports of a job do not end it before its place says how its container ended. Of a job
/// whose order says so ([`JobTerms`]) it is all of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Holds {
    /// None: what the place says adds nothing.
    #[default]
    Nothing,
    /// That of a command that somebody stopped: the place knows more of why.
    Stopped,
    /// All: the place is about to end it, or was not looked at yet.
    All,
}

impl UploadingJob {
    /// Whether this report waits for the end of the job's container.
    pub(super) fn holds(&self, report: &Report) -> bool {
        let holds = self.state.lock().expect("nobody panics with the lock").holds;
        let is_held =
            holds == Holds::All || (holds == Holds::Stopped && report.stopped_by.is_some());
        self.order.ends_with_its_container || is_held
    }

    /// The blob behind what `--in` names, if this job may see it.
    pub(super) fn input(&self, reference: &str) -> Option<BlobId> {
        let named =
            |(name, blob): &&(String, BlobId)| name == reference || reference.parse() == Ok(*blob);
        self.order.inputs.iter().find(named).map(|(_, blob)| *blob)
    }
}

/// What an earlier life of the daemon left of a job.
pub(super) struct EarlierUpload {
    pub(super) order: JobTerms,
    pub(super) staging: Staging,
    pub(super) report: Option<Box<Report>>,
}

/// The jobs in the directory that are not over; the others are removed. One that cannot be read is
/// left alone: its bytes may be of use to a person.
pub(super) fn take_up(
    directory: &Path,
    unfinished: &HashSet<JobId>,
) -> io::Result<Vec<EarlierUpload>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(directory)? {
        let path = entry?.path();
        // What has another name is not ours.
        let Some(job) = path.file_name().and_then(|name| name.to_str()?.parse::<JobId>().ok())
        else {
            continue;
        };
        match take_up_one(&path, unfinished.contains(&job)) {
            Ok(left) => found.extend(left),
            Err(error) => {
                tracing::error!(
                    %job, %error,
                    "the uploads of a job cannot be taken up; it is not known here any more"
                )
            }
        }
    }
    Ok(found)
}

fn take_up_one(path: &Path, is_wanted: bool) -> io::Result<Option<EarlierUpload>> {
    let order = if is_wanted { Staging::read_order(path)? } else { None };
    let Some(order) = order else { return remove_all(path).map(|()| None) };
    Ok(Some(EarlierUpload {
        order,
        report: Staging::report(path)?,
        staging: Staging::open(path.to_owned())?,
    }))
}
