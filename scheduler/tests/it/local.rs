//! Local jobs with real processes under the real wrapper: start, end, stop, tail, and what a daemon
//! finds after a restart in each phase. A restart is a second runner over the same directory, after
//! the first let go of its jobs.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use pvn_scheduler::blobs::{Blobs, Keep};
use pvn_scheduler::compile::Command;
use pvn_scheduler::runner::local::{LocalRunner, LocalSettings, find_wrapper};
use pvn_scheduler::runner::{End, Instance, JobSpec, Runner, RunnerEvent};
use schema::id::{BlobId, InstanceId, JobId};
use schema::report::{Report, StructuredKind};
use schema::spool::{CLAIM, REPORT, Stream};
use schema::status::JobKind;
use tokio::sync::mpsc;

use crate::wait;

mod left;
mod plans;
mod recovery;
mod strays;

const PATIENCE: Duration = Duration::from_secs(20);

struct World {
    directory: tempfile::TempDir,
    blobs: Blobs,
    runner: LocalRunner,
    news: mpsc::Receiver<RunnerEvent>,
}

impl World {
    async fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let blobs = Blobs::open(&directory.path().join("blobs")).unwrap();
        Self::of(directory, blobs).await
    }

    async fn of(directory: tempfile::TempDir, blobs: Blobs) -> Self {
        let (runner, news) = open_runner(directory.path(), &blobs);
        assert_eq!(runner.recover(&[]).await, []);
        Self { directory, blobs, runner, news }
    }

    /// A daemon that is gone at once, and its successor; what the successor says was never started.
    async fn restart(&mut self, unfinished: &[JobId]) -> Vec<JobId> {
        self.runner.detach().await;
        (self.runner, self.news) = open_runner(self.directory.path(), &self.blobs);
        self.runner.recover(unfinished).await
    }

    fn spool(&self, job: JobId) -> PathBuf {
        self.directory.path().join("spool").join(job.to_string())
    }

    async fn next(&mut self) -> RunnerEvent {
        tokio::time::timeout(PATIENCE, self.news.recv())
            .await
            .expect("news in time")
            .expect("the runner lives")
    }

    async fn ended(&mut self) -> (JobId, End, bool) {
        loop {
            if let RunnerEvent::Ended { job, end, gone } = self.next().await {
                return (job, end, gone);
            }
        }
    }

    async fn report(&mut self) -> Report {
        match self.ended().await {
            (_, End::Reported(report), _) => *report,
            (_, other, _) => panic!("no report: {other:?}"),
        }
    }

    /// Runs to the end and forgets.
    async fn run(&mut self, spec: JobSpec) -> Report {
        let job = spec.job;
        self.runner.start(spec);
        let report = self.report().await;
        self.runner.forget(vec![job]).await;
        report
    }

    fn text(&self, blob: Option<BlobId>) -> String {
        String::from_utf8(self.blobs.read(blob.unwrap(), 0, 1 << 20).unwrap().unwrap()).unwrap()
    }

    /// Waits until the file is there and not empty.
    async fn until_written(&self, path: &Path) -> String {
        let written = wait::until(PATIENCE, async || {
            std::fs::read_to_string(path).ok().filter(|text| !text.is_empty())
        });
        written.await.unwrap_or_else(|| panic!("{} was not written", path.display()))
    }

    fn file(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }
}

/// A runner whose spool is `spool` in this directory, and what it tells.
pub(crate) fn open_runner(
    directory: &Path,
    blobs: &Blobs,
) -> (LocalRunner, mpsc::Receiver<RunnerEvent>) {
    let (news, told) = mpsc::channel(64);
    let settings = LocalSettings {
        spool: directory.join("spool"),
        instances: directory.join("instances"),
        cache: directory.join("cache"),
        wrapper: find_wrapper(None).expect("`cargo build -p pvn-wrapper` was run"),
        started_in: directory.to_owned(),
        environment: std::env::vars_os().collect(),
    };
    (LocalRunner::open(settings, blobs.clone(), news).unwrap(), told)
}

fn spec(name: &str, argv: &[&str]) -> JobSpec {
    // Tests run together, and left-over processes are found by the job's id.
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let unique = [std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed)].map(u32::to_le_bytes);
    let job = JobId::derive(&[&unique[0], &unique[1]]);
    JobSpec {
        env: vec![("PVN_JOB_ID".to_owned(), job.to_string())],
        ..JobSpec::new(job, JobKind::Fetch, Command::new(name, argv))
    }
}

