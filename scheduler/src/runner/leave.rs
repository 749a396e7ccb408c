//! Whether a command that is ready may be let run: asked by a runner, answered by whoever decides.

use tokio::sync::mpsc;

/// The way back to a runner that asks whether a command may be let run.
#[derive(Debug, Clone)]
pub struct Leave(mpsc::Sender<Result<(), LeaveRefusal>>);

/// Why a command may not be let run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeaveRefusal {
    /// For people.
    pub why: String,
    /// Whether the job is over for whoever decides, by its report perhaps: then nothing of it may
    /// begin, and what is there of it is no more to be withdrawn.
    pub is_over: bool,
}

impl Leave {
    /// A question, and where its answer comes; none comes when the driver is over.
    pub fn ask() -> (Self, mpsc::Receiver<Result<(), LeaveRefusal>>) {
        let (sender, receiver) = mpsc::channel(1);
        (Self(sender), receiver)
    }

    /// It may, or why it may not. Only the first answer counts.
    pub fn give(&self, answer: Result<(), LeaveRefusal>) {
        // Whoever asked may have been stopped meanwhile.
        let _ = self.0.try_send(answer);
    }
}
