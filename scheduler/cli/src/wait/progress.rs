//! Progress on stderr while waiting: a live table of channels on a terminal, elsewhere a line for
//! each change.

use std::collections::{BTreeMap, BTreeSet};

use schema::api::Service;

use super::Goal;
use super::beneath::Beneath;
use crate::client::Client;
use crate::console::Console;
use crate::failure::Failure;
use crate::live::LiveText;
use crate::named::told;
use crate::table::{self, Table, one_line};
use crate::when;

/// What has been shown so far.
#[derive(Debug, Default)]
pub struct WaitProgress {
    /// The table that stands on the terminal.
    table: LiveText,
    /// What runs, below it.
    beneath: Beneath,
    /// The line last printed for each channel.
    said: BTreeMap<String, String>,
    /// Lines that are printed once.
    told: BTreeSet<String>,
}

impl WaitProgress {
    /// Asks what runs where these goals are open.
    pub(super) async fn look(
        &mut self,
        goals: impl Iterator<Item = &Goal>,
        client: &Client,
        console: &Console,
    ) {
        if console.talk_size().is_some() {
            self.beneath.look(goals, client).await;
        }
    }

    /// Shows how everything stands.
    ///
    /// # Errors
    /// [`Failure::Output`] when nobody takes it.
    pub fn show(
        &mut self,
        console: &mut Console,
        goals: &[Goal],
        seen: &[Option<Service>],
    ) -> Result<(), Failure> {
        match console.talk_size() {
            Some(size) => {
                let mut table = live(goals, seen)
                    .typed_as(&console.typed)
                    .render_live(size.0, console.colours_stderr());
                table += &self.beneath.text(goals, seen, &console.talk_paper(size.0));
                let text = self.table.draw(&table, size);
                console.talk_bytes(text.as_bytes())
            }
            None => self.lines(console, goals, seen),
        }
    }

    /// Prints a line above the live table.
    ///
    /// # Errors
    /// [`Failure::Output`] when nobody takes it.
    pub fn say(&mut self, console: &mut Console, line: &str) -> Result<(), Failure> {
        let up = self.table.take_back(console.talk_size());
        console.talk(&format!("{up}{line}\n"))
    }

    /// The same, once only.
    ///
    /// # Errors
    /// [`Failure::Output`] when nobody takes it.
    pub fn once(&mut self, console: &mut Console, line: String) -> Result<(), Failure> {
        if self.told.contains(&line) {
            return Ok(());
        }
        self.say(console, &line)?;
        self.told.insert(line);
        Ok(())
    }

    /// Shows the end and leaves it standing.
    ///
    /// # Errors
    /// [`Failure::Output`] when nobody takes it.
    pub fn finish(
        &mut self,
        console: &mut Console,
        goals: &[Goal],
        seen: &[Option<Service>],
    ) -> Result<(), Failure> {
        match console.talk_size() {
            // All of it: nobody takes it back.
            Some((width, _)) => {
                let table = live(goals, seen)
                    .typed_as(&console.typed)
                    .render_live(width, console.colours_stderr());
                let text = self.table.draw_last(&table, width);
                console.talk_bytes(text.as_bytes())
            }
            None => self.lines(console, goals, seen),
        }
    }

    fn lines(
        &mut self,
        console: &mut Console,
        goals: &[Goal],
        seen: &[Option<Service>],
    ) -> Result<(), Failure> {
        for (goal, service) in goals.iter().zip(seen) {
            let Some(service) = service else { continue };
            for instance in goal.wanted(service) {
                let key =
                    format!("{}/{} in {}", service.application, service.name, instance.channel);
                let reason =
                    instance.reason.map(|reason| format!(" ({reason})")).unwrap_or_default();
                let line = format!(
                    "{key}: {}{reason}: {}",
                    instance.status,
                    one_line(&told(service, instance))
                );
                if self.said.get(&key) != Some(&line) {
                    console.say(&line)?;
                    self.said.insert(key, line);
                }
            }
        }
        Ok(())
    }
}

fn live(goals: &[Goal], seen: &[Option<Service>]) -> Table {
    let now = when::now();
    let mut table = Table::new(["SERVICE", "CHANNEL", "STATUS", "VERSION", "SINCE", "MESSAGE"])
        .first_to_go(&["VERSION", "SINCE"]);
    for (goal, service) in goals.iter().zip(seen) {
        let Some(service) = service else { continue };
        for instance in goal.wanted(service) {
            table.row([
                format!("{}/{}", service.application, service.name).into(),
                (&instance.channel).into(),
                table::status(instance.status),
                instance.desired_version.as_deref().unwrap_or_default().into(),
                when::ago(instance.since, now).into(),
                told(service, instance).into(),
            ]);
        }
    }
    table
}
