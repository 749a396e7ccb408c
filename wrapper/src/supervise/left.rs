//! What the child leaves behind: finding it, asking it to end, killing it. Called by `supervise`.

use std::time::Instant;

use rustix::process::{Signal, WaitId, WaitIdOptions, kill_process, kill_process_group, waitid};
use schema::report::LeakedProcess;

use super::SignalLoop;
use crate::process;

/// Most processes that are told as left behind, twice: when they are asked to end, and when they
/// have not. All are ended.
const LEFT_OVER_LIMIT: usize = 500;

impl SignalLoop<'_> {
    /// To those that were re-parented to us, not to theirs.
    pub(super) fn ask_left_over(&self, signal: Signal) {
        let left = process::descendants();
        if left.is_empty() {
            self.signal_group(signal);
        }
        for left in left.into_iter().filter(|left| left.ours) {
            let _ = kill_process(left.pid, signal);
        }
    }

    /// To those of the command's group, as long as a child of ours is in it: else its number may be
    /// another's by now.
    fn signal_group(&self, signal: Signal) {
        let look = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        if self.status.is_none() || waitid(WaitId::Pgid(Some(self.watch.root)), look).is_ok() {
            let _ = kill_process_group(self.watch.root, signal);
        }
    }

    /// To the group and to every descendant, wherever it went.
    pub(super) fn kill_all(&self) {
        self.signal_group(Signal::KILL);
        for left in process::descendants() {
            let _ = kill_process(left.pid, Signal::KILL);
        }
    }

    /// What is there. The kernel knows whether there is anything also where /proc does not show it.
    pub(super) fn left_over(&mut self) -> Vec<LeakedProcess> {
        for _ in 0..2 {
            let left = process::descendants();
            if !left.is_empty() {
                let told =
                    |pid: rustix::process::Pid| (pid.as_raw_nonzero().get(), process::argv(pid));
                let told = left.into_iter().take(LEFT_OVER_LIMIT).map(|left| told(left.pid));
                return told.map(|(pid, argv)| LeakedProcess { pid, argv, alive: false }).collect();
            }
            // What has ended meanwhile is not left.
            self.reap(Instant::now());
            if self.alone {
                return Vec::new();
            }
        }
        vec![LeakedProcess { pid: 0, argv: vec![process::NOT_SHOWN.to_owned()], alive: false }]
    }
}
