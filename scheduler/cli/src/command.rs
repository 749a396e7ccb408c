//! The commands; one sub-command a file. Each reads its arguments, talks to the server, and prints.
//! Here is the top level of what can be typed.

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

use clap::builder::styling::{AnsiColor, Styles};
use clap::{Parser, Subcommand};

use crate::args::Global;
use crate::console::Console;
use crate::discover;
use crate::failure::Failure;
use crate::typed::Typed;

const STYLES: Styles = Styles::styled()
    .header(AnsiColor::Green.on_default().bold())
    .usage(AnsiColor::Green.on_default().bold())
    .literal(AnsiColor::Cyan.on_default().bold())
    .placeholder(AnsiColor::Cyan.on_default());

const EXAMPLES: &str = "\
Examples:
  pvnctl configs apply deploy/            apply every *.pvn.yaml in a directory, after showing \
                                          what changes
  pvnctl services push web --app shop --param image=v2 --wait
  pvnctl services explain web --app shop --channel production
  pvnctl jobs logs job-… -f               follow a command's output

Server and token:
  --server, else PVN_SERVER, else http://127.0.0.1:7780
  --token-file, else PVN_AUTH_TOKEN, else `admin-token` in the data directory (PVN_DATA_DIR, \
                 default ./pvn-data)
  --ca-file, else PVN_CA_FILE, else the system's authorities, for a scheduler that speaks https

Exit codes:
  0  done                    2  waited for something that FAILED
  1  any error               3  waited until the timeout";

/// Client of the pvn scheduler
#[derive(Debug, Parser)]
#[command(
    name = "pvnctl", version, about, after_help = EXAMPLES, styles = STYLES, max_term_width = 110,
    disable_help_subcommand = true
)]
pub struct Cli {
    /// For every command.
    #[command(flatten)]
    pub global: Global,
    /// Which one.
    #[command(subcommand)]
    pub command: Command,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Apply, check and compare config files
    #[command(subcommand, alias = "config")]
    Configs(configs::Command),
    /// See, release, approve and steer services
    #[command(subcommand, alias = "service", visible_alias = "svc")]
    Services(services::Command),
    /// See jobs and their output
    #[command(subcommand, alias = "job")]
    Jobs(jobs::Command),
    /// See releases
    #[command(subcommand, alias = "release")]
    Releases(releases::Command),
    /// See applications and their release channels
    #[command(subcommand, alias = "application", visible_alias = "apps")]
    Applications(applications::Command),
    /// See runtimes
    #[command(subcommand, alias = "runtime")]
    Runtimes(runtimes::Command),
    /// Run one command of one service in one channel now, as a dry run: its result changes nothing
    /// in pvn
    Run(run::Arguments),
    /// Set, list and delete secrets
    #[command(subcommand, alias = "secret")]
    Secrets(secrets::Command),
    /// Manage who may use the API
    #[command(subcommand)]
    Auth(auth::Command),
    /// Print a completion script for a shell
    Completion(completion::Arguments),
}

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

#[cfg(test)]
mod tests;
