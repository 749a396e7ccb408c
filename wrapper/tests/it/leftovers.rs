//! What a command leaves behind: the end of the child, the end of its pipes and the end of its last
//! descendant are three things.

use std::time::Duration;

use crate::run::{SOON, Wrapper, is_alive, shell};

#[test]
fn a_left_over_that_ends_by_itself_within_the_drain_is_heard_to_its_end() {
    // It speaks when the shell that left it is gone.
    let run = shell(
        &["--drain", "60s"],
        "(while [ -e /proc/$$ ]; do sleep 0.01; done; echo late) & echo early",
    );
    assert_eq!((run.code, run.text().as_str()), (0, "early\nlate\n"));
    assert_eq!((run.report.leaked.len(), run.report.output_incomplete), (0, false));
}

#[test]
fn background_process_holding_the_pipe_keeps_nobody_from_ending() {
    let run = shell(&["--drain", "100ms"], "echo $0; sleep 60 & echo $!");
    assert_eq!(run.code, 0);
    assert!(run.took < SOON, "{:?}", run.took);
    let pid: i32 = run.text().lines().last().unwrap().parse().unwrap();
    assert_eq!(
        (run.report.leaked.len(), run.report.leaked[0].pid, run.report.leaked[0].alive),
        (1, pid, false)
    );
    assert_eq!(run.report.leaked[0].argv, ["sleep", "60"]);
    assert!(!is_alive(pid));
}

#[test]
fn grandchild_in_another_session_is_found() {
    let grandchild = "setsid sh -c 'echo > there; exec sleep 60' </dev/null >/dev/null 2>&1";
    let run = shell(
        &["--drain", "50ms"],
        &format!("{grandchild} & until [ -s there ]; do sleep 0.01; done"),
    );
    assert_eq!(run.report.leaked.len(), 1, "{:?}", run.report.leaked);
    assert!(!is_alive(run.report.leaked[0].pid));
}

#[test]
fn a_left_over_that_ignores_term_is_killed() {
    let left = "(trap '' TERM; echo > ready; while :; do sleep 0.01; done)";
    let run =
        shell(&["--drain", "0s"], &format!("{left} & until [ -s ready ]; do sleep 0.01; done"));
    assert_eq!(run.code, 0);
    assert!(
        run.report.leaked.iter().any(|left| left.argv[0] == "sh")
            && run.report.leaked.iter().all(|left| !left.alive)
    );
    assert!(run.took >= Duration::from_secs(2), "it was asked first: {:?}", run.took);
}

#[test]
fn a_chatty_left_over_does_not_put_the_deadline_off() {
    let run = shell(&["--drain", "100ms"], "yes & exit 0");
    assert_eq!(run.code, 0);
    assert!(run.took < SOON, "{:?}", run.took);
    assert!(run.report.stdout_bytes > 0);
}

#[test]
fn left_running_is_listed_and_lives_on() {
    let run = shell(&["--leave-running", "--drain", "100ms"], "sleep 60 & echo $!");
    let pid: i32 = run.text().trim().parse().unwrap();
    assert_eq!((run.report.leaked[0].pid, run.report.leaked[0].alive), (pid, true));
    assert!(run.report.output_incomplete, "it holds the pipe");
    assert!(is_alive(pid));
    nix::sys::signal::kill(nix::unistd::Pid::from_raw(pid), nix::sys::signal::Signal::SIGKILL)
        .unwrap();
}

#[test]
fn p7_what_was_stopped_leaves_nothing_running_whatever_it_was_meant_to_leave() {
    // A shell does not pass TERM on to the command that it waits for: that one is the work itself.
    let run = shell(
        &["--leave-running", "--timeout", "1s", "--drain", "50s"],
        "sleep 60 & echo $!; sleep 61",
    );
    let pid: i32 = run.text().trim().parse().unwrap();
    assert!(run.report.timed_out && !run.report.left_running, "{}", run.stderr);
    assert!(
        !is_alive(pid) && run.report.leaked.iter().all(|left| !left.alive),
        "{:?}",
        run.report.leaked
    );
    assert!(run.took < SOON, "{:?}", run.took);

    let run = shell(&["--leave-running", "--drain", "50ms"], "sleep 60 & echo $!; kill -KILL $$");
    let pid: i32 = run.text().trim().parse().unwrap();
    assert_eq!(
        (run.code, run.report.left_running, is_alive(pid)),
        (137, false, false),
        "{:?}",
        run.report.leaked
    );
}

#[test]
fn orphans_are_reaped() {
    // The command sees the wrapper's children: itself alone, in the end, and no zombie.
    let perl = "for (1..500) { if (fork() == 0) { fork() and exit; exit } } wait for 1..500; my \
                $wrapper = getppid(); sub children { open my $file, '<', \
                qq(/proc/$wrapper/task/$wrapper/children) or die; <$file> } select undef, undef, \
                undef, 0.01 until children() =~ /^$$ *$/; print qq(done\\n)";
    let run = Wrapper::new(&["--timeout", "60s"], &["perl", "-e", perl]).run();
    assert_eq!((run.code, run.text().as_str()), (0, "done\n"));
    assert_eq!(run.report.leaked.len(), 0);
}

#[test]
fn a_job_that_waits_for_its_daemon_to_vanish_is_not_kept_waiting() {
    let run = shell(
        &[],
        "sh -c 'sleep 0.05 & echo $! > pid; exit'; read pid < pid; while [ -e /proc/$pid ]; do \
         sleep 0.01; done; echo gone",
    );
    assert_eq!(run.text(), "gone\n");
}

#[test]
fn what_is_left_behind_has_no_more_time_than_the_run() {
    for flags in [
        &["--timeout", "1s", "--drain", "50s"][..],
        &["--timeout", "1s", "--drain", "50s", "--leave-running"],
    ] {
        let run = crate::run::shell(flags, "sleep 55 & echo $! > pid; exit 3");
        assert!(run.took < crate::run::SOON, "{:?}", run.took);
        assert_eq!(
            (run.code, run.report.timed_out, run.report.leaked.len()),
            (3, false, 1),
            "{}",
            run.stderr
        );
        if flags.len() == 5 {
            let pid = std::fs::read_to_string(run.path("pid")).unwrap().trim().parse().unwrap();
            nix::sys::signal::kill(
                nix::unistd::Pid::from_raw(pid),
                nix::sys::signal::Signal::SIGKILL,
            )
            .unwrap();
        }
    }
}
