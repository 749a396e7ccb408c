//! The disk of the data directory is full when a command ends, and when the daemon starts (promises
//! P6 and P9): no result is lost, and there is a daemon to read from. The disk of the outside world
//! has room throughout.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;
use tests::disk::{Ext4Disk, MountsBelow, SmallDisk};
use tests::files::Files;
use tests::scheduler::{Scheduler, Start};
use tests::{programs, skip, spool, wait};

mod failed;
mod unwritten_log;

/// Large enough for the reserve beside the database.
const SIZE: &str = "100m";

fn small_disk(test: &str, scheduler: &Scheduler) -> Option<SmallDisk> {
    let disk = SmallDisk::mount(&scheduler.data(), SIZE);
    if disk.is_none() {
        skip::skipped(test, "mounting a small file system needs root");
    }
    disk
}

fn readiness(scheduler: &Scheduler, wanted: u16) {
    wait::until(&format!("/readyz to answer {wanted}"), || {
        (scheduler.get("/readyz")?.0 == wanted).then_some(())
    });
}

/// A scheduler whose only apply says that it is `up`, waits until there is no `hold` any more, and
/// ends with `last`; the apply waits, and the disk is full.
fn held_on_a_full_disk(scheduler: &mut Scheduler, disk: &SmallDisk, last: &str) -> PathBuf {
    scheduler.run(&Start::default());
    std::fs::write(scheduler.home().join("hold"), "").expect("a file can be written");
    scheduler.apply(&format!(
        "runtime:\n  name: once\n  custom:\n    proxyRuntime: {{runtime: local}}\n    apply:\n      taskConfig:\n        program:\n          \
         entrypoint: [sh, -c]\n          cmd:\n          - |\n            touch up; while [ -e hold ]; do sleep 0.05; done; {last}; echo done >> applied\n---\n\
         application:\n  name: app\n  releaseChannels:\n  - {{name: c0, runtimes: [{{runtime: once}}]}}\n---\nservice: {{name: s0, application: app}}\n"
    ));
    scheduler.ok(&["services", "push", "s0", "--app", "app"]);
    wait::until("the apply to run", || scheduler.home().join("up").exists().then_some(()));
    let spool = scheduler.data().join("spool");
    let directories = std::fs::read_dir(spool)
        .expect("the spool can be read")
        .map(|entry| entry.expect("an entry can be read").path());
    let job = directories
        .filter(|path| path.join("claim").exists())
        .last()
        .expect("the job that runs has a claim");
    disk.fill();
    job
}

/// The process that claimed the job.
fn wrapper(job: &Path) -> PathBuf {
    Path::new("/proc").join(spool::wrapper(job).to_string())
}

fn let_go(scheduler: &Scheduler) {
    std::fs::remove_file(scheduler.home().join("hold")).expect("it is held");
    wait::until("the command to end", || scheduler.home().join("applied").exists().then_some(()));
}

/// Gives the room back, and sees that the apply ran once and succeeded. Returns its job.
fn it_succeeded(scheduler: &Scheduler, disk: &SmallDisk) -> Value {
    disk.free();
    scheduler.channel_becomes("s0", "c0", "CONVERGED");
    let jobs = scheduler.json(&["jobs", "list", "--app", "app", "--kind", "apply"]);
    let jobs = jobs.as_array().expect("jobs is a list");
    assert_eq!(jobs.len(), 1, "{jobs:#?}");
    assert_eq!(
        std::fs::read_to_string(scheduler.home().join("applied")).expect("it was applied"),
        "done\n"
    );
    let id = jobs[0]["id"].as_str().expect("a job has an id").to_owned();
    let job = scheduler.json(&["jobs", "get", &id]);
    assert!(job.to_string().contains("\"exitCode\":0"), "{job:#}");
    job
}

#[test]
fn p6_a_command_that_ends_on_a_full_disk_is_reported_into_the_room_that_was_kept() {
    let mut scheduler = Scheduler::stopped();
    let test = "p6_a_command_that_ends_on_a_full_disk_is_reported_into_the_room_that_was_kept";
    let Some(disk) = small_disk(test, &scheduler) else { return };
    let job = held_on_a_full_disk(&mut scheduler, &disk, "true");
    let wrapper = wrapper(&job);
    let_go(&scheduler);
    wait::until("the wrapper to end", || (!wrapper.exists()).then_some(()));
    assert!(scheduler.exited().is_none(), "the daemon lives");
    it_succeeded(&scheduler, &disk);
    scheduler.kill();
}

