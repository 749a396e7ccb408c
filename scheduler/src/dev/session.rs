//! One run of `dev`, seen from its client half: it applies the files, again when they change, tells
//! what happens, and knows when everything has converged.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use futures::future::OptionFuture;
use pvnctl::client::{Client, Token};
use pvnctl::console::Console;
use pvnctl::contexts::Contexts;
use pvnctl::failure::Failure;
use pvnctl::files::Files;
use pvnctl::typed::Typed;
use pvnctl::when;
use schema::api::{LogEntry, Service};
use tokio::time::Instant;

use super::arguments::Arguments;
use super::doing::DevDoing;
use super::ending::{FailuresTold, Standings};
use super::events::{DevEvents, newest_event};
use super::files::{self, ApplyResult, DevInputs, Wish};
use super::output::OutputsTold;
use super::watch::ConfigWatch;
use super::{USUAL, found, memory, secrets, story};
use crate::daemon::Daemon;

mod changing;

use changing::Complaint;

/// How often `--until-converged` looks, besides after a failure that was told.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// How often what runs is shown: elapsed times are told in seconds.
const DRAW_EVERY: Duration = Duration::from_secs(1);

/// How long the events of before an end are waited for: they are on their way.
const CATCH_UP_WITHIN: Duration = Duration::from_secs(2);

/// Exit codes of `--until-converged`, as those of `pvnctl services wait`.
const FAILED: u8 = 2;

const TIMEOUT: u8 = 3;

/// One run of `dev`: the client half.
pub(super) struct Session {
    pub(super) client: Client,
    pub(super) given: DevInputs,
    /// What stands before `pvnctl` in commands to type.
    arguments: Arguments,
    data_dir: PathBuf,
    events: DevEvents,
    wishes: Vec<Wish>,
    complaint: Option<Complaint>,
    failures: FailuresTold,
    outputs: OutputsTold,
    doing: DevDoing,
    has_applied: bool,
    /// Whether no earlier run released anything from this data directory.
    is_new: bool,
    started: Instant,
}

impl Session {
    pub(super) async fn open(
        arguments: &Arguments,
        daemon: &Daemon,
        data_dir: PathBuf,
        params: std::collections::BTreeMap<String, String>,
        console: &mut Console,
    ) -> Result<Self, Failure> {
        let address = reachable(daemon.address());
        let server = format!("http://{address}");
        let file = data_dir.join(pvnctl::discover::TOKEN_FILE);
        let token = std::fs::read_to_string(&file).map_err(|error| {
            Failure::user(format!("cannot read the admin token in {}: {error}", data_dir.display()))
        })?;
        let token = Token { text: token.trim().to_owned(), origin: file.display().to_string() };
        let client = Client::new(&server, None, Some(token))?;
        // Whoever copies a command may stand in another directory.
        let token_file = std::path::absolute(&file).unwrap_or_else(|_| file.clone());
        console.typed = Typed::reaching(
            Some(server.as_str()).filter(|_| address != USUAL || is_logged_in()),
            Some(&token_file),
            None,
        );
        let (page, colour) = (daemon.sign_in_path().await, console.colours_stdout());
        console.data(&story::banner(&server, page.as_deref(), &console.typed, colour))?;
        console.flush()?;
        let is_new = !memory::is_there(&data_dir);
        // Opened before anything is applied, so that the story has a beginning.
        let events = DevEvents::open(&client).await?;
        Ok(Self {
            client,
            given: DevInputs { params, secrets: std::collections::BTreeMap::new() },
            arguments: arguments.clone(),
            data_dir,
            events,
            wishes: Vec::new(),
            complaint: None,
            failures: FailuresTold::default(),
            outputs: OutputsTold::default(),
            doing: DevDoing::default(),
            has_applied: false,
            is_new,
            started: Instant::now(),
        })
    }

