//! The values that a push keeps where it gives none: those of the newest release. Where these come
//! from one that went back in some channels they are no word about the others, so each of these
//! keeps its own: what it has (see `had`), never what it only waits for, because that may be the
//! very thing that was taken back. And what is to be said where channels that wait for each other
//! come apart that way, or where the config does not go with the values. Called by `release`.

use std::collections::{BTreeMap, BTreeSet};

use engine::desired::Gate;
use schema::id::{ChannelId, ChannelName, ReleaseId, ServiceId};

use super::super::Refusal;
use super::release::ReleaseSubject;
use super::{Planner, had};
use crate::compile::{CompiledInstance, StoredValue, Values};
use crate::store::{ReleaseRow, StoreError};

/// Most channels that a warning names; of more it is said how many they are. Source: one screen of
/// a terminal.
const NAMED_LIMIT: usize = 20;

impl Planner {
    /// The values that a push keeps, `newest` being the service's newest release.
    pub(super) async fn values_kept(
        &self,
        subject: &ReleaseSubject<'_>,
        newest: &ReleaseRow,
    ) -> Result<Values, Refusal> {
        let mut kept = newest.params.clone();
        let goes_back = newest.rolled_back_to.is_some();
        let earlier = kept.since_back.take();
        let Some(since) = (if goes_back { Some(BTreeSet::new()) } else { earlier }) else {
            return Ok(kept);
        };
        let refused = if goes_back { self.refused(newest.id).await? } else { BTreeSet::new() };
        let pursued = self.store.pursued(subject.service.id).await?;
        let others: Vec<_> = pursued
            .into_iter()
            .filter(|(channel, release)| *release != newest.id || refused.contains(channel))
            .collect();
        if others.is_empty() {
            return Ok(kept);
        }
        let begun = self.store.begun(subject.service.id).await?;
        let order = self.store.newest_order(subject.service.id).await?;
        for (channel, pursued) in &others {
            let Some((name, _)) = subject.channel_ids.iter().find(|(_, id)| *id == channel) else {
                continue;
            };
            if goes_back {
                // What was given for it alone when that version was made is no word about it
                // either.
                kept.forget(name);
            } else {
                // It may have begun another release since.
                kept.forget_kept(name);
            }
            let has = self.has(subject.service.id, *channel, begun.get(channel)).await?;
            let waits_for = self.readable_release(*pursued).await?;
            // What was given for it with a release that went to others alone counts from the next
            // one there.
            let asked = if refused.contains(channel) { has.as_ref() } else { waits_for.as_ref() };
            let promised = order
                .as_ref()
                .filter(|order| asked.is_some_and(|asked| order.number > asked.number));
            for (parameter, own) in
                own_values(name, has.as_ref(), waits_for.as_ref(), promised, &kept)
            {
                if !since.contains(&parameter) && !kept.is_given_for(name, &parameter) {
                    kept.keep(name, &parameter, own.value, own.version);
                }
            }
        }
        kept.since_back = Some(since);
        Ok(kept)
    }

    /// The release whose values a channel has.
    async fn has(
        &self,
        service: ServiceId,
        channel: ChannelId,
        begun: Option<&BTreeSet<ReleaseId>>,
    ) -> Result<Option<ReleaseRow>, Refusal> {
        let Some(history) = readable(self.store.went_to(service, channel).await)? else {
            return Ok(None);
        };
        match had::has(&history, begun.unwrap_or(&BTreeSet::new())) {
            Some(went) => self.readable_release(went.id).await,
            None => Ok(None),
        }
    }

    /// The channels in which somebody rejected a release.
    async fn refused(&self, release: ReleaseId) -> Result<BTreeSet<ChannelId>, Refusal> {
        let channels = readable(self.store.release_channels(release).await)?.unwrap_or_default();
        Ok(channels
            .into_iter()
            .filter(|(_, row)| row.refused)
            .map(|(_, row)| row.channel)
            .collect())
    }

    /// What is to be said of a release of this version that brings the service's config of now,
    /// where `newest` went back to an earlier one of it and nobody has changed it since: the
    /// values go back with a rollback, and the config in force does not.
    pub(super) async fn brings_config_again(
        &self,
        subject: &ReleaseSubject<'_>,
        newest: &ReleaseRow,
        version: &str,
    ) -> Option<String> {
        let in_force = subject.service.config_version;
        if newest.rolled_back_to.is_none() || newest.service_version >= in_force {
            return None;
        }
        // One that is only being applied is not stored yet, and what cannot be read keeps nobody
        // from releasing.
        let stored = self.store.document(&subject.document()).await.ok().flatten()?;
        (stored.version == in_force && stored.created_at <= newest.created_at).then(|| {
            format!(
                "{version} has version {in_force} of the service's config, which was in force \
                 when the release before it went back to {} and version {}: where that config is \
                 what was wrong, apply one that mends it and push again",
                newest.version, newest.service_version
            )
        })
    }

    /// A release; none where it cannot be read.
    async fn readable_release(&self, id: ReleaseId) -> Result<Option<ReleaseRow>, Refusal> {
        Ok(readable(self.store.release_row(id).await)?.flatten())
    }
}

