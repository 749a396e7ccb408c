//! The commands; one sub-command a file. Each reads its arguments, talks to the server, and prints.

pub mod applications;
pub mod auth;
pub mod completion;
pub mod configs;
pub mod jobs;
pub mod releases;
pub mod run;
pub mod runtimes;
pub mod secrets;
pub mod services;

use crate::args::{Cli, Command};
use crate::console::Console;
use crate::discover;
use crate::failure::Failure;
use crate::typed::Typed;

/// Does what the arguments say.
///
/// # Errors
/// Whatever went wrong, for [`Console::report`].
pub async fn perform(cli: Cli, console: &mut Console) -> Result<(), Failure> {
    console.format = cli.global.output;
    console.set_colour(cli.global.color);
    console.typed = Typed::with_flags(&cli.global, |name| std::env::var_os(name));
    let client = || discover::client(&cli.global);
    match cli.command {
        Command::Completion(arguments) => completion::perform(&arguments, console),
        Command::Configs(command) => configs::perform(command, &cli.global, console).await,
        Command::Services(command) => services::perform(command, &client()?, console).await,
        Command::Jobs(command) => jobs::perform(command, &client()?, console).await,
        Command::Releases(command) => releases::perform(command, &client()?, console).await,
        Command::Applications(command) => applications::perform(command, &client()?, console).await,
        Command::Runtimes(command) => runtimes::perform(command, &client()?, console).await,
        Command::Run(arguments) => run::perform(&arguments, &client()?, console).await,
        Command::Secrets(command) => secrets::perform(command, &client()?, console).await,
        Command::Auth(command) => auth::perform(command, &client()?, console).await,
    }
}
