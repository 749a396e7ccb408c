//! The wrapper is killed, alone or with its command, and `resume` delivers what it left.

use std::path::PathBuf;
use std::time::Duration;

use schema::spool::Stream;

use super::{resume, shell, wrapper};
use crate::run::{Running, until};
use crate::scheduler::{Do, JOB, Reply, Scheduler, TOKEN};

fn spool(running: &Running) -> PathBuf {
    running.path("pvn").join(JOB)
}

/// Kills the wrapper and then its command, whose pid is in the file `pid`.
fn kill(running: &mut Running) {
    running.child.kill().unwrap();
    running.child.wait().unwrap();
    if let Ok(pid) = std::fs::read_to_string(running.path("pid")) {
        let pid = nix::unistd::Pid::from_raw(pid.trim().parse().unwrap());
        // It may be gone already, of the pipe that nobody reads any more.
        let _ = nix::sys::signal::killpg(pid, nix::sys::signal::Signal::SIGKILL);
        until("the command is gone", || (!crate::run::is_alive(pid.as_raw())).then_some(()));
    }
}

/// A run that printed `x` and ended while the scheduler was away: it still delivers. And its spool,
/// with the report.
fn undelivered(scheduler: &Scheduler) -> (Running, PathBuf) {
    scheduler.go_away();
    let running = wrapper(scheduler, &[], &["echo", "x"]).spawn();
    let spool = spool(&running);
    until("the report is written", || spool.join("report.json").exists().then_some(()));
    (running, spool)
}

/// Resumes to the end; the scheduler then has exactly one report.
fn deliver(scheduler: &Scheduler, spool: &std::path::Path) {
    let output = resume(scheduler, spool).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(!spool.exists(), "delivered and removed");
    scheduler.check();
}

#[test]
fn wrapper_sigkilled_then_resume() {
    let scheduler = Scheduler::start();
    let mut running = shell(
        &scheduler,
        &[],
        "echo $$ > pid; echo first; echo err >&2; echo ready > ready; exec sleep 60",
    )
    .spawn();
    running.until_written("ready");
    scheduler.until_arrived(Stream::Stdout, "first\n");
    scheduler.until_arrived(Stream::Stderr, "err\n");
    let spool = spool(&running);
    kill(&mut running);
    deliver(&scheduler, &spool);
    let report = scheduler.check();
    assert_eq!(
        (report.exit_code, report.stdout_bytes, report.stderr_bytes, report.output_incomplete),
        (None, 6, 4, true)
    );
    assert_eq!(scheduler.bytes(Stream::Stdout), b"first\n");
}

#[test]
fn wrapper_and_child_sigkilled_together() {
    let scheduler = Scheduler::start();
    scheduler.go_away();
    let script = "echo $$ > pid; head -c 3000000 /dev/urandom | tee bytes; echo ready > ready; \
                  exec sleep 60";
    let mut running = shell(&scheduler, &[], script).spawn();
    running.until_written("ready");
    let spool = spool(&running);
    until("all is in the spool", || {
        (std::fs::metadata(spool.join("stdout")).ok()?.len() == 3_000_000).then_some(())
    });
    kill(&mut running);
    scheduler.come_back();
    deliver(&scheduler, &spool);
    assert!(scheduler.bytes(Stream::Stdout) == std::fs::read(running.path("bytes")).unwrap());
}

#[test]
fn killed_at_any_moment_of_the_delivery_there_is_one_report() {
    // The wrapper is killed while the scheduler answers its `n`th request; what it did for it
    // counts or not, by turns.
    for moment in 0..8 {
        let scheduler = Scheduler::start().with(|_, _| Do::Usual);
        let (tell, told) = std::sync::mpsc::channel();
        let (gone, is_gone) = std::sync::mpsc::channel::<()>();
        let (tell, is_gone) = (std::sync::Mutex::new(tell), std::sync::Mutex::new(is_gone));
        let counter = std::sync::atomic::AtomicUsize::new(0);
        let scheduler = scheduler.with(move |_, _| {
            if counter.fetch_add(1, std::sync::atomic::Ordering::SeqCst) != moment / 2 {
                return Do::Usual;
            }
            tell.lock().unwrap().send(()).unwrap();
            // The answer reaches nobody: the other end is dropped when the wrapper is dead.
            let _ = is_gone.lock().unwrap().recv();
            if moment % 2 == 0 { Do::Break } else { Do::ActThen(None) }
        });
        let script = "echo $$ > pid; echo x > plan; echo first; echo ready > ready; sleep 0.4; \
                      head -c 200000 /dev/zero; echo err >&2";
        let mut running = shell(&scheduler, &["--out", "plan=plan"], script).spawn();
        running.until_written("ready");
        // With few requests the run may be over before its moment comes.
        let killed = told.recv_timeout(Duration::from_secs(3)).is_ok();
        let spool = spool(&running);
        kill(&mut running);
        drop(gone);
        if spool.exists() {
            deliver(&scheduler, &spool);
        } else {
            assert!(!killed, "moment {moment}: the spool outlives whatever is not delivered");
            scheduler.check();
        }
    }
}

