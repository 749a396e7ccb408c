//! Channels that wait for each other: what a release that does not go to all of them leads to, in words. Called by `release`.

use std::collections::{BTreeMap, BTreeSet};

use engine::desired::Gate;
use schema::api::Service;
use schema::id::ChannelName;
use schema::status::Reason;

use super::release::ReleaseSubject;
use crate::compile::{Channel, CompiledInstance};

/// Channels of a release that wait for one that neither gets it with them nor pursues its version: that may never end.
pub(super) fn waits_for_others(
    subject: &ReleaseSubject<'_>,
    compiled: &[CompiledInstance],
    version: &str,
    elsewhere: &BTreeMap<ChannelName, String>,
) -> Vec<String> {
    let comes = |channel: &ChannelName| {
        compiled.iter().any(|instance| instance.channel == *channel) || elsewhere.get(channel).is_some_and(|other| other == version)
    };
    let mut warnings = Vec::new();
    for instance in compiled.iter().filter(|instance| !instance.desired.stable_before) {
        let missing: BTreeSet<&ChannelName> =
            instance.desired.gates.iter().flat_map(Gate::upstream).filter(|channel| !comes(channel)).collect();
        if missing.is_empty() {
            continue;
        }
        let join = |with: &str, quote: &str| missing.iter().map(|name| format!("{quote}{name}{quote}")).collect::<Vec<_>>().join(with);
        let (names, are) = (join(" and ", "`"), if missing.len() == 1 { "is" } else { "are" });
        warnings.push(format!(
            "`{0}` waits until {names} {are} converged at {version}, which was not released there: release to both together with \
             `pvnctl services push {1} --app {2} --channels {3},{0}`, or change the precondition of `{0}`",
            instance.channel,
            subject.service.name,
            subject.application.name,
            join(",", ""),
        ));
    }
    warnings
}

/// Channels that a release does not go to and that wait for one to which it goes, at the version that this one pursues until now: it
/// may never be converged there. `now`: how the service is before the release.
pub(super) fn left_behind(subject: &ReleaseSubject<'_>, channels: &[Channel], compiled: &[CompiledInstance], now: &Service) -> Vec<String> {
    let released: Vec<&str> = compiled.iter().map(|instance| instance.channel.as_str()).collect();
    let waiting = now.channels.iter().filter(|instance| instance.reason == Some(Reason::ReleaseChannelDependencyUnmet));
    let mut left: BTreeMap<(&str, &str), Vec<&str>> = BTreeMap::new();
    for instance in waiting.filter(|instance| !released.contains(&instance.channel.as_str())) {
        let Some(version) = instance.desired_version.as_deref() else { continue };
        let gates = channels.iter().filter(|channel| channel.name == instance.channel).flat_map(|channel| &channel.gates);
        let is_taken = |upstream: &&ChannelName| {
            let pursues = now.channels.iter().any(|it| it.channel == **upstream && it.desired_version.as_deref() == Some(version));
            pursues && released.contains(&upstream.as_str())
        };
        for upstream in gates.flat_map(Gate::upstream).filter(is_taken) {
            left.entry((upstream.as_str(), version)).or_default().push(instance.channel.as_str());
        }
    }
    let told = |((upstream, version), waiting): ((&str, &str), Vec<&str>)| {
        let names: Vec<String> = waiting.iter().map(|name| format!("`{name}`")).collect();
        let wait = if waiting.len() == 1 { "waits" } else { "wait" };
        format!(
            "{} {wait} until `{upstream}` is converged at {version}, which this release takes from it: release to all of them with \
             `pvnctl services push {} --app {} --channels {},{}`",
            names.join(" and "),
            subject.service.name,
            subject.application.name,
            released.join(","),
            waiting.join(","),
        )
    };
    left.into_iter().map(told).collect()
}
