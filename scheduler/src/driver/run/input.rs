//! What a turn of the driver takes in. Called by `run`.

use schema::id::JobId;

use super::super::batch::Task;
use super::super::calls::{Call, PendingAnswer};
use super::super::going_back::Rollback;
use super::super::intake::PreparedEvent;

/// What a task came to.
#[derive(Debug)]
pub(in crate::driver) enum TaskResult {
    Handed(JobId),
    Over(Box<PreparedEvent>),
    Performed(Option<i64>),
    /// A rollback: whether what came of it is stored, and its action with it.
    WentBack {
        rollback: Rollback,
        is_settled: bool,
    },
    /// A start that was withdrawn, or whose time had passed.
    Unclaimed(Task),
}

/// What a turn takes in.
#[derive(Debug)]
pub(in crate::driver) enum TurnInput {
    Call(Box<Call>),
    Arrived(Box<PreparedEvent>),
    Done(TaskResult),
}

/// What a turn took in: what was told, and whom it has to answer once it is stored.
pub(super) struct TakenIn {
    pub(super) news: Vec<PreparedEvent>,
    pub(super) answers: Vec<PendingAnswer>,
    pub(super) plans: Vec<PendingAnswer>,
}
