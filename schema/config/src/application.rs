//! The document `application`: release channels, what must be so before a release reaches them, and
//! groups of channels.

use schema::id::{ApplicationName, ChannelName, ConnectionName, GroupName, RuntimeName};

use crate::env::Env;
use crate::message::{message, message_with_one, one_of};
use crate::params::Constant;
use crate::runtime::Label;

message! {
    /// An application: the channels through which its services are released.
    Application {
        /// Its name, unique in the scheduler.
        name: ApplicationName,
        /// Its channels, in the order in which people see them.
        #[serde(default)]
        release_channels: Vec<ReleaseChannel>,
        /// Channels made from runtimes, one for each that matches.
        #[serde(default)]
        release_channel_groups: Vec<ChannelGroup>,
    }
}

message! {
    /// A release channel.
    ReleaseChannel {
        /// Its name, unique in the application.
        name: ChannelName,
        /// A group to show it in and for the selector `@group`.
        group: Option<GroupName>,
        /// The runtimes that serve it.
        #[serde(default)]
        runtimes: Vec<ChannelRuntime>,
        /// What holds for all its services.
        policy: Option<Policy>,
        /// Constants for templates.
        #[serde(default)]
        constants: Vec<Constant>,
        /// Labels for selectors.
        #[serde(default)]
        labels: Vec<Label>,
        /// What must be so before a release is applied here.
        #[serde(default)]
        preconditions: Vec<Precondition>,
    }
}

message! {
    /// A runtime that serves a channel.
    ChannelRuntime {
        /// The runtime.
        runtime: RuntimeName,
        /// The name by which services ask for it (`runtimeConnection`). Default: the runtime's
        /// name.
        name: Option<ConnectionName>,
        /// Accepted and ignored.
        #[serde(rename = "type")]
        kind: Option<String>,
    }
}

message! {
    /// What holds for all services of a channel.
    Policy {
        /// Environment with the lowest precedence.
        #[serde(default, skip_serializing_if = "Env::is_empty")]
        #[schemars(extend("propertyNames" = {"pattern": r"^[a-zA-Z_][a-zA-Z0-9_]*$"}))]
        default_env: Env,
    }
}

one_of! {
    /// Something that must be so before a release is applied: exactly one of its fields.
    #[schemars(extend("x-exactlyOne" = ["releaseChannelStable", "manualApproval", "sharedManualApproval"]))]
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
        selector: String => Selector,
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
    /// `selector`.
    Selector(String),
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

message! {
    /// One channel for each runtime that matches, named `{group}-{runtime}`.
    ChannelGroup {
        /// Name of the group.
        name: GroupName,
        /// Runtimes by their labels: `key=value`; side by side both, `+` either, `-` in front
        /// without, parentheses group.
        #[schemars(length(min = 1))]
        runtime_selector: String,
        /// Accept a selector that matches no runtime. Default: false.
        #[serde(default)]
        allow_empty: bool,
        /// What each of the channels has besides. Its texts are templates over
        /// `{{.Builtins.Group}}` and `{{.Builtins.Runtime…}}`.
        template: Option<ChannelTemplate>,
    }
}

message! {
    /// What each channel of a group has besides its name, group and runtime. Texts are templates.
    ChannelTemplate {
        /// Instead of `{group}-{runtime}`.
        #[schemars(length(min = 1))]
        name: Option<String>,
        /// More about the runtime of the channel; an entry has to name that one.
        #[serde(default)]
        runtimes: Vec<TemplateRuntime>,
        /// What holds for all its services.
        policy: Option<Policy>,
        /// Constants for templates.
        #[serde(default)]
        constants: Vec<Constant>,
        /// Labels for selectors.
        #[serde(default)]
        labels: Vec<Label>,
        /// What must be so before a release is applied there.
        #[serde(default)]
        preconditions: Vec<Precondition>,
    }
}

message! {
    /// The runtime of a channel of a group. Texts are templates.
    TemplateRuntime {
        /// The runtime that the channel is made for: `{{.Builtins.Runtime.Name}}`.
        #[schemars(length(min = 1))]
        runtime: String,
        /// The name by which services ask for it (`runtimeConnection`). Default: the runtime's
        /// name.
        #[schemars(length(min = 1))]
        name: Option<String>,
        /// Accepted and ignored.
        #[serde(rename = "type")]
        kind: Option<String>,
    }
}
