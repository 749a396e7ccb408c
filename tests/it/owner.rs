//! One database has one owner (promise P1): two daemons on it, a data directory that was copied, a
//! spool directory that is lost, a daemon that slept while another one took over.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
use tests::files::Files;
use tests::scheduler::{Scheduler, Start};
use tests::wait;

/// How long a daemon may take to see that it is not wanted: it watches the other one for two
/// renewals at most.
const REFUSED_WITHIN: Duration = Duration::from_secs(60);

/// A database outside of every data directory, its key, and the outside world of the jobs.
struct Shared {
    home: tempfile::TempDir,
    files: Files,
    arguments: Vec<String>,
}

impl Shared {
    fn new() -> Self {
        let home = tempfile::tempdir().expect("a directory can be made");
        let files = Files::new(home.path());
        let database = format!("sqlite:{}", home.path().join("pvn.db").display());
        let key = home.path().join("key").display().to_string();
        Self {
            files,
            arguments: vec![
                "--database-url".to_owned(),
                database,
                "--secret-key-file".to_owned(),
                key,
            ],
            home,
        }
    }

    fn root(&self) -> &Path {
        self.home.path()
    }

    fn run(&self, scheduler: &mut Scheduler) {
        self.with(|start| scheduler.run(start));
    }

    fn spawn(&self, scheduler: &mut Scheduler) {
        self.with(|start| scheduler.spawn(start));
    }

    fn with(&self, act: impl FnOnce(&Start<'_>)) {
        let arguments: Vec<&str> = self.arguments.iter().map(String::as_str).collect();
        act(&Start { arguments: &arguments, root: Some(self.root()), ..Start::default() });
    }

    /// A second daemon that knows the first one's admin token.
    fn second(first: &Scheduler) -> Scheduler {
        let second = Scheduler::stopped();
        std::fs::create_dir(second.data()).expect("a directory can be made");
        std::fs::copy(first.data().join("admin-token"), second.data().join("admin-token"))
            .expect("the token can be copied");
        second
    }
}

fn refused(scheduler: &mut Scheduler) -> ExitStatus {
    wait::until_within(REFUSED_WITHIN, "the second daemon to be refused", || scheduler.exited())
}

fn signal(scheduler: &Scheduler, signal: Signal) {
    kill(Pid::from_raw(i32::try_from(scheduler.pid()).expect("process ids fit")), signal)
        .expect("a child can be signalled");
}

/// One service in one channel whose apply runs until it is let go.
fn with_an_apply_that_runs(shared: &Shared, scheduler: &Scheduler) {
    shared.files.hold();
    scheduler.apply(&Files::configs(1, 1));
    scheduler.ok(&["services", "push", "s0", "--app", "app"]);
    wait::until("the apply to run", || (shared.files.ledger().len() == 1).then_some(()));
}

/// The instance waits for a person because nobody knows whether its apply still runs; and it says
/// so everywhere.
fn holds_still(scheduler: &Scheduler) -> Value {
    let channel = wait::until("the apply to be given up", || {
        let channel = scheduler.channel("s0", "c0");
        channel["message"]
            .as_str()
            .is_some_and(|message| message.contains("may still run"))
            .then_some(channel)
    });
    let message = channel["message"].as_str().unwrap_or_default().to_owned();
    assert!(message.contains("services retry"), "the way out: {message}");
    let events = scheduler.get("/v1/events?kind=spool").expect("it answers").1;
    assert!(events.contains("spool.replaced"), "the log says why: {events}");
    let (status, ready) = scheduler.get("/readyz").expect("it answers");
    assert!(
        status == 200 && ready.contains("spool directory"),
        "ready, and says what it has lost: {status} {ready}"
    );
    channel
}

fn goes_on_after_a_retry(shared: &Shared, scheduler: &Scheduler) {
    assert_eq!(
        shared.files.ledger().len(),
        1,
        "nothing was started beside the apply that may still run"
    );
    shared.files.let_go();
    wait::until("the apply to end, before a person says so", || {
        shared.files.is_quiet().then_some(())
    });
    scheduler.ok(&["services", "retry", "s0", "--app", "app", "--channel", "c0"]);
    scheduler.channel_becomes("s0", "c0", "CONVERGED");
    assert_eq!(shared.files.overlaps(), "");
    let (_, ready) = scheduler.get("/readyz").expect("it answers");
    assert!(!ready.contains("spool directory"), "a person has looked at all of it: {ready}");
}

#[test]
fn p1_a_second_daemon_is_refused_while_the_first_one_has_the_database() {
    let shared = Shared::new();
    let mut first = Scheduler::stopped();
    shared.run(&mut first);
    let mut second = Shared::second(&first);
    shared.spawn(&mut second);
    let status = refused(&mut second);
    assert_eq!(status.code(), Some(1));
    let log = second.log();
    let said =
        [format!("pid {}", first.pid()), first.data().display().to_string(), "since".to_owned()];
    assert!(said.iter().all(|part| log.contains(part)), "who has it, and since when: {log}");
    assert!(first.exited().is_none(), "the first one goes on");
}

#[test]
fn p1_a_killed_daemon_comes_back_at_once_and_another_takes_over_without_running_its_apply_again() {
    let shared = Shared::new();
    let mut first = Scheduler::stopped();
    shared.run(&mut first);
    with_an_apply_that_runs(&shared, &first);
    first.kill();
    shared.run(&mut first);
    assert!(
        !first.log().contains("waiting to see"),
        "the same data directory need not wait: {}",
        first.log()
    );

    first.kill();
    let mut second = Shared::second(&first);
    shared.run(&mut second);
    assert!(
        second.log().contains("waiting to see") && second.log().contains("taken over"),
        "{}",
        second.log()
    );
    holds_still(&second);
    goes_on_after_a_retry(&shared, &second);

    // The one whose database it was.
    shared.spawn(&mut first);
    assert_eq!(refused(&mut first).code(), Some(1));
}

#[test]
fn p1_a_stopped_daemon_hands_over_at_once() {
    let shared = Shared::new();
    let mut first = Scheduler::stopped();
    shared.run(&mut first);
    first.stop();
    let mut second = Shared::second(&first);
    shared.run(&mut second);
    assert!(!second.log().contains("waiting to see"), "nobody has it: {}", second.log());
}

#[test]
fn p1_a_daemon_that_slept_while_another_took_over_commits_and_starts_nothing() {
    let shared = Shared::new();
    let mut first = Scheduler::stopped();
    shared.run(&mut first);
    first.apply(&Files::configs(1, 1));
    first.stop();
    // It goes to sleep with a start that is decided and stored, and not performed.
    shared.with(|start| first.spawn(&Start { stop_at: Some("before-start:2"), ..start.clone() }));
    wait::until("the first daemon to answer", || {
        first.pvnctl(["services", "push", "s0", "--app", "app"]).status.success().then_some(())
    });
    wait::until("the first daemon to sleep", || is_stopped(first.pid()).then_some(()));

    let mut second = Shared::second(&first);
    shared.run(&mut second);
    let events = |scheduler: &Scheduler| {
        scheduler.get("/v1/events?limit=1000").expect("it answers").1.matches("\"seq\"").count()
    };
    let before = events(&second);
    signal(&first, Signal::SIGCONT);
    let status = wait::until_within(REFUSED_WITHIN, "the first daemon to end", || first.exited());
    assert_eq!(status.code(), Some(1));
    let log = first.log();
    assert!(
        log.contains(&format!("pid {}", second.pid())) && log.contains("taken over by"),
        "who has it now: {log}"
    );
    // On a busy machine it slept before it had decided the apply, which the second one then starts
    // by right.
    assert!(
        started_by(&first).is_empty(),
        "neither what was decided before is started nor anything else: {:?}",
        started_by(&first)
    );
    assert!(events(&second) >= before && second.exited().is_none());
    second.ok(&["services", "retry", "s0", "--app", "app", "--channel", "c0"]);
    second.channel_becomes("s0", "c0", "CONVERGED");
    assert_eq!(shared.files.overlaps(), "");
}

/// Directories of jobs in its spool.
fn started_by(scheduler: &Scheduler) -> Vec<PathBuf> {
    let entries =
        std::fs::read_dir(scheduler.data().join("spool")).expect("the spool can be listed");
    let paths = entries.map(|entry| entry.expect("an entry can be read").path());
    paths
        .filter(|path| {
            path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("job-"))
        })
        .collect()
}

