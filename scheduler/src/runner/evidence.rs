//! The ways in which the outcome of a job can be learned, and the one rule that makes one of them:
//! pure. Called by the runners and by [`crate::delivery`], which feed it; what it comes to goes to
//! the driver as [`End`], where `driver::outcome` reads it the same whatever it was learned from.
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
//! What the place itself knows counts beside every report ([`OutcomeEvidence::end`] is the rule,
//! its tests are the table):
//! - a command that the place ended before it ended by itself ([`OutcomeEvidence::taken`]), without
//!   us asking for that, has an unknown end, whatever code or report there is; only that it never
//!   started, or ran past its timeout, is still believed;
//! - what had ended by itself, by the clock of its wrapper or its node, before it was ended because
//!   its time was over ([`OutcomeEvidence::over_time`]) did not time out, however late that is
//!   heard;
//! - the report of a wrapper that pvn put before the command tells how the container ended, by
//!   construction;
//! - the report of a wrapper that the image brings ([`Decides::Container`]) tells what it ran.
//!   Where the container failed otherwise, that counts, and where nobody saw the container end,
//!   nothing does; but the report of its first process is all of it, and counts however the
//!   container ended;
//! - of several tries ([`Decides::Job`]) the Job's own condition says whether they came to success
//!   or to failure, as long as the place did not end the last one: a Job counts what ended with 0
//!   as a success, whoever asked it to end.
//!
//! What always holds: learning the same again changes nothing ([`OutcomeEvidence::merge`] is
//! idempotent and associative, and of two different words in the same way the first counts); of all
//! that is known when a job is told as ended, the best way counts; what comes after that changes
//! nothing, because nobody asks this rule again. A command can choose its exit code, but it cannot
//! write a marked line, which needs the job's token.

use schema::id::JobId;
use schema::report::{Report, line, message};
use schema::time::Timestamp;

use super::End;

mod never;

pub use never::{Never, NeverCause};

/// What the wrapper ends with when its command was fine and what it left is not. Source:
/// docs/wrapper.md, `EX_DATAERR` of sysexits(3).
const BAD_OUTPUT_CODE: i32 = 65;

/// What it ends with when its command never ran: failures of its own, and what a shell says of a
/// command that is not there.
const NEVER_RAN_CODES: std::ops::RangeInclusive<i32> = 125..=127;
const NOT_FOUND_CODE: i32 = 127;

/// What is known of how a job ended, one slot a way.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct OutcomeEvidence {
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
    /// Why the place ended it before it ended by itself, which we did not ask for. Then no code
    /// says what it found or did.
    pub taken: Option<Taken>,
    /// Whose word is the outcome; `None` = that of the wrapper before the command, or of the
    /// command itself.
    pub decides: Option<Decides>,
    /// It was ended because its time was over: what ended from then on, by the clock of its place,
    /// counts as ended by that.
    pub over_time: Option<Timestamp>,
}

/// That the place ended it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Taken {
    /// For people.
    pub why: String,
    /// When it was asked to end, if that is known. What had ended before did so by itself.
    pub at: Option<Timestamp>,
}

/// Whose word is the outcome, where a report tells of a part only.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decides {
    /// The container, in which more may run than the wrapper of its image.
    Container,
    /// The Job, by which the command may run several times; as far as it says how it ended.
    Job(Option<JobEnd>),
}

/// What a Job says of all its tries.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobEnd {
    /// Whether it is complete, and has not failed.
    pub is_complete: bool,
    /// Why, in its own words.
    pub why: String,
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

