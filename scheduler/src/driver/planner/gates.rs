//! Channels that wait for each other: what a release that does not go to all of them leads to, in
//! words. Called by `release`.

use std::collections::{BTreeMap, BTreeSet};

use engine::desired::Gate;
use schema::api::{Instance, Service};
use schema::id::ChannelName;
use schema::status::Reason;

use super::super::Refusal;
use super::super::together::{ConfiguredUpstream, together};
use super::Planner;
use super::recompile::push_of;
use super::release::ReleaseSubject;
use super::snapshot::Concerned;
use crate::compile::{self, Channel, CompiledInstance, upstream};

/// A release that may go to some channels only.
pub(super) struct PartialRelease<'a> {
    /// Of which service.
    pub(super) subject: &'a ReleaseSubject<'a>,
    /// All channels of the application.
    pub(super) channels: &'a [Channel],
    /// Where it goes.
    pub(super) compiled: &'a [CompiledInstance],
    /// The version to which it goes back, if it does.
    pub(super) back_to: Option<&'a str>,
    /// How the service is before it; `None` where that cannot be read, which keeps nobody from
    /// releasing.
    pub(super) now: Option<&'a Service>,
}

impl Planner {
    /// What each channel of a service's application waits for, by the config in force.
    pub(super) async fn upstream(
        &self,
        application: &str,
        service: &str,
    ) -> Result<ConfiguredUpstream, Refusal> {
        let (application, service) = self.find(application, service).await?;
        let estate = self.estate(&Concerned::service(&application.name, &service.name)).await?;
        let Some(of) = estate.configs.application(&application.name) else {
            return Ok(ConfiguredUpstream::new());
        };
        let channels = compile::channels(&estate.configs, of).map_err(Refusal::Config)?;
        Ok(upstream(&channels)
            .into_iter()
            .map(|(channel, first)| (channel.clone(), first.into_iter().cloned().collect()))
            .collect())
    }
}

impl PartialRelease<'_> {
    /// Its channels that wait for one that neither gets it with them nor pursues its version: that
    /// may never end.
    pub(super) fn waits_for_others(&self, version: &str) -> Vec<String> {
        let comes = |channel: &ChannelName| self.goes_to(channel) || self.pursues(channel, version);
        let mut warnings = Vec::new();
        for instance in self.compiled.iter().filter(|instance| !instance.desired.stable_before) {
            let missing: BTreeSet<&ChannelName> = instance
                .desired
                .gates
                .iter()
                .flat_map(Gate::upstream)
                .filter(|channel| !comes(channel))
                .collect();
            if missing.is_empty() {
                continue;
            }
            let are = if missing.len() == 1 { "is" } else { "are" };
            warnings.push(format!(
                "`{0}` waits until {1} {are} converged at {version}, which was not released \
                 there: {3} all of them with {2}, or change the precondition of `{0}`",
                instance.channel,
                quoted(missing),
                self.command([&instance.channel]),
                if self.back_to.is_some() { "take back" } else { "release to" },
            ));
        }
        warnings
    }

    /// Channels that it does not go to and that wait for one to which it goes, at the version that
    /// this one pursues until now: it may never be converged there.
    pub(super) fn left_behind(&self) -> Vec<String> {
        let Some(now) = self.now else { return Vec::new() };
        let mut left: BTreeMap<(&ChannelName, &str), BTreeSet<&ChannelName>> = BTreeMap::new();
        let upstream = upstream(self.channels);
        for instance in waiting(now).filter(|instance| !self.goes_to(&instance.channel)) {
            let Some(version) = instance.desired_version.as_deref() else { continue };
            for first in upstream
                .get(&instance.channel)
                .into_iter()
                .flatten()
                .filter(|first| self.goes_to(first) && self.pursues(first, version))
            {
                left.entry((first, version)).or_default().insert(&instance.channel);
            }
        }
        let command = self.command(self.compiled.iter().map(|instance| &instance.channel));
        let told = |((first, version), waiting): ((&ChannelName, &str), BTreeSet<&ChannelName>)| {
            let wait = if waiting.len() == 1 { "waits" } else { "wait" };
            format!(
                "{} {wait} until `{first}` is converged at {version}, which this release takes \
                 from it: release to all of them with {command}",
                quoted(waiting),
            )
        };
        left.into_iter().map(told).collect()
    }

    /// Channels that stay at what they pursue, because the version to which everything is to go
    /// back was never released there.
    pub(super) fn never_had(&self, version: &str) -> Option<String> {
        let is_there = |instance: &&Instance| {
            self.channels.iter().any(|channel| channel.name == instance.channel)
        };
        let channels = self.now.into_iter().flat_map(|now| &now.channels).filter(is_there);
        let others =
            channels.filter(|instance| !self.goes_to(&instance.channel)).filter_map(|instance| {
                let pursued = instance.desired_version.as_deref()?;
                (pursued != version).then(|| format!("`{}` at {pursued}", instance.channel))
            });
        let others: Vec<String> = others.collect();
        let (service, application) = (&self.subject.service.name, &self.subject.application.name);
        (!others.is_empty()).then(|| {
            format!(
                "{version} was never released to all channels: {} stays as it is; to have there \
                 what {version} has, push its values with {}",
                others.join(", "),
                push_of(application, service)
            )
        })
    }

    fn goes_to(&self, channel: &ChannelName) -> bool {
        self.compiled.iter().any(|instance| instance.channel == *channel)
    }

    /// Whether a channel pursues this version until now.
    fn pursues(&self, channel: &ChannelName, version: &str) -> bool {
        let channels = self.now.into_iter().flat_map(|now| &now.channels);
        channels
            .filter(|instance| instance.channel == *channel)
            .any(|instance| instance.desired_version.as_deref() == Some(version))
    }

    /// What does the same in these and in all that belongs to them.
    fn command<'b>(&'b self, channels: impl IntoIterator<Item = &'b ChannelName>) -> String {
        let waiting =
            self.now.into_iter().flat_map(waiting).map(|instance| &instance.channel).collect();
        let names: Vec<&str> = together(&upstream(self.channels), channels, &waiting)
            .into_iter()
            .map(ChannelName::as_str)
            .collect();
        let (service, application) = (&self.subject.service.name, &self.subject.application.name);
        match self.back_to {
            // A push would bring what is taken back.
            Some(version) => {
                format!(
                    "`pvnctl services rollback {service} --app {application} --to {version} \
                     --channels {}`",
                    names.join(",")
                )
            }
            None => format!(
                "`pvnctl services push {service} --app {application} --channels {}`",
                names.join(",")
            ),
        }
    }
}

/// The channels that wait for others to be stable.
fn waiting(now: &Service) -> impl Iterator<Item = &Instance> {
    now.channels
        .iter()
        .filter(|instance| instance.reason == Some(Reason::ReleaseChannelDependencyUnmet))
}

fn quoted(names: BTreeSet<&ChannelName>) -> String {
    names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(" and ")
}
