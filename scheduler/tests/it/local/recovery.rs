//! Jobs that are stopped, outlive the daemon, or whose wrapper, daemon or machine is gone in the
//! middle of them.

use super::left::{ORPHANS, is_gone};
use super::*;

#[tokio::test(flavor = "multi_thread")]
async fn p7_a_stop_asks_the_command_and_tells_that_all_of_it_is_gone() {
    let mut world = World::new().await;
    let ready = world.file("ready");
    let job = shell(
        "a",
        &format!(
            "trap 'echo asked; exit 5' TERM; echo > {}; while :; do sleep 0.01; done",
            ready.display()
        ),
    );
    let id = job.job;
    world.runner.start(job);
    world.until_written(&ready).await;
    assert!(world.runner.stop(id));
    let (_, end, gone) = world.ended().await;
    let End::Reported(report) = end else { panic!("{end:?}") };
    assert_eq!((report.exit_code, gone), (Some(5), true));
    assert_eq!(world.text(report.stdout_blob_id), "asked\n");
    assert!(!world.runner.stop(id), "there is nothing left to stop");
}

#[tokio::test(flavor = "multi_thread")]
async fn p7_a_second_stop_kills_at_once() {
    let mut world = World::new().await;
    let ready = world.file("ready");
    let job = shell(
        "a",
        &format!("trap '' TERM; echo $$ > {}; while :; do sleep 0.01; done", ready.display()),
    );
    let id = job.job;
    world.runner.start(job);
    let pid = world.until_written(&ready).await;
    assert!(world.runner.stop(id));
    assert!(world.runner.stop(id));
    let (_, end, gone) = world.ended().await;
    let End::Reported(report) = end else { panic!("{end:?}") };
    assert_eq!((report.signal.as_deref(), gone), (Some("SIGKILL"), true));
    assert!(!Path::new(&format!("/proc/{}", pid.trim())).exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn p7_a_wrapper_that_somebody_halted_hears_a_stop() {
    let mut world = World::new().await;
    let ready = world.file("ready");
    let job = shell("a", &format!("echo $PPID > {}; exec sleep 60", ready.display()));
    let id = job.job;
    world.runner.start(job);
    let wrapper = world.until_written(&ready).await.trim().parse().unwrap();
    nix::sys::signal::kill(nix::unistd::Pid::from_raw(wrapper), nix::sys::signal::Signal::SIGSTOP)
        .unwrap();
    assert!(world.runner.stop(id));
    let (_, end, gone) = world.ended().await;
    let End::Reported(report) = end else { panic!("{end:?}") };
    assert_eq!((report.signal.as_deref(), gone), (Some("SIGTERM"), true));
}

#[tokio::test(flavor = "multi_thread")]
async fn p6_a_running_job_outlives_the_daemon_and_is_taken_up_by_the_next() {
    let mut world = World::new().await;
    let (ready, go) = (world.file("ready"), world.file("go"));
    let script = format!(
        "echo x >> {0}; until [ -e {1} ]; do sleep 0.01; done; echo done; exit 7",
        ready.display(),
        go.display()
    );
    let job = shell("a", &script);
    let id = job.job;
    world.runner.start(job);
    world.until_written(&ready).await;
    assert_eq!(world.restart(&[id]).await, []);
    assert!(matches!(world.next().await, RunnerEvent::Started { job, .. } if job == id));
    std::fs::write(go, "").unwrap();
    let report = world.report().await;
    assert_eq!(
        (report.exit_code, world.text(report.stdout_blob_id)),
        (Some(7), "done\n".to_owned())
    );
    assert_eq!(std::fs::read_to_string(ready).unwrap(), "x\n", "started once");
}

#[tokio::test(flavor = "multi_thread")]
async fn p7_an_adopted_job_can_be_stopped() {
    let mut world = World::new().await;
    let ready = world.file("ready");
    let job = shell("a", &format!("echo > {}; exec sleep 60", ready.display()));
    let id = job.job;
    world.runner.start(job);
    world.until_written(&ready).await;
    assert_eq!(world.restart(&[id]).await, []);
    assert!(world.runner.stop(id));
    assert_eq!(world.report().await.signal.as_deref(), Some("SIGTERM"));
}

#[tokio::test(flavor = "multi_thread")]
async fn p5_a_job_that_ended_while_no_daemon_was_there_is_told_by_the_next() {
    let mut world = World::new().await;
    let go = world.file("go");
    let job = shell("a", &format!("until [ -e {} ]; do sleep 0.01; done; exit 4", go.display()));
    let id = job.job;
    world.runner.start(job);
    world.until_written(&world.spool(id).join(CLAIM)).await;
    world.runner.detach().await;
    std::fs::write(go, "").unwrap();
    world.until_written(&world.spool(id).join(REPORT)).await;
    assert_eq!(world.restart(&[id]).await, []);
    assert_eq!(world.report().await.exit_code, Some(4));
    assert_eq!(world.restart(&[id]).await, [], "and by the one after it, until it is forgotten");
    assert_eq!(world.report().await.exit_code, Some(4));
}

#[tokio::test(flavor = "multi_thread")]
async fn p1_a_job_without_directory_was_never_started_and_can_be_started() {
    let mut world = World::new().await;
    let job = shell("a", "exit 6");
    let id = job.job;
    assert_eq!(world.restart(&[id]).await, [id]);
    assert_eq!(world.run(job).await.exit_code, Some(6));
}

#[tokio::test(flavor = "multi_thread")]
async fn p1_a_directory_without_claim_is_claimed_so_that_a_late_wrapper_runs_nothing() {
    let mut world = World::new().await;
    let job = shell("a", "exit 6");
    let (id, spool, ran) = (job.job, world.spool(job.job), world.file("ran"));
    std::fs::create_dir_all(&spool).unwrap();
    assert_eq!(world.restart(&[id]).await, [id]);
    let late = std::process::Command::new(find_wrapper(None).unwrap())
        .args(["exec", "--job", spool.to_str().unwrap(), "--", "touch", ran.to_str().unwrap()])
        .output()
        .unwrap();
    assert_eq!(late.status.code(), Some(125));
    assert!(String::from_utf8_lossy(&late.stderr).contains("claimed before"), "{late:?}");
    assert!(!ran.exists());
    assert_eq!(world.run(job).await.exit_code, Some(6), "and the job can still be started");
}

#[tokio::test(flavor = "multi_thread")]
async fn p1_a_claim_that_its_wrapper_never_filled_started_nothing() {
    let mut world = World::new().await;
    let job = shell("a", "exit 6");
    std::fs::create_dir_all(world.spool(job.job)).unwrap();
    std::fs::write(world.spool(job.job).join(CLAIM), "").unwrap();
    assert_eq!(world.restart(&[job.job]).await, [job.job]);
    assert_eq!(world.run(job).await.exit_code, Some(6));
}

/// Whether a process runs: one that has ended and that nobody waited for yet does not.
pub(super) fn is_alive(pid: i32) -> bool {
    std::fs::read_to_string(format!("/proc/{pid}/stat"))
        .is_ok_and(|stat| !stat[stat.rfind(')').unwrap()..].starts_with(") Z"))
}

/// Kills the wrapper of a running job; `restarted`: while no daemon is there.
async fn check_killed_wrapper(restarted: bool) {
    let _alone = ORPHANS.lock().await;
    let mut world = World::new().await;
    let ready = world.file("ready");
    let job = shell(
        "a",
        &format!(
            "echo before; until [ -s $PVN_JOB_DIR/stdout ]; do sleep 0.01; done; echo $PPID $$ > \
             {}; exec sleep 60",
            ready.display()
        ),
    );
    let id = job.job;
    world.runner.start(job);
    let pids = world.until_written(&ready).await;
    let [wrapper, command] =
        pids.split_whitespace().map(|pid| pid.parse::<i32>().unwrap()).collect::<Vec<_>>()[..]
    else {
        panic!("{pids}")
    };
    if restarted {
        world.runner.detach().await;
    }
    nix::sys::signal::kill(nix::unistd::Pid::from_raw(wrapper), nix::sys::signal::Signal::SIGKILL)
        .unwrap();
    if restarted {
        assert_eq!(world.restart(&[id]).await, []);
    }
    let (_, end, gone) = world.ended().await;
    let End::Unknown { why, report } = end else { panic!("{end:?}") };
    assert!(is_gone(gone, restarted, &why), "{why}");
    assert!(why.contains("it left"), "{why}");
    assert!(!is_alive(command), "what it left was stopped");
    assert_eq!(world.text(report.unwrap().stdout_blob_id), "before\n", "what it wrote is kept");
}

#[tokio::test(flavor = "multi_thread")]
async fn rule_14_a_killed_wrapper_is_an_unknown_outcome_and_nothing_of_the_job_stays() {
    check_killed_wrapper(false).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn rule_14_a_wrapper_killed_while_no_daemon_was_there_is_an_unknown_outcome_too() {
    check_killed_wrapper(true).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn rule_11_after_a_restart_of_the_machine_a_missing_directory_is_unknown_until_that_is_stored()
 {
    let mut world = World::new().await;
    std::fs::write(world.file("spool/boot"), "another boot").unwrap();
    let job = shell("a", "exit 6");
    for _ in 0..2 {
        assert_eq!(world.restart(&[job.job]).await, []);
        let (_, end, _) = world.ended().await;
        assert!(
            matches!(&end, End::Unknown { why, .. } if why.contains("machine was started again")),
            "{end:?}"
        );
    }
    world.runner.forget(vec![job.job]).await;
    assert_eq!(world.restart(&[job.job]).await, [job.job], "from then on this boot counts");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_report_cut_by_a_crash_of_the_machine_is_none() {
    let mut world = World::new().await;
    let job = shell("a", "true");
    let spool = world.spool(job.job);
    std::fs::create_dir_all(&spool).unwrap();
    std::fs::write(spool.join(CLAIM), r#"{"wrapper":{"pid":1,"at":"2026-01-01T00:00:00Z"}}"#)
        .unwrap();
    std::fs::write(spool.join(REPORT), r#"{"exitCode":0,"#).unwrap();
    std::fs::write(world.file("spool/boot"), "another boot").unwrap();
    assert_eq!(world.restart(&[job.job]).await, []);
    let (_, end, gone) = world.ended().await;
    assert!(matches!(end, End::Unknown { .. }) && gone, "{end:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_job_leaves_running_on_purpose_is_told_as_not_gone() {
    let mut world = World::new().await;
    let mut job = shell("a", "sleep 60 >/dev/null 2>&1 & echo $!");
    job.command.leave_running = true;
    world.runner.start(job);
    let (_, end, gone) = world.ended().await;
    let End::Reported(report) = end else { panic!("{end:?}") };
    let left: i32 = world.text(report.stdout_blob_id).trim().parse().unwrap();
    assert!(!gone);
    assert_eq!((report.leaked[0].pid, report.leaked[0].alive), (left, true));
    nix::sys::signal::kill(nix::unistd::Pid::from_raw(left), nix::sys::signal::Signal::SIGKILL)
        .unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn p7_a_job_that_was_stopped_leaves_nothing_running_whatever_it_was_meant_to_leave() {
    let mut world = World::new().await;
    let pid = world.file("pid");
    // The shell dies of TERM, and what it waited for is the work itself.
    let mut job = shell(
        "a",
        &format!("sh -c 'echo $$ > {pid}; exec sleep 60'; echo done", pid = pid.display()),
    );
    job.command.leave_running = true;
    let id = job.job;
    world.runner.start(job);
    let work = super::left::number(&world, &pid).await;
    world.runner.stop(id);
    let (_, _, gone) = world.ended().await;
    assert!(gone && !is_alive(work));
}

#[tokio::test(flavor = "multi_thread")]
async fn bad_input_disk_full_when_a_job_starts_is_the_surroundings_fault() {
    let mut world = World::new().await;
    // A file where the spool directory was fails as a full disk does, also for root.
    std::fs::remove_dir_all(world.file("spool")).unwrap();
    std::fs::write(world.file("spool"), "").unwrap();
    world.runner.start(shell("a", "true"));
    let (_, end, _) = world.ended().await;
    assert!(matches!(&end, End::NotStarted { surroundings: true, .. }), "{end:?}");
    let id = world.blobs.put(b"unrelated", Keep::Lazy).unwrap();
    assert!(world.blobs.has(id), "reading and writing elsewhere goes on");
}

#[tokio::test(flavor = "multi_thread")]
async fn p1_a_job_whose_directory_vanishes_while_it_runs_is_no_job_that_never_started() {
    let emptied = "its directory in the spool was removed or emptied while it ran";
    let scripts = [
        // Seen as running, or over before anybody looked.
        "sleep 0.3; rm -rf $PVN_JOB_DIR",
        "rm -rf $PVN_JOB_DIR",
        // What is left of it is ended, and so nothing runs beside the next one.
        "rm -rf $PVN_JOB_DIR/*; kill -9 $PPID; exec sleep 60",
        "sleep 0.3; rm -rf $PVN_JOB_DIR; kill -9 $PPID; exec sleep 60",
    ];
    for script in scripts {
        let mut world = World::new().await;
        let pid = world.file("pid");
        world.runner.start(shell("a", &format!("echo $$ > {}; {script}", pid.display())));
        let (_, end, gone) = world.ended().await;
        let End::Unknown { why, .. } = &end else { panic!("{script}: {end:?}") };
        assert!(why.starts_with(emptied) && gone, "{script}: {why}");
        // One that has ended and that nobody has taken note of has no command line any more.
        let command =
            Path::new("/proc").join(std::fs::read_to_string(pid).unwrap().trim()).join("cmdline");
        assert_eq!(std::fs::read_to_string(command).unwrap_or_default(), "", "{script}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_is_not_started_without_a_spool_and_says_what_helps() {
    let mut world = World::new().await;
    let job = shell("a", "exit 0");
    std::fs::remove_dir_all(world.spool(job.job).parent().unwrap()).unwrap();
    world.runner.start(job);
    let (_, end, gone) = world.ended().await;
    let End::NotStarted { why, surroundings: true } = &end else { panic!("{end:?}") };
    assert!(
        why.contains("was removed while this daemon used it; start the daemon again") && gone,
        "{why}"
    );
}