fn is_stopped(pid: u32) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    status.lines().any(|line| line.starts_with("State:") && line.contains('T'))
}

#[test]
fn p1_a_lost_spool_directory_proves_nothing_about_the_jobs_that_were_in_it() {
    let shared = Shared::new();
    let mut scheduler = Scheduler::stopped();
    shared.run(&mut scheduler);
    with_an_apply_that_runs(&shared, &scheduler);
    scheduler.kill();
    std::fs::remove_dir_all(scheduler.data().join("spool")).expect("the spool can be removed");
    shared.run(&mut scheduler);
    holds_still(&scheduler);
    // It stays so over another restart.
    scheduler.kill();
    shared.run(&mut scheduler);
    holds_still(&scheduler);
    goes_on_after_a_retry(&shared, &scheduler);
}

#[test]
fn p1_a_copied_data_directory_is_another_one() {
    let shared = Shared::new();
    let mut first = Scheduler::stopped();
    shared.run(&mut first);
    first.stop();
    let mut copy = Scheduler::stopped();
    let copied = Command::new("cp")
        .arg("-a")
        .arg(first.data())
        .arg(copy.data())
        .status()
        .expect("cp can be started");
    assert!(copied.success());
    shared.run(&mut first);
    shared.spawn(&mut copy);
    assert_eq!(refused(&mut copy).code(), Some(1), "it is not the one that has the database");

    with_an_apply_that_runs(&shared, &first);
    first.kill();
    shared.run(&mut copy);
    assert!(
        copy.log().contains("waiting to see"),
        "it cannot know that the first one is dead: {}",
        copy.log()
    );
    holds_still(&copy);
    goes_on_after_a_retry(&shared, &copy);
}
