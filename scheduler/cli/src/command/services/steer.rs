//! `pvnctl services refresh`, `retry`, `pause` and `resume`.

use schema::api::Instance;
use schema::status::Status;

use crate::address::ChannelArgument;
use crate::client::Client;
use crate::console::Console;
use crate::failure::Failure;

/// Sends the wish.
pub(super) async fn perform(
    what: &str,
    instance: &ChannelArgument,
    client: &Client,
    console: &mut Console,
) -> Result<(), Failure> {
    let instance = instance.resolve(client).await?;
    let now: Instance = client.post(&instance.path(what), &serde_json::json!({})).await?;
    let done = match what {
        "pause" => "paused",
        "resume" => "resumed",
        "refresh" => "looking at it now",
        // There is nothing to apply: a fetch looks, where the runtime has one, and what was given
        // up no longer holds anything.
        _ if now.status == Status::Converged => {
            "nothing to apply again, and nothing that was given up is waited for any more"
        }
        _ => "trying again",
    };
    console.done(
        &now,
        &format!(
            "{done}: {}; it is {}: {}",
            instance.say(),
            now.status,
            instance.named().text(&now.message)
        ),
    )
}
