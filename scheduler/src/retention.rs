//! Retention: what is kept for how long, and the task that removes the rest. [`rules`] decides,
//! `pass` goes through the database and the blobs step by step, this file says when. Called by
//! `daemon`, and by `pvn-scheduler prune`.
//!
//! What always holds:
//! - **Small steps.** A step is one short transaction; commits wait for no more than one, and
//!   between two there is a pause.
//! - **Nothing that is needed.** What a state names stays, whatever its age; so do the newest jobs,
//!   the last success and the last failure of each kind, the last converged release, and approvals.
//!   A blob goes only when nobody has put or needed it for as long as a commit can be under way.
//! - **Safe to kill.** Files go first and rows after them, and the next pass does what this one did
//!   not: a row without its file is an ordinary answer, a file without a row is found by looking.
//! - **By no clock that leapt.** Ages are measured by a time that is accounted for: [`leap`].
//! - **Also on a full disk.** Removing files needs no room; for the rows there is a reserve beside
//!   the database.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use schema::id::JobId;
use tokio_util::sync::CancellationToken;

use crate::blobs::Blobs;
use crate::clock::Clock;
use crate::runner::local::LocalRunner;
use crate::store::{Named, RetentionMetrics, Store};

mod leap;
mod pass;
pub mod reserve;
mod rules;

pub use leap::LeapWatch;
pub use rules::{Policy, age};

/// How long after the start the first pass begins: what a restart brings comes first.
const FIRST_AFTER: Duration = Duration::from_secs(60);

/// From the end of a pass to the next one. A pass reads some index pages of each instance.
const PASS_EVERY: Duration = Duration::from_secs(3600);

/// The same while the disk is full.
const PASS_WHEN_FULL_EVERY: Duration = Duration::from_secs(30);

/// Between two steps of a daemon's pass.
const STEP_PAUSE: Duration = Duration::from_millis(20);

/// How long a daemon leaves a blob that was needed again: what is under way names it within a day,
/// or is given up.
const GRACE: Duration = Duration::from_secs(24 * 3600);

/// What a pass works on.
#[derive(Debug, Clone)]
pub struct Retention {
    /// The database.
    pub store: Store,
    /// Files by content.
    pub blobs: Blobs,
    /// What is kept for how long.
    pub policy: Policy,
    /// The present.
    pub clock: Clock,
    /// Where the spool of local jobs is; `None` where no daemon runs.
    pub spool: Option<LocalRunner>,
    /// Room that is given up on a full disk: [`reserve`].
    pub reserve: PathBuf,
    /// What was removed so far.
    pub numbers: Arc<RetentionMetrics>,
    /// Between two steps.
    pub pause: Duration,
    /// What a daemon knows of leaps of its clock; `None` where a person sees to it that it is
    /// right.
    pub leap: Option<Arc<LeapWatch>>,
    /// How long a blob stays after somebody needed it last, whatever its age: longer than a commit
    /// that names it takes.
    pub grace: Duration,
}

impl Retention {
    /// That of a daemon, at the pace that leaves the database to others.
    pub fn of_daemon(
        store: Store,
        blobs: Blobs,
        policy: Policy,
        clock: Clock,
        spool: LocalRunner,
        reserve: PathBuf,
    ) -> Self {
        let numbers = store.pruned();
        Self {
            store,
            blobs,
            policy,
            clock,
            spool: Some(spool),
            reserve,
            numbers,
            pause: STEP_PAUSE,
            leap: Some(Arc::default()),
            grace: GRACE,
        }
    }

    /// That of a daemon that starts on a full disk: it has all the time of the database, and leaves
    /// the spool to later.
    pub fn at_start(
        store: Store,
        blobs: Blobs,
        policy: Policy,
        clock: Clock,
        reserve: PathBuf,
    ) -> Self {
        let numbers = store.pruned();
        Self {
            store,
            blobs,
            policy,
            clock,
            spool: None,
            reserve,
            numbers,
            pause: Duration::ZERO,
            leap: Some(Arc::default()),
            grace: GRACE,
        }
    }

    /// Pass after pass until it is stopped. A pass that fails is told, and tried again.
    pub async fn run(self, stop: CancellationToken) {
        // Also for a daemon that does not live to its first pass.
        if let Err(error) = self.present().await {
            tracing::debug!(%error, "the time could not be noted; the first pass does");
        }
        let mut wait = FIRST_AFTER;
        loop {
            tokio::select! {
                () = stop.cancelled() => return,
                () = tokio::time::sleep(wait) => {}
                // A disk that is full cannot wait for an hour.
                () = self.disk_is_full(), if wait > PASS_WHEN_FULL_EVERY => {}
            }
            let passed = tokio::select! {
                () = stop.cancelled() => return,
                passed = self.pass() => passed,
            };
            wait = match passed {
                Ok(()) if self.store.has_room() => PASS_EVERY,
                Ok(()) => PASS_WHEN_FULL_EVERY,
                Err(error) => {
                    tracing::warn!(
                        %error,
                        "what is not kept any more could not all be removed; it is tried again"
                    );
                    PASS_WHEN_FULL_EVERY
                }
            };
        }
    }

    async fn disk_is_full(&self) {
        while self.store.has_room() {
            tokio::time::sleep(PASS_WHEN_FULL_EVERY).await;
        }
    }

    /// Removes spool directories of jobs that are over and that nobody looks after: a daemon died,
    /// or the disk failed, before they were forgotten.
    async fn sweep_spool(&self, named: &Named) -> Result<(), pass::PassError> {
        let Some(spool) = &self.spool else { return Ok(()) };
        let left: Vec<JobId> =
            spool.idle().await.into_iter().filter(|job| !named.jobs.contains(job)).collect();
        for jobs in left.chunks(pass::STEP) {
            let over = self.store.over_or_unknown(jobs).await?;
            self.numbers.spool_directories(over.len());
            spool.forget(over).await;
            self.rest().await;
        }
        Ok(())
    }

    async fn rest(&self) {
        if self.pause.is_zero() {
            tokio::task::yield_now().await;
        } else {
            tokio::time::sleep(self.pause).await;
        }
    }
}
