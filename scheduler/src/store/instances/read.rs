//! Rows of instances, read: what people see of each, and what a daemon goes on from, where it can
//! be read.

use std::collections::BTreeMap;

use engine::state::State;
use schema::api::{Approval, Instance};
use schema::id::{
    ApplicationId, ApplicationName, ChannelId, ChannelName, InstanceId, RuntimeName, ServiceId,
};
use schema::status::{ApprovalKind, ApprovalStatus, Status};
use schema::time::Timestamp;

use super::super::row::{get, instant, json, named, number, word, word_or_null};
use super::super::{Result, Row, StoreError};
use super::{KEYS, LoadedInstance, RowDamage};

/// The instance as people see it.
pub fn shown(channel: (ChannelId, ChannelName), runtime: RuntimeName, state: &State) -> Instance {
    let standing = state.standing();
    Instance {
        channel: channel.1,
        channel_id: channel.0,
        runtime,
        status: standing.status,
        reason: standing.reason,
        message: standing.message.clone(),
        desired_version: state.desired().map(|desired| desired.version.clone()),
        release: state.desired().map(|desired| desired.release),
        taken_back_version: state
            .rolled_back()
            .filter(|_| !state.is_deleted())
            .map(|back| back.from.clone()),
        converged_version: state.converged().map(|converged| converged.version.clone()),
        since: standing.since,
        next_action_at: standing.next_action_at,
        last_fetch_at: state.last_fetch_at(),
        outdated: state.is_outdated(),
        objects: state.objects().to_vec(),
        info: state.info().to_vec(),
        approvals: engine::view::approvals(state),
        paused: state.is_paused(),
        observer: state.only_looks(),
        observed: engine::view::observed_only(state),
        drift: engine::view::drift(state),
        window_lift: engine::view::window_lift(state),
        waits_for: engine::view::waits_for(state),
        upstream: engine::view::upstream(state),
    }
}

/// What stands for the name of a thing whose row cannot be read, wherever people look.
pub(in crate::store) fn unreadable_name<T: std::str::FromStr<Err: std::fmt::Debug>>() -> T {
    "unreadable".parse().expect("it is a legal name")
}

/// One that stands still, as people see it: what is known of it, and why it stands still.
fn broken(
    channel: (ChannelId, ChannelName),
    row: &Row,
    why: Option<String>,
    state: Option<State>,
) -> Instance {
    let since = instant(row, "since").unwrap_or(Timestamp::from_millis(0));
    let told = word(row, "status")
        .is_ok_and(|status: Status| status == Status::Broken)
        .then(|| get(row, "message").ok())
        .flatten();
    let message = told.or(why).unwrap_or_else(|| "its row cannot be read".to_owned());
    let known = state.unwrap_or_else(|| State::new(InstanceId::from_bytes([0; 16]), since));
    let runtime = word(row, "runtime")
        .ok()
        .or_else(|| known.desired().map(|desired| desired.runtime.clone()));
    Instance {
        status: Status::Broken,
        reason: None,
        message,
        since,
        next_action_at: None,
        waits_for: Vec::new(),
        upstream: Vec::new(),
        desired_version: get(row, "desired_version").unwrap_or_default(),
        release: word_or_null(row, "release_id").unwrap_or_default(),
        ..shown(channel, runtime.unwrap_or_else(unreadable_name), &known)
    }
}

/// An instance as people see it, BROKEN where a part of its row cannot be read.
pub(in crate::store) fn shown_or_broken(row: &Row) -> Instance {
    let read = || -> Result<(ChannelId, ChannelName, RuntimeName, Status)> {
        let channel: ChannelId = word(row, "channel_id")?;
        read_revision(row, InstanceId::of(word(row, "service_id")?, channel))?;
        Ok((channel, word(row, "channel")?, word(row, "runtime")?, word(row, "status")?))
    };
    let state: Result<State> = json(row, "state");
    match (named("instances", KEYS, row, read()), state) {
        (Ok((id, name, runtime, status)), Ok(state)) if status != Status::Broken => {
            shown((id, name), runtime, &state)
        }
        (read, state) => {
            let id = word(row, "channel_id").unwrap_or(ChannelId::from_bytes([0; 16]));
            let channel = (id, word(row, "channel").unwrap_or_else(|_| unreadable_name()));
            broken(channel, row, read.err().map(|error| error.to_string()), state.ok())
        }
    }
}

