//! What must be so before a release reaches a channel. All of the language that depends on the kind
//! of a precondition is here: its type, what it is called, the names and texts in it, its rules. So
//! a new kind is a field of [`Precondition`], and the compiler leads through the rest.

use std::collections::BTreeSet;

use schema::id::ChannelName;

use crate::message::{message, message_with_one, one_of};
use crate::selector::Selector;

one_of! {
    /// Something that must be so before a release is applied: exactly one of its fields.
    #[schemars(extend("x-exactlyOne" = [
        "releaseChannelStable", "manualApproval", "sharedManualApproval"
    ]))]
    Precondition {
        /// Another channel has converged at the same version.
        release_channel_stable: ReleaseChannelStable => ReleaseChannelStable,
        /// People say yes for this channel.
        manual_approval: ManualApproval => ManualApproval,
        /// People say yes once for all channels that name the same approval.
        shared_manual_approval: SharedManualApproval => SharedManualApproval,
    }
}

message_with_one! {
    /// Other channels have converged at the same version: exactly one of `releaseChannel`,
    /// `selector`.
    #[schemars(extend("x-exactlyOne" = ["releaseChannel", "selector"]))]
    ReleaseChannelStable {}
    /// Which channels.
    channels: StableChannels {
        /// The channel. In a group's template it may be a template.
        #[schemars(length(min = 1))]
        release_channel: String => ReleaseChannel,
        /// Channels by their labels, as in `@group=staging`.
        #[schemars(length(min = 1))]
        selector: Selector => Selector,
    }
    {
        /// Accept a selector that matches no channel. Default: false.
        #[serde(default)]
        allow_empty: bool,
    }
}

/// Which channels a [`ReleaseChannelStable`] is about.
#[derive(Debug, Clone, PartialEq)]
pub enum StableChannels {
    /// `releaseChannel`.
    ReleaseChannel(String),
    /// `selector`. In a group's template it is a template, and selects nothing before its values
    /// are put in.
    Selector(Selector),
}

message! {
    /// People say yes for this channel.
    ManualApproval {
        /// What people see.
        name: Option<String>,
        /// What they should know.
        description: Option<String>,
        /// Ask for every apply, not only for the first of a release. Default: false.
        #[serde(default)]
        every_action: bool,
        /// Different people who must say yes. Default: 1.
        #[schemars(range(min = 1))]
        min_approvers: Option<u32>,
    }
}

message! {
    /// People say yes once for all channels that name the same approval. When the commands of one
    /// of them change, all of them that are not converged yet ask anew.
    SharedManualApproval {
        /// The shared name.
        #[schemars(length(min = 1))]
        name: String,
        /// What they should know.
        description: Option<String>,
        /// Different people who must say yes. Default: 1.
        #[schemars(range(min = 1))]
        min_approvers: Option<u32>,
    }
}

impl Precondition {
    /// The field by which it is given.
    pub fn field(&self) -> &'static str {
        match self {
            Self::ReleaseChannelStable(_) => "releaseChannelStable",
            Self::ManualApproval(_) => "manualApproval",
            Self::SharedManualApproval(_) => "sharedManualApproval",
        }
    }

    /// Puts in place of each text that is a template where a group has it what `render` makes of
    /// that; each comes with its field below that of the precondition.
    pub fn map_texts(&mut self, render: &mut dyn FnMut(&'static str, &str) -> String) {
        let mut map = |field, text: &mut String| *text = render(field, text);
        match self {
            Self::ReleaseChannelStable(stable) => match &mut stable.channels {
                StableChannels::ReleaseChannel(channel) => map("releaseChannel", channel),
                StableChannels::Selector(selector) => {
                    *selector = render("selector", &selector.to_string()).into();
                }
            },
            Self::ManualApproval(approval) => {
                approval.name.iter_mut().for_each(|text| map("name", text));
                approval.description.iter_mut().for_each(|text| map("description", text));
            }
            Self::SharedManualApproval(approval) => {
                map("name", &mut approval.name);
                approval.description.iter_mut().for_each(|text| map("description", text));
            }
        }
    }

    /// The channels that it waits for, and the field below that of the precondition which says
    /// which.
    pub(crate) fn channels(&self) -> Option<(&'static str, &StableChannels)> {
        match self {
            Self::ReleaseChannelStable(stable) => Some(match &stable.channels {
                channels @ StableChannels::ReleaseChannel(_) => ("releaseChannel", channels),
                channels @ StableChannels::Selector(_) => ("selector", channels),
            }),
            Self::ManualApproval(_) | Self::SharedManualApproval(_) => None,
        }
    }

    /// The name by which a decision of people on it is known, if it has one.
    fn decision_name(&self) -> Option<&str> {
        match self {
            Self::ReleaseChannelStable(_) => None,
            Self::ManualApproval(approval) => approval.name.as_deref(),
            Self::SharedManualApproval(approval) => Some(&approval.name),
        }
    }

    /// What is wrong with it by itself: the field below that of the precondition, and a sentence.
    /// `is_template`: whether it stands in the template of a group.
    fn violations(&self, is_template: bool) -> Vec<(&'static str, String)> {
        match self {
            Self::ReleaseChannelStable(stable) => stable.violations(is_template),
            Self::ManualApproval(_) | Self::SharedManualApproval(_) => Vec::new(),
        }
    }
}

impl ReleaseChannelStable {
    fn violations(&self, is_template: bool) -> Vec<(&'static str, String)> {
        let StableChannels::ReleaseChannel(channel) = &self.channels else { return Vec::new() };
        let mut violations = Vec::new();
        if !(is_template && channel.contains("{{"))
            && let Err(error) = channel.parse::<ChannelName>()
        {
            violations.push(("releaseChannel", error.to_string()));
        }
        if self.allow_empty {
            let what = "`allowEmpty` is about `selector`, which is missing";
            violations.push(("allowEmpty", what.to_owned()));
        }
        violations
    }
}

/// What is wrong with the preconditions of one channel: where, from the list on, and a sentence.
pub(crate) fn violations(
    preconditions: &[Precondition],
    is_template: bool,
) -> Vec<(String, String)> {
    let mut violations = Vec::new();
    let mut add = |index: usize, precondition: &Precondition, field: &str, what: String| {
        violations.push((format!("{index}/{}/{field}", precondition.field()), what));
    };
    // By its name a decision is known: one yes would count for both.
    let mut decisions = BTreeSet::new();
    for (index, precondition) in preconditions.iter().enumerate() {
        let kind = precondition.field();
        let twice = precondition.decision_name().filter(|name| !decisions.insert((kind, *name)));
        if let Some(name) = twice {
            let what = format!("`{kind}` `{name}` is given twice, so one yes would count for both");
            add(index, precondition, "name", what);
        }
    }
    for (index, precondition) in preconditions.iter().enumerate() {
        for (field, what) in precondition.violations(is_template) {
            add(index, precondition, field, what);
        }
    }
    violations
}
