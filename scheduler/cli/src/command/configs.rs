//! `pvnctl configs`: config files on their way to the scheduler.

pub mod apply;
pub(in crate::command) mod confirm;
pub mod diff;
pub mod stored;
pub mod validate;

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
    /// What is said without the noun as well.
    #[command(flatten)]
    Verb(ConfigVerb),
    /// List the documents that the scheduler keeps
    #[command(visible_alias = "ls")]
    List(stored::ListArguments),
    /// Print a document as it was written
    Get(stored::GetArguments),
    /// Print the JSON Schema of config files, for editors
    Schema,
}

/// What is done with config files: `pvnctl configs apply`, and `pvnctl apply`.
#[derive(Debug, Subcommand)]
pub enum ConfigVerb {
    /// Show what config files change, ask, and store all or none
    Apply(apply::Arguments),
    /// Check config files without a scheduler
    ///
    /// References are checked among the given files only.
    Validate(validate::Arguments),
    /// Show what `apply` would change, and change nothing
    Diff(diff::Arguments),
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
        Command::Verb(ConfigVerb::Apply(arguments)) => {
            apply::perform(&arguments, &client()?, console).await
        }
        Command::Verb(ConfigVerb::Validate(arguments)) => validate::perform(&arguments, console),
        Command::Verb(ConfigVerb::Diff(arguments)) => {
            diff::perform(&arguments, &client()?, console).await
        }
        Command::List(arguments) => stored::list(&arguments, &client()?, console).await,
        Command::Get(arguments) => stored::get(&arguments, &client()?, console).await,
        Command::Schema => console.data(config::schemas::CONFIG),
    }
}
