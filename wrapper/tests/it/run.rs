//! Runs the wrapper and checks what must hold after every run.

use std::ffi::OsStr;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use base64::Engine;
use schema::id::BlobId;
use schema::report::{INLINE_LIMIT_BYTES, Report};

/// How long a condition may take: only a test that fails waits for so long, and some machines are
/// slow and busy.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// For what must end long before something else does that takes a minute.
pub(crate) const SOON: Duration = Duration::from_secs(40);

/// A wrapper to be run in a directory of its own.
pub(crate) struct Wrapper {
    pub(crate) directory: tempfile::TempDir,
    pub(crate) command: Command,
    mark: String,
}

/// How a run ended.
pub(crate) struct Run {
    pub(crate) code: i32,
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: String,
    pub(crate) report: Report,
    pub(crate) took: Duration,
    pub(crate) directory: tempfile::TempDir,
}

/// A wrapper that runs and was not waited for.
pub(crate) struct Running {
    pub(crate) child: Child,
    pub(crate) directory: tempfile::TempDir,
    mark: String,
    began: Instant,
}

/// `pvn-wrapper exec FLAGS -- COMMAND` to its end.
pub(crate) fn run(flags: &[&str], command: &[&str]) -> Run {
    Wrapper::new(flags, command).run()
}

/// The same with a script for `sh`.
pub(crate) fn shell(flags: &[&str], script: &str) -> Run {
    run(flags, &["sh", "-c", script])
}

impl Wrapper {
    pub(crate) fn new(flags: &[&str], command: &[&str]) -> Self {
        Self::of(
            flags
                .iter()
                .map(OsStr::new)
                .chain(["--".as_ref()])
                .chain(command.iter().map(OsStr::new)),
        )
    }

    pub(crate) fn of<'a>(arguments: impl IntoIterator<Item = &'a OsStr>) -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let mark = format!("{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let directory = tempfile::tempdir().unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_pvn-wrapper"));
        command
            .arg("exec")
            .arg("--report")
            .arg(directory.path().join("report.json"))
            .args(arguments);
        command
            .current_dir(directory.path())
            .env("WRAPPER_TEST_MARK", &mark)
            .env("TMPDIR", directory.path());
        command
            .env_remove("PVN_JOB_DIR")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        Self { directory, command, mark }
    }

    /// Starts it by another program, which gets these arguments and then the wrapper's command
    /// line.
    pub(crate) fn through<'a>(
        mut self,
        program: &str,
        arguments: impl IntoIterator<Item = &'a str>,
    ) -> Self {
        let mut command = Command::new(program);
        command.args(arguments).arg(self.command.get_program()).args(self.command.get_args());
        command
            .envs(self.command.get_envs().filter_map(|(key, value)| Some((key, value?))))
            .env_remove("PVN_JOB_DIR");
        command
            .current_dir(self.directory.path())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        self.command = command;
        self
    }

    /// Whatever dispositions this test was started with: a runner in the background may ignore
    /// SIGINT and SIGHUP, and the wrapper hands on what it was given.
    pub(crate) fn with_default_signals(self) -> Self {
        self.through("env", ["--default-signal"])
    }

    pub(crate) fn stdin(mut self, stdin: Stdio) -> Self {
        self.command.stdin(stdin);
        self
    }

    pub(crate) fn env(mut self, key: &str, value: impl AsRef<OsStr>) -> Self {
        self.command.env(key, value);
        self
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    pub(crate) fn spawn(mut self) -> Running {
        let began = Instant::now();
        let child = self.command.spawn().unwrap();
        Running { child, directory: self.directory, mark: self.mark, began }
    }

    pub(crate) fn run(self) -> Run {
        self.spawn().wait()
    }

    /// Fails if any process of its runs is left, for tests that start it many times.
    pub(crate) fn check_nothing_is_left(&self) {
        assert_eq!(marked(&self.mark), Vec::<String>::new(), "processes are left");
    }
}

impl Running {
    pub(crate) fn signal(&self, number: i32) {
        let pid = self.child.id().to_string();
        // The shell's, for those without a name too.
        let status = Command::new("sh")
            .args(["-c", "kill -\"$0\" \"$1\"", &number.to_string(), &pid])
            .status()
            .unwrap();
        assert!(status.success());
    }

