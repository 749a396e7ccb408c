//! `pvnctl services list`.

use clap::Args;
use schema::api::{ChannelStatus, ServiceSummary};
use schema::status::Status;

use super::super::listing::FilteredList;
use super::ill;
use crate::args::limit;
use crate::client::Client;
use crate::console::Console;
use crate::failure::Failure;
use crate::table::{Cell, Table, Tone, status_tone};

/// Filters.
#[derive(Debug, Args)]
pub struct Arguments {
    /// Only of this application
    #[arg(long, value_name = "APPLICATION")]
    pub app: Option<String>,
    /// Only those with a channel that stands so
    #[arg(long, value_name = "STATUS", value_parser = status)]
    status: Option<Status>,
    /// At most this many [default: all]
    #[arg(long, short = 'n', value_name = "N", value_parser = limit)]
    limit: Option<usize>,
}

fn status(text: &str) -> Result<Status, String> {
    text.to_ascii_uppercase().parse().map_err(|error: schema::id::ParseError| error.rule.to_owned())
}

/// Prints the services.
pub(super) async fn perform(
    arguments: Arguments,
    client: &Client,
    console: &mut Console,
) -> Result<(), Failure> {
    let query: Vec<_> = [
        ("application", arguments.app),
        ("status", arguments.status.map(|status| status.to_string())),
    ]
    .into_iter()
    .filter_map(|(key, value)| Some((key, value?)))
    .collect();
    let remedy = Some("make some with `pvnctl configs apply PATH`");
    let list = FilteredList { resource: "services", what: "services", remedy, query: &query };
    let services = list.ask::<ServiceSummary>(arguments.limit, client).await?;
    list.print(&services, client, console, table).await?;
    ill::note(client, console).await
}

fn table(services: &[ServiceSummary]) -> Table {
    let mut table = Table::new(["APPLICATION", "NAME", "VERSION", "CHANNELS"])
        .first_to_go(&["VERSION", "APPLICATION"]);
    for service in services {
        let stands = |channel: &ChannelStatus| {
            // A release may have gone elsewhere only.
            let other = channel
                .version
                .as_ref()
                .filter(|version| service.version.as_ref() != Some(version));
            let other = other.map_or_else(String::new, |version| format!(" {version}"));
            format!("{} {}{other}", channel.channel, channel.status)
        };
        let channels: Vec<_> = service.channels.iter().map(stands).collect();
        // The colour of the channel that most wants to be seen.
        let tones: Vec<_> =
            service.channels.iter().map(|channel| status_tone(channel.status)).collect();
        let tone = [Tone::Bad, Tone::Wait, Tone::Busy, Tone::Good]
            .into_iter()
            .find(|tone| tones.contains(tone))
            .unwrap_or(Tone::Plain);
        table.row([
            (&service.application).into(),
            (&service.name).into(),
            service.version.as_deref().unwrap_or_default().into(),
            Cell::toned(channels.join(", "), tone),
        ]);
    }
    table
}
