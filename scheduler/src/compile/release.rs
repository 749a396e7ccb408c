//! What a release is made of: parameter values as people give them, checked and normalised, and the
//! version's name. Called by the driver when a release is pushed.

use std::collections::{BTreeMap, BTreeSet};

use config::template::Template;
use config::{ParameterDefinition, ParameterKind, Service, builtins};
use schema::api::PushRequest;
use schema::id::ChannelName;
use schema::mask::SHORTEST_BYTES;

use super::channels::Channel;
use super::check::NoSeal;
use super::commands::render_text;
use super::parameters::{Bound, Lack};
use super::problem::{DocumentField, DocumentKey, Problems};
use super::template::{self, TemplateScope};
use super::value::{Seal, SecretValue, StoredValue, Values};
use super::{Earlier, nearest, parameters};

/// Longest name of a version, in bytes; it stands in environments, labels and tables, and scripts
/// make paths and arguments of it.
const VERSION_LIMIT_BYTES: usize = 128;

/// The values of a release: those given, and where nothing is given those of the last release.
pub(super) fn values(
    service: &Service,
    channels: &[Channel],
    request: &PushRequest,
    earlier: Option<Earlier<'_>>,
    seal: &dyn Seal,
    problems: &mut Problems,
) -> Values {
    let mut values = Values {
        all: read(service, &request.params, "params", seal, problems),
        ..Values::default()
    };
    for (name, params) in &request.params_for_channel {
        let place = format!("paramsForChannel.{name}");
        match channels.iter().find(|channel| channel.name.as_str() == name) {
            Some(channel) => {
                let params = read(service, params, &place, seal, problems);
                values.per_channel.insert(channel.name.clone(), params);
            }
            None => {
                let names = channels.iter().map(|channel| channel.name.as_str());
                let problem = DocumentField::of_release(place)
                    .problem(format!("unknown release channel `{name}`"));
                problems.add(problem.help(nearest::help(name, "channels", names)));
            }
        }
    }
    match earlier {
        Some(earlier) => {
            values.over(&still_known(service, channels, earlier.values), earlier.goes_to)
        }
        None => values,
    }
}

/// Secrets among the values that are too short to be masked, values for channels that the release
/// does not go to, and values for all that take a channel's own away.
pub(super) fn value_warnings(
    service: &Service,
    request: &PushRequest,
    goes_to: &BTreeSet<ChannelName>,
    earlier: Option<&Values>,
) -> Vec<String> {
    let is_secret =
        |definition: &&ParameterDefinition| matches!(definition.kind, ParameterKind::Secret(_));
    let given = |name: &str| {
        let own = request.params_for_channel.values().filter_map(|params| params.get(name));
        request
            .params
            .get(name)
            .into_iter()
            .chain(own)
            .any(|text| (1..SHORTEST_BYTES).contains(&text.len()))
    };
    let short = service
        .parameters
        .iter()
        .filter(is_secret)
        .filter(|definition| given(&definition.name))
        .map(|definition| {
            let name = &definition.name;
            format!(
                "parameter `{name}` is not masked in what jobs print: it is shorter than \
                 {SHORTEST_BYTES} bytes; give a longer one"
            )
        });
    let elsewhere = request
        .params_for_channel
        .keys()
        .filter(|name| !goes_to.iter().any(|channel| channel.as_str() == *name));
    let elsewhere = elsewhere.map(|name| {
        format!(
            "this release does not go to `{name}`: the values that are given for it count from \
             the next release there"
        )
    });
    let replaced = request.params.keys().flat_map(|name| {
        let own = |channel: &&ChannelName| {
            let is_given = request
                .params_for_channel
                .get(channel.as_str())
                .is_some_and(|params| params.contains_key(name));
            !is_given && earlier.is_some_and(|earlier| earlier.is_given_for(channel, name))
        };
        goes_to.iter().filter(own).map(move |channel| {
            format!(
                "`--param {name}` is for all channels and takes the place of the value that \
                 `{channel}` had of its own: where it is to have one, push again with \
                 `--param-for-channel {channel}:{name}=…`"
            )
        })
    });
    short.chain(elsewhere).chain(replaced).collect()
}

/// What of an earlier release still has a parameter and a channel.
fn still_known(service: &Service, channels: &[Channel], earlier: &Values) -> Values {
    let known =
        |name: &String| service.parameters.iter().any(|definition| definition.name == *name);
    let keep = |values: &BTreeMap<String, StoredValue>| -> BTreeMap<String, StoredValue> {
        values
            .iter()
            .filter(|(name, _)| known(name))
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect()
    };
    let is_channel = |name: &ChannelName| channels.iter().any(|channel| channel.name == *name);
    let mut kept = earlier.kept.clone();
    kept.retain(|name, _| is_channel(name));
    for versions in kept.values_mut() {
        versions.retain(|name, _| known(name));
    }
    Values {
        all: keep(&earlier.all),
        per_channel: earlier
            .per_channel
            .iter()
            .filter(|(name, _)| is_channel(name))
            .map(|(name, own)| (name.clone(), keep(own)))
            .collect(),
        kept,
        since_back: earlier.since_back.clone(),
    }
}

