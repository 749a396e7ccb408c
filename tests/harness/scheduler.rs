//! A real `pvn-scheduler` process with a data directory of its own, and `pvnctl` against it.

use std::ffi::OsStr;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
use tempfile::TempDir;

use crate::{http, port, programs, wait};

/// A scheduler, started and stopped at will over one data directory. Dropping it kills it.
pub struct Scheduler {
    home: TempDir,
    child: Option<Child>,
    address: String,
    url: String,
    /// Who vouches for it, if it speaks TLS.
    authority: Option<PathBuf>,
}

/// How to start it.
#[derive(Clone, Default)]
pub struct Start<'a> {
    /// Where it dies by its own SIGKILL: `PVN_CRASH_AT`.
    pub crash_at: Option<&'a str>,
    /// Where it stops itself, as by SIGSTOP: `PVN_STOP_AT`.
    pub stop_at: Option<&'a str>,
    /// Where it waits, and for which file to go away: `PVN_HOLD_AT`.
    pub hold_at: Option<&'a str>,
    /// More variables.
    pub variables: &'a [(&'a str, &'a str)],
    /// More arguments.
    pub arguments: &'a [&'a str],
    /// The working directory, root of the runtime `local`; default: the home directory.
    pub root: Option<&'a Path>,
    /// Another path to its data directory.
    pub data_dir: Option<&'a Path>,
    /// More variables of its environment.
    pub environment: Vec<(&'a str, &'a OsStr)>,
}

impl Scheduler {
    /// A new one, running and ready.
    pub fn start() -> Self {
        let mut scheduler = Self::stopped();
        scheduler.run(&Start::default());
        scheduler
    }

    /// A new one that does not run yet.
    pub fn stopped() -> Self {
        Self::stopped_at("127.0.0.1")
    }

    /// A new one that does not run yet and will listen on this address, without TLS.
    ///
    /// # Panics
    /// When no directory can be made.
    pub fn stopped_at(address: &str) -> Self {
        let home = tempfile::Builder::new()
            .prefix("pvn-test-")
            .tempdir()
            .expect("a directory can be made");
        Self { home, child: None, address: address.to_owned(), url: String::new(), authority: None }
    }

    /// A new one that does not run yet and will listen on this address with a certificate of its
    /// own. Returns it with the arguments that it has to be started with.
    ///
    /// # Panics
    /// When no certificate can be made.
    pub fn stopped_with_tls_at(address: &str) -> (Self, Vec<String>) {
        let mut scheduler = Self::stopped_at(address);
        let made = rcgen::generate_simple_self_signed(vec![address.to_owned()])
            .expect("a certificate can be made");
        let file = |name: &str, text: String| {
            let path = scheduler.home().join(name);
            std::fs::write(&path, text).expect("a file can be written");
            path
        };
        let (certificate, key) =
            (file("cert.pem", made.cert.pem()), file("key.pem", made.signing_key.serialize_pem()));
        let arguments = [("--tls-cert", &certificate), ("--tls-key", &key)];
        let arguments = arguments
            .into_iter()
            .flat_map(|(flag, path)| [flag.to_owned(), path.to_string_lossy().into_owned()])
            .collect();
        scheduler.authority = Some(certificate);
        (scheduler, arguments)
    }

    /// One that others started, elsewhere; `token` is its first admin token. It cannot be started
    /// or stopped from here.
    ///
    /// # Panics
    /// When no directory can be made.
    pub fn elsewhere(url: &str, token: &str) -> Self {
        let mut scheduler = Self::stopped_at(url);
        url.clone_into(&mut scheduler.url);
        std::fs::create_dir_all(scheduler.data()).expect("a directory can be made");
        std::fs::write(scheduler.data().join("admin-token"), token).expect("a file can be written");
        scheduler
    }

    /// The directory that holds its data and its jobs' files.
    pub fn home(&self) -> &Path {
        self.home.path()
    }

    /// Its data directory.
    pub fn data(&self) -> PathBuf {
        self.home().join("data")
    }

    /// Its address.
    pub fn url(&self) -> &str {
        &self.url
    }

    fn is_on_loopback(&self) -> bool {
        self.address == "127.0.0.1"
    }

    /// Its process id.
    ///
    /// # Panics
    /// When it does not run.
    pub fn pid(&self) -> u32 {
        self.child.as_ref().expect("it runs").id()
    }

