//! `pvnctl notifications`: whom pvn told what, and what became of it.

use clap::{Args, Subcommand, ValueEnum};
use clap_complete::ArgValueCompleter;
use schema::api::Notification;
use schema::id::NotificationId;
use schema::notification::NotificationStatus;

use super::listing::FilteredList;
use crate::args::limit;
use crate::client::Client;
use crate::completing;
use crate::console::Console;
use crate::failure::Failure;
use crate::short;
use crate::table::{Cell, Table, Tone};
use crate::when;

const EXAMPLES: &str = "\
Examples:
  pvnctl notifications list --status dead     what could not be sent, and why
  pvnctl notifications resend ntf-4f2a8c01    once the target is mended
  pvnctl notifications resend --dead --app shop";

/// What can be typed.
#[derive(Debug, Subcommand)]
#[command(after_help = EXAMPLES)]
pub enum Command {
    /// List messages, newest first
    #[command(visible_alias = "ls")]
    List(NotificationFilters),
    /// Send messages again, with the ids that they had
    Resend(ResendArguments),
}

/// Filters of the list.
#[derive(Debug, Args)]
pub struct NotificationFilters {
    /// Only of this application
    #[arg(long, value_name = "APPLICATION", add = ArgValueCompleter::new(completing::applications))]
    app: Option<String>,
    /// Only for this target
    #[arg(long, value_name = "TARGET")]
    target: Option<String>,
    /// Only in this status
    #[arg(long, value_enum, ignore_case = true)]
    status: Option<StatusWord>,
    /// At most this many, newest first [default: 50]
    #[arg(long, short = 'n', value_name = "N", value_parser = limit)]
    limit: Option<usize>,
}

/// Which messages are sent again.
#[derive(Debug, Args)]
pub struct ResendArguments {
    /// Their ids, or beginnings of them that name no other
    #[arg(value_name = "ID", required_unless_present = "dead", conflicts_with = "dead")]
    ids: Vec<String>,
    /// All that were given up
    #[arg(long)]
    dead: bool,
    /// Of those only of this application
    #[arg(long, value_name = "APPLICATION", requires = "dead")]
    #[arg(add = ArgValueCompleter::new(completing::applications))]
    app: Option<String>,
}

/// A [`NotificationStatus`] as it is typed.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub enum StatusWord {
    /// Not sent yet
    Pending,
    /// The target took it
    Sent,
    /// Told with others in one message
    Digested,
    /// Given up
    Dead,
}

impl StatusWord {
    fn status(self) -> NotificationStatus {
        match self {
            Self::Pending => NotificationStatus::Pending,
            Self::Sent => NotificationStatus::Sent,
            Self::Digested => NotificationStatus::Digested,
            Self::Dead => NotificationStatus::Dead,
        }
    }
}

/// Messages that are shown unless more are asked for.
const USUAL: usize = 50;

/// Most messages of which one is found by the beginning of its id.
const FOUND_AMONG: usize = 1_000;

/// Most ids that begin alike and are told.
const ALIKE: usize = 5;

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
            let mut query = Vec::new();
            query.extend(list.app.map(|app| ("application", app)));
            query.extend(list.target.map(|target| ("target", target)));
            query.extend(list.status.map(|word| ("status", word.status().to_string())));
            let (resource, limit) = ("notifications", list.limit.unwrap_or(USUAL));
            let list = FilteredList { resource, what: resource, remedy: None, query: &query };
            let messages = list.ask::<Notification>(Some(limit), client).await?;
            list.print(&messages, client, console, rows).await
        }
        Command::Resend(which) => {
            for id in wanted(which, client).await? {
                let path = ["v1", "notifications", &id.to_string(), "resend"];
                let now: Notification = client.post(&path, &serde_json::json!({})).await?;
                console.done(&now, &format!("{id} is sent to {} again", now.target))?;
            }
            Ok(())
        }
    }
}

async fn wanted(which: ResendArguments, client: &Client) -> Result<Vec<NotificationId>, Failure> {
    let of = |query: Vec<(&'static str, String)>| async move {
        client.list::<Notification>(&["v1", "notifications"], &query, Some(FOUND_AMONG)).await
    };
    if which.dead {
        let mut query = vec![("status", NotificationStatus::Dead.to_string())];
        query.extend(which.app.map(|app| ("application", app)));
        let found = of(query).await?;
        return Ok(found.items.into_iter().map(|message| message.id).collect());
    }
    let mut ids = Vec::new();
    for text in which.ids {
        if let Ok(id) = text.parse() {
            ids.push(id);
            continue;
        }
        let beginning = format!("{}{}", NotificationId::PREFIX, text.trim_start_matches("ntf-"));
        let found: Vec<NotificationId> = of(Vec::new())
            .await?
            .items
            .into_iter()
            .map(|message| message.id)
            .filter(|id| id.to_string().starts_with(&beginning))
            .collect();
        match found.as_slice() {
            [only] => ids.push(*only),
            [] => {
                return Err(Failure::with_next(
                    format!("there is no notification `{text}`"),
                    "`pvnctl notifications list` shows those there are",
                ));
            }
            several => return Err(alike(&text, several)),
        }
    }
    Ok(ids)
}

/// A beginning of several ids: which they are, to choose from.
fn alike(text: &str, found: &[NotificationId]) -> Failure {
    let mut ids: Vec<_> = found.iter().take(ALIKE).map(|id| format!("`{id}`")).collect();
    if found.len() > ALIKE {
        ids.push(format!("{} more", found.len() - ALIKE));
    }
    Failure::with_next(
        format!("{} notifications begin with `{text}`: {}", found.len(), ids.join(", ")),
        "give more of its digits",
    )
}

fn rows(messages: &[Notification]) -> Table {
    let now = when::now();
    let header = ["ID", "AGE", "STATUS", "KIND", "APPLICATION", "TARGET", "TRIES", "WHAT", "ERROR"];
    let mut rows = Table::new(header)
        .only_wide(&["APPLICATION", "TRIES"])
        .first_to_go(&["KIND", "ERROR", "TARGET", "AGE"]);
    for message in messages {
        rows.row([
            Cell::id(message.id),
            when::ago(message.created_at, now).into(),
            Cell::toned(message.status.as_str(), tone(message.status)),
            message.kind.as_str().into(),
            message.application.as_str().into(),
            message.target.as_str().into(),
            message.attempts.into(),
            short::sentence(&message.text).into(),
            short::sentence(message.error.as_deref().unwrap_or_default()).into(),
        ]);
    }
    rows
}

fn tone(status: NotificationStatus) -> Tone {
    match status {
        NotificationStatus::Dead => Tone::Bad,
        NotificationStatus::Pending => Tone::Busy,
        NotificationStatus::Sent => Tone::Good,
        NotificationStatus::Digested => Tone::Faint,
    }
}
