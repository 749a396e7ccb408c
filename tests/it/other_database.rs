//! A data directory and the database that it belongs to (promise P1): started with another
//! database, with its database lost, or with an older copy of it, nothing in the directory that
//! jobs may be using is thrown away and none runs beside itself.

use std::path::{Path, PathBuf};
use std::process::Command;

use tests::files::Files;
use tests::scheduler::{Scheduler, Start};
use tests::{programs, wait};

mod nameless;

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
        let jobs =
            scheduler.json(&["jobs", "list", "--app", "app", "--service", "s0", "--kind", "apply"]);
        (jobs[0]["status"] == "RUNNING").then_some(())
    });
    (scheduler, files)
}

/// The only directory of an instance.
fn instance(scheduler: &Scheduler) -> PathBuf {
    let mut entries =
        std::fs::read_dir(scheduler.data().join("instances")).expect("the directory can be listed");
    entries.next().expect("the instance has a directory").expect("an entry can be read").path()
}

/// Names and places of the jobs' directories in the spool that something was started in.
fn jobs(scheduler: &Scheduler) -> Vec<PathBuf> {
    let entries =
        std::fs::read_dir(scheduler.data().join("spool")).expect("the spool can be listed");
    let paths = entries.map(|entry| entry.expect("an entry can be read").path());
    let mut jobs: Vec<PathBuf> = paths.filter(|path| path.join("claim").exists()).collect();
    jobs.sort();
    jobs
}

fn text(path: &Path) -> &str {
    path.to_str().expect("the path is UTF-8")
}

/// The apply that runs ends, is the only one there ever was, and what the instance keeps is still
/// there.
fn goes_on(scheduler: &Scheduler, files: &Files) {
    files.let_go();
    scheduler.channel_becomes("s0", "c0", "CONVERGED");
    assert_eq!((files.ledger().len(), files.overlaps()), (1, String::new()), "{}", scheduler.log());
    assert!(instance(scheduler).join("kept").exists(), "{}", scheduler.log());
}

#[test]
fn p1_a_data_directory_is_refused_with_another_database_and_nothing_in_it_changes() {
    let (mut scheduler, files) = world();
    scheduler.kill();
    let before = jobs(&scheduler);
    let other = scheduler.home().join("other.db");
    let url = format!("sqlite:{}", other.display());
    let own = scheduler.data().join("pvn.db");
    let said =
        scheduler.is_refused(&Start { arguments: &["--database-url", &url], ..Start::default() });
    for part in [
        "belongs to the database",
        text(&own),
        text(&other),
        "--database-url sqlite:",
        "pvn-scheduler restore",
        "/database: ",
    ] {
        assert!(said.contains(part), "no {part}: {said}");
    }
    assert!(!other.exists(), "nothing is made");
    // One that is there, and another daemon's.
    let made = Scheduler::start();
    let theirs = format!("sqlite:{}", made.data().join("pvn.db").display());
    scheduler.is_refused(&Start { arguments: &["--database-url", &theirs], ..Start::default() });
    let reserves = [&own, &made.data().join("pvn.db")]
        .map(|database| database.with_file_name("pvn.db-reserve"));
    for reserve in &reserves {
        std::fs::write(reserve, "room").expect("a file can be written");
    }
    let pruned = Command::new(programs::program("pvn-scheduler"))
        .args(["prune", "--data-dir", text(&scheduler.data()), "--database-url", &theirs])
        .output()
        .expect("the program can be started");
    assert!(
        !pruned.status.success()
            && String::from_utf8_lossy(&pruned.stderr).contains("belongs to the database"),
        "{pruned:?}"
    );
    assert!(
        reserves.iter().all(|reserve| reserve.exists()),
        "the room that was set aside is given up"
    );
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
        std::fs::rename(scheduler.data().join(name), aside.join(name))
            .expect("a file can be renamed");
    }
    let said = scheduler.is_refused(&Start::default());
    assert!(said.contains("is not there") && said.contains("remove the file"), "{said}");
    assert!(!scheduler.data().join("pvn.db").exists(), "nothing is made");
    assert_eq!(jobs(&scheduler), before);
    for name in names {
        std::fs::rename(aside.join(name), scheduler.data().join(name))
            .expect("a file can be renamed");
    }
    scheduler.run(&Start::default());
    goes_on(&scheduler, &files);

    scheduler.stop();
    for name in names {
        let _gone_when_it_ended_in_order = std::fs::remove_file(scheduler.data().join(name));
    }
    scheduler.is_refused(&Start::default());
    std::fs::remove_file(scheduler.data().join("database")).expect("the file is where it says");
    std::fs::remove_file(scheduler.data().join("admin-token")).expect("the token is there");
    scheduler.run(&Start::default());
    assert_eq!(
        std::fs::read_dir(scheduler.data().join("instances")).expect("it can be listed").count(),
        0
    );
}

