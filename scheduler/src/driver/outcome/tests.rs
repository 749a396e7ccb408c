//! What the end of a job comes to.

use serde_json::json;

use super::*;

mod fetches;

const FETCH: JobPurpose<'static> = JobPurpose {
    kind: JobKind::Fetch,
    mode: Some(FetchAnswer::ExitCode),
    work: None,
    stopped: None,
    stopped_at: None,
    decided_at: Timestamp::from_millis(1),
    now: Timestamp::from_millis(9000),
};

fn report(value: serde_json::Value) -> End {
    let mut whole = json!({"exitCode": null, "stdoutBytes": 0, "stderrBytes": 0, "version": "1", "startTimestampNs": "5000000000", "durationNs": "1500000000"});
    whole.as_object_mut().unwrap().extend(value.as_object().unwrap().clone());
    End::Reported(Box::new(serde_json::from_value(whole).unwrap()))
}

fn check(
    value: serde_json::Value,
    asked: &JobPurpose<'_>,
    status: JobStatus,
    exit_code: Option<i32>,
    message: &str,
) -> Outcome {
    let ending = read(report(value), true, &Words::default(), asked);
    assert_eq!(
        (ending.status, ending.exit_code, ending.message.as_str()),
        (status, exit_code, message)
    );
    ending.outcome
}

#[test]
fn an_exit_code_succeeds_where_it_has_a_meaning() {
    check(json!({"exitCode": 0}), &FETCH, JobStatus::Succeeded, Some(0), "");
    check(json!({"exitCode": 2}), &FETCH, JobStatus::Succeeded, Some(2), "");
    check(json!({"exitCode": 3}), &FETCH, JobStatus::Failed, Some(3), "ended with exit code 3");
    let codes = WorkExitCodes::chosen(&[10]);
    let chosen = JobPurpose { work: Some(&codes), ..FETCH };
    check(json!({"exitCode": 10}), &chosen, JobStatus::Succeeded, Some(10), "");
    check(json!({"exitCode": 2}), &chosen, JobStatus::Failed, Some(2), "ended with exit code 2");
    let apply = JobPurpose { kind: JobKind::Apply, ..FETCH };
    check(json!({"exitCode": 2}), &apply, JobStatus::Failed, Some(2), "ended with exit code 2");
    check(
        json!({"signal": "SIGKILL"}),
        &apply,
        JobStatus::Failed,
        Some(137),
        "was killed by SIGKILL",
    );
    check(
        json!({"signal": "SIGRTMIN+3"}),
        &apply,
        JobStatus::Failed,
        Some(165),
        "was killed by SIGRTMIN+3",
    );
}

#[test]
fn a_failed_job_says_its_last_line_of_stderr_and_work_what_was_printed() {
    let words = Words {
        stdout: Some("1 to add".into()),
        stderr: Some("no credentials".into()),
        ..Words::default()
    };
    let ending = |code: i32, asked| read(report(json!({"exitCode": code})), true, &words, asked);
    let said = |ending: Ending| match ending.outcome {
        Outcome::Exited { said, .. } => (ending.message, said),
        other => panic!("{other:?}"),
    };
    assert_eq!(said(ending(2, &FETCH)), (String::new(), "1 to add".into()));
    assert_eq!(
        said(ending(1, &FETCH)),
        ("ended with exit code 1: no credentials".into(), "no credentials".into())
    );
    let apply = JobPurpose { kind: JobKind::Apply, ..FETCH };
    assert_eq!(said(ending(2, &apply)).0, "ended with exit code 2: no credentials");
    let killed =
        read(report(json!({"signal": "SIGKILL", "oomKilled": true})), true, &words, &apply);
    assert_eq!(
        said(killed),
        (
            "was killed by SIGKILL (out of memory): no credentials".into(),
            "out of memory; no credentials".into()
        )
    );
    let by_node =
        read(report(json!({"exitCode": 137, "oomKilled": true})), true, &Words::default(), &apply);
    assert_eq!(
        said(by_node),
        ("ended with exit code 137 (out of memory)".into(), "out of memory".into())
    );
}

#[test]
fn times_are_the_wrappers() {
    let ending = read(report(json!({"exitCode": 0})), true, &Words::default(), &FETCH);
    assert_eq!(
        (ending.started_at, ending.ended_at),
        (Some(Timestamp::from_millis(5000)), Timestamp::from_millis(6500))
    );
}

#[test]
fn bad_input_command_that_is_not_there_never_started() {
    let outcome = check(
        json!({"execError": "no such file"}),
        &FETCH,
        JobStatus::Failed,
        None,
        "no such file",
    );
    assert_eq!(outcome, Outcome::NotStarted { why: "no such file".into(), surroundings: false });
}

