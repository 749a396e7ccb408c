//! `pvn-scheduler dev DIR`: the daemon and a client in one command. It serves, applies the config
//! files in DIR with everything on this machine, releases every service, and tells what happens as
//! it happens. The client half speaks HTTP like any other; nothing here knows how the daemon
//! decides.
//!
//! A service is released when it has no release in one of its channels, when its config has changed
//! since `dev` last released it, or when other parameters are given. So running `dev` again over
//! the same data goes on where it was.

mod arguments;
mod files;
mod found;
mod memory;
mod secrets;
mod story;
mod watch;

use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use futures::future::OptionFuture;
use pvnctl::client::{Client, Events, Token};
use pvnctl::console::Console;
use pvnctl::failure::Failure;
use pvnctl::files::Files;
use pvnctl::typed::Typed;
use pvnctl::wait::{self, FailedIn, GoalVerdict};
use pvnctl::when;
use schema::api::LogEntry;
use tokio::time::Instant;

use crate::daemon::{Daemon, StartError};
use crate::settings::Settings;
use crate::signals::{INTERRUPTED, Stops};
use crate::store::LockError;
pub use arguments::Arguments;

use files::{ApplyResult, DevInputs, Wish};
use watch::ConfigWatch;

/// Where `dev` listens when nothing is said and the address is free: where `pvnctl` looks when
/// nothing is said.
const USUAL: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 7780);

/// How often `--until-converged` looks, besides after every event.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// How long the events of before an end are waited for: they are on their way.
const CATCH_UP_WITHIN: Duration = Duration::from_secs(2);

/// Exit codes of `--until-converged`, as those of `pvnctl services wait`.
const FAILED: u8 = 2;
const TIMEOUT: u8 = 3;

/// Runs until Ctrl-C, or until everything has converged when asked to; returns the exit code.
pub async fn run(arguments: Arguments) -> u8 {
    let mut console = Console::of_process();
    if arguments.until_converged {
        console.go_on_unread();
    }
    let ended = start(&arguments, &mut console).await;
    match ended.and_then(|code| console.flush().map(|()| code)) {
        Ok(code) => code,
        Err(failure) => {
            // When even stderr is closed there is nobody left to tell.
            let _ = console.report(&failure);
            failure.exit_code()
        }
    }
}

async fn start(arguments: &Arguments, console: &mut Console) -> Result<u8, Failure> {
    let mut stops = Stops::take()?;
    let root = arguments.root();
    let wrong = match std::fs::metadata(root) {
        Ok(found) if found.is_dir() => None,
        Ok(_) => Some(format!("{} is not a directory", root.display())),
        Err(error) => Some(format!("{} cannot be looked into: {error}", root.display())),
    };
    if let Some(wrong) = wrong {
        return Err(Failure::with_next(
            wrong,
            "name a directory that holds *.pvn.yaml files, as in examples/quickstart",
        ));
    }
    let params = pvnctl::args::parse_params("--param", &arguments.params)?;
    let secrets = secrets::read(&arguments.secrets)?;
    // Read before anything is started: a broken config is the first thing to know.
    let configs = files::read(&arguments.dir)?;
    let data_dir = arguments.data_dir.clone().unwrap_or_else(|| root.join(".pvn"));
    let started = tokio::select! {
        () = stops.next() => None,
        started = daemon(arguments, root, &data_dir) => Some(started?),
    };
    let Some(mut daemon) = started else { return interrupted(arguments, console) };
    let session = async {
        let mut session =
            Session::open(arguments, daemon.address(), data_dir, params, console).await?;
        session.given.secrets = secrets::set(&secrets, &session.client, console).await?;
        session.live(configs, &mut daemon, console).await
    };
    let ended = tokio::select! {
        () = stops.next() => None,
        ended = session => Some(ended),
    };
    let ended = ended.unwrap_or_else(|| interrupted(arguments, console));
    let stopped = tokio::select! {
        stopped = daemon.stop() => stopped.map_err(|error| Failure::user(format!("{:#}", anyhow::Error::from(error)))),
        () = stops.next() => std::process::exit(INTERRUPTED.into()),
    };
    ended.and_then(|code| stopped.map(|()| code))
}

/// Ctrl-C, at whatever moment.
fn interrupted(arguments: &Arguments, console: &mut Console) -> Result<u8, Failure> {
    console.data("stopping; commands that run go on, and the next start finds them\n")?;
    console.flush()?;
    Ok(if arguments.until_converged { INTERRUPTED } else { 0 })
}

