//! Delivery by upload: the scheduler's side of the wire protocol for jobs that run elsewhere and
//! share no disk with us ([`schema::wire`] has the words, `http::api::uploads` the routes). A
//! runner hands a job over before it starts it; what the job's wrapper sends is kept here, and what
//! comes of it is the runner's news.
//!
//! ```text
//! runner ──expect──▶ Delivery ──▶ PVN_API_URL, PVN_TOKEN for the job's environment
//!    │ cancel, settle   │  ▲
//!    │                  │  └── http: pieces, files, heartbeats, report (Upload)
//!    ◀── signs ─────────┤
//!                       └──▶ news: Started at the first sign of life, Ended once
//! ```
//!
//! How a runner uses it: [`Delivery::expect`] before the job is made anywhere, as often as it
//! likes; [`Delivery::cancel`] beside whatever else stops the job; [`Delivery::signs`] to see
//! whether it is silent; [`Delivery::settle`] when the place says that the job is over, with what
//! it says (see [`crate::runner::evidence`]); [`Delivery::recover`] once after a restart,
//! [`Delivery::forget`] when it is told to forget. `runner/cluster` is to be such a runner; the
//! tests have one.
//!
//! What always holds:
//! - **One end.** Of each job `Ended` is told once in each life of the daemon, whatever comes in
//!   which order, and what comes afterwards changes nothing.
//! - **Stored before answered.** Whoever uploads a report hears that it is accepted after the
//!   driver has committed the job's end; until then they send it again, and that is harmless. What
//!   is on disk survives `kill -9` at any point: pieces count from the offset that the file has, an
//!   accepted report is told again. After a crash of the machine bytes may be missing; the digests
//!   in the report find that, and they are asked for again.
//! - **Bounded.** Streams, files, their number and the disk that they leave have limits; a request
//!   is taken in pieces of some 100 KiB, so that memory does not grow with it; what blocks runs on
//!   few threads beside the async ones.

use std::collections::{HashMap, HashSet};
use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use schema::id::{BlobId, JobId};
use schema::spool::Stream;
use schema::time::Timestamp;
use schema::wire::{HEARTBEAT_EVERY_MS, TOKEN_VARIABLE, URL_VARIABLE};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::blobs::{Blobs, read_range};
use crate::blocking::Blocking;
use crate::clock::Clock;
use crate::runner::{JobSpec, News};

mod accept;
mod ends;
mod growing;
mod records;
mod settle;
mod staging;
mod token;
mod upload;
mod uploading;

pub use accept::is_same;
pub use records::{RECORDS_OF_A_JOB, UploadRecords};
pub use staging::{FILES_LIMIT, FILES_LIMIT_BYTES, FileTaken, STREAM_LIMIT_BYTES};
pub use token::{JobToken, TokenRefusal, TokenSigner};
pub use upload::{Incoming, Reported, StreamTaken, Upload, UploadError};
pub use uploading::Holds;

use staging::{JobTerms, Staging};
use uploading::{EarlierUpload, UploadingJob, UploadsState, take_up};

/// Pieces that are written or hashed at the same time: a few more than cores, for most of the time
/// they wait for the disk.
const BLOCKING_LIMIT: usize = 8;

/// How long a token outlives the job's own timeout: waiting for a place to start (10 min), and
/// delivering with the wrapper's default patience (15 min), with room for clocks that differ.
const TOKEN_SLACK_MS: i64 = 3_600_000;

/// How long a wrapper that was heard of may be silent before others look for what it has to say,
/// milliseconds: six heartbeats.
const SILENT_AFTER_MS: i64 = 6 * HEARTBEAT_EVERY_MS.cast_signed();

/// What it needs to know.
#[derive(Debug, Clone)]
pub struct DeliverySettings {
    /// Directory of the uploads; made if missing. On the file system of the blobs, so that nothing
    /// is copied.
    pub directory: PathBuf,
    /// The address under which jobs reach this daemon, without a path and without a slash at its
    /// end.
    pub url: String,
}

/// When a job was heard of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Signs {
    /// Whether it ever was in this life of the daemon.
    pub heard: bool,
    /// The last time; before the first, when it was handed over or taken up.
    pub last: Timestamp,
}

/// The uploads of all jobs. Cloned freely.
#[derive(Debug, Clone)]
pub struct Delivery {
    inner: Arc<DeliveryInner>,
}

#[derive(Debug)]
struct DeliveryInner {
    directory: PathBuf,
    url: String,
    blobs: Blobs,
    clock: Clock,
    tokens: TokenSigner,
    entries: Mutex<HashMap<JobId, Arc<UploadingJob>>>,
    records: UploadRecords,
    incoming: AtomicU64,
    blocking: Blocking,
    tasks: TaskTracker,
    stop: CancellationToken,
}