impl OutcomeEvidence {
    /// A report that was delivered.
    pub fn delivered(report: Box<Report>) -> Self {
        Self { delivered: Some(report), ..Self::default() }
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
            taken: self.taken.or(later.taken),
            decides: self.decides.or(later.decides),
            over_time: self.over_time.or(later.over_time),
        }
    }

    /// What the job's end is, and whether every process of it is known to be gone as far as the
    /// wrapper says. `why` is said when nothing was learned.
    pub fn end(mut self, why: impl FnOnce() -> String) -> (End, bool) {
        let kept = self.delivered.clone();
        let report = self.delivered.take().or(self.line.take()).or(self.message.take());
        let report = report.map(|report| {
            Box::new(Report {
                timed_out: report.timed_out || self.is_over_time(&report),
                ..*report
            })
        });
        let is_reported = report.is_some();
        let gone = report.iter().flat_map(|report| &report.leaked).all(|left| !left.alive);
        if let Some(report) = self.believed(report) {
            return (End::Reported(report), gone);
        }
        if let Some(never) = self.never.take_if(|_| !is_reported) {
            return (never.end(), true);
        }
        // The place knows that it ended, if not how; then what is left of it is the place's to say.
        let is_over = self.taken.is_some() || self.lost.is_some() || self.exit.is_some();
        let without_its_job = || {
            let is_alone = self.decides == Some(Decides::Job(None)) && self.exit.is_some();
            is_alone.then(|| "its Job was deleted before it said how its tries ended".to_owned())
        };
        let by_another = || {
            let is_complete =
                matches!(self.decides, Some(Decides::Job(Some(JobEnd { is_complete: true, .. }))));
            self.exit.filter(|_| is_complete).map(|exit| {
                format!("its Job is complete, and its last try ended with {}", exit.code)
            })
        };
        let known = self
            .taken
            .map(|taken| taken.why)
            .or(self.lost)
            .or_else(without_its_job)
            .or_else(by_another);
        (End::Unknown { why: known.unwrap_or_else(why), report: kept }, is_over && gone)
    }

    /// Whether the best report tells of a part of what ran only, and another part of it decided how
    /// its container ended: then what the container printed is the output, not what went
    /// through the wrapper.
    pub fn is_of_another_end(&self) -> bool {
        let is_part = |report: &Report| self.decides == Some(Decides::Container) && !is_all(report);
        let report = self
            .delivered
            .as_ref()
            .or(self.line.as_ref())
            .or(self.message.as_ref())
            .filter(|report| is_part(report));
        report.zip(self.exit).is_some_and(|(report, exit)| exit.is_of_more(report))
    }

    /// The one rule: what tells how it ended, when anything does. `report` is the best one that
    /// there is.
    fn believed(&self, report: Option<Box<Report>>) -> Option<Box<Report>> {
        let bare = |exit: Exit| {
            Box::new(Report { timed_out: self.was_over_time(exit.ended_at), ..exit.report() })
        };
        let is_unseen =
            self.lost.is_some() || self.is_taken(self.exit.and_then(|exit| exit.ended_at));
        match (&self.decides, report, self.exit) {
            (None, Some(report), _) => self.tells_all(report, is_unseen),
            // Nothing ran there beside it, so that it ended by itself with what the container would
            // have: what came to its wrapper afterwards, as the end of its Pod's grace
            // while it tried to deliver, says nothing of it.
            (Some(Decides::Container), Some(report), _) if is_all(&report) => {
                self.tells_all(report, is_unseen)
            }
            (None | Some(Decides::Container), None, Some(exit)) => (!is_unseen).then(|| bare(exit)),
            (Some(Decides::Container), Some(report), Some(exit)) => {
                (!is_unseen).then(|| exit.with_part(report))
            }
            // It counts whatever ended with 0 as a success, also what was asked to end. What it
            // printed is that of the last try.
            (Some(Decides::Job(Some(JobEnd { is_complete: true, .. }))), report, Some(exit))
                if !is_unseen && exit.code == 0 =>
            {
                Some(
                    report
                        .filter(|report| code_of(report) == Some(0))
                        .unwrap_or_else(|| bare(exit)),
                )
            }
            (Some(Decides::Job(Some(JobEnd { is_complete: false, why }))), report, Some(exit))
                if !is_unseen =>
            {
                let mut report = report.map_or_else(|| bare(exit), |report| exit.with_part(report));
                if code_of(&report) == Some(0) {
                    report.bad_output = Some(format!("its Job failed: {why}"));
                }
                Some(report)
            }
            _ => None,
        }
    }

    /// A report that tells how all ended, where that counts.
    fn tells_all(&self, report: Box<Report>, is_unseen: bool) -> Option<Box<Report>> {
        let is_certain = report.exec_error.is_some() || report.timed_out;
        let is_stopped = report.stopped_by.is_some() && is_unseen;
        (is_certain || !(is_stopped || self.is_taken(ended_at(&report)))).then_some(report)
    }

    /// Whether what a report tells of was ended because its time was over. Where it tells of a part
    /// only that is what the end of the container says, unless nothing ran in that beside its
    /// wrapper, which delivers when its command has ended.
    fn is_over_time(&self, report: &Report) -> bool {
        let is_alone = |exit: Exit| {
            self.decides == Some(Decides::Container)
                || exit.code == 0
                || code_of(report) == Some(exit.code)
        };
        let decides = self
            .exit
            .filter(|exit| self.decides.is_some() && !(report.first_process && is_alone(*exit)));
        self.was_over_time(decides.map_or_else(|| ended_at(report), |exit| exit.ended_at))
    }

    /// The same of what ended then. A try that had ended before is not all of them: there might
    /// have been more.
    fn was_over_time(&self, ended_at: Option<Timestamp>) -> bool {
        let is_over = |said: &Option<JobEnd>| said.as_ref().is_some_and(|said| said.is_complete);
        let is_last = !matches!(&self.decides, Some(Decides::Job(said)) if !is_over(said));
        is_since(self.over_time, ended_at.filter(|_| is_last))
    }

    /// Whether the place asked it to end before it ended at this time. Times are the cluster's, in
    /// whole seconds.
    fn is_taken(&self, ended_at: Option<Timestamp>) -> bool {
        let seconds = |at: Timestamp| at.as_millis().div_euclid(1000);
        let is_later = |taken: &Taken| {
            taken.at.zip(ended_at).is_some_and(|(asked, ended)| seconds(asked) > seconds(ended))
        };
        self.taken.as_ref().is_some_and(|taken| !is_later(taken))
    }
}

