//! What one service of the files is to come to, and what somebody else released of it meanwhile.

use std::collections::BTreeMap;

use pvnctl::client::Client;
use pvnctl::failure::Failure;
use pvnctl::wait::Goal;
use schema::api::{Instance, Release, Service};
use schema::id::{ChannelName, ReleaseId};
use schema::mask::SHOWN_MASK;

/// A service as the files have it.
pub(in crate::dev) struct Wish {
    pub(in crate::dev) application: String,
    pub(in crate::dev) service: String,
    /// What is waited for: a release that was made, and its other channels as they are.
    pub(in crate::dev) goals: Vec<Goal>,
    /// The version of its config.
    pub(super) config: u64,
    /// The parameters given for it.
    pub(super) params: BTreeMap<String, String>,
}

impl Wish {
    /// How the service is now.
    ///
    /// # Errors
    /// What the server refuses, and one that cannot be reached.
    pub(in crate::dev) async fn service(&self, client: &Client) -> Result<Service, Failure> {
        client.get(&["v1", "applications", &self.application, "services", &self.service], &[]).await
    }

    /// Where the service is at a release of other files or parameters, which somebody has made, in
    /// words; and what ends that.
    ///
    /// # Errors
    /// What the server refuses, and one that cannot be reached.
    pub(in crate::dev) async fn others(
        &self,
        client: &Client,
        service: &Service,
    ) -> Result<Option<(String, String)>, Failure> {
        let wanted = self.goals.iter().flat_map(|goal| goal.wanted(service));
        let mut found = releases(client, wanted).await?;
        for (release, channels) in &mut found {
            channels.retain(|channel| !self.is_from(release, channel));
        }
        found.retain(|(_, channels)| !channels.is_empty());
        if found.is_empty() {
            return Ok(None);
        }
        let (application, name) = (&self.application, &self.service);
        let other = |(release, channels): &(Release, Vec<ChannelName>)| {
            let channels: Vec<&str> = channels.iter().map(ChannelName::as_str).collect();
            let (version, channels, by) = (&release.version, channels.join(", "), &release.by);
            format!(
                "is at {version} in {channels}, which {by} released and which is not what these \
                 files and --param say"
            )
        };
        let others: Vec<_> = found.iter().map(other).collect();
        let words = format!("{application}/{name} {}", others.join("; "));
        // Without values: one may be a secret, of which this release knows nothing.
        let given: String = self.params.keys().map(|name| format!(" --param {name}=…")).collect();
        let next = format!(
            "what somebody released stays; where that was not meant type `pvnctl services push \
             {name} --app {application}{given}` beside a `dev` that runs without \
             --until-converged, which says how to ask it"
        );
        Ok(Some((words, next)))
    }

    /// Those of the channels that are at a release of these files and parameters.
    ///
    /// # Errors
    /// What the server refuses, and one that cannot be reached.
    pub(super) async fn at_these_files(
        &self,
        client: &Client,
        channels: impl Iterator<Item = &Instance>,
    ) -> Result<Vec<String>, Failure> {
        let found = releases(client, channels).await?;
        let same = found.iter().flat_map(|(release, channels)| {
            channels.iter().filter(|channel| self.is_from(release, channel))
        });
        Ok(same.map(ToString::to_string).collect())
    }

    /// Whether a release was made from this config and has these values in a channel. Of secret
    /// ones nobody can tell.
    fn is_from(&self, release: &Release, channel: &ChannelName) -> bool {
        let is_same = |(name, value): (&String, &String)| {
            let there = release
                .params
                .get(&format!("{channel}:{name}"))
                .or_else(|| release.params.get(name));
            there.is_some_and(|there| there == value || there == SHOWN_MASK)
        };
        release.config_version.is_none_or(|version| version == self.config)
            && self.params.iter().all(is_same)
    }
}

/// The releases that channels are at, with the channels of each.
pub(super) async fn releases(
    client: &Client,
    channels: impl Iterator<Item = &Instance>,
) -> Result<Vec<(Release, Vec<ChannelName>)>, Failure> {
    let mut at: BTreeMap<ReleaseId, Vec<ChannelName>> = BTreeMap::new();
    for (release, instance) in channels.filter_map(|instance| Some((instance.release?, instance))) {
        at.entry(release).or_default().push(instance.channel.clone());
    }
    let mut found = Vec::new();
    for (id, channels) in at {
        found.push((client.get(&["v1", "releases", &id.to_string()], &[]).await?, channels));
    }
    Ok(found)
}
