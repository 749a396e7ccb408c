//! `pvnctl jobs list`.

use clap::Args;
use schema::api::Job;
use schema::status::{JobKind, JobStatus};

use super::super::listing::FilteredList;
use crate::address::ScopeArguments;
use crate::args::limit;
use crate::client::Client;
use crate::console::Console;
use crate::failure::Failure;
use crate::table::{self, Cell, Table};
use crate::when;

/// Filters.
#[derive(Debug, Args)]
pub struct Arguments {
    /// Of whom.
    #[command(flatten)]
    pub scope: ScopeArguments,
    /// Only fetch, apply or getInfo
    #[arg(long, value_name = "KIND", value_parser = super::kind)]
    kind: Option<JobKind>,
    /// Only with this status
    #[arg(long, value_name = "STATUS", value_parser = status)]
    status: Option<JobStatus>,
    /// At most this many, newest first [default: all]
    #[arg(long, short = 'n', value_name = "N", value_parser = limit)]
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
    let mut query = arguments.scope.query(client).await?;
    let others = [
        ("kind", arguments.kind.map(|kind| kind.to_string())),
        ("status", arguments.status.map(|status| status.to_string())),
    ];
    query.extend(others.into_iter().filter_map(|(key, value)| Some((key, value?))));
    let list = FilteredList { resource: "jobs", what: "jobs", remedy: None, query: &query };
    let jobs = list.ask::<Job>(arguments.limit, client).await?;
    list.print(&jobs, client, console, rows).await
}

/// Jobs as a table.
pub(super) fn rows(jobs: &[Job]) -> Table {
    let now = when::now();
    let mut rows = Table::new([
        "JOB", "KIND", "SERVICE", "RUNTIME", "VERSION", "ATTEMPT", "STATUS", "EXIT", "AGE", "TOOK",
    ])
    .only_wide(&["RUNTIME"])
    .first_to_go(&["ATTEMPT", "TOOK", "VERSION", "EXIT", "AGE", "KIND", "SERVICE"]);
    for job in jobs {
        let took =
            job.started_at.map(|start| when::length(job.ended_at.unwrap_or(now).since_ms(start)));
        rows.row([
            Cell::id(job.id),
            job.kind.into(),
            format!("{}/{}@{}", job.application, job.service, job.channel).into(),
            (&job.runtime).into(),
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
