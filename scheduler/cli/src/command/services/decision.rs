//! What `services approve` and `reject` share, and how an approval is shown wherever people see
//! one.

use clap::Args;
use schema::api::{Application, Approval, DecisionRequest, Instance, Service, decision_flags};
use schema::shown::told_of_cut;
use schema::status::{ApprovalKind, ApprovalStatus, Decision, Status};

use super::plan;
use crate::address::{ChannelArgument, InstancePath};
use crate::client::Client;
use crate::console::Console;
use crate::failure::Failure;
use crate::short;
use crate::table::{harmless, one_line};

/// What both can be told.
#[derive(Debug, Args)]
pub(super) struct Common {
    /// Which instance.
    #[command(flatten)]
    pub(super) instance: ChannelArgument,
    /// Why, for those who read it later
    #[arg(long, short, value_name = "TEXT")]
    pub(super) reason: Option<String>,
    /// Which approval, by id or name [default: the one that is pending]
    #[arg(long, value_name = "APPROVAL")]
    pub(super) approval: Option<String>,
    /// Only if it is still about this plan: its `planDigest`
    #[arg(long, value_name = "DIGEST")]
    pub(super) plan_digest: Option<String>,
}

/// The other channels in which the answer to a shared approval counts too: behind the same gate, at
/// the same version, and with something left to do. None where the approval is not shared, or where
/// that cannot be asked.
pub(super) async fn others(
    instance: &InstancePath,
    named: Option<&str>,
    client: &Client,
) -> Vec<String> {
    let Ok(service) = client.get::<Service>(&instance.service.path(), &[]).await else {
        return Vec::new();
    };
    let is_here = |other: &Instance| {
        instance.channel == other.channel.as_str()
            || instance.channel == other.channel_id.to_string()
    };
    let Some(here) = service.channels.iter().find(|other| is_here(other)) else {
        return Vec::new();
    };
    let pending =
        here.approvals.iter().filter(|approval| approval.status == ApprovalStatus::Pending);
    let is_named = |approval: &&Approval| {
        named.is_none_or(|name| {
            approval.id.to_string() == name || approval.name.as_deref() == Some(name)
        })
    };
    let asked = pending.filter(is_named).find(|approval| approval.kind == ApprovalKind::Shared);
    let Some((id, gate)) =
        asked.and_then(|approval| Some((approval.id, approval.name.as_deref()?)))
    else {
        return Vec::new();
    };
    let Ok(application) =
        client.get::<Application>(&["v1", "applications", &instance.service.app], &[]).await
    else {
        return Vec::new();
    };
    let is_behind = |channel: &Instance| {
        let of = application.release_channels.iter().find(|of| of.name == channel.channel);
        of.is_some_and(|of| {
            of.preconditions
                .iter()
                .any(|condition| condition["sharedManualApproval"]["name"] == gate)
        })
    };
    let is_answered = |channel: &Instance| {
        channel.approvals.iter().any(|approval| {
            approval.id == id && !matches!(approval.status, ApprovalStatus::Pending)
        })
    };
    let waits = |channel: &&Instance| {
        channel.channel != here.channel
            && !is_answered(channel)
            && channel.desired_version == here.desired_version
            && !matches!(channel.status, Status::Converged | Status::Deleted)
            && is_behind(channel)
    };
    service.channels.iter().filter(waits).map(|channel| channel.channel.to_string()).collect()
}

/// Those of the other channels in which exactly this answer was counted.
async fn counted(
    instance: &InstancePath,
    decided: Option<&Approval>,
    client: &Client,
) -> Vec<String> {
    let Some(approval) = decided.filter(|approval| approval.kind == ApprovalKind::Shared) else {
        return Vec::new();
    };
    let Some(said) = approval.by.iter().max_by_key(|vote| vote.when) else { return Vec::new() };
    let Ok(service) = client.get::<Service>(&instance.service.path(), &[]).await else {
        return Vec::new();
    };
    let has_it = |channel: &&Instance| {
        let is_here = instance.channel == channel.channel.as_str()
            || instance.channel == channel.channel_id.to_string();
        let mut same = channel
            .approvals
            .iter()
            .filter(|other| other.id == approval.id)
            .flat_map(|other| &other.by);
        !is_here
            && same.any(|vote| {
                (&vote.who, vote.when, vote.decision) == (&said.who, said.when, said.decision)
            })
    };
    service.channels.iter().filter(has_it).map(|channel| channel.channel.to_string()).collect()
}

