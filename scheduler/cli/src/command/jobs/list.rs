//! `pvnctl jobs list`.

use clap::Args;
use schema::api::Job;
use schema::status::{JobKind, JobStatus};

use crate::client::Client;
use crate::console::Console;
use crate::failure::Failure;
use crate::table::{self, Table};
use crate::when;

/// Filters.
#[derive(Debug, Args)]
pub struct Arguments {
    /// Only of this application
    #[arg(long, value_name = "APPLICATION")]
    app: Option<String>,
    /// Only of this service
    #[arg(long, value_name = "SERVICE", requires = "app")]
    service: Option<String>,
    /// Only in this release channel
    #[arg(long, value_name = "CHANNEL", requires = "app")]
    channel: Option<String>,
    /// Only fetch, apply or getInfo
    #[arg(long, value_name = "KIND", value_parser = super::kind)]
    kind: Option<JobKind>,
    /// Only with this status
    #[arg(long, value_name = "STATUS", value_parser = status)]
    status: Option<JobStatus>,
    /// At most this many, newest first [default: all]
    #[arg(long, value_name = "N")]
    limit: Option<usize>,
}

fn status(text: &str) -> Result<JobStatus, String> {
    text.to_ascii_uppercase().parse().map_err(|error: schema::id::ParseError| error.rule.to_owned())
}

/// Prints the jobs.
pub(super) async fn perform(
    arguments: Arguments,
    client: &Client,
    console: &mut Console,
) -> Result<(), Failure> {
    let query: Vec<_> = [
        ("application", arguments.app),
        ("service", arguments.service),
        ("channel", arguments.channel),
        ("kind", arguments.kind.map(|kind| kind.to_string())),
        ("status", arguments.status.map(|status| status.to_string())),
    ]
    .into_iter()
    .filter_map(|(key, value)| Some((key, value?)))
    .collect();
    let jobs = client.list::<Job>(&["v1", "jobs"], &query, arguments.limit).await?;
    console.print_list(&jobs, "no jobs", rows)
}

/// Jobs as a table.
pub(super) fn rows(jobs: &[Job]) -> Table {
    let now = when::now();
    let mut rows = Table::new([
        "JOB", "KIND", "SERVICE", "CHANNEL", "VERSION", "ATTEMPT", "STATUS", "EXIT", "AGE", "TOOK",
    ]);
    for job in jobs {
        let took =
            job.started_at.map(|start| when::length(job.ended_at.unwrap_or(now).since_ms(start)));
        rows.row([
            job.id.into(),
            job.kind.into(),
            format!("{}/{}", job.application, job.service).into(),
            (&job.channel).into(),
            job.version.as_str().into(),
            job.attempt.into(),
            table::job_status(job.status),
            job.exit_code.map(|code| code.to_string()).unwrap_or_default().into(),
            when::ago(job.created_at, now).into(),
            took.unwrap_or_default().into(),
        ]);
    }
    rows
}