/// Whether nothing ran in its container beside what a report tells of, and nobody had asked that to
/// end.
fn is_all(report: &Report) -> bool {
    report.first_process && report.stopped_by.is_none()
}

/// What a wrapper ended with by its report, when it ended by itself; of a command that never
/// started 127 stands for all such codes.
fn code_of(report: &Report) -> Option<i32> {
    match (&report.bad_output, &report.exec_error) {
        (Some(_), _) => Some(BAD_OUTPUT_CODE),
        (None, Some(_)) => Some(NOT_FOUND_CODE),
        (None, None) => report.exit_code,
    }
}

/// Whether this is a time from which on something counts, and what ended then is not known to have
/// ended before.
pub fn is_since(since: Option<Timestamp>, ended_at: Option<Timestamp>) -> bool {
    since.is_some_and(|since| ended_at.is_none_or(|ended| ended >= since))
}

/// When the command ended by its wrapper's clock.
pub fn ended_at(report: &Report) -> Option<Timestamp> {
    let nanos =
        [&report.start_timestamp_ns, &report.duration_ns].map(|text| text.parse::<i128>().ok());
    let (started, ran) = nanos[0].zip(nanos[1])?;
    i64::try_from(started.checked_add(ran)? / 1_000_000).ok().map(Timestamp::from_millis)
}

impl Exit {
    /// The end of a container of which a report tells a part. What else ran in it the report's
    /// wrapper does not know: where the container failed otherwise than the wrapper did, that
    /// counts.
    fn with_part(self, mut report: Box<Report>) -> Box<Report> {
        let is_of_more = self.is_of_more(&report);
        if self.is_of_what_never_ran(&report) {
            return report;
        }
        let own = code_of(&report);
        if report.exec_error.take().is_some() {
            // More ran than what never started.
            (report.surroundings, report.exit_code) = (false, own);
        }
        if is_of_more {
            report.exit_code = Some(self.code);
            report.oom_killed |= self.oom_killed;
            (report.structured, report.bad_output) = (None, None);
            report.forget_streams();
        }
        report
    }

    /// Whether the container failed otherwise than the wrapper that reports a part of it.
    fn is_of_more(self, report: &Report) -> bool {
        self.code != 0
            && !self.is_of_what_never_ran(report)
            && code_of(report).is_some_and(|own| own != self.code)
    }

    /// Whether the container ended so because its wrapper's command never ran.
    fn is_of_what_never_ran(self, report: &Report) -> bool {
        report.exec_error.is_some() && NEVER_RAN_CODES.contains(&self.code)
    }

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
    message::read(text).map(Box::new)
}

/// The same where it has to be of the job's own wrapper, which alone has its token.
pub fn in_signed_message(text: &str, job: JobId, token: &str) -> Option<Box<Report>> {
    message::read_signed(text, &job.to_string(), token).filter(|_| !token.is_empty()).map(Box::new)
}

/// The report in the last marked line of a container's log that the job's own wrapper wrote, which
/// alone has its token. The last, because the wrapper writes it after the command has ended.
pub fn in_line(log: &str, job: &JobId, token: &str) -> Option<Box<Report>> {
    line::read(log, &job.to_string(), token).map(Box::new)
}

#[cfg(test)]
mod tests;
