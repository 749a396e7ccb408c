//! An application's release channels as they are meant: groups expanded, selectors resolved to
//! names, labels complete, and everything that cannot work found. Called by `check` and `instance`,
//! and by the driver for its tables.

use std::collections::{BTreeMap, BTreeSet};

use config::precondition::Precondition;
use config::{Application, ChannelRuntime, Constant, Env, Label, Policy, builtins};
use engine::desired::Gate;
use schema::id::{ApplicationName, ChannelName, ConnectionName, GroupName, RuntimeName};

use super::configs::Configs;
use super::nearest;
use super::problem::{DocumentField, DocumentKey, Problems};
use super::template::TemplateScope;

mod group;
mod preconditions;

pub use preconditions::upstream;

use group::expand;
use preconditions::{find_cycle, resolve_preconditions};

/// One release channel.
#[derive(Debug, Clone)]
pub struct Channel {
    pub name: ChannelName,
    /// The group that made it or that it was put into.
    pub group: Option<GroupName>,
    /// The runtimes that serve it, by the name under which services ask for them.
    pub connections: Vec<RuntimeConnection>,
    /// Its labels, with the automatic ones (`@type`, `@name`, `@id` once it has one, `@group`,
    /// `@application`).
    pub labels: BTreeMap<String, String>,
    /// Its preconditions as the config says them, templates rendered.
    pub preconditions: Vec<Precondition>,
    /// The same for the engine, channels by name.
    pub gates: Vec<Gate>,
    /// Where it is defined: the channel, or the group that made it.
    pub(super) place: DocumentField,
    /// Environment with the lowest precedence, and where it is.
    pub(super) default_env: (Env, DocumentField),
    /// Constants for templates.
    pub(super) constants: Vec<(String, String)>,
    /// Where each of its preconditions is.
    precondition_places: Vec<DocumentField>,
}

/// A runtime under the name by which services ask for it.
#[derive(Debug, Clone)]
pub struct RuntimeConnection {
    pub name: ConnectionName,
    pub runtime: RuntimeName,
}

impl Channel {
    /// The value of the automatic label `@type` of every channel.
    pub const TYPE: &str = "releaseChannel";
}

/// The channels of an application in the order of its config, those of groups after the others.
/// What is wrong goes into `problems`; the channels that make sense are returned all the same, so
/// that more can be checked.
pub(super) fn resolve(
    configs: &Configs,
    application: &Application,
    problems: &mut Problems,
) -> Vec<Channel> {
    let root = DocumentField::of(DocumentKey::Application(application.name.clone()));
    let mut channels = Vec::new();
    for (index, channel) in application.release_channels.iter().enumerate() {
        let place = root.field("releaseChannels").item(index);
        channels.push(Channel {
            name: channel.name.clone(),
            group: channel.group.clone(),
            connections: connections(configs, &channel.runtimes, &place, problems),
            labels: labels(&channel.labels),
            preconditions: channel.preconditions.clone(),
            precondition_places: places(&place.field("preconditions"), channel.preconditions.len()),
            gates: Vec::new(),
            default_env: default_env(channel.policy.as_ref(), &place),
            constants: constants(&channel.constants),
            place,
        });
    }
    for (index, group) in application.release_channel_groups.iter().enumerate() {
        expand(
            configs,
            group,
            &root.field("releaseChannelGroups").item(index),
            &mut channels,
            problems,
        );
    }
    drop_duplicates(&mut channels, problems);
    for channel in &mut channels {
        add_automatic_labels(configs, &application.name, channel);
    }
    resolve_preconditions(&mut channels, problems);
    find_cycle(&channels, problems);
    channels
}

fn connections(
    configs: &Configs,
    runtimes: &[ChannelRuntime],
    place: &DocumentField,
    problems: &mut Problems,
) -> Vec<RuntimeConnection> {
    let mut connections = Vec::new();
    for (index, entry) in runtimes.iter().enumerate() {
        let place = place.field("runtimes").item(index);
        if configs.runtime(&entry.runtime).is_none() {
            problems.add(
                place
                    .field("runtime")
                    .problem(format!("unknown runtime `{}`", entry.runtime))
                    .help(nearest::help(
                        entry.runtime.as_str(),
                        "runtimes",
                        configs.runtime_names(),
                    )),
            );
            continue;
        }
        let name = entry.name.clone().unwrap_or_else(|| ConnectionName::from(&entry.runtime));
        connections.push(RuntimeConnection { name, runtime: entry.runtime.clone() });
    }
    connections
}

/// Names that say which runtime serves a channel.
pub(super) fn add_runtime_builtins(
    scope: &mut TemplateScope,
    runtime: &RuntimeName,
    labels: &BTreeMap<String, String>,
) {
    scope.insert_text(builtins::RUNTIME_NAME, runtime.as_str());
    for (label, value) in labels {
        scope.insert_text(builtins::runtime_label(label), value.as_str());
    }
}

fn drop_duplicates(channels: &mut Vec<Channel>, problems: &mut Problems) {
    let mut names = BTreeSet::new();
    channels.retain(|channel| {
        let is_new = names.insert(channel.name.clone());
        if !is_new {
            let problem = channel
                .place
                .problem(format!("two release channels are called `{}`", channel.name));
            problems.add(problem.help(
                "a group makes `{group}-{runtime}`; rename the channel, the group, or set the \
                 group's `template.name`",
            ));
        }
        is_new
    });
}

fn add_automatic_labels(configs: &Configs, application: &ApplicationName, channel: &mut Channel) {
    let mut add = |label: &str, value: String| channel.labels.insert(label.to_owned(), value);
    add("@type", Channel::TYPE.to_owned());
    add("@name", channel.name.to_string());
    add("@application", application.to_string());
    if let Some(group) = &channel.group {
        add("@group", group.to_string());
    }
    if let Some(id) = configs.channel_id(application, &channel.name) {
        add("@id", id.to_string());
    }
}

fn default_env(policy: Option<&Policy>, place: &DocumentField) -> (Env, DocumentField) {
    (
        policy.map(|policy| policy.default_env.clone()).unwrap_or_default(),
        place.field("policy").field("defaultEnv"),
    )
}

fn constants(constants: &[Constant]) -> Vec<(String, String)> {
    constants
        .iter()
        .map(|constant| (constant.name.clone(), constant.string.value.clone()))
        .collect()
}

/// Labels by key; the last of a key wins.
pub(super) fn labels(labels: &[Label]) -> BTreeMap<String, String> {
    labels.iter().map(|label| (label.label.clone(), label.value.clone())).collect()
}

fn places(list: &DocumentField, length: usize) -> Vec<DocumentField> {
    (0..length).map(|index| list.item(index)).collect()
}