#[test]
fn p6_a_report_too_large_for_the_room_that_was_kept_goes_without_its_streams() {
    let mut scheduler = Scheduler::stopped();
    let test = "p6_a_report_too_large_for_the_room_that_was_kept_goes_without_its_streams";
    let Some(disk) = small_disk(test, &scheduler) else { return };
    let job = held_on_a_full_disk(&mut scheduler, &disk, "head -c 40000 /dev/zero");
    let wrapper = wrapper(&job);
    let_go(&scheduler);
    wait::until("the wrapper to end", || (!wrapper.exists()).then_some(()));
    let told = it_succeeded(&scheduler, &disk);
    assert!(told.to_string().contains("\"lostBytes\":40000"), "{told:#}");
    scheduler.kill();
}

#[test]
fn p6_without_the_room_that_was_kept_a_wrapper_tries_until_there_is_some() {
    let mut scheduler = Scheduler::stopped();
    let test = "p6_without_the_room_that_was_kept_a_wrapper_tries_until_there_is_some";
    let Some(disk) = small_disk(test, &scheduler) else { return };
    let job = held_on_a_full_disk(&mut scheduler, &disk, "true");
    let room = job.join("report.json.new");
    // Its blocks stay with the wrapper, and are of no use without a name.
    let _never_there = std::fs::remove_file(&room);
    let wrapper = wrapper(&job);
    let_go(&scheduler);
    wait::until("the wrapper to try in vain, or to end", || {
        (room.exists() || !wrapper.exists()).then_some(())
    });
    it_succeeded(&scheduler, &disk);
    scheduler.kill();
}

/// A scheduler that converged and was stopped.
fn converged_and_stopped(scheduler: &mut Scheduler) -> Files {
    let files = Files::new(scheduler.home());
    scheduler.run(&Start::default());
    scheduler.apply(&Files::configs(1, 1));
    scheduler.ok(&["services", "push", "s0", "--app", "app"]);
    scheduler.channel_becomes("s0", "c0", "CONVERGED");
    assert!(scheduler.stop().success());
    files
}

/// The same, and its disk was filled then.
fn stopped_on_a_full_disk(scheduler: &mut Scheduler, disk: &SmallDisk) -> Files {
    let files = converged_and_stopped(scheduler);
    disk.fill();
    files
}

#[test]
fn p9_a_daemon_starts_on_a_full_disk_reads_and_starts_nothing_new() {
    let mut scheduler = Scheduler::stopped();
    let Some(disk) =
        small_disk("p9_a_daemon_starts_on_a_full_disk_reads_and_starts_nothing_new", &scheduler)
    else {
        return;
    };
    let files = stopped_on_a_full_disk(&mut scheduler, &disk);
    let applies = files.ledger().len();
    files.drift("s0", "c0");
    scheduler.run(&Start::default());
    readiness(&scheduler, 503);
    assert_eq!(scheduler.channel("s0", "c0")["channel"], "c0", "reading goes on");
    assert!(scheduler.exited().is_none(), "it goes on");
    assert_eq!(files.ledger().len(), applies, "nothing new is started");
    let metrics = scheduler.get("/metrics").expect("it answers").1;
    assert!(metrics.contains("\npvn_ready 0\n"), "{metrics}");
    assert!(
        scheduler.data().join("pvn.db-reserve").exists(),
        "what is left of the reserve is kept for the next time"
    );
    disk.free();
    readiness(&scheduler, 200);
    wait::until("the drift to be repaired", || files.state("s0", "c0"));
    scheduler.kill();
}

/// What is done by hand to the data of a scheduler that does not run, and what it said.
fn by_hand(scheduler: &Scheduler, command: &str) -> (Output, String) {
    let output = Command::new(programs::program("pvn-scheduler"))
        .arg(command)
        .arg("--data-dir")
        .arg(scheduler.data())
        .output();
    let output = output.expect("the program can be started");
    let said = format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    (output, said)
}

