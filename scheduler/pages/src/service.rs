//! One service: its channels as a pipeline, and one of them with all that is known of it.

use askama::Template;
use schema::access::list;
use schema::api::{Approval, ApprovalVote, Explanation, Instance, Job, LogEntry, Service};
use schema::id::ChannelName;
use schema::status::{ApprovalStatus, Decision, GateKind, JobKind, JobStatus, Status};

use crate::frame::Frame;
use crate::links::{channel_action, instance_path, query};
use crate::{Rendered, render};

/// What the page of a service shows.
#[derive(Debug)]
pub struct ServiceDetails {
    pub service: Service,
    /// The channel that is shown in full.
    pub selected: Option<ChannelName>,
    /// Why that one stands where it stands: what `explain` answers.
    pub explanation: Option<Explanation>,
    /// Its newest jobs.
    pub jobs: Vec<Job>,
    /// Its newest apply, where that is not among them.
    pub newest_apply: Option<Job>,
    /// Which kinds of entries the timeline has; all of them where it is empty.
    pub kind: String,
    /// The newest of what happened to the service.
    pub timeline: Vec<LogEntry>,
}

/// The channel that a reader wants to see first: one that waits for people, one that does not do
/// what it should, the first.
pub fn most_urgent(service: &Service) -> Option<&Instance> {
    let rank = |one: &&Instance| match one.status {
        Status::WaitingManualApproval => 0,
        Status::Broken => 1,
        Status::Failed => 2,
        Status::Converging => 3,
        Status::WaitingPreconditions => 4,
        Status::Paused => 5,
        Status::Converged => 6,
        Status::Replaced | Status::Deleted => 7,
    };
    service.channels.iter().min_by_key(rank)
}

/// Jobs that follow each other and failed alike, as one line.
struct JobLine<'a> {
    /// The newest of them.
    job: &'a Job,
    /// How many they are.
    times: usize,
}

/// The jobs with the same failed attempt as one line: of the same command for the same version.
fn folded(jobs: &[Job]) -> Vec<JobLine<'_>> {
    let is_alike = |one: &Job, other: &Job| {
        one.status == JobStatus::Failed
            && (one.status, one.kind) == (other.status, other.kind)
            && one.version == other.version
            && one.exit_code == other.exit_code
    };
    let runs = jobs.chunk_by(is_alike);
    runs.filter_map(|run| Some(JobLine { job: run.first()?, times: run.len() })).collect()
}

/// What templates ask of an approval.
pub(crate) trait ApprovalFacts {
    fn is_pending(&self) -> bool;
    /// How many have said yes.
    fn yes(&self) -> usize;
    /// The channels in which an answer counts.
    fn channels_in_words(&self) -> String;
}

impl ApprovalFacts for Approval {
    fn is_pending(&self) -> bool {
        self.status == ApprovalStatus::Pending
    }

    fn yes(&self) -> usize {
        self.by.iter().filter(|vote| vote.is_yes()).count()
    }

    fn channels_in_words(&self) -> String {
        let names: Vec<&str> = self.channels.iter().map(ChannelName::as_str).collect();
        list(&names, "and")
    }
}

/// What templates ask of a vote.
pub(crate) trait VoteFacts {
    fn is_yes(&self) -> bool;
}

impl VoteFacts for ApprovalVote {
    fn is_yes(&self) -> bool {
        self.decision == Decision::Approve
    }
}

/// What the timeline can be narrowed to: kinds of entries, or what they begin with, and the words
/// for people.
const TIMELINE_KINDS: [(&str, &str); 6] = [
    ("instance.status", "How it stood"),
    ("release", "Releases"),
    ("approval", "Approvals"),
    ("job", "Jobs"),
    ("drift", "Drift"),
    ("instance", "What people did to channels, and how they stood"),
];

/// For how long a window can be lifted by the form, seconds. A day is the most that the API takes.
const LIFTED_FOR: [(u64, &str); 4] =
    [(900, "15 minutes"), (3_600, "an hour"), (14_400, "4 hours"), (86_400, "a day")];

/// For how long drift can be left as it is by the form, days.
const ACKNOWLEDGED_FOR: [(u32, &str); 3] = [(1, "a day"), (7, "a week"), (30, "30 days")];

#[derive(Template)]
#[template(path = "service.html")]
struct ServiceView<'a> {
    frame: &'a Frame,
    shown: &'a ServiceDetails,
    selected: Option<&'a Instance>,
    /// What the paths of things to do with the selected channel begin with.
    action: String,
    entries: &'a [LogEntry],
    jobs: Vec<JobLine<'a>>,
}

