//! A job whose wrapper is gone and of which nobody reports how it ended. Called by `pursue`.

use std::io;
use std::time::Duration;

use schema::id::JobId;
use tokio::sync::mpsc;

use super::super::directory::WrapperClaim;
use super::super::left::{self, EndOfLeft, Trace, USUAL_KILL_AFTER};
use super::super::{End, LocalInner, RunnerEvent, collect};
use super::no_room::NoRoom;
use super::{ProcessesGone, Seen, TaskPhase, never_started};
use crate::clock::Clock;

/// How it is told that nobody reported how a job ended.
pub(super) const KILLED: &str = "its wrapper was killed before it could report";

const EMPTIED: &str = "its directory in the spool was removed or emptied while it ran, and with \
                       it what said how it ended";

/// How long what is left is asked to end before it is told that it is waited for.
const TOLD_AFTER: Duration = Duration::from_secs(1);

impl LocalInner {
    /// A job that no wrapper has claimed, as far as its directory says. That was emptied or removed
    /// under a wrapper that was seen with it, or that left something running.
    pub(super) async fn unclaimed(
        &self,
        job: JobId,
        is_gone: bool,
        stops: &mut mpsc::Receiver<()>,
        seen: &mut Seen,
    ) -> TaskPhase {
        let Some(trace) = seen.trace.clone() else { return never_started() };
        if seen.claim.is_some() || is_gone {
            return self.lost(job, EMPTIED, stops, seen).await;
        }
        match self.end_left(job, &trace, EMPTIED, stops, seen).await {
            None => TaskPhase::Detached,
            Some(Ok(ended)) if ended.seen == 0 && ended.left.is_nothing() => never_started(),
            Some(ended) => self.unreported(job, trace, EMPTIED, ended).await,
        }
    }

    /// A wrapper that is gone without a report: ends what it left, and keeps what it wrote.
    pub(super) async fn lost(
        &self,
        job: JobId,
        how: &str,
        stops: &mut mpsc::Receiver<()>,
        seen: &mut Seen,
    ) -> TaskPhase {
        let trace = seen.trace.clone().unwrap_or_else(|| self.trace_of_lost(job));
        let is_of_another_boot = self.boot.is_owed(job) && self.was_claimed_before_boot(job);
        let ended = if is_of_another_boot {
            Ok(EndOfLeft::default())
        } else {
            match self.end_left(job, &trace, how, stops, seen).await {
                Some(ended) => ended,
                None => return TaskPhase::Detached,
            }
        };
        self.unreported(job, trace, how, ended).await
    }

    /// Ends what a wrapper left, and says so while that takes. `None`: the daemon lets go of the
    /// job meanwhile.
    async fn end_left(
        &self,
        job: JobId,
        trace: &Trace,
        how: &str,
        stops: &mut mpsc::Receiver<()>,
        seen: &mut Seen,
    ) -> Option<io::Result<EndOfLeft>> {
        let kill_after = match seen.stops {
            0 | 1 => self.kill_after(job, seen.claim),
            _ => Duration::ZERO,
        };
        let kill_at = Clock::System.now().plus(kill_after);
        let end = left::end(job, trace, kill_after, asked_again(stops, &mut seen.stops));
        tokio::pin!(end);
        tokio::select! {
            ended = &mut end => return Some(ended),
            () = tokio::time::sleep(TOLD_AFTER) => {}
            () = self.followed.detach.cancelled() => return None,
        }
        let still = left::look_later(job, trace).await.unwrap_or_default();
        if let Some(wait) = still.wait(how, kill_at) {
            tracing::warn!(%job, "{}; ends when {}", wait.why, wait.ends_when);
            self.followed.tell(&self.news, RunnerEvent::Waits { job, wait: Some(wait) }).await;
        }
        tokio::select! {
            ended = end => Some(ended),
            () = self.followed.detach.cancelled() => None,
        }
    }

    /// The end of a job of which nobody reports it. `ended`: what came of ending what it left.
    async fn unreported(
        &self,
        job: JobId,
        trace: Trace,
        how: &str,
        ended: io::Result<EndOfLeft>,
    ) -> TaskPhase {
        let (words, gone) = match ended {
            Ok(ended) => (
                ended.words(),
                if ended.left.is_nothing() {
                    ProcessesGone::Yes
                } else {
                    ProcessesGone::Not(ended.left, Some(trace))
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

    /// Time that a job's command gets between the request to stop and KILL. `seen`: the claim, from
    /// when its wrapper was alive.
    pub(in super::super) fn kill_after(&self, job: JobId, seen: Option<WrapperClaim>) -> Duration {
        let claim = self.directory(job).claim().or(seen);
        claim.map_or(USUAL_KILL_AFTER, |claim| claim.kill_after)
    }

    /// What is known of a wrapper that died while nobody looked.
    pub(in super::super) fn trace_of_lost(&self, job: JobId) -> Trace {
        self.directory(job)
            .claim()
            .map(|claim| Trace::of_claim(claim.pid, claim.at, Clock::System.now()))
            .unwrap_or_default()
    }

    /// Whether a wrapper claimed the job before the machine was started, as far as the clocks tell;
    /// or nobody can say when it did.
    pub(in super::super) fn was_claimed_before_boot(&self, job: JobId) -> bool {
        self.directory(job)
            .claim()
            .is_none_or(|claim| left::was_before_boot(claim.at, Clock::System.now()))
    }
}

/// Returns once a stop has come that is not the first.
async fn asked_again(stops: &mut mpsc::Receiver<()>, asked: &mut u32) {
    while let Some(()) = stops.recv().await {
        *asked += 1;
        if *asked > 1 {
            return;
        }
    }
    std::future::pending().await
}
