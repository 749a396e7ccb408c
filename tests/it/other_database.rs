//! A data directory and the database that it belongs to (promise P1): started with another database, with its database lost, or
//! with an older copy of it, nothing in the directory that jobs may be using is thrown away and none runs beside itself.

use std::path::{Path, PathBuf};
use std::process::Command;

use tests::files::Files;
use tests::scheduler::{Scheduler, Start};
use tests::{programs, wait};

/// A scheduler with an instance that keeps something in its directory and an apply that runs.
fn world() -> (Scheduler, Files) {
    let mut scheduler = Scheduler::stopped();
    let files = Files::new(scheduler.home());
    scheduler.run(&Start::default());
    files.hold();
    scheduler.apply(&Files::configs(1, 1));
    scheduler.ok(&["services", "push", "s0", "--app", "app"]);
    wait::until("the apply to run", || (files.ledger().len() == 1).then_some(()));
    std::fs::write(instance(&scheduler).join("kept"), "x").expect("a file can be written");
    wait::until("the apply to be known to run", || {
        let jobs = scheduler.json(&["jobs", "list", "--app", "app", "--service", "s0", "--kind", "apply"]);
        (jobs[0]["status"] == "RUNNING").then_some(())
    });
    (scheduler, files)
}

/// The only directory of an instance.
fn instance(scheduler: &Scheduler) -> PathBuf {
    let mut entries = std::fs::read_dir(scheduler.data().join("instances")).expect("the directory can be listed");
    entries.next().expect("the instance has a directory").expect("an entry can be read").path()
}

/// Names and places of the jobs' directories in the spool that something was started in.
fn jobs(scheduler: &Scheduler) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(scheduler.data().join("spool")).expect("the spool can be listed");
    let paths = entries.map(|entry| entry.expect("an entry can be read").path());
    let mut jobs: Vec<PathBuf> = paths.filter(|path| path.join("claim").exists()).collect();
    jobs.sort();
    jobs
}

fn text(path: &Path) -> &str {
    path.to_str().expect("the path is UTF-8")
}

/// The apply that runs ends, is the only one there ever was, and what the instance keeps is still there.
fn goes_on(scheduler: &Scheduler, files: &Files) {
    files.let_go();
    scheduler.channel_becomes("s0", "c0", "CONVERGED");
    assert_eq!((files.ledger().len(), files.overlaps()), (1, String::new()), "{}", scheduler.log());
    assert!(instance(scheduler).join("kept").exists(), "{}", scheduler.log());
}

fn refuses(scheduler: &mut Scheduler, start: &Start<'_>) -> String {
    let before = scheduler.log().len();
    scheduler.spawn(start);
    let status = wait::until("the start to be refused", || {
        assert!(!scheduler.log()[before..].contains(" ready "), "it starts:\n{}", scheduler.log());
        scheduler.exited()
    });
    assert_eq!(status.code(), Some(1), "{}", scheduler.log());
    scheduler.log().split_off(before)
}

#[test]
fn p1_a_data_directory_is_refused_with_another_database_and_nothing_in_it_changes() {
    let (mut scheduler, files) = world();
    scheduler.kill();
    let before = jobs(&scheduler);
    let other = scheduler.home().join("other.db");
    let url = format!("sqlite:{}", other.display());
    let own = scheduler.data().join("pvn.db");
    let said = refuses(&mut scheduler, &Start { arguments: &["--database-url", &url], ..Start::default() });
    for part in ["belongs to the database", text(&own), text(&other), "--database-url sqlite:", "pvn-scheduler restore", "/database: "] {
        assert!(said.contains(part), "no {part}: {said}");
    }
    assert!(!other.exists(), "nothing is made");
    // One that is there, and another daemon's.
    let made = Scheduler::start();
    let theirs = format!("sqlite:{}", made.data().join("pvn.db").display());
    refuses(&mut scheduler, &Start { arguments: &["--database-url", &theirs], ..Start::default() });
    let pruned = Command::new(programs::program("pvn-scheduler"))
        .args(["prune", "--data-dir", text(&scheduler.data()), "--database-url", &theirs])
        .output()
        .expect("the program can be started");
    assert!(!pruned.status.success() && String::from_utf8_lossy(&pruned.stderr).contains("belongs to the database"), "{pruned:?}");
    assert_eq!(jobs(&scheduler), before);
    scheduler.run(&Start::default());
    goes_on(&scheduler, &files);
}

#[test]
fn p1_a_data_directory_whose_database_is_lost_is_refused_until_a_person_says_that_it_begins_anew() {
    let (mut scheduler, files) = world();
    scheduler.kill();
    let before = jobs(&scheduler);
    let aside = scheduler.home().join("aside");
    std::fs::create_dir(&aside).expect("a directory can be made");
    let names = ["pvn.db", "pvn.db-wal", "pvn.db-shm"];
    for name in names {
        std::fs::rename(scheduler.data().join(name), aside.join(name)).expect("a file can be renamed");
    }
    let said = refuses(&mut scheduler, &Start::default());
    assert!(said.contains("is not there") && said.contains("remove the file"), "{said}");
    assert!(!scheduler.data().join("pvn.db").exists(), "nothing is made");
    assert_eq!(jobs(&scheduler), before);
    for name in names {
        std::fs::rename(aside.join(name), scheduler.data().join(name)).expect("a file can be renamed");
    }
    scheduler.run(&Start::default());
    goes_on(&scheduler, &files);

    scheduler.stop();
    for name in names {
        let _gone_when_it_ended_in_order = std::fs::remove_file(scheduler.data().join(name));
    }
    refuses(&mut scheduler, &Start::default());
    std::fs::remove_file(scheduler.data().join("database")).expect("the file is where it says");
    std::fs::remove_file(scheduler.data().join("admin-token")).expect("the token is there");
    scheduler.run(&Start::default());
    assert_eq!(std::fs::read_dir(scheduler.data().join("instances")).expect("it can be listed").count(), 0);
}
