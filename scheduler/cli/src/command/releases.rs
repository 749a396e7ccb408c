//! `pvnctl releases`: what was released, when, by whom, and what became of it.

use clap::{Args, Subcommand};
use schema::api::Release;

use super::listing::FilteredList;
use crate::address::ScopeArguments;
use crate::args::limit;
use crate::client::Client;
use crate::console::{Console, Paper};
use crate::failure::Failure;
use crate::table::{self, Cell, Table};
use crate::when;

/// What can be typed.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// List releases, newest first
    #[command(visible_alias = "ls")]
    List(ReleaseFilters),
    /// Show one release with its parameters
    Get {
        /// The release's id, or any beginning of it that names no other
        release: String,
    },
}

/// Filters of the list.
#[derive(Debug, Args)]
pub struct ReleaseFilters {
    /// Of whom.
    #[command(flatten)]
    pub scope: ScopeArguments,
    /// At most this many, newest first [default: all]
    #[arg(long, short = 'n', value_name = "N", value_parser = limit)]
    pub limit: Option<usize>,
}

/// Does it.
///
/// # Errors
/// What the server says.
pub async fn perform(
    command: Command,
    client: &Client,
    console: &mut Console,
) -> Result<(), Failure> {
    match command {
        Command::List(list) => {
            let query = list.scope.query(client).await?;
            let remedy = Some("make one with `pvnctl push SERVICE`");
            let (resource, limit) = ("releases", list.limit);
            let list = FilteredList { resource, what: "releases", remedy, query: &query };
            let releases = list.ask::<Release>(limit, client).await?;
            list.print(&releases, client, console, rows).await
        }
        Command::Get { release } => {
            let release: Release = client.get(&["v1", "releases", &release], &[]).await?;
            console.print_one(&release, |paper| page(&release, paper))
        }
    }
}

fn rows(releases: &[Release]) -> Table {
    let now = when::now();
    let mut rows = Table::new([
        "RELEASE",
        "VERSION",
        "APPLICATION",
        "SERVICE",
        "STATUS",
        "AGE",
        "BY",
        "CHANNELS",
    ])
    .first_to_go(&["BY", "RELEASE", "APPLICATION", "SERVICE", "AGE"]);
    for release in releases {
        let channels: Vec<_> = release
            .channels
            .iter()
            .map(|channel| format!("{} {}", channel.channel, channel.status))
            .collect();
        rows.row([
            Cell::id(release.release),
            release.version.as_str().into(),
            (&release.application).into(),
            (&release.service).into(),
            table::status(release.status),
            when::ago(release.created_at, now).into(),
            release.by.as_str().into(),
            channels.join(", ").into(),
        ]);
    }
    rows
}

fn page(release: &Release, paper: &Paper) -> String {
    let mut text = paper.table(&rows(std::slice::from_ref(release)));
    if !release.params.is_empty() {
        let mut params = Table::new(["PARAMETER", "VALUE"]);
        for (name, value) in &release.params {
            params.row([name.into(), value.into()]);
        }
        text += "\n";
        text += &paper.table(&params);
    }
    text
}
