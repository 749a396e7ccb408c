//! A job in flight, and what keeps it from starting.

use std::time::Duration;

use schema::id::{ApprovalId, BlobId, JobId, ReleaseId, RuntimeName};
use schema::status::JobKind;
use schema::time::Timestamp;
use serde::{Deserialize, Serialize};

use super::ApplyAttempts;
use crate::action::StopReason;
use crate::desired::{FetchAnswer, WorkExitCodes};
use crate::limits::CLOCKS_APART;

/// A job in flight: decided, and its end not known yet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Job {
    pub id: JobId,
    /// Which command.
    pub kind: JobKind,
    /// From 1.
    pub attempt: u32,
    /// The release that it is for.
    pub release: ReleaseId,
    pub version: String,
    /// The commands that it runs.
    pub compiled: BlobId,
    /// The runtime in whose lane it has a place.
    pub runtime: RuntimeName,
    /// For a fetch: how it answers, whatever the config says of fetch by now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fetch_mode: Option<FetchAnswer>,
    /// And with which codes it says that there is work.
    #[serde(default, skip_serializing_if = "WorkExitCodes::are_usual")]
    pub work: WorkExitCodes,
    /// For an apply without fetch: what the desired state remembers when it succeeds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) apply_key: Option<String>,
    /// For an apply: the approvals by which it was let through. Those for a single apply are used
    /// up with it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) uses: Vec<ApprovalId>,
    /// When it was decided.
    pub decided_at: Timestamp,
    /// When its command started; `None` = nobody has said so yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at: Option<Timestamp>,
    /// What keeps it from starting, as its runner said last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waits: Option<Box<Wait>>,
    /// Since when something does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waits_since: Option<Timestamp>,
    /// When the engine stops waiting: stops the job, or calls it unknown if it was stopped
    /// already. `None` only for an apply without timeout that runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline: Option<Timestamp>,
    /// Longest run.
    #[serde(
        rename = "timeout_ms",
        default,
        skip_serializing_if = "Option::is_none",
        with = "crate::millis::maybe"
    )]
    pub timeout: Option<Duration>,
    /// How long its place lets it end once it was asked to; `None` = no longer than usual.
    #[serde(
        rename = "stop_grace_ms",
        default,
        skip_serializing_if = "Option::is_none",
        with = "crate::millis::maybe"
    )]
    pub stop_grace: Option<Duration>,
    /// Why it was asked to stop, if it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop: Option<StopReason>,
    /// When, the first time; `None` also where a version of before asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stopped_at: Option<Timestamp>,
    /// For an apply that is not known to have started: the applies before it, so that one that is
    /// withdrawn leaves no trace.
    #[serde(rename = "chain_before", default, skip_serializing_if = "Option::is_none")]
    pub(crate) attempts_before: Option<Box<ApplyAttempts>>,
}

/// What keeps a job from starting, in the words of the place where it is to run. For people: it
/// moves nothing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Wait {
    /// What it waits for: "ErrImagePull: …".
    pub why: String,
    /// What would end it, as the end of the sentence "it ends when …".
    pub ends_when: String,
    /// When the runner gives up. The job's own deadline may come first.
    pub until: Timestamp,
    /// Whether another job takes its place then, because the surroundings are to blame.
    pub tried_again: bool,
    /// Whether it is its place that cannot be looked at, so that the job may run, or be over, or
    /// that does not take its stop.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_unseen: bool,
}

/// Whether a command that ended at this time, by the clock of its place, had ended by itself before
/// it was asked to stop at that one.
pub fn had_ended(ended_at: Timestamp, stopped_at: Timestamp) -> bool {
    ended_at.plus(CLOCKS_APART) <= stopped_at
}

impl Job {
    /// When it is given up if it has not started: at its own deadline, or when its runner gives up.
    pub fn starts_by(&self) -> Option<Timestamp> {
        self.waits.as_ref().map(|wait| wait.until).into_iter().chain(self.deadline).min()
    }
}