/// Starts the daemon. Without `--listen` a port that is taken is no reason not to start.
async fn daemon(arguments: &Arguments, root: &Path, data_dir: &Path) -> Result<Daemon, Failure> {
    let taken = || std::net::TcpListener::bind(USUAL).is_err();
    let listen = match arguments.listen {
        Some(address) => address,
        None if taken() => SocketAddr::new(USUAL.ip(), 0),
        None => USUAL,
    };
    let settings = Settings {
        listen,
        local_root: Some(root.to_owned()),
        all_local: true,
        holds_applies: true,
        ..Settings::in_directory(data_dir)
    };
    Daemon::start(settings).await.map_err(|error| match error {
        StartError::Lock(LockError::Held { path, pid }) => Failure::with_next(
            format!(
                "the pvn-scheduler with pid {pid} runs already, with the data in {}",
                path.display()
            ),
            "stop that one first, or have it do what this one was to do: `pvnctl services push` \
             takes other values; a second one beside it, with another --data-dir, would apply the \
             same once more",
        ),
        other => Failure::user(format!("{:#}", anyhow::Error::from(other))),
    })
}

/// What is wrong with the files at present.
#[derive(PartialEq, Eq)]
struct Complaint {
    /// As it was told.
    told: String,
    /// Whether they can be read, and the scheduler does not take them.
    is_refused: bool,
}

/// One run of `dev`: the client half.
struct Session {
    client: Client,
    given: DevInputs,
    /// What stands before `pvnctl` in commands to type.
    arguments: Arguments,
    data_dir: PathBuf,
    events: Events,
    last_event: Option<String>,
    wishes: Vec<Wish>,
    complaint: Option<Complaint>,
    has_applied: bool,
    /// Whether no earlier run released anything from this data directory.
    is_new: bool,
    started: Instant,
}

