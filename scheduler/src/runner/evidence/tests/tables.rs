//! The rule by which an outcome is known, as tables.

use super::*;

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
