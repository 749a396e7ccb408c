//! The commands; one sub-command a file. Each reads its arguments, talks to the server, and prints.
//! Here is the top level of what can be typed.

pub mod applications;
pub mod auth;
pub mod completion;
pub mod configs;
pub mod contexts;
pub mod contract_test;
pub mod delete;
pub mod describe;
pub mod events;
pub mod get;
mod help;
pub mod history;
pub mod init;
pub mod jobs;
mod listing;
pub mod login;
pub mod logs;
pub mod notifications;
pub mod reference;
pub mod releases;
pub mod run;
pub mod runtimes;
pub mod secrets;
pub mod services;
pub mod status;
pub mod version;

use clap::builder::styling::{AnsiColor, Styles};
use clap::{Parser, Subcommand};

use crate::args::Global;
use crate::console::Console;
use crate::contexts::Contexts;
use crate::discover;
use crate::failure::Failure;
use crate::typed::Typed;

pub use help::grouped;

const STYLES: Styles = Styles::styled()
    .header(AnsiColor::Green.on_default().bold())
    .usage(AnsiColor::Green.on_default().bold())
    .literal(AnsiColor::Cyan.on_default().bold())
    .placeholder(AnsiColor::Cyan.on_default());

const EXAMPLES: &str = "\
Examples:
  pvnctl apply deploy/                          what is in *.pvn.yaml there
  pvnctl push shop/web --param image=v2 --wait
  pvnctl status --watch
  pvnctl explain shop/web@production
  pvnctl logs shop/web@production               what the newest apply prints

A service is said as APPLICATION/SERVICE, in one release channel as
APPLICATION/SERVICE@CHANNEL; the application may be left out where no other has
such a service. Of ids any beginning will do.

Server and token:
  --server, else PVN_SERVER, else the context's, else http://127.0.0.1:7780
  --token-file, else PVN_AUTH_TOKEN, else `admin-token` in the directory that
                 PVN_DATA_DIR names, else what `pvnctl login URL` keeps, else
                 ./pvn-data/admin-token
  --ca-file, else PVN_CA_FILE, else the system's authorities, for https

Exit codes:
  0  done                    2  waited for something that FAILED
  1  any error               3  waited until the timeout";

/// Client of the pvn scheduler
#[derive(Debug, Parser)]
#[command(
    name = "pvnctl", version, about, after_help = EXAMPLES, styles = STYLES, max_term_width = 110,
    arg_required_else_help = true
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
    /// Write a directory that works, to start from
    Init(init::Arguments),
    /// Run a directory's commands against what pvn expects of them
    ContractTest(contract_test::Arguments),
    /// Show how everything stands, first what waits for you
    Status(status::Arguments),
    /// List things by their noun, or show one
    Get(get::Arguments),
    /// Show one thing with all that is known of it
    Describe(describe::Arguments),
    /// Show what the newest job of a service prints
    Logs(logs::Arguments),
    /// List what was released of a service
    History(history::Arguments),
    /// Show what happened, or follow it
    Events(events::Arguments),
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
    #[command(subcommand, alias = "release", alias = "rel")]
    Releases(releases::Command),
    /// See applications and their release channels
    #[command(subcommand, alias = "application", visible_alias = "apps")]
    Applications(applications::Command),
    /// See runtimes
    #[command(subcommand, alias = "runtime", alias = "rt")]
    Runtimes(runtimes::Command),
    /// What is done with config files.
    #[command(flatten)]
    Config(configs::ConfigVerb),
    /// What is done to services.
    #[command(flatten)]
    Service(services::ServiceVerb),
    /// Run one fetch or getInfo now, as a dry run
    ///
    /// Its result changes nothing in pvn.
    Run(run::Arguments),
    /// Stop a job
    Cancel {
        /// The job's id, or any beginning of it that names no other
        job: String,
    },
    /// See whom pvn told what, and send it again
    #[command(subcommand, alias = "notification", visible_alias = "ntf")]
    Notifications(notifications::Command),
    /// Set, list and delete secrets
    #[command(subcommand, alias = "secret")]
    Secrets(secrets::Command),
    /// Keep the token of a scheduler for the commands to come
    Login(login::Arguments),
    /// See the schedulers that you have logged in to, and choose one
    #[command(subcommand, alias = "context", alias = "ctx")]
    Contexts(contexts::Command),
    /// Manage who may use the API
    #[command(subcommand)]
    Auth(auth::Command),
    /// Print a completion script for a shell
    Completion(completion::Arguments),
    /// Write man pages, or one document of all commands
    #[command(subcommand)]
    Reference(reference::Command),
    /// Print the version of this program and of the scheduler
    Version(version::Arguments),
}

/// Does what the arguments say.
///
/// # Errors
/// Whatever went wrong, for [`Console::report`].
pub async fn perform(cli: Cli, console: &mut Console) -> Result<(), Failure> {
    console.format = cli.global.output;
    console.set_colour(cli.global.color);
    // A file that cannot be read is told by those who need it.
    let known = Contexts::load().unwrap_or_default();
    let current = known.current().map(|(_, current)| current.server.as_str());
    console.typed = Typed::with_flags(&cli.global, |name| std::env::var_os(name), current);
    let client = || discover::client(&cli.global);
    match cli.command {
        Command::Init(arguments) => init::perform(&arguments, console),
        Command::ContractTest(arguments) => contract_test::perform(&arguments, console).await,
        Command::Status(arguments) => status::perform(arguments, &client()?, console).await,
        Command::Get(arguments) => get::perform(arguments, &client()?, console).await,
        Command::Describe(arguments) => describe::perform(arguments, &client()?, console).await,
        Command::Logs(arguments) => logs::perform(arguments, &client()?, console).await,
        Command::History(arguments) => history::perform(&arguments, &client()?, console).await,
        Command::Events(arguments) => events::perform(arguments, &client()?, console).await,
        Command::Services(command) => services::perform(command, &client()?, console).await,
        Command::Service(verb) => services::act(verb, &client()?, console).await,
        Command::Jobs(command) => jobs::perform(command, &client()?, console).await,
        Command::Cancel { job } => {
            jobs::perform(jobs::Command::Cancel { job }, &client()?, console).await
        }
        Command::Releases(command) => releases::perform(command, &client()?, console).await,
        Command::Applications(command) => applications::perform(command, &client()?, console).await,
        Command::Runtimes(command) => runtimes::perform(command, &client()?, console).await,
        Command::Configs(command) => configs::perform(command, &cli.global, console).await,
        Command::Config(verb) => {
            configs::perform(configs::Command::Verb(verb), &cli.global, console).await
        }
        Command::Run(arguments) => run::perform(&arguments, &client()?, console).await,
        Command::Notifications(command) => {
            notifications::perform(command, &client()?, console).await
        }
        Command::Secrets(command) => secrets::perform(command, &client()?, console).await,
        Command::Login(arguments) => login::perform(&arguments, &cli.global, console).await,
        Command::Contexts(command) => contexts::perform(&command, console),
        Command::Auth(command) => auth::perform(command, &client()?, console).await,
        Command::Reference(command) => reference::perform(&command, console),
        Command::Completion(arguments) => completion::perform(&arguments, console),
        Command::Version(arguments) => version::perform(&arguments, &cli.global, console).await,
    }
}

#[cfg(test)]
mod tests;
