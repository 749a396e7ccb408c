//! What the keys do while the status is watched: choose an entry, and look into it, follow its job
//! or decide on it.

use schema::api::{Job, OverviewInstance};
use schema::status::Status;

use super::screen::CHOSEN;
use crate::address::{InstancePath, ServicePath};
use crate::client::Client;
use crate::command::{logs, services};
use crate::console::{Console, Paper};
use crate::failure::Failure;
use crate::keyboard::{Keyboard, PressedKey};
use crate::table::Tone;

/// From this width on the keys are told in words.
const EASY_CHARS: u16 = 60;

/// The line that tells the keys.
pub(super) fn told(paper: &Paper) -> String {
    let line = match paper.width {
        Some(width) if width < EASY_CHARS => "↑↓ ⏎ explain f follow a approve q quit",
        _ => "↑↓ choose  enter explain  f follow  a approve  q quit",
    };
    format!("{}\n", paper.toned(line, Tone::Faint))
}

/// Which entry is chosen: by its address, as entries come and go.
#[derive(Debug, Default)]
pub(super) struct Choice {
    at: usize,
    addresses: Vec<String>,
}

impl Choice {
    /// The entries as they are now. The one that was chosen stays so wherever it went; where it is
    /// gone, the one in its place is.
    pub(super) fn keep(&mut self, addresses: &[String]) {
        let same = self.address().and_then(|old| addresses.iter().position(|new| new == old));
        self.at = same.unwrap_or(self.at).min(addresses.len().saturating_sub(1));
        self.addresses = addresses.to_vec();
    }

    /// The one below or above; none beyond the last.
    pub(super) fn step(&mut self, down: bool) {
        let last = self.addresses.len().saturating_sub(1);
        self.at = if down { (self.at + 1).min(last) } else { self.at.saturating_sub(1) };
    }

    pub(super) fn address(&self) -> Option<&str> {
        self.addresses.get(self.at).map(String::as_str)
    }
}

/// The part of a text with the chosen entry and so many lines below it in sight, where the text has
/// more lines than there is room.
pub(super) fn in_sight(text: &str, room: usize, below: usize) -> String {
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let chosen = lines.iter().position(|line| line.starts_with(CHOSEN)).unwrap_or(0);
    let above = (chosen + below + 1).saturating_sub(room).min(chosen);
    match above {
        0 => text.to_owned(),
        // One line more goes for the one that says so.
        _ => {
            let above = (above + 1).min(chosen);
            format!("… {above} lines above\n{}", lines[above..].concat())
        }
    }
}

/// What is to be done with the chosen entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ScreenWish {
    Explain,
    Follow,
    Approve,
}

/// What a key wishes for, if anything.
pub(super) fn wish(key: PressedKey) -> Option<ScreenWish> {
    match key {
        PressedKey::Enter | PressedKey::Char('o' | 'e') => Some(ScreenWish::Explain),
        PressedKey::Char('f' | 'l') => Some(ScreenWish::Follow),
        PressedKey::Char('a') => Some(ScreenWish::Approve),
        _ => None,
    }
}

/// Does it below what stands on the terminal, and returns when a key goes back.
pub(super) async fn grant(
    wish: ScreenWish,
    instance: &OverviewInstance,
    keyboard: &mut Keyboard,
    client: &Client,
    console: &mut Console,
) -> Result<(), Failure> {
    let service = ServicePath {
        app: instance.application.to_string(),
        service: instance.service.to_string(),
    };
    let path = InstancePath { service, channel: instance.channel.to_string() };
    let ended = match wish {
        ScreenWish::Explain => services::explain::show(&path, client, console).await,
        ScreenWish::Follow => follow(instance, &path, keyboard, client, console).await,
        ScreenWish::Approve if instance.status != Status::WaitingManualApproval => {
            console.say(&format!("{} waits for no approval", path.address()))
        }
        ScreenWish::Approve => {
            // The answer is a line.
            keyboard.leave();
            let ended = services::approve::ask(&path, client, console).await;
            keyboard.listen();
            ended
        }
    };
    if let Err(failure) = ended {
        if matches!(failure, Failure::Output(_)) {
            return Err(failure);
        }
        console.report(&failure)?;
    }
    console.say("-- any key goes back --")?;
    keyboard.next().await;
    Ok(())
}

/// Shows what its job prints until that ends, or a key is pressed.
async fn follow(
    instance: &OverviewInstance,
    path: &InstancePath,
    keyboard: &mut Keyboard,
    client: &Client,
    console: &mut Console,
) -> Result<(), Failure> {
    let job = match &instance.job {
        Some(job) => client.get::<Job>(&["v1", "jobs", &job.id.to_string()], &[]).await?,
        None => logs::newest(path, client).await?,
    };
    console.say(&logs::told(&job, path))?;
    tokio::select! {
        ended = logs::follow(&job, client, console) => ended,
        _ = keyboard.next() => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(choice: &Choice, expected: Option<&str>) {
        assert_eq!(choice.address(), expected);
    }

    #[test]
    fn what_is_chosen_stays_chosen_wherever_it_goes() {
        let names = |names: &[&str]| names.iter().map(ToString::to_string).collect::<Vec<_>>();
        let mut choice = Choice::default();
        check(&choice, None);
        choice.step(true);
        choice.keep(&names(&["a", "b", "c"]));
        check(&choice, Some("a"));
        choice.step(true);
        check(&choice, Some("b"));
        choice.keep(&names(&["b", "x", "c"]));
        check(&choice, Some("b"));
        choice.keep(&names(&["x", "c"]));
        check(&choice, Some("x"));
        choice.step(true);
        choice.step(true);
        check(&choice, Some("c"));
        choice.keep(&names(&["x"]));
        check(&choice, Some("x"));
        choice.keep(&[]);
        check(&choice, None);
    }

    #[test]
    fn the_chosen_entry_is_in_sight_however_few_rows_there_are() {
        let lines = |chosen: usize| -> String {
            (0..20)
                .map(|line| format!("{}{line}\n", if line == chosen { CHOSEN } else { "  " }))
                .collect()
        };
        assert_eq!(in_sight(&lines(3), 10, 5), lines(3), "it is");
        let shown = in_sight(&lines(12), 10, 5);
        assert!(shown.starts_with("… 9 lines above\n  9\n  10\n  11\n▸ 12\n  13\n"), "{shown}");
        let shown = in_sight(&lines(12), 2, 5);
        assert!(shown.starts_with("… 12 lines above\n▸ 12\n"), "{shown}");
    }
}
