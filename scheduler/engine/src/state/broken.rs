//! What always holds of a state, each by name: of the whole in `check.rs`, of a part with the part.

/// An invariant that does not hold: a bug of ours or a damaged database, never the user's mistake.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BrokenInvariant {
    /// The main slot holds fetch or apply, the side slot getInfo.
    #[error("a job is in the slot of another kind")]
    JobInTheWrongSlot,
    /// Attempts count from 1.
    #[error("a job in flight has attempt 0")]
    AttemptZero,
    /// Every job in flight has a deadline, but for an apply without timeout that runs and was not
    /// stopped.
    #[error(
        "a job in flight has no deadline although it has a timeout, has not started or was stopped"
    )]
    NoDeadline,
    /// One fetch or apply at a time.
    #[error("a place for fetch or apply is wanted while one is in flight")]
    WantsBesideMain,
    /// One getInfo at a time.
    #[error("a place for getInfo is wanted while one is in flight")]
    WantsBesideSide,
    /// Nothing starts for an instance that is deleted or has no release.
    #[error("a place is wanted although nothing is desired")]
    WantsForNothing,
    /// A fetch is for what is polled.
    #[error("a place for fetch is wanted although the instance is not polled")]
    FetchesUnpolled,
    /// A paused instance starts neither fetch nor apply.
    #[error("a place for fetch or apply is wanted although the instance is paused")]
    WantsWhilePaused,
    /// A person wants one of both.
    #[error("the instance is paused and observed at once")]
    PausedAndObserved,
    /// An observer never applies.
    #[error("a place for apply is wanted although the instance only looks")]
    AppliesWhileObserving,
    /// A watch is wanted wherever one tells, but while the instance is paused or deleted.
    #[error("a watch counts although none is wanted, or none does although one is")]
    WatchUnwanted,
    /// No apply beside a job that may still run.
    #[error("a place for apply is wanted although an earlier job is not known to be gone")]
    AppliesBesideUnsettled,
    /// A window is lifted by somebody, with a reason, and not for longer than may be.
    #[error("an apply window is lifted by nobody, for no reason, or for longer than may be")]
    LiftUnsaid,
    /// An apply waits for a pending or rejected approval.
    #[error("a place for apply is wanted although an approval is not given")]
    AppliesUnapproved,
    /// A place for apply is wanted since every gate is open.
    #[error("a place for apply is wanted although it is not ready")]
    WantsUnready,
    /// A bounded history.
    #[error("more approvals are remembered than may be")]
    TooManyApprovals,
    /// A granted approval has the yes of as many people as it needs.
    #[error("an approval counts as given without enough people")]
    GrantedWithoutVotes,
    /// CONVERGED is said only of what was seen so.
    #[error("the status is CONVERGED although this release was not seen converged")]
    ConvergedUnseen,
    /// Whatever waits has something that will end it.
    #[error("nothing will ever move the instance although it is on its way")]
    NoWayOut,
}
