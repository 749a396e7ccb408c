//! Disks that an error made read-only.

use super::*;

/// A scheduler with a disk of its own at one of its directories, which fails while an apply runs:
/// it ends when there is a `go`.
fn failed_disk(test: &str, name: &str) -> Option<(Scheduler, Ext4Disk)> {
    let mut scheduler = Scheduler::stopped();
    let path = scheduler.data().join(name);
    let Some(disk) = Ext4Disk::mount(&path) else {
        skip::skipped(test, "a disk that fails needs root, loop devices and mkfs.ext4");
        return None;
    };
    scheduler.run(&Start::default());
    scheduler.apply(
        "runtime:\n  name: r\n  custom:\n    proxyRuntime: {runtime: local}\n    apply:\n      \
         taskConfig: {program: {name: do, entrypoint: [sh, -c], cmd: ['echo >> began; until [ -e \
         go ]; do sleep 0.1; done; echo what it printed; touch ended']}}\n---\napplication: \
         {name: app, releaseChannels: [{name: c, runtimes: [{runtime: r}]}]}\n---\nservice: \
         {name: s, application: app}\n",
    );
    scheduler.ok(&["services", "push", "s", "--app", "app"]);
    wait::until("the apply to run", || scheduler.home().join("began").exists().then_some(()));
    if !disk.fail() {
        skip::skipped(test, "a disk that fails needs the kernel's trigger_fs_error");
        return None;
    }
    readiness(&scheduler, 503);
    let (_, why) = scheduler.get("/readyz").expect("it answers");
    assert!(
        why.contains(&format!("{} cannot be written to: Read-only file system", path.display()))
            && why.contains("fsck"),
        "{why}"
    );
    let explained = scheduler.ok(&["services", "explain", "s", "--app", "app", "--channel", "c"]);
    assert!(
        explained.contains("NOTHING_STORED") && explained.contains("cannot be written to"),
        "{explained}"
    );
    let refused = scheduler.pvnctl(["services", "push", "s", "--app", "app"]);
    assert!(
        !refused.status.success()
            && String::from_utf8_lossy(&refused.stderr).contains("cannot be written to"),
        "{refused:?}"
    );
    Some((scheduler, disk))
}

#[test]
fn p9_a_disk_of_the_blobs_that_an_error_made_read_only_is_red_and_what_ended_is_taken_in_after_its_repair()
 {
    let test = "p9_a_disk_of_the_blobs_that_an_error_made_read_only_is_red_and_what_ended_is_taken_in_after_its_repair";
    let Some((mut scheduler, disk)) = failed_disk(test, "blobs") else { return };
    std::fs::write(scheduler.home().join("go"), "").expect("a file can be written");
    wait::until("the log to say that its end waits", || {
        scheduler.log().contains("it has ended, and what it printed").then_some(())
    });
    scheduler.stop();
    disk.repair();
    scheduler.run(&Start::default());
    scheduler.channel_becomes("s", "c", "CONVERGED");
    let jobs = scheduler.json(&["jobs", "list", "--app", "app", "--kind", "apply"]);
    assert_eq!(
        (&jobs[0]["status"], jobs.as_array().map(Vec::len)),
        (&"SUCCEEDED".into(), Some(1)),
        "{jobs:#}"
    );
    let began = std::fs::read_to_string(scheduler.home().join("began")).expect("it began");
    assert_eq!(began.lines().count(), 1);
    scheduler.stop();
}

#[test]
fn p9_a_disk_of_the_spool_that_an_error_made_read_only_is_red() {
    let Some((mut scheduler, _disk)) =
        failed_disk("p9_a_disk_of_the_spool_that_an_error_made_read_only_is_red", "spool")
    else {
        return;
    };
    // Its wrapper waits with the report for a while, and ends then.
    std::fs::write(scheduler.home().join("go"), "").expect("a file can be written");
    wait::until("the command to end", || scheduler.home().join("ended").exists().then_some(()));
    scheduler.stop();
}
