//! `pvnctl logs`: what the newest job of a service in a channel prints, without its id.

use clap::Args;
use schema::api::Job;
use schema::status::JobKind;

use super::jobs;
use crate::address::{ChannelArgument, InstancePath};
use crate::client::Client;
use crate::console::Console;
use crate::failure::Failure;
use crate::short;
use crate::when;

const EXAMPLES: &str = "\
Examples:
  pvnctl logs shop/web@eu                 the newest apply, else the newest fetch
  pvnctl logs shop/web@eu --fetch         what fetch said last
  pvnctl logs shop/web@eu --previous      the apply before the newest one
  pvnctl logs job-44b5ba11                a job by its id

A job that runs is followed to its end. stdout goes to stdout and stderr to
stderr, byte for byte; which job it is, is said on stderr.";

/// What can be typed.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// Of which instance, or which job.
    #[command(flatten)]
    instance: ChannelArgument,
    /// The newest apply
    #[arg(long, group = "kind")]
    apply: bool,
    /// The newest fetch
    #[arg(long, group = "kind")]
    fetch: bool,
    /// The newest getInfo
    #[arg(long, visible_alias = "getInfo", alias = "get-info", group = "kind")]
    info: bool,
    /// The one before the newest
    #[arg(long, short)]
    previous: bool,
    /// Print what there is, also of a job that runs, and end
    #[arg(long)]
    no_follow: bool,
    /// Taken, and what happens anyhow: a job that runs is followed
    #[arg(long, short, hide = true, conflicts_with = "no_follow")]
    follow: bool,
    /// Only this stream
    #[arg(long, value_name = "STREAM", value_parser = ["stdout", "stderr"])]
    stream: Option<String>,
}

/// Finds the job and writes its output.
///
/// # Errors
/// No such job; what the server says.
pub async fn perform(
    arguments: Arguments,
    client: &Client,
    console: &mut Console,
) -> Result<(), Failure> {
    let job = match arguments.instance.job_id() {
        Some(job) => job,
        None => {
            let instance = arguments.instance.resolve(client).await?;
            let job = arguments.find(&instance, client).await?;
            console.say(&told(&job, &instance))?;
            job.id.to_string()
        }
    };
    let Arguments { no_follow, stream, .. } = arguments;
    let logs = jobs::logs::Arguments { job, follow: !no_follow, stream };
    jobs::perform(jobs::Command::Logs(logs), client, console).await
}

impl Arguments {
    fn kinds(&self) -> &'static [JobKind] {
        match () {
            () if self.apply => &[JobKind::Apply],
            () if self.fetch => &[JobKind::Fetch],
            () if self.info => &[JobKind::GetInfo],
            () => USUAL,
        }
    }

    async fn find(&self, instance: &InstancePath, client: &Client) -> Result<Job, Failure> {
        find(instance, self.kinds(), self.previous, client).await
    }
}

/// Of an apply people ask first, and of a fetch where there was none.
const USUAL: &[JobKind] = &[JobKind::Apply, JobKind::Fetch];

/// The newest apply of an instance, else its newest fetch.
///
/// # Errors
/// It had neither; what the server says.
pub(crate) async fn newest(instance: &InstancePath, client: &Client) -> Result<Job, Failure> {
    find(instance, USUAL, false, client).await
}

/// Writes what a job prints until it ends.
///
/// # Errors
/// What the server says.
pub(crate) async fn follow(
    job: &Job,
    client: &Client,
    console: &mut Console,
) -> Result<(), Failure> {
    let logs = jobs::logs::Arguments { job: job.id.to_string(), follow: true, stream: None };
    jobs::perform(jobs::Command::Logs(logs), client, console).await
}

async fn find(
    instance: &InstancePath,
    kinds: &[JobKind],
    is_previous: bool,
    client: &Client,
) -> Result<Job, Failure> {
    let back = usize::from(is_previous);
    for kind in kinds {
        let query = [
            ("application", instance.service.app.clone()),
            ("service", instance.service.service.clone()),
            ("channel", instance.channel.clone()),
            ("kind", kind.to_string()),
        ];
        let newest = client.list::<Job>(&["v1", "jobs"], &query, Some(back + 1)).await?.items;
        if let Some(job) = newest.into_iter().nth(back) {
            return Ok(job);
        }
    }
    let words: Vec<_> = kinds.iter().map(|kind| kind.as_str()).collect();
    let second = if is_previous { "second " } else { "" };
    Err(Failure::with_next(
        format!("{} has had no {second}{} yet", instance.say(), words.join(" and no ")),
        format!(
            "`pvnctl explain {address}` says why, `pvnctl jobs list {address}` shows those there \
             are",
            address = instance.address()
        ),
    ))
}

/// Which job it is, for whoever did not name it.
pub(crate) fn told(job: &Job, instance: &InstancePath) -> String {
    let code = job.exit_code.map_or_else(String::new, |code| format!(" (exit code {code})"));
    format!(
        "{} {} of {}, {}: {}{code}, {} ago",
        job.kind,
        short::id(&job.id.to_string()),
        instance.address(),
        job.version,
        job.status,
        when::ago(job.ended_at.unwrap_or(job.created_at), when::now())
    )
}
