//! What a place tells of a job's end -> what the engine is told, and what the job's row says. The
//! one place for this rule: a report that comes over HTTP takes the same way as one from a spool
//! directory. Before it stands the other half, [`crate::runner::evidence`]: which of several words
//! about one end counts. What an exit code means for the instance is the engine's business.

use engine::action::StopReason;
use engine::desired::FetchAnswer;
use engine::event::{FetchResult, Outcome};
use schema::id::BlobId;
use schema::output::{FetchOutput, GetInfoOutput, RuntimeObject};
use schema::report::{LeakedProcess, OutputError, Report, Structured};
use schema::spool::EXPLANATION;
use schema::status::{JobKind, JobStatus};
use schema::time::Timestamp;

use super::words::Words;
use crate::perform::PLAN;
use crate::runner::{End, evidence};

/// Most errors of a structured output that a message lists; the report has all.
const ERRORS_SHOWN: usize = 3;

/// What to say of a fetch whose output is a document that its mode does not read.
const IGNORED_OUTPUT: &str = "fetch printed a FetchOutput, which counts for nothing with \
                              `fetchMode: EXIT_CODE`, where 0 means that there is nothing to do; \
                              set `fetchMode: STRUCTURED_OUTPUT` to have it read";

/// What to say of a fetch that found work and said nothing about it but on stderr.
const ONLY_ERRORS: &str = "2 means that there is work, and is also what shells, make and many \
                           parsers end with for a mistake of their own; if this is one, mend the \
                           fetch, and have it end with another code then (docs/commands.md, \"A 2 \
                           that is not meant\"); if there is work, have it print what it found";

/// What to say of a fetch that found work and of whose output a part is not here.
const CUT_OUTPUT: &str = "what is kept of the fetch's output is not what it printed, so a yes \
                          would be for work that nobody has seen whole, and lasts until the next \
                          fetch only, which asks anew; on a cluster let its Pods reach this \
                          scheduler (`pvnctl runtimes check` of its runtime tries that way), or \
                          let it print less, or all of it on stdout";

/// Most left-over processes that a message lists.
const LEFT_SHOWN: usize = 3;

/// What the job was for, as far as its end can be read without it.
#[derive(Debug, Clone)]
pub(super) struct JobPurpose<'a> {
    /// Which command.
    pub(super) kind: JobKind,
    /// How it answers, if it is a fetch.
    pub(super) mode: Option<FetchAnswer>,
    /// Whether and why we stopped it.
    pub(super) stopped: Option<&'a StopReason>,
    /// When we first did, where that is known.
    pub(super) stopped_at: Option<Timestamp>,
    /// When it was decided; stands in for times that nobody told.
    pub(super) decided_at: Timestamp,
    /// The present.
    pub(super) now: Timestamp,
}

/// A job's end, read.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Ending {
    /// For the engine.
    pub(super) outcome: Outcome,
    /// For the job's row.
    pub(super) status: JobStatus,
    /// The command's exit code.
    pub(super) exit_code: Option<i32>,
    /// Why it failed; empty when there is nothing to say.
    pub(super) message: String,
    /// When its command started.
    pub(super) started_at: Option<Timestamp>,
    /// When it ended.
    pub(super) ended_at: Timestamp,
    /// What is kept of the report.
    pub(super) report: Option<Box<Report>>,
}

impl Ending {
    /// Nobody can say.
    pub(super) fn unknown(why: String, now: Timestamp) -> Self {
        let outcome = Outcome::Unknown { why: why.clone(), gone: false };
        Self {
            outcome,
            status: JobStatus::Unknown,
            exit_code: None,
            message: why,
            started_at: None,
            ended_at: now,
            report: None,
        }
    }

    /// A start that was never handed to a runner.
    pub(super) fn withdrawn(why: String, now: Timestamp) -> Self {
        let outcome = Outcome::NotStarted { why: why.clone(), surroundings: true };
        Self {
            outcome,
            status: JobStatus::Cancelled,
            exit_code: None,
            message: why,
            started_at: None,
            ended_at: now,
            report: None,
        }
    }
}

/// Reads the end of a job.
pub(super) fn read(end: End, gone: bool, words: &Words, asked: &JobPurpose<'_>) -> Ending {
    match end {
        End::Reported(report) => reported(report, gone, words, asked),
        End::NotStarted { why, surroundings } => {
            never_ran(Outcome::NotStarted { why: why.clone(), surroundings }, why, asked)
        }
        End::InputLost { why } => never_ran(Outcome::InputLost { why: why.clone() }, why, asked),
        End::Unknown { why, report } => match asked.stopped {
            Some(reason) if gone => stopped(reason, true, report, asked),
            _ => Ending {
                outcome: Outcome::Unknown { why: why.clone(), gone },
                status: JobStatus::Unknown,
                exit_code: None,
                message: why,
                started_at: None,
                ended_at: asked.now,
                report,
            },
        },
    }
}

