//! `pvnctl events`: the log, by the page or as it is written.

mod follow;

use clap::Args;
use schema::api::LogEntry;

use super::listing::FilteredList;
use crate::address::ScopeArguments;
use crate::args::limit;
use crate::client::{Client, Listed};
use crate::console::Console;
use crate::failure::Failure;
use crate::short;
use crate::table::{Table, one_line};
use crate::when;

/// Entries that are shown unless more are asked for.
const USUAL: usize = 50;

/// Entries of before that are shown where the log is followed.
const BEFORE: usize = 10;

const EXAMPLES: &str = "\
Examples:
  pvnctl events shop/web@eu               what happened there, oldest first
  pvnctl events -f                        everything, as it happens
  pvnctl events --audit --limit 200       what people did
  pvnctl events --kind approval -f -o json | jq .message

With -f and -o json each entry is one line. A scheduler that goes away is waited
for, and nothing is missed.";

/// What can be typed.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// Of whom.
    #[command(flatten)]
    scope: ScopeArguments,
    /// Only of this kind, or of those that begin with it and a dot, as in `approval`
    #[arg(long, value_name = "KIND")]
    kind: Option<String>,
    /// Only what people did
    #[arg(long)]
    audit: bool,
    /// At most this many of the newest [default: 50; 10 with -f]
    #[arg(long, short = 'n', value_name = "N", value_parser = limit)]
    limit: Option<usize>,
    /// Go on with what comes, until you stop it
    #[arg(long, short)]
    follow: bool,
}

/// Prints the entries.
///
/// # Errors
/// What the server says.
pub async fn perform(
    arguments: Arguments,
    client: &Client,
    console: &mut Console,
) -> Result<(), Failure> {
    let mut query = arguments.scope.query(client).await?;
    query.extend(arguments.kind.map(|kind| ("kind", kind)));
    if arguments.audit {
        query.push(("audit", "true".to_owned()));
    }
    let wanted = arguments.limit.unwrap_or(if arguments.follow { BEFORE } else { USUAL });
    if arguments.follow {
        let gone = console.reader_gone();
        return tokio::select! {
            ended = follow::perform(&query, wanted, client, console) => ended,
            () = gone => Err(Failure::Output(std::io::ErrorKind::BrokenPipe.into())),
        };
    }
    let entries = newest(&query, wanted, client).await?;
    let what = "entries in the log";
    let list = FilteredList { resource: "events", what, remedy: None, query: &query };
    list.print(&entries, client, console, rows).await
}

/// The newest entries, the oldest of them first.
pub(crate) async fn newest(
    query: &[(&'static str, String)],
    limit: usize,
    client: &Client,
) -> Result<Listed<LogEntry>, Failure> {
    let mut entries = client.list::<LogEntry>(&["v1", "events"], query, Some(limit)).await?;
    entries.items.reverse();
    Ok(entries)
}

/// Entries as a table.
pub(crate) fn rows(entries: &[LogEntry]) -> Table {
    let now = when::now();
    let mut rows = Table::new(["SEQ", "AGE", "KIND", "OF", "BY", "FROM", "MESSAGE"])
        .only_wide(&["SEQ", "FROM"])
        .first_to_go(&["BY", "KIND", "AGE"]);
    for entry in entries {
        rows.row([
            entry.seq.into(),
            when::ago(entry.at, now).into(),
            entry.kind.as_str().into(),
            whose(entry).into(),
            entry.actor.as_deref().unwrap_or_default().into(),
            entry.origin.as_deref().unwrap_or_default().into(),
            short::sentence(&entry.message).into(),
        ]);
    }
    rows
}

/// What an entry is about, as people type it: `shop/web@eu`.
fn whose(entry: &LogEntry) -> String {
    let mut whose = entry.application.as_ref().map(ToString::to_string).unwrap_or_default();
    if let Some(service) = &entry.service {
        whose += &format!("/{service}");
    }
    if let Some(channel) = &entry.channel {
        whose += &format!("@{channel}");
    }
    whose
}

/// An entry as a line, where they come one by one.
fn line(entry: &LogEntry) -> String {
    let by = entry.actor.as_ref().map_or_else(String::new, |by| format!(" (by {})", one_line(by)));
    let whose = whose(entry);
    let whose = if whose.is_empty() { whose } else { format!("{whose}  ") };
    format!(
        "{}  {}  {whose}{}{by}\n",
        entry.at,
        one_line(&entry.kind),
        short::sentence(&one_line(&entry.message))
    )
}