#[test]
fn bad_input_output_that_is_not_json_fails_the_job_with_the_reason() {
    let structured = JobPurpose { mode: Some(FetchAnswer::StructuredOutput), ..FETCH };
    let errors = json!({"exitCode": 0, "structured": {"kind": "fetch", "errors": [{"pointer": "/objects/0", "message": "name is missing"}]}});
    let outcome = check(
        errors,
        &structured,
        JobStatus::Failed,
        Some(0),
        "its structured output is wrong: /objects/0: name is missing",
    );
    let Outcome::Exited { seen, .. } = outcome else { panic!("{outcome:?}") };
    assert!(seen.objects.unwrap().unwrap_err().contains("name is missing"));
}

#[test]
fn a_declared_output_that_is_missing_fails_the_job_although_the_command_was_fine() {
    let left = json!({"exitCode": 0, "badOutput": "output `plan`: there is no file tf.plan"});
    let outcome =
        check(left, &FETCH, JobStatus::Failed, Some(0), "output `plan`: there is no file tf.plan");
    assert_eq!(
        outcome,
        Outcome::BadOutput {
            why: "ended well, but output `plan`: there is no file tf.plan".into()
        }
    );
    let noted = json!({"exitCode": 3, "badOutput": "output `plan`: there is no file tf.plan"});
    check(noted, &FETCH, JobStatus::Failed, Some(3), "ended with exit code 3");
}

#[test]
fn what_may_still_run_after_its_deadline_is_told_so() {
    let late = JobPurpose { kind: JobKind::Apply, stopped: Some(&StopReason::Deadline), ..FETCH };
    let ending = read(report(json!({"exitCode": 143})), false, &Words::default(), &late);
    assert_eq!(
        (ending.outcome, ending.status),
        (Outcome::Cancelled { gone: false }, JobStatus::Failed)
    );
    let never = read(
        End::NotStarted { why: "no process slots".into(), surroundings: true },
        true,
        &Words::default(),
        &late,
    );
    assert_eq!(
        never.outcome,
        Outcome::NotStarted { why: "no process slots".into(), surroundings: true }
    );
}

#[test]
fn p1_an_apply_with_a_process_that_could_not_be_stopped_is_not_known_to_be_gone_however_it_ended() {
    let apply = JobPurpose { kind: JobKind::Apply, ..FETCH };
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
        let Outcome::Unknown { why, gone: false } = ending.outcome else {
            panic!("{:?}", ending.outcome)
        };
        assert!(why.contains(said) && why.contains("process 7 (`sudo apply`)"), "{why}");
        assert_eq!(ending.status, JobStatus::Failed);
        let later = read(report(left(how)), true, &Words::default(), &apply).outcome;
        assert!(
            !matches!(later, Outcome::Unknown { .. }),
            "{later:?}: told once more when it is gone"
        );
    }
    let meant = read(
        report(left(json!({"exitCode": 0, "leftRunning": true}))),
        false,
        &Words::default(),
        &apply,
    );
    assert!(
        matches!(meant.outcome, Outcome::Exited { code: 0, .. }),
        "what was meant to stay is no part of it"
    );
    let fetch = read(report(left(json!({"exitCode": 2}))), false, &Words::default(), &FETCH);
    assert!(matches!(fetch.outcome, Outcome::Exited { code: 2, .. }), "a fetch's answer counts");
}

#[test]
fn what_an_apply_left_behind_is_said_although_it_succeeded() {
    let apply = JobPurpose { kind: JobKind::Apply, ..FETCH };
    let left = |left_running: bool, count: usize| {
        let leaked: Vec<_> =
            (0..count).map(|pid| json!({"pid": pid, "argv": ["./server", "--port", "80"], "alive": left_running})).collect();
        json!({"exitCode": 0, "leftRunning": left_running, "leaked": leaked})
    };
    let one = "left 1 process behind, which was stopped: `./server --port 80`; what is to go on \
               is started by a service manager, or with `leaveRunning: true` where the runtime is \
               local";
    let outcome = check(left(false, 1), &apply, JobStatus::Succeeded, Some(0), one);
    assert!(matches!(outcome, Outcome::Exited { said, .. } if said == one));
    let ending = read(report(left(false, 5)), true, &Words::default(), &apply);
    let three = "left 5 processes behind, which were stopped: `./server --port 80`, `./server \
                 --port 80`, `./server --port 80`; what";
    assert!(ending.message.starts_with(three), "{}", ending.message);
    check(left(true, 1), &apply, JobStatus::Succeeded, Some(0), "");
    check(left(false, 1), &FETCH, JobStatus::Succeeded, Some(0), "");
}

