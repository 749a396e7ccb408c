//! `backup` of a daemon that works, `restore` into a new directory, and what the copy may do before
//! and after `activate`.

use std::collections::BTreeMap;
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;
use tests::disk::SmallDisk;
use tests::files::Files;
use tests::scheduler::{Scheduler, Start};
use tests::{programs, skip, wait};

mod damaged;

fn program(arguments: &[&str]) -> Output {
    Command::new(programs::program("pvn-scheduler"))
        .args(arguments)
        .output()
        .expect("the program can be started")
}

fn said(output: &Output) -> String {
    format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    )
}

fn done(arguments: &[&str]) -> String {
    let output = program(arguments);
    assert!(output.status.success(), "{arguments:?}: {}", said(&output));
    said(&output)
}

fn text(path: &Path) -> &str {
    path.to_str().expect("the path is UTF-8")
}

/// What people would compare.
fn seen(scheduler: &Scheduler) -> Vec<Value> {
    let releases = scheduler.json(&["releases", "list", "--app", "app", "--service", "s0"]);
    let secrets = scheduler.json(&["secrets", "list"]);
    let applications = scheduler.json(&["applications", "get", "app"]);
    vec![releases, secrets, applications]
}

#[test]
#[expect(clippy::too_many_lines, reason = "one story, each step of which stands on the one before")]
fn a_backup_of_a_working_daemon_restores_to_one_that_only_looks_until_it_is_activated() {
    let mut original = Scheduler::stopped();
    let files = Files::new(original.home());
    original.run(&Start::default());
    original.apply(&Files::configs(4, 2));
    let mut set = original.client(["secrets", "set", "token"]);
    let home = original.home().join("value");
    std::fs::write(&home, "hush").expect("a file can be written");
    set.stdin(std::fs::File::open(&home).expect("it is there"));
    assert!(set.status().expect("pvnctl can be started").success());
    for service in ["s0", "s1", "s2", "s3"] {
        original.ok(&["services", "push", service, "--app", "app"]);
    }
    for (service, channel) in [("s0", "c0"), ("s0", "c1"), ("s1", "c0"), ("s3", "c1")] {
        original.channel_becomes(service, channel, "CONVERGED");
    }
    // Under load: drift is repaired all the time, and one apply runs over the backup.
    files.hold();
    files.drift("s1", "c0");
    wait::until("an apply to run", || {
        let busy = std::fs::read_dir(original.home().join("busy")).ok()?;
        busy.flatten().any(|entry| entry.file_name() == "s1.c0").then_some(())
    });
    let before = seen(&original);

    let file = original.home().join("backup.tar");
    let told = done(&["backup", text(&file), "--data-dir", text(&original.data())]);
    assert!(
        told.contains("the key is not in it")
            && told.contains("in clear")
            && !told.contains("are not there"),
        "{told}"
    );
    let again = program(&["backup", text(&file), "--data-dir", text(&original.data())]);
    assert!(
        !again.status.success() && said(&again).contains("is there already"),
        "{}",
        said(&again)
    );
    assert_eq!(original.channel("s0", "c0")["status"], "CONVERGED", "the daemon goes on");
    files.let_go();
    original.channel_becomes("s1", "c0", "CONVERGED");

    let mut copy = Scheduler::stopped();
    let data = copy.data();
    let restore = ["restore", text(&file), "--data-dir", text(&data)];
    let refused = program(&restore);
    assert!(
        !refused.status.success() && said(&refused).contains("--secret-key-file"),
        "{}",
        said(&refused)
    );
    let wrong = original.home().join("wrong.key");
    std::fs::write(&wrong, "00".repeat(32)).expect("a file can be written");
    let refused = program(&[&restore[..], &["--secret-key-file", text(&wrong)]].concat());
    assert!(
        !refused.status.success() && said(&refused).contains("sealed with another key"),
        "{}",
        said(&refused)
    );
    assert!(!data.exists(), "nothing is left of what failed");
    let key = original.data().join("secret.key");
    let told = done(&[&restore[..], &["--secret-key-file", text(&key)]].concat());
    assert!(told.contains("activate"), "{told}");
    let names_what_ran = |told: &str| {
        let line =
            told.lines().find(|line| line.contains("apply job-") && line.contains("app/s1 in c0"));
        assert!(line.is_some_and(|line| line.contains("on the machine of the original")), "{told}");
        assert!(told.contains("No command of the original may still run"), "{told}");
    };
    names_what_ran(&told);
    let refused = program(&[&restore[..], &["--secret-key-file", text(&key)]].concat());
    assert!(
        !refused.status.success() && said(&refused).contains("is not empty"),
        "{}",
        said(&refused)
    );

    // Side by side with the original, on the same outside world.
    let root = original.home().to_owned();
    copy.run(&Start { root: Some(&root), ..Start::default() });
    let after = seen(&copy);
    assert_eq!(after[1..], before[1..]);
    // How a release stands in a channel changes with time; that it is there does not.
    assert_eq!(after[0].as_array().map(Vec::len), before[0].as_array().map(Vec::len));
    let applied = files.ledger().len();
    // The apply ran when the backup was made; the copy cannot know how it ended.
    let ready = wait::until("the apply of the original to be out of sight", || {
        let (_, ready) = copy.get("/readyz")?;
        ready.contains("spool directory of 1 applies").then_some(ready)
    });
    assert!(ready.contains("restored from a backup"), "{ready}");
    assert_eq!(copy.channel("s1", "c0")["observer"], true);
    let job =
        &copy.json(&["jobs", "list", "--app", "app", "--service", "s0", "--kind", "apply"])[0];
    assert_eq!(job["status"], "SUCCEEDED");
    let id = job["id"].as_str().expect("a job has an id").to_owned();
    assert_eq!(copy.ok(&["jobs", "logs", &id]), original.ok(&["jobs", "logs", &id]));

    // It looks, and applies nothing, although there is something to do.
    original.kill();
    files.drift("s0", "c0");
    wait::until("the copy to find the drift", || {
        let events = copy.get("/v1/events?service=s0&limit=1000")?.1;
        (events.contains("observ") || copy.channel("s0", "c0")["status"] != "CONVERGED")
            .then_some(())
    });
    assert_eq!(files.ledger().len(), applied, "nothing is applied");
    copy.stop();
    let told = done(&["activate", "--data-dir", text(&data)]);
    assert!(told.contains("next start"), "{told}");
    names_what_ran(&told);
    copy.run(&Start { root: Some(&root), ..Start::default() });
    // Where a fetch of it was under way when the backup was made, that is out of sight, too:
    // whoever activates says that it is over.
    if copy.situation("s0", "c0").contains("FETCH_UNSETTLED") {
        copy.ok(&["services", "retry", "s0", "--app", "app", "--channel", "c0"]);
    }
    let pushed = copy.json(&["services", "push", "s2", "--app", "app"]);
    let number: u64 = pushed["version"]
        .as_str()
        .and_then(|version| version.strip_prefix("s2-")?.parse().ok())
        .expect("it has a number");
    assert!(
        number > 1_000,
        "the original may have given the next numbers to something else: {pushed}"
    );
    let repaired = wait::within(wait::PATIENCE, || files.state("s0", "c0"));
    assert!(repaired.is_some(), "the drift is not repaired\n{}", copy.situation("s0", "c0"));
    assert_eq!(files.overlaps(), "");
    copy.stop();
    assert!(done(&["activate", "--data-dir", text(&data)]).contains("nothing was changed"));
}

