//! What keeps the applies of a release back until something is so. All that depends on the kind of
//! a gate is here: what it asks of people, what it waits for, and what is said of that. The rest of
//! the engine knows questions and what is unmet, whatever gate they are of.

use std::collections::BTreeSet;

use schema::cause::CauseCode;
use schema::id::ChannelName;
use schema::status::{ApprovalKind, Reason};
use serde::{Deserialize, Serialize};

use super::Desired;

/// What people are told who are asked because of `requireApprovalForDestroy`.
const MAY_DESTROY: &str = "its plan destroys or replaces something, or its fetch left no empty \
                           `plan-destroys` that says otherwise";

/// A gate of the release.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Gate {
    /// Each of these channels must be CONVERGED at this release's version; once met it stays met
    /// for the release, and for every other one that goes back to this version here.
    ChannelsStable {
        /// The channels, a selector already resolved; may be empty, which is met.
        channels: Vec<ChannelName>,
    },
    /// People decide for this channel.
    ManualApproval {
        /// The config's name for it.
        name: Option<String>,
        /// What to tell the people who are asked.
        description: Option<String>,
        /// Ask for each apply, not only once per release.
        every_action: bool,
        /// Different people who must say yes, at least 1.
        min_approvers: u32,
    },
    /// People decide once for all channels of the release that name the same approval.
    SharedApproval {
        /// The shared name.
        name: String,
        /// What to tell the people who are asked.
        description: Option<String>,
        /// Different people who must say yes, at least 1.
        min_approvers: u32,
    },
}

impl Gate {
    /// The channels that must be stable first.
    pub fn upstream(&self) -> &[ChannelName] {
        match self {
            Self::ChannelsStable { channels } => channels,
            Self::ManualApproval { .. } | Self::SharedApproval { .. } => &[],
        }
    }

    /// Whether people decide on it once for several channels.
    pub fn is_shared(&self) -> bool {
        self.approval() == Some(ApprovalKind::Shared)
    }

    /// What people are to approve; `None` where nobody is asked.
    pub(crate) fn approval(&self) -> Option<ApprovalKind> {
        match self {
            Self::ChannelsStable { .. } => None,
            Self::ManualApproval { every_action: true, .. } => Some(ApprovalKind::Apply),
            Self::ManualApproval { every_action: false, .. } => Some(ApprovalKind::Manual),
            Self::SharedApproval { .. } => Some(ApprovalKind::Shared),
        }
    }

    /// What people are asked. `at`: its index among the gates, which tells it from others where
    /// nobody gave it a name.
    pub(crate) fn asks(&self, at: usize) -> Option<Question<'_>> {
        let kind = self.approval()?;
        let (gate, name, description, min_approvers) = match self {
            Self::ChannelsStable { .. } => return None,
            Self::ManualApproval { name, description, min_approvers, .. } => {
                let gate = name
                    .as_ref()
                    .map_or_else(|| format!("manual {at}"), |name| format!("manual:{name}"));
                (gate, name.as_deref(), description, min_approvers)
            }
            Self::SharedApproval { name, description, min_approvers } => {
                (format!("shared:{name}"), Some(name.as_str()), description, min_approvers)
            }
        };
        let (description, needed) = (description.as_deref(), (*min_approvers).max(1));
        Some(Question { gate, kind, name, description, needed })
    }

    /// What it waits for that is not for people to say. `met`: channels that were stable once at
    /// the version of the release, `is_stable` where all count as such.
    fn unmet(&self, met: &BTreeSet<ChannelName>, is_stable: bool) -> Option<Unmet> {
        match self {
            Self::ChannelsStable { channels } => {
                let is_missing = |channel: &&ChannelName| !is_stable && !met.contains(*channel);
                let missing: Vec<_> = channels.iter().filter(is_missing).cloned().collect();
                (!missing.is_empty()).then_some(Unmet::Channels(missing))
            }
            Self::ManualApproval { .. } | Self::SharedApproval { .. } => None,
        }
    }
}

impl Desired {
    /// What its gates wait for that is not for people to say, what can be said in one sentence
    /// together. `met`: channels that were stable once at this version.
    pub(crate) fn unmet(&self, met: &BTreeSet<ChannelName>) -> Vec<Unmet> {
        let mut all: Vec<Unmet> = Vec::new();
        for unmet in self.gates.iter().filter_map(|gate| gate.unmet(met, self.stable_before)) {
            match (all.last_mut(), unmet) {
                (Some(Unmet::Channels(channels)), Unmet::Channels(more)) => channels.extend(more),
                (None, unmet) => all.push(unmet),
            }
        }
        all
    }
}

/// What people are asked.
pub(crate) struct Question<'a> {
    /// By what its approvals are known.
    pub(crate) gate: String,
    pub(crate) kind: ApprovalKind,
    pub(crate) name: Option<&'a str>,
    pub(crate) description: Option<&'a str>,
    /// How many different people must say yes.
    pub(crate) needed: u32,
}

impl Question<'_> {
    /// That of `requireApprovalBeforeApply`.
    pub(crate) fn before_apply() -> Self {
        let (gate, kind) = ("apply".to_owned(), ApprovalKind::Apply);
        Self { gate, kind, name: None, description: None, needed: 1 }
    }

    /// That of `requireApprovalForDestroy`. Under the same gate, for it is about the same apply.
    pub(crate) fn before_destroy() -> Self {
        Self { description: Some(MAY_DESTROY), ..Self::before_apply() }
    }
}

/// What a gate waits for that asks nobody, with the words for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Unmet {
    /// These channels are not stable at the version of the release.
    Channels(Vec<ChannelName>),
}

impl Unmet {
    /// Why an instance stands there.
    pub(crate) fn reason(&self) -> Reason {
        match self {
            Self::Channels(_) => Reason::ReleaseChannelDependencyUnmet,
        }
    }

    /// What has to come about, as the end of the sentence "it waits until …".
    pub(crate) fn until(&self, version: &str) -> String {
        match self {
            Self::Channels(channels) => {
                let names: Vec<String> =
                    channels.iter().map(|channel| format!("`{channel}`")).collect();
                let are = if names.len() == 1 { "is" } else { "are" };
                format!("{} {are} converged at {version}", names.join(" and "))
            }
        }
    }

    /// Why an apply that was decided does not start, as the end of the sentence "it was withdrawn
    /// before it started: …".
    pub(crate) fn comes_first(&self) -> &'static str {
        match self {
            Self::Channels(_) => "another channel has to be stable first",
        }
    }

    /// The channels that it is about: of each `explain` says itself what brings it there, as it
    /// knows more of them than their gate does.
    pub(crate) fn channels(&self) -> &[ChannelName] {
        match self {
            Self::Channels(channels) => channels,
        }
    }

    /// What `explain` says would end it, where it is not about channels.
    pub(crate) fn way_out(&self) -> Option<(CauseCode, String)> {
        match self {
            Self::Channels(_) => None,
        }
    }
}
