//! What a release would change, channel by channel, read from the plan that would make it. Called
//! by `release`.

use std::collections::{BTreeMap, BTreeSet};

use engine::desired::{Desired, Gate};
use schema::api::{ChannelPreview, ParameterChange};
use schema::id::{ChannelId, ChannelName, ReleaseId};

use super::super::Refusal;
use super::super::calls::Plan;
use super::Planner;
use super::release::ReleaseSubject;
use crate::compile::Values;
use crate::store::{Change, ReleaseRow, shown_value};

impl Planner {
    /// What the one release of a plan would change.
    pub(super) async fn preview(
        &self,
        plan: &Plan,
        subject: &ReleaseSubject<'_>,
    ) -> Result<Vec<ChannelPreview>, Refusal> {
        let made = plan.changes.iter().find_map(|change| match change {
            Change::Release(row) => Some(&row.params),
            _ => None,
        });
        let Some(made) = made else { return Ok(Vec::new()) };
        let pursued: BTreeMap<ChannelId, ReleaseId> =
            self.store.pursued(subject.service.id).await?.into_iter().collect();
        let mut known: BTreeMap<ReleaseId, Option<ReleaseRow>> = BTreeMap::new();
        let mut preview = Vec::new();
        for change in &plan.changes {
            let Change::ReleaseChannel(row) = change else { continue };
            let named = subject.channel_ids.iter().find(|(_, id)| **id == row.channel);
            let Some((channel, _)) = named else { continue };
            let before = match pursued.get(&row.channel) {
                None => None,
                Some(id) => {
                    if !known.contains_key(id) {
                        known.insert(*id, self.store.release_row(*id).await?);
                    }
                    known.get(id).and_then(Option::as_ref)
                }
            };
            preview.push(ChannelPreview {
                channel: channel.clone(),
                runtime: row.desired.runtime.clone(),
                before: before.map(|release| release.version.clone()),
                params: changed(channel, before.map(|release| &release.params), made),
                waits_for: waits_for(&row.desired),
            });
        }
        Ok(preview)
    }
}

/// The parameters of which a channel would see another value.
fn changed(channel: &ChannelName, before: Option<&Values>, made: &Values) -> Vec<ParameterChange> {
    let names: BTreeSet<&String> =
        before.into_iter().chain([made]).flat_map(|values| values.names(channel)).collect();
    let seen = |values: &Values, name: &str| values.get(Some(channel), name).cloned();
    let changed = names.into_iter().filter_map(|name| {
        let (before, after) = (before.and_then(|values| seen(values, name)), seen(made, name));
        (before != after).then(|| ParameterChange {
            name: name.clone(),
            before: before.as_ref().map(shown_value),
            after: after.as_ref().map(shown_value),
        })
    });
    changed.collect()
}

/// The gates before a channel, in words.
fn waits_for(desired: &Desired) -> Vec<String> {
    let named = |what: &str, name: &str| format!("{what} `{name}`");
    let mut words: Vec<String> = Vec::new();
    for gate in &desired.gates {
        match gate {
            Gate::ChannelsStable { channels } => {
                words.extend(channels.iter().map(|channel| format!("{channel} to converge")));
            }
            Gate::ManualApproval { name: Some(name), .. } => words.push(named("approval", name)),
            Gate::ManualApproval { name: None, .. } => words.push("an approval".to_owned()),
            Gate::SharedApproval { name, .. } => words.push(named("shared approval", name)),
        }
    }
    if desired.require_approval_before_apply {
        words.push("approval of each apply".to_owned());
    }
    words
}