    /// Kills what it runs, and that alone.
    pub(crate) fn kill_command(&self) {
        let children = format!("/proc/{0}/task/{0}/children", self.child.id());
        let children = std::fs::read_to_string(children).unwrap();
        let command = children.split_whitespace().next().expect("it runs a command");
        assert!(Command::new("kill").args(["-KILL", command]).status().unwrap().success());
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Waits until the command has written this file, and returns what is in it.
    pub(crate) fn until_written(&self, name: &str) -> String {
        let path = self.path(name);
        until(&format!("{} is written", path.display()), || {
            std::fs::read_to_string(&path).ok().filter(|text| text.ends_with('\n'))
        })
    }

    pub(crate) fn wait(self) -> Run {
        self.wait_unless_killed(None).expect("whatever kills it is an error")
    }

    /// The same for one that this signal may have ended before its `main`, where the kernel's own
    /// answer holds: then there is no report, and nothing was started.
    pub(crate) fn wait_unless_killed(self, signal: Option<i32>) -> Option<Run> {
        let heard = [self.child.stdout.is_some(), self.child.stderr.is_some()];
        let Output { status, stdout, stderr } = self.child.wait_with_output().unwrap();
        let took = self.began.elapsed();
        let path = self.directory.path().join("report.json");
        if signal.is_some() && status.signal() == signal {
            assert!(!path.exists(), "who reports is not killed");
            assert_eq!(marked(&self.mark), Vec::<String>::new(), "processes are left");
            return None;
        }
        let shown = [&stdout, &stderr]
            .into_iter()
            .zip(heard)
            .map(|(bytes, heard)| heard.then_some(bytes.as_slice()));
        let shown: Vec<_> = shown.collect();
        let text = String::from_utf8_lossy(&stderr).into_owned();
        let code =
            status.code().unwrap_or_else(|| panic!("the wrapper itself died: {status}: {text}"));
        let report =
            std::fs::read(path).unwrap_or_else(|error| panic!("no report: {error}: {text}"));
        let report: Report = serde_json::from_slice(&report).unwrap();
        check_streams(&report, &shown);
        if report.leaked.iter().all(|left| !left.alive) {
            assert_eq!(marked(&self.mark), Vec::<String>::new(), "processes are left");
        }
        Some(Run { code, stdout, stderr: text, report, took, directory: self.directory })
    }
}

impl Run {
    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.stdout).into_owned()
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }
}

/// Sizes and digests agree with what is inline, and with what passed through as far as the test has
/// heard it.
fn check_streams(report: &Report, shown: &[Option<&[u8]>]) {
    if report.exec_error.is_some() {
        return;
    }
    let streams = [
        (
            &report.stdout_inline,
            report.stdout_bytes,
            report.stdout_blob_id,
            report.stdout_head_bytes,
        ),
        (
            &report.stderr_inline,
            report.stderr_bytes,
            report.stderr_blob_id,
            report.stderr_head_bytes,
        ),
    ];
    for ((inline, size, blob, head), shown) in streams.into_iter().zip(shown) {
        let blob = blob.unwrap();
        let kept = inline
            .as_ref()
            .map(|inline| base64::engine::general_purpose::STANDARD.decode(inline).unwrap());
        match &kept {
            Some(bytes) => {
                assert_eq!(blob, BlobId::of(bytes));
                assert!(head.is_some() || bytes.len() as u64 == size);
            }
            None => assert!(size == 0 || size > INLINE_LIMIT_BYTES as u64 || head == Some(0)),
        }
        // What the wrapper says itself is on standard error too; a reader that was taken for dead
        // has not seen everything.
        let Some(shown) =
            shown.filter(|shown| !String::from_utf8_lossy(shown).contains("pvn-wrapper"))
        else {
            continue;
        };
        assert_eq!(shown.len() as u64, size, "all that was written is counted");
        match (head, kept) {
            (None, _) => assert_eq!(blob, BlobId::of(shown)),
            (Some(head), Some(kept)) => {
                let (head, tail) = kept.split_at(usize::try_from(head).unwrap());
                assert!(
                    shown.starts_with(head) && shown.ends_with(tail),
                    "what is kept is the head and the tail"
                );
            }
            (Some(_), None) => {}
        }
    }
}

/// Counts and digests what is written to it.
#[derive(Default)]
pub(crate) struct Digest(u64, sha2::Sha256);

impl Digest {
    pub(crate) fn finish(self) -> (u64, BlobId) {
        (self.0, BlobId::from_digest(sha2::Digest::finalize(self.1).into()))
    }
}

impl std::io::Write for Digest {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0 += bytes.len() as u64;
        sha2::Digest::update(&mut self.1, bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// The running processes that have this mark in their environment.
fn marked(mark: &str) -> Vec<String> {
    let wanted = format!("WRAPPER_TEST_MARK={mark}");
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let read = |file: &str| std::fs::read(entry.path().join(file)).unwrap_or_default();
        if read("environ").split(|byte| *byte == 0).any(|variable| variable == wanted.as_bytes()) {
            found.push(format!(
                "{:?}: {}",
                entry.file_name(),
                String::from_utf8_lossy(&read("cmdline"))
            ));
        }
    }
    found
}

/// Whether a process runs: one that has ended and that nobody waited for yet does not.
pub(crate) fn is_alive(pid: i32) -> bool {
    let stat = std::fs::read_to_string(Path::new("/proc").join(pid.to_string()).join("stat"));
    stat.is_ok_and(|stat| !stat[stat.rfind(')').unwrap()..].starts_with(") Z"))
}

/// Makes a program of these bytes. Another process writes it: whoever a test starts at this moment
/// would inherit our descriptor for a while, and what anybody has open for writing cannot be
/// executed.
pub(crate) fn write_program(path: &Path, bytes: &[u8], mode: u32) {
    let source = path.with_extension("source");
    std::fs::write(&source, bytes).unwrap();
    assert!(Command::new("cp").arg(&source).arg(path).status().unwrap().success());
    std::fs::set_permissions(path, PermissionsExt::from_mode(mode)).unwrap();
}

/// Waits for a condition.
pub(crate) fn until<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(Instant::now() < deadline, "waited in vain until {what}");
        std::thread::park_timeout(Duration::from_millis(2));
    }
}
