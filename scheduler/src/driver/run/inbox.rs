//! What comes to the loop comes in here: what people ask, what runners tell, what tasks came to.
//! Each has a bound of its own, so that however much comes of one, the others find room; what finds
//! none waits where it comes from.
//!
//! | who | bound | served |
//! | --- | --- | --- |
//! | tasks that perform actions | as many as are performed at a time | first: each makes room for the next |
//! | rollbacks at the planner | as many as wait there at a time | with them |
//! | what runners tell | [`ARRIVALS_LIMIT`] | second, and not while nothing can be stored |
//! | what people ask, and plans | [`CALLS_LIMIT`] | last: what was told before counts for the answer |
//!
//! That is the order of what is there already. Whatever comes first ends a wait, so that a flood of
//! one does not keep another out of every turn.

use tokio::sync::mpsc;
use tokio::task::{JoinError, JoinSet};

use super::super::calls::Call;
use super::super::intake::PreparedEvent;
use super::{TaskResult, TurnInput};

/// Calls that wait for the loop; it takes many at a time, so this is some batches' worth.
const CALLS_LIMIT: usize = 1024;

/// News that wait for the loop: a few batches' worth. A runner that is ahead waits, and its spools
/// keep what it has to tell.
const ARRIVALS_LIMIT: usize = 1024;

/// All that is waited for.
pub(in crate::driver) struct Inbox {
    calls: mpsc::Receiver<Call>,
    arrivals: mpsc::Receiver<PreparedEvent>,
    /// What is being performed.
    pub(in crate::driver) performing: JoinSet<TaskResult>,
    /// Rollbacks that wait for the planner.
    pub(in crate::driver) going_back: JoinSet<TaskResult>,
}

impl Inbox {
    /// An empty one, and the ways in for calls and for what runners tell.
    pub(in crate::driver) fn new() -> (Self, mpsc::Sender<Call>, mpsc::Sender<PreparedEvent>) {
        let (call, calls) = mpsc::channel(CALLS_LIMIT);
        let (tell, arrivals) = mpsc::channel(ARRIVALS_LIMIT);
        let inbox =
            Self { calls, arrivals, performing: JoinSet::new(), going_back: JoinSet::new() };
        (inbox, call, tell)
    }

    /// Waits for whatever comes first. Nothing is lost when the wait is given up.
    pub(super) async fn next(&mut self, hears_news: bool) -> Option<TurnInput> {
        tokio::select! {
            Some(call) = self.calls.recv() => Some(TurnInput::Call(Box::new(call))),
            Some(news) = self.arrivals.recv(), if hears_news => {
                Some(TurnInput::Arrived(Box::new(news)))
            }
            Some(done) = self.performing.join_next() => finished(done).map(TurnInput::Done),
            Some(done) = self.going_back.join_next() => finished(done).map(TurnInput::Done),
            else => std::future::pending().await,
        }
    }

    /// What is there already.
    pub(super) fn next_here(&mut self, hears_news: bool) -> Option<TurnInput> {
        while let Some(done) =
            self.performing.try_join_next().or_else(|| self.going_back.try_join_next())
        {
            if let Some(done) = finished(done) {
                return Some(TurnInput::Done(done));
            }
        }
        if hears_news && let Some(news) = self.news_here() {
            return Some(TurnInput::Arrived(Box::new(news)));
        }
        self.calls.try_recv().ok().map(|call| TurnInput::Call(Box::new(call)))
    }

    /// What runners told already.
    pub(in crate::driver) fn news_here(&mut self) -> Option<PreparedEvent> {
        self.arrivals.try_recv().ok()
    }

    /// What is being performed ends; `None` when nothing is.
    pub(super) async fn performed(&mut self) -> Option<TaskResult> {
        while let Some(done) = self.performing.join_next().await {
            if let Some(done) = finished(done) {
                return Some(done);
            }
        }
        None
    }
}

fn finished(done: Result<TaskResult, JoinError>) -> Option<TaskResult> {
    match done {
        Ok(done) => Some(done),
        Err(error) if error.is_cancelled() => None,
        // A panic in there is our bug; the task's action stays pending and is performed again after
        // a restart.
        Err(error) => std::panic::resume_unwind(error.into_panic()),
    }
}