impl ServiceView<'_> {
    fn at(&self, one: &Instance) -> String {
        let service = &self.shown.service;
        instance_path(&service.application, &service.name, &one.channel)
    }

    /// Whether it waits for the channel that stands before it.
    fn follows(&self, one: &Instance) -> bool {
        let channels = &self.shown.service.channels;
        let mut pairs = channels.iter().zip(channels.iter().skip(1));
        pairs.any(|(before, this)| {
            this.channel == one.channel && one.upstream.contains(&before.channel)
        })
    }

    /// The channels that it waits for, where these are not the one that stands before it alone.
    fn comes_after(&self, one: &Instance) -> Option<String> {
        let is_drawn = self.follows(one) && one.upstream.len() == 1;
        let names: Vec<&str> = one.upstream.iter().map(|name| name.as_str()).collect();
        (!is_drawn && !names.is_empty()).then(|| names.join(", "))
    }

    fn is_selected(&self, one: &Instance) -> bool {
        self.shown.selected.as_ref() == Some(&one.channel)
    }

    fn is_of_kind(&self, kind: &&str) -> bool {
        self.shown.kind == *kind
    }

    /// All of the timeline, with the same filter.
    fn timeline_path(&self) -> String {
        let Service { application, name, .. } = &self.shown.service;
        let pairs = [
            ("application", application.as_str()),
            ("service", name.as_str()),
            ("kind", self.shown.kind.as_str()),
            ("all", "1"),
        ];
        query("/audit", &pairs)
    }

    /// The job whose output says most of why the selected channel stands where it stands: what
    /// failed, what runs, else the newest that has ended.
    fn telling(&self) -> Option<&Job> {
        let status = self.selected?.status;
        let is_bad = |job: &&Job| matches!(job.status, JobStatus::Failed | JobStatus::Unknown);
        let jobs = || {
            let all = self.shown.jobs.iter().chain(&self.shown.newest_apply);
            all.filter(|job| job.kind != JobKind::GetInfo)
        };
        let running = jobs().find(|job| !job.status.is_final());
        let failed = jobs().find(|job| is_bad(job));
        match status {
            Status::Failed | Status::Broken => failed.or(running),
            Status::Converging => running.or(failed),
            _ => jobs().find(|job| job.status.is_final()),
        }
        .or_else(|| jobs().next())
    }

    /// Whether the window of the channel is in the way of its next apply, and no person besides.
    fn waits_for_window(&self, one: &Instance) -> bool {
        one.observed.is_none() && one.waits_for.iter().any(|gate| gate.kind == GateKind::Window)
    }

    fn has_decided(&self, one: &Instance) -> bool {
        one.approvals.iter().any(|approval| !approval.is_pending())
    }
}

/// The page of a service.
///
/// # Errors
/// Never, as long as the template is sound.
pub fn service(frame: &Frame, shown: &ServiceDetails) -> Rendered {
    let service = &shown.service;
    let is_selected = |one: &&Instance| shown.selected.as_ref() == Some(&one.channel);
    let selected = service.channels.iter().find(is_selected);
    let action = selected
        .map(|one| channel_action(&service.application, &service.name, &one.channel))
        .unwrap_or_default();
    let jobs = folded(&shown.jobs);
    render(&ServiceView { frame, shown, selected, action, entries: &shown.timeline, jobs })
}

#[cfg(test)]
mod tests {
    use schema::time::Timestamp;
    use serde_json::json;

    use super::*;

    /// Jobs, each by its kind, status, exit code and version.
    fn jobs(told: &[(&str, &str, i32, &str)]) -> Vec<Job> {
        let job = |(at, (kind, status, code, version)): (usize, &(&str, &str, i32, &str))| {
            let job = json!({
                "id": format!("job-{at:032x}"), "kind": kind, "status": status, "exitCode": code,
                "version": version, "application": "shop", "service": "web", "channel": "eu",
                "runtime": "tool", "attempt": 1, "message": "",
                "createdAt": Timestamp::from_millis(0).to_string(),
            });
            serde_json::from_value(job).unwrap()
        };
        told.iter().enumerate().map(job).collect()
    }

    #[test]
    fn attempts_that_failed_alike_in_a_row_are_one_line_with_their_count() {
        let check = |told: &[(&str, &str, i32, &str)], expected: &[(usize, usize)]| {
            let jobs = jobs(told);
            let at = |line: &JobLine<'_>| jobs.iter().position(|job| job.id == line.job.id);
            let lines: Vec<_> =
                folded(&jobs).iter().map(|line| (at(line).unwrap(), line.times)).collect();
            assert_eq!(lines, expected, "{told:?}");
        };
        let failed = ("apply", "FAILED", 7, "web-2");
        check(&[], &[]);
        check(&[failed, failed, failed], &[(0, 3)]);
        // What is not alike is told, and so is what came in between.
        let others = [
            ("apply", "FAILED", 8, "web-2"),
            ("apply", "FAILED", 7, "web-1"),
            ("fetch", "FAILED", 7, "web-2"),
            ("apply", "UNKNOWN", 7, "web-2"),
            ("apply", "SUCCEEDED", 0, "web-2"),
        ];
        for other in others {
            check(&[failed, failed, other, failed], &[(0, 2), (2, 1), (3, 1)]);
        }
        // Each that went well is a line of its own.
        let well = ("fetch", "SUCCEEDED", 0, "web-2");
        check(&[well, well, failed, failed], &[(0, 1), (1, 1), (2, 2)]);
    }
}
