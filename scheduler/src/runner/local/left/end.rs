//! Ends what is left of a job whose wrapper is gone, as the wrapper would have: the request to stop
//! goes to what it started itself, which knows how to end what is below it (a terraform whose
//! plugins are asked before it loses what they were making); then comes KILL, for all.

use std::collections::BTreeSet;
use std::time::Duration;

use rustix::process::{Pid, Signal};
use schema::id::JobId;
use tokio::time::Instant;

use super::{LONG_LOOK, LeftOvers, Trace, look_later};
use crate::runner::local::table::Process;

/// Time after KILL until what is still there is told as not gone.
const KILLED_GRACE: Duration = Duration::from_secs(2);

/// How often what is left is looked at meanwhile. It is nobody's child that could tell its end.
const LOOK: Duration = Duration::from_millis(50);

/// What came of ending what a lost wrapper left.
#[derive(Debug, Default)]
pub(in crate::runner::local) struct EndOfLeft {
    /// How many of its processes were there.
    pub(in crate::runner::local) seen: usize,
    /// How many of them had not ended when they were killed.
    killed: usize,
    /// What is there now.
    pub(in crate::runner::local) left: LeftOvers,
}

impl EndOfLeft {
    /// For people, as the end of a sentence.
    pub(in crate::runner::local) fn words(&self) -> String {
        if !self.left.is_nothing() {
            return self.left.words();
        }
        let stopped = match self.seen {
            0 => return String::new(),
            1 => "; the process that it left was stopped".to_owned(),
            count => format!("; the {count} processes that it left were stopped"),
        };
        match self.killed {
            0 => stopped,
            count => format!(
                "{stopped}, {} by SIGKILL, so what was being done may be half done",
                if count == self.seen { "all".to_owned() } else { format!("{count} of them") }
            ),
        }
    }
}

/// Asks what a lost wrapper left of a job to end, and kills what has not after `kill_after`, or
/// once `at_once` is there. Who is asked: what nothing else of the job has started, and what is
/// left of it when that has ended.
pub(in crate::runner::local) async fn end(
    job: JobId,
    trace: &Trace,
    kill_after: Duration,
    at_once: impl Future<Output = ()>,
) -> std::io::Result<EndOfLeft> {
    let mut left = look_later(job, trace).await?;
    let mut seen: BTreeSet<Process> = left.certain.iter().copied().collect();
    let mut asked = BTreeSet::new();
    let kill_at = Instant::now() + kill_after;
    tokio::pin!(at_once);
    while !left.certain.is_empty() {
        for root in &left.roots {
            if asked.insert(*root) {
                signal(*root, Signal::TERM);
            }
        }
        tokio::select! {
            () = something_ends(&left.certain) => {}
            () = tokio::time::sleep_until(kill_at) => break,
            () = &mut at_once => break,
        }
        left = look_later(job, trace).await?;
        seen.extend(&left.certain);
    }
    let mut killed = BTreeSet::new();
    let give_up_at = Instant::now() + KILLED_GRACE;
    while !left.certain.is_empty() && Instant::now() < give_up_at {
        for process in &left.certain {
            signal(*process, Signal::KILL);
        }
        killed.extend(left.certain.iter().copied());
        tokio::time::sleep(LOOK).await;
        left = look_later(job, trace).await?;
        seen.extend(&left.certain);
    }
    Ok(EndOfLeft { seen: seen.len(), killed: killed.len(), left })
}

/// Returns once one of these has ended, and now and then: others may have begun.
async fn something_ends(all: &[Process]) {
    let look_at = Instant::now() + LONG_LOOK;
    while Instant::now() < look_at && all.iter().all(|process| process.lives()) {
        tokio::time::sleep(LOOK).await;
    }
}

fn signal(process: Process, signal: Signal) {
    if let Some(pid) = Pid::from_raw(process.pid).filter(|_| process.lives()) {
        // Gone meanwhile, or another user's; the next look tells.
        let _ = rustix::process::kill_process(pid, signal);
    }
}
