//! `pvnctl jobs cancel`.

use crate::client::Client;
use crate::console::Console;
use crate::failure::Failure;

/// Asks for the job's end.
pub(super) async fn perform(job: &str, client: &Client, console: &mut Console) -> Result<(), Failure> {
    client.tell(&["v1", "jobs", job, "cancel"], &serde_json::json!({})).await?;
    console.say(&format!("{job} is being stopped; see `pvnctl jobs get {job}`"))
}