    /// Starts it and waits until it is ready.
    ///
    /// # Panics
    /// When it does not become ready.
    pub fn run(&mut self, start: &Start<'_>) {
        self.spawn(start);
        wait::until("the scheduler to be ready", || {
            if let Some(status) = self.exited() {
                panic!("the scheduler ended with {status} instead of starting:\n{}", self.log());
            }
            self.pvnctl(["runtimes", "list", "-o", "json"]).status.success().then_some(())
        });
    }

    /// Starts it, and waits until that is refused. Returns what it said.
    ///
    /// # Panics
    /// When it starts, or does not end with 1.
    pub fn is_refused(&mut self, start: &Start<'_>) -> String {
        let before = self.log().len();
        self.spawn(start);
        let status = wait::until("the start to be refused", || {
            assert!(!self.log()[before..].contains(" ready "), "it starts:\n{}", self.log());
            self.exited()
        });
        let said = self.log().split_off(before);
        assert_eq!(status.code(), Some(1), "{said}");
        said
    }

    /// Starts it without waiting for anything.
    ///
    /// # Panics
    /// When it runs already.
    pub fn spawn(&mut self, start: &Start<'_>) {
        assert!(self.child.is_none(), "it runs already");
        if self.url.is_empty() {
            let scheme = if self.authority.is_some() { "https" } else { "http" };
            self.url = format!("{scheme}://{}:{}", self.address, port::free(&self.address));
        }
        let log = File::options()
            .create(true)
            .append(true)
            .open(self.home().join("log"))
            .expect("the log can be written");
        let mut command = Command::new(programs::program("pvn-scheduler"));
        command
            .arg("serve")
            .args(
                (!self.is_on_loopback() && self.authority.is_none())
                    .then_some("--allow-plain-http"),
            )
            .args(["--listen", self.url.split_once("://").expect("it has a scheme").1])
            .arg("--data-dir")
            .arg(start.data_dir.unwrap_or(&self.data()))
            .args(start.arguments)
            .current_dir(start.root.unwrap_or(self.home()))
            .stdin(Stdio::null())
            .stdout(log.try_clone().expect("a file can be shared"))
            .stderr(log);
        command.envs(start.environment.iter().copied());
        if let Some(point) = start.crash_at {
            command.env("PVN_CRASH_AT", point);
        }
        if let Some(point) = start.stop_at {
            command.env("PVN_STOP_AT", point);
        }
        if let Some(point) = start.hold_at {
            command.env("PVN_HOLD_AT", point);
        }
        command.envs(start.variables.iter().copied());
        self.child = Some(command.spawn().expect("the scheduler can be started"));
    }

    /// What it printed so far, over all its runs.
    pub fn log(&self) -> String {
        std::fs::read_to_string(self.home().join("log")).unwrap_or_default()
    }

    /// How it ended, if it did.
    pub fn exited(&mut self) -> Option<ExitStatus> {
        let status = self.child.as_mut()?.try_wait().expect("a child can be asked")?;
        self.child = None;
        Some(status)
    }

