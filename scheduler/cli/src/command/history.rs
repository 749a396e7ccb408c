//! `pvnctl history`: what was released of a service, and what became of it.

use clap::Args;
use schema::api::Release;

use crate::address::ServiceArgument;
use crate::args::limit;
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
    #[arg(long, short = 'n', value_name = "N", default_value_t = USUAL, value_parser = limit)]
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
    let (app, name) = (service.app.clone(), service.service.clone());
    let mut query = vec![("application", app), ("service", name)];
    query.extend(channel.iter().map(|channel| ("channel", channel.clone())));
    let path = &["v1", "releases"];
    let releases = client.list::<Release>(path, &query, Some(arguments.limit)).await?;
    let push = match &channel {
        Some(channel) => format!("{}/{}@{channel}", service.app, service.service),
        None => format!("{}/{}", service.app, service.service),
    };
    let none = format!("no release of {push} yet; make one with `pvnctl push {push}`");
    console.print_list(&releases, &none, rows)
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
