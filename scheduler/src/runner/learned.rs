//! The ways in which the outcome of a job can be learned, and the one rule that makes one of them: pure. Called by the
//! runners and by [`crate::delivery`], which feed it; what it comes to goes to the driver as [`End`], where
//! `driver::outcome` reads it the same whatever it was learned from.
//!
//! | way | what it is worth |
//! | --- | --- |
//! | delivered: a spool directory, or `PUT /report` accepted | everything: the report is whole and all that it names is here |
//! | a marked line on stderr, once the container has ended | the whole report; of what it names there is what was uploaded before |
//! | the termination message | how the command ended; what it printed as far as it was uploaded |
//! | the bare exit status of the container | an exit code, which may be the wrapper's own |
//! | the cluster ended it, or lost it | why nobody knows |
//! | nothing | unknown, which is never read as success |
//!
//! What always holds: learning the same again changes nothing ([`Learned::merge`] is idempotent and associative, and of two
//! different words in the same way the first counts); of all that is known when a job is told as ended, the best way counts;
//! what comes after that changes nothing, because nobody asks this rule again. A command can choose its exit code, but it cannot
//! write a marked line, which needs the job's token.

use schema::id::JobId;
use schema::report::{Report, line};
use schema::time::Timestamp;

use super::End;

/// What the wrapper ends with when its command was fine and what it left is not. Source: docs/wrapper.md, `EX_DATAERR` of sysexits(3).
const BAD_OUTPUT_CODE: i32 = 65;

/// What is known of how a job ended, one slot a way.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Learned {
    /// Delivered, with everything that it names.
    pub delivered: Option<Box<Report>>,
    /// From a marked line on stderr. See [`in_line`].
    pub line: Option<Box<Report>>,
    /// From the termination message. See [`in_message`].
    pub message: Option<Box<Report>>,
    /// The command is known never to have started.
    pub never: Option<Never>,
    /// The container's own end.
    pub exit: Option<Exit>,
    /// Why its end cannot be known.
    pub lost: Option<String>,
    /// Whether it was ended because its time was over.
    pub timed_out: bool,
}

/// Why a command never started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Never {
    /// For people.
    pub why: String,
    /// Whether another try makes sense.
    pub surroundings: bool,
}

/// How a container ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Exit {
    /// 0 to 255; 128+n for a signal.
    pub code: i32,
    /// Whether the kernel's out-of-memory killer ended it.
    pub oom_killed: bool,
    /// When it started.
    pub started_at: Option<Timestamp>,
    /// When it ended.
    pub ended_at: Option<Timestamp>,
}

impl Learned {
    /// A report that was delivered.
    pub fn delivered(report: Box<Report>) -> Self {
        Self { delivered: Some(report), ..Self::default() }
    }

    /// Adds the report of a wrapper that its image brings, whose container is over. What else ran in that container the wrapper does
    /// not know: where the container failed otherwise than the wrapper did, that counts.
    #[must_use]
    pub fn with_report_of_an_image(self, mut report: Box<Report>) -> Self {
        let of_wrapper = if report.bad_output.is_some() { Some(BAD_OUTPUT_CODE) } else { report.exit_code };
        if let (Some(exit), Some(own)) = (self.exit.filter(|exit| exit.code != 0), of_wrapper)
            && exit.code != own
        {
            report.exit_code = Some(exit.code);
            report.oom_killed |= exit.oom_killed;
            (report.structured, report.bad_output) = (None, None);
        }
        Self { delivered: Some(report), ..self }
    }

    /// Adds what was learned later.
    #[must_use]
    pub fn merge(self, later: Self) -> Self {
        Self {
            delivered: self.delivered.or(later.delivered),
            line: self.line.or(later.line),
            message: self.message.or(later.message),
            never: self.never.or(later.never),
            exit: self.exit.or(later.exit),
            lost: self.lost.or(later.lost),
            timed_out: self.timed_out || later.timed_out,
        }
    }

    /// What the job's end is, and whether every process of it is known to be gone as far as the wrapper says. `why` is said
    /// when nothing was learned.
    pub fn end(self, why: impl FnOnce() -> String) -> (End, bool) {
        if let Some(mut report) = self.delivered.or(self.line).or(self.message) {
            report.timed_out |= self.timed_out;
            let gone = report.leaked.iter().all(|left| !left.alive);
            return (End::Reported(report), gone);
        }
        if let Some(exit) = self.exit {
            return (End::Reported(Box::new(Report { timed_out: self.timed_out, ..exit.report() })), true);
        }
        match self.never {
            Some(Never { why, surroundings }) => (End::NotStarted { why, surroundings }, true),
            None => {
                // The place knows that it ended, if not how; then what is left of it is the place's to say.
                let is_over = self.lost.is_some();
                (End::Unknown { why: self.lost.unwrap_or_else(why), report: None }, is_over)
            }
        }
    }
}

