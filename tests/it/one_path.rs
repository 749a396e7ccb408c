//! A database is used by one path at a time (promise P1). SQLite keeps its log beside the name that
//! it was opened by: over a hard link or a file that is bind-mounted elsewhere two daemons would
//! have two logs, see nothing of each other's lease, and both apply.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use tests::files::Files;
use tests::scheduler::{Scheduler, Start};
use tests::{programs, skip, wait};

/// A database outside of every data directory, its key, and a daemon that has it and applies.
struct World {
    home: tempfile::TempDir,
    files: Files,
    first: Scheduler,
}

impl World {
    fn new() -> Self {
        let home = tempfile::tempdir().expect("a directory can be made");
        let files = Files::new(home.path());
        let mut world = Self { home, files, first: Scheduler::stopped() };
        world.run();
        world.files.hold();
        world.first.apply(&Files::configs(1, 1));
        world.first.ok(&["services", "push", "s0", "--app", "app"]);
        wait::until("the apply to run", || (world.files.ledger().len() == 1).then_some(()));
        world
    }

    fn run(&mut self) {
        let arguments = arguments(&self.database(), self.home.path());
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        self.first.run(&Start {
            arguments: &arguments,
            root: Some(self.home.path()),
            ..Start::default()
        });
    }

    fn database(&self) -> PathBuf {
        self.home.path().join("pvn.db")
    }

    /// The first daemon goes on, and finishes its apply: the only one there ever was.
    fn goes_on(mut self) {
        assert!(self.first.exited().is_none(), "the first one goes on: {}", self.first.log());
        self.files.let_go();
        self.first.channel_becomes("s0", "c0", "CONVERGED");
        assert_eq!((self.files.ledger().len(), self.files.overlaps()), (1, String::new()));
    }
}

fn arguments(database: &Path, home: &Path) -> Vec<String> {
    let url = format!("sqlite:{}", database.display());
    ["--database-url", &url, "--secret-key-file", &home.join("key").display().to_string()]
        .map(str::to_owned)
        .to_vec()
}

/// A second daemon with a data directory of its own, whose program and arguments follow `command`.
struct Second {
    home: tempfile::TempDir,
    child: Child,
}

impl Second {
    fn start(world: &World, mut command: Command, database: &Path) -> Self {
        let home = tempfile::tempdir().expect("a directory can be made");
        let log = std::fs::File::create(home.path().join("log")).expect("a file can be made");
        let child = command
            .args(["serve", "--listen", "127.0.0.1:0", "--data-dir"])
            .arg(home.path().join("data"))
            .args(arguments(database, world.home.path()))
            .current_dir(world.home.path())
            .stdin(Stdio::null())
            .stdout(log.try_clone().expect("a file can be shared"))
            .stderr(log)
            .spawn()
            .expect("the scheduler can be started");
        Self { home, child }
    }

    fn log(&self) -> String {
        std::fs::read_to_string(self.home.path().join("log")).unwrap_or_default()
    }

    /// It ends by itself with an error, which is returned.
    fn refused(mut self) -> String {
        let status = wait::until("the second daemon to be refused or ready", || {
            assert!(!self.log().contains("ready"), "it has the database too: {}", self.log());
            self.child.try_wait().expect("a child can be asked")
        });
        assert_eq!(status.code(), Some(1), "{}", self.log());
        self.log()
    }
}

impl Drop for Second {
    fn drop(&mut self) {
        let _over_already = self.child.kill();
        let _reaped_already = self.child.wait();
    }
}

#[test]
fn p1_a_database_with_a_second_name_is_refused_by_either() {
    let world = World::new();
    let link = world.home.path().join("other.db");
    std::fs::hard_link(world.database(), &link).expect("a hard link can be made");
    let log =
        Second::start(&world, Command::new(programs::program("pvn-scheduler")), &link).refused();
    assert!(
        log.contains("other.db") && log.contains("2 names") && log.contains("hard link"),
        "{log}"
    );
    world.goes_on();
}

#[test]
fn p1_a_database_with_a_second_name_starts_no_daemon_until_the_name_is_gone() {
    let mut world = World::new();
    world.first.kill();
    let link = world.home.path().join("other.db");
    std::fs::hard_link(world.database(), &link).expect("a hard link can be made");
    let database = world.database();
    Second::start(&world, Command::new(programs::program("pvn-scheduler")), &database).refused();
    std::fs::remove_file(link).expect("a file can be removed");
    world.run();
    world.goes_on();
}

#[test]
fn p1_a_database_that_is_mounted_elsewhere_is_refused_while_it_is_used_by_its_other_path() {
    const TEST: &str =
        "p1_a_database_that_is_mounted_elsewhere_is_refused_while_it_is_used_by_its_other_path";
    let possible = Command::new("unshare")
        .args(["-m", "mount", "--bind", "/", "/"])
        .output()
        .is_ok_and(|output| output.status.success());
    if !possible {
        return skip::skipped(
            TEST,
            "no file system can be mounted in a namespace of its own here (unshare, mount)",
        );
    }
    let world = World::new();
    let other = world.home.path().join("elsewhere/pvn.db");
    std::fs::create_dir(other.parent().expect("it is in a directory"))
        .expect("a directory can be made");
    std::fs::write(&other, "").expect("a file can be written");
    let mut command = Command::new("unshare");
    command.args(["-m", "sh", "-c", "mount --bind \"$1\" \"$2\" && shift 2 && exec \"$@\"", "sh"]);
    command.arg(world.database()).arg(&other).arg(programs::program("pvn-scheduler"));
    let log = Second::start(&world, command, &other).refused();
    assert!(log.contains("elsewhere/pvn.db") && log.contains("by another path"), "{log}");

    // A directory that is mounted elsewhere has the log in it: there the lease decides, as ever.
    let mounted = world.home.path().join("mounted");
    std::fs::create_dir(&mounted).expect("a directory can be made");
    let mut command = Command::new("unshare");
    command.args(["-m", "sh", "-c", "mount --bind \"$1\" \"$2\" && shift 2 && exec \"$@\"", "sh"]);
    command.arg(world.home.path()).arg(&mounted).arg(programs::program("pvn-scheduler"));
    let log = Second::start(&world, command, &mounted.join("pvn.db")).refused();
    assert!(log.contains(&format!("pid {}", world.first.pid())), "the owner is named: {log}");
    world.goes_on();
}
