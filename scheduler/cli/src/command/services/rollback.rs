//! `pvnctl services rollback`.

use clap::Args;
use schema::api::{Pushed, RollbackRequest};

use super::push::released;
use crate::address::ServiceArgument;
use crate::args::{WaitArguments, listed_name};
use crate::client::Client;
use crate::console::Console;
use crate::failure::Failure;

const EXAMPLES: &str = "\
Examples:
  pvnctl rollback shop/web          undoes the newest push, where nobody did yet
  pvnctl rollback shop/web --to web-7 --wait

A rollback is a new release with the values of an earlier one.";

/// What can be typed.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, mut_arg("timeout", |timeout| timeout.requires("wait")))]
pub struct Arguments {
    /// Which service.
    #[command(flatten)]
    service: ServiceArgument,
    /// To which version [default: the one that was converged before; never forward to what was
    /// left]
    #[arg(long, alias = "version", value_name = "VERSION")]
    to: Option<String>,
    /// Only these release channels, separated by commas [default: with --to all, else those of the
    /// newest push]
    #[arg(long, value_name = "CHANNELS", value_delimiter = ',', value_parser = listed_name)]
    channels: Option<Vec<String>>,
    /// Wait until the release has converged
    #[arg(long, short)]
    wait: bool,
    /// How long.
    #[command(flatten)]
    patience: WaitArguments,
}

/// Makes the release, and waits for it.
pub(super) async fn perform(
    arguments: &Arguments,
    client: &Client,
    console: &mut Console,
) -> Result<(), Failure> {
    let channels = arguments.channels.as_ref();
    let (service, channels) =
        arguments.service.with_channels("--channels", channels, client).await?;
    let request = RollbackRequest { version: arguments.to.clone(), channels: channels.clone() };
    let mut path = service.path();
    path.push("rollback");
    let pushed: Pushed = client.post(&path, &request).await?;
    released(
        &service,
        channels,
        &pushed,
        arguments.wait.then_some(&arguments.patience),
        client,
        console,
    )
    .await
}