/// Says of each question that is asked in one of these channels of a service, in the order of their
/// rows, where an answer counts: in more than the one only where it is shared.
pub(super) fn tell_where_answers_count(channels: &mut [Instance], rows: &[Row]) {
    let is_asked_together = |approval: &Approval| {
        approval.status == ApprovalStatus::Pending && approval.kind == ApprovalKind::Shared
    };
    if !channels.iter().any(|one| one.approvals.iter().any(is_asked_together)) {
        return;
    }
    // One that stands still hears nothing.
    let state = |(one, row): (&Instance, &Row)| {
        let is_read = one.status != Status::Broken;
        Some((one.channel.clone(), json(row, "state").ok().filter(|_| is_read)?))
    };
    let states: BTreeMap<ChannelName, State> =
        channels.iter().zip(rows).filter_map(state).collect();
    for one in channels {
        let Some(asked) = states.get(&one.channel) else { continue };
        for approval in one.approvals.iter_mut().filter(|approval| is_asked_together(approval)) {
            let heard = states.iter().filter(|(_, other)| other.hears(asked, approval.id));
            approval.channels = heard.map(|(name, _)| name.clone()).collect();
        }
    }
}

/// The number of commits so far, of a row whose id is the one that its service and channel make.
pub(super) fn read_revision(row: &Row, id: InstanceId) -> Result<i64> {
    let found: InstanceId = word(row, "id")?;
    if found != id {
        return Err(StoreError::Corrupt(format!(
            "column id holds {found}, and its service and its channel make {id}"
        )));
    }
    number(row, "revision")
}

/// Whatever of the row can be read; an error where it cannot even be told whose it is.
pub(super) fn read_loaded(row: &Row) -> Result<LoadedInstance> {
    let ids = || Ok((word(row, "service_id")?, word(row, "channel_id")?));
    let (service, channel): (ServiceId, ChannelId) = named("instances", KEYS, row, ids())?;
    let mut damage = Vec::new();
    let names = || -> Result<_> {
        let application: (ApplicationId, ApplicationName) =
            (word(row, "application_id")?, word(row, "applications.name")?);
        let (service, channel) =
            ((service, word(row, "services.name")?), (channel, word(row, "channels.name")?));
        let owner: ApplicationId = word(row, "channels.application_id")?;
        if owner != application.0 {
            return Err(StoreError::Corrupt(format!(
                "its channel is of {owner}, and its service of {}",
                application.0
            )));
        }
        let is_deleted = |column| get::<Option<i64>>(row, column).map(|at| at.is_some());
        let gone = is_deleted("channels.deleted_at")?
            || is_deleted("services.deleted_at")?
            || is_deleted("applications.deleted_at")?;
        Ok((application, service, channel, gone))
    };
    let (application, service, channel, gone) = names().unwrap_or_else(|error| {
        damage.push(error);
        let application = (
            ApplicationId::from_bytes([0; 16]),
            word(row, "applications.name").unwrap_or_else(|_| unreadable_name()),
        );
        let service = (service, word(row, "services.name").unwrap_or_else(|_| unreadable_name()));
        (
            application,
            service,
            (channel, word(row, "channels.name").unwrap_or_else(|_| unreadable_name())),
            false,
        )
    });
    let revision = read_revision(row, InstanceId::of(service.0, channel.0))
        .map_err(|error| damage.push(error))
        .unwrap_or_default();
    let needs_hand = !damage.is_empty();
    let state: Result<State> = json(row, "state");
    let runtime = word(row, "runtime").unwrap_or_else(|error| {
        damage.push(error);
        let desired = state.as_ref().ok().and_then(State::desired);
        desired.map_or_else(unreadable_name, |desired| desired.runtime.clone())
    });
    let why =
        damage.into_iter().next().map(|error| named::<()>("instances", KEYS, row, Err(error)));
    Ok(LoadedInstance {
        application,
        service,
        channel,
        runtime,
        // Kept beside only where it is of use.
        stored: if state.is_err() { get(row, "state").unwrap_or_default() } else { String::new() },
        state: state.map_err(|error| error.to_string()),
        revision,
        // One whose status cannot be read is written anew as one that was broken and goes on.
        is_broken: word(row, "status").map_or(true, |status: Status| status == Status::Broken),
        gone,
        damage: why
            .and_then(std::result::Result::err)
            .map(|error| RowDamage { why: error.to_string(), needs_hand }),
    })
}
