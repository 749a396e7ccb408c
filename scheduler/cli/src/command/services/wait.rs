//! `pvnctl services wait`.

use clap::Args;

use crate::args::{ServiceArgument, WaitArguments, listed_name};
use crate::client::Client;
use crate::console::Console;
use crate::failure::Failure;
use crate::wait::{self, Goal};

const EXAMPLES: &str = "\
Exit codes:
  0  every channel waited for is CONVERGED at its desired version
  2  one of them FAILED, or autoRollback took a release back there and no other has come since
  3  the timeout came first; a scheduler that goes away meanwhile is waited for
  1  anything else: no such service, no release, a channel that is DELETED and in the config
     again, no scheduler from the start";

/// What can be typed.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// Which service.
    #[command(flatten)]
    service: ServiceArgument,
    /// Only these release channels; may be repeated [default: all that have a release]
    #[arg(
        long = "channel", value_name = "CHANNEL", value_delimiter = ',', value_parser = listed_name
    )]
    channels: Option<Vec<String>>,
    /// How long.
    #[command(flatten)]
    patience: WaitArguments,
}

/// Waits.
pub(super) async fn perform(
    arguments: &Arguments,
    client: &Client,
    console: &mut Console,
) -> Result<(), Failure> {
    let goal = Goal {
        channels: arguments.channels.clone(),
        ..Goal::of_service(&arguments.service.app, &arguments.service.service)
    };
    wait::until_converged(client, vec![goal], arguments.patience.duration(), console).await
}
