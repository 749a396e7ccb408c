//! `pvnctl services reject`.

use clap::Args;
use schema::api::DecisionRequest;

use super::decision::{self, Common};
use crate::address::InstancePath;
use crate::client::Client;
use crate::console::Console;
use crate::failure::Failure;

const EXAMPLES: &str = "\
Examples:
  pvnctl reject shop/web@production --reason 'this would delete the database'

`pvnctl get services SERVICE` shows what is asked, and the plan if there is one.
On a terminal it asks for the reason.";

/// What can be typed.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// What is decided on.
    #[command(flatten)]
    common: Common,
}

/// Longest reason that is asked for, bytes: a few lines of a terminal.
const REASON_BYTES: usize = 1000;

/// Asks for the reason, which those read who have to do something about it.
fn why(instance: &InstancePath, console: &mut Console) -> Result<Option<String>, Failure> {
    let asked =
        format!("Why is {} rejected? (Enter for no reason, Ctrl-D to stop)", instance.say());
    let Some(answer) = console.ask_for(&asked, REASON_BYTES)? else {
        return Err(Failure::user("nothing was rejected"));
    };
    Ok(Some(answer).filter(|answer| !answer.is_empty()))
}

/// Sends the decision. To say no one need not have seen the plan.
pub(super) async fn perform(
    arguments: Arguments,
    client: &Client,
    console: &mut Console,
) -> Result<(), Failure> {
    let Common { instance, reason, approval, plan_digest } = arguments.common;
    let instance = instance.resolve(client).await?;
    let reason = match reason {
        None if console.can_ask() => why(&instance, console)?,
        given => given,
    };
    let request = DecisionRequest { approval, reason, plan_digest, any_plan: false };
    decision::send("reject", &instance, &request, client, console).await
}
