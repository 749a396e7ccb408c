//! Deleting what configs have made: `applications delete`, `services delete`, `runtimes delete`.

use clap::Args;
use schema::api::{ConfigsRequest, ConfigsResult, DocumentReference};

use super::configs::confirm::as_shown;
use super::configs::diff as dry_run;
use crate::client::Client;
use crate::console::Console;
use crate::diff;
use crate::failure::Failure;

/// How it is asked for.
#[derive(Debug, Args)]
pub struct DeleteArguments {
    /// Show what would be deleted, and delete nothing
    #[arg(long, short = 'n')]
    dry_run: bool,
    /// Do not ask
    #[arg(long, alias = "yes", short_alias = 'y')]
    no_prompt: bool,
}

/// Shows what goes and what that means, asks, and deletes it.
///
/// # Errors
/// What the server says, and the exit code of somebody who says no.
pub(super) async fn perform(
    delete: DocumentReference,
    arguments: &DeleteArguments,
    client: &Client,
    console: &mut Console,
) -> Result<(), Failure> {
    let request = ConfigsRequest { delete: vec![delete], ..ConfigsRequest::default() };
    if arguments.dry_run {
        return dry_run::show(request, false, client, console).await;
    }
    let result = if arguments.no_prompt {
        let result: ConfigsResult = client.post(&["v1", "configs"], &request).await?;
        console.warn(&result.warnings)?;
        result
    } else {
        as_shown(&request, client, console).await?
    };
    let names: Vec<_> = result.documents.iter().map(diff::name).collect();
    console.done(&result, &format!("deleted {}", names.join(", ")))
}
