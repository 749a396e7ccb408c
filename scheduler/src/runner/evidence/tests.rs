//! Which of several words about one end counts.

use proptest::prelude::*;

use super::*;

mod tables;

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
        End::NotStarted { .. } | End::TakenBack { .. } | End::InputLost { .. } => {
            panic!("it started")
        }
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
        (End::TakenBack { .. }, _) => "taken back".to_owned(),
        (End::Unknown { why, .. }, gone) => {
            format!("unknown{}: {why}", if gone { "" } else { ", not gone" })
        }
    }
}

#[test]
fn the_best_way_counts_whatever_came_first() {
    let all = || OutcomeEvidence {
        delivered: Some(report(1)),
        line: Some(report(2)),
        message: Some(report(3)),
        never: Some(Never { why: "no node".to_owned(), cause: NeverCause::Surroundings }),
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
    let never = |cause| {
        let never = Some(Never { why: "no node".to_owned(), cause });
        OutcomeEvidence { never, ..OutcomeEvidence::default() }.end(String::new)
    };
    assert!(matches!(
        never(NeverCause::Surroundings),
        (End::NotStarted { surroundings: true, .. }, true)
    ));
    assert!(matches!(never(NeverCause::Job), (End::NotStarted { surroundings: false, .. }, true)));
    assert!(matches!(never(NeverCause::Gate), (End::TakenBack { .. }, true)));
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
        never: never.map(|why| Never { why: why.to_string(), cause: NeverCause::Job }),
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
