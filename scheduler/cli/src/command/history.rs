//! `pvnctl history`: what was released of a service, and what became of it.

use clap::Args;
use schema::api::Release;

use crate::address::ServiceArgument;
use crate::client::Client;
use crate::console::Console;
use crate::failure::Failure;
use crate::table::{self, Cell, Table};
use crate::when;

/// Releases that are shown unless more are asked for: about a screen.
const USUAL: usize = 20;

const EXAMPLES: &str = "\
Examples:
  pvnctl history shop/web
  pvnctl history shop/web@eu -o wide      also parameters and the releases' ids

`pvnctl rollback shop/web --to VERSION` goes back to one of them.";

/// What can be typed.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// Of which service.
    #[command(flatten)]
    service: ServiceArgument,
    /// At most this many, newest first
    #[arg(long, value_name = "N", default_value_t = USUAL)]
    limit: usize,
}

/// Prints the releases.
///
/// # Errors
/// What the server says.
pub async fn perform(
    arguments: &Arguments,
    client: &Client,
    console: &mut Console,
) -> Result<(), Failure> {
    let (service, channel) = arguments.service.resolve(client).await?;
    let mut query = vec![("application", service.app), ("service", service.service)];
    query.extend(channel.map(|channel| ("channel", channel)));
    let limit = Some(arguments.limit);
    let releases = client.list::<Release>(&["v1", "releases"], &query, limit).await?;
    console.print_list(&releases, "no release yet; make one with `pvnctl push`", rows)
}

fn rows(releases: &[Release]) -> Table {
    let now = when::now();
    let mut rows =
        Table::new(["VERSION", "STATUS", "AGE", "BY", "RELEASE", "CHANNELS", "PARAMETERS"])
            .only_wide(&["RELEASE", "PARAMETERS"])
            .first_to_go(&["BY", "AGE"]);
    for release in releases {
        let channels = release
            .channels
            .iter()
            .map(|channel| format!("{} {}", channel.channel, channel.status));
        let params = release.params.iter().map(|(name, value)| format!("{name}={value}"));
        rows.row([
            release.version.as_str().into(),
            table::status(release.status),
            when::ago(release.created_at, now).into(),
            release.by.as_str().into(),
            Cell::id(release.release),
            channels.collect::<Vec<_>>().join(", ").into(),
            params.collect::<Vec<_>>().join(" ").into(),
        ]);
    }
    rows
}
