//! `pvnctl services`: see, release, approve and steer services.

mod approve;
mod decision;
mod explain;
mod get;
mod ill;
mod list;
mod push;
mod reject;
mod rollback;
mod steer;
mod wait;

use clap::Subcommand;

use crate::args::ChannelArgument;
use crate::client::Client;
use crate::console::Console;
use crate::failure::Failure;

/// What can be typed.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// List services and how their channels stand
    List(list::Arguments),
    /// Show one service, channel by channel
    Get(get::Arguments),
    /// Make a release
    Push(push::Arguments),
    /// Wait until a service has converged
    Wait(wait::Arguments),
    /// Say yes to the approval that a channel waits for
    Approve(approve::Arguments),
    /// Say no to the approval that a channel waits for
    Reject(reject::Arguments),
    /// Fetch and getInfo now, whatever their intervals say
    Refresh(ChannelArgument),
    /// Try again now: ends FAILED, back-off and grace period
    Retry(ChannelArgument),
    /// Stop fetch and apply of a service in a channel
    Pause(ChannelArgument),
    /// Undo `pause`
    Resume(ChannelArgument),
    /// Make a release that goes back to an earlier version
    Rollback(rollback::Arguments),
    /// Say why a channel stands where it stands, and what would move it
    Explain(explain::Arguments),
}

/// Does it.
///
/// # Errors
/// What the server says; exit codes 2 and 3 from those that wait.
pub async fn perform(
    command: Command,
    client: &Client,
    console: &mut Console,
) -> Result<(), Failure> {
    match command {
        Command::List(arguments) => list::perform(arguments, client, console).await,
        Command::Get(arguments) => get::perform(&arguments, client, console).await,
        Command::Push(arguments) => push::perform(&arguments, client, console).await,
        Command::Wait(arguments) => wait::perform(&arguments, client, console).await,
        Command::Approve(arguments) => approve::perform(arguments, client, console).await,
        Command::Reject(arguments) => reject::perform(arguments, client, console).await,
        Command::Refresh(instance) => steer::perform("refresh", &instance, client, console).await,
        Command::Retry(instance) => steer::perform("retry", &instance, client, console).await,
        Command::Pause(instance) => steer::perform("pause", &instance, client, console).await,
        Command::Resume(instance) => steer::perform("resume", &instance, client, console).await,
        Command::Rollback(arguments) => rollback::perform(&arguments, client, console).await,
        Command::Explain(arguments) => explain::perform(&arguments, client, console).await,
    }
}
