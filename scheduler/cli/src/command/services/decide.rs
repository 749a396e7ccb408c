//! `pvnctl services approve` and `reject`.

use clap::Args;
use schema::api::{DecisionRequest, Instance};

use crate::args::ChannelArgument;
use crate::client::Client;
use crate::console::Console;
use crate::failure::Failure;

const EXAMPLES: &str = "\
Examples:
  pvnctl services approve web --app shop --channel production --reason 'checked with the team'
  pvnctl services reject web --app shop --channel production --reason 'this would delete the database'

`pvnctl services get` shows what is asked, and the plan if there is one.";

/// What can be typed.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// Which instance.
    #[command(flatten)]
    instance: ChannelArgument,
    /// Why, for those who read it later
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
    /// Which approval, by id or name [default: the one that is pending]
    #[arg(long, value_name = "APPROVAL")]
    approval: Option<String>,
    /// Only if it is still about this plan: its `planDigest`
    #[arg(long, value_name = "DIGEST")]
    plan_digest: Option<String>,
}

/// Sends the decision.
pub(super) async fn perform(what: &str, arguments: Arguments, client: &Client, console: &mut Console) -> Result<(), Failure> {
    let request = DecisionRequest { approval: arguments.approval, reason: arguments.reason, plan_digest: arguments.plan_digest };
    let now: Instance = client.post(&arguments.instance.path(what), &request).await?;
    let done = if what == "approve" { "approved" } else { "rejected" };
    console.done(&now, &format!("{done} {}; it is {}: {}", arguments.instance.say(), now.status, now.message))
}