fn shell(name: &str, script: &str) -> JobSpec {
    spec(name, &["sh", "-c", script])
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_ends_with_its_exit_code_and_both_streams_in_the_blob_store() {
    let mut world = World::new().await;
    let report = world.run(shell("a", "echo out; echo err >&2; exit 3")).await;
    assert_eq!(report.exit_code, Some(3));
    assert_eq!(
        (world.text(report.stdout_blob_id), world.text(report.stderr_blob_id)),
        ("out\n".into(), "err\n".into())
    );
    assert_eq!((report.stdout_inline, report.stderr_inline), (None, None));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_large_stream_is_in_the_blob_store_too() {
    let mut world = World::new().await;
    let report = world.run(shell("a", "seq 100000")).await;
    let expected: String = (1..=100_000).map(|i| format!("{i}\n")).collect();
    assert!(world.text(report.stdout_blob_id) == expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_forgotten_job_leaves_nothing_in_the_spool() {
    let mut world = World::new().await;
    let job = shell("a", "seq 100000; sleep 0.3");
    let spool = world.spool(job.job);
    world.run(job).await;
    assert!(!spool.exists());
    assert_eq!(world.runner.running(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn starting_a_job_again_changes_nothing() {
    let mut world = World::new().await;
    let started = world.file("started");
    let again = shell("a", &format!("echo x >> {}; sleep 0.2", started.display()));
    world.runner.start(again.clone());
    world.runner.start(again.clone());
    assert_eq!(world.report().await.exit_code, Some(0));
    world.runner.start(again);
    assert_eq!(world.report().await.exit_code, Some(0), "what is not forgotten is told again");
    assert_eq!(std::fs::read_to_string(started).unwrap(), "x\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_that_is_not_there_is_told_with_its_name() {
    let mut world = World::new().await;
    let report = world.run(spec("a", &["no-such-command-anywhere"])).await;
    assert!(report.exec_error.unwrap().contains("no-such-command-anywhere"));
    assert!(!report.surroundings);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_working_directory_that_is_not_there_is_told_with_its_path() {
    let mut world = World::new().await;
    let mut missing = shell("a", "true");
    missing.command.working_directory = Some("no/such".to_owned());
    world.runner.start(missing);
    let (_, end, _) = world.ended().await;
    let End::NotStarted { why, surroundings: false } = end else { panic!("{end:?}") };
    assert!(why.contains("no/such"), "{why}");
}

#[tokio::test(flavor = "multi_thread")]
async fn bad_input_too_large_an_environment_is_told_as_such_and_no_fault_of_the_wrapper() {
    let mut world = World::new().await;
    let mut large = shell("a", "true");
    // Longest text that the kernel takes, with its NUL: 128 KiB.
    large.env.push(("CATALOG".to_owned(), "x".repeat(128 << 10)));
    world.runner.start(large);
    let (_, end, _) = world.ended().await;
    let End::NotStarted { why, surroundings: false } = end else { panic!("{end:?}") };
    assert!(
        why.contains("arguments and environment are too long")
            && why.contains("`CATALOG`, with 128 KiB"),
        "{why}"
    );
    assert!(why.contains("file") && !why.contains("pvn-wrapper"), "{why}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_runs_in_its_working_directory_with_its_environment() {
    let mut world = World::new().await;
    std::fs::create_dir_all(world.file("root/sub")).unwrap();
    let mut job =
        shell("a", "pwd; echo $GREETING; echo ${PVN_TOKEN-none}; ps -o sid= -p $$ >/dev/null");
    job.root = Some("root".into());
    job.command.working_directory = Some("sub".to_owned());
    job.env.push(("GREETING".to_owned(), "hello".to_owned()));
    let report = world.run(job).await;
    let text = world.text(report.stdout_blob_id);
    let expected = std::fs::canonicalize(world.file("root/sub")).unwrap();
    assert_eq!(text, format!("{}\nhello\nnone\n", expected.display()));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_timeout_ends_a_job() {
    let mut world = World::new().await;
    let mut job = spec("a", &["sleep", "60"]);
    job.timeout_ms = Some(50);
    let report = world.run(job).await;
    assert!(report.timed_out);
    assert_eq!(report.signal.as_deref(), Some("SIGTERM"));
}

#[tokio::test(flavor = "multi_thread")]
async fn structured_output_is_checked() {
    let mut world = World::new().await;
    let mut job = shell("a", r#"echo '{"objects":[{"name":"web","objectType":"X"}]}'"#);
    job.command.expect = Some(StructuredKind::Fetch);
    let good = world.run(job.clone()).await.structured.unwrap();
    assert_eq!(good.value.unwrap()["objects"][0]["name"], "web");
    job.command.argv[2] = "echo nonsense".to_owned();
    let report = world.run(job).await;
    assert!(!report.structured.unwrap().errors.is_empty());
    assert!(report.bad_output.unwrap().contains("nonsense"));
}

#[tokio::test(flavor = "multi_thread")]
async fn secrets_are_masked_in_what_is_kept() {
    let mut world = World::new().await;
    let mut job = shell("a", "echo my $TOKEN; seq 20000; echo $TOKEN");
    job.env.push(("TOKEN".to_owned(), "hunter2-hunter2".to_owned()));
    job.secret_keys.push("TOKEN".to_owned());
    let report = world.run(job).await;
    let text = world.text(report.stdout_blob_id);
    assert!(text.starts_with("my ***\n1\n") && text.ends_with("\n20000\n***\n"), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn wrong_flags_of_the_users_own_wrapper_run_nothing_and_are_told() {
    let mut world = World::new().await;
    let report = world.run(spec("a", &["pvn-wrapper", "exec", "--nonsense", "--", "true"])).await;
    assert!(report.exec_error.unwrap().contains("--nonsense"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_that_lasts_is_told_as_started_and_can_be_read_along() {
    let mut world = World::new().await;
    let go = world.file("go");
    let job = shell(
        "a",
        &format!("echo hello; until [ -e {} ]; do sleep 0.01; done; echo bye", go.display()),
    );
    let id = job.job;
    world.runner.start(job);
    assert!(matches!(world.next().await, RunnerEvent::Started { job, .. } if job == id));
    assert_eq!(world.until_written(&world.spool(id).join("stdout")).await, "hello\n");
    let tail = world.runner.tail(id, Stream::Stdout, 2, 100).await.unwrap().unwrap();
    assert_eq!((tail.bytes.as_slice(), tail.running), (b"llo\n".as_slice(), true));
    std::fs::write(go, "").unwrap();
    let report = world.report().await;
    assert_eq!(world.text(report.stdout_blob_id), "hello\nbye\n");
    world.runner.forget(vec![id]).await;
    assert_eq!(world.runner.tail(id, Stream::Stdout, 0, 100).await.unwrap(), None);
}
