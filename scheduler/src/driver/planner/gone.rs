//! What a config takes away when a release channel goes, or a person when a service is deleted,
//! told before and when it happens: a slip in a name looks just like it, and nothing of it can be
//! undone. Called by `configs`.

use std::collections::BTreeMap;

use engine::{State, brings_back};
use schema::api::Diagnostic;
use schema::id::{ApplicationName, ChannelId, InstanceId, ServiceId};

use super::super::Refusal;
use super::configs::PlannedApplication;
use super::{Planner, warning};
use crate::names::target_of;
use crate::store::{ChannelRow, Released};

/// Most services of one channel that are named each; of more it is said how many they are. Source:
/// two screens of a terminal.
const NAMED_LIMIT: usize = 20;

/// What goes of a release channel.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Removal {
    /// The channel itself, with all that is released in it.
    Channel,
    /// Services that are deleted.
    Services,
}

/// A release channel that goes, or of which services go, and what is released there of them.
pub(super) struct RemovedChannel {
    application: ApplicationName,
    channel: ChannelRow,
    removal: Removal,
    released: Vec<Released>,
}

impl RemovedChannel {
    /// What goes of a channel with services that are deleted.
    pub(super) fn of_services(
        application: &ApplicationName,
        channel: &ChannelRow,
        released: Vec<Released>,
    ) -> Self {
        let (application, channel) = (application.clone(), channel.clone());
        Self { application, channel, removal: Removal::Services, released }
    }

    pub(super) fn is_of(&self, channel: ChannelId) -> bool {
        self.channel.id == channel
    }

    /// What tells one loss from another: not how it stands, which changes by itself.
    pub(super) fn lost(&self) -> impl Iterator<Item = (ChannelId, ServiceId, &str)> {
        self.released
            .iter()
            .map(|released| (self.channel.id, released.id, released.version.as_str()))
    }
}

impl Planner {
    /// The release channels that go by what is applied.
    pub(super) async fn going(
        &self,
        applied: &BTreeMap<ApplicationName, PlannedApplication>,
    ) -> Result<Vec<RemovedChannel>, Refusal> {
        let mut going = Vec::new();
        for (application, applied) in applied {
            for channel in &applied.gone {
                let released = self.store.released_in(channel.id).await?;
                going.push(RemovedChannel {
                    application: application.clone(),
                    channel: channel.clone(),
                    removal: Removal::Channel,
                    released,
                });
            }
        }
        Ok(going)
    }

    /// What is released and goes, service by service.
    pub(super) async fn warn_of_gone(
        &self,
        going: Vec<RemovedChannel>,
    ) -> Result<Vec<Diagnostic>, Refusal> {
        let mut warnings = Vec::new();
        for RemovedChannel { application, channel, removal, released } in going {
            let more = released.len().saturating_sub(NAMED_LIMIT);
            for Released { id, service, status, version } in released.into_iter().take(NAMED_LIMIT)
            {
                // Where its state cannot be read, what it pursues is the best that is known.
                let state = self.store.state(InstanceId::of(id, channel.id)).await.ok().flatten();
                let had = state.as_ref().and_then(State::had).unwrap_or(&version);
                let goes = match removal {
                    Removal::Channel => format!(
                        "release channel `{}` goes: {application}/{service} in it",
                        channel.name
                    ),
                    Removal::Services => format!("{application}/{service} in {}", channel.name),
                };
                let message = format!(
                    "{goes} ({status} at {version}) is not wanted any more; what pvn keeps for it \
                     (its PVN_INSTANCE_DIR) is removed"
                );
                let (slip, back) = match removal {
                    Removal::Channel => (
                        "a channel under another name is another channel: give it its name back \
                         if only that was meant to change. ",
                        "the config has the channel again",
                    ),
                    Removal::Services => ("", "a config has the service again"),
                };
                let help = format!(
                    "{slip}What was applied stays as it is outside of pvn, and nobody looks after \
                     it; an apply that runs goes on to its end. Once {back}, {}, either way with \
                     an empty directory",
                    brings_back(&target_of(&application, &service, &channel.name), Some(had))
                );
                warnings.push(warning(format!("{application}/{service}"), message, help));
            }
            if more > 0 {
                let channel = &channel.name;
                let message = match removal {
                    Removal::Channel => format!(
                        "with release channel `{channel}` go {more} more services of \
                         {application}, in the same way"
                    ),
                    Removal::Services => format!(
                        "{more} more services of {application} in {channel} go in the same way"
                    ),
                };
                let help = format!(
                    "`pvnctl services list --app {application}` shows all of them, with their \
                     channels"
                );
                warnings.push(warning(application.to_string(), message, help));
            }
        }
        Ok(warnings)
    }
}
