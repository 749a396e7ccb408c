//! What the wrapper of one job may do here, once its token was checked: the side of
//! [`super::Delivery`] that `http` calls. All of it may be done twice, at once even, and may be
//! dropped at any point by a client that goes away.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use schema::id::BlobId;
use schema::report::{Report, StructuredKind};
use schema::spool::Stream;
use schema::wire::Wanted;
use tokio::sync::OwnedMutexGuard;

use super::accept::{self, ReportVerdict, ReportedJob};
use super::growing::{Appended, GrowingFile};
use super::staging::{FileTaken, Staging};
use super::token::{JobToken, TokenRefusal};
use super::{Delivery, DeliveryInner, Signs, UploadRecords, UploadingJob};
use crate::blobs::{Blobs, HandOver};
use crate::runner::evidence::OutcomeEvidence;
use crate::runner::{End, RunnerEvent};

/// How long an accepted report may wait to be stored before its sender is told to send it again:
/// longer than a commit behind a busy disk takes, shorter than clients wait for an answer.
const STORE_WAIT: Duration = Duration::from_secs(10);

/// What became of a piece of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StreamTaken {
    /// This is the next byte wanted.
    Next(u64),
    /// It starts beyond what is held; this is the next byte wanted.
    Gap(u64),
    /// The stream is as long as it may get.
    Full,
    /// The job is over.
    Over,
}

/// What became of a report.
#[derive(Debug, Clone, PartialEq)]
pub enum Reported {
    /// The job's end is stored, which may be this report: the database knows.
    Stored,
    /// It is kept, and the job ends with its container.
    Kept,
    /// Another one was kept before.
    Second,
    /// Bytes are missing or wrong.
    Wanted(Wanted),
    /// It contradicts itself; why, for people.
    Wrong(String),
    /// It names more than is kept; why, for people.
    TooMuch(String),
}

/// Why an upload cannot be taken at present; it is worth trying again.
#[derive(Debug, thiserror::Error)]
pub enum UploadError {
    /// The disk fails or is full.
    #[error("what was uploaded cannot be stored: {0}")]
    Disk(#[from] io::Error),
    /// The report is accepted and waits for the database.
    #[error(
        "the report is here and could not be stored within {} s; send it again",
        STORE_WAIT.as_secs()
    )]
    NotStored,
    /// The daemon stops.
    #[error("the scheduler is stopping; send it again to its successor")]
    Stopping,
}

/// A job's uploads.
#[derive(Debug, Clone)]
pub struct Upload {
    inner: Arc<DeliveryInner>,
    entry: Arc<UploadingJob>,
}

impl Delivery {
    /// What a token says, when it is a good one.
    ///
    /// # Errors
    /// Why it is not.
    pub fn check(&self, token: &str) -> Result<JobToken, TokenRefusal> {
        self.inner.tokens.check(token, self.inner.clock.now())
    }

    /// The uploads of the job that the token names; `None` when none are expected: it is over, or
    /// was never handed over, or not as this attempt.
    pub fn admit(&self, token: &JobToken) -> Option<Upload> {
        let entry = self.entry(token.job).filter(|entry| entry.order.attempt == token.attempt)?;
        Some(Upload { inner: self.inner.clone(), entry })
    }

    /// What was noted of uploads that changed nothing.
    pub fn records(&self) -> &UploadRecords {
        &self.inner.records
    }
}

impl Upload {
    /// Whether the job was told as ended, so that nothing but its report again is of interest.
    pub fn is_over(&self) -> bool {
        self.entry.state.lock().expect("nobody panics with the lock").over
    }

    /// Whether the job is to be stopped.
    pub fn is_cancelled(&self) -> bool {
        self.entry.cancelled.load(Ordering::Relaxed)
    }

    /// Notes a sign of life; the first one is told as the start.
    ///
    /// # Errors
    /// [`UploadError::Stopping`], [`UploadError::Disk`].
    pub async fn sign(&self) -> Result<(), UploadError> {
        let now = self.inner.clock.now();
        let (noted, at) = {
            let mut state = self.entry.state.lock().expect("nobody panics with the lock");
            state.signs.heard = true;
            state.signs.last = now;
            if state.started || state.over {
                return Ok(());
            }
            (state.started_at.is_some(), *state.started_at.get_or_insert(now))
        };
        if !noted {
            // So that a restart does not take a later sign for the start.
            let directory = self.entry.directory.clone();
            self.inner.blocking.run(move || Staging::note_started(&directory, at)).await?;
        }
        let room = tokio::select! {
            room = self.entry.news.reserve() => room.map_err(|_| UploadError::Stopping)?,
            () = self.inner.stop.cancelled() => return Err(UploadError::Stopping),
        };
        let mut state = self.entry.state.lock().expect("nobody panics with the lock");
        if !state.started && !state.over {
            state.started = true;
            room.send(RunnerEvent::Started { job: self.entry.order.job, at });
        }
        Ok(())
    }