fn read(
    service: &Service,
    given: &BTreeMap<String, String>,
    place: &str,
    seal: &dyn Seal,
    problems: &mut Problems,
) -> BTreeMap<String, StoredValue> {
    let mut values = BTreeMap::new();
    for (name, text) in given {
        let place = DocumentField::of_release(format!("{place}.{name}"));
        match service.parameters.iter().find(|definition| definition.name == *name) {
            Some(definition) => {
                if let Some(value) = read_one(definition, text, &place, seal, problems) {
                    values.insert(name.clone(), value);
                }
            }
            None => {
                let names = service.parameters.iter().map(|definition| definition.name.as_str());
                let problem =
                    place.problem(format!("service `{}` has no parameter `{name}`", service.name));
                problems.add(problem.help(nearest::help(name, "parameters", names)));
            }
        }
    }
    values
}

fn read_one(
    definition: &ParameterDefinition,
    text: &str,
    place: &DocumentField,
    seal: &dyn Seal,
    problems: &mut Problems,
) -> Option<StoredValue> {
    if definition.required && text.is_empty() {
        let way = "give it a value";
        problems.add(parameters::missing(definition, Lack::Content, place, way));
        return None;
    }
    if matches!(definition.kind, ParameterKind::Secret(_)) {
        return Some(StoredValue::Secret(SecretValue::Sealed(super::commands::sealed(
            text, seal, place, problems,
        ))));
    }
    match parameters::check_text(definition, text) {
        Ok(()) => Some(StoredValue::Text(text.to_owned())),
        Err(why) => {
            let problem = place.problem(format!("parameter `{}`: {why}", definition.name));
            problems.add(if text.is_empty() {
                problem.help(parameters::EMPTY_HELP)
            } else {
                problem
            });
            None
        }
    }
}

/// The names that a `bundleName` may use, but for the parameters: it names the version in all
/// channels, so none of a channel.
pub(super) fn bundle_scope(service: &Service) -> TemplateScope {
    let mut scope = TemplateScope::default();
    for constant in &service.constants {
        scope.insert_text(builtins::constant(&constant.name), constant.string.value.as_str());
    }
    scope.insert_text(builtins::APPLICATION_NAME, service.application.as_str());
    scope.insert_text(builtins::SERVICE_NAME, service.name.as_str());
    scope
}

/// Says of required parameters without a value, or with one for single channels only, that the
/// version's name needs them.
fn missing_in_name(
    text: &Template,
    scope: &TemplateScope,
    missing: &[(&ParameterDefinition, Lack)],
    problems: &mut Problems,
) {
    for (definition, lack) in missing {
        let mut others = scope.clone();
        let with = |scope: &mut TemplateScope, definition| {
            parameters::insert(scope, definition, Some(Bound::Unknown))
        };
        for (other, _) in missing.iter().filter(|(other, _)| other.name != definition.name) {
            let _ = with(&mut others, other);
        }
        let mut all = others.clone();
        let _ = with(&mut all, definition);
        // Only what is wrong without this one, and right with it, is for its lack.
        if template::render(text, &others).is_err() && template::render(text, &all).is_ok() {
            let help = format!(
                "give it with `--param {}=…`: `bundleName` names the version with it, in all \
                 channels",
                definition.name
            );
            let place = DocumentField::of_release(format!("params.{}", definition.name));
            problems.add(parameters::missing(definition, *lack, &place, &help));
        }
    }
}

/// The name that the config gives the version of a release with these values; `None` when it gives
/// none.
pub(super) fn bundle_name(
    service: &Service,
    values: &Values,
    problems: &mut Problems,
) -> Option<String> {
    let text = service.bundle_name.as_ref()?;
    let mut scope = bundle_scope(service);
    let mut missing = Vec::new();
    for definition in &service.parameters {
        let given = values
            .get(None, &definition.name)
            .and_then(|given| parameters::from_release(definition, given, &NoSeal).ok());
        if let Err(lack) = parameters::insert(&mut scope, definition, given) {
            missing.push((definition, lack));
        }
    }
    let before = problems.count();
    missing_in_name(text, &scope, &missing, problems);
    if problems.count() > before {
        return None;
    }
    let place =
        DocumentField::of(DocumentKey::Service(service.application.clone(), service.name.clone()))
            .field("bundleName");
    let name = render_text(text, &scope, &place, problems);
    if problems.count() > before {
        return None;
    }
    let legal = !name.is_empty()
        && name.len() <= VERSION_LIMIT_BYTES
        && !name.starts_with(['-', '.', '/'])
        && !name.chars().any(|character| {
            character.is_whitespace()
                || schema::shown::steers(character)
                || matches!(character, '"' | '\'' | '`' | '$' | '\\')
        });
    if !legal {
        let problem = place.problem(format!(
            "`{name}` cannot name a version: it must be 1 to {VERSION_LIMIT_BYTES} bytes without \
             blanks, quotes, `$` and backslashes, and must not begin with `-`, `.` or `/`"
        ));
        problems.add(
            problem.help(format!("`bundleName` is `{text}`; check the values of its parameters")),
        );
        return None;
    }
    Some(name)
}