#[test]
fn p1_an_older_copy_of_the_database_starts_nothing_beside_what_runs() {
    let mut scheduler = Scheduler::stopped();
    let files = Files::new(scheduler.home());
    scheduler.run(&Start::default());
    scheduler.apply(&Files::configs(1, 1));
    scheduler.stop();
    let copy = scheduler.home().join("older.db");
    std::fs::copy(scheduler.data().join("pvn.db"), &copy).expect("a file can be copied");
    scheduler.run(&Start::default());
    files.hold();
    scheduler.ok(&["services", "push", "s0", "--app", "app"]);
    wait::until("the apply to run", || (files.ledger().len() == 1).then_some(()));
    std::fs::write(instance(&scheduler).join("kept"), "x").expect("a file can be written");
    scheduler.kill();
    put_back(&scheduler, &copy);
    let running = jobs(&scheduler);
    scheduler.run(&Start::default());
    // Recovered by the time that it answers: it knows neither the job nor the release nor the
    // instance.
    assert!(
        running.iter().all(|job| job.join("claim").exists()),
        "{running:?}\n{}",
        scheduler.log()
    );
    assert!(instance(&scheduler).join("kept").exists(), "{}", scheduler.log());
    assert!(scheduler.log().contains("the database does not know"), "{}", scheduler.log());
    files.let_go();
    wait::until("the apply to end", || files.is_quiet().then_some(()));
    assert_eq!(files.overlaps(), "");
}

#[test]
fn p1_an_apply_that_an_older_copy_of_the_database_decides_again_waits_for_the_one_that_runs() {
    let mut scheduler = Scheduler::stopped();
    let files = Files::new(scheduler.home());
    scheduler.run(&Start::default());
    scheduler.apply(&Files::configs(1, 1));
    scheduler.ok(&["services", "push", "s0", "--app", "app"]);
    scheduler.channel_becomes("s0", "c0", "CONVERGED");
    scheduler.stop();
    let copy = scheduler.home().join("older.db");
    std::fs::copy(scheduler.data().join("pvn.db"), &copy).expect("a file can be copied");
    files.hold();
    files.drift("s0", "c0");
    scheduler.run(&Start::default());
    wait::until("the second apply to run", || (files.ledger().len() == 2).then_some(()));
    scheduler.kill();
    put_back(&scheduler, &copy);
    scheduler.run(&Start::default());
    // It is another job, whose result is its own.
    let apply = &files.ledger()[1].job;
    wait::until("the apply to be decided once more, and to wait", || {
        let jobs =
            scheduler.json(&["jobs", "list", "--app", "app", "--service", "s0", "--kind", "apply"]);
        assert_ne!(jobs[0]["id"], apply.as_str());
        jobs[0]["message"]
            .as_str()?
            .contains("an apply of this instance runs already")
            .then_some(())
    });
    assert_eq!((files.ledger().len(), files.overlaps()), (2, String::new()), "{}", scheduler.log());
    files.let_go();
    scheduler.channel_becomes("s0", "c0", "CONVERGED");
    assert_eq!(files.overlaps(), "", "{}", scheduler.log());
}

#[test]
fn p1_an_apply_that_an_older_copy_of_the_database_decides_waits_for_another_one_that_runs() {
    let mut scheduler = Scheduler::stopped();
    let files = Files::new(scheduler.home());
    scheduler.run(&Start::default());
    scheduler.apply(&Files::configs(1, 1));
    let push = |scheduler: &Scheduler| scheduler.ok(&["services", "push", "s0", "--app", "app"]);
    push(&scheduler);
    scheduler.channel_becomes("s0", "c0", "CONVERGED");
    scheduler.stop();
    let copy = scheduler.home().join("older.db");
    std::fs::copy(scheduler.data().join("pvn.db"), &copy).expect("a file can be copied");
    scheduler.run(&Start::default());
    push(&scheduler);
    wait::until("the second apply to end", || {
        (files.ledger().len() == 2 && files.is_quiet()).then_some(())
    });
    scheduler.channel_becomes("s0", "c0", "CONVERGED");
    files.hold();
    push(&scheduler);
    wait::until("the third apply to run", || (files.ledger().len() == 3).then_some(()));
    scheduler.kill();
    put_back(&scheduler, &copy);
    files.drift("s0", "c0");
    scheduler.run(&Start::default());
    // For all that the copy knows this is the second one.
    push(&scheduler);
    wait::until("the reason to be said", || {
        assert_eq!(
            (files.ledger().len(), files.overlaps()),
            (3, String::new()),
            "{}",
            scheduler.log()
        );
        let told =
            scheduler.json(&["jobs", "list", "--app", "app", "--service", "s0", "--kind", "apply"]);
        told[0]["message"]
            .as_str()?
            .contains("an apply of this instance runs already")
            .then_some(())
    });
    files.let_go();
    wait::until("what the copy wants to be applied", || (files.ledger().len() == 4).then_some(()));
    scheduler.channel_becomes("s0", "c0", "CONVERGED");
    assert_eq!(files.overlaps(), "", "{}", scheduler.log());
}

