//! What is kept for how long, as pure decisions. Called by the rest of [`super`], which acts on
//! them.

use std::collections::BTreeSet;

use schema::id::JobId;
use schema::schedule::Duration;
use schema::status::{JobKind, JobStatus};
use schema::time::Timestamp;

use crate::store::OldJob;

/// Milliseconds of a day.
const DAY_MS: i64 = 24 * 3_600_000;

const fn days(days: i64) -> Duration {
    match Duration::from_ms(days * DAY_MS) {
        Some(duration) => duration,
        None => Duration::MAX,
    }
}

/// How long things are kept, each also as `PVN_…` in the environment. An age is written as in `30d`
/// or `12h`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::Args)]
#[command(next_help_heading = "Retention")]
pub struct Policy {
    /// Newest jobs of each kind of each service instance that are kept whatever their age
    #[arg(
        long = "retain-job-count", env = "PVN_RETAIN_JOB_COUNT", default_value_t = 50,
        value_name = "N", value_parser = clap::value_parser!(u32).range(1..)
    )]
    pub job_count: u32,

    /// Fetch and getInfo jobs are kept for this long
    #[arg(
        long = "retain-jobs", env = "PVN_RETAIN_JOBS", default_value = "7d", value_name = "AGE",
        value_parser = age
    )]
    pub jobs: Duration,

    /// Applies and their output, releases, versions of configs, and what people did are kept for
    /// this long
    #[arg(
        long = "retain-applies", env = "PVN_RETAIN_APPLIES", default_value = "365d",
        value_name = "AGE", value_parser = age
    )]
    pub applies: Duration,

    /// Output of fetch and getInfo jobs is kept for this long
    #[arg(
        long = "retain-logs", env = "PVN_RETAIN_LOGS", default_value = "30d", value_name = "AGE",
        value_parser = age
    )]
    pub logs: Duration,

    /// Entries of the log that are about no person, release or approval are kept for this long
    #[arg(
        long = "retain-events", env = "PVN_RETAIN_EVENTS", default_value = "30d",
        value_name = "AGE", value_parser = age
    )]
    pub events: Duration,
}

impl Default for Policy {
    fn default() -> Self {
        Self { job_count: 50, jobs: days(7), applies: days(365), logs: days(30), events: days(30) }
    }
}

/// A length of time, days among the units.
///
/// # Errors
/// In words, when it is none.
pub fn age(text: &str) -> Result<Duration, String> {
    match text.strip_suffix('d').and_then(|number| number.parse::<i64>().ok()) {
        Some(number) => number
            .checked_mul(DAY_MS)
            .and_then(Duration::from_ms)
            .ok_or_else(|| format!("`{text}` is not an age between 1ms and a hundred years")),
        None => text.parse().map_err(|error| format!("{error}, or days, as in `30d`")),
    }
}

impl Policy {
    /// Until when jobs of this kind must be from to go.
    pub(super) fn jobs_before(&self, kind: JobKind, now: Timestamp) -> Timestamp {
        before(now, if kind == JobKind::Apply { self.applies } else { self.jobs })
    }

    /// The same for the output of fetches and getInfos.
    pub(super) fn logs_before(&self, now: Timestamp) -> Timestamp {
        before(now, self.logs)
    }

    /// The same for applies, releases and people's doings.
    pub(super) fn applies_before(&self, now: Timestamp) -> Timestamp {
        before(now, self.applies)
    }

    /// The same for entries of the log.
    pub(super) fn events_before(&self, now: Timestamp) -> Timestamp {
        before(now, self.events)
    }
}

/// This long ago.
pub(super) fn before(now: Timestamp, age: Duration) -> Timestamp {
    now.plus_ms(-age.as_ms())
}

/// What is decided about a row of old jobs, oldest first.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct JobRetention {
    /// Those that go.
    pub(super) remove: Vec<JobId>,
    /// Whether newer ones are too young as well, so that nobody need look at them.
    pub(super) is_done: bool,
}

