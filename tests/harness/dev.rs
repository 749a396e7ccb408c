//! A real `pvn-scheduler dev` over a copy of an example.

use std::fs::File;
use std::io::{Seek, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tempfile::TempDir;

use crate::{copy, port, programs, wait};

/// A copy of an example, and `dev` over it. Dropping it ends `dev`.
pub struct Dev {
    home: TempDir,
    child: Option<Child>,
    address: String,
}

impl Dev {
    /// A copy of the example, nothing started.
    pub fn of(example: &str) -> Self {
        let home =
            tempfile::Builder::new().prefix("pvn-dev-").tempdir().expect("a directory can be made");
        copy::example(example, &home.path().join("example"));
        Self { home, child: None, address: format!("127.0.0.1:{}", port::free("127.0.0.1")) }
    }

    /// The copied example.
    pub fn directory(&self) -> PathBuf {
        self.home.path().join("example")
    }

    /// Where it listens.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The first admin token.
    ///
    /// # Panics
    /// When there is none yet.
    pub fn token(&self) -> String {
        let file = self.directory().join(".pvn/admin-token");
        std::fs::read_to_string(file).expect("a start makes one").trim().to_owned()
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(programs::program("pvn-scheduler"));
        // From another directory, as a person might: nothing may depend on where it is started.
        command
            .arg("dev")
            .arg(self.directory())
            .args(["--listen", &self.address])
            .args(arguments)
            .current_dir(self.home.path())
            .stdin(Stdio::null());
        command
    }

    /// Runs it to its end: for `--until-converged`.
    pub fn to_the_end(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().expect("dev can be started")
    }

    /// Runs it to its end, or until it kills itself at the named point, while `meanwhile` does what
    /// a person would, again and again.
    pub fn to_the_end_with(
        &self,
        crash_at: Option<&str>,
        arguments: &[&str],
        mut meanwhile: impl FnMut(),
    ) -> ExitStatus {
        let mut child = self.spawn(crash_at, arguments);
        wait::until_within(wait::PATIENCE * 3, "dev to end", || {
            meanwhile();
            child.try_wait().expect("a child can be asked")
        })
    }

    /// Starts it as a background job of a script does, with SIGINT ignored, and leaves it running.
    pub fn start_in_background(&mut self, arguments: &[&str]) {
        self.start_after("trap '' INT", arguments);
    }

    /// Starts it from a shell that has done this before, and leaves it running.
    pub fn start_after(&mut self, done: &str, arguments: &[&str]) {
        let inner = self.command(arguments);
        let mut command = Command::new("sh");
        command
            .args(["-c", &format!("{done}; exec \"$@\""), "sh"])
            .arg(inner.get_program())
            .args(inner.get_args());
        command.current_dir(self.home.path()).stdin(Stdio::null());
        self.child = Some(self.spawn_with(command));
    }

    /// Starts it and leaves it running.
    pub fn start(&mut self, arguments: &[&str]) {
        self.child = Some(self.spawn(None, arguments));
    }

    fn spawn(&self, crash_at: Option<&str>, arguments: &[&str]) -> Child {
        let mut command = self.command(arguments);
        command.envs(crash_at.map(|point| ("PVN_CRASH_AT", point)));
        self.spawn_with(command)
    }

    fn spawn_with(&self, mut command: Command) -> Child {
        let log = File::create(self.log_path()).expect("the log can be written");
        command
            .stdout(log.try_clone().expect("a file can be shared"))
            .stderr(log)
            .spawn()
            .expect("dev can be started")
    }

    fn log_path(&self) -> PathBuf {
        self.home.path().join("log")
    }

    /// What it printed since it was started.
    pub fn log(&self) -> String {
        std::fs::read_to_string(self.log_path()).unwrap_or_default()
    }

    /// Waits until it printed this.
    pub fn prints(&self, text: &str) {
        wait::until(&format!("`{text}` in what dev prints"), || {
            self.log().contains(text).then_some(())
        });
    }

    /// Waits until a file of the example holds this.
    pub fn file_becomes(&self, name: &str, wanted: &str) {
        let path = self.directory().join(name);
        let holds = |path: &Path| std::fs::read_to_string(path).is_ok_and(|text| text == wanted);
        wait::until(&format!("{name} to hold {wanted:?}"), || holds(&path).then_some(()));
    }

    /// Runs `pvnctl` against it as its output tells people to.
    pub fn pvnctl(&self, arguments: &[&str]) -> Output {
        self.pvnctl_with(arguments, "")
    }

    /// The same with this on its stdin.
    pub fn pvnctl_with(&self, arguments: &[&str], input: &str) -> Output {
        let mut stdin = tempfile::tempfile().expect("a file can be made");
        stdin
            .write_all(input.as_bytes())
            .and_then(|()| stdin.rewind())
            .expect("a file can be written");
        let mut command = Command::new(programs::program("pvnctl"));
        command
            .args(arguments)
            .env("PVN_SERVER", format!("http://{}", self.address))
            .env("PVN_DATA_DIR", self.directory().join(".pvn"));
        command.stdin(stdin).output().expect("pvnctl can be started")
    }

    /// Ctrl-C, and how it ended.
    ///
    /// # Panics
    /// When it does not run, or does not end.
    pub fn interrupt(&mut self) -> ExitStatus {
        let mut child = self.child.take().expect("it runs");
        kill(Pid::from_raw(i32::try_from(child.id()).expect("process ids fit")), Signal::SIGINT)
            .expect("a child can be interrupted");
        wait::until("dev to stop", || child.try_wait().expect("a child can be asked"))
    }
}

impl Drop for Dev {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            child.kill().expect("a child can be killed");
            child.wait().expect("a child can be waited for");
        }
    }
}