fn never_ran(outcome: Outcome, message: String, asked: &JobPurpose<'_>) -> Ending {
    match asked.stopped {
        Some(reason @ (StopReason::Person(_) | StopReason::NotWanted)) => {
            stopped(reason, true, None, asked)
        }
        // At its start deadline, say: people read that it never started.
        Some(StopReason::Deadline) | None => {
            let status = JobStatus::Failed;
            Ending {
                outcome,
                status,
                exit_code: None,
                message,
                started_at: None,
                ended_at: asked.now,
                report: None,
            }
        }
    }
}

fn reported(mut report: Box<Report>, gone: bool, words: &Words, asked: &JobPurpose<'_>) -> Ending {
    // The blobs have them; a row that carries them too makes every list slower.
    report.stdout_inline = None;
    report.stderr_inline = None;
    if let Some(error) = &report.exec_error {
        let surroundings = report.surroundings;
        return Ending {
            outcome: Outcome::NotStarted { why: error.clone(), surroundings },
            status: JobStatus::Failed,
            exit_code: None,
            message: error.clone(),
            started_at: None,
            ended_at: asked.now,
            report: Some(report),
        };
    }
    let started_at =
        nanos(&report.start_timestamp_ns).map_or(asked.decided_at, Timestamp::from_millis);
    let ended_at = started_at.plus_ms(nanos(&report.duration_ns).unwrap_or(0));
    let times = Times { started_at, ended_at };
    if let Some(reason) = asked.stopped.filter(|_| !had_ended(&report, asked)) {
        let exit_code = report.exit_code;
        return Ending {
            started_at: Some(started_at),
            ended_at,
            exit_code,
            ..stopped(reason, gone, Some(report), asked)
        };
    }
    let code = report.exit_code.or_else(|| report.signal.as_deref().map(signal_code));
    if let Some(why) = still_runs(&report, code, gone, asked) {
        return times.ending(
            report,
            Outcome::Unknown { why: why.clone(), gone },
            JobStatus::Failed,
            why,
        );
    }
    if report.timed_out {
        return times.ending(
            report,
            Outcome::TimedOut,
            JobStatus::Failed,
            "ran past its timeout and was stopped".to_owned(),
        );
    }
    if let Some(signal) = &report.stopped_by {
        let ended =
            code.map_or_else(String::new, |code| format!(" and ended with exit code {code}"));
        let why = format!(
            "it was stopped by {signal}, which neither pvn nor its own deadline sent{ended}: its \
             Pod was deleted or its machine is stopping, say"
        );
        return times.ending(
            report,
            Outcome::Unknown { why: why.clone(), gone },
            JobStatus::Unknown,
            why,
        );
    }
    let Some(code) = code else {
        let why = "the wrapper did not see the command end".to_owned();
        return times.ending(
            report,
            Outcome::Unknown { why: why.clone(), gone },
            JobStatus::Unknown,
            why,
        );
    };
    exited(report, code, times, words, asked)
}

/// Whether what we stopped had ended by itself before, and only its report had to wait: for room on
/// the disk, say. Not every wrapper tells that it was asked; then the clocks have to. One by which
/// the command started before it was decided tells nothing.
fn had_ended(report: &Report, asked: &JobPurpose<'_>) -> bool {
    let was_asked = report.timed_out || report.stopped_by.is_some() || report.exit_code.is_none();
    let is_sound = nanos(&report.start_timestamp_ns)
        .is_some_and(|started_at| asked.decided_at.as_millis() <= started_at);
    let ended = evidence::ended_at(report).filter(|_| is_sound && !was_asked);
    ended
        .zip(asked.stopped_at)
        .is_some_and(|(ended_at, stopped_at)| engine::state::had_ended(ended_at, stopped_at))
}

/// When a command ran.
#[derive(Clone, Copy)]
struct Times {
    started_at: Timestamp,
    ended_at: Timestamp,
}

impl Times {
    fn ending(
        self,
        report: Box<Report>,
        outcome: Outcome,
        status: JobStatus,
        message: String,
    ) -> Ending {
        let Self { started_at, ended_at } = self;
        Ending {
            outcome,
            status,
            exit_code: report.exit_code,
            message,
            started_at: Some(started_at),
            ended_at,
            report: Some(report),
        }
    }
}

