//! An application's release channels as they are meant: groups expanded, selectors resolved to
//! names, labels complete, and everything that cannot work found. Called by `check` and `instance`,
//! and by the driver for its tables.

use std::collections::{BTreeMap, BTreeSet};

use config::selector::Selector;
use config::{
    Application, ChannelGroup, ChannelRuntime, ChannelTemplate, Constant, Env, Label, Policy,
    Precondition, StableChannels, TemplateRuntime, builtins,
};
use engine::desired::Gate;
use schema::id::{ApplicationName, ChannelName, ConnectionName, GroupName, RuntimeName};

use super::configs::Configs;
use super::nearest;
use super::problem::{DocumentField, DocumentKey, Problems};
use super::template::{self, Rendered, TemplateScope};

mod preconditions;

pub use preconditions::upstream;

use preconditions::{find_cycle, resolve_preconditions};

/// One release channel.
#[derive(Debug, Clone)]
pub struct Channel {
    /// Its name.
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
    /// The name.
    pub name: ConnectionName,
    /// The runtime.
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

/// Makes one channel for each runtime that the group selects.
fn expand(
    configs: &Configs,
    group: &ChannelGroup,
    place: &DocumentField,
    channels: &mut Vec<Channel>,
    problems: &mut Problems,
) {
    let selector = match Selector::parse(&group.runtime_selector) {
        Ok(selector) => selector,
        Err(error) => {
            let mut problem =
                place.field("runtimeSelector").problem(format!("malformed selector: {error}"));
            problem.offset = error.at;
            return problems.add(problem);
        }
    };
    let mut found = false;
    for runtime in configs.runtimes() {
        let runtime = &runtime.name;
        let runtime_labels = configs.runtime_labels(runtime);
        if !selector.matches(&runtime_labels) {
            continue;
        }
        found = true;
        let mut scope = TemplateScope::default();
        scope.insert_text(builtins::GROUP, group.name.as_str());
        add_runtime_builtins(&mut scope, runtime, &runtime_labels);
        channels.extend(from_template(group, runtime, &scope, place, problems));
    }
    if !found && !group.allow_empty {
        let known: BTreeSet<String> = configs
            .runtimes()
            .flat_map(|runtime| configs.runtime_labels(&runtime.name).into_keys())
            .collect();
        let unknown = selector.keys().into_iter().find(|key| !known.contains(*key));
        let help = match unknown {
            Some(key) => format!(
                "no runtime has a label `{key}`; {}",
                nearest::help(key, "labels", known.iter().map(String::as_str))
            ),
            None => {
                "check the values, or set `allowEmpty: true` when there need not be any".to_owned()
            }
        };
        problems.add(
            place
                .field("runtimeSelector")
                .problem(format!(
                    "the selector `{}` of group `{}` matches no runtime",
                    group.runtime_selector, group.name
                ))
                .help(help),
        );
    }
}

/// Names that say which runtime serves a channel.
pub(super) fn add_runtime_builtins(
    scope: &mut TemplateScope,
    runtime: &RuntimeName,
    labels: &BTreeMap<String, String>,
) {
    scope.insert_text(builtins::RUNTIME_NAME, runtime.as_str());
    for (label, value) in labels {
        scope.insert_text(format!("{}{label}", builtins::RUNTIME_LABELS), value.as_str());
    }
}

fn from_template(
    group: &ChannelGroup,
    runtime: &RuntimeName,
    scope: &TemplateScope,
    place: &DocumentField,
    problems: &mut Problems,
) -> Option<Channel> {
    let empty = ChannelTemplate {
        name: None,
        runtimes: Vec::new(),
        policy: None,
        constants: Vec::new(),
        labels: Vec::new(),
        preconditions: Vec::new(),
    };
    let template = group.template.as_ref().unwrap_or(&empty);
    let inner = place.field("template");
    let (name, name_place) = match &template.name {
        Some(text) => (rendered(text, scope, &inner.field("name"), problems), inner.field("name")),
        None => (format!("{}-{runtime}", group.name), place.field("name")),
    };
    let name: ChannelName = match name.parse() {
        Ok(name) => name,
        Err(error) => {
            problems.add(
                name_place
                    .problem(format!(
                        "group `{}` makes no legal channel for runtime `{runtime}`: {error}",
                        group.name
                    ))
                    .help("choose a shorter name, or set `template.name`"),
            );
            return None;
        }
    };
    let mut labels = BTreeMap::new();
    for (index, label) in template.labels.iter().enumerate() {
        let place = inner.field("labels").item(index).field("value");
        labels.insert(label.label.clone(), rendered(&label.value, scope, &place, problems));
    }
    let mut constants = Vec::new();
    for (index, constant) in template.constants.iter().enumerate() {
        let place = inner.field("constants").item(index).field("string").field("value");
        constants.push((
            constant.name.clone(),
            rendered(&constant.string.value, scope, &place, problems),
        ));
    }
    let precondition_places = places(&inner.field("preconditions"), template.preconditions.len());
    let mut preconditions = template.preconditions.clone();
    for (precondition, place) in preconditions.iter_mut().zip(&precondition_places) {
        render_precondition(precondition, scope, place, problems);
    }
    Some(Channel {
        name,
        group: Some(group.name.clone()),
        connections: from_template_runtimes(&template.runtimes, runtime, scope, &inner, problems),
        labels,
        preconditions,
        precondition_places,
        gates: Vec::new(),
        default_env: default_env(template.policy.as_ref(), &inner),
        constants,
        place: place.clone(),
    })
}

/// The runtime of a group's channel, under each name that the template gives it; under its own
/// where that gives none.
fn from_template_runtimes(
    entries: &[TemplateRuntime],
    runtime: &RuntimeName,
    scope: &TemplateScope,
    place: &DocumentField,
    problems: &mut Problems,
) -> Vec<RuntimeConnection> {
    let own_name = ConnectionName::from(runtime);
    let mut connections = Vec::new();
    for (index, entry) in entries.iter().enumerate() {
        let place = place.field("runtimes").item(index);
        let named = rendered(&entry.runtime, scope, &place.field("runtime"), problems);
        if named != runtime.as_str() {
            let problem = place.field("runtime").problem(format!(
                "`{named}` is not the runtime that this channel is made for, `{runtime}`"
            ));
            problems.add(problem.help("write `runtime: \"{{.Builtins.Runtime.Name}}\"`"));
            continue;
        }
        let name = match &entry.name {
            None => own_name.clone(),
            Some(text) => match rendered(text, scope, &place.field("name"), problems).parse() {
                Ok(name) => name,
                Err(error) => {
                    problems.add(
                        place
                            .field("name")
                            .problem(format!("no legal name for runtime `{runtime}`: {error}")),
                    );
                    continue;
                }
            },
        };
        connections.push(RuntimeConnection { name, runtime: runtime.clone() });
    }
    if connections.is_empty() {
        connections.push(RuntimeConnection { name: own_name, runtime: runtime.clone() });
    }
    connections
}

fn render_precondition(
    precondition: &mut Precondition,
    scope: &TemplateScope,
    place: &DocumentField,
    problems: &mut Problems,
) {
    let mut render = |text: &mut String, field: &str, kind: &str| {
        *text = rendered(text, scope, &place.field(kind).field(field), problems);
    };
    match precondition {
        Precondition::ReleaseChannelStable(stable) => match &mut stable.channels {
            StableChannels::ReleaseChannel(text) => {
                render(text, "releaseChannel", "releaseChannelStable")
            }
            StableChannels::Selector(text) => render(text, "selector", "releaseChannelStable"),
        },
        Precondition::ManualApproval(approval) => {
            approval.name.iter_mut().for_each(|text| render(text, "name", "manualApproval"));
            approval
                .description
                .iter_mut()
                .for_each(|text| render(text, "description", "manualApproval"));
        }
        Precondition::SharedManualApproval(approval) => {
            render(&mut approval.name, "name", "sharedManualApproval");
            approval
                .description
                .iter_mut()
                .for_each(|text| render(text, "description", "sharedManualApproval"));
        }
    }
}

/// The rendered text; what is wrong goes into `problems`, and the text as it stands is used on.
fn rendered(
    text: &str,
    scope: &TemplateScope,
    place: &DocumentField,
    problems: &mut Problems,
) -> String {
    match template::render(text, scope) {
        Ok(Rendered::Text(text)) => text,
        Ok(Rendered::Unknown | Rendered::Secret(_)) => text.to_owned(),
        Err(errors) => {
            problems.add_template(place, errors);
            text.to_owned()
        }
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
