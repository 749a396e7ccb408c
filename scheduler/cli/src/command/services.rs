//! `pvnctl services`: see, release, approve and steer services.

mod acknowledge;
pub(crate) mod approve;
mod decision;
pub mod explain;
pub mod get;
pub(crate) mod ill;
pub mod list;
mod open_window;
mod plan;
mod push;
mod reject;
mod rollback;
mod steer;
mod wait;

use clap::{Args, Subcommand};
use schema::api::DocumentReference;

use super::delete::{self, DeleteArguments};
use crate::address::{ChannelArgument, ServiceArgument, ServicePath};
use crate::client::Client;
use crate::console::Console;
use crate::failure::Failure;

/// What can be typed.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// List services and how their channels stand
    #[command(visible_alias = "ls")]
    List(list::Arguments),
    /// Show one service, channel by channel
    Get(get::Arguments),
    /// Delete a service in all of its release channels; what was applied stays as it is
    Delete(DeleteService),
    /// What is said without the noun as well.
    #[command(flatten)]
    Verb(ServiceVerb),
}

/// What is done to services: `pvnctl services push`, and `pvnctl push`.
#[derive(Debug, Subcommand)]
pub enum ServiceVerb {
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
    Pause(steer::PauseArguments),
    /// Go on looking at a service in a channel, and apply nothing
    Observe(steer::ObserveArguments),
    /// Undo `pause` and `observe`
    Resume(ChannelArgument),
    /// Leave the drift of a channel as it is for a while
    #[command(visible_alias = "ack")]
    Acknowledge(acknowledge::Arguments),
    /// Let a version start outside its apply window (break-glass)
    OpenWindow(open_window::Arguments),
    /// Make a release that goes back to an earlier version
    Rollback(rollback::Arguments),
    /// Say why a channel stands where it stands and what would move it
    Explain(explain::Arguments),
}

/// What is deleted, and how.
#[derive(Debug, Args)]
pub struct DeleteService {
    /// Which service.
    #[command(flatten)]
    service: ServiceArgument,
    /// How.
    #[command(flatten)]
    how: DeleteArguments,
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
        Command::Delete(arguments) => delete(&arguments, client, console).await,
        Command::Verb(verb) => act(verb, client, console).await,
    }
}

async fn delete(
    arguments: &DeleteService,
    client: &Client,
    console: &mut Console,
) -> Result<(), Failure> {
    let (ServicePath { app, service }, channel) = arguments.service.resolve(client).await?;
    if let Some(channel) = channel {
        return Err(Failure::with_next(
            format!("a service is deleted as a whole, and `{channel}` is one channel of it"),
            "leave the channel out; to end it there alone, take the channel out of the \
             application's config, or pause it there",
        ));
    }
    let kind = "service".to_owned();
    let delete = DocumentReference { kind, application: app, name: service };
    delete::perform(delete, &arguments.how, client, console).await
}

/// Does what is said without the noun.
///
/// # Errors
/// The same.
pub async fn act(verb: ServiceVerb, client: &Client, console: &mut Console) -> Result<(), Failure> {
    match verb {
        ServiceVerb::Push(arguments) => push::perform(&arguments, client, console).await,
        ServiceVerb::Wait(arguments) => wait::perform(&arguments, client, console).await,
        ServiceVerb::Approve(arguments) => approve::perform(arguments, client, console).await,
        ServiceVerb::Reject(arguments) => reject::perform(arguments, client, console).await,
        ServiceVerb::Refresh(instance) => {
            steer::perform("refresh", &instance, client, console).await
        }
        ServiceVerb::Retry(instance) => steer::perform("retry", &instance, client, console).await,
        ServiceVerb::Pause(arguments) => steer::pause(&arguments, client, console).await,
        ServiceVerb::Observe(arguments) => steer::observe(&arguments, client, console).await,
        ServiceVerb::Resume(instance) => steer::perform("resume", &instance, client, console).await,
        ServiceVerb::Acknowledge(arguments) => {
            acknowledge::perform(&arguments, client, console).await
        }
        ServiceVerb::OpenWindow(arguments) => {
            open_window::perform(&arguments, client, console).await
        }
        ServiceVerb::Rollback(arguments) => rollback::perform(&arguments, client, console).await,
        ServiceVerb::Explain(arguments) => explain::perform(&arguments, client, console).await,
    }
}
