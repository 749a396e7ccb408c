//! Which of several words about one end counts.

use proptest::prelude::*;

use super::*;

fn report(code: i32) -> Box<Report> {
    Box::new(Report { exit_code: Some(code), ..Report::default() })
}

fn exit(code: i32) -> Exit {
    Exit { code, oom_killed: false, started_at: None, ended_at: None }
}

fn check(learned: OutcomeEvidence, expected: Option<i32>) {
    match learned.end(|| "nobody told".to_owned()).0 {
        End::Reported(report) => assert_eq!(report.exit_code, expected),
        End::Unknown { why, .. } => assert_eq!((expected, why.as_str()), (None, "nobody told")),
        End::NotStarted { .. } | End::InputLost { .. } => panic!("it started"),
    }
}

/// A command that ran for a second from here on, by its wrapper's clock.
const STARTED_S: i64 = 1_000;

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_millis((STARTED_S + seconds) * 1000)
}

/// A report of a command that ran from 0 s to 5 s.
fn timed(code: i32) -> Box<Report> {
    let nanos = |seconds: i64| (i128::from(seconds) * 1_000_000_000).to_string();
    Box::new(Report {
        start_timestamp_ns: nanos(STARTED_S),
        duration_ns: nanos(5),
        ..*report(code)
    })
}

/// A container that ended at 6 s.
fn container(code: i32) -> Option<Exit> {
    Some(Exit { ended_at: Some(at(6)), ..exit(code) })
}

fn taken(seconds: i64) -> Option<Taken> {
    Some(Taken { why: "deleted".to_owned(), at: Some(at(seconds)) })
}

fn job(is_complete: bool) -> Option<Decides> {
    Some(Decides::Job(Some(JobEnd { is_complete, why: "BackoffLimitExceeded".to_owned() })))
}

/// What it comes to, in a word.
fn word(learned: OutcomeEvidence) -> String {
    match learned.end(|| "nothing".to_owned()) {
        (End::Reported(report), _) => {
            match (&report.exec_error, &report.bad_output, report.timed_out) {
                (Some(_), ..) => "never".to_owned(),
                (_, Some(_), _) => format!("bad {}", report.exit_code.unwrap_or(-1)),
                (_, _, true) => "timed out".to_owned(),
                _ => format!("exit {}", report.exit_code.unwrap_or(-1)),
            }
        }
        (End::NotStarted { .. } | End::InputLost { .. }, _) => "never".to_owned(),
        (End::Unknown { why, .. }, gone) => {
            format!("unknown{}: {why}", if gone { "" } else { ", not gone" })
        }
    }
}