#[test]
fn p1_an_apply_waits_for_one_that_an_older_copy_of_the_database_does_not_know_whatever_becomes_of_its_channel()
 {
    for was_there in [true, false] {
        let mut scheduler = Scheduler::stopped();
        let files = Files::new(scheduler.home());
        scheduler.run(&Start::default());
        scheduler.apply(&Files::configs(1, if was_there { 2 } else { 1 }));
        scheduler.stop();
        let copy = scheduler.home().join("older.db");
        std::fs::copy(scheduler.data().join("pvn.db"), &copy).expect("a file can be copied");
        scheduler.run(&Start::default());
        scheduler.apply(&Files::configs(1, 2));
        files.hold();
        let push = |scheduler: &Scheduler| {
            scheduler.ok(&["services", "push", "s0", "--app", "app", "--channels", "c1"])
        };
        push(&scheduler);
        wait::until("the apply to run", || (files.ledger().len() == 1).then_some(()));
        let kept = instance(&scheduler).join("kept");
        std::fs::write(&kept, "x").expect("a file can be written");
        scheduler.kill();
        put_back(&scheduler, &copy);
        scheduler.run(&Start::default());
        // It leaves the config and comes back, or is new.
        scheduler.apply(&Files::configs(1, 1));
        scheduler.apply(&Files::configs(1, 2));
        push(&scheduler);
        let said = wait::until("the reason to be said", || {
            assert_eq!(
                (files.ledger().len(), files.overlaps()),
                (1, String::new()),
                "{}",
                scheduler.log()
            );
            let told = scheduler.json(&[
                "jobs",
                "list",
                "--app",
                "app",
                "--service",
                "s0",
                "--kind",
                "apply",
            ]);
            told[0]["message"]
                .as_str()?
                .contains("an apply of this instance runs already")
                .then_some(())?;
            let said =
                scheduler.ok(&["services", "explain", "s0", "--app", "app", "--channel", "c1"]);
            said.contains("runs already").then_some(said)
        });
        assert!(said.contains(&files.ledger()[0].job), "{said}");
        assert!(kept.exists(), "it is in use: {}", scheduler.log());
        files.let_go();
        scheduler.channel_becomes("s0", "c1", "CONVERGED");
        assert_eq!(files.overlaps(), "", "{}", scheduler.log());
    }
}

/// Puts an older copy of the database in its place.
fn put_back(scheduler: &Scheduler, copy: &Path) {
    for name in ["pvn.db", "pvn.db-wal", "pvn.db-shm"] {
        std::fs::remove_file(scheduler.data().join(name)).expect("a file can be removed");
    }
    std::fs::rename(copy, scheduler.data().join("pvn.db")).expect("a file can be renamed");
}

#[test]
fn p1_a_job_that_started_and_whose_spool_directory_is_gone_may_still_run() {
    let (mut scheduler, files) = world();
    scheduler.kill();
    for job in jobs(&scheduler) {
        std::fs::remove_dir_all(job).expect("a directory can be removed");
    }
    for _ in 0..2 {
        scheduler.run(&Start::default());
        let channel = wait::until("the apply to be given up", || {
            let channel = scheduler.channel("s0", "c0");
            channel["message"]
                .as_str()
                .is_some_and(|message| message.contains("may still run"))
                .then_some(channel)
        });
        assert!(
            channel["message"].as_str().is_some_and(|message| message.contains("services retry")),
            "the way out: {channel:#}"
        );
        assert_eq!(files.ledger().len(), 1, "nothing is started beside it");
        scheduler.kill();
    }
    files.let_go();
    wait::until("the apply to end, before a person says so", || files.is_quiet().then_some(()));
    scheduler.run(&Start::default());
    scheduler.ok(&["services", "retry", "s0", "--app", "app", "--channel", "c0"]);
    scheduler.channel_becomes("s0", "c0", "CONVERGED");
    assert_eq!(files.overlaps(), "");
}
