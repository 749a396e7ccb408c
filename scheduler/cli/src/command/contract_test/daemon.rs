//! A `pvn-scheduler dev` of one's own: over the same directory, with data that goes with it.

use std::fs::File;
use std::io::Read;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use schema::api::{Runtime, ServiceSummary};
use tempfile::TempDir;
use tokio::time::Instant;

use crate::args::USUAL_SERVER;
use crate::client::{Client, Token};
use crate::discover::{TOKEN_FILE, token_in};
use crate::failure::Failure;

/// How it tells where it listens.
const LISTENS: &str = "pvn listens on ";

/// Longest start: it reads the configs and makes a database.
const START_WITHIN: Duration = Duration::from_secs(30);

/// Longest stop: its own limit is 10 s.
const STOP_WITHIN: Duration = Duration::from_secs(15);

const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Most of what it said that is told where it does not start.
const SAID_LIMIT_BYTES: u64 = 64 << 10;

/// It runs until this is gone.
pub(super) struct TrialDaemon {
    child: Child,
    pub(super) client: Client,
    /// Where it says what is wrong.
    wrong: PathBuf,
    dir: PathBuf,
    /// Removed at last.
    _data: TempDir,
}

impl TrialDaemon {
    /// Starts it.
    ///
    /// # Errors
    /// The program is not to be found, or it does not start: what it said.
    pub(super) async fn start(dir: &Path, params: &[String]) -> Result<Self, Failure> {
        let data = tempfile::Builder::new().prefix("pvn-contract-").tempdir()?;
        let (said, wrong) = (data.path().join("said"), data.path().join("wrong"));
        let store = data.path().join("data");
        let program = program();
        let mut command = Command::new(&program);
        command.arg("dev").arg(dir).arg("--data-dir").arg(&store);
        command.args(["--listen", "127.0.0.1:0"]);
        command.args(params.iter().flat_map(|param| ["--param", param]));
        // A terminal's Ctrl-C is for us, who end it in order.
        command.process_group(0).stdin(Stdio::null());
        let spawned = command.stdout(File::create(&said)?).stderr(File::create(&wrong)?).spawn();
        let child = spawned.map_err(|error| {
            Failure::with_next(
                format!("cannot start {}: {error}", program.display()),
                "put `pvn-scheduler` beside `pvnctl` or on PATH",
            )
        })?;
        // Of an address that is no server's yet nothing is asked.
        let client = Client::new(USUAL_SERVER, None, None)?;
        let mut daemon = Self { child, client, wrong, dir: dir.to_owned(), _data: data };
        let until = Instant::now() + START_WITHIN;
        let server = loop {
            if let Some(server) = listens(&read(&said)?) {
                break server;
            }
            daemon.goes_on(until)?;
            tokio::time::sleep(LOOK_EVERY).await;
        };
        let file = store.join(TOKEN_FILE);
        let token = Token { text: token_in(&file)?, origin: file.display().to_string() };
        daemon.client = Client::new(&server, None, Some(token))?;
        Ok(daemon)
    }

    /// The services of the directory, once they are applied: it listens before that.
    ///
    /// # Errors
    /// It takes the configs for broken: what it said.
    pub(super) async fn services(&mut self, limit: usize) -> Result<Vec<ServiceSummary>, Failure> {
        let until = Instant::now() + START_WITHIN;
        loop {
            let services = self.client.list(&["v1", "services"], &[], Some(limit)).await?.items;
            let runtimes = self.client.list::<Runtime>(&["v1", "runtimes"], &[], Some(2)).await?;
            // One is always there.
            if !services.is_empty() || runtimes.items.len() > 1 {
                return Ok(services);
            }
            self.goes_on(until)?;
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }

    /// An error once it has ended, and at this instant.
    fn goes_on(&mut self, until: Instant) -> Result<(), Failure> {
        let ended = self.child.try_wait()?.is_some();
        if !ended && Instant::now() < until {
            return Ok(());
        }
        let why = if ended { "ended" } else { "did not begin in time" };
        let (dir, said) = (self.dir.display(), read(&self.wrong)?);
        Err(Failure::with_next(
            format!("`pvn-scheduler dev {dir}` {why}: {}", said.trim()),
            "mend what it says; `pvnctl validate DIR` checks the files alone",
        ))
    }

    /// Ends it, and waits for that.
    pub(super) async fn stop(mut self) {
        if let Ok(pid) = i32::try_from(self.child.id()) {
            let _gone = kill(Pid::from_raw(pid), Signal::SIGINT);
        }
        let until = Instant::now() + STOP_WITHIN;
        while Instant::now() < until && matches!(self.child.try_wait(), Ok(None)) {
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }
}

impl Drop for TrialDaemon {
    /// At once; nothing where it has ended.
    fn drop(&mut self) {
        let _gone = self.child.kill();
        let _reaped = self.child.wait();
    }
}

/// Beside this program, else on PATH.
fn program() -> PathBuf {
    let beside = std::env::current_exe().ok().map(|own| own.with_file_name("pvn-scheduler"));
    beside.filter(|program| program.is_file()).unwrap_or_else(|| PathBuf::from("pvn-scheduler"))
}

fn listens(said: &str) -> Option<String> {
    let line = said.lines().find_map(|line| line.strip_prefix(LISTENS))?;
    // All of the line, as it may be on its way.
    said.contains(&format!("{LISTENS}{line}\n")).then(|| line.trim().to_owned())
}

fn read(path: &Path) -> Result<String, Failure> {
    let mut bytes = Vec::new();
    File::open(path)?.take(SAID_LIMIT_BYTES).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}