/// The rule: whose word is the outcome, what the report says, what the container ended with, what
/// else the place knows, and the end.
#[test]
#[expect(clippy::too_many_lines, reason = "a table")]
fn what_the_place_knows_counts_beside_any_report() {
    type Row = (
        Option<Decides>,
        Option<Box<Report>>,
        Option<Exit>,
        Option<Taken>,
        Option<&'static str>,
        &'static str,
    );
    let image = || Some(Decides::Container);
    let none = || Some(Decides::Job(None));
    let gone = Some("lost");
    let with = |report: Report| Some(Box::new(report));
    let rows: Vec<Row> = vec![
        // A wrapper that pvn put before the command.
        (None, Some(timed(0)), container(0), None, None, "exit 0"),
        (None, Some(timed(0)), None, None, gone, "exit 0"),
        (None, Some(timed(0)), container(0), taken(3), None, "unknown: deleted"),
        (None, Some(timed(7)), container(7), taken(3), None, "unknown: deleted"),
        (None, Some(timed(0)), container(0), taken(5), None, "unknown: deleted"),
        (None, Some(timed(0)), container(0), taken(6), None, "exit 0"),
        (
            None,
            Some(timed(0)),
            container(0),
            Some(Taken { why: "evicted".to_owned(), at: None }),
            None,
            "unknown: evicted",
        ),
        (
            None,
            with(Report { stopped_by: Some("SIGTERM".to_owned()), ..*timed(0) }),
            container(0),
            taken(3),
            None,
            "unknown: deleted",
        ),
        (
            None,
            with(Report { timed_out: true, ..*timed(0) }),
            container(0),
            taken(3),
            None,
            "timed out",
        ),
        (
            None,
            with(Report { exec_error: Some("no".to_owned()), ..Report::default() }),
            container(127),
            taken(3),
            None,
            "never",
        ),
        (None, None, container(0), taken(3), None, "unknown: deleted"),
        (None, None, container(0), taken(8), None, "exit 0"),
        (None, None, container(9), None, None, "exit 9"),
        // One that the image brings.
        (image(), Some(timed(0)), container(0), None, None, "exit 0"),
        (image(), Some(timed(2)), container(2), None, None, "exit 2"),
        (
            image(),
            with(Report { bad_output: Some("wrong".to_owned()), ..*timed(0) }),
            container(65),
            None,
            None,
            "bad 0",
        ),
        (image(), Some(timed(0)), container(9), None, None, "exit 9"),
        (image(), Some(timed(3)), container(0), None, None, "exit 3"),
        (image(), Some(timed(0)), None, None, gone, "unknown: lost"),
        (image(), Some(timed(3)), None, None, gone, "unknown: lost"),
        (image(), Some(timed(0)), None, None, None, "unknown, not gone: nothing"),
        (image(), with(Report { first_process: true, ..*timed(0) }), None, None, gone, "exit 0"),
        (image(), with(Report { first_process: true, ..*timed(3) }), None, None, gone, "exit 3"),
        (
            image(),
            with(Report { first_process: true, ..*timed(0) }),
            None,
            taken(3),
            gone,
            "unknown: deleted",
        ),
        (
            image(),
            with(Report {
                first_process: true,
                stopped_by: Some("SIGTERM".to_owned()),
                ..*timed(0)
            }),
            None,
            None,
            gone,
            "unknown: lost",
        ),
        // It was killed while it tried to deliver.
        (
            image(),
            with(Report { first_process: true, ..*timed(0) }),
            container(137),
            None,
            None,
            "exit 0",
        ),
        (
            image(),
            with(Report { first_process: true, ..*timed(3) }),
            container(137),
            taken(6),
            None,
            "exit 3",
        ),
        (
            image(),
            with(Report { first_process: true, ..*timed(0) }),
            container(137),
            taken(3),
            None,
            "unknown: deleted",
        ),
        (
            image(),
            with(Report {
                first_process: true,
                exec_error: Some("no".to_owned()),
                ..Report::default()
            }),
            container(137),
            None,
            None,
            "never",
        ),
        (
            image(),
            with(Report {
                first_process: true,
                stopped_by: Some("SIGTERM".to_owned()),
                ..*timed(0)
            }),
            container(137),
            None,
            None,
            "exit 137",
        ),
        (image(), Some(timed(0)), container(0), taken(5), None, "unknown: deleted"),
        (image(), Some(timed(0)), container(137), taken(6), None, "unknown: deleted"),
        (image(), Some(timed(0)), container(0), taken(7), None, "exit 0"),
        (
            image(),
            with(Report { exec_error: Some("no".to_owned()), ..Report::default() }),
            container(126),
            None,
            None,
            "never",
        ),
        (
            image(),
            with(Report { exec_error: Some("no".to_owned()), ..Report::default() }),
            container(0),
            None,
            None,
            "exit 127",
        ),
        (
            image(),
            with(Report { exec_error: Some("no".to_owned()), ..Report::default() }),
            container(4),
            None,
            None,
            "exit 4",
        ),
        (image(), None, container(9), None, None, "exit 9"),
        // Several tries.
        (job(false), Some(timed(0)), container(9), None, None, "exit 9"),
        (job(false), None, container(2), None, None, "exit 2"),
        (job(false), Some(timed(0)), container(0), None, None, "bad 0"),
        (job(false), None, container(0), None, None, "bad 0"),
        (job(false), Some(timed(3)), container(0), None, None, "exit 3"),
        (job(false), Some(timed(0)), container(0), taken(3), None, "unknown: deleted"),
        (job(false), Some(timed(0)), None, None, gone, "unknown: lost"),
        (job(true), Some(timed(3)), container(0), None, None, "exit 0"),
        // The Job counts what ended with 0 as a success, also when somebody had asked it to end.
        (job(true), None, container(0), taken(3), None, "unknown: deleted"),
        (job(true), Some(timed(0)), container(0), taken(3), None, "unknown: deleted"),
        (job(true), None, container(0), taken(7), None, "exit 0"),
        (job(true), None, container(0), None, Some("suspended"), "unknown: suspended"),
        (job(true), None, container(137), taken(3), None, "unknown: deleted"),
        // Which of its Pods was a success nobody saw.
        (
            job(true),
            None,
            container(3),
            None,
            None,
            "unknown: its Job is complete, and its last try ended with 3",
        ),
        (job(true), None, None, None, gone, "unknown: lost"),
        (
            none(),
            Some(timed(0)),
            container(0),
            None,
            None,
            "unknown: its Job was deleted before it said how its tries ended",
        ),
        (none(), None, container(0), taken(3), None, "unknown: deleted"),
    ];
    for (number, (decides, message, exit, taken, lost, expected)) in rows.into_iter().enumerate() {
        let way = |delivered: bool| {
            let (message, taken, lost) = (message.clone(), taken.clone(), lost.map(str::to_owned));
            let learned = OutcomeEvidence {
                exit,
                taken,
                lost,
                decides: decides.clone(),
                ..OutcomeEvidence::default()
            };
            if delivered {
                OutcomeEvidence { delivered: message, ..learned }
            } else {
                OutcomeEvidence { message, ..learned }
            }
        };
        for delivered in [false, true] {
            assert_eq!(word(way(delivered)), expected, "row {number}, delivered: {delivered}");
        }
    }
}

