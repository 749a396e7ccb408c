//! That a command never started, and what kept it.

use crate::runner::End;

/// Why a command never started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Never {
    /// For people.
    pub why: String,
    /// What kept it from starting.
    pub cause: NeverCause,
}

/// What kept a command from starting, as far as it says whether another try makes sense.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NeverCause {
    /// The job itself: no other try makes sense.
    Job,
    /// Its surroundings, which may change: another try makes sense.
    Surroundings,
    /// A gate had shut, and it was taken back: it is as if it had never been decided.
    Gate,
}

impl NeverCause {
    /// Whether the surroundings are to blame, or the job.
    pub fn of(surroundings: bool) -> Self {
        if surroundings { Self::Surroundings } else { Self::Job }
    }
}

impl Never {
    /// As the end of its job.
    pub(super) fn end(self) -> End {
        let why = self.why;
        match self.cause {
            NeverCause::Job => End::NotStarted { why, surroundings: false },
            NeverCause::Surroundings => End::NotStarted { why, surroundings: true },
            NeverCause::Gate => End::TakenBack { why },
        }
    }
}