#[test]
fn two_who_resume_do_not_meet() {
    let scheduler = Scheduler::start();
    let (mut running, spool) = undelivered(&scheduler);
    let output = resume(&scheduler, &spool).output().unwrap();
    assert_eq!(output.status.code(), Some(125));
    assert!(
        String::from_utf8_lossy(&output.stderr).contains("still delivers"),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    kill(&mut running);
    scheduler.come_back();
    deliver(&scheduler, &spool);
    assert_eq!(scheduler.check().exit_code, Some(0));
}

#[test]
fn a_resume_that_fails_keeps_what_it_has() {
    let scheduler = Scheduler::start();
    let (mut running, spool) = undelivered(&scheduler);
    kill(&mut running);
    let output = resume(&scheduler, &spool).args(["--deliver-for", "300ms"]).output().unwrap();
    assert_eq!(output.status.code(), Some(125));
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains(&spool.display().to_string()) && said.contains("kept"), "{said}");
    scheduler.come_back();
    deliver(&scheduler, &spool);
    assert_eq!(scheduler.bytes(Stream::Stdout), b"x\n");
}

#[test]
fn what_the_scheduler_does_not_want_any_more_is_left_to_whoever_resumes_it() {
    let scheduler = Scheduler::start();
    let (mut running, spool) = undelivered(&scheduler);
    kill(&mut running);
    scheduler.come_back();
    let scheduler = scheduler.with(|_, _| Do::Answer(Reply::problem(410, "the job is over")));
    let output = resume(&scheduler, &spool).output().unwrap();
    assert_eq!(output.status.code(), Some(125));
    assert!(
        String::from_utf8_lossy(&output.stderr)
            .contains("the job is over: 410 Gone (the job is over); it is kept"),
        "{output:?}"
    );
    assert!(spool.join("report.json").exists());
}

#[test]
fn what_is_no_spool_is_refused() {
    let scheduler = Scheduler::start();
    let directory = tempfile::tempdir().unwrap();
    for (file, says) in [(None, "no `run.json`"), (Some(schema::spool::CLAIM), "local job")] {
        if let Some(file) = file {
            std::fs::write(directory.path().join(file), "").unwrap();
        }
        let output = resume(&scheduler, directory.path()).output().unwrap();
        assert_eq!(output.status.code(), Some(125));
        assert!(
            String::from_utf8_lossy(&output.stderr).contains(says),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
    }
}

#[test]
fn p8_the_word_of_a_wrapper_that_is_killed_while_it_collects_files_says_that_they_are_lost_and_is_its_own()
 {
    let scheduler = Scheduler::start();
    for (ending, bad) in [("true", true), ("exit 2", false)] {
        let directory = tempfile::tempdir().unwrap();
        let log = directory.path().join("termination-log");
        std::fs::write(&log, "").unwrap();
        // A wrapper within the command writes its own word before.
        let within = format!(
            "\"{}\" exec -- true; cp \"$PVN_TERMINATION_LOG\" within",
            env!("CARGO_BIN_EXE_pvn-wrapper")
        );
        let script = format!("{within}; truncate -s 4G plan; {ending}");
        let mut running = shell(&scheduler, &["--out", "plan=plan"], &script)
            .env("PVN_TERMINATION_LOG", &log)
            .spawn();
        let signed = |text: &str| schema::report::message::read_signed(text, JOB, TOKEN);
        let told = until("the wrapper to say how the command ended", || {
            signed(&std::fs::read_to_string(&log).unwrap())
        });
        kill(&mut running);
        let lost = "killed while it handed over";
        assert!(told.files_lost.is_some_and(|why| why.contains(lost)), "{ending}");
        assert_eq!(
            (told.bad_output.is_some_and(|why| why.contains(lost)), told.exit_code),
            (bad, Some(if bad { 0 } else { 2 }))
        );
        let within = std::fs::read_to_string(running.path("within")).unwrap();
        assert_eq!(
            (schema::report::message::read(&within).unwrap().exit_code, signed(&within)),
            (Some(0), None),
            "{within}"
        );
    }
}
