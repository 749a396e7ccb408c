//! `pvnctl services wait`.

use clap::Args;

use crate::args::{Patience, ServiceArgument, listed_name};
use crate::client::Client;
use crate::console::Console;
use crate::failure::Failure;
use crate::wait::{self, Goal};

const EXAMPLES: &str = "\
Exit codes:
  0  every channel waited for is CONVERGED at its desired version
  2  one of them FAILED
  3  the timeout came first; a scheduler that goes away meanwhile is waited for
  1  anything else: no such service, no release, no scheduler from the start";

/// What can be typed.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// Which service.
    #[command(flatten)]
    service: ServiceArgument,
    /// Only these release channels; may be repeated [default: all that have a release]
    #[arg(long = "channel", value_name = "CHANNEL", value_delimiter = ',', value_parser = listed_name)]
    channels: Option<Vec<String>>,
    /// How long.
    #[command(flatten)]
    patience: Patience,
}

/// Waits.
pub(super) async fn perform(arguments: &Arguments, client: &Client, console: &mut Console) -> Result<(), Failure> {
    let goal = Goal {
        application: arguments.service.app.clone(),
        service: arguments.service.service.clone(),
        channels: arguments.channels.clone(),
        version: None,
    };
    wait::until_converged(client, &[goal], arguments.patience.duration(), console).await
}
