//! The status as it changes: drawn over again on a terminal, elsewhere a line for each change.

use std::collections::BTreeMap;
use std::time::Duration;

use futures::future::OptionFuture;
use schema::api::{Overview, OverviewInstance};
use schema::command_target::CommandTarget;
use tokio::time::Instant;

use super::keys::{self, Choice};
use super::screen;
use crate::args::OutputFormat;
use crate::client::Client;
use crate::console::Console;
use crate::failure::Failure;
use crate::keyboard::{Keyboard, PressedKey};
use crate::live::LiveText;
use crate::short;
use crate::table::one_line;
use crate::under_way::address;
use crate::when;

/// Exit code of whom Ctrl-C ends, as a shell tells it: 128 and SIGINT.
const INTERRUPTED: u8 = 130;

/// How often to look: elapsed times are told in seconds.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Lines of an entry that are shown below its first one, wherever it stands.
const ENTRY_LINES: usize = 5;

/// Shows it until a failure that does not pass, or whoever watches ends it. A scheduler that was
/// reached once is waited for.
pub(super) async fn perform(
    query: &[(&'static str, String)],
    client: &Client,
    console: &mut Console,
) -> Result<(), Failure> {
    let mut watcher = StatusWatcher { keyboard: console.keyboard(), ..StatusWatcher::default() };
    loop {
        let path = ["v1", "status"];
        let Some(looked) = watcher.until(client.get(&path, query), client, console).await? else {
            return Ok(());
        };
        match looked {
            Ok(overview) => watcher.show(overview, client, console)?,
            Err(failure) if failure.passes(watcher.last.is_some()) => {
                watcher.lost(&failure, console)?;
            }
            Err(failure) => return Err(failure),
        }
        if watcher.until(tokio::time::sleep(LOOK_EVERY), client, console).await?.is_none() {
            return Ok(());
        }
    }
}

#[derive(Default)]
struct StatusWatcher {
    live: LiveText,
    /// What was seen last.
    last: Option<Overview>,
    lost_since: Option<Instant>,
    /// The line last printed for each instance, where there is no terminal.
    said: BTreeMap<String, String>,
    /// The keys of whoever watches.
    keyboard: Option<Keyboard>,
    /// Which of the entries is chosen by them.
    chosen: Choice,
}

impl StatusWatcher {
    fn show(
        &mut self,
        overview: Overview,
        client: &Client,
        console: &mut Console,
    ) -> Result<(), Failure> {
        let was_lost = self.lost_since.take().is_some();
        let is_new = self.last.as_ref().is_none_or(|last| {
            (&last.counts, &last.instances) != (&overview.counts, &overview.instances)
        });
        let is_drawn = self.is_drawn(console);
        if was_lost && !is_drawn {
            console.say(&format!("{} is back", client.server()))?;
        }
        let overview = &*self.last.insert(overview);
        match (console.format, is_drawn) {
            (_, true) => self.draw(None, console),
            (OutputFormat::Json, _) if is_new => {
                let text = serde_json::to_string(overview).map_err(|error| {
                    Failure::user(format!("cannot print the status as JSON: {error}"))
                })?;
                console.data(&format!("{text}\n"))?;
                console.flush()
            }
            (OutputFormat::Json, _) => Ok(()),
            (OutputFormat::Yaml, _) if is_new => {
                console.data("---\n")?;
                console.print(overview, |_| String::new())?;
                console.flush()
            }
            (OutputFormat::Yaml, _) => Ok(()),
            _ => self.changes(console),
        }
    }

    /// Whether it takes its own place on a terminal.
    fn is_drawn(&self, console: &Console) -> bool {
        let is_data = matches!(console.format, OutputFormat::Json | OutputFormat::Yaml);
        !is_data && console.data_size().is_some()
    }

    fn lost(&mut self, failure: &Failure, console: &mut Console) -> Result<(), Failure> {
        let is_first = self.lost_since.is_none();
        let since = *self.lost_since.get_or_insert_with(Instant::now);
        if !self.is_drawn(console) {
            let line = format!("{failure}; trying again");
            return if is_first { console.say(&line) } else { Ok(()) };
        }
        let since = when::duration(since.elapsed());
        self.draw(Some(&format!("{failure}, since {since}; trying again")), console)
    }

    /// What is waited for, while keys are obeyed; `None` once one of them ends it.
    async fn until<T>(
        &mut self,
        awaited: impl Future<Output = T>,
        client: &Client,
        console: &mut Console,
    ) -> Result<Option<T>, Failure> {
        let mut awaited = std::pin::pin!(awaited);
        loop {
            let pressed = OptionFuture::from(self.keyboard.as_mut().map(Keyboard::next));
            let key = tokio::select! {
                came = &mut awaited => return Ok(Some(came)),
                Some(key) = pressed => key,
            };
            match key {
                // The terminal is gone.
                None => self.keyboard = None,
                Some(PressedKey::Interrupt) => return Err(Failure::Ended(INTERRUPTED)),
                Some(PressedKey::Char('q')) => return Ok(None),
                Some(key) => self.pressed(key, client, console).await?,
            }
        }
    }

    /// Does what a key means, and draws again.
    async fn pressed(
        &mut self,
        key: PressedKey,
        client: &Client,
        console: &mut Console,
    ) -> Result<(), Failure> {
        match key {
            PressedKey::Up => self.chosen.step(false),
            PressedKey::Down => self.chosen.step(true),
            // What stands there now is not ours.
            PressedKey::Continued => self.live = LiveText::default(),
            other => {
                let wish = keys::wish(other);
                let found = self.last.as_ref().and_then(|overview| {
                    let mut entries = screen::entries(overview).into_iter();
                    entries.find(|one| Some(address(one).as_str()) == self.chosen.address())
                });
                let (Some(wish), Some(instance), Some(keyboard)) =
                    (wish, found, &mut self.keyboard)
                else {
                    return Ok(());
                };
                let up = self.live.take_back(console.data_size());
                console.data(&up)?;
                keys::grant(wish, instance, keyboard, client, console).await?;
            }
        }
        self.draw(None, console)
    }

    /// Puts the last one in the place of the one before, below a line that says what is wrong.
    fn draw(&mut self, wrong: Option<&str>, console: &mut Console) -> Result<(), Failure> {
        let (Some(overview), Some(size)) = (&self.last, console.data_size()) else { return Ok(()) };
        let paper = console.paper(size.0);
        let mut shown = wrong.map_or_else(String::new, |wrong| paper.alarm(wrong));
        if self.keyboard.is_some() {
            let addresses: Vec<_> = screen::entries(overview).into_iter().map(address).collect();
            self.chosen.keep(&addresses);
            shown += &keys::told(&paper);
            let body = screen::draw_chosen(overview, self.chosen.address(), &paper);
            // The keys, and what was cut, and the line of the cursor.
            let room = usize::from(size.1).saturating_sub(3 + usize::from(wrong.is_some()));
            shown += &keys::in_sight(&body, room, ENTRY_LINES);
        } else {
            shown += &screen::draw(overview, &paper);
        }
        let text = self.live.draw(&shown, size);
        console.data(&text)?;
        console.flush()
    }

    /// A line for each instance that stands otherwise than the line before said.
    fn changes(&mut self, console: &mut Console) -> Result<(), Failure> {
        let Some(overview) = &self.last else { return Ok(()) };
        for instance in &overview.instances {
            let (whose, line) = said(instance);
            if self.said.get(&whose) != Some(&line) {
                console.tell(&format!("{whose}: {line}\n"))?;
                self.said.insert(whose, line);
            }
        }
        console.flush()
    }
}

/// Whose line it is, and what it says.
fn said(instance: &OverviewInstance) -> (String, String) {
    let OverviewInstance { application, service, channel, status, .. } = instance;
    let named = CommandTarget {
        application: application.as_str(),
        service: service.as_str(),
        channel: channel.as_str(),
    };
    let reason = instance.reason.map_or_else(String::new, |reason| format!(" ({reason})"));
    let message = short::sentence(&one_line(&named.text(&instance.message)));
    (format!("{application}/{service}@{channel}"), format!("{status}{reason}: {message}"))
}
