//! What is waited for, and how it stands: channel by channel, by the release that each of them
//! pursues. Another release of the same version is another one, and one that goes to other channels
//! takes nobody's place.

use std::collections::BTreeSet;

use schema::api::{Instance, Pushed, Release, Service};
use schema::id::{ChannelName, ReleaseId};
use schema::status::{Reason, Status};

use crate::client::Client;
use crate::failure::Failure;

/// What to wait for: one service.
#[derive(Debug, Clone)]
pub struct Goal {
    /// The application, by name or id.
    pub application: String,
    /// The service, by name or id.
    pub service: String,
    /// Only these channels, by name or id; `None` means all to which the release goes, else all
    /// that have one and that the config has.
    pub channels: Option<Vec<String>>,
    /// Exactly this release; `None` means whatever is desired.
    pub pursued: Option<Pursued>,
}

/// A release that was made and is waited for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pursued {
    pub release: ReleaseId,
    pub version: String,
    /// To which channels it goes; `None` before that was asked.
    pub channels: Option<BTreeSet<ChannelName>>,
}

/// How a goal stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GoalVerdict {
    /// Every channel has converged.
    Converged,
    /// These channels have failed.
    Failed(Vec<FailedIn>),
    /// Not yet.
    Waiting,
    /// It will never come, and why.
    Never(String),
}

/// A channel that has failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FailedIn {
    pub channel: String,
    /// Which version `autoRollback` took back there, and to which, in words; `None` where it says
    /// itself how it FAILED.
    pub taken_back: Option<String>,
}

impl FailedIn {
    /// The channel, and in brackets what says no status.
    pub fn in_short(&self) -> String {
        self.taken_back
            .as_ref()
            .map_or_else(|| self.channel.clone(), |words| format!("{} ({words})", self.channel))
    }

    fn as_told(instance: &Instance) -> GoalVerdict {
        GoalVerdict::Failed(vec![Self { channel: instance.channel.to_string(), taken_back: None }])
    }

    fn taken_back(instance: &Instance, version: &str) -> GoalVerdict {
        let to = instance.desired_version.as_deref().unwrap_or("an earlier version");
        let words = format!("{version} was taken back to {to}");
        GoalVerdict::Failed(vec![Self {
            channel: instance.channel.to_string(),
            taken_back: Some(words),
        }])
    }
}

impl Goal {
    /// All of a service, at whatever is desired.
    pub fn of_service(application: impl Into<String>, service: impl Into<String>) -> Self {
        Self {
            application: application.into(),
            service: service.into(),
            channels: None,
            pursued: None,
        }
    }

    /// A release that was made, in the channels to which it goes; [`Goal::look`] asks which those
    /// are.
    pub fn of_made(
        application: impl Into<String>,
        service: impl Into<String>,
        release: ReleaseId,
        version: &str,
    ) -> Self {
        let pursued = Pursued { release, version: version.to_owned(), channels: None };
        Self { pursued: Some(pursued), ..Self::of_service(application, service) }
    }

    /// The same for whoever looks by themselves: the channels are asked for here.
    ///
    /// # Errors
    /// What the server refuses, and one that cannot be reached.
    pub async fn of_release(
        client: &Client,
        application: &str,
        service: &str,
        pushed: &Pushed,
    ) -> Result<Self, Failure> {
        let mut goal = Self::of_made(application, service, pushed.release, &pushed.version);
        goal.learn_channels(client).await?;
        Ok(goal)
    }

    /// The service as it is now. Of a release it is asked first where it goes, if nobody knows that
    /// yet.
    pub(super) async fn look(&mut self, client: &Client) -> Result<Service, Failure> {
        self.learn_channels(client).await?;
        client.get(&["v1", "applications", &self.application, "services", &self.service], &[]).await
    }

    async fn learn_channels(&mut self, client: &Client) -> Result<(), Failure> {
        if let Some(pursued) = self.pursued.as_mut().filter(|pursued| pursued.channels.is_none()) {
            let made: Release =
                client.get(&["v1", "releases", &pursued.release.to_string()], &[]).await?;
            pursued.channels =
                Some(made.channels.into_iter().map(|channel| channel.channel).collect());
        }
        Ok(())
    }

    fn wants(&self, instance: &Instance) -> bool {
        let is_meant = match (&self.pursued, &self.channels) {
            (Some(pursued), _) => pursued
                .channels
                .as_ref()
                .is_some_and(|channels| channels.contains(&instance.channel)),
            (None, None) => instance.desired_version.is_some(),
            (None, Some(_)) => true,
        };
        is_meant
            && self
                .channels
                .as_ref()
                .is_none_or(|names| names.iter().any(|name| is_called(instance, name)))
    }

    /// The channels of the service that are waited for.
    pub fn wanted<'a>(&'a self, service: &'a Service) -> impl Iterator<Item = &'a Instance> {
        service.channels.iter().filter(|instance| self.wants(instance))
    }

