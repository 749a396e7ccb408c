//! What is remembered of one service instance between two steps. Made by [`State::new`], changed
//! only by [`crate::step()`], stored by the driver as JSON, checked by [`State::check`] (every
//! invariant by name, in `broken.rs`). What is known of the world, the way of the release, what
//! getInfo told and the approvals are parts that own their fields; what concerns several of them is
//! decided by the rooms around.
//!
//! Instants are of two kinds: history (`since`, `answered_at`) is for people and never moves
//! anything; plans (`due`, `deadline`, `until`, `again_at`) move things, and move along when the
//! clock jumps, see `clock.rs`.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use schema::id::{BlobId, ChannelName, InstanceId, JobId, ReleaseId, RuntimeName};
use schema::status::{Reason, Status};
use schema::time::Timestamp;
use serde::{Deserialize, Serialize};

use crate::desired::Desired;

mod approval;
mod approvals;
mod attempts;
mod broken;
mod changes;
mod drift;
mod finding;
mod format;
mod held;
mod info;
mod job;
mod lift;
mod observe_wish;
mod observed;
mod read;
mod rollout;

pub use approval::{Approval, Vote};
pub use approvals::APPROVALS_KEPT;
pub(crate) use approvals::Approvals;
pub(crate) use attempts::{ApplyAttempts, ApplyEnd};
pub use broken::BrokenInvariant;
pub(crate) use changes::PlanChanges;
pub(crate) use drift::Drifts;
pub use drift::{DRIFTS_KEPT, DriftAcknowledgement, DriftRecord};
pub use finding::Matched;
pub(crate) use finding::{Finding, Work};
pub use format::FORMAT;
pub use held::AppliesHeld;
pub(crate) use info::InfoState;
pub use job::{Job, Wait, had_ended};
pub use lift::WindowLift;
pub use observe_wish::ObserveWish;
pub(crate) use observed::{ObservedState, WatchState};
pub(crate) use rollout::Rollout;

use format::StateFormat;

/// Most different commands of which it is remembered that jobs were started with them: those of
/// some changes of a config, or releases.
pub const COMMANDS_KEPT: usize = 16;

/// One service instance.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct State {
    #[serde(default)]
    format: StateFormat,
    pub(crate) instance: InstanceId,
    /// The latest instant that a step was told; effective time never runs behind it except when
    /// the clock is set back.
    pub(crate) seen_at: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) desired: Option<Box<Desired>>,
    #[serde(default, skip_serializing_if = "is_false")]
    pub(crate) paused: bool,
    /// Who paused it: name of the token used; `None` also where a version of before paused it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) paused_by: Option<String>,
    /// What for, in that person's words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) pause_reason: Option<String>,
    /// Whether nobody is known to have paused it: what its row said of that was lost.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) pause_is_assumed: bool,
    /// Whether this run of the daemon only looks.
    #[serde(default, skip_serializing_if = "is_false")]
    pub(crate) observer: bool,
    /// That a person wants it to be observed only; never beside a pause.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) observe_wish: Option<Box<ObserveWish>>,
    #[serde(default, skip_serializing_if = "is_false")]
    pub(crate) deleted: bool,
    /// Jobs decided so far, of all kinds; part of each job's id.
    #[serde(default)]
    pub(crate) jobs: u64,
    /// Approvals asked so far; part of an approval's id.
    #[serde(default)]
    pub(crate) asked: u32,
    /// Watches begun so far: the number of the newest is its generation.
    #[serde(default, skip_serializing_if = "is_none_yet")]
    pub(crate) watches: u64,
    /// The fetch or apply in flight.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) main: Option<Box<Job>>,
    /// The getInfo in flight.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) side: Option<Box<Job>>,
    /// An apply that was given up and of which nobody has said that it is gone: no other apply
    /// beside it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) unsettled: Option<JobId>,
    /// The runtime in which that one ran; `None` where it was given up before this was kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) unsettled_in: Option<RuntimeName>,
    /// Fetches that were given up and of which nobody has said that they are gone: no apply beside
    /// them. At most [`crate::limits::LINGERING_FETCHES`].
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub(crate) lingering: BTreeSet<JobId>,
    #[serde(rename = "look")]
    pub(crate) observed: ObservedState,
    #[serde(rename = "pursuit")]
    pub(crate) rollout: Rollout,
    #[serde(rename = "telling")]
    pub(crate) info: InfoState,
    #[serde(default, skip_serializing_if = "Approvals::is_empty")]
    pub(crate) approvals: Approvals,
    /// At which version the channels that our gates name are CONVERGED.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) upstream: BTreeMap<ChannelName, String>,
    /// What was taken back by itself in those channels, where they are still there.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) upstream_back: BTreeMap<ChannelName, RolledBack>,
    /// What was taken back here by itself, until another release is desired than the one that it
    /// went back with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) rolled_back: Option<Box<RolledBack>>,
    /// The newest release that was seen converged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) converged: Option<Converged>,
    /// What somebody took it back to, and away from that, while nothing has converged since.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) taken_back: Option<Box<TakenBack>>,
    /// Without fetch: the `applyId`, or else the release, of the last apply, if that succeeded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) applied: Option<String>,
    /// Without fetch: the release that was as desired once, and stays so whatever its config
    /// becomes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) settled: Option<ReleaseId>,
    /// What the last apply left running, if it succeeded, and what became of that: a whole
    /// sentence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) left_behind: Option<String>,
    /// The commands of its jobs, each once, in the order in which they were first started with:
    /// what those were given may be live. The newest [`COMMANDS_KEPT`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) commands: Vec<BlobId>,
    /// A rollback was asked for and nothing has converged since; a second one could go round in
    /// circles.
    #[serde(default, skip_serializing_if = "is_false")]
    pub(crate) rollback_spent: bool,
    /// Drifts that were found since the release arrived.
    #[serde(default, skip_serializing_if = "Drifts::is_empty")]
    pub(crate) drifts: Drifts,
    /// That the applies of its runtime are held, as it was told when it waited for one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) held: Option<Box<AppliesHeld>>,
    pub(crate) wants: SlotRequests,
    pub(crate) standing: StatusSummary,
}

