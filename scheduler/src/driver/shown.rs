//! What of an instance others go by: how its release stands, for lists and waits, and at which
//! version it is converged, for the channels that wait for it. Called by the batch before and after
//! each step.

use engine::State;
use engine::event::Event;
use engine::state::RolledBack;
use schema::id::{ChannelId, ChannelName, InstanceId, ReleaseId};
use schema::status::Status;
use schema::time::Timestamp;

use super::world::{InstanceEntry, World};
use crate::names::InstanceNames;
use crate::store::Change;

/// What an instance showed before a step.
pub(super) struct Shown {
    status: Status,
    release: Option<ReleaseId>,
    is_refused: bool,
    /// The release that was converged last.
    arrived: Option<ReleaseId>,
    converged_version: Option<String>,
    rolled_back: Option<RolledBack>,
}

impl Shown {
    pub(super) fn by(state: &State) -> Self {
        Self {
            status: state.standing().status,
            release: state.desired().map(|desired| desired.release),
            is_refused: state.is_refused(),
            arrived: state.converged().map(|converged| converged.release),
            converged_version: state.converged_version().map(str::to_owned),
            rolled_back: state.rolled_back().cloned(),
        }
    }

    /// What is written about its releases now that it is in this state.
    pub(super) fn changes(&self, state: &State, channel: ChannelId, at: Timestamp) -> Vec<Change> {
        let Some(release) = state.desired().map(|desired| desired.release) else {
            return Vec::new();
        };
        let status = state.standing().status;
        let older = self.release.filter(|older| *older != release);
        let left = older.and_then(|older| {
            Some(Change::ReleaseStatus {
                release: older,
                channel,
                status: self.left_at(older)?,
                at,
            })
        });
        let is_other = self.status != status || self.release != Some(release);
        // A no goes with its channel, and is a no.
        let turned = self.release == Some(release)
            && self.is_refused != state.is_refused()
            && !state.is_deleted();
        let stands = is_other.then_some(Change::ReleaseStatus { release, channel, status, at });
        let refused = turned.then_some(Change::ReleaseRefused {
            release,
            channel,
            refused: !self.is_refused,
        });
        left.into_iter().chain(stands).chain(refused).collect()
    }

    /// How a release ends that another one takes the place of; `None` when it had ended.
    fn left_at(&self, older: ReleaseId) -> Option<Status> {
        match self.status {
            Status::Converged | Status::Failed | Status::Replaced | Status::Deleted => None,
            // What it still had to do nobody does any more; nothing where it had arrived before a
            // person paused it.
            Status::Paused if self.arrived == Some(older) => Some(Status::Converged),
            _ => Some(Status::Replaced),
        }
    }

    /// Whether the channels that wait for this one have to be told.
    pub(super) fn tells_others(&self, state: &State) -> bool {
        (state.converged_version(), state.rolled_back())
            != (self.converged_version.as_deref(), self.rolled_back.as_ref())
    }
}

fn waits_for(world: &World, id: InstanceId, channel: &ChannelName) -> bool {
    world.instances.get(&id).is_some_and(|kept| kept.upstream().any(|named| named == channel))
}

/// How a channel stands; without a state nobody knows.
fn upstream(channel: &ChannelName, state: Option<&State>) -> Event {
    let converged_version = state.and_then(State::converged_version).map(str::to_owned);
    let rolled_back = state.and_then(State::rolled_back).cloned().map(Box::new);
    Event::Upstream { channel: channel.clone(), converged_version, rolled_back }
}

/// What those are told who wait for the channel of this instance.
pub(super) fn dependents(
    world: &World,
    names: &InstanceNames,
    state: Option<&State>,
) -> Vec<(InstanceId, Event)> {
    let event = upstream(&names.channel.1, state);
    let siblings = world.siblings(names.service.0).into_iter();
    siblings
        .filter(|other| waits_for(world, *other, &names.channel.1))
        .map(|other| (other, event.clone()))
        .collect()
}

/// How the channels that the gates of this instance name stand now.
pub(super) fn upstream_of(world: &World, kept: &InstanceEntry) -> impl Iterator<Item = Event> {
    let siblings = world.siblings(kept.names.service.0);
    let named: Vec<ChannelName> = kept.upstream().cloned().collect();
    let of = |channel: &ChannelName| {
        siblings
            .iter()
            .filter_map(|id| world.instances.get(id))
            .find(|other| other.names.channel.1 == *channel)
    };
    let told: Vec<Event> = named
        .iter()
        .filter_map(|channel| Some(upstream(channel, Some(&of(channel)?.state))))
        .collect();
    told.into_iter()
}
