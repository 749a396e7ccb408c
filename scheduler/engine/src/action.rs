//! Everything the engine can ask for. Committed together with the state that asks for it, performed
//! afterwards, and safe to perform twice: the job's id is made from what is wanted, so a repeated
//! start finds the first.

use std::collections::BTreeMap;
use std::time::Duration;

use schema::id::{BlobId, JobId, ReleaseId};
use schema::log_kind::LogKind;
use schema::status::JobKind;
use schema::target::JobTarget;
use schema::time::Timestamp;
use serde::{Deserialize, Serialize};

/// Something to do in the world.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Action {
    /// Start a job, unless it was started before.
    Start(StartJob),
    /// Stop a job: the stop signal, then KILL. Repeated stops are harmless.
    Stop {
        job: JobId,
        /// Why, for the log.
        why: StopReason,
    },
    /// Forget a start that was never handed to a runner: the job is over and did not run.
    Withdraw {
        job: JobId,
        /// Why, for people.
        why: String,
    },
    /// Make a release of this service that goes back to an earlier one, in this channel.
    Rollback {
        /// The release that is stuck.
        from: ReleaseId,
        /// The last one that converged.
        to: ReleaseId,
    },
    /// Write a line into the append-only log.
    Log(LogLine),
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StartJob {
    /// Its id, derived from instance, kind and a running number.
    pub job: JobId,
    /// Which command.
    pub kind: JobKind,
    /// From 1.
    pub attempt: u32,
    /// The release that it is for.
    pub release: ReleaseId,
    /// The compiled commands.
    pub compiled: BlobId,
    /// Where it runs; `None` as in [`crate::desired::Desired::target`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<JobTarget>,
    /// The desired version.
    pub version: String,
    /// When it was decided.
    pub decided_at: Timestamp,
    /// Longest run; `None` = no limit.
    #[serde(rename = "timeout_ms", default, with = "crate::millis::maybe")]
    pub timeout: Option<Duration>,
    /// For a fetch or a getInfo that merely had its turn: an answer that was asked for after this
    /// instant will do, for nothing that is known of has changed anything since. `None`: how it is
    /// now is wanted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fresh_after: Option<Timestamp>,
    /// For an apply: the job of the fetch that found the work, whose output files `fetch:NAME`
    /// names.
    pub fetch_job: Option<JobId>,
    /// For an apply: the plan of that fetch.
    pub plan: Option<BlobId>,
    /// Why, for people: "fetch found work to do", "first look at my-service-3".
    pub why: String,
    /// Whether, in place of the command, what it needs is tried: a dry run of a fetch by
    /// `runtimes check`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_check: bool,
}

/// Why a job is stopped.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum StopReason {
    /// A person asked.
    Person(String),
    /// Its deadline passed.
    Deadline,
    /// The instance was deleted or paused (fetch and getInfo only; an apply is never stopped by
    /// us).
    NotWanted,
}

/// One line of the log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogLine {
    /// What happened.
    pub kind: LogKind,
    /// The person behind it, if any.
    pub actor: Option<String>,
    /// A sentence for people.
    pub message: String,
    /// More, for programs: flat, text to text.
    pub data: std::collections::BTreeMap<String, String>,
}

/// A line of the log as an action.
pub(crate) fn log(
    kind: LogKind,
    actor: Option<String>,
    message: String,
    data: &[(&str, &str)],
) -> Action {
    let data: BTreeMap<String, String> =
        data.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
    Action::Log(LogLine { kind, actor, message, data })
}
