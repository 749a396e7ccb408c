//! `pvnctl services refresh`, `retry`, `pause`, `observe` and `resume`.

use clap::Args;
use schema::api::{Instance, ObserveRequest, PauseRequest};
use schema::command_target::CommandTarget;
use schema::status::Status;
use serde::Serialize;

use crate::address::ChannelArgument;
use crate::client::Client;
use crate::console::Console;
use crate::failure::Failure;
use crate::short;

/// What can be typed after `pause`.
#[derive(Debug, Args)]
pub struct PauseArguments {
    /// Which instance.
    #[command(flatten)]
    instance: ChannelArgument,
    /// What for: told wherever the pause is, to those who find it
    #[arg(long, short, value_name = "TEXT")]
    reason: Option<String>,
}

/// Pauses it.
pub(super) async fn pause(
    arguments: &PauseArguments,
    client: &Client,
    console: &mut Console,
) -> Result<(), Failure> {
    let instance = &arguments.instance;
    // A scheduler of before knows no reason, and takes a pause without one.
    if arguments.reason.is_none() {
        return perform("pause", instance, client, console).await;
    }
    let request = PauseRequest { reason: arguments.reason.clone() };
    send("pause", instance, &request, client, console).await
}

/// What can be typed after `observe`.
#[derive(Debug, Args)]
pub struct ObserveArguments {
    /// Which instance.
    #[command(flatten)]
    instance: ChannelArgument,
    /// What for: told wherever it is seen that it is only observed, to those who find it
    #[arg(long, short, value_name = "TEXT")]
    reason: Option<String>,
}

/// Has it observed only.
pub(super) async fn observe(
    arguments: &ObserveArguments,
    client: &Client,
    console: &mut Console,
) -> Result<(), Failure> {
    let request = ObserveRequest { reason: arguments.reason.clone() };
    send("observe", &arguments.instance, &request, client, console).await
}

/// Sends the wish.
pub(super) async fn perform(
    what: &str,
    instance: &ChannelArgument,
    client: &Client,
    console: &mut Console,
) -> Result<(), Failure> {
    send(what, instance, &serde_json::json!({}), client, console).await
}

async fn send<T: Serialize>(
    what: &str,
    instance: &ChannelArgument,
    request: &T,
    client: &Client,
    console: &mut Console,
) -> Result<(), Failure> {
    let instance = instance.resolve(client).await?;
    let now: Instance = client.post(&instance.path(what), request).await?;
    let done = done(what, &now, instance.named());
    console.done(
        &now,
        &format!(
            "{done}: {}; it is {}: {}",
            instance.say(),
            now.status,
            short::sentence(&instance.named().text(&now.message))
        ),
    )
}

/// What was done.
fn done(what: &str, now: &Instance, named: CommandTarget<'_>) -> String {
    let words = match what {
        "pause" => "paused",
        "observe" => "observed only",
        "resume" => "resumed",
        "refresh" => "looking at it now",
        // Nobody looks there, and what was applied is applied again by a release alone.
        _ if now.status == Status::Converged && now.last_fetch_at.is_none() => {
            let CommandTarget { application, service, channel } = named;
            return format!(
                "nothing to apply again (a release does: `pvnctl services push {service} --app \
                 {application} --channels {channel}`), and nothing that was given up is waited \
                 for any more"
            );
        }
        // There is nothing to apply: a fetch looks, and what was given up no longer holds anything.
        _ if now.status == Status::Converged => {
            "nothing to apply again, and nothing that was given up is waited for any more"
        }
        _ => "trying again",
    };
    words.to_owned()
}
