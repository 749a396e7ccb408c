//! What a place tells of a job's end -> what the engine is told, and what the job's row says. The one place for this
//! rule: a report that comes over HTTP takes the same way as one from a spool directory. Before it stands the other half,
//! [`crate::runner::learned`]: which of several words about one end counts. What an exit code means for the
//! instance is the engine's business.

use engine::action::StopReason;
use engine::desired::FetchMode;
use engine::event::{Outcome, Seen};
use schema::id::BlobId;
use schema::output::{FetchOutput, GetInfoOutput, RuntimeObject};
use schema::report::{OutputError, Report, Structured};
use schema::spool::EXPLANATION;
use schema::status::{JobKind, JobStatus};
use schema::time::Timestamp;

use super::words::Words;
use crate::runner::End;

/// Name of the output file that an apply can be handed.
pub const PLAN: &str = "plan";

/// Most errors of a structured output that a message lists; the report has all.
const ERRORS_SHOWN: usize = 3;

/// Most left-over processes that a message lists.
const LEFT_SHOWN: usize = 3;

/// What the job was for, as far as its end can be read without it.
#[derive(Debug, Clone)]
pub(super) struct Asked<'a> {
    /// Which command.
    pub(super) kind: JobKind,
    /// How the runtime's fetch answers; `None` = it has none.
    pub(super) mode: Option<FetchMode>,
    /// Whether and why we stopped it.
    pub(super) stopped: Option<&'a StopReason>,
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
        Self { outcome, status: JobStatus::Unknown, exit_code: None, message: why, started_at: None, ended_at: now, report: None }
    }

    /// A start that was never handed to a runner.
    pub(super) fn withdrawn(why: String, now: Timestamp) -> Self {
        let outcome = Outcome::NotStarted { why: why.clone(), surroundings: true };
        Self { outcome, status: JobStatus::Cancelled, exit_code: None, message: why, started_at: None, ended_at: now, report: None }
    }
}