#[test]
fn prune_on_a_full_disk_sets_aside_again_what_it_did_not_need() {
    let mut scheduler = Scheduler::stopped();
    let Some(disk) =
        small_disk("prune_on_a_full_disk_sets_aside_again_what_it_did_not_need", &scheduler)
    else {
        return;
    };
    stopped_on_a_full_disk(&mut scheduler, &disk);
    for _ in 0..2 {
        let (output, said) = by_hand(&scheduler, "prune");
        assert!(output.status.success() && said.contains("nothing was to be removed"), "{said}");
        let reserve = std::fs::metadata(scheduler.data().join("pvn.db-reserve"));
        assert!(reserve.is_ok_and(|reserve| reserve.len() >= 7 << 20), "nothing needed it: {said}");
        // Somebody else takes what there is.
        disk.fill();
    }
    scheduler.run(&Start::default());
    readiness(&scheduler, 503);
    scheduler.kill();
}

#[test]
fn a_full_disk_without_a_reserve_is_named_with_what_to_do() {
    let mut scheduler = Scheduler::stopped();
    let Some(disk) =
        small_disk("a_full_disk_without_a_reserve_is_named_with_what_to_do", &scheduler)
    else {
        return;
    };
    stopped_on_a_full_disk(&mut scheduler, &disk);
    std::fs::remove_file(scheduler.data().join("pvn.db-reserve")).expect("there is one");
    disk.fill();
    let served = scheduler.is_refused(&Start::default());
    let (pruned, activated) = (by_hand(&scheduler, "prune").1, by_hand(&scheduler, "activate").1);
    for said in [served, pruned, activated] {
        for part in ["0 KiB left", "is used up, or was never made", "make 8 MiB of room"] {
            assert!(said.contains(part), "no {part}: {said}");
        }
    }
    disk.free();
    let (output, said) = by_hand(&scheduler, "prune");
    assert!(output.status.success(), "{said}");
    scheduler.run(&Start::default());
    readiness(&scheduler, 200);
    scheduler.kill();
}

#[test]
fn a_disk_without_room_for_files_is_named_with_what_to_do() {
    let test = "a_disk_without_room_for_files_is_named_with_what_to_do";
    let mut scheduler = Scheduler::stopped();
    let Some(disk) = SmallDisk::mount_for_files(&scheduler.data(), SIZE, 800) else {
        return skip::skipped(test, "mounting a small file system needs root");
    };
    let files = converged_and_stopped(&mut scheduler);
    disk.fill_files();
    let served = scheduler.is_refused(&Start::default());
    let (pruned, activated) = (by_hand(&scheduler, "prune").1, by_hand(&scheduler, "activate").1);
    for said in [served, pruned, activated] {
        for part in ["more files (inodes), too little to use it", "remove some 16 files"] {
            assert!(said.contains(part), "no {part}: {said}");
        }
    }
    disk.free_files();
    let (output, said) = by_hand(&scheduler, "prune");
    assert!(output.status.success() && said.contains("files (inodes) were free and"), "{said}");
    scheduler.run(&Start::default());
    readiness(&scheduler, 200);
    assert_eq!(files.overlaps(), "");
    scheduler.kill();
}

#[test]
fn p9_a_disk_that_hangs_is_told_as_such_and_everything_goes_on_when_it_does() {
    let mut scheduler = Scheduler::stopped();
    let disk = Ext4Disk::mount(&scheduler.data()).filter(|disk| {
        let hung = disk.hang();
        hung.then(|| disk.go_on());
        hung
    });
    let Some(disk) = disk else {
        return skip::skipped(
            "p9_a_disk_that_hangs_is_told_as_such_and_everything_goes_on_when_it_does",
            "a disk that hangs needs root, loop devices, mkfs.ext4 and fsfreeze",
        );
    };
    let files = Files::new(scheduler.home());
    scheduler.run(&Start::default());
    scheduler.apply(&Files::configs(1, 1));
    scheduler.ok(&["services", "push", "s0", "--app", "app"]);
    scheduler.channel_becomes("s0", "c0", "CONVERGED");
    assert!(disk.hang());
    let told = wait::until("/readyz to say that the disk hangs", || {
        let (code, told) = scheduler.get("/readyz")?;
        (code == 503 && told.contains("its disk hangs or is overloaded")).then_some(told)
    });
    assert!(told.contains("\"status\":503"), "{told}");
    disk.go_on();
    readiness(&scheduler, 200);
    files.drift("s0", "c0");
    let repaired = wait::within(wait::PATIENCE, || files.state("s0", "c0"));
    assert!(repaired.is_some(), "{}", scheduler.situation("s0", "c0"));
    drop(scheduler);
}

