//! `pvnctl run`: one command of one instance, here and now, as a dry run.

use clap::Args;
use schema::api::{Job, RunRequest, RunStarted};
use schema::status::{JobKind, JobStatus};

use crate::address::ChannelArgument;
use crate::client::Client;
use crate::command::jobs::logs;
use crate::console::Console;
use crate::failure::Failure;
use crate::table::one_line;

const EXAMPLES: &str = "\
Examples:
  pvnctl run shop/web@staging                  what would fetch say?
  pvnctl run shop/web@staging --kind getInfo

The command's output appears as it is printed: stdout on stdout, stderr on
stderr. Its exit code is told at the end.
Ends with 0 when the job SUCCEEDED (for a fetch, exit codes 0 and 2), 2 when it
FAILED, 1 otherwise.";

/// What can be typed.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// Of which instance.
    #[command(flatten)]
    pub instance: ChannelArgument,
    /// Which command: fetch or getInfo; an apply runs through its gates only
    #[arg(
        long, default_value = "fetch", value_name = "KIND",
        value_parser = crate::command::jobs::kind
    )]
    pub kind: JobKind,
}

/// Starts the command and follows it to its end.
///
/// # Errors
/// What the server says; exit code 2 when the job failed.
pub async fn perform(
    arguments: &Arguments,
    client: &Client,
    console: &mut Console,
) -> Result<(), Failure> {
    let instance = arguments.instance.resolve(client).await?;
    let started: RunStarted =
        client.post(&instance.path("run"), &RunRequest { kind: Some(arguments.kind) }).await?;
    console.say(&format!("{} of {} runs as {}", arguments.kind, instance.say(), started.job))?;
    let end = logs::follow(&started.job.to_string(), client, console).await?;
    if end.status == JobStatus::Succeeded {
        let code = end
            .exit_code
            .map_or_else(|| "no exit code".to_owned(), |code| format!("exit code {code}"));
        return console.say(&format!("{code}: {}", end.status));
    }
    let what = format!("{} of {} {}", arguments.kind, instance.say(), end.status);
    let next = format!("see `pvnctl jobs get {}`", started.job);
    let code = if end.status == JobStatus::Failed { 2 } else { 1 };
    let why = match end.exit_code {
        Some(code) => format!(" with exit code {code}"),
        // It may never have started; the job says why.
        None => format!(
            ": {}",
            one_line(
                &client.get::<Job>(&["v1", "jobs", &started.job.to_string()], &[]).await?.message
            )
        ),
    };
    Err(Failure::with_next(format!("{what}{why}"), next).ending_with(code))
}
