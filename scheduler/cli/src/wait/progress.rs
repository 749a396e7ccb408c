//! Progress on stderr while waiting: a live table of channels on a terminal, elsewhere a line for each change.

use std::collections::BTreeMap;

use schema::api::Service;

use super::Goal;
use crate::console::Console;
use crate::failure::Failure;
use crate::table::{self, Table, one_line};
use crate::when;

/// What has been shown so far.
#[derive(Debug, Default)]
pub struct Progress {
    /// Lines of the live table that stand on the terminal.
    drawn: usize,
    /// The line last printed for each channel.
    said: BTreeMap<String, String>,
}

impl Progress {
    /// Shows how everything stands.
    ///
    /// # Errors
    /// [`Failure::Output`] when nobody takes it.
    pub fn show(&mut self, console: &mut Console, goals: &[Goal], seen: &[Option<Service>]) -> Result<(), Failure> {
        match console.talk_width() {
            Some(width) => {
                let table = live(goals, seen).render(Some(width), console.colours_stderr());
                let up = self.take_back();
                self.drawn = table.lines().count();
                console.talk(&format!("{up}{table}"))
            }
            None => self.lines(console, goals, seen),
        }
    }

    /// Prints a line above the live table.
    ///
    /// # Errors
    /// [`Failure::Output`] when nobody takes it.
    pub fn say(&mut self, console: &mut Console, line: &str) -> Result<(), Failure> {
        let up = self.take_back();
        console.talk(&format!("{up}{line}\n"))
    }

    /// Shows the end and leaves it standing.
    ///
    /// # Errors
    /// [`Failure::Output`] when nobody takes it.
    pub fn finish(&mut self, console: &mut Console, goals: &[Goal], seen: &[Option<Service>]) -> Result<(), Failure> {
        self.show(console, goals, seen)?;
        self.drawn = 0;
        Ok(())
    }

    /// What takes the live table off the terminal.
    fn take_back(&mut self) -> String {
        match std::mem::take(&mut self.drawn) {
            0 => String::new(),
            lines => format!("\u{1b}[{lines}A\u{1b}[J"),
        }
    }

    fn lines(&mut self, console: &mut Console, goals: &[Goal], seen: &[Option<Service>]) -> Result<(), Failure> {
        for (goal, service) in goals.iter().zip(seen) {
            let Some(service) = service else { continue };
            for instance in goal.wanted(service) {
                let key = format!("{}/{} in {}", service.application, service.name, instance.channel);
                let reason = instance.reason.map(|reason| format!(" ({reason})")).unwrap_or_default();
                let line = format!("{key}: {}{reason}: {}", instance.status, one_line(&instance.message));
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
    let mut table = Table::new(["SERVICE", "CHANNEL", "STATUS", "VERSION", "SINCE", "MESSAGE"]);
    for (goal, service) in goals.iter().zip(seen) {
        let Some(service) = service else { continue };
        for instance in goal.wanted(service) {
            table.row([
                format!("{}/{}", service.application, service.name).into(),
                (&instance.channel).into(),
                table::status(instance.status),
                instance.desired_version.as_deref().unwrap_or_default().into(),
                when::ago(instance.since, now).into(),
                instance.message.as_str().into(),
            ]);
        }
    }
    table
}
