//! A year of running: what is not kept any more is removed, by the daemon and by hand, also after a
//! `kill -9` in the middle and on a full disk (promise P9).

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use tests::files::{Files, task};
use tests::scheduler::{Scheduler, Start};
use tests::{programs, skip, wait};

/// Polls every 100 ms and prints something else each time, 100 KB of it.
fn chatty() -> String {
    let fetch = "head -c 100000 /dev/urandom | od -An -tx1 | head -c 100000; cat /proc/uptime";
    format!(
        "runtime:\n  name: files\n  custom:\n    proxyRuntime: {{runtime: local}}\n    fetch:\n      pollInterval: 100ms\n      \
         steadyStatePollInterval: 100ms\n{}    apply:\n{}---\napplication:\n  name: app\n  releaseChannels:\n  - {{name: c0, runtimes: [{{runtime: files}}]}}\n\
         ---\nservice: {{name: s0, application: app}}\n",
        task("fetch", fetch),
        task("apply", "true"),
    )
}

fn fetches(scheduler: &Scheduler) -> usize {
    let jobs = scheduler.get("/v1/jobs?kind=fetch&limit=1").expect("it answers").1;
    let page: serde_json::Value = serde_json::from_str(&jobs).expect("a page is JSON");
    usize::try_from(page["total"].as_u64().expect("a page has a total")).expect("it fits")
}

fn blobs(data: &Path) -> Vec<PathBuf> {
    let directories = std::fs::read_dir(data.join("blobs")).expect("the blobs can be listed");
    let directories = directories
        .map(|entry| entry.expect("an entry can be read").path())
        .filter(|path| !path.ends_with("new"));
    directories
        .flat_map(|path| {
            std::fs::read_dir(path)
                .expect("a directory can be listed")
                .map(|entry| entry.expect("an entry can be read").path())
        })
        .collect()
}

fn prune(scheduler: &Scheduler, crash_at: Option<&str>) -> Output {
    let mut command = Command::new(programs::program("pvn-scheduler"));
    command.args([
        "prune",
        "--retain-job-count",
        "5",
        "--retain-jobs",
        "1ms",
        "--retain-logs",
        "1ms",
        "--retain-events",
        "1ms",
        "--data-dir",
    ]);
    if let Some(point) = crash_at {
        command.env("PVN_CRASH_AT", point);
    }
    command.arg(scheduler.data()).output().expect("the program can be started")
}

fn said(output: &Output) -> String {
    format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    )
}

#[test]
fn prune_killed_in_the_middle_goes_on_where_it_was_and_loses_nothing_that_is_kept() {
    let mut scheduler = Scheduler::start();
    scheduler.apply(&chatty());
    scheduler.ok(&["services", "push", "s0", "--app", "app"]);
    wait::until("some polls", || (fetches(&scheduler) > 30).then_some(()));
    let refused = prune(&scheduler, None);
    assert!(
        !refused.status.success() && said(&refused).contains("in use by the pvn-scheduler"),
        "{}",
        said(&refused)
    );
    scheduler.stop();
    let before = blobs(&scheduler.data()).len();
    for point in ["after-sweep:1", "after-prune:1", "after-prune:3"] {
        let killed = prune(&scheduler, Some(point));
        assert!(!killed.status.success(), "it dies {point}: {}", said(&killed));
    }
    let done = prune(&scheduler, None);
    assert!(done.status.success(), "{}", said(&done));
    let left = blobs(&scheduler.data());
    assert!(before >= 30 && left.len() < 10, "{} of {before} blobs", left.len());
    scheduler.run(&Start::default());
    let jobs =
        scheduler.json(&["jobs", "list", "--app", "app", "--service", "s0", "--kind", "fetch"]);
    let oldest = jobs.as_array().and_then(|jobs| jobs.last()).expect("some jobs are left");
    assert_eq!(oldest["status"], "SUCCEEDED");
    let id = oldest["id"].as_str().expect("a job has an id");
    assert!(
        scheduler.pvnctl(["jobs", "logs", id]).status.success(),
        "output that is gone is an ordinary answer"
    );
    scheduler.channel_becomes("s0", "c0", "CONVERGED");
}

/// A small disk, mounted in place of a data directory.
struct Disk(PathBuf);

impl Disk {
    fn mount(at: &Path) -> Option<Self> {
        std::fs::create_dir_all(at).expect("a directory can be made");
        let mounted =
            Command::new("mount").args(["-t", "tmpfs", "-o", "size=96m", "none"]).arg(at).output();
        mounted.is_ok_and(|output| output.status.success()).then(|| Self(at.to_owned()))
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let unmounted = Command::new("umount").arg("-l").arg(&self.0).status();
        assert!(
            unmounted.is_ok_and(|status| status.success()),
            "{} stays mounted",
            self.0.display()
        );
    }
}

#[test]
fn p9_a_disk_that_pvn_filled_is_mended_by_prune() {
    let mut scheduler = Scheduler::stopped();
    let Some(_disk) = Disk::mount(&scheduler.data()) else {
        return skip::skipped(
            "p9_a_disk_that_pvn_filled_is_mended_by_prune",
            "mounting a small file system needs root",
        );
    };
    let files = Files::new(scheduler.home());
    scheduler.run(&Start::default());
    scheduler.apply(&chatty());
    scheduler.ok(&["services", "push", "s0", "--app", "app"]);
    wait::until("some polls", || (fetches(&scheduler) > 30).then_some(()));
    // The rest of the disk goes to others; the reserve is there.
    assert!(scheduler.data().join("pvn.db-reserve").exists());
    let mut filler =
        std::fs::File::create(scheduler.data().join("filler")).expect("a file can be made");
    let filled = std::io::copy(&mut std::io::repeat(0), &mut filler);
    assert!(filled.is_err(), "the disk is full");
    drop(filler);
    wait::until("it to say that nothing can be stored", || {
        (scheduler.get("/readyz")?.0 == 503).then_some(())
    });
    scheduler.kill();
    let before = blobs(&scheduler.data()).len();

    let done = prune(&scheduler, None);
    assert!(done.status.success(), "{}", said(&done));
    assert!(blobs(&scheduler.data()).len() < before / 2, "{}", said(&done));
    scheduler.run(&Start::default());
    let polled = fetches(&scheduler);
    wait::until("polling to go on", || (fetches(&scheduler) > polled).then_some(()));
    assert_eq!(files.overlaps(), "");
    scheduler.kill();
}