    /// `kill -9`, and waits until it is gone.
    pub fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            child.kill().expect("a child can be killed");
            child.wait().expect("a child can be waited for");
        }
    }

    /// SIGTERM, and waits for its end.
    ///
    /// # Panics
    /// When it does not end.
    pub fn stop(&mut self) -> ExitStatus {
        let pid = i32::try_from(self.pid()).expect("process ids fit");
        kill(Pid::from_raw(pid), Signal::SIGTERM).expect("a child can be asked to stop");
        wait::until("the scheduler to stop", || self.exited())
    }

    /// A GET with the admin token: the HTTP status and the body, or `None` when nobody answers.
    pub fn get(&self, path: &str) -> Option<(u16, String)> {
        let answer = self.http(reqwest::Method::GET, path).bearer_auth(self.token()).send().ok()?;
        Some((answer.status().as_u16(), answer.text().ok()?))
    }

    /// A request without any token, not sent yet; it gives up after [`wait::PATIENCE`].
    ///
    /// # Panics
    /// When there is no HTTP client to be had.
    pub fn http(&self, method: reqwest::Method, path: &str) -> reqwest::blocking::RequestBuilder {
        http::client().request(method, format!("{}{path}", self.url))
    }

    /// The first admin token.
    ///
    /// # Panics
    /// When the data directory holds none.
    pub fn token(&self) -> String {
        let text = std::fs::read_to_string(self.data().join("admin-token"))
            .expect("the admin token is in the data directory");
        text.trim().to_owned()
    }

    /// Runs `pvnctl` against it, to its end.
    pub fn pvnctl<S: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = S>) -> Output {
        self.client(arguments).output().expect("pvnctl can be started")
    }

    /// `pvnctl` against it, not started.
    pub fn client<S: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = S>) -> Command {
        let mut command = Command::new(programs::program("pvnctl"));
        if !self.is_on_loopback() && self.data().join("admin-token").exists() {
            // The file is found for a scheduler on the loopback address only.
            command.env("PVN_AUTH_TOKEN", self.token());
        }
        if let Some(authority) = &self.authority {
            command.env("PVN_CA_FILE", authority);
        }
        command
            .args(arguments)
            .env("PVN_SERVER", &self.url)
            .env("PVN_DATA_DIR", self.data())
            .current_dir(self.home())
            .stdin(Stdio::null());
        command
    }

    /// What `pvnctl … -o json` prints.
    ///
    /// # Panics
    /// When it fails or prints something else.
    pub fn json(&self, arguments: &[&str]) -> Value {
        let output = self.ok(&[arguments, &["-o", "json"]].concat());
        serde_json::from_str(&output).unwrap_or_else(|error| {
            panic!("pvnctl {arguments:?} printed no JSON ({error}): {output}")
        })
    }

    /// What `pvnctl` prints on stdout.
    ///
    /// # Panics
    /// When it fails.
    pub fn ok(&self, arguments: &[&str]) -> String {
        let output = self.pvnctl(arguments);
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(
            output.status.success(),
            "pvnctl {arguments:?} ended with {}:\n{stderr}\nscheduler:\n{}",
            output.status,
            self.log()
        );
        String::from_utf8(output.stdout).expect("pvnctl prints UTF-8")
    }

    /// The channel of a service in application `app`, from `services get`.
    ///
    /// # Panics
    /// When there is none.
    pub fn channel(&self, service: &str, channel: &str) -> Value {
        let service = self.json(&["services", "get", service, "--app", "app"]);
        let channels = service["channels"].as_array().expect("channels is a list");
        channels
            .iter()
            .find(|entry| entry["channel"] == channel)
            .unwrap_or_else(|| panic!("no channel {channel} in {service}"))
            .clone()
    }

    /// The jobs of this kind of a service in application `app`, newest first.
    ///
    /// # Panics
    /// When they are no list.
    pub fn jobs(&self, service: &str, kind: &str) -> Vec<Value> {
        let of = ["jobs", "list", "--app", "app", "--service", service, "--kind", kind];
        self.json(&of).as_array().expect("jobs are a list").clone()
    }

    /// Waits until the channel has this status and returns it.
    ///
    /// # Panics
    /// When it does not come, with the situation and the channel as they are then.
    pub fn channel_becomes(&self, service: &str, channel: &str, status: &str) -> Value {
        let mut last = Value::Null;
        let found = wait::within(wait::PATIENCE * 2, || {
            last = self.channel(service, channel);
            (last["status"] == status).then(|| last.clone())
        });
        found.unwrap_or_else(|| {
            panic!(
                "{}\n{service}/{channel} is not {status} but {last:#}",
                self.situation(service, channel)
            )
        })
    }

    /// What somebody who wonders would look at: the log, the explanation of a channel of a service
    /// in application `app`, and its last jobs.
    pub fn situation(&self, service: &str, channel: &str) -> String {
        let explained =
            self.pvnctl(["services", "explain", service, "--app", "app", "--channel", channel]);
        let jobs = self.pvnctl([
            "jobs",
            "list",
            "--app",
            "app",
            "--service",
            service,
            "--channel",
            channel,
            "--limit",
            "20",
        ]);
        let said = [&explained.stdout, &explained.stderr, &jobs.stdout, &jobs.stderr]
            .map(|said| String::from_utf8_lossy(said));
        format!("{}\n{}", self.log(), said.concat())
    }
}

impl Drop for Scheduler {
    fn drop(&mut self) {
        self.kill();
    }
}