/// What a command came to that ended by itself, with this code or by the signal of that number.
fn exited(
    report: Box<Report>,
    code: i32,
    times: Times,
    words: &Words,
    asked: &JobPurpose<'_>,
) -> Ending {
    let structured = report.structured.as_ref();
    let objects = (asked.kind == JobKind::Fetch
        && asked.mode == Some(FetchAnswer::StructuredOutput))
    .then(|| document::<FetchOutput>(structured).map(|output| output.objects));
    let info = (asked.kind == JobKind::GetInfo)
        .then(|| document::<GetInfoOutput>(structured).map(|output| output.outputs));
    let unreadable = objects
        .as_ref()
        .and_then(|objects| objects.as_ref().err())
        .or(info.as_ref().and_then(|info| info.as_ref().err()))
        .cloned();
    let has_meaning = code == 0
        || (code == 2 && asked.kind == JobKind::Fetch && asked.mode == Some(FetchAnswer::ExitCode));
    let lost = report.files_lost.as_ref().filter(|_| asked.kind == JobKind::Fetch);
    if let (true, None, Some(why)) = (has_meaning, &unreadable, report.bad_output.as_ref().or(lost))
    {
        let (outcome, why) =
            (Outcome::BadOutput { why: format!("ended well, but {why}") }, why.clone());
        return times.ending(report, outcome, JobStatus::Failed, why);
    }
    let (status, message) = match (has_meaning, unreadable) {
        (true, None) => (JobStatus::Succeeded, left_behind(&report, asked).unwrap_or_default()),
        (true, Some(why)) => (JobStatus::Failed, why),
        (false, _) => (JobStatus::Failed, failed_message(&report, code, words)),
    };
    let said = if has_meaning {
        left_behind(&report, asked).or_else(|| words.headline())
    } else {
        failed_said(&report, words)
    };
    let seen = match asked.kind {
        JobKind::Fetch => fetched(&report, code, objects, words, asked),
        JobKind::Apply | JobKind::GetInfo => FetchResult::default(),
    };
    let Times { started_at, ended_at } = times;
    let outcome = Outcome::Exited {
        code,
        started_at,
        ended_at,
        said: said.unwrap_or_default(),
        seen: Box::new(seen),
        info,
    };
    Ending { exit_code: Some(code), ..times.ending(report, outcome, status, message) }
}

/// What a fetch saw and left.
fn fetched(
    report: &Report,
    code: i32,
    objects: Option<Result<Vec<RuntimeObject>, String>>,
    words: &Words,
    asked: &JobPurpose<'_>,
) -> FetchResult {
    let output = match &objects {
        Some(Ok(objects)) => Some(digest(objects)),
        _ => words.cut.or(report.stdout_blob_id),
    };
    let (plan, explanation) = (file(report, PLAN), file(report, EXPLANATION));
    let is_by_code = asked.mode == Some(FetchAnswer::ExitCode);
    let is_cut =
        is_by_code && code == 2 && words.cut.is_some() && plan.is_none() && explanation.is_none();
    let is_mute = code == 2
        && words.stdout.is_none()
        && words.explanation.is_none()
        && plan.is_none()
        && words.stderr.is_some();
    let doubt = match (is_by_code && words.has_objects, is_by_code && is_mute) {
        _ if is_cut => Some(CUT_OUTPUT.to_owned()),
        (true, _) => Some(IGNORED_OUTPUT.to_owned()),
        (_, true) => Some(ONLY_ERRORS.to_owned()),
        _ => None,
    };
    FetchResult {
        objects,
        plan,
        explanation,
        explanation_text: words.explanation.clone(),
        output,
        doubt,
        is_cut,
    }
}

/// Of what an approval is bound to: the same work has the same. When things happened is told anew
/// by each fetch.
fn digest(objects: &[RuntimeObject]) -> BlobId {
    let lasting: Vec<_> = objects
        .iter()
        .map(|object| RuntimeObject { debug_events: Vec::new(), ..object.clone() })
        .collect();
    BlobId::of(&serde_json::to_vec(&lasting).expect("our own types have JSON forms"))
}

