//! What a release would change, channel by channel, read from the plan that would make it; and what
//! would come of it, as the engine foretells it. Called by `release`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use config::Service;
use engine::Forecast;
use engine::desired::Desired;
use schema::api::{ChannelPreview, ParameterChange, PushRequest};
use schema::id::{ChannelId, ChannelName, ReleaseId};
use tokio::sync::oneshot;

use super::super::Refusal;
use super::super::calls::{Call, Plan};
use super::compared::compared;
use super::release::ReleaseSubject;
use super::{Planner, RawSeal, stopping};
use crate::compile::{self, Channel, Configs, Release, Values};
use crate::names::InstanceNames;
use crate::store::{Change, ReleaseChannelRow, ReleaseRow, shown_value};

/// What the release of a preview is made from.
pub(super) struct PreviewBase<'a> {
    pub(super) configs: &'a Configs,
    pub(super) document: &'a Service,
    /// The application's channels.
    pub(super) channels: &'a [Channel],
    pub(super) request: &'a PushRequest,
    /// The version of the service's newest release, whose values are kept.
    pub(super) newest: Option<&'a str>,
}

impl PreviewBase<'_> {
    /// The version that a value is kept from, where the push does not give it.
    fn kept_from(&self, channel: &ChannelName, name: &str) -> Option<String> {
        let PushRequest { params, params_for_channel, .. } = self.request;
        let own = params_for_channel.get(channel.as_str());
        let is_given = params.contains_key(name) || own.is_some_and(|own| own.contains_key(name));
        self.newest.filter(|_| !is_given).map(str::to_owned)
    }
}

/// One channel of the release.
struct PreviewedChannel<'a> {
    names: Arc<InstanceNames>,
    row: &'a ReleaseChannelRow,
}

impl PreviewedChannel<'_> {
    fn name(&self) -> &ChannelName {
        &self.names.channel.1
    }
}

impl Planner {
    /// What the one release of a plan would change, and what would come of it.
    pub(super) async fn preview(
        &self,
        plan: &Plan,
        subject: &ReleaseSubject<'_>,
        from: &PreviewBase<'_>,
    ) -> Result<Vec<ChannelPreview>, Refusal> {
        let made = plan.changes.iter().find_map(|change| match change {
            Change::Release(row) => Some(&row.params),
            _ => None,
        });
        let Some(made) = made else { return Ok(Vec::new()) };
        let channels = channels_of(plan, subject);
        let forecasts = self.forecasts(&channels).await?;
        let pursued: BTreeMap<ChannelId, ReleaseId> =
            self.store.pursued(subject.service.id).await?.into_iter().collect();
        let mut known: BTreeMap<ReleaseId, Option<ReleaseRow>> = BTreeMap::new();
        let mut preview = Vec::new();
        for (channel, forecast) in channels.iter().zip(forecasts) {
            let before = match pursued.get(&channel.row.channel) {
                None => None,
                Some(id) => {
                    if !known.contains_key(id) {
                        known.insert(*id, self.store.release_row(*id).await?);
                    }
                    known.get(id).and_then(Option::as_ref)
                }
            };
            let commands = match before {
                Some(before) => self.other_commands(channel, before, from).await?,
                None => Vec::new(),
            };
            let name = channel.name();
            preview.push(ChannelPreview {
                channel: name.clone(),
                runtime: channel.row.desired.runtime.clone(),
                before: before.map(|release| release.version.clone()),
                params: changed(name, before.map(|release| &release.params), made, from),
                waits_for: forecast.holds.iter().map(|hold| hold.message.clone()).collect(),
                commands,
                next: forecast.next,
                held_up_by: forecast.holds,
            });
        }
        Ok(preview)
    }

    /// What would come of it in each channel, as whoever has the states says it.
    async fn forecasts(&self, channels: &[PreviewedChannel<'_>]) -> Result<Vec<Forecast>, Refusal> {
        let of = |channel: &PreviewedChannel<'_>| -> (Arc<InstanceNames>, Box<Desired>) {
            (channel.names.clone(), Box::new(channel.row.desired.clone()))
        };
        let releases = channels.iter().map(of).collect();
        let (reply, answer) = oneshot::channel();
        self.calls.send(Call::Forecast { releases, reply }).await.map_err(|_| stopping())?;
        answer.await.map_err(|_| stopping())?
    }

    /// The commands of a channel that the config makes other ones: those that the release that it
    /// has now would have with the config of now, beside those that it has.
    async fn other_commands(
        &self,
        channel: &PreviewedChannel<'_>,
        before: &ReleaseRow,
        from: &PreviewBase<'_>,
    ) -> Result<Vec<String>, Refusal> {
        let Some(of) = from.channels.iter().find(|of| of.name == *channel.name()) else {
            return Ok(Vec::new());
        };
        let digest = self.store.compiled_for(before.id, channel.row.channel).await?;
        let has = match digest {
            Some(digest) => self.store.compiled(digest).await?,
            None => None,
        };
        let Some(has) = has else { return Ok(Vec::new()) };
        let release = Release {
            id: before.id,
            version: &before.version,
            released_at: before.created_at,
            values: &before.params,
        };
        let seal = RawSeal(&self.sealer);
        // Where it does not compile with its old values there is nothing to compare: what is new
        // says `params`.
        let (would_have, _) =
            compile::compile(from.configs, &self.options, from.document, of, &release, &seal);
        Ok(would_have.map_or_else(Vec::new, |instance| compared(&has, &instance.commands)))
    }
}

/// The channels that the release of a plan goes to.
fn channels_of<'a>(plan: &'a Plan, subject: &ReleaseSubject<'_>) -> Vec<PreviewedChannel<'a>> {
    let named = |change: &'a Change| {
        let Change::ReleaseChannel(row) = change else { return None };
        let (channel, _) = subject.channel_ids.iter().find(|(_, id)| **id == row.channel)?;
        Some(PreviewedChannel { names: subject.names(channel)?, row: row.as_ref() })
    };
    plan.changes.iter().filter_map(named).collect()
}

/// The parameters of which a channel would see another value.
fn changed(
    channel: &ChannelName,
    before: Option<&Values>,
    made: &Values,
    from: &PreviewBase<'_>,
) -> Vec<ParameterChange> {
    let names: BTreeSet<&String> =
        before.into_iter().chain([made]).flat_map(|values| values.names(channel)).collect();
    let seen = |values: &Values, name: &str| values.get(Some(channel), name).cloned();
    let changed = names.into_iter().filter_map(|name| {
        let (before, after) = (before.and_then(|values| seen(values, name)), seen(made, name));
        (before != after).then(|| ParameterChange {
            name: name.clone(),
            before: before.as_ref().map(shown_value),
            after: after.as_ref().map(shown_value),
            kept_from: from.kept_from(channel, name),
        })
    });
    changed.collect()
}
