//! A test hook: lets the daemon kill itself at a named point, as `kill -9` would, so that tests can
//! show that nothing is lost and nothing is done twice. `PVN_CRASH_AT=after-commit:3` dies the
//! third time that point is passed; `PVN_STOP_AT` stops there, as SIGSTOP would, until somebody
//! sends SIGCONT. Without the variables each point costs one load of a static.
//! `PVN_HOLD_AT=before-start:2:FILE` waits there, the second time, for as long as FILE exists, so
//! that a test can do something in between.

use std::path::PathBuf;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use nix::sys::signal::Signal;

/// Every point, in the order in which an apply passes them.
pub const POINTS: &[&str] = &[
    BEFORE_COMMIT,
    AFTER_COMMIT,
    BEFORE_START,
    AFTER_START,
    AFTER_MADE,
    AFTER_RECORDED,
    AFTER_LET_GO,
    BEFORE_STOP,
    AFTER_STOP,
    AFTER_STARTED,
    AFTER_REPORT,
    BEFORE_ACK,
    AFTER_ACK,
    AFTER_ANSWER,
    AFTER_SWEEP,
    AFTER_PRUNE,
];

/// Decided, nothing stored.
pub const BEFORE_COMMIT: &str = "before-commit";
/// Stored, nothing done.
pub const AFTER_COMMIT: &str = "after-commit";
/// A job is about to be handed to the runner.
pub const BEFORE_START: &str = "before-start";
/// The runner has the job; nobody has noted it.
pub const AFTER_START: &str = "after-start";
/// A job's Job is there, suspended; nobody has noted which.
pub const AFTER_MADE: &str = "after-made";
/// A job's Job is noted; it is still suspended.
pub const AFTER_RECORDED: &str = "after-recorded";
/// A job's Job was let go.
pub const AFTER_LET_GO: &str = "after-let-go";
/// A job is about to be stopped.
pub const BEFORE_STOP: &str = "before-stopping";
/// A job was told to stop; nobody has noted it.
pub const AFTER_STOP: &str = "after-stopping";
/// The runner told that the command runs; nobody has noted it.
pub const AFTER_STARTED: &str = "after-started";
/// The runner told how a job ended; nobody has noted it.
pub const AFTER_REPORT: &str = "after-report";
/// The end of a job is stored; the runner still keeps its spool.
pub const BEFORE_ACK: &str = "before-ack";
/// The runner was told to forget the job.
pub const AFTER_ACK: &str = "after-ack";
/// A person's request was stored and answered.
pub const AFTER_ANSWER: &str = "after-answer";

/// Retention removed files of blobs; their rows are still there.
pub const AFTER_SWEEP: &str = "after-sweep";
/// Retention committed a step.
pub const AFTER_PRUNE: &str = "after-prune";

struct Armed {
    point: String,
    left: AtomicU64,
    signal: Signal,
}

/// What each variable sends.
const VARIABLES: [(&str, Signal); 2] =
    [("PVN_CRASH_AT", Signal::SIGKILL), ("PVN_STOP_AT", Signal::SIGSTOP)];

static ARMED: OnceLock<Vec<Armed>> = OnceLock::new();

/// Where to wait, and for which file to go away.
static HOLD: OnceLock<Option<(Armed, PathBuf)>> = OnceLock::new();

/// How often the file is looked for.
const HOLD_LOOK: Duration = Duration::from_millis(5);

/// Reads `PVN_CRASH_AT`, `PVN_STOP_AT` and `PVN_HOLD_AT`. Called once, at the start of the program.
///
/// # Errors
/// A sentence when a variable names no point or its number is none.
pub fn arm() -> Result<(), String> {
    let mut armed = Vec::new();
    for (name, signal) in VARIABLES {
        if let Some(text) = std::env::var(name).ok().filter(|text| !text.is_empty()) {
            armed.push(parse(name, &text, signal)?);
        }
    }
    // A second daemon in the same process keeps what the first one read.
    let _ = ARMED.set(armed);
    let held = match std::env::var("PVN_HOLD_AT") {
        Ok(text) if !text.is_empty() => {
            let (point, file) = text
                .rsplit_once(':')
                .ok_or_else(|| format!("PVN_HOLD_AT={text} is not POINT:N:FILE"))?;
            Some((parse("PVN_HOLD_AT", point, Signal::SIGCONT)?, PathBuf::from(file)))
        }
        _ => None,
    };
    let _ = HOLD.set(held);
    Ok(())
}

fn parse(name: &str, text: &str, signal: Signal) -> Result<Armed, String> {
    let (point, count) = text.split_once(':').unwrap_or((text, "1"));
    let left = count.parse().ok().filter(|count| *count > 0);
    match left {
        Some(left) if POINTS.contains(&point) => {
            Ok(Armed { point: point.to_owned(), left: AtomicU64::new(left), signal })
        }
        _ => Err(format!(
            "{name}={text} is not POINT or POINT:N with N from 1 and POINT one of {}",
            POINTS.join(", ")
        )),
    }
}

/// Dies, stops or waits here if this is the point and its time has come.
pub fn at(point: &str) {
    if let Some(Some((held, file))) = HOLD.get()
        && held.point == point
        && held.left.fetch_sub(1, Ordering::Relaxed) == 1
    {
        tokio::task::block_in_place(|| wait_for(file));
    }
    for armed in ARMED.get().into_iter().flatten() {
        if armed.point == point && armed.left.fetch_sub(1, Ordering::Relaxed) == 1 {
            // To this thread, or it went on until another one had taken the signal. Cannot fail; if
            // it did, the test that asked for the crash would notice.
            let _ = nix::sys::signal::raise(armed.signal);
        }
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "a test hook that stands still: there is no event to wait for"
)]
fn wait_for(file: &std::path::Path) {
    while file.exists() {
        std::thread::sleep(HOLD_LOOK);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_point_is_a_known_name_and_a_number() {
        let parse = |text| parse("PVN_CRASH_AT", text, Signal::SIGKILL);
        assert_eq!(parse("after-commit").unwrap().left.into_inner(), 1);
        assert_eq!(parse("after-commit:3").unwrap().left.into_inner(), 3);
        for text in ["nowhere", "after-commit:0", "after-commit:x", ":1"] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