/// Why an apply that ended is not over: something of it could not be killed and goes on working,
/// whatever the exit code says. What was meant to stay (`leaveRunning`) is no part of the apply.
fn still_runs(
    report: &Report,
    code: Option<i32>,
    gone: bool,
    asked: &JobPurpose<'_>,
) -> Option<String> {
    if gone || report.left_running || asked.kind != JobKind::Apply {
        return None;
    }
    let ended = match code {
        _ if report.timed_out => "ran past its timeout".to_owned(),
        Some(code) => format!("ended with exit code {code}"),
        None => return None,
    };
    let words = |left: &LeakedProcess| match left.pid {
        1.. => format!("process {} (`{}`)", left.pid, left.argv.join(" ")),
        _ => "a process that `/proc` does not show there".to_owned(),
    };
    let left = report.leaked.iter().filter(|left| left.alive).map(words);
    let left: Vec<_> = left.take(LEFT_SHOWN).collect();
    if left.is_empty() {
        return Some(format!("{ended}, but nobody knows whether all of its processes are gone"));
    }
    Some(format!(
        "{ended}, but some of its processes could not be stopped and still run: {}",
        left.join(", ")
    ))
}

/// What an apply started and did not wait for. It is gone, and whoever wrote `./server &` expects
/// it to live.
fn left_behind(report: &Report, asked: &JobPurpose<'_>) -> Option<String> {
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

/// What a stop that was asked for came to. A command that ended by itself while it was being
/// stopped counts as stopped, as far as the clocks tell that from one that had ended before:
/// what it did before is for the next fetch to find out.
fn stopped(
    reason: &StopReason,
    gone: bool,
    report: Option<Box<Report>>,
    asked: &JobPurpose<'_>,
) -> Ending {
    let (outcome, status, message) = match reason {
        StopReason::Deadline if gone => (
            Outcome::TimedOut,
            JobStatus::Failed,
            "ran past its timeout and was stopped".to_owned(),
        ),
        // What may still run keeps the next apply from starting.
        StopReason::Deadline => (
            Outcome::Cancelled { gone },
            JobStatus::Failed,
            "ran past its timeout and was stopped".to_owned(),
        ),
        StopReason::Person(who) => {
            (Outcome::Cancelled { gone }, JobStatus::Cancelled, format!("cancelled by {who}"))
        }
        StopReason::NotWanted => (
            Outcome::Cancelled { gone },
            JobStatus::Cancelled,
            "stopped because it was no longer wanted".to_owned(),
        ),
    };
    let message =
        if gone { message } else { format!("{message}; some of its processes are still there") };
    Ending {
        outcome,
        status,
        exit_code: None,
        message,
        started_at: None,
        ended_at: asked.now,
        report,
    }
}

fn failed_message(report: &Report, code: i32, words: &Words) -> String {
    let ended = match &report.signal {
        Some(signal) if report.oom_killed => format!("killed by {signal} (out of memory)"),
        Some(signal) => format!("killed by {signal}"),
        None if report.oom_killed => format!("ended with exit code {code} (out of memory)"),
        None => format!("ended with exit code {code}"),
    };
    match &words.stderr {
        Some(said) => format!("{ended}: {said}"),
        None => ended,
    }
}

/// What says most about a failure: that memory ran out comes before what the command printed, which
/// could not know it.
fn failed_said(report: &Report, words: &Words) -> Option<String> {
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
fn signal_code(name: &str) -> i32 {
    let real_time =
        || name.strip_prefix("SIGRTMIN").map(|rest| SIGRTMIN + rest.parse().unwrap_or(0));
    let number = name
        .parse::<nix::sys::signal::Signal>()
        .map(|signal| signal as i32)
        .ok()
        .or_else(real_time);
    128 + number.unwrap_or(0)
}

fn nanos(text: &str) -> Option<i64> {
    text.parse::<i128>().ok().and_then(|nanos| i64::try_from(nanos / 1_000_000).ok())
}

fn file(report: &Report, name: &str) -> Option<BlobId> {
    report.files.iter().find(|file| file.name == name).and_then(|file| file.content_blob_id)
}

/// The checked document, or in a sentence what is wrong with it.
fn document<T: serde::de::DeserializeOwned>(structured: Option<&Structured>) -> Result<T, String> {
    let Some(structured) = structured else {
        return Err("its structured output was not checked by the wrapper, which its image \
                    lacks; put `pvn-wrapper exec` before the command, or set `wrapper: {inject: \
                    true}` on the Kubernetes runtime"
            .to_owned());
    };
    match &structured.value {
        Some(value) if structured.errors.is_empty() => serde_json::from_value(value.clone())
            .map_err(|error| format!("its structured output is not what was expected: {error}")),
        _ => Err(problems(&structured.errors)),
    }
}

fn problems(errors: &[OutputError]) -> String {
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

#[cfg(test)]
mod tests;