/// What was read; none where it cannot be: what cannot be read of one channel keeps nobody from
/// releasing.
fn readable<T>(read: Result<T, StoreError>) -> Result<Option<T>, Refusal> {
    match read {
        Err(StoreError::Corrupt(_)) => Ok(None),
        read => Ok(Some(read?)),
    }
}

/// What is to be said of a release that goes back to this one: the next push brings the service's
/// config in force with its values.
pub(super) fn leaves_config(subject: &ReleaseSubject<'_>, target: &ReleaseRow) -> Option<String> {
    let in_force = subject.service.config_version;
    (target.service_version < in_force).then(|| {
        format!(
            "{} has version {} of the service's config, and version {in_force} is in force: the \
             next push releases version {in_force} with the values of {}; where that config is \
             what was wrong, apply one that mends it first",
            target.version, target.service_version, target.version
        )
    })
}

type Names<'a> = BTreeSet<&'a ChannelName>;

/// A value that a channel keeps.
struct ChannelValue<'a> {
    /// None where that is what the definition says.
    value: Option<&'a StoredValue>,
    /// The version that it is of; none where somebody gave it for this channel.
    version: Option<&'a str>,
}

/// What a channel keeps, of all that it would see otherwise (`seen`): the values of the release
/// that it last began to apply or was converged at, and those that were given for it alone: in what
/// it waits for, unless that is a rollback, in which nobody gave anything, and in what went to
/// others since (`promised`), where that did not have them from there.
fn own_values<'a>(
    name: &ChannelName,
    has: Option<&'a ReleaseRow>,
    waits_for: Option<&'a ReleaseRow>,
    promised: Option<&'a ReleaseRow>,
    seen: &Values,
) -> BTreeMap<String, ChannelValue<'a>> {
    let mut own = BTreeMap::new();
    if let Some(release) = has {
        // What the release says nothing of is there as its definition has it.
        for parameter in release.params.names(name).chain(seen.names(name)) {
            let value = release.params.get(Some(name), parameter);
            let version =
                (!release.params.is_given_for(name, parameter)).then_some(release.version.as_str());
            own.insert(parameter.clone(), ChannelValue { value, version });
        }
    }
    let given = |release: &'a ReleaseRow| {
        let names = release
            .params
            .names(name)
            .filter(|parameter| release.params.is_given_for(name, parameter));
        names.map(|parameter| (parameter, release.params.get(Some(name), parameter)))
    };
    let asked = waits_for.filter(|release| release.rolled_back_to.is_none());
    let is_from_there = |parameter: &str, value| {
        waits_for.is_some_and(|release| release.params.get(Some(name), parameter) == value)
    };
    let promised = promised
        .into_iter()
        .flat_map(given)
        .filter(|(parameter, value)| !is_from_there(parameter, *value));
    for (parameter, value) in asked.into_iter().flat_map(given).chain(promised) {
        own.insert(parameter.clone(), ChannelValue { value, version: None });
    }
    own
}

/// Channels of a release that keep other values than one that they wait for, or that waits for
/// them, although nobody gave either of them values of its own.
pub(super) fn come_apart(values: &Values, compiled: &[CompiledInstance]) -> Vec<String> {
    let comes: Names<'_> = compiled.iter().map(|instance| &instance.channel).collect();
    // Who keeps values of which version, whether it is the one that waits, and apart from whom.
    let mut apart: BTreeMap<(&str, bool), (Names<'_>, Names<'_>)> = BTreeMap::new();
    for instance in compiled {
        let waiting = &instance.channel;
        for first in instance
            .desired
            .gates
            .iter()
            .flat_map(Gate::upstream)
            .filter_map(|channel| comes.get(channel).copied())
        {
            for parameter in values.differ(waiting, first) {
                for (channel, other, waits) in [(waiting, first, true), (first, waiting, false)] {
                    let Some(version) = values.kept_version(channel, parameter) else { continue };
                    let (channels, others) = apart.entry((version, waits)).or_default();
                    channels.insert(channel);
                    others.insert(other);
                }
            }
        }
    }
    let told = |((version, waits), (channels, others)): ((&str, bool), (Names<'_>, Names<'_>))| {
        let (keeps, waits_for_it) = match (channels.len(), others.len()) {
            (1, 1) => ("keeps", "waits for it"),
            (1, _) => ("keeps", "wait for it"),
            (_, 1) => ("keep", "waits for them"),
            (..) => ("keep", "wait for them"),
        };
        let relation = match (waits, channels.len()) {
            (true, 1) => "for which it waits".to_owned(),
            (true, _) => "for which they wait".to_owned(),
            (false, _) => format!("which {waits_for_it}"),
        };
        format!(
            "{} {keeps} values of {version} that differ from those of {}, {relation}: give all of \
             them the same with `--param`, or each its own with `--param-for-channel`",
            named(&channels),
            named(&others),
        )
    };
    apart.into_iter().map(told).collect()
}

fn named(channels: &Names<'_>) -> String {
    let mut names: Vec<String> =
        channels.iter().take(NAMED_LIMIT).map(|name| format!("`{name}`")).collect();
    if channels.len() > NAMED_LIMIT {
        names.push(format!("{} more", channels.len() - NAMED_LIMIT));
    }
    match names.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} and {last}", rest.join(", ")),
        _ => names.concat(),
    }
}
