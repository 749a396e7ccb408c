//! The log as it is written. Every entry has a number after which the scheduler goes on, so nothing
//! is missed or told twice when it went away.

use std::time::Duration;

use schema::api::LogEntry;
use tokio::time::Instant;

use super::{line, newest};
use crate::args::OutputFormat;
use crate::client::Client;
use crate::console::Console;
use crate::failure::Failure;

/// How long to look for a scheduler that was lost: restarts and short outages, not a scheduler that
/// is switched off.
const LOST_FOR: Duration = Duration::from_secs(300);

/// Wait between two looks for it.
const LOOK_AGAIN: Duration = Duration::from_millis(500);

/// Prints the newest entries and then each that comes; ends only by a failure.
pub(super) async fn perform(
    query: &[(&'static str, String)],
    before: usize,
    client: &Client,
    console: &mut Console,
) -> Result<(), Failure> {
    // Asked first: what comes after it is told by the stream, whatever the filters leave out.
    let last = newest(&[], 1, client).await?.items.first().map_or(0, |entry| entry.seq);
    let mut reader = EventReader { last, has_told: false, console };
    for entry in newest(query, before, client).await?.items {
        if entry.seq <= last {
            reader.print(&entry)?;
        }
    }
    let mut lost_since: Option<Instant> = None;
    loop {
        let ended = reader.stream(query, &mut lost_since, client).await;
        let since = *lost_since.get_or_insert_with(Instant::now);
        match ended {
            // The scheduler stops softly: it ends its streams.
            Ok(()) => {}
            Err(failure) if failure.passes(true) && since.elapsed() <= LOST_FOR => {
                reader.lost(&failure)?;
            }
            Err(failure) => return Err(failure),
        }
        tokio::time::sleep(LOOK_AGAIN).await;
    }
}

struct EventReader<'a> {
    /// The number of the newest entry that was printed, or passed over.
    last: u64,
    /// Whether it was told that the scheduler is away.
    has_told: bool,
    console: &'a mut Console,
}

impl EventReader<'_> {
    async fn stream(
        &mut self,
        query: &[(&'static str, String)],
        lost_since: &mut Option<Instant>,
        client: &Client,
    ) -> Result<(), Failure> {
        let last = self.last.to_string();
        let mut events = client.events(&["v1", "events"], query, Some(&last)).await?;
        *lost_since = None;
        if std::mem::take(&mut self.has_told) {
            self.console.say(&format!("{} is back", client.server()))?;
        }
        while let Some(event) = events.next().await? {
            let entry: LogEntry = serde_json::from_str(&event.data).map_err(|error| {
                Failure::user(format!("the server sent an entry that cannot be read: {error}"))
            })?;
            self.last = entry.seq;
            self.print(&entry)?;
        }
        Ok(())
    }

    /// Says once that the scheduler is away.
    fn lost(&mut self, failure: &Failure) -> Result<(), Failure> {
        if std::mem::replace(&mut self.has_told, true) {
            return Ok(());
        }
        self.console.say(&format!("{failure}; trying again for {} s", LOST_FOR.as_secs()))
    }

    fn print(&mut self, entry: &LogEntry) -> Result<(), Failure> {
        match self.console.format {
            OutputFormat::Json => {
                let text = serde_json::to_string(entry).map_err(|error| {
                    Failure::user(format!("cannot print an entry as JSON: {error}"))
                })?;
                self.console.data(&format!("{text}\n"))?;
            }
            OutputFormat::Yaml => {
                self.console.data("---\n")?;
                self.console.print(entry, |_| String::new())?;
            }
            OutputFormat::Name => self.console.data(&format!("{}\n", entry.seq))?,
            OutputFormat::Table | OutputFormat::Wide => self.console.tell(&line(entry))?,
        }
        self.console.flush()
    }
}