/// What ended by itself before its time was over did not time out, by the clock of whoever tells of
/// it. `over_time` in seconds, where the report's command ended at 5 s and its container at 6 s.
#[test]
fn rule_13_what_ended_before_its_time_was_over_did_not_time_out() {
    type Row = (Option<Decides>, Option<Box<Report>>, Option<Exit>, i64, &'static str);
    let image = || Some(Decides::Container);
    let alone = |code| Some(Box::new(Report { first_process: true, ..*timed(code) }));
    let rows: Vec<Row> = vec![
        (None, Some(timed(0)), container(0), 5, "timed out"),
        (None, Some(timed(0)), container(0), 6, "exit 0"),
        (None, Some(timed(7)), None, 6, "exit 7"),
        (None, Some(report(0)), container(0), 9, "timed out"),
        (None, None, container(0), 6, "timed out"),
        (None, None, container(9), 7, "exit 9"),
        (None, None, Some(exit(0)), 9, "timed out"),
        // A script may go on after the wrapper of its image, unless that is all of the container.
        (image(), Some(timed(0)), container(0), 6, "timed out"),
        (image(), Some(timed(0)), container(0), 7, "exit 0"),
        (image(), alone(0), container(0), 6, "exit 0"),
        (image(), alone(3), container(3), 6, "exit 3"),
        (image(), alone(0), container(137), 6, "exit 0"),
        (image(), alone(0), container(137), 5, "timed out"),
        (image(), None, container(0), 6, "timed out"),
        (job(true), None, container(0), 6, "timed out"),
        (job(false), None, container(9), 9, "timed out"),
        (
            Some(Decides::Job(None)),
            None,
            container(9),
            9,
            "unknown: its Job was deleted before it said how its tries ended",
        ),
        (job(true), Some(timed(0)), container(0), 7, "exit 0"),
    ];
    for (number, (decides, message, exit, over_time, expected)) in rows.into_iter().enumerate() {
        let learned = OutcomeEvidence {
            message,
            exit,
            decides,
            over_time: Some(at(over_time)),
            ..OutcomeEvidence::default()
        };
        assert_eq!(word(learned), expected, "row {number}");
    }
}

#[test]
fn the_best_way_counts_whatever_came_first() {
    let all = || OutcomeEvidence {
        delivered: Some(report(1)),
        line: Some(report(2)),
        message: Some(report(3)),
        never: Some(Never { why: "no node".to_owned(), surroundings: true }),
        exit: Some(exit(4)),
        lost: Some("evicted".to_owned()),
        taken: None,
        decides: None,
        over_time: None,
    };
    check(all(), Some(1));
    check(OutcomeEvidence { delivered: None, ..all() }, Some(2));
    check(OutcomeEvidence { delivered: None, line: None, ..all() }, Some(3));
    check(OutcomeEvidence { exit: Some(exit(4)), ..OutcomeEvidence::default() }, Some(4));
    check(OutcomeEvidence::default(), None);
    let never = OutcomeEvidence {
        never: Some(Never { why: "no node".to_owned(), surroundings: true }),
        ..OutcomeEvidence::default()
    };
    assert!(matches!(never.end(String::new), (End::NotStarted { surroundings: true, .. }, true)));
}

#[test]
fn an_unknown_end_is_no_success_and_nothing_is_known_to_be_gone() {
    assert!(matches!(OutcomeEvidence::default().end(String::new), (End::Unknown { .. }, false)));
}

#[test]
fn a_report_with_times_that_no_clock_shows_is_a_report_all_the_same() {
    let beyond = || {
        Box::new(Report {
            start_timestamp_ns: i128::MAX.to_string(),
            duration_ns: i128::MAX.to_string(),
            ..*report(0)
        })
    };
    let learned = OutcomeEvidence {
        delivered: Some(beyond()),
        taken: taken(3),
        ..OutcomeEvidence::default()
    };
    assert_eq!(word(learned), "unknown: deleted");
    assert_eq!(word(OutcomeEvidence::delivered(beyond())), "exit 0");
}

#[test]
fn a_container_that_ended_says_when_it_ran() {
    let times = Exit {
        started_at: Some(Timestamp::from_millis(5)),
        ended_at: Some(Timestamp::from_millis(8)),
        ..exit(0)
    };
    let report = times.report();
    assert_eq!(
        (report.start_timestamp_ns.as_str(), report.duration_ns.as_str()),
        ("5000000", "3000000")
    );
}

#[test]
fn a_report_is_found_in_the_message_and_in_the_marked_line_of_its_own_job() {
    let text = serde_json::to_string(&report(7)).unwrap();
    assert_eq!(in_message(&format!(" {text}\n")).unwrap().exit_code, Some(7));
    let [mine, other] = [b"a", b"b"].map(|name| JobId::derive(&[name]));
    let log = line::write(&mine.to_string(), "token", &report(7));
    assert_eq!(in_line(&log, &mine, "token").unwrap().exit_code, Some(7));
    assert_eq!((in_line(&log, &other, "token"), in_line(&log, &mine, "another")), (None, None));
    for text in ["", "Error: out of memory", "{}", "[1]", "\u{0}"] {
        assert_eq!((in_message(text), in_line(text, &mine, "token")), (None, None), "{text:?}");
    }
}

fn learned() -> impl Strategy<Value = OutcomeEvidence> {
    let some = || prop::option::of(0..3_i32);
    let ways = (some(), some(), some(), some(), some(), some());
    ways.prop_map(|(delivered, line, message, never, code, over_time)| OutcomeEvidence {
        delivered: delivered.map(report),
        line: line.map(report),
        message: message.map(report),
        never: never.map(|why| Never { why: why.to_string(), surroundings: false }),
        exit: code.map(exit),
        lost: None,
        taken: None,
        decides: None,
        over_time: over_time.map(|seconds| at(i64::from(seconds))),
    })
}

proptest! {
    #[test]
    fn learning_again_changes_nothing(first in learned(), second in learned(), third in learned()) {
        prop_assert_eq!(first.clone().merge(first.clone()), first.clone());
        let both = first.clone().merge(second.clone());
        prop_assert_eq!(both.clone().merge(second.clone()), both.clone());
        prop_assert_eq!(both.clone().merge(first.clone()), both.clone());
        prop_assert_eq!(both.merge(third.clone()), first.merge(second.merge(third)));
    }
}
