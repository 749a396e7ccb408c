//! `pvnctl configs`: config files on their way to the scheduler.

mod apply;
mod diff;
mod validate;

use std::path::PathBuf;

use clap::{Args, Subcommand};

use crate::args::Global;
use crate::client::Client;
use crate::console::Console;
use crate::discover;
use crate::failure::Failure;

/// What can be typed.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Show what would change, ask, and store it: all files or none
    Apply(apply::Arguments),
    /// Check files without a scheduler; references are checked among the given files only
    Validate(validate::Arguments),
    /// Show what `apply` would change, and change nothing
    Diff(diff::Arguments),
    /// Print the JSON Schema of config files, for editors
    Schema,
}

/// Which files.
#[derive(Debug, Clone, Args)]
pub struct Paths {
    /// Files and directories; of a directory every *.pvn.yaml and *.pvn.yml in it, with `DIR/...`
    /// also those below
    #[arg(value_name = "PATH", required = true)]
    pub paths: Vec<PathBuf>,
}

/// Does it.
///
/// # Errors
/// What the files or the server say.
pub async fn perform(
    command: Command,
    global: &Global,
    console: &mut Console,
) -> Result<(), Failure> {
    let client = || -> Result<Client, Failure> { discover::client(global) };
    match command {
        Command::Apply(arguments) => apply::perform(&arguments, &client()?, console).await,
        Command::Validate(arguments) => validate::perform(&arguments, console),
        Command::Diff(arguments) => diff::perform(&arguments, &client()?, console).await,
        Command::Schema => console.data(config::schemas::CONFIG),
    }
}