/// Reads the end of a job.
pub(super) fn read(end: End, gone: bool, words: &Words, asked: &Asked<'_>) -> Ending {
    match end {
        End::Reported(report) => reported(report, gone, words, asked),
        End::NotStarted { why, surroundings } => match asked.stopped {
            Some(reason @ (StopReason::Person(_) | StopReason::NotWanted)) => stopped(reason, true, None, asked),
            // At its start deadline, say: people read that it never started.
            Some(StopReason::Deadline) | None => Ending {
                outcome: Outcome::NotStarted { why: why.clone(), surroundings },
                status: JobStatus::Failed,
                exit_code: None,
                message: why,
                started_at: None,
                ended_at: asked.now,
                report: None,
            },
        },
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

fn reported(mut report: Box<Report>, gone: bool, words: &Words, asked: &Asked<'_>) -> Ending {
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
    let started_at = nanos(&report.start_timestamp_ns).map_or(asked.decided_at, Timestamp::from_millis);
    let ended_at = started_at.plus_ms(nanos(&report.duration_ns).unwrap_or(0));
    if let Some(reason) = asked.stopped {
        return Ending {
            started_at: Some(started_at),
            ended_at,
            exit_code: report.exit_code,
            ..stopped(reason, gone, Some(report), asked)
        };
    }
    let code = report.exit_code.or_else(|| report.signal.as_deref().map(signal_code));
    if let Some(why) = still_runs(&report, code, gone, asked) {
        return Ending {
            outcome: Outcome::Unknown { why: why.clone(), gone },
            status: JobStatus::Failed,
            exit_code: report.exit_code,
            message: why,
            started_at: Some(started_at),
            ended_at,
            report: Some(report),
        };
    }
    if report.timed_out {
        return Ending {
            outcome: Outcome::TimedOut,
            status: JobStatus::Failed,
            exit_code: report.exit_code,
            message: "ran past its timeout and was stopped".to_owned(),
            started_at: Some(started_at),
            ended_at,
            report: Some(report),
        };
    }
    let Some(code) = code else {
        let why = "the wrapper did not see the command end".to_owned();
        return Ending {
            outcome: Outcome::Unknown { why: why.clone(), gone },
            status: JobStatus::Unknown,
            exit_code: None,
            message: why,
            started_at: Some(started_at),
            ended_at,
            report: Some(report),
        };
    };
    let structured = report.structured.as_ref();
    let objects = (asked.kind == JobKind::Fetch && asked.mode == Some(FetchMode::StructuredOutput))
        .then(|| document::<FetchOutput>(structured).map(|output| output.objects));
    let info = (asked.kind == JobKind::GetInfo).then(|| document::<GetInfoOutput>(structured).map(|output| output.outputs));
    let unreadable =
        objects.as_ref().and_then(|objects| objects.as_ref().err()).or(info.as_ref().and_then(|info| info.as_ref().err())).cloned();
    let has_meaning = code == 0 || (code == 2 && asked.kind == JobKind::Fetch && asked.mode == Some(FetchMode::ExitCode));
    if let (true, None, Some(why)) = (has_meaning, &unreadable, &report.bad_output) {
        return Ending {
            outcome: Outcome::BadOutput { why: format!("ended well, but {why}") },
            status: JobStatus::Failed,
            exit_code: Some(code),
            message: why.clone(),
            started_at: Some(started_at),
            ended_at,
            report: Some(report),
        };
    }
    let (status, message) = match (has_meaning, unreadable) {
        (true, None) => (JobStatus::Succeeded, String::new()),
        (true, Some(why)) => (JobStatus::Failed, why),
        (false, _) => (JobStatus::Failed, failed_message(&report, code, words)),
    };
    let said = if has_meaning { words.headline() } else { failed_said(&report, words) };
    let output = match &objects {
        Some(Ok(objects)) => Some(digest(objects)),
        _ => report.stdout_blob_id,
    };
    let seen = if asked.kind == JobKind::Fetch {
        let (plan, explanation) = (file(&report, PLAN), file(&report, EXPLANATION));
        Seen { objects, plan, explanation, explanation_text: words.explanation.clone(), output }
    } else {
        Seen::default()
    };
    Ending {
        outcome: Outcome::Exited { code, started_at, ended_at, said: said.unwrap_or_default(), seen: Box::new(seen), info },
        status,
        exit_code: Some(code),
        message,
        started_at: Some(started_at),
        ended_at,
        report: Some(report),
    }
}

/// Of what an approval is bound to: the same work has the same. When things happened is told anew by each fetch.
fn digest(objects: &[RuntimeObject]) -> BlobId {
    let lasting: Vec<_> = objects.iter().map(|object| RuntimeObject { debug_events: Vec::new(), ..object.clone() }).collect();
    BlobId::of(&serde_json::to_vec(&lasting).expect("our own types have JSON forms"))
}

/// Why an apply that ended is not over: something of it could not be killed and goes on working, whatever the exit code says.
/// What was meant to stay (`leaveRunning`) is no part of the apply.
fn still_runs(report: &Report, code: Option<i32>, gone: bool, asked: &Asked<'_>) -> Option<String> {
    if gone || report.left_running || asked.kind != JobKind::Apply {
        return None;
    }
    let ended = match code {
        _ if report.timed_out => "ran past its timeout".to_owned(),
        Some(code) => format!("ended with exit code {code}"),
        None => return None,
    };
    let left = report.leaked.iter().filter(|left| left.alive).map(|left| format!("process {} (`{}`)", left.pid, left.argv.join(" ")));
    let left: Vec<_> = left.take(LEFT_SHOWN).collect();
    Some(format!("{ended}, but some of its processes could not be stopped and still run: {}", left.join(", ")))
}

/// What a stop that was asked for came to. A command that ended by itself while it was being stopped counts as stopped:
/// what it did before is for the next fetch to find out.
fn stopped(reason: &StopReason, gone: bool, report: Option<Box<Report>>, asked: &Asked<'_>) -> Ending {
    let (outcome, status, message) = match reason {
        StopReason::Deadline if gone => (Outcome::TimedOut, JobStatus::Failed, "ran past its timeout and was stopped".to_owned()),
        // What may still run keeps the next apply from starting.
        StopReason::Deadline => (Outcome::Cancelled { gone }, JobStatus::Failed, "ran past its timeout and was stopped".to_owned()),
        StopReason::Person(who) => (Outcome::Cancelled { gone }, JobStatus::Cancelled, format!("cancelled by {who}")),
        StopReason::NotWanted => (Outcome::Cancelled { gone }, JobStatus::Cancelled, "stopped because it was no longer wanted".to_owned()),
    };
    let message = if gone { message } else { format!("{message}; some of its processes are still there") };
    Ending { outcome, status, exit_code: None, message, started_at: None, ended_at: asked.now, report }
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

/// What says most about a failure: that memory ran out comes before what the command printed, which could not know it.
fn failed_said(report: &Report, words: &Words) -> Option<String> {
    match (report.oom_killed, &words.stderr) {
        (false, said) => said.clone(),
        (true, Some(said)) => Some(format!("out of memory; {said}")),
        (true, None) => Some("out of memory".to_owned()),
    }
}

/// Number of SIGRTMIN for programs on Linux, where the C library keeps the first two of the kernel's for itself.
const SIGRTMIN: i32 = 34;

/// The exit code that a shell would give for the signal; 128 when its number is unknown.
fn signal_code(name: &str) -> i32 {
    let real_time = || name.strip_prefix("SIGRTMIN").map(|rest| SIGRTMIN + rest.parse().unwrap_or(0));
    let number = name.parse::<nix::sys::signal::Signal>().map(|signal| signal as i32).ok().or_else(real_time);
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
        return Err("its structured output was not checked by the wrapper, which its image lacks; put `pvn-wrapper exec` before the command, or set `wrapper: {inject: true}` on the Kubernetes runtime".to_owned());
    };
    match &structured.value {
        Some(value) if structured.errors.is_empty() => {
            serde_json::from_value(value.clone()).map_err(|error| format!("its structured output is not what was expected: {error}"))
        }
        _ => Err(problems(&structured.errors)),
    }
}

fn problems(errors: &[OutputError]) -> String {
    let line = |error: &OutputError| {
        if error.pointer.is_empty() { error.message.clone() } else { format!("{}: {}", error.pointer, error.message) }
    };
    let shown: Vec<_> = errors.iter().take(ERRORS_SHOWN).map(line).collect();
    let more = errors.len().saturating_sub(ERRORS_SHOWN);
    let more = if more == 0 { String::new() } else { format!("; and {more} more") };
    format!("its structured output is wrong: {}{more}", shown.join("; "))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const FETCH: Asked<'static> = Asked {
        kind: JobKind::Fetch,
        mode: Some(FetchMode::ExitCode),
        stopped: None,
        decided_at: Timestamp::from_millis(1),
        now: Timestamp::from_millis(9000),
    };

    fn report(value: serde_json::Value) -> End {
        let mut whole = json!({"exitCode": null, "stdoutBytes": 0, "stderrBytes": 0, "version": "1", "startTimestampNs": "5000000000", "durationNs": "1500000000"});
        whole.as_object_mut().unwrap().extend(value.as_object().unwrap().clone());
        End::Reported(Box::new(serde_json::from_value(whole).unwrap()))
    }

    fn check(value: serde_json::Value, asked: &Asked<'_>, status: JobStatus, exit_code: Option<i32>, message: &str) -> Outcome {
        let ending = read(report(value), true, &Words::default(), asked);
        assert_eq!((ending.status, ending.exit_code, ending.message.as_str()), (status, exit_code, message));
        ending.outcome
    }

    #[test]
    fn an_exit_code_succeeds_where_it_has_a_meaning() {
        check(json!({"exitCode": 0}), &FETCH, JobStatus::Succeeded, Some(0), "");
        check(json!({"exitCode": 2}), &FETCH, JobStatus::Succeeded, Some(2), "");
        check(json!({"exitCode": 3}), &FETCH, JobStatus::Failed, Some(3), "ended with exit code 3");
        let apply = Asked { kind: JobKind::Apply, ..FETCH };
        check(json!({"exitCode": 2}), &apply, JobStatus::Failed, Some(2), "ended with exit code 2");
        check(json!({"signal": "SIGKILL"}), &apply, JobStatus::Failed, Some(137), "killed by SIGKILL");
        check(json!({"signal": "SIGRTMIN+3"}), &apply, JobStatus::Failed, Some(165), "killed by SIGRTMIN+3");
    }

    #[test]
    fn a_failed_job_says_its_last_line_of_stderr_and_work_what_was_printed() {
        let words = Words { explanation: None, stdout: Some("1 to add".into()), stderr: Some("no credentials".into()) };
        let ending = |code: i32, asked| read(report(json!({"exitCode": code})), true, &words, asked);
        let said = |ending: Ending| match ending.outcome {
            Outcome::Exited { said, .. } => (ending.message, said),
            other => panic!("{other:?}"),
        };
        assert_eq!(said(ending(2, &FETCH)), (String::new(), "1 to add".into()));
        assert_eq!(said(ending(1, &FETCH)), ("ended with exit code 1: no credentials".into(), "no credentials".into()));
        let apply = Asked { kind: JobKind::Apply, ..FETCH };
        assert_eq!(said(ending(2, &apply)).0, "ended with exit code 2: no credentials");
        let killed = read(report(json!({"signal": "SIGKILL", "oomKilled": true})), true, &words, &apply);
        assert_eq!(said(killed), ("killed by SIGKILL (out of memory): no credentials".into(), "out of memory; no credentials".into()));
        let by_node = read(report(json!({"exitCode": 137, "oomKilled": true})), true, &Words::default(), &apply);
        assert_eq!(said(by_node), ("ended with exit code 137 (out of memory)".into(), "out of memory".into()));
    }

    #[test]
    fn rule_15_when_things_happened_is_no_part_of_what_is_approved() {
        let asked = Asked { mode: Some(FetchMode::StructuredOutput), ..FETCH };
        let digest = |message: &str, at: &str| {
            let event = json!({"timestamp": at, "message": "looked"});
            let value = json!({"objects": [{"name": "o", "objectType": "T", "message": message, "debugEvents": [event]}]});
            let ending =
                read(report(json!({"exitCode": 0, "structured": {"kind": "fetch", "value": value}})), true, &Words::default(), &asked);
            match ending.outcome {
                Outcome::Exited { seen, .. } => seen.fingerprint().expect("it has one"),
                other => panic!("{other:?}"),
            }
        };
        assert_eq!(digest("down", "2026-01-01T00:00:00Z"), digest("down", "2026-01-01T00:00:05Z"));
        assert_ne!(digest("down", "2026-01-01T00:00:00Z"), digest("gone", "2026-01-01T00:00:00Z"));
    }

    #[test]
    fn times_are_the_wrappers() {
        let ending = read(report(json!({"exitCode": 0})), true, &Words::default(), &FETCH);
        assert_eq!((ending.started_at, ending.ended_at), (Some(Timestamp::from_millis(5000)), Timestamp::from_millis(6500)));
    }

    #[test]
    fn bad_input_command_that_is_not_there_never_started() {
        let outcome = check(json!({"execError": "no such file"}), &FETCH, JobStatus::Failed, None, "no such file");
        assert_eq!(outcome, Outcome::NotStarted { why: "no such file".into(), surroundings: false });
    }

    #[test]
    fn bad_input_output_that_is_not_json_fails_the_job_with_the_reason() {
        let structured = Asked { mode: Some(FetchMode::StructuredOutput), ..FETCH };
        let errors =
            json!({"exitCode": 0, "structured": {"kind": "fetch", "errors": [{"pointer": "/objects/0", "message": "name is missing"}]}});
        let outcome = check(errors, &structured, JobStatus::Failed, Some(0), "its structured output is wrong: /objects/0: name is missing");
        let Outcome::Exited { seen, .. } = outcome else { panic!("{outcome:?}") };
        assert!(seen.objects.unwrap().unwrap_err().contains("name is missing"));
    }

    #[test]
    fn a_declared_output_that_is_missing_fails_the_job_although_the_command_was_fine() {
        let left = json!({"exitCode": 0, "badOutput": "output `plan`: there is no file tf.plan"});
        let outcome = check(left, &FETCH, JobStatus::Failed, Some(0), "output `plan`: there is no file tf.plan");
        assert_eq!(outcome, Outcome::BadOutput { why: "ended well, but output `plan`: there is no file tf.plan".into() });
        let noted = json!({"exitCode": 3, "badOutput": "output `plan`: there is no file tf.plan"});
        check(noted, &FETCH, JobStatus::Failed, Some(3), "ended with exit code 3");
    }

    #[test]
    fn what_may_still_run_after_its_deadline_is_told_so() {
        let late = Asked { kind: JobKind::Apply, stopped: Some(&StopReason::Deadline), ..FETCH };
        let ending = read(report(json!({"exitCode": 143})), false, &Words::default(), &late);
        assert_eq!((ending.outcome, ending.status), (Outcome::Cancelled { gone: false }, JobStatus::Failed));
        let never = read(End::NotStarted { why: "no process slots".into(), surroundings: true }, true, &Words::default(), &late);
        assert_eq!(never.outcome, Outcome::NotStarted { why: "no process slots".into(), surroundings: true });
    }

    #[test]
    fn p1_an_apply_with_a_process_that_could_not_be_stopped_is_not_known_to_be_gone_however_it_ended() {
        let apply = Asked { kind: JobKind::Apply, ..FETCH };
        let left = |more: serde_json::Value| {
            let mut whole = json!({"leaked": [{"pid": 7, "argv": ["sudo", "apply"], "alive": true}]});
            whole.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            whole
        };
        for (how, said) in [
            (json!({"timedOut": true, "signal": "SIGKILL"}), "ran past its timeout"),
            (json!({"exitCode": 0}), "ended with exit code 0"),
            (json!({"exitCode": 75}), "ended with exit code 75"),
        ] {
            let ending = read(report(left(how.clone())), false, &Words::default(), &apply);
            let Outcome::Unknown { why, gone: false } = ending.outcome else { panic!("{:?}", ending.outcome) };
            assert!(why.contains(said) && why.contains("process 7 (`sudo apply`)"), "{why}");
            assert_eq!(ending.status, JobStatus::Failed);
            let later = read(report(left(how)), true, &Words::default(), &apply).outcome;
            assert!(!matches!(later, Outcome::Unknown { .. }), "{later:?}: told once more when it is gone");
        }
        let meant = read(report(left(json!({"exitCode": 0, "leftRunning": true}))), false, &Words::default(), &apply);
        assert!(matches!(meant.outcome, Outcome::Exited { code: 0, .. }), "what was meant to stay is no part of it");
        let fetch = read(report(left(json!({"exitCode": 2}))), false, &Words::default(), &FETCH);
        assert!(matches!(fetch.outcome, Outcome::Exited { code: 2, .. }), "a fetch's answer counts");
    }

    #[test]
    fn structured_output_reaches_the_engine_as_objects() {
        let structured = Asked { mode: Some(FetchMode::StructuredOutput), ..FETCH };
        let value = json!({"objects": [{"name": "web", "objectType": "PROCESS"}]});
        let outcome =
            check(json!({"exitCode": 0, "structured": {"kind": "fetch", "value": value}}), &structured, JobStatus::Succeeded, Some(0), "");
        let Outcome::Exited { seen, .. } = outcome else { panic!("{outcome:?}") };
        assert_eq!(seen.objects.unwrap().unwrap()[0].name, "web");
    }

    #[test]
    fn what_was_stopped_is_not_what_ran() {
        let person = StopReason::Person("eve".into());
        let asked = Asked { stopped: Some(&person), ..FETCH };
        let outcome = check(json!({"signal": "SIGTERM"}), &asked, JobStatus::Cancelled, None, "cancelled by eve");
        assert_eq!(outcome, Outcome::Cancelled { gone: true });
        let asked = Asked { stopped: Some(&StopReason::Deadline), ..FETCH };
        assert_eq!(read(report(json!({"exitCode": 0})), true, &Words::default(), &asked).outcome, Outcome::TimedOut);
        assert_eq!(
            check(json!({"timedOut": true, "signal": "SIGTERM"}), &FETCH, JobStatus::Failed, None, "ran past its timeout and was stopped"),
            Outcome::TimedOut
        );
    }

    #[test]
    fn an_unknown_end_stays_unknown_unless_all_of_it_is_known_to_be_gone_after_a_stop() {
        let end = || End::Unknown { why: "no report".into(), report: None };
        let person = StopReason::Person("eve".into());
        let asked = Asked { stopped: Some(&person), ..FETCH };
        assert_eq!(read(end(), true, &Words::default(), &FETCH).status, JobStatus::Unknown);
        let lost = read(end(), false, &Words::default(), &FETCH).outcome;
        assert_eq!(lost, Outcome::Unknown { why: "no report".into(), gone: false }, "P1 needs to know that it may still run");
        assert_eq!(read(end(), false, &Words::default(), &asked).status, JobStatus::Unknown);
        assert_eq!(read(end(), true, &Words::default(), &asked).status, JobStatus::Cancelled);
    }
}
