//! The document `application`: release channels and groups of channels.

use schema::id::{ApplicationName, ChannelName, ConnectionName, GroupName, RuntimeName};

use crate::env::Env;
use crate::group_template::{ConstantTemplate, LabelTemplate};
use crate::message::message;
use crate::notifications::NotificationTarget;
use crate::params::Constant;
use crate::precondition::Precondition;
use crate::runtime::Label;
use crate::selector::Selector;
use crate::template::Template;

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
        /// Who is told without asking: of approvals, failures, drift.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        notifications: Vec<NotificationTarget>,
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

message! {
    /// One channel for each runtime that matches, named `{group}-{runtime}`.
    ChannelGroup {
        /// Name of the group.
        name: GroupName,
        /// Runtimes by their labels: `key=value`; side by side both, `+` either, `-` in front
        /// without, parentheses group.
        #[schemars(length(min = 1))]
        runtime_selector: Selector,
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
        name: Option<Template>,
        /// More about the runtime of the channel; an entry has to name that one.
        #[serde(default)]
        runtimes: Vec<TemplateRuntime>,
        /// What holds for all its services.
        policy: Option<Policy>,
        /// Constants for templates.
        #[serde(default)]
        #[schemars(with = "Vec<Constant>")]
        constants: Vec<ConstantTemplate>,
        /// Labels for selectors.
        #[serde(default)]
        #[schemars(with = "Vec<Label>")]
        labels: Vec<LabelTemplate>,
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
        runtime: Template,
        /// The name by which services ask for it (`runtimeConnection`). Default: the runtime's
        /// name.
        #[schemars(length(min = 1))]
        name: Option<Template>,
        /// Accepted and ignored.
        #[serde(rename = "type")]
        kind: Option<Template>,
    }
}
