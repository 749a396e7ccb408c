//! The end of a job by what its place knows, beside what its wrapper delivered or not. Called by
//! the runners.

use std::io;
use std::sync::atomic::Ordering;

use schema::id::{BlobId, JobId};
use schema::report::Report;
use schema::spool::Stream;

use super::growing::GrowingFile;
use super::staging::{STREAM_LIMIT_BYTES, Staging};
use super::{Delivery, UploadingJob, upload};
use crate::runner::evidence::{Decides, OutcomeEvidence};

impl Delivery {
    /// The place where the job runs says that it is over, and what it knows. The job is told as
    /// ended by the rule of [`crate::runner::evidence`], with the streams as far as they came;
    /// unless a report was accepted before, which stands. `gone` is whether all of its
    /// processes are known to be gone. Harmless when repeated, and when the job is not known.
    pub async fn settle(&self, job: JobId, learned: OutcomeEvidence, gone: bool) {
        let Some(entry) = self.entry(job) else { return };
        let staging = entry.staging.clone().lock_owned().await;
        if entry.state.lock().expect("nobody panics with the lock").over {
            return;
        }
        let decides =
            learned.decides.or(entry.order.ends_with_its_container.then_some(Decides::Container));
        let learned =
            OutcomeEvidence { decides, delivered: self.kept_report(&entry).await, ..learned };
        let is_accepted = learned.delivered.is_some();
        let has_its_output = is_accepted && !learned.is_of_another_end();
        let (end, wrapper_gone) = learned.end(|| "nobody told how it ended".to_owned());
        if has_its_output {
            return self.inner.clone().tell_end(entry, end, gone && wrapper_gone).await;
        }
        let (blobs, kept, expect) = (self.inner.blobs.clone(), end.clone(), entry.order.expect);
        let (staging, salvaged) = self
            .inner
            .blocking
            .run(move || {
                let mut staging = staging;
                let salvaged = upload::salvage(&mut staging, kept, expect, &blobs, is_accepted);
                (staging, salvaged)
            })
            .await;
        let end = salvaged.unwrap_or_else(|error| {
            tracing::error!(
                %job, %error,
                "failed to store the output of a job; its end is told without it"
            );
            end
        });
        self.inner.clone().tell_end(entry, end, gone && wrapper_gone).await;
        drop(staging);
    }

    async fn kept_report(&self, entry: &UploadingJob) -> Option<Box<Report>> {
        let directory = entry.directory.clone();
        self.inner.blocking.run(move || Staging::report(&directory)).await.unwrap_or_else(|error| {
            tracing::error!(
                job = %entry.order.job, %error,
                "the report of a job cannot be read; its end is told without it"
            );
            None
        })
    }

    /// The report of a job that was accepted and waits for what the place says of its end.
    pub async fn accepted_report(&self, job: JobId) -> Option<Box<Report>> {
        self.kept_report(&*self.entry(job)?).await
    }

    /// Which streams of a job are not all here, by what its report says of them and does not hold
    /// itself.
    pub async fn lacking(&self, job: JobId, report: &Report) -> Vec<Stream> {
        let Some(entry) = self.entry(job) else { return Vec::new() };
        let streams = [
            (
                Stream::Stdout,
                report.stdout_blob_id,
                report.stdout_bytes,
                report.stdout_inline.is_some(),
            ),
            (
                Stream::Stderr,
                report.stderr_blob_id,
                report.stderr_bytes,
                report.stderr_inline.is_some(),
            ),
        ];
        let mut staging = entry.staging.clone().lock_owned().await;
        let is_here = |held: &mut GrowingFile, claimed: Option<BlobId>, bytes| match claimed {
            Some(claimed) => held.digest().is_ok_and(|held| held == claimed),
            None => held.length() >= bytes,
        };
        self.inner
            .blocking
            .run(move || {
                let mut lacking = Vec::new();
                for (stream, claimed, bytes, rides_in_it) in streams {
                    if !rides_in_it && !is_here(staging.stream(stream), claimed, bytes) {
                        lacking.push(stream);
                    }
                }
                lacking
            })
            .await
    }

    /// What the place has of a stream is kept in the place of what came of it, where that is less,
    /// or where `is_whole`: it is known to be all. Nothing is changed once the job's report was
    /// accepted.
    ///
    /// # Errors
    /// When the disk fails; what came stays.
    pub async fn fill(
        &self,
        job: JobId,
        stream: Stream,
        printed: Vec<u8>,
        is_whole: bool,
    ) -> io::Result<()> {
        let Some(entry) = self.entry(job) else { return Ok(()) };
        let number = self.inner.incoming.fetch_add(1, Ordering::Relaxed);
        let mut staging = entry.staging.clone().lock_owned().await;
        self.inner
            .blocking
            .run(move || {
                let is_more = is_whole || printed.len() as u64 > staging.stream(stream).length();
                if is_more { staging.replace(stream, number, &printed) } else { Ok(()) }
            })
            .await
    }

    /// What the container of a job printed is its output, not what its wrapper delivered, which was
    /// a part of it.
    ///
    /// # Errors
    /// When the disk fails.
    pub async fn replace_output(&self, job: JobId, printed: Vec<u8>) -> io::Result<()> {
        let Some(entry) = self.entry(job) else { return Ok(()) };
        let staging = entry.staging.clone().lock_owned().await;
        self.inner
            .blocking
            .run(move || {
                let mut staging = staging;
                Stream::ALL.into_iter().try_for_each(|stream| staging.stream(stream).clear())?;
                staging.stream(Stream::Stdout).append(0, &printed, STREAM_LIMIT_BYTES).map(drop)
            })
            .await
    }
}
