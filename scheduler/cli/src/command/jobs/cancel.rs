//! `pvnctl jobs cancel`.

use schema::api::Job;

use crate::client::Client;
use crate::console::Console;
use crate::failure::Failure;

/// Asks for the job's end.
pub(super) async fn perform(
    job: &str,
    client: &Client,
    console: &mut Console,
) -> Result<(), Failure> {
    let now: Job = client.post(&["v1", "jobs", job, "cancel"], &serde_json::json!({})).await?;
    console.done(
        &now,
        &format!(
            "{job} is being stopped and has some time to end by itself; another cancel kills it \
             at once; see `pvnctl jobs get {job}`"
        ),
    )
}
