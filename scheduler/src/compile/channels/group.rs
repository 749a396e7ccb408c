//! The channels that a group makes, one for each runtime that it selects. Called by `channels`.

use std::collections::{BTreeMap, BTreeSet};

use config::template::Template;
use config::{ChannelGroup, ChannelTemplate, TemplateRuntime, builtins};
use schema::id::{ChannelName, ConnectionName, RuntimeName};

use super::super::configs::Configs;
use super::super::nearest;
use super::super::problem::{DocumentField, Problems};
use super::super::template::{self, Rendered, TemplateScope};
use super::{Channel, RuntimeConnection, add_runtime_builtins, default_env, places};

/// Makes one channel for each runtime that the group selects.
pub(super) fn expand(
    configs: &Configs,
    group: &ChannelGroup,
    place: &DocumentField,
    channels: &mut Vec<Channel>,
    problems: &mut Problems,
) {
    let selector = &group.runtime_selector;
    if let Some(problem) = selector.problem() {
        return problems.add(place.field("runtimeSelector").problem(problem.to_string()));
    }
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
                    "the selector `{selector}` of group `{}` matches no runtime",
                    group.name
                ))
                .help(help),
        );
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
        let place = place.field(precondition.field());
        precondition.map_texts(&mut |field, text| {
            rendered(&text.into(), scope, &place.field(field), problems)
        });
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

/// The rendered text; what is wrong goes into `problems`, and the text as it stands is used on.
fn rendered(
    text: &Template,
    scope: &TemplateScope,
    place: &DocumentField,
    problems: &mut Problems,
) -> String {
    match template::render(text, scope) {
        Ok(Rendered::Text(text)) => text,
        Ok(Rendered::Unknown | Rendered::Secret(_)) => text.to_string(),
        Err(errors) => {
            problems.add_template(place, errors);
            text.to_string()
        }
    }
}