/// Names in a sentence: `eu`, `eu and us`, `eu, us and asia`.
pub(super) fn listed(names: &[String]) -> String {
    match names {
        [] => String::new(),
        [one] => one.clone(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

/// Sends a decision and says what was decided on, and where.
pub(super) async fn send(
    what: &str,
    instance: &InstancePath,
    request: &DecisionRequest,
    client: &Client,
    console: &mut Console,
) -> Result<(), Failure> {
    let now: Instance = client.post(&instance.path(what), request).await?;
    let done = if what == "approve" { "approved" } else { "rejected" };
    let named = |approval: &&Approval| {
        let id = approval.id.to_string();
        request
            .approval
            .as_ref()
            .is_none_or(|name| *name == id || approval.name.as_ref() == Some(name))
    };
    let decided = now.approvals.iter().filter(|approval| !approval.by.is_empty()).find(named);
    let others = counted(instance, decided, client).await;
    let of = decided.map_or_else(String::new, |approval| format!(": {}", describe(approval)));
    let channels: Vec<String> =
        std::iter::once(&instance.channel).chain(&others).cloned().collect();
    let (service, channels) = (&instance.service, listed(&channels));
    let version = decided
        .and_then(|approval| approval.version.as_deref())
        .map_or_else(String::new, |version| format!(" {}", one_line(version)));
    let line = format!("{done} {}/{}{version} in {channels}{of}; ", service.app, service.service);
    let whose = if others.is_empty() {
        "it".to_owned()
    } else {
        format!("{} in {}", service.service, instance.channel)
    };
    console.done(
        &now,
        &format!(
            "{line}{whose} is {}: {}",
            now.status,
            short::sentence(&instance.named().text(&now.message))
        ),
    )
}

/// An approval in a few words: its name, its plan, and how many have said yes while that is not
/// enough.
pub(super) fn describe(approval: &Approval) -> String {
    let mut text = approval
        .name
        .as_ref()
        .map_or_else(|| "the approval".to_owned(), |name| format!("approval `{}`", one_line(name)));
    match &approval.plan_digest {
        Some(digest) => text += &format!(" of plan {}", one_line(digest)),
        None => text += " (there is no plan)",
    }
    if approval.status == ApprovalStatus::Pending && approval.needed > 1 {
        text += &format!(", {} of {} people so far", yes(approval), approval.needed);
    }
    text
}

/// How many have said yes.
pub(super) fn yes(approval: &Approval) -> usize {
    approval.by.iter().filter(|vote| vote.decision == Decision::Approve).count()
}

/// What people have to know: what the config tells them, what the plan would do, as far as fetch
/// told, and its digest.
pub(super) fn asked(approval: &Approval, colour: bool) -> String {
    let mut text = String::new();
    if let Some(description) = &approval.description {
        text += &format!("{}\n", harmless(description.trim_end()));
    }
    let explanation = approval.explanation.as_ref();
    let explanation = explanation.map(|plan| harmless(plan.trim_end()));
    if let Some(explanation) = &explanation {
        text += &format!("{}\n", plan::coloured(explanation, colour));
    }
    let cut = explanation.as_deref().and_then(told_of_cut);
    // What is counted of a part would be taken for all of it.
    let counted = explanation.as_deref().filter(|_| cut.is_none()).and_then(plan::counted);
    let counted = counted.map_or_else(String::new, |counted| format!(", {counted}"));
    text += &cut.map_or_else(String::new, |cut| format!("the plan is longer than this: {cut}\n"));
    if let Some(digest) = &approval.plan_digest {
        text += &format!("plan {}{counted}\n", one_line(digest));
    }
    text
}

/// The commands that answer exactly this approval, as it is now.
pub(super) fn commands(
    application: &str,
    service: &str,
    channel: &str,
    approval: &Approval,
) -> [String; 2] {
    let flags = decision_flags(approval.id, approval.plan_digest.as_deref());
    ["approve", "reject"].map(|what| {
        format!("pvnctl services {what} {service} --app {application} --channel {channel} {flags}")
    })
}
