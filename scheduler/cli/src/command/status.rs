//! `pvnctl status`: how everything stands, on one screen, and with `--watch` as it changes.

mod keys;
mod screen;
mod watch;

use clap::{Args, value_parser};
use schema::api::Overview;

use super::listing::FilteredList;
use super::services::ill;
use crate::client::Client;
use crate::console::Console;
use crate::failure::Failure;

const EXAMPLES: &str = "\
Examples:
  pvnctl status
  pvnctl status --watch
  pvnctl status --app shop -o json | jq .counts

On top stands what waits for a person, with the command that answers it; then
what failed, what is on its way with the last line that its command printed, and
what is held back. The rest is counted.

While it is watched on a terminal, the arrows (or j and k) choose an entry, Enter
explains it, f follows its job, a shows its plan and asks for a yes, q ends.";

/// What can be typed.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// Only of this application
    #[arg(long, value_name = "APPLICATION")]
    app: Option<String>,
    /// At most this many service instances, at most 200
    #[arg(
        long, short = 'n', value_name = "N", default_value_t = 50,
        value_parser = value_parser!(u32).range(1..=200)
    )]
    limit: u32,
    /// Go on as it changes, until you stop it
    #[arg(long, short)]
    watch: bool,
}

/// Prints it.
///
/// # Errors
/// What the server says.
pub async fn perform(
    arguments: Arguments,
    client: &Client,
    console: &mut Console,
) -> Result<(), Failure> {
    let mut query = vec![("limit", arguments.limit.to_string())];
    query.extend(arguments.app.map(|app| ("application", app)));
    if arguments.watch {
        let gone = console.reader_gone();
        return tokio::select! {
            ended = watch::perform(&query, client, console) => ended,
            () = gone => Err(Failure::Output(std::io::ErrorKind::BrokenPipe.into())),
        };
    }
    let overview: Overview = client.get(&["v1", "status"], &query).await?;
    let filters = &query[1..];
    if overview.counts.is_empty() && !filters.is_empty() && !console.format.is_data() {
        let (resource, remedy) = ("services", None);
        let list = FilteredList { resource, what: resource, remedy, query: filters };
        console.say(&list.none(client).await)?;
    } else {
        console.print(&overview, |paper| screen::draw(&overview, paper))?;
    }
    ill::note(client, console).await
}
