//! `pvnctl services wait`.

use clap::Args;
use schema::api::Service;

use crate::address::ServiceArgument;
use crate::args::{OutputFormat, WaitArguments, listed_name};
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
     again, no scheduler from the start

With -o json or yaml the service as it is then is printed, as `services get` does.";

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
    let channels = arguments.channels.as_ref();
    let (service, channels) =
        arguments.service.with_channels("--channel", channels, client).await?;
    let goal = Goal { channels, ..Goal::of_service(&service.app, &service.service) };
    let path = service.path();
    let ended =
        wait::until_converged(client, vec![goal], arguments.patience.duration(), console).await;
    // Whatever became of it is what programs want to know; how it ended the exit code says.
    if matches!(console.format, OutputFormat::Json | OutputFormat::Yaml)
        && let Ok(service) = client.get::<Service>(&path, &[]).await
    {
        console.print(&service, |_| String::new())?;
    }
    ended
}
