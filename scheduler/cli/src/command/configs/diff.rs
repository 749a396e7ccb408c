//! `pvnctl configs diff`, and `apply --dry-run`, which is the same.

use clap::Args;
use schema::api::{ConfigsRequest, ConfigsResult};

use super::Paths;
use crate::client::Client;
use crate::console::Console;
use crate::diagnostics;
use crate::diff;
use crate::failure::Failure;
use crate::files;

/// What can be typed.
#[derive(Debug, Args)]
#[command(after_help = "Exit codes:\n  0  done, whether or not something would change\n  2  with \
                        --exit-code: something would change\n  1  an error")]
pub struct Arguments {
    /// Which files.
    #[command(flatten)]
    paths: Paths,
    /// End with 2 when something would change
    #[arg(long)]
    exit_code: bool,
}

/// Shows what would change.
pub(super) async fn perform(
    arguments: &Arguments,
    client: &Client,
    console: &mut Console,
) -> Result<(), Failure> {
    let files = files::read(&arguments.paths.paths).map_err(Failure::Config)?.files;
    if arguments.exit_code {
        console.go_on_unread();
    }
    let request = ConfigsRequest { files, ..ConfigsRequest::default() };
    show(request, arguments.exit_code, client, console).await
}

/// Shows what this would change.
pub(in crate::command) async fn show(
    request: ConfigsRequest,
    exit_code: bool,
    client: &Client,
    console: &mut Console,
) -> Result<(), Failure> {
    let request = ConfigsRequest { dry_run: true, ..request };
    let result: ConfigsResult = client.ask(&["v1", "configs"], &[], &request).await?;
    let changes = diff::changes(&result);
    console.warn(&result.warnings)?;
    console.print(&result, |paper| diff::render(&result, paper.colour))?;
    console.say(&if changes == 0 {
        "nothing would change".to_owned()
    } else {
        diff::summary(&result, false)
    })?;
    for line in diagnostics::left_out(&result.left_out) {
        console.say(&line)?;
    }
    if exit_code && changes > 0 { Err(Failure::Ended(2)) } else { Ok(()) }
}
