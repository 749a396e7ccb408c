//! What one service instance should be: the part of a compiled release that the engine needs to
//! decide. How the commands look is the runner's business; the engine knows them by digest.

use std::time::Duration;

use schema::id::{BlobId, ReleaseId, RuntimeName};
use schema::schedule::Schedule;
use schema::target::JobTarget;
use schema::time::Timestamp;
use serde::{Deserialize, Serialize};

mod gate;
mod observe;

pub use gate::Gate;
pub(crate) use gate::{Question, Unmet};
pub use observe::{Observe, PollPolicy, WatchPolicy, WorkExitCodes};

/// The wanted end state of one instance and the rules on the way there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Desired {
    /// The release that asks for it.
    pub release: ReleaseId,
    /// The desired version.
    pub version: String,
    /// When the release was made; `progress_deadline` counts from here.
    pub released_at: Timestamp,
    /// The custom runtime, whose `max_concurrency` counts.
    pub runtime: RuntimeName,
    /// Applies of that runtime at a time; `None` = no limit. At least 1.
    pub max_concurrency: Option<u32>,
    /// Digest of the compiled commands. Another digest under the same release: the runtime's
    /// config changed, so fetch again.
    pub compiled: BlobId,
    /// Where its jobs run; `None` in what was compiled before this was said. Handed on with each
    /// job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<JobTarget>,
    /// How it becomes known how the world is.
    #[serde(rename = "fetch", default)]
    pub observe: Observe,
    /// How to apply.
    pub apply: ApplyPolicy,
    /// How to inform; `None` = the runtime has no getInfo.
    pub get_info: Option<InfoPolicy>,
    /// What must be open before the release's first apply, in the order of the config.
    pub gates: Vec<Gate>,
    /// Ask for every apply (`requireApprovalBeforeApply`).
    pub require_approval_before_apply: bool,
    /// Ask for an apply that may destroy something (`requireApprovalForDestroy`).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub require_approval_for_destroy: bool,
    /// How long an approval stays valid; `None` = for ever.
    #[serde(rename = "approval_timeout_ms", default, with = "crate::millis::maybe_positive")]
    pub approval_timeout: Option<Duration>,
    /// `convergenceGracePeriod`, from the start of an apply.
    #[serde(rename = "grace_ms", with = "crate::millis")]
    pub grace: Duration,
    /// The rendered `applyId`: for a runtime without fetch, apply only when it differs from that
    /// of the last apply, if that succeeded.
    pub apply_id: Option<String>,
    /// `progressDeadline`: not converged by then is FAILED (STUCK).
    #[serde(rename = "progress_deadline_ms", default, with = "crate::millis::maybe_positive")]
    pub progress_deadline: Option<Duration>,
    /// Go back to the last converged release when stuck.
    pub auto_rollback: bool,
    /// Whether this channel was converged at this version before: then [`Gate::ChannelsStable`] is
    /// met for it already, and the channel can go back to it although the others have moved
    /// on.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub stable_before: bool,
    /// Whether the release went back to an earlier one: then it is not taken back by itself, for
    /// that would lead to what was left.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_rollback: bool,
    /// What the shared approvals are for, besides the release: another value wherever the commands
    /// of one of its channels change, the same one in all of them. `None` = the commands with
    /// which it was released.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shared_for: Option<BlobId>,
}

/// What a fetch's answer means.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum FetchAnswer {
    /// 0 = converged, 2 = work to do, anything else an error.
    ExitCode,
    /// Exit 0 and a `FetchOutput`, held against the desired version.
    StructuredOutput,
}

/// When something that repeats is due.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Cadence {
    /// Counted from the end of the previous run.
    Interval {
        /// While not converged.
        #[serde(rename = "poll_ms", with = "crate::millis::positive")]
        poll: Duration,
        /// While converged; up to 10 % of jitter is added, never taken away.
        #[serde(rename = "steady_ms", with = "crate::millis::positive")]
        steady: Duration,
    },
    /// At the instants of a cron schedule.
    Cron(Schedule),
}

/// How to apply.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApplyPolicy {
    /// Exit codes that mean "try again", sorted.
    pub retryable_exit_codes: Vec<i32>,
    /// Back-off for those.
    pub retry: RetryPolicy,
    /// Apply only inside.
    pub window: Option<Window>,
    /// Longest run; `None` = no limit of ours.
    #[serde(rename = "timeout_ms", default, with = "crate::millis::maybe")]
    pub timeout: Option<Duration>,
    /// How long its place lets it end once it was asked to; `None` = no longer than usual.
    #[serde(
        rename = "stop_grace_ms",
        default,
        skip_serializing_if = "Option::is_none",
        with = "crate::millis::maybe"
    )]
    pub stop_grace: Option<Duration>,
}

/// How to inform.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct InfoPolicy {
    /// When it is due.
    pub cadence: Cadence,
    /// Back-off after errors.
    pub retry: RetryPolicy,
    /// Longest run.
    #[serde(rename = "timeout_ms", with = "crate::millis")]
    pub timeout: Duration,
    /// How long its place lets it end once it was asked to; `None` = no longer than usual.
    #[serde(
        rename = "stop_grace_ms",
        default,
        skip_serializing_if = "Option::is_none",
        with = "crate::millis::maybe"
    )]
    pub stop_grace: Option<Duration>,
}

/// Exponential back-off.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RetryPolicy {
    /// First wait, at least a millisecond.
    #[serde(rename = "base_ms", with = "crate::millis::positive")]
    pub base: Duration,
    /// Longest wait, at least `base`.
    #[serde(rename = "max_ms", with = "crate::millis::positive")]
    pub max: Duration,
    /// Attempts in all; `None` = no limit.
    pub max_attempts: Option<u32>,
}

/// A recurring span of time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Window {
    /// When it opens.
    pub opens: Schedule,
    /// How long it stays open.
    #[serde(rename = "duration_ms", with = "crate::millis")]
    pub duration: Duration,
}
