//! What `services approve` and `reject` share, and how an approval is shown wherever people see one.

use clap::Args;
use schema::api::{Approval, DecisionRequest, Instance, decision_flags};
use schema::status::{ApprovalStatus, Decision};

use crate::args::ChannelArgument;
use crate::client::Client;
use crate::console::Console;
use crate::failure::Failure;
use crate::table::{harmless, one_line};

/// What both can be told.
#[derive(Debug, Args)]
pub(super) struct Common {
    /// Which instance.
    #[command(flatten)]
    pub(super) instance: ChannelArgument,
    /// Why, for those who read it later
    #[arg(long, value_name = "TEXT")]
    pub(super) reason: Option<String>,
    /// Which approval, by id or name [default: the one that is pending]
    #[arg(long, value_name = "APPROVAL")]
    pub(super) approval: Option<String>,
    /// Only if it is still about this plan: its `planDigest`
    #[arg(long, value_name = "DIGEST")]
    pub(super) plan_digest: Option<String>,
}

/// Sends a decision and says what was decided on.
pub(super) async fn send(
    what: &str,
    instance: &ChannelArgument,
    request: &DecisionRequest,
    client: &Client,
    console: &mut Console,
) -> Result<(), Failure> {
    let now: Instance = client.post(&instance.path(what), request).await?;
    let done = if what == "approve" { "approved" } else { "rejected" };
    let named = |approval: &&Approval| {
        let id = approval.id.to_string();
        request.approval.as_ref().is_none_or(|name| *name == id || approval.name.as_ref() == Some(name))
    };
    let decided = now.approvals.iter().filter(|approval| !approval.by.is_empty()).find(named);
    let of = decided.map_or_else(String::new, |approval| format!(": {}", describe(approval)));
    console.done(&now, &format!("{done} {}{of}; it is {}: {}", instance.say(), now.status, now.message))
}

/// An approval in a few words: its name, its plan, and how many have said yes while that is not enough.
pub(super) fn describe(approval: &Approval) -> String {
    let mut text = approval.name.as_ref().map_or_else(|| "the approval".to_owned(), |name| format!("approval `{}`", one_line(name)));
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

/// What people have to know: what the config tells them, what the plan would do, as far as fetch told, and its digest.
pub(super) fn asked(approval: &Approval) -> String {
    let texts = [&approval.description, &approval.explanation];
    let texts: String = texts.into_iter().flatten().map(|text| format!("{}\n", harmless(text.trim_end()))).collect();
    let digest = approval.plan_digest.as_ref().map_or_else(String::new, |digest| format!("plan {}\n", one_line(digest)));
    texts + &digest
}

/// The commands that answer exactly this approval, as it is now.
pub(super) fn commands(application: &str, service: &str, channel: &str, approval: &Approval) -> [String; 2] {
    let flags = decision_flags(approval.id, approval.plan_digest.as_deref());
    ["approve", "reject"].map(|what| format!("pvnctl services {what} {service} --app {application} --channel {channel} {flags}"))
}