/// How the instance stands, in words: made where the decision is made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StatusSummary {
    /// How it stands.
    pub status: Status,
    /// Why, when there is more to say than the status.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<Reason>,
    /// A sentence for people.
    pub message: String,
    /// Since when status and reason are what they are.
    pub since: Timestamp,
    /// When fetch or apply, or the deadline of one, comes next by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_action_at: Option<Timestamp>,
}

/// Places in lanes that the instance waits for, each since when. First ready, first served.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct SlotRequests {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) fetch: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) apply: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) info: Option<Timestamp>,
}

/// A release seen converged.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Converged {
    pub release: ReleaseId,
    pub version: String,
    /// When it was first seen so.
    pub at: Timestamp,
}

/// What a release took an instance back to that has not arrived yet: what was converged after that
/// is left for good.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct TakenBack {
    /// The release that went back and its version, if that was converged here before.
    pub(crate) to: Option<(ReleaseId, String)>,
    /// What it was before, which counts again where somebody rejects this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) before: Option<Box<TakenBack>>,
}

/// A release that did not converge in time and was taken back by itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RolledBack {
    /// Its version.
    pub from: String,
    /// The version that it was taken back to.
    pub to: String,
    /// Its `progressDeadline`.
    #[serde(rename = "deadline_ms", with = "crate::millis")]
    pub deadline: Duration,
    /// When it was stuck.
    pub at: Timestamp,
    /// The release that it went back with; `None` until that is there, and where it was taken back
    /// before this was kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub with: Option<ReleaseId>,
}

impl RolledBack {
    /// Whether this is what it went back to. Without the release only the version tells.
    pub(crate) fn is_back(&self, desired: &Desired) -> bool {
        self.with.map_or_else(|| desired.version == self.to, |with| desired.release == with)
    }

    /// What is left of it where `next` takes the place of `old`: nothing once it went back, for
    /// whoever releases after that knows.
    pub(crate) fn followed_by(self, next: &Desired, old: Option<&Desired>) -> Option<Self> {
        let went = old.is_some_and(|old| self.is_back(old));
        (!went && next.is_rollback && next.version == self.to)
            .then_some(Self { with: Some(next.release), ..self })
    }
}

impl State {
    /// An instance of which nothing is known and nothing is wanted yet.
    pub fn new(instance: InstanceId, now: Timestamp) -> Self {
        Self {
            format: StateFormat,
            instance,
            seen_at: now,
            desired: None,
            paused: false,
            paused_by: None,
            pause_reason: None,
            pause_is_assumed: false,
            observer: false,
            observe_wish: None,
            deleted: false,
            jobs: 0,
            asked: 0,
            watches: 0,
            main: None,
            side: None,
            unsettled: None,
            unsettled_in: None,
            lingering: BTreeSet::new(),
            observed: ObservedState::default(),
            rollout: Rollout::default(),
            info: InfoState::default(),
            approvals: Approvals::default(),
            upstream: BTreeMap::new(),
            upstream_back: BTreeMap::new(),
            rolled_back: None,
            converged: None,
            taken_back: None,
            applied: None,
            settled: None,
            left_behind: None,
            commands: Vec::new(),
            rollback_spent: false,
            drifts: Drifts::default(),
            held: None,
            wants: SlotRequests::default(),
            standing: StatusSummary {
                status: Status::Converging,
                reason: Some(Reason::NoCurrentState),
                message: "no release yet".to_owned(),
                since: now,
                next_action_at: None,
            },
        }
    }
}

fn is_false(value: &bool) -> bool {
    !value
}

fn is_none_yet(count: &u64) -> bool {
    *count == 0
}

fn is_zero(value: &u32) -> bool {
    *value == 0
}
