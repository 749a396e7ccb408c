//! `pvnctl jobs`: every execution of a command, and what it printed.

mod cancel;
mod files;
mod get;
pub mod list;
pub mod logs;

use clap::Subcommand;
use schema::status::JobKind;

use crate::client::Client;
use crate::console::Console;
use crate::failure::Failure;

/// What can be typed.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// List jobs, newest first
    #[command(visible_alias = "ls")]
    List(list::Arguments),
    /// Show one job with its report
    Get {
        /// The job's id, or any beginning of it that names no other
        job: String,
    },
    /// Write a job's stdout to stdout and its stderr to stderr, byte for byte
    Logs(logs::Arguments),
    /// List the files that a job left, or write one to stdout, byte for byte
    Files(files::Arguments),
    /// Stop a job: TERM, and KILL when its time to end is over; a second cancel kills at once
    Cancel {
        /// The job's id, or any beginning of it that names no other
        job: String,
    },
}

/// Does it.
///
/// # Errors
/// What the server says.
pub async fn perform(
    command: Command,
    client: &Client,
    console: &mut Console,
) -> Result<(), Failure> {
    match command {
        Command::List(arguments) => list::perform(arguments, client, console).await,
        Command::Get { job } => get::perform(&job, client, console).await,
        Command::Logs(arguments) => logs::perform(&arguments, client, console).await,
        Command::Files(arguments) => files::perform(&arguments, client, console).await,
        Command::Cancel { job } => cancel::perform(&job, client, console).await,
    }
}

/// Reads a kind as people type it.
///
/// # Errors
/// With the words there are.
pub fn kind(text: &str) -> Result<JobKind, String> {
    JobKind::ALL
        .iter()
        .copied()
        .find(|kind| kind.as_str().eq_ignore_ascii_case(&text.replace('-', "")))
        .ok_or_else(|| "it must be fetch, apply or getInfo".to_owned())
}