impl Exit {
    fn report(self) -> Report {
        let nanos = |millis: i64| (i128::from(millis) * 1_000_000).to_string();
        let duration = self.started_at.zip(self.ended_at).map(|(start, end)| end.since_ms(start));
        Report {
            exit_code: Some(self.code),
            oom_killed: self.oom_killed,
            // Nobody kept the streams apart or counted them.
            output_incomplete: true,
            start_timestamp_ns: self.started_at.map(|at| nanos(at.as_millis())).unwrap_or_default(),
            duration_ns: duration.map(nanos).unwrap_or_default(),
            ..Report::default()
        }
    }
}

/// The report in a termination message, when it is one.
pub fn in_message(text: &str) -> Option<Box<Report>> {
    serde_json::from_str(text.trim()).ok()
}

/// The report in the last marked line of a container's log that the job's own wrapper wrote, which alone has its token. The
/// last, because the wrapper writes it after the command has ended.
pub fn in_line(log: &str, job: &JobId, token: &str) -> Option<Box<Report>> {
    line::read(log, &job.to_string(), token).map(Box::new)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn report(code: i32) -> Box<Report> {
        Box::new(Report { exit_code: Some(code), ..Report::default() })
    }

    fn exit(code: i32) -> Exit {
        Exit { code, oom_killed: false, started_at: None, ended_at: None }
    }

    fn check(learned: Learned, expected: Option<i32>) {
        match learned.end(|| "nobody told".to_owned()).0 {
            End::Reported(report) => assert_eq!(report.exit_code, expected),
            End::Unknown { why, .. } => assert_eq!((expected, why.as_str()), (None, "nobody told")),
            End::NotStarted { .. } => panic!("it started"),
        }
    }

    #[test]
    fn the_report_of_an_image_counts_unless_its_container_failed_otherwise() {
        let with = |exit_code: i32, bad: bool, container: i32| {
            let bad_output = bad.then(|| "wrong".to_owned());
            let report = Box::new(Report { exit_code: Some(exit_code), bad_output, ..Report::default() });
            let (End::Reported(report), true) =
                (Learned { exit: Some(exit(container)), ..Learned::default() }).with_report_of_an_image(report).end(String::new)
            else {
                panic!("it is reported")
            };
            (report.exit_code, report.bad_output.is_some())
        };
        assert_eq!(with(0, false, 0), (Some(0), false));
        assert_eq!(with(2, false, 2), (Some(2), false));
        assert_eq!(with(0, true, 65), (Some(0), true));
        assert_eq!(with(0, false, 9), (Some(9), false), "the script failed after the wrapper");
        assert_eq!(with(3, false, 0), (Some(3), false), "the script reported a failure and ended well");
    }

    #[test]
    fn the_best_way_counts_whatever_came_first() {
        let all = || Learned {
            delivered: Some(report(1)),
            line: Some(report(2)),
            message: Some(report(3)),
            never: Some(Never { why: "no node".to_owned(), surroundings: true }),
            exit: Some(exit(4)),
            lost: Some("evicted".to_owned()),
            timed_out: false,
        };
        check(all(), Some(1));
        check(Learned { delivered: None, ..all() }, Some(2));
        check(Learned { delivered: None, line: None, ..all() }, Some(3));
        check(Learned { exit: Some(exit(4)), ..Learned::default() }, Some(4));
        check(Learned::default(), None);
        let never = Learned { never: Some(Never { why: "no node".to_owned(), surroundings: true }), ..Learned::default() };
        assert!(matches!(never.end(String::new), (End::NotStarted { surroundings: true, .. }, true)));
    }

    #[test]
    fn an_unknown_end_is_no_success_and_nothing_is_known_to_be_gone() {
        assert!(matches!(Learned::default().end(String::new), (End::Unknown { .. }, false)));
    }

    #[test]
    fn a_container_that_ended_says_when_it_ran() {
        let times = Exit { started_at: Some(Timestamp::from_millis(5)), ended_at: Some(Timestamp::from_millis(8)), ..exit(0) };
        let report = times.report();
        assert_eq!((report.start_timestamp_ns.as_str(), report.duration_ns.as_str()), ("5000000", "3000000"));
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

    fn learned() -> impl Strategy<Value = Learned> {
        let some = || prop::option::of(0..3_i32);
        let ways = (some(), some(), some(), some(), some(), any::<bool>());
        ways.prop_map(|(delivered, line, message, never, code, timed_out)| Learned {
            delivered: delivered.map(report),
            line: line.map(report),
            message: message.map(report),
            never: never.map(|why| Never { why: why.to_string(), surroundings: false }),
            exit: code.map(exit),
            lost: None,
            timed_out,
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
}