    /// Takes a piece of a stream.
    ///
    /// # Errors
    /// [`UploadError::Disk`]; what was taken before stays.
    pub async fn append(
        &self,
        stream: Stream,
        offset: u64,
        bytes: Vec<u8>,
    ) -> Result<StreamTaken, UploadError> {
        let taken =
            self.with_staging(move |staging| staging.append(stream, offset, &bytes)).await?;
        Ok(match taken {
            Some(Some(Appended::Next(next))) => StreamTaken::Next(next),
            Some(Some(Appended::Gap(next))) => StreamTaken::Gap(next),
            Some(Some(Appended::Full(_))) => StreamTaken::Full,
            Some(None) | None => StreamTaken::Over,
        })
    }

    /// The next byte of a stream that is wanted; `None` when the job is over.
    pub async fn length(&self, stream: Stream) -> Option<u64> {
        let mut staging = self.entry.staging.lock().await;
        (!self.is_over()).then(|| staging.stream(stream).length())
    }

    /// Takes a piece of a declared file of `total` bytes.
    ///
    /// # Errors
    /// [`UploadError::Disk`]; what was taken before stays.
    pub async fn append_file(
        &self,
        name: String,
        offset: u64,
        total: u64,
        bytes: Vec<u8>,
    ) -> Result<FileTaken, UploadError> {
        let taken = self
            .with_staging(move |staging| staging.append_file(&name, offset, total, &bytes))
            .await?;
        Ok(taken.unwrap_or(FileTaken::Over))
    }

    /// Room for a declared file that comes whole.
    pub fn incoming(&self) -> Incoming {
        let number = self.inner.incoming.fetch_add(1, Ordering::Relaxed);
        let path = Staging::new_path(&self.entry.directory, number);
        Incoming { inner: self.inner.clone(), held: Some(GrowingFile::new(path.clone())), path }
    }

    /// Takes a declared file that came whole, in the place of one of this name.
    ///
    /// # Errors
    /// [`UploadError::Disk`]
    pub async fn take_file(
        &self,
        name: String,
        mut incoming: Incoming,
    ) -> Result<FileTaken, UploadError> {
        let Some(held) = incoming.held.take() else { return Ok(FileTaken::Over) };
        let taken = self.with_staging(move |staging| staging.take_file(&name, held)).await?;
        Ok(taken.unwrap_or(FileTaken::Over))
    }

    /// The blob behind what `--in` names, with its id; `None` when this job may not see it.
    ///
    /// # Errors
    /// When the disk fails.
    pub async fn input(&self, reference: &str) -> io::Result<Option<(BlobId, HandOver)>> {
        let Some(blob) = self.entry.input(reference) else { return Ok(None) };
        let blobs = self.inner.blobs.clone();
        self.inner
            .blocking
            .run(move || blobs.hand_over(blob))
            .await
            .map(|found| Some((blob, found)))
    }

    /// Takes the report, if all that it names is here; returns when the job's end is stored, or
    /// when it is kept for the end of the job's container.
    ///
    /// # Errors
    /// Any [`UploadError`]; sending it again is right.
    pub async fn report(&self, report: Box<Report>) -> Result<Reported, UploadError> {
        // The only one that a short job gives.
        self.entry.state.lock().expect("nobody panics with the lock").signs =
            Signs { heard: true, last: self.inner.clock.now() };
        let staging = self.entry.staging.clone().lock_owned().await;
        if self.is_over() {
            // Again, or too late: what is stored decides, once it is.
            drop(staging);
            return self.stored().await;
        }
        let waits = self.entry.holds(&report);
        if waits && let Some(kept) = self.kept_report().await? {
            return Ok(if accept::is_same(&kept, &report) {
                Reported::Kept
            } else {
                Reported::Second
            });
        }
        if waits {
            // Before the report is kept: what takes it up after a crash must know that it does not
            // end the job.
            let directory = self.entry.directory.clone();
            self.inner.blocking.run(move || Staging::note_held(&directory)).await?;
        }
        // On its own, so that a client that goes away does not cut it in half.
        let (inner, entry) = (self.inner.clone(), self.entry.clone());
        let judged = self.inner.tasks.spawn(async move {
            let blobs = inner.blobs.clone();
            let over_time = entry.over_time.get().copied();
            let asked = ReportedJob { expect: entry.order.expect, over_time, answers_first: waits };
            let (staging, verdict) =
                inner.blocking.run(move || judge(staging, report, asked, &blobs)).await;
            if let Ok(ReportVerdict::Accepted(report)) = &verdict
                && !waits
            {
                let (end, gone) = OutcomeEvidence::delivered(report.clone()).end(String::new);
                inner.tell_end(entry, end, gone).await;
            }
            // Until now nobody else could have a report judged.
            drop(staging);
            verdict
        });
        let verdict = judged.await.map_err(|_| UploadError::Stopping)?;
        match verdict? {
            ReportVerdict::Accepted(_) if waits => Ok(Reported::Kept),
            ReportVerdict::Accepted(_) => self.stored().await,
            ReportVerdict::Wanted(wanted) => Ok(Reported::Wanted(wanted)),
            ReportVerdict::Wrong(why) => Ok(Reported::Wrong(why)),
            ReportVerdict::TooMuch(why) => Ok(Reported::TooMuch(why)),
        }
    }