/// Which of these go: they are over and from before `cutoff`, nobody names them, and they are not
/// the newest success or failure. A job that says it is from after its successors was decided while
/// the clock was wrong; it is as old as they are.
pub(super) fn old_jobs(
    jobs: &[OldJob],
    cutoff: Timestamp,
    named: &BTreeSet<JobId>,
) -> JobRetention {
    let mut verdict = JobRetention::default();
    let mut at = Timestamp::from_millis(i64::MAX);
    let mut ages: Vec<Timestamp> = jobs
        .iter()
        .rev()
        .map(|job| {
            at = at.min(job.created_at);
            at
        })
        .collect();
    ages.reverse();
    for (job, at) in jobs.iter().zip(ages) {
        if at >= cutoff {
            verdict.is_done = true;
            break;
        }
        let is_landmark =
            matches!(job.status, JobStatus::Succeeded | JobStatus::Failed) && !job.has_newer;
        if job.is_over && !is_landmark && !named.contains(&job.id) {
            verdict.remove.push(job.id);
        }
    }
    verdict
}

/// Whether an entry of the log stays for ever, a year, or as long as the others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LogRetention {
    /// Approvals: what was asked, and who decided.
    Always,
    /// Releases, and what people did.
    Long,
    /// What jobs and instances did.
    Short,
}

/// How long an entry of this kind stays; `by_person` when a person did it.
pub(super) fn entry(kind: &str, by_person: bool) -> LogRetention {
    match kind.split('.').next() {
        Some("approval") => LogRetention::Always,
        Some("release" | "config" | "secret" | "token") => LogRetention::Long,
        _ if by_person => LogRetention::Long,
        _ => LogRetention::Short,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: i64) -> Timestamp {
        Timestamp::from_millis(millis)
    }

    fn job(number: u8, created_at: i64) -> OldJob {
        OldJob {
            id: JobId::derive(&[&[number]]),
            status: JobStatus::Succeeded,
            created_at: at(created_at),
            is_over: true,
            has_newer: true,
        }
    }

    fn removed(jobs: &[OldJob], cutoff: i64, named: &[u8]) -> (Vec<usize>, bool) {
        let named = named.iter().map(|number| JobId::derive(&[&[*number]])).collect();
        let verdict = old_jobs(jobs, at(cutoff), &named);
        let index = |id: &JobId| jobs.iter().position(|job| job.id == *id).unwrap();
        (verdict.remove.iter().map(index).collect(), verdict.is_done)
    }

    #[test]
    fn what_is_over_and_old_and_named_by_nobody_goes() {
        let jobs = [job(0, 10), job(1, 20), job(2, 30)];
        assert_eq!(removed(&jobs, 25, &[]), (vec![0, 1], true));
        assert_eq!(removed(&jobs, 100, &[1]), (vec![0, 2], false));
        assert_eq!(removed(&jobs, 5, &[]), (vec![], true));
        let runs = [OldJob { is_over: false, ..job(0, 10) }, job(1, 20)];
        assert_eq!(removed(&runs, 100, &[]), (vec![1], false));
    }

    #[test]
    fn the_newest_success_and_the_newest_failure_stay() {
        let last = |number, status| OldJob { status, has_newer: false, ..job(number, 10) };
        let jobs = [
            last(0, JobStatus::Succeeded),
            last(1, JobStatus::Failed),
            last(2, JobStatus::Cancelled),
        ];
        assert_eq!(removed(&jobs, 100, &[]), (vec![2], false));
    }

    #[test]
    fn a_clock_that_was_wrong_for_a_while_keeps_nothing_for_ever() {
        let jobs = [job(0, 10), job(1, 1_000_000), job(2, 20), job(3, 30)];
        assert_eq!(removed(&jobs, 25, &[]), (vec![0, 1, 2], true));
    }

    #[test]
    fn ages_are_written_with_days_too() {
        assert_eq!(age("7d"), Ok(days(7)));
        assert_eq!(age("12h").unwrap().as_ms(), DAY_MS / 2);
        for text in ["", "d", "-1d", "0d", "7", "99999999d", "99999999999999999d"] {
            assert!(age(text).is_err(), "{text}");
        }
    }

    #[test]
    fn approvals_stay_always_and_people_are_remembered_longer_than_machines() {
        assert_eq!(entry("approval.decided", true), LogRetention::Always);
        assert_eq!(entry("approval.requested", false), LogRetention::Always);
        assert_eq!(entry("release.created", false), LogRetention::Long);
        assert_eq!(entry("instance.pause", true), LogRetention::Long);
        assert_eq!(entry("job.ended", false), LogRetention::Short);
        assert_eq!(entry("approvals", false), LogRetention::Short);
    }
}