    /// The channels that were waited for, as the service was or as the release goes, and that a
    /// config has taken away.
    pub(super) fn gone(&self, before: Option<&Service>, now: &Service) -> BTreeSet<String> {
        let released = self
            .pursued
            .iter()
            .flat_map(|pursued| &pursued.channels)
            .flatten()
            .map(ToString::to_string);
        let seen = before
            .into_iter()
            .flat_map(|before| self.wanted(before))
            .map(|instance| instance.channel.to_string());
        let is_there =
            |name: &String| now.channels.iter().any(|instance| instance.channel.as_str() == name);
        released.chain(seen).filter(|name| !is_there(name)).collect()
    }

    /// How the goal stands, given the service as it is.
    pub fn judge(&self, service: &Service) -> GoalVerdict {
        let name = format!("{}/{}", service.application, service.name);
        for channel in self.channels.iter().flatten() {
            if !service.channels.iter().any(|instance| is_called(instance, channel)) {
                let known: Vec<_> =
                    service.channels.iter().map(|instance| instance.channel.as_str()).collect();
                return GoalVerdict::Never(format!(
                    "{name} has no channel `{channel}`; it has {}",
                    known.join(", ")
                ));
            }
        }
        if service.version.is_none() {
            return GoalVerdict::Never(format!(
                "{name} has no release; make one with `pvnctl services push {} --app {}`",
                service.name, service.application
            ));
        }
        if self.pursued.as_ref().is_some_and(|pursued| pursued.channels.is_none()) {
            return GoalVerdict::Waiting;
        }
        if self.wanted(service).next().is_none() {
            return GoalVerdict::Never(format!(
                "{name} has no channel with a release any more: a config took them away"
            ));
        }
        let (mut failed, mut never, mut waiting) = (Vec::new(), None, false);
        for instance in self.wanted(service) {
            match self.judge_channel(service, instance) {
                GoalVerdict::Converged => {}
                GoalVerdict::Failed(channels) => failed.extend(channels),
                GoalVerdict::Waiting => waiting = true,
                GoalVerdict::Never(why) => never = never.or(Some(why)),
            }
        }
        match (failed.is_empty(), never, waiting) {
            (false, _, _) => GoalVerdict::Failed(failed),
            (true, Some(why), _) => GoalVerdict::Never(why),
            (true, None, true) => GoalVerdict::Waiting,
            (true, None, false) => GoalVerdict::Converged,
        }
    }

    fn judge_channel(&self, service: &Service, instance: &Instance) -> GoalVerdict {
        // The config has it: of those that it took away the server tells nothing.
        if instance.status == Status::Deleted {
            return GoalVerdict::Never(not_back(service, instance));
        }
        let taken_back = instance.taken_back_version.as_deref();
        let is_current = match (&self.pursued, instance.release) {
            (None, _) => {
                if let Some(version) = taken_back {
                    return FailedIn::taken_back(instance, version);
                }
                instance.desired_version.is_some()
            }
            (Some(pursued), Some(release)) if release == pursued.release => true,
            // It stands still, whichever release it was at.
            (Some(_), _) if instance.status == Status::Broken => true,
            (Some(pursued), Some(_)) if taken_back == Some(&pursued.version) => {
                return FailedIn::taken_back(instance, &pursued.version);
            }
            // What was made is desired before the answer that tells of it, so this came later.
            (Some(pursued), Some(_)) => {
                let other = instance.desired_version.as_deref().unwrap_or("another release");
                return GoalVerdict::Never(format!(
                    "{} was replaced by {other} in {}",
                    pursued.version, instance.channel
                ));
            }
            // A server of before tells the version alone.
            (Some(pursued), None) => instance.desired_version.as_ref() == Some(&pursued.version),
        };
        match instance.status {
            // Another look is to come, and says how it is now.
            Status::Converged if instance.outdated => GoalVerdict::Waiting,
            Status::Failed if is_looked_at_again(instance.reason, instance.outdated) => {
                GoalVerdict::Waiting
            }
            Status::Converged if is_current => GoalVerdict::Converged,
            Status::Failed | Status::Broken if is_current => FailedIn::as_told(instance),
            _ => GoalVerdict::Waiting,
        }
    }
}

fn is_called(instance: &Instance, name: &str) -> bool {
    name == instance.channel.as_str() || *name == instance.channel_id.to_string()
}

/// Whether a FAILED says nothing yet, because another look is to come that may bring it on. None
/// does where a person cancelled or rejected it.
pub fn is_looked_at_again(reason: Option<Reason>, is_outdated: bool) -> bool {
    is_outdated && !matches!(reason, Some(Reason::Cancelled | Reason::ManualApprovalRejected))
}

/// That a channel, or the service, is in the config again, and nothing of the service in it, with
/// what ends that.
fn not_back(service: &Service, instance: &Instance) -> String {
    let (Service { application, name, .. }, channel) = (service, &instance.channel);
    format!(
        "{application}/{name} in {channel} is DELETED: it was taken away, and a config has it \
         again; `pvnctl services push {name} --app {application} --channels \
         {channel}` brings the newest values there, and `pvnctl services explain {name} --app \
         {application} --channel {channel}` tells how it comes back at the version that it had"
    )
}

#[cfg(test)]
mod tests;