    /// The report that was kept for the end of the job's container.
    async fn kept_report(&self) -> io::Result<Option<Box<Report>>> {
        let directory = self.entry.directory.clone();
        self.inner.blocking.run(move || Staging::report(&directory)).await
    }

    /// Waits until the job's end is stored.
    async fn stored(&self) -> Result<Reported, UploadError> {
        tokio::select! {
            biased;
            () = self.entry.stored.cancelled() => Ok(Reported::Stored),
            () = self.inner.stop.cancelled() => Err(UploadError::Stopping),
            () = tokio::time::sleep(STORE_WAIT) => Err(UploadError::NotStored),
        }
    }

    /// Does something with the job's directory, off the async threads; `None` when the job is over.
    async fn with_staging<T: Send + 'static>(
        &self,
        run: impl FnOnce(&mut Staging) -> io::Result<T> + Send + 'static,
    ) -> Result<Option<T>, UploadError> {
        let mut staging = self.entry.staging.clone().lock_owned().await;
        if self.is_over() {
            return Ok(None);
        }
        Ok(Some(self.inner.blocking.run(move || run(&mut staging)).await?))
    }
}

fn judge(
    mut staging: OwnedMutexGuard<Staging>,
    report: Box<Report>,
    asked: ReportedJob,
    blobs: &Blobs,
) -> (OwnedMutexGuard<Staging>, io::Result<ReportVerdict>) {
    let verdict = accept::judge(&mut staging, report, asked, blobs);
    (staging, verdict)
}

/// Puts what a job left without delivering into the blob store, and into its end. `is_accepted`:
/// its report was, so that its files are there.
pub(super) fn salvage(
    staging: &mut Staging,
    mut end: End,
    expect: Option<StructuredKind>,
    blobs: &Blobs,
    is_accepted: bool,
) -> io::Result<End> {
    match &mut end {
        End::Reported(report) => {
            accept::salvage_streams(staging, report, blobs)?;
            if !is_accepted {
                accept::salvage_files(staging, report, blobs)?;
            }
            accept::check_output(report, expect, blobs)?;
        }
        End::Unknown { report, .. } => {
            let mut found = Box::new(Report { output_incomplete: true, ..Report::default() });
            accept::salvage_streams(staging, &mut found, blobs)?;
            if found.stdout_blob_id.is_some() || found.stderr_blob_id.is_some() {
                found.stdout_bytes = staging.stream(Stream::Stdout).length();
                found.stderr_bytes = staging.stream(Stream::Stderr).length();
                *report = Some(found);
            }
        }
        End::NotStarted { .. } | End::TakenBack { .. } | End::InputLost { .. } => staging.close(),
    }
    Ok(end)
}

/// A declared file that is coming whole. Removed when it is dropped before it was taken.
#[derive(Debug)]
pub struct Incoming {
    inner: Arc<DeliveryInner>,
    held: Option<GrowingFile>,
    path: PathBuf,
}

impl Incoming {
    /// Takes the next bytes.
    ///
    /// # Errors
    /// [`UploadError::Disk`]
    pub async fn append(&mut self, bytes: Vec<u8>) -> Result<(), UploadError> {
        let Some(mut held) = self.held.take() else { return Ok(()) };
        let (held, appended) = self
            .inner
            .blocking
            .run(move || {
                let length = held.length();
                let appended = held.append(length, &bytes, u64::MAX);
                (held, appended)
            })
            .await;
        self.held = Some(held);
        appended.map(drop).map_err(UploadError::Disk)
    }
}

impl Drop for Incoming {
    fn drop(&mut self) {
        if self.held.as_ref().is_some_and(|held| held.length() > 0) {
            // Otherwise with the job's directory.
            let _ = std::fs::remove_file(&self.path);
        }
    }
}