#[test]
fn what_somebody_else_stopped_is_no_answer_whatever_its_exit_code() {
    for kind in [JobKind::Fetch, JobKind::Apply] {
        for code in [0, 2, 143] {
            let ending = read(
                report(json!({"exitCode": code, "stoppedBy": "SIGTERM"})),
                true,
                &Words::default(),
                &JobPurpose { kind, ..FETCH },
            );
            let Outcome::Unknown { why, gone: true } = ending.outcome else {
                panic!("{:?}", ending.outcome)
            };
            assert!(why.contains("SIGTERM") && why.contains(&format!("exit code {code}")), "{why}");
            assert_eq!((ending.status, ending.exit_code), (JobStatus::Unknown, Some(code)));
        }
    }
    let asked = JobPurpose { stopped: Some(&StopReason::Person("eve".to_owned())), ..FETCH };
    let ending = read(
        report(json!({"exitCode": 0, "stoppedBy": "SIGTERM"})),
        true,
        &Words::default(),
        &asked,
    );
    assert_eq!(ending.status, JobStatus::Cancelled, "it was pvn");
}

#[test]
fn what_was_stopped_is_not_what_ran() {
    let person = StopReason::Person("eve".into());
    let asked = JobPurpose { stopped: Some(&person), ..FETCH };
    let outcome =
        check(json!({"signal": "SIGTERM"}), &asked, JobStatus::Cancelled, None, "cancelled by eve");
    assert_eq!(outcome, Outcome::Cancelled { gone: true });
    let asked = JobPurpose { stopped: Some(&StopReason::Deadline), ..FETCH };
    assert_eq!(
        read(report(json!({"exitCode": 0})), true, &Words::default(), &asked).outcome,
        Outcome::TimedOut
    );
    assert_eq!(
        check(
            json!({"timedOut": true, "signal": "SIGTERM"}),
            &FETCH,
            JobStatus::Failed,
            None,
            "ran past its timeout and was stopped"
        ),
        Outcome::TimedOut
    );
}

#[test]
fn p6_what_had_ended_by_itself_before_it_was_asked_to_stop_is_what_it_is() {
    let person = StopReason::Person("eve".into());
    for why in [&person, &StopReason::Deadline, &StopReason::NotWanted] {
        // It ended at 6.5 s by its wrapper's clock.
        let stopped_at = |ms: i64| JobPurpose {
            kind: JobKind::Apply,
            stopped: Some(why),
            stopped_at: Some(Timestamp::from_millis(ms)),
            ..FETCH
        };
        check(json!({"exitCode": 0}), &stopped_at(16_500), JobStatus::Succeeded, Some(0), "");
        check(
            json!({"exitCode": 3}),
            &stopped_at(16_500),
            JobStatus::Failed,
            Some(3),
            "ended with exit code 3",
        );
        let ending = |value: serde_json::Value, ms: i64| {
            read(report(value), true, &Words::default(), &stopped_at(ms)).outcome
        };
        let stopped = ending(json!({"exitCode": 0}), 16_499);
        assert!(
            !matches!(stopped, Outcome::Exited { .. }),
            "the clocks may differ by so much: {stopped:?}"
        );
        for was_asked in [
            json!({"stoppedBy": "SIGTERM"}),
            json!({"timedOut": true}),
            json!({"signal": "SIGTERM", "exitCode": null}),
            json!({"startTimestampNs": ""}),
            json!({"startTimestampNs": "0"}),
        ] {
            let mut whole = json!({"exitCode": 0});
            whole.as_object_mut().unwrap().extend(was_asked.as_object().unwrap().clone());
            let stopped = ending(whole, 100_000);
            assert!(!matches!(stopped, Outcome::Exited { .. }), "{was_asked}: {stopped:?}");
        }
    }
}

#[test]
fn an_unknown_end_stays_unknown_unless_all_of_it_is_known_to_be_gone_after_a_stop() {
    let end = || End::Unknown { why: "no report".into(), report: None };
    let person = StopReason::Person("eve".into());
    let asked = JobPurpose { stopped: Some(&person), ..FETCH };
    assert_eq!(read(end(), true, &Words::default(), &FETCH).status, JobStatus::Unknown);
    let lost = read(end(), false, &Words::default(), &FETCH).outcome;
    assert_eq!(
        lost,
        Outcome::Unknown { why: "no report".into(), gone: false },
        "P1 needs to know that it may still run"
    );
    assert_eq!(read(end(), false, &Words::default(), &asked).status, JobStatus::Unknown);
    assert_eq!(read(end(), true, &Words::default(), &asked).status, JobStatus::Cancelled);
}
