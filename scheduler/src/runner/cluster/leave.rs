//! Whether this daemon may do now what lets a command run: while it has the database (promise P1),
//! and for what was decided while every gate is as open as it was then (promise P2). Asked right
//! before each request that does, however long it was tried before, and again while what was let go
//! has not begun ([`super::withdraw`]).

use futures::future::BoxFuture;
use schema::id::JobId;

use super::ClusterInner;
use super::ask::RequestRefusal;
use crate::runner::{Leave, LeaveRefusal, RunnerEvent};

/// Says whether the database is this daemon's at this moment, or in words that it is not.
pub type Owns = Box<dyn Fn() -> BoxFuture<'static, Result<(), String>> + Send + Sync>;

/// The daemon's claim to its jobs.
pub(super) struct JobOwnership(pub(super) Owns);

impl std::fmt::Debug for JobOwnership {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Owner")
    }
}

/// What is asked before a request.
#[derive(Clone, Copy)]
pub(super) enum May<'a> {
    /// Nothing: it lets nothing run.
    Always,
    /// Whether the database is still ours.
    WhileOurs(&'a ClusterInner),
    /// That, and whether this job may begin.
    AsDecided(&'a ClusterInner, JobId),
}

impl May<'_> {
    /// # Errors
    /// Why not.
    pub(super) async fn ask(&self) -> Result<(), RequestRefusal> {
        let inner = match self {
            Self::Always => return Ok(()),
            Self::WhileOurs(inner) => inner,
            Self::AsDecided(inner, job) => {
                let leave = inner.has_leave(*job).await;
                leave.map_err(|refusal| RequestRefusal::NoLeave(refusal.why))?;
                inner
            }
        };
        // Last: the answer may have come before this machine slept.
        inner.is_ours().await.map_err(RequestRefusal::NotOurs)
    }
}

impl ClusterInner {
    pub(super) async fn is_ours(&self) -> Result<(), String> {
        (self.owner.0)().await
    }

    /// Whether this job may begin, or run on where it has not begun.
    ///
    /// # Errors
    /// Why not.
    pub(super) async fn has_leave(&self, job: JobId) -> Result<(), LeaveRefusal> {
        let (leave, mut answer) = Leave::ask();
        let is_asked = self.news.send(RunnerEvent::Asks { job, leave }).await.is_ok();
        match answer.recv().await {
            Some(answer) if is_asked => answer,
            // The driver is over, and this task with the daemon: the next one asks again.
            _ => std::future::pending().await,
        }
    }
}
