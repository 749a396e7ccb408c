//! `pvnctl services reject`.

use clap::Args;
use schema::api::DecisionRequest;

use super::decision::{self, Common};
use crate::client::Client;
use crate::console::Console;
use crate::failure::Failure;

const EXAMPLES: &str = "\
Examples:
  pvnctl services reject web --app shop --channel production --reason 'this would delete the \
                        database'

`pvnctl services get` shows what is asked, and the plan if there is one.";

/// What can be typed.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// What is decided on.
    #[command(flatten)]
    common: Common,
}

/// Sends the decision. To say no one need not have seen the plan.
pub(super) async fn perform(
    arguments: Arguments,
    client: &Client,
    console: &mut Console,
) -> Result<(), Failure> {
    let Common { instance, reason, approval, plan_digest } = arguments.common;
    let instance = instance.resolve(client).await?;
    let request = DecisionRequest { approval, reason, plan_digest, any_plan: false };
    decision::send("reject", &instance, &request, client, console).await
}
