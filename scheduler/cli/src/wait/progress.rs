//! Progress on stderr while waiting: a live table of channels on a terminal, elsewhere a line for
//! each change.

use std::collections::{BTreeMap, BTreeSet};

use schema::api::Service;

use super::Goal;
use crate::console::Console;
use crate::failure::Failure;
use crate::named::told;
use crate::table::{self, Table, one_line};
use crate::when;

/// What has been shown so far.
#[derive(Debug, Default)]
pub struct WaitProgress {
    /// Lines of the live table that stand on the terminal.
    drawn: usize,
    /// Columns that it had when they were drawn.
    width: u16,
    /// The line last printed for each channel.
    said: BTreeMap<String, String>,
    /// Lines that are printed once.
    told: BTreeSet<String>,
}

impl WaitProgress {
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
                let table = live(goals, seen)
                    .typed_as(&console.typed)
                    .render_live(size.0, console.colours_stderr());
                let text = self.draw(&table, size);
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
        let width = console.talk_size().map_or(self.width, |(width, _)| width);
        let up = self.take_back(width);
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
                let text = self.draw(&table, (width, u16::MAX));
                self.drawn = 0;
                console.talk_bytes(text.as_bytes())
            }
            None => self.lines(console, goals, seen),
        }
    }

    /// What takes the last table off a terminal of this size and puts this one there, as much of it
    /// as fits: what has left it at the top cannot be taken back.
    fn draw(&mut self, table: &str, (width, rows): (u16, u16)) -> String {
        let mut text = self.take_back(width);
        let (lines, room) = (table.lines().count(), usize::from(rows.saturating_sub(1)));
        if lines <= room {
            text.push_str(table);
            self.drawn = lines;
        } else {
            let shown = room.saturating_sub(1);
            table.split_inclusive('\n').take(shown).for_each(|line| text.push_str(line));
            text.push_str(&format!("… and {} more\n", lines - shown));
            self.drawn = room;
        }
        self.width = width;
        text
    }

    /// What takes the live table off the terminal. On one that has become narrower nobody knows how
    /// many rows it takes, some wrap lines and some cut them: there it stays, and nothing above
    /// it is lost.
    fn take_back(&mut self, width: u16) -> String {
        match std::mem::take(&mut self.drawn) {
            0 => String::new(),
            _ if width < self.width => String::new(),
            lines => format!("\u{1b}[{lines}A\u{1b}[J"),
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
                told(service, instance).into(),
            ]);
        }
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "A  B\n1  2\n3  4\n";

    #[test]
    fn a_table_takes_the_place_of_the_last_one() {
        let mut progress = WaitProgress::default();
        assert_eq!(progress.draw(TABLE, (80, 24)), TABLE);
        assert_eq!(progress.draw(TABLE, (80, 24)), format!("\u{1b}[3A\u{1b}[J{TABLE}"));
        assert_eq!(
            progress.draw(TABLE, (120, 24)),
            format!("\u{1b}[3A\u{1b}[J{TABLE}"),
            "nothing wraps on a wider one"
        );
    }

    #[test]
    fn on_a_terminal_that_has_become_narrower_nothing_above_is_taken_away() {
        let mut progress = WaitProgress::default();
        progress.draw(TABLE, (80, 24));
        assert_eq!(progress.draw(TABLE, (40, 24)), TABLE, "the old one stays above");
        assert_eq!(progress.draw(TABLE, (40, 24)), format!("\u{1b}[3A\u{1b}[J{TABLE}"));
    }

    #[test]
    fn a_table_that_is_taller_than_the_terminal_is_cut() {
        let mut progress = WaitProgress::default();
        let tall: String = (0..30).map(|line| format!("{line}\n")).collect();
        let drawn = progress.draw(&tall, (80, 10));
        assert!(drawn.ends_with("7\n… and 22 more\n"), "{drawn}");
        assert!(
            progress.draw(&tall, (80, 10)).starts_with("\u{1b}[9A"),
            "the cursor's line is the tenth"
        );
    }
}
