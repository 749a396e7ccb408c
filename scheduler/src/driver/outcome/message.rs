//! The sentences about a job's end that people read.

use schema::report::{OutputError, Report};
use schema::status::JobKind;

use super::super::words::Words;
use super::{JobPurpose, LEFT_SHOWN};

/// Most errors of a structured output that a message lists; the report has all.
const ERRORS_SHOWN: usize = 3;

/// What an apply started and did not wait for. It is gone, and whoever wrote `./server &` expects
/// it to live.
pub(super) fn left_behind(report: &Report, asked: &JobPurpose<'_>) -> Option<String> {
    let count = report.leaked.len();
    if asked.kind != JobKind::Apply || report.left_running || count == 0 {
        return None;
    }
    let (processes, were) = if count == 1 { ("process", "was") } else { ("processes", "were") };
    let shown: Vec<_> = report
        .leaked
        .iter()
        .take(LEFT_SHOWN)
        .map(|left| format!("`{}`", left.argv.join(" ")))
        .collect();
    Some(format!(
        "left {count} {processes} behind, which {were} stopped: {}; what is to go on is started \
         by a service manager, or with `leaveRunning: true` where the runtime is local",
        shown.join(", ")
    ))
}

pub(super) fn failed_message(report: &Report, code: i32, words: &Words) -> String {
    let ended = report.killed_in_words();
    let ended = ended.unwrap_or_else(|| format!("ended with exit code {code}"));
    match &words.stderr {
        Some(said) => format!("{ended}: {said}"),
        None => ended,
    }
}

/// What says most about a failure: that memory ran out comes before what the command printed, which
/// could not know it.
pub(super) fn failed_said(report: &Report, words: &Words) -> Option<String> {
    match (report.oom_killed, &words.stderr) {
        (false, said) => said.clone(),
        (true, Some(said)) => Some(format!("out of memory; {said}")),
        (true, None) => Some("out of memory".to_owned()),
    }
}

/// Number of SIGRTMIN for programs on Linux, where the C library keeps the first two of the
/// kernel's for itself.
const SIGRTMIN: i32 = 34;

/// The exit code that a shell would give for the signal; 128 when its number is unknown.
pub(super) fn signal_code(name: &str) -> i32 {
    let real_time =
        || name.strip_prefix("SIGRTMIN").map(|rest| SIGRTMIN + rest.parse().unwrap_or(0));
    let number = name
        .parse::<nix::sys::signal::Signal>()
        .map(|signal| signal as i32)
        .ok()
        .or_else(real_time);
    128 + number.unwrap_or(0)
}

pub(super) fn problems(errors: &[OutputError]) -> String {
    let line = |error: &OutputError| {
        if error.pointer.is_empty() {
            error.message.clone()
        } else {
            format!("{}: {}", error.pointer, error.message)
        }
    };
    let shown: Vec<_> = errors.iter().take(ERRORS_SHOWN).map(line).collect();
    let more = errors.len().saturating_sub(ERRORS_SHOWN);
    let more = if more == 0 { String::new() } else { format!("; and {more} more") };
    format!("its structured output is wrong: {}{more}", shown.join("; "))
}
