//! What the child leaves behind: finding it, asking it to end, killing it. Called by `supervise`.

use rustix::process::{Signal, kill_process, kill_process_group};
use schema::report::LeakedProcess;

use super::SignalLoop;
use crate::process;

/// Most processes that are told as left behind, twice: when they are asked to end, and when they have not. All are ended.
const LEFT_OVER_LIMIT: usize = 500;

impl SignalLoop<'_> {
    /// To those that were re-parented to us, not to theirs.
    pub(super) fn ask_left_over(&self, signal: Signal) {
        for left in process::descendants().into_iter().filter(|left| left.ours) {
            let _ = kill_process(left.pid, signal);
        }
    }

    /// To the group and to every descendant, wherever it went.
    pub(super) fn kill_all(&self) {
        if self.status.is_none() {
            let _ = kill_process_group(self.watch.root, Signal::KILL);
        }
        for left in process::descendants() {
            let _ = kill_process(left.pid, Signal::KILL);
        }
    }

    pub(super) fn left_over(&self) -> Vec<LeakedProcess> {
        process::descendants()
            .into_iter()
            .take(LEFT_OVER_LIMIT)
            .map(|left| LeakedProcess { pid: left.pid.as_raw_nonzero().get(), argv: process::argv(left.pid), alive: false })
            .collect()
    }
}
