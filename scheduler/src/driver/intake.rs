//! Between the runners and the loop: reads what the loop must not wait for (the words that a job printed), and keeps the
//! order in which things were told.

use schema::id::JobId;
use schema::time::Timestamp;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::words::{self, Words};
use crate::blobs::Blobs;
use crate::crash;
use crate::runner::{End, Told, Wait};

/// News that wait for the loop: a few batches' worth. A runner that is ahead waits, and its spools keep what it has to tell.
pub(super) const ARRIVALS_LIMIT: usize = 1024;

/// What a runner told, with everything that the loop needs of it.
#[derive(Debug, Clone)]
pub(super) enum Arrived {
    Started { job: JobId, at: Timestamp },
    Waits { job: JobId, wait: Option<Wait> },
    Ended { job: JobId, end: End, gone: bool, words: Words },
}

impl Arrived {
    pub(super) fn job(&self) -> JobId {
        match self {
            Self::Started { job, .. } | Self::Waits { job, .. } | Self::Ended { job, .. } => *job,
        }
    }
}

/// Passes news on until it is stopped or the loop is gone.
pub(super) async fn run(mut news: mpsc::Receiver<Told>, arrivals: mpsc::Sender<Arrived>, blobs: Blobs, stop: CancellationToken) {
    loop {
        let told = tokio::select! {
            () = stop.cancelled() => return,
            told = news.recv() => told,
        };
        let Some(told) = told else { return };
        let arrived = match told {
            Told::Started { job, at } => {
                crash::at(crash::AFTER_STARTED);
                Arrived::Started { job, at }
            }
            Told::Waits { job, wait } => Arrived::Waits { job, wait },
            Told::Ended { job, end, gone } => {
                crash::at(crash::AFTER_REPORT);
                let words = words::read(&blobs, &end).await;
                Arrived::Ended { job, end, gone, words }
            }
        };
        if arrivals.send(arrived).await.is_err() {
            return;
        }
    }
}
