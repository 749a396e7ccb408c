//! What has to come before a channel: which channels a precondition names, and that nothing waits
//! for itself. Called by `channels`.

use std::collections::BTreeMap;

use config::precondition::{Precondition, StableChannels};
use config::selector::Selector;
use engine::desired::Gate;
use schema::id::ChannelName;

use super::super::problem::{DocumentField, Problems};
use super::super::{cycle, nearest};
use super::Channel;

pub(super) fn resolve_preconditions(channels: &mut [Channel], problems: &mut Problems) {
    let all: Vec<(ChannelName, BTreeMap<String, String>)> =
        channels.iter().map(|channel| (channel.name.clone(), channel.labels.clone())).collect();
    for channel in channels {
        let places = channel.precondition_places.iter();
        channel.gates = channel
            .preconditions
            .iter()
            .zip(places)
            .filter_map(|(precondition, place)| gate(precondition, place, &all, problems))
            .collect();
    }
}

pub(super) fn gate(
    precondition: &Precondition,
    place: &DocumentField,
    all: &[(ChannelName, BTreeMap<String, String>)],
    problems: &mut Problems,
) -> Option<Gate> {
    match precondition {
        Precondition::ReleaseChannelStable(stable) => {
            let place = place.field("releaseChannelStable");
            let channels = match &stable.channels {
                StableChannels::ReleaseChannel(name) => {
                    match all.iter().find(|(channel, _)| channel.as_str() == name) {
                        Some((channel, _)) => vec![channel.clone()],
                        None => {
                            problems.add(
                                place
                                    .field("releaseChannel")
                                    .problem(format!("unknown release channel `{name}`"))
                                    .help(nearest::help(
                                        name,
                                        "channels",
                                        all.iter().map(|(channel, _)| channel.as_str()),
                                    )),
                            );
                            return None;
                        }
                    }
                }
                StableChannels::Selector(selector) => {
                    selected(selector, stable.allow_empty, &place.field("selector"), all, problems)?
                }
            };
            Some(Gate::ChannelsStable { channels })
        }
        Precondition::ManualApproval(approval) => Some(Gate::ManualApproval {
            name: approval.name.clone(),
            description: approval.description.clone(),
            every_action: approval.every_action,
            min_approvers: approval.min_approvers.unwrap_or(1),
        }),
        Precondition::SharedManualApproval(approval) => Some(Gate::SharedApproval {
            name: approval.name.clone(),
            description: approval.description.clone(),
            min_approvers: approval.min_approvers.unwrap_or(1),
        }),
    }
}

pub(super) fn selected(
    selector: &Selector,
    allow_empty: bool,
    place: &DocumentField,
    all: &[(ChannelName, BTreeMap<String, String>)],
    problems: &mut Problems,
) -> Option<Vec<ChannelName>> {
    if let Some(problem) = selector.problem() {
        problems.add(place.problem(problem.to_string()));
        return None;
    }
    let channels: Vec<ChannelName> = all
        .iter()
        .filter(|(_, labels)| selector.matches(labels))
        .map(|(channel, _)| channel.clone())
        .collect();
    if channels.is_empty() && !allow_empty {
        problems.add(
            place
                .problem(format!(
                    "the selector `{selector}` matches no release channel of the application"
                ))
                .help(
                    "check labels and groups of the channels, or set `allowEmpty: true` when \
                     there need not be any",
                ),
        );
        return None;
    }
    Some(channels)
}

/// What each channel waits for until it is stable.
pub fn upstream(channels: &[Channel]) -> BTreeMap<&ChannelName, Vec<&ChannelName>> {
    channels
        .iter()
        .map(|channel| (&channel.name, channel.gates.iter().flat_map(Gate::upstream).collect()))
        .collect()
}

pub(super) fn find_cycle(channels: &[Channel], problems: &mut Problems) {
    let Some(circle) = cycle::find(&upstream(channels)) else { return };
    let first = channels.iter().find(|channel| Some(&&channel.name) == circle.first());
    let place = first.map(|channel| channel.place.field("preconditions"));
    let names: Vec<String> = circle.iter().map(|name| format!("`{name}`")).collect();
    if let Some(place) = place {
        problems.add(
            place
                .problem(format!(
                    "release channels wait for each other without end: {}",
                    names.join(" waits for ")
                ))
                .help("take one of these preconditions out"),
        );
    }
}
