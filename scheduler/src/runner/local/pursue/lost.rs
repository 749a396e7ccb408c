//! A job whose wrapper is gone and of which nobody reports how it ended. Called by `pursue`.

use std::io;

use schema::id::JobId;

use super::super::left::{self, LeftOvers, Trace};
use super::super::{End, LocalInner, collect};
use super::no_room::NoRoom;
use super::{ProcessesGone, Seen, TaskPhase, never_started};
use crate::clock::Clock;

/// How it is told that nobody reported how a job ended.
pub(super) const KILLED: &str = "its wrapper was killed before it could report";

const EMPTIED: &str = "its directory in the spool was removed or emptied while it ran, and with \
                       it what said how it ended";

impl LocalInner {
    /// A job that no wrapper has claimed, as far as its directory says. That was emptied or removed
    /// under a wrapper that was seen with it, or that left something running.
    pub(super) async fn unclaimed(&self, job: JobId, is_gone: bool, seen: &Seen) -> TaskPhase {
        let Some(trace) = &seen.trace else { return never_started() };
        if seen.claimed || is_gone {
            return self.lost(job, Some(trace), EMPTIED).await;
        }
        match left::end(job, trace).await {
            Ok((0, left)) if left.is_nothing() => never_started(),
            looked => self.unreported(job, trace.clone(), EMPTIED, looked).await,
        }
    }

    /// A wrapper that is gone without a report: ends what it left, and keeps what it wrote.
    pub(super) async fn lost(&self, job: JobId, trace: Option<&Trace>, how: &str) -> TaskPhase {
        let trace = trace.cloned().unwrap_or_else(|| self.trace_of_lost(job));
        let is_of_another_boot = self.boot.is_owed(job) && self.was_claimed_before_boot(job);
        let looked = if is_of_another_boot {
            Ok((0, LeftOvers::default()))
        } else {
            left::end(job, &trace).await
        };
        self.unreported(job, trace, how, looked).await
    }

    /// The end of a job of which nobody reports it. `looked`: what came of ending what it left.
    async fn unreported(
        &self,
        job: JobId,
        trace: Trace,
        how: &str,
        looked: io::Result<(usize, LeftOvers)>,
    ) -> TaskPhase {
        let (words, gone) = match looked {
            Ok((count, left)) => (
                left.words(count),
                if left.is_nothing() {
                    ProcessesGone::Yes
                } else {
                    ProcessesGone::Not(left, Some(trace))
                },
            ),
            Err(error) => {
                tracing::error!(%job, %error, "failed to look for left-over processes");
                (
                    format!("; what it left cannot be looked for: {error}"),
                    ProcessesGone::NotToBeSeen,
                )
            }
        };
        let (directory, blobs) = (self.directory(job), self.blobs.clone());
        let report = match self
            .blocking
            .run(move || collect::collect_without_report(&directory, &blobs))
            .await
            .map_err(NoRoom::to_keep)
        {
            Ok(report) => report,
            Err(Ok(lack)) => return TaskPhase::NoRoom(lack),
            Err(Err(error)) => {
                tracing::warn!(
                    %job, %error,
                    "failed to keep the output of a job whose wrapper is gone"
                );
                None
            }
        };
        TaskPhase::Over(End::Unknown { why: format!("{how}{words}"), report }, gone)
    }

    /// What is known of a wrapper that died while nobody looked.
    pub(in super::super) fn trace_of_lost(&self, job: JobId) -> Trace {
        self.directory(job)
            .claim()
            .map(|(pid, at)| Trace::of_claim(pid, at, Clock::System.now()))
            .unwrap_or_default()
    }

    /// Whether a wrapper claimed the job before the machine was started, as far as the clocks tell;
    /// or nobody can say when it did.
    pub(in super::super) fn was_claimed_before_boot(&self, job: JobId) -> bool {
        self.directory(job)
            .claim()
            .is_none_or(|(_, at)| left::was_before_boot(at, Clock::System.now()))
    }
}