impl Session {
    async fn open(
        arguments: &Arguments,
        address: SocketAddr,
        data_dir: PathBuf,
        params: std::collections::BTreeMap<String, String>,
        console: &mut Console,
    ) -> Result<Self, Failure> {
        let address = reachable(address);
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
            Some(server.as_str()).filter(|_| address != USUAL),
            Some(&token_file),
            None,
        );
        console.data(&story::banner(&server, &console.typed, console.colours_stdout()))?;
        console.flush()?;
        let is_new = !memory::is_there(&data_dir);
        // Opened before anything is applied, so that the story has a beginning.
        let events = client.events(&["v1", "events"], &[], None).await?;
        let last_event = newest_event(&client).await?.map(|seq| seq.to_string());
        Ok(Self {
            client,
            given: DevInputs { params, secrets: std::collections::BTreeMap::new() },
            arguments: arguments.clone(),
            data_dir,
            events,
            last_event,
            wishes: Vec::new(),
            complaint: None,
            has_applied: false,
            is_new,
            started: Instant::now(),
        })
    }

    async fn live(
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
        loop {
            tokio::select! {
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
                }
                _ = look.tick(), if self.arguments.until_converged => {
                    if let Some((code, said)) = self.converged(deadline).await?.and_then(|end| self.for_files(end, deadline)) {
                        self.catch_up(console).await?;
                        if code == 0 && self.is_new {
                            self.tell_what_was_found(console).await?;
                        }
                        console.tell(&story::verdict(code == 0, &said, console.colours_stdout()))?;
                        return Ok(code);
                    }
                }
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
    async fn apply(&mut self, configs: &Files, console: &mut Console) -> Result<(), Failure> {
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

    /// The same for changed files, where a mistake is shown and waited out.
    async fn apply_again(&mut self, configs: &Files, console: &mut Console) -> Result<(), Failure> {
        match self.apply(configs, console).await {
            Ok(()) => {
                self.complaint = None;
                Ok(())
            }
            Err(failure @ (Failure::Refused(_) | Failure::Token { .. } | Failure::Config(_))) => {
                self.wait_out(&failure, true, console)
            }
            Err(other) => Err(other),
        }
    }

    /// Shows a mistake once, however often an editor writes it. `is_refused`: the files can be
    /// read, and the scheduler does not take them.
    fn wait_out(
        &mut self,
        failure: &Failure,
        is_refused: bool,
        console: &mut Console,
    ) -> Result<(), Failure> {
        let complaint = Complaint { told: format!("{failure:?}"), is_refused };
        if self.complaint.as_ref() == Some(&complaint) {
            return Ok(());
        }
        self.complaint = Some(complaint);
        console.report(failure)?;
        console.say("what was applied before stays in force; waiting for the files to change")
    }

    /// The files as they are now, when that is something else than before and can be read.
    fn changed(&mut self, seen: &Files, console: &mut Console) -> Result<Option<Files>, Failure> {
        match files::read(&self.arguments.dir) {
            // What they were refused for may be elsewhere, and mended by now.
            Ok(files) if self.complaint.as_ref().is_some_and(|complaint| complaint.is_refused) => {
                Ok(Some(files))
            }
            Ok(files) if files.files == seen.files => {
                if self.complaint.take().is_some() {
                    console.say("the files are as they were applied again")?;
                }
                Ok(None)
            }
            Ok(files) => Ok(Some(files)),
            Err(failure) => self.wait_out(&failure, false, console).map(|()| None),
        }
    }

    /// Tells an event; when the stream ends it is opened again where it was.
    async fn tell(
        &mut self,
        event: Option<pvnctl::client::SseEvent>,
        console: &mut Console,
    ) -> Result<(), Failure> {
        let Some(event) = event else {
            self.events =
                self.client.events(&["v1", "events"], &[], self.last_event.as_deref()).await?;
            return Ok(());
        };
        self.last_event.clone_from(&event.id);
        let entry: LogEntry = serde_json::from_str(&event.data)
            .map_err(|error| Failure::user(format!("a log entry cannot be read: {error}")))?;
        if let Some(text) = story::tell(&entry, &console.typed, console.colours_stdout()) {
            console.tell(&text)?;
            console.flush()?;
        }
        Ok(())
    }

    /// Tells what was logged before the end was seen: its way is longer.
    async fn catch_up(&mut self, console: &mut Console) -> Result<(), Failure> {
        let newest = newest_event(&self.client).await?.unwrap_or(0);
        let until = Instant::now() + CATCH_UP_WITHIN;
        let told =
            |last: &Option<String>| last.as_ref().and_then(|id| id.parse().ok()).unwrap_or(0_u64);
        while told(&self.last_event) < newest {
            match tokio::time::timeout_at(until, self.events.next()).await {
                Ok(event) => self.tell(event?, console).await?,
                Err(_) => break,
            }
        }
        Ok(())
    }

    /// The exit code, and what is said of it, once it is clear.
    async fn converged(&self, deadline: Instant) -> Result<Option<(u8, String)>, Failure> {
        let (mut failed, mut waiting, mut there) = (Vec::new(), Vec::new(), Vec::new());
        for wish in &self.wishes {
            let service = wish.service(&self.client).await?;
            for goal in &wish.goals {
                match goal.judge(&service) {
                    GoalVerdict::Converged => {}
                    GoalVerdict::Waiting => waiting.extend(wait::open(goal, &service)),
                    GoalVerdict::Failed(channels) => {
                        let channels: Vec<_> = channels.iter().map(FailedIn::in_short).collect();
                        failed.push(format!(
                            "{}/{} in {}",
                            service.application,
                            service.name,
                            channels.join(", ")
                        ));
                    }
                    GoalVerdict::Never(why) => return Err(Failure::user(why)),
                }
            }
            there.push((wish, service));
        }
        let took = when::duration(self.started.elapsed());
        if failed.is_empty() && waiting.is_empty() {
            for (wish, service) in there {
                if let Some((words, next)) = wish.others(&self.client, &service).await? {
                    return Err(Failure::with_next(
                        format!("CONVERGED after {took}, but {words}"),
                        next,
                    ));
                }
            }
        }
        Ok(if !failed.is_empty() {
            Some((FAILED, format!("FAILED after {took}: {}", failed.join("; "))))
        } else if waiting.is_empty() {
            Some((0, format!("everything is CONVERGED after {took}")))
        } else if Instant::now() >= deadline {
            Some((TIMEOUT, format!("timeout after {took}: {}", waiting.join("; "))))
        } else {
            None
        })
    }
}

/// The number of the newest entry of the log.
async fn newest_event(client: &Client) -> Result<Option<u64>, Failure> {
    Ok(client
        .list::<LogEntry>(&["v1", "events"], &[], Some(1))
        .await?
        .items
        .first()
        .map(|entry| entry.seq))
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