impl Delivery {
    /// Opens the directory. Nothing in it is touched before [`Delivery::recover`].
    ///
    /// # Errors
    /// When the directory cannot be made.
    pub fn open(
        settings: DeliverySettings,
        blobs: Blobs,
        tokens: TokenSigner,
        clock: Clock,
    ) -> io::Result<Self> {
        use std::os::unix::fs::DirBuilderExt;
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&settings.directory)?;
        let inner = DeliveryInner {
            directory: std::path::absolute(&settings.directory)?,
            url: settings.url,
            blobs,
            clock,
            tokens,
            entries: Mutex::default(),
            records: UploadRecords::default(),
            incoming: AtomicU64::new(0),
            blocking: Blocking::new(BLOCKING_LIMIT),
            tasks: TaskTracker::new(),
            stop: CancellationToken::new(),
        };
        Ok(Self { inner: Arc::new(inner) })
    }

    /// Expects uploads of this job from now on, and returns the variables that its wrapper needs
    /// for them beside those of the spec: the address and a token. The same as before when it
    /// is asked for again, also after a restart. What comes of the job goes to `news`.
    ///
    /// # Errors
    /// When the disk fails or is full; then the job must not be started.
    pub async fn expect(&self, spec: &JobSpec, news: &News) -> io::Result<Vec<(String, String)>> {
        let now = self.inner.clock.now();
        let order = JobTerms {
            job: spec.job,
            attempt: spec.attempt,
            expires_at: spec.timeout_ms.map(|timeout| now.plus_ms(timeout).plus_ms(TOKEN_SLACK_MS)),
            inputs: spec.inputs.clone(),
            expect: spec.command.expect,
            ends_with_its_container: spec
                .cluster
                .as_ref()
                .is_some_and(|cluster| cluster.place.wrapper_image.is_none()),
        };
        let known = self.entry(spec.job);
        let entry = match known {
            Some(entry) => entry,
            None => {
                let path = self.inner.directory.join(spec.job.to_string());
                let made = self.inner.blocking.run(move || Staging::make(path, order)).await;
                let (staging, order) = made?;
                self.enter(order, staging, news, Holds::Nothing)
            }
        };
        let token = JobToken {
            job: spec.job,
            attempt: entry.order.attempt,
            expires_at: entry.order.expires_at,
        };
        Ok(vec![
            (URL_VARIABLE.to_owned(), self.inner.url.clone()),
            (TOKEN_VARIABLE.to_owned(), self.inner.tokens.issue(&token)),
        ])
    }

    /// Why an input of a job that is to be made cannot be handed over to it, if one cannot.
    ///
    /// # Errors
    /// When the disk fails.
    pub async fn lost_input(&self, spec: &JobSpec) -> io::Result<Option<String>> {
        let (blobs, inputs) = (self.inner.blobs.clone(), spec.inputs.clone());
        self.inner.blocking.run(move || blobs.lost(&inputs)).await
    }

    /// Takes up the jobs among `unfinished` that were handed over before a restart, and returns
    /// them; what else is here is removed. A report that was accepted and not stored is told
    /// again, as soon as nothing `holds` it.
    pub async fn recover(&self, unfinished: &[JobId], holds: Holds, news: &News) -> Vec<JobId> {
        let (directory, unfinished): (_, HashSet<JobId>) =
            (self.inner.directory.clone(), unfinished.iter().copied().collect());
        let found = self.inner.blocking.run(move || take_up(&directory, &unfinished)).await;
        let found = found.unwrap_or_else(|error| {
            tracing::error!(
                %error,
                "the uploads of the last run cannot be read; their jobs are not known here any more"
            );
            Vec::new()
        });
        let mut taken = Vec::new();
        for EarlierUpload { order, staging, report } in found {
            let entry = self.enter(order, staging, news, holds);
            taken.push(entry.order.job);
            // What was held when it was accepted waits for the end of its container.
            if !Staging::is_held(&entry.directory) {
                entry.state.lock().expect("nobody panics with the lock").accepted = report;
                self.tell_accepted(entry);
            }
        }
        taken
    }

    /// Tells the job's wrapper to stop its command, with the answer to whatever it sends next: at
    /// the latest with its next heartbeat. `false` when no uploads of such a job are expected.
    pub fn cancel(&self, job: JobId) -> bool {
        let Some(entry) = self.entry(job) else { return false };
        entry.cancelled.store(true, Ordering::Relaxed);
        // One small file: what asked for the stop counts it as done when we return.
        if let Err(error) = Staging::note_cancel(&entry.directory) {
            tracing::warn!(
                %job, %error,
                "failed to note that the job is to be stopped; after a restart its wrapper is not \
                 told any more"
            );
        }
        true
    }

    /// Whether the job is to be stopped.
    pub fn is_cancelled(&self, job: JobId) -> bool {
        self.entry(job).is_some_and(|entry| entry.cancelled.load(Ordering::Relaxed))
    }

    /// When the job was heard of; `None` when no uploads of it are expected. A wrapper that lives
    /// is heard of every [`schema::wire::HEARTBEAT_EVERY_MS`].
    pub fn signs(&self, job: JobId) -> Option<Signs> {
        Some(self.entry(job)?.state.lock().expect("nobody panics with the lock").signs)
    }

    /// Whether the job's wrapper is heard of at present.
    pub fn hears(&self, job: JobId) -> bool {
        !self.silent_in(job).is_zero()
    }

    /// How long from now on the job's wrapper counts as heard of when nothing more comes of it;
    /// zero when it does not.
    pub fn silent_in(&self, job: JobId) -> Duration {
        let now = self.inner.clock.now();
        let left_ms = self
            .signs(job)
            .filter(|signs| signs.heard)
            .map_or(0, |signs| SILENT_AFTER_MS - now.since_ms(signs.last));
        Duration::from_millis(left_ms.clamp(0, SILENT_AFTER_MS).unsigned_abs())
    }

    /// Whether the job's wrapper ever reached us, also in an earlier life of the daemon: then what
    /// comes without it is no output.
    pub fn was_heard(&self, job: JobId) -> bool {
        let Some(entry) = self.entry(job) else { return false };
        let was_heard = {
            let state = entry.state.lock().expect("nobody panics with the lock");
            state.signs.heard || state.started_at.is_some()
        };
        was_heard
            || Stream::ALL
                .iter()
                .any(|stream| Staging::stream_path(&entry.directory, *stream).exists())
    }

    /// At most `limit` bytes of a stream from `offset` on, as far as they came; `None` when no
    /// uploads of the job are expected. Blocks on the disk.
    ///
    /// # Errors
    /// When the disk fails.
    pub fn tail(
        &self,
        job: JobId,
        stream: Stream,
        offset: u64,
        limit: usize,
    ) -> io::Result<Option<Vec<u8>>> {
        let Some(entry) = self.entry(job) else { return Ok(None) };
        match std::fs::File::open(Staging::stream_path(&entry.directory, stream)) {
            Ok(file) => read_range(&file, offset, limit).map(Some),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Some(Vec::new())),
            Err(error) => Err(error),
        }
    }

    /// At most `limit` bytes of what is kept under this digest, from `offset` on; `None` when it is
    /// not kept. Blocks on the disk.
    ///
    /// # Errors
    /// When the disk fails.
    pub fn kept(&self, blob: BlobId, offset: u64, limit: usize) -> io::Result<Option<Vec<u8>>> {
        self.inner.blobs.read(blob, offset, limit)
    }

    /// Lets go of everything; uploads that are under way end with "stopping".
    pub async fn detach(&self) {
        self.inner.stop.cancel();
        self.inner.tasks.close();
        self.inner.tasks.wait().await;
    }

    fn entry(&self, job: JobId) -> Option<Arc<UploadingJob>> {
        self.inner.entries.lock().expect("nobody panics with the lock").get(&job).cloned()
    }

    /// Takes a job in, unless somebody else just did.
    fn enter(
        &self,
        order: JobTerms,
        staging: Staging,
        news: &News,
        holds: Holds,
    ) -> Arc<UploadingJob> {
        let directory = self.inner.directory.join(order.job.to_string());
        let job = order.job;
        let entry = UploadingJob {
            order,
            cancelled: AtomicBool::new(Staging::is_cancelled(&directory)),
            over_time: OnceLock::new(),
            news: news.clone(),
            state: Mutex::new(UploadsState {
                signs: Signs { heard: false, last: self.inner.clock.now() },
                started: false,
                started_at: Staging::started_at(&directory),
                over: false,
                holds: if Staging::is_held(&directory) { Holds::All } else { holds },
                accepted: None,
            }),
            directory,
            staging: Arc::new(tokio::sync::Mutex::new(staging)),
            stored: CancellationToken::new(),
        };
        self.inner
            .entries
            .lock()
            .expect("nobody panics with the lock")
            .entry(job)
            .or_insert_with(|| Arc::new(entry))
            .clone()
    }
}