    pub(super) async fn live(
        &mut self,
        configs: Files,
        daemon: &mut Daemon,
        console: &mut Console,
    ) -> Result<u8, Failure> {
        let mut watch = if self.arguments.watch {
            Some(ConfigWatch::start(self.arguments.root(), &configs.files)?)
        } else {
            None
        };
        let mut seen = configs;
        self.apply(&seen, console).await.map_err(secrets::with_a_way_out)?;
        // No apply of this run has started: what is told to have failed by now failed by others.
        self.failures = FailuresTold::after(newest_event(&self.client).await?.unwrap_or(0));
        // From here on what is applied was seen with the files of now.
        daemon
            .handle()
            .let_applies_start()
            .await
            .map_err(|refusal| Failure::user(refusal.to_string()))?;
        let deadline =
            self.started + Duration::from_millis(self.arguments.timeout.as_ms().unsigned_abs());
        let mut look = tokio::time::interval(LOOK_EVERY);
        look.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let mut pulse = tokio::time::interval(DRAW_EVERY);
        pulse.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            let is_to_look = tokio::select! {
                broken = daemon.broken() => return Err(Failure::user(broken.to_string())),
                event = self.events.next() => self.tell(event?, console).await?,
                Some(()) = OptionFuture::from(watch.as_mut().map(ConfigWatch::changed)) => {
                    if let Some(changed) = self.changed(&seen, console)? {
                        if let Some(watch) = &mut watch {
                            watch.follow(&changed.files);
                        }
                        seen = changed;
                        self.apply_again(&seen, console).await?;
                    }
                    false
                }
                _ = look.tick(), if self.arguments.until_converged => true,
                _ = pulse.tick() => {
                    self.try_again(&seen, console).await?;
                    self.doing.draw(&self.client, console).await?;
                    false
                }
            };
            if is_to_look
                && self.arguments.until_converged
                && let Some(end) = self.look(deadline, console).await?
                && let Some((code, said)) = self.for_files(end, deadline)
            {
                self.doing.clear(console)?;
                if code == 0 && self.is_new {
                    self.tell_what_was_found(console).await?;
                }
                console.tell(&story::verdict(code == 0, &said, console.colours_stdout()))?;
                return Ok(code);
            }
        }
    }

    async fn tell_what_was_found(&self, console: &mut Console) -> Result<(), Failure> {
        for wish in &self.wishes {
            let service = wish.service(&self.client).await?;
            for line in found::unapplied(&self.client, &service).await? {
                console.say(&line)?;
            }
        }
        Ok(())
    }

    /// The same, given that what was applied may not be what the files say by now: they are
    /// refused.
    fn for_files(&self, (code, said): (u8, String), deadline: Instant) -> Option<(u8, String)> {
        match code {
            0 if self.complaint.is_some() && Instant::now() < deadline => None,
            0 if self.complaint.is_some() => Some((
                TIMEOUT,
                format!("timeout; {said} as the files were before they were refused"),
            )),
            _ => Some((code, said)),
        }
    }

    /// Applies the files and releases what needs it.
    pub(super) async fn apply(
        &mut self,
        configs: &Files,
        console: &mut Console,
    ) -> Result<(), Failure> {
        self.doing.clear(console)?;
        let is_start = !std::mem::replace(&mut self.has_applied, true);
        let ApplyResult { wishes, lines, warnings } =
            files::apply(&self.client, &self.data_dir, configs, &self.given, is_start).await?;
        self.wishes = wishes;
        console.warn(&warnings)?;
        for line in lines {
            console.tell(&format!("{line}\n"))?;
        }
        if is_start {
            for wish in &self.wishes {
                let asked =
                    story::open_questions(&wish.service(&self.client).await?, &console.typed);
                console.tell(&asked)?;
            }
        }
        console.flush()
    }

    /// Tells an event; where the stream is over it is opened again. Returns whether it is a failure
    /// that was not told before.
    pub(super) async fn tell(
        &mut self,
        event: Option<pvnctl::client::SseEvent>,
        console: &mut Console,
    ) -> Result<bool, Failure> {
        let Some(event) = event else {
            self.events.open_again().await?;
            return Ok(false);
        };
        let entry: LogEntry = serde_json::from_str(&event.data)
            .map_err(|error| Failure::user(format!("a log entry cannot be read: {error}")))?;
        let has_failed = self.failures.keep(&entry);
        let colour = console.colours_stdout();
        if let Some(text) = story::tell(&entry, &console.typed, colour) {
            let below = self.outputs.below(&entry, &self.client, colour).await;
            self.doing.clear(console)?;
            console.tell(&text)?;
            console.data(&below)?;
            console.flush()?;
        }
        Ok(has_failed)
    }

    /// Tells what was logged before the end was seen: its way is longer.
    async fn catch_up(&mut self, console: &mut Console) -> Result<(), Failure> {
        let newest = newest_event(&self.client).await?.unwrap_or(0);
        let until = Instant::now() + CATCH_UP_WITHIN;
        while self.events.last() < newest {
            match tokio::time::timeout_at(until, self.events.next()).await {
                Ok(event) => drop(self.tell(event?, console).await?),
                Err(_) => break,
            }
        }
        Ok(())
    }

    /// The same as [`Self::end`], where a look that comes to nothing is followed by another.
    async fn look(
        &mut self,
        deadline: Instant,
        console: &mut Console,
    ) -> Result<Option<(u8, String)>, Failure> {
        match self.end(deadline, console).await {
            Err(failure) if failure.passes(true) && Instant::now() < deadline => Ok(None),
            ended => ended,
        }
    }

    /// The exit code, and what is said of it, once it is clear. It is taken from what is so and
    /// from all that was told on the way there, in this place alone: what FAILED for a moment
    /// between two looks ends it as if a look had seen it.
    pub(super) async fn end(
        &mut self,
        deadline: Instant,
        console: &mut Console,
    ) -> Result<Option<(u8, String)>, Failure> {
        let mut services = Vec::new();
        for wish in &self.wishes {
            services.push(wish.service(&self.client).await?);
        }
        let is_late = Instant::now() >= deadline;
        if !self.standings(&services)?.are_settled() && !is_late {
            return Ok(None);
        }
        self.catch_up(console).await?;
        let Standings { failed, waiting } = self.standings(&services)?;
        let took = when::duration(self.started.elapsed());
        if !failed.is_empty() {
            return Ok(Some((FAILED, format!("FAILED after {took}: {}", failed.join("; ")))));
        }
        if !waiting.is_empty() {
            return Ok(Some((TIMEOUT, format!("timeout after {took}: {}", waiting.join("; ")))));
        }
        for (wish, service) in self.wishes.iter().zip(&services) {
            if let Some((words, next)) = wish.others(&self.client, service).await? {
                return Err(Failure::with_next(
                    format!("CONVERGED after {took}, but {words}"),
                    next,
                ));
            }
        }
        Ok(Some((0, format!("everything is CONVERGED after {took}"))))
    }

    /// How everything stands, given the services as they are.
    fn standings(&self, services: &[Service]) -> Result<Standings, Failure> {
        let mut standings = Standings::default();
        for (wish, service) in self.wishes.iter().zip(services) {
            standings.add(&wish.goals, service, &self.failures).map_err(Failure::user)?;
        }
        Ok(standings)
    }
}

/// Whether `pvnctl` goes elsewhere where nothing is said, or may.
fn is_logged_in() -> bool {
    Contexts::load().map_or(true, |contexts| contexts.current.is_some())
}

/// The address under which this machine reaches a listener: one on every interface is reached by
/// loopback.
fn reachable(address: SocketAddr) -> SocketAddr {
    if address.ip().is_unspecified() {
        SocketAddr::new(Ipv4Addr::LOCALHOST.into(), address.port())
    } else {
        address
    }
}