#[test]
fn p9_what_a_job_printed_is_kept_once_there_is_room_for_it_and_until_then_it_says_so() {
    let test = "p9_what_a_job_printed_is_kept_once_there_is_room_for_it_and_until_then_it_says_so";
    let mut scheduler = Scheduler::stopped();
    let Some(disk) = SmallDisk::mount(&scheduler.data().join("blobs"), "16m") else {
        return skip::skipped(test, "mounting a small file system needs root");
    };
    scheduler.run(&Start::default());
    scheduler.apply(
        "runtime:\n  name: r\n  custom:\n    proxyRuntime: {runtime: local}\n    apply:\n      \
         taskConfig: {program: {name: do, entrypoint: [sh, -c], cmd: ['until [ -e go ]; do sleep \
         0.1; done; echo what it printed']}}\n---\napplication: {name: app, releaseChannels: \
         [{name: c, runtimes: [{runtime: r}]}]}\n---\nservice: {name: s, application: app}\n",
    );
    scheduler.ok(&["services", "push", "s", "--app", "app"]);
    let job = wait::until("the apply to run", || {
        let jobs = scheduler.json(&["jobs", "list", "--app", "app", "--kind", "apply"]);
        (jobs[0]["status"] == "RUNNING")
            .then(|| jobs[0]["id"].as_str().expect("a job has an id").to_owned())
    });
    disk.fill();
    std::fs::write(scheduler.home().join("go"), "").expect("a file can be written");
    // Nothing is decided meanwhile, so that no deadline counts.
    let told = format!("the disk that holds {} has ", scheduler.data().join("blobs").display());
    let explained =
        || scheduler.ok(&["services", "explain", "s", "--app", "app", "--channel", "c"]);
    wait::until("it to say what it waits for", || explained().contains(&told).then_some(()));
    disk.free();
    scheduler.channel_becomes("s", "c", "CONVERGED");
    assert!(scheduler.ok(&["jobs", "logs", &job]).contains("what it printed"));
    scheduler.stop();
}

#[test]
fn p9_a_directory_of_its_own_that_cannot_be_written_to_is_red_and_named() {
    let mut scheduler = Scheduler::stopped();
    let _files = Files::new(scheduler.home());
    for name in ["blobs", "spool"] {
        scheduler.run(&Start::default());
        let path = scheduler.data().join(name);
        let Some(mounts) = MountsBelow::bind(scheduler.home(), &path, &path) else {
            let test = "p9_a_directory_of_its_own_that_cannot_be_written_to_is_red_and_named";
            return skip::skipped(test, "mounting a directory at another one needs root");
        };
        scheduler.apply(&Files::configs(1, 1));
        MountsBelow::let_write(&path, false);
        readiness(&scheduler, 503);
        let (_, why) = scheduler.get("/readyz").expect("it answers");
        assert!(
            why.contains(&format!(
                "{} cannot be written to: Read-only file system",
                path.display()
            )),
            "{why}"
        );
        // And it is true.
        let refused = scheduler.pvnctl(["services", "push", "s0", "--app", "app"]);
        let words = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert!(!refused.status.success() && words.contains("cannot be written to"), "{words}");
        MountsBelow::let_write(&path, true);
        readiness(&scheduler, 200);
        scheduler.ok(&["services", "push", "s0", "--app", "app"]);
        scheduler.channel_becomes("s0", "c0", "CONVERGED");
        scheduler.stop();
        if name == "blobs" {
            MountsBelow::let_write(&path, false);
            let said = scheduler.is_refused(&Start::default());
            assert!(
                said.contains(&format!("{} cannot be written to", path.display()))
                    && said.contains("mount it for writing"),
                "{said}"
            );
        }
        drop(mounts);
    }
}
