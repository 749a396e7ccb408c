//! `pvnctl releases`: what was released, when, by whom, and what became of it.

use clap::{Args, Subcommand};
use schema::api::Release;

use crate::client::Client;
use crate::console::{Console, Paper};
use crate::failure::Failure;
use crate::table::{self, Table};
use crate::when;

/// What can be typed.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// List releases, newest first
    List(ReleaseFilters),
    /// Show one release with its parameters
    Get {
        /// The release's id
        release: String,
    },
}

/// Filters of the list.
#[derive(Debug, Args)]
pub struct ReleaseFilters {
    /// Only of this application
    #[arg(long, value_name = "APPLICATION")]
    pub app: Option<String>,
    /// Only of this service
    #[arg(long, value_name = "SERVICE", requires = "app")]
    pub service: Option<String>,
    /// At most this many
    #[arg(long, value_name = "N")]
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
            let query: Vec<_> = [("application", list.app), ("service", list.service)]
                .into_iter()
                .filter_map(|(key, value)| Some((key, value?)))
                .collect();
            let releases = client.list::<Release>(&["v1", "releases"], &query, list.limit).await?;
            console.print_list(&releases, "no releases; make one with `pvnctl services push`", rows)
        }
        Command::Get { release } => {
            let release: Release = client.get(&["v1", "releases", &release], &[]).await?;
            console.print(&release, |paper| page(&release, paper))
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
    ]);
    for release in releases {
        let channels: Vec<_> = release
            .channels
            .iter()
            .map(|channel| format!("{} {}", channel.channel, channel.status))
            .collect();
        rows.row([
            release.release.into(),
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
