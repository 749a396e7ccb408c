//! The program `pvn-scheduler`: arguments, logging, signals, exit code. Here and not beside `main`,
//! because what an event loop is handed is compiled where that stands: with `main` alone the
//! program's own crate takes 45 s less to build.

use std::ffi::OsString;
use std::io::{IsTerminal, Write};
use std::process::ExitCode;

use anyhow::Context;
use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use pvnctl::args::without_empty_variables;
use tracing_appender::non_blocking::NonBlockingBuilder;
use tracing_subscriber::EnvFilter;

use crate::daemon::Daemon;
use crate::offline::backup::BackupArguments;
use crate::offline::restore::RestoreArguments;
use crate::offline::{self, ActivateArguments, PruneArguments};
use crate::settings::Settings;
use crate::settings::printed::printed;
use crate::signals::{INTERRUPTED, Stops};
use crate::{crash, dev, handles};

/// What is logged when nothing is said: our own news and everybody's warnings, but for those of
/// kube's client: it writes down answers that it cannot read as they are, a Secret's too, and
/// returns them all the same.
const DEFAULT_LOG: &str = "warn,pvn_scheduler=info,kube_client=off";

/// What `dev` logs, which tells the news itself.
const DEV_LOG: &str = "warn,kube_client=off";

/// Most lines of the log that wait for whoever reads it: a burst of some seconds. More are left
/// out.
const LOG_LINES: usize = 10_000;

#[derive(Parser)]
#[command(
    name = "pvn-scheduler",
    version,
    about = "Keeps the world as your config files say, with your own commands"
)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run the scheduler
    Serve(Box<ServeArguments>),
    /// Serve, apply the config files of a directory, release every service, and tell what happens
    Dev(Box<dev::Arguments>),
    /// Remove what is not kept any more, with the scheduler stopped: mends a full disk
    Prune(Box<PruneArguments>),
    /// Write everything that a scheduler keeps to a file, while it runs
    Backup(Box<BackupArguments>),
    /// Make a data directory from a backup; the copy observes until it is activated
    Restore(Box<RestoreArguments>),
    /// Let a restored scheduler act from its next start on
    Activate(Box<ActivateArguments>),
}

#[derive(clap::Args)]
struct ServeArguments {
    #[command(flatten)]
    settings: Settings,

    /// Print every setting with its value and where that came from, and end
    #[arg(long)]
    print_config: bool,
}

/// The whole program: reads the arguments (the first is the program's name), does what they say,
/// and returns the exit code.
pub fn main(arguments: Vec<OsString>) -> ExitCode {
    let command = without_empty_variables(Cli::command(), |name| std::env::var_os(name));
    let read = command.clone().try_get_matches_from(arguments);
    let read = read.and_then(|read| Ok((Cli::from_arg_matches(&read)?, read)));
    let (cli, read) = match read {
        Ok(read) => read,
        Err(error) => {
            // A closed pipe is nothing to complain about; and 2, which clap would end with, means
            // FAILED here.
            let _ = error.print();
            return if error.use_stderr() { ExitCode::FAILURE } else { ExitCode::SUCCESS };
        }
    };
    if let Command::Serve(arguments) = &cli.command
        && arguments.print_config
        && let (Some(serve), Some((_, read))) =
            (command.find_subcommand("serve"), read.subcommand())
    {
        let text = printed(serve, read, arguments.settings.handles(), handles::most());
        let _unread = write!(std::io::stdout(), "{text}");
        return ExitCode::SUCCESS;
    }
    let log = if matches!(cli.command, Command::Dev(_)) { DEV_LOG } else { DEFAULT_LOG };
    // By a thread of its own, which leaves out what does not fit: whoever reads the log may be slow
    // or gone, and its disk full, and neither may hold anything up. What is left is written
    // when the guard is dropped.
    let (writer, _guard) =
        NonBlockingBuilder::default().buffered_lines_limit(LOG_LINES).finish(std::io::stderr());
    tracing_subscriber::fmt()
        .with_env_filter(EnvFilter::try_from_env("PVN_LOG").unwrap_or_else(|_| EnvFilter::new(log)))
        .with_ansi(std::io::stderr().is_terminal())
        .with_writer(writer)
        // They would be told on stderr, which is what cannot be written.
        .log_internal_errors(false)
        .init();
    // The others are a person's, at a terminal, who has no log.
    let is_logged = matches!(cli.command, Command::Serve(_));
    match run(cli) {
        Ok(code) => code,
        Err(error) => {
            if is_logged {
                tracing::error!("{error:#}");
            } else {
                let _unread = writeln!(std::io::stderr(), "error: {error:#}");
            }
            ExitCode::FAILURE
        }
    }
}

fn run(cli: Cli) -> anyhow::Result<ExitCode> {
    crash::arm().map_err(anyhow::Error::msg)?;
    let runtime = tokio::runtime::Runtime::new().context("failed to start the async runtime")?;
    match cli.command {
        Command::Serve(arguments) => {
            runtime.block_on(serve(arguments.settings)).map(|()| ExitCode::SUCCESS)
        }
        Command::Dev(arguments) => Ok(runtime.block_on(dev::run(*arguments)).into()),
        Command::Prune(arguments) => tell(runtime.block_on(offline::prune(&arguments))?),
        Command::Backup(arguments) => tell(runtime.block_on(offline::backup::backup(&arguments))?),
        Command::Restore(arguments) => {
            tell(runtime.block_on(offline::restore::restore(&arguments))?)
        }
        Command::Activate(arguments) => tell(runtime.block_on(offline::activate(&arguments))?),
    }
}

/// One line for a person; done is done even when nobody reads it.
fn tell(said: String) -> anyhow::Result<ExitCode> {
    let _unread = writeln!(std::io::stdout(), "{said}");
    Ok(ExitCode::SUCCESS)
}

/// Runs until a signal or a fault; a second signal ends the program at once.
async fn serve(settings: Settings) -> anyhow::Result<()> {
    let mut signals = Stops::take().context("failed to listen for signals")?;
    let scheme = if settings.tls_cert.is_some() { "https" } else { "http" };
    let mut daemon = Daemon::start(settings).await?;
    let address = daemon.address();
    // For the person at the terminal alone: a log is read by others, and kept.
    if address.ip().is_loopback()
        && std::io::stderr().is_terminal()
        && let Some(path) = daemon.sign_in_path().await
    {
        let _unread = writeln!(std::io::stderr(), "look at it on {scheme}://{address}{path}");
    }
    let broken = tokio::select! {
        () = signals.next() => None,
        broken = daemon.broken() => Some(broken),
    };
    if broken.is_none() {
        tracing::info!("stopping; jobs go on, a second signal ends this at once");
    }
    tokio::select! {
        stopped = daemon.stop() => match broken {
            Some(broken) => Err(broken.into()),
            None => Ok(stopped?),
        },
        () = signals.next() => std::process::exit(INTERRUPTED.into()),
    }
}
