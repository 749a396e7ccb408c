//! Between the runners and the loop: reads what the loop must not wait for (the words that a job
//! printed), and keeps the order in which things were told.

use std::sync::Arc;

use schema::id::JobId;
use schema::time::Timestamp;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::words::{self, Words};
use crate::blobs::Blobs;
use crate::crash;
use crate::perform::Performer;
use crate::runner::{End, JobWait, Leave, RunnerEvent};

/// What a runner told, with everything that the loop needs of it.
#[derive(Debug, Clone)]
pub(super) enum PreparedEvent {
    Asks { job: JobId, leave: Leave },
    Started { job: JobId, at: Timestamp },
    Waits { job: JobId, wait: Option<JobWait> },
    Ended { job: JobId, end: End, gone: bool, words: Words },
}

impl PreparedEvent {
    pub(super) fn job(&self) -> JobId {
        match self {
            Self::Asks { job, .. }
            | Self::Started { job, .. }
            | Self::Waits { job, .. }
            | Self::Ended { job, .. } => *job,
        }
    }
}

/// Passes news on until it is stopped or the loop is gone.
pub(super) async fn run(
    mut news: mpsc::Receiver<RunnerEvent>,
    arrivals: mpsc::Sender<PreparedEvent>,
    blobs: Blobs,
    performer: Arc<Performer>,
    stop: CancellationToken,
) {
    loop {
        let told = tokio::select! {
            () = stop.cancelled() => return,
            told = news.recv() => told,
        };
        let Some(told) = told else { return };
        let arrived = match told {
            RunnerEvent::Started { job, at } => {
                crash::at(crash::AFTER_STARTED);
                PreparedEvent::Started { job, at }
            }
            RunnerEvent::Asks { job, leave } => PreparedEvent::Asks { job, leave },
            RunnerEvent::Waits { job, wait } => PreparedEvent::Waits { job, wait },
            RunnerEvent::Ended { job, mut end, gone } => {
                crash::at(crash::AFTER_REPORT);
                let words = read(&blobs, &performer, job, &mut end).await;
                PreparedEvent::Ended { job, end, gone, words }
            }
        };
        if arrivals.send(arrived).await.is_err() {
            return;
        }
    }
}

/// The words of a job, and hides in them and in its end the secrets that it was given. When these
/// cannot be opened people are told no words of it.
async fn read(blobs: &Blobs, performer: &Performer, job: JobId, end: &mut End) -> Words {
    if !words::has_any(end) && !end.has_words() {
        return Words::default();
    }
    let secrets = match performer.secrets(job).await {
        Ok(secrets) => secrets,
        Err(why) => {
            tracing::warn!(
                %job, ?why,
                "the secrets of a job cannot be opened; people see less of what it printed"
            );
            return Words::default();
        }
    };
    let Some(secrets) = secrets else { return words::read(blobs, job, end, None).await };
    let mut hidden = end.clone();
    // A report may be long, and the loop has others to hear.
    let hide = move || {
        hidden.hide(&secrets);
        (hidden, secrets)
    };
    let (hidden, secrets) =
        tokio::task::spawn_blocking(hide).await.expect("masking does not panic");
    *end = hidden;
    words::read(blobs, job, end, Some(secrets)).await
}