/// A scheduler that has ended, with one service that converged.
fn converged() -> Scheduler {
    let mut scheduler = Scheduler::stopped();
    let _files = Files::new(scheduler.home());
    scheduler.run(&Start::default());
    scheduler.apply(&Files::configs(1, 1));
    scheduler.ok(&["services", "push", "s0", "--app", "app"]);
    scheduler.channel_becomes("s0", "c0", "CONVERGED");
    scheduler.stop();
    scheduler
}

/// The same, and its backup with the key.
fn backed_up() -> (Scheduler, PathBuf) {
    let scheduler = converged();
    let file = scheduler.home().join("backup.tar");
    done(&["backup", text(&file), "--with-key", "--data-dir", text(&scheduler.data())]);
    (scheduler, file)
}

#[test]
fn a_backup_misses_no_digest_that_is_of_no_blob() {
    let scheduler = converged();
    // From here on the database knows every blob that it names.
    done(&["prune", "--data-dir", text(&scheduler.data())]);
    let file = scheduler.home().join("backup.tar");
    let told = done(&["backup", text(&file), "--data-dir", text(&scheduler.data())]);
    assert!(!told.contains("are not there"), "{told}");
}

#[test]
fn the_jobs_and_the_log_of_a_restored_copy_are_none_of_the_originals() {
    let (mut original, file) = backed_up();
    let root = original.home().to_owned();
    let mut copy = Scheduler::stopped();
    done(&["restore", text(&file), "--data-dir", text(&copy.data())]);
    copy.run(&Start { root: Some(&root), ..Start::default() });
    original.run(&Start::default());
    let fetches = |scheduler: &Scheduler| {
        wait::until("some fetches of its own", || {
            let jobs = scheduler.json(&[
                "jobs",
                "list",
                "--app",
                "app",
                "--service",
                "s0",
                "--kind",
                "fetch",
            ]);
            let jobs = jobs
                .as_array()
                .expect("a list")
                .iter()
                .map(|job| (job["id"].to_string(), job["createdAt"].to_string()));
            let jobs: BTreeMap<_, _> = jobs.collect();
            (jobs.len() >= 6).then_some(jobs)
        })
    };
    let (own, theirs) = (fetches(&copy), fetches(&original));
    // Whoever follows the log of the copy from where that of the original was misses nothing.
    let entries = |scheduler: &Scheduler, query: &str| -> Value {
        let (_, page) = scheduler.get(&format!("/v1/events?{query}")).expect("it answers");
        serde_json::from_str::<Value>(&page).expect("it is JSON")["items"].take()
    };
    let newest = |scheduler: &Scheduler| {
        entries(scheduler, "limit=1")[0]["seq"].as_u64().expect("it has a number")
    };
    let (goes_on, was) = (newest(&copy), newest(&original));
    assert!(goes_on > was + 1_000_000, "{goes_on} after {was}");
    assert_eq!(entries(&copy, "kind=database.restored").as_array().map(Vec::len), Some(1));
    // What was before the backup they have in common.
    let same: Vec<_> =
        own.iter().filter(|(id, at)| theirs.get(*id).is_some_and(|other| other != *at)).collect();
    assert!(same.is_empty() && own != theirs, "{same:?} in {own:?} and {theirs:?}");
}

