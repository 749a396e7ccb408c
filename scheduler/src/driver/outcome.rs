//! What a place tells of a job's end -> what the engine is told, and what the job's row says. The
//! one place for this rule: a report that comes over HTTP takes the same way as one from a spool
//! directory. Before it stands the other half, [`crate::runner::evidence`]: which of several words
//! about one end counts. What an exit code means for the instance is the engine's business.

use engine::action::StopReason;
use engine::desired::{FetchAnswer, WorkExitCodes};
use engine::event::{FetchResult, Outcome};
use schema::id::BlobId;
use schema::output::{FetchOutput, GetInfoOutput};
use schema::report::{LeakedProcess, Report, Structured};
use schema::status::{JobKind, JobStatus};
use schema::time::Timestamp;

use super::words::Words;
use crate::runner::{End, evidence};

mod fetched;
mod message;

use fetched::fetched;
use message::{failed_message, failed_said, left_behind, problems, signal_code};

/// Most left-over processes that a message lists.
const LEFT_SHOWN: usize = 3;

/// What the job was for, as far as its end can be read without it.
#[derive(Debug, Clone)]
pub(super) struct JobPurpose<'a> {
    /// Which command.
    pub(super) kind: JobKind,
    /// How it answers, if it is a fetch.
    pub(super) mode: Option<FetchAnswer>,
    /// With which codes it then says that there is work; `None` = the usual one.
    pub(super) work: Option<&'a WorkExitCodes>,
    /// Whether and why we stopped it.
    pub(super) stopped: Option<&'a StopReason>,
    /// When we first did, where that is known.
    pub(super) stopped_at: Option<Timestamp>,
    /// When it was decided; stands in for times that nobody told.
    pub(super) decided_at: Timestamp,
    /// The present.
    pub(super) now: Timestamp,
}

impl JobPurpose<'_> {
    /// Whether this code is a fetch's word that there is work.
    fn says_work(&self, code: i32) -> bool {
        let is_by_code = self.kind == JobKind::Fetch && self.mode == Some(FetchAnswer::ExitCode);
        let usual = WorkExitCodes::default();
        is_by_code && self.work.unwrap_or(&usual).says_work(code)
    }

    /// Whether that code was chosen for it, so that no mistake ends with it.
    fn has_codes_of_its_own(&self) -> bool {
        self.work.is_some_and(|work| !work.are_usual())
    }
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
        Self::without_run(outcome, JobStatus::Unknown, why, now)
    }

    /// A start that was never handed to a runner.
    pub(super) fn withdrawn(why: String, now: Timestamp) -> Self {
        let outcome = Outcome::NotStarted { why: why.clone(), surroundings: true };
        Self::without_run(outcome, JobStatus::Cancelled, why, now)
    }

    /// One of which no run is known.
    fn without_run(outcome: Outcome, status: JobStatus, message: String, now: Timestamp) -> Self {
        Self {
            outcome,
            status,
            exit_code: None,
            message,
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
        // Nobody decides anew about one that is over for the engine, or was asked to stop.
        End::TakenBack { why } => {
            never_ran(Outcome::NotStarted { why: why.clone(), surroundings: true }, why, asked)
        }
        End::InputLost { why } => never_ran(Outcome::InputLost { why: why.clone() }, why, asked),
        End::Unknown { why, report } => match asked.stopped {
            Some(reason) if gone => stopped(reason, true, report, asked),
            _ => {
                let outcome = Outcome::Unknown { why: why.clone(), gone };
                Ending {
                    report,
                    ..Ending::without_run(outcome, JobStatus::Unknown, why, asked.now)
                }
            }
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
            Ending::without_run(outcome, JobStatus::Failed, message, asked.now)
        }
    }
}

fn reported(mut report: Box<Report>, gone: bool, words: &Words, asked: &JobPurpose<'_>) -> Ending {
    // The blobs have them; a row that carries them too makes every list slower.
    report.stdout_inline = None;
    report.stderr_inline = None;
    if let Some(error) = &report.exec_error {
        let (why, surroundings) = (error.clone(), report.surroundings);
        let outcome = Outcome::NotStarted { why: why.clone(), surroundings };
        let ending = Ending::without_run(outcome, JobStatus::Failed, why, asked.now);
        return Ending { report: Some(report), ..ending };
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
        return times.unknown(report, gone, JobStatus::Failed, why);
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
        return times.unknown(report, gone, JobStatus::Unknown, why);
    }
    let Some(code) = code else {
        let why = "the wrapper did not see the command end".to_owned();
        return times.unknown(report, gone, JobStatus::Unknown, why);
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
    fn unknown(self, report: Box<Report>, gone: bool, status: JobStatus, why: String) -> Ending {
        self.ending(report, Outcome::Unknown { why: why.clone(), gone }, status, why)
    }

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
    let has_meaning = code == 0 || asked.says_work(code);
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

#[cfg(test)]
mod tests;