fn small_disk(test: &str, path: &Path, size: &str) -> Option<SmallDisk> {
    let disk = SmallDisk::mount(path, size);
    if disk.is_none() {
        skip::skipped(test, "mounting a small file system needs root");
    }
    disk
}

#[test]
fn a_backup_is_restored_onto_a_volume_of_its_own() {
    let (scheduler, file) = backed_up();
    // As a new volume of Kubernetes is: mounted, and with the directory that ext4 makes.
    let mut copy = Scheduler::stopped();
    let Some(_disk) =
        small_disk("a_backup_is_restored_onto_a_volume_of_its_own", &copy.data(), "100m")
    else {
        return;
    };
    std::fs::create_dir(copy.data().join("lost+found")).expect("a directory can be made");
    done(&["restore", text(&file), "--data-dir", text(&copy.data())]);
    copy.run(&Start::default());
    assert_eq!(seen(&copy)[0].as_array().map(Vec::len), Some(1), "its release is there");
    copy.stop();
    drop(scheduler);
}

#[test]
fn a_directory_that_others_could_enter_is_its_owners_alone_once_a_backup_is_restored_into_it() {
    let (_scheduler, file) = backed_up();
    let home = tempfile::tempdir().expect("a directory can be made");
    let open = home.path().join("open");
    std::fs::create_dir(&open).expect("a directory can be made");
    std::fs::set_permissions(&open, Permissions::from_mode(0o777)).expect("it is ours");
    done(&["restore", text(&file), "--data-dir", text(&open)]);
    assert_eq!(std::fs::metadata(&open).expect("it is there").permissions().mode() & 0o777, 0o700);
}

#[test]
fn a_full_disk_is_told_by_backup_and_restore_and_nothing_is_left_there() {
    let (scheduler, file) = backed_up();
    let home = tempfile::tempdir().expect("a directory can be made");
    let disk = home.path().join("disk");
    let Some(_disk) = small_disk(
        "a_full_disk_is_told_by_backup_and_restore_and_nothing_is_left_there",
        &disk,
        "128k",
    ) else {
        return;
    };
    for (arguments, begins) in [
        (
            ["backup", text(&disk.join("new.tar")), "--data-dir", text(&scheduler.data())],
            "the database cannot be copied to",
        ),
        (["restore", text(&file), "--data-dir", text(&disk.join("new"))], "failed to write in"),
    ] {
        let refused = program(&arguments);
        let told = said(&refused);
        assert!(
            !refused.status.success() && told.contains(&format!("{begins} {}", text(&disk))),
            "{told}"
        );
        assert!(told.contains("full") || told.contains("No space left"), "{told}");
        assert!(!told.contains("no backup"), "the backup is well: {told}");
        assert_eq!(std::fs::read_dir(&disk).expect("it can be read").count(), 0, "{told}");
    }
}

#[test]
fn bad_input_a_backup_to_stdout_is_refused_and_writes_nothing() {
    let home = tempfile::tempdir().expect("a directory can be made");
    for file in ["-", "/dev/stdout", "/dev/stderr", "/dev/fd/1", "/proc/self/fd/1"] {
        let arguments = ["backup", file, "--data-dir", text(home.path())];
        let mut command = Command::new(programs::program("pvn-scheduler"));
        let refused = command
            .args(arguments)
            .current_dir(home.path())
            .output()
            .expect("the program can be started");
        assert!(
            !refused.status.success() && refused.stdout.is_empty(),
            "{file}: {}",
            said(&refused)
        );
        assert!(
            said(&refused).contains("a backup is written to a file: name one"),
            "{file}: {}",
            said(&refused)
        );
    }
    assert_eq!(std::fs::read_dir(home.path()).expect("it can be read").count(), 0);
}
