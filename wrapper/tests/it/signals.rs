//! Asking goes to the root, killing to everything.

use std::time::Duration;

use crate::run::{Run, SOON, Wrapper, is_alive, run, until};

const HUP: i32 = 1;
const INT: i32 = 2;
const QUIT: i32 = 3;
const USR1: i32 = 10;
const USR2: i32 = 12;
const TERM: i32 = 15;
const CONT: i32 = 18;
const STOP: i32 = 19;
const TSTP: i32 = 20;
const WINCH: i32 = 28;

/// Waits in a loop that traps run in; says that it is ready.
const WAIT: &str = "echo > ready; while :; do sleep 0.01; done";

fn script(flags: &[&str], script: &str) -> Wrapper {
    Wrapper::new(flags, &["sh", "-c", script])
}

/// Counts this signal; a grandchild tells when it gets it too.
fn counting(number: i32) -> String {
    format!(
        "use POSIX; my $n = 0; POSIX::sigaction({number}, POSIX::SigAction->new(sub {{ $n++ }})); \
         $SIG{{ALRM}} = sub {{ print \"got $n\\n\"; exit 0 }}; if (fork() == 0) {{ \
         POSIX::sigaction({number}, POSIX::SigAction->new(sub {{ open F, '>grandchild'; close F \
         }})); open G, '>grandchild-ready'; print G \"x\\n\"; close G; sleep 60; exit }} until \
         (-s 'grandchild-ready') {{ select undef, undef, undef, 0.01 }} open R, '>ready'; print R \
         \"x\\n\"; close R; while ($n == 0) {{ sleep 1 }} alarm 1; while (1) {{ sleep 1 }}"
    )
}

#[test]
fn each_signal_forwarded_exactly_once_to_the_child_alone() {
    // All but those that cannot be caught, that stop or continue, and the one that the counting
    // ends with. Sent by somebody, also what a fault is called is a signal as others are.
    let numbers = [
        HUP, INT, QUIT, 4, 5, 6, 7, 8, 11, USR1, USR2, TERM, 16, CONT, 23, 24, 25, 26, 27, WINCH,
        29, 30, 31, 34, 35, 50, 64,
    ];
    let started: Vec<_> = numbers
        .into_iter()
        .map(|number| {
            (
                number,
                Wrapper::new(&["--drain", "0s"], &["perl", "-e", &counting(number)])
                    .with_default_signals()
                    .spawn(),
            )
        })
        .collect();
    for (number, running) in &started {
        running.until_written("ready");
        running.signal(*number);
    }
    for (number, running) in started {
        let run = running.wait();
        assert_eq!(run.text(), "got 1\n", "signal {number}");
        // Once the child is gone TERM is what those hear who are left.
        assert!(
            number == TERM || !run.path("grandchild").exists(),
            "signal {number} reached a grandchild"
        );
    }
}

#[test]
fn with_signal_scope_group_it_reaches_grandchildren_and_not_us_twice() {
    let running = Wrapper::new(
        &["--drain", "0s", "--signal-scope", "group"],
        &["perl", "-e", &counting(USR1)],
    )
    .spawn();
    running.until_written("ready");
    running.signal(USR1);
    let grandchild = running.path("grandchild");
    until("it reaches the grandchild", || grandchild.exists().then_some(()));
    assert_eq!(running.wait().text(), "got 1\n");
}

#[test]
fn term_trapped_output_after_it_kept() {
    let running = script(&[], &format!("trap 'echo bye; exit 3' TERM; {WAIT}")).spawn();
    running.until_written("ready");
    running.signal(TERM);
    let run = running.wait();
    assert_eq!((run.code, run.text().as_str(), run.report.killed_after_grace), (3, "bye\n", false));
    assert_eq!(
        run.report.stopped_by.as_deref(),
        Some("SIGTERM"),
        "its exit code says nothing of what it was to do"
    );
}

#[test]
fn term_ignored_by_the_child_is_followed_by_kill_after_the_grace() {
    let check = |flags: &[&str], variable: &str| {
        let running =
            script(flags, &format!("trap '' TERM; {WAIT}")).env("PVN_KILL_AFTER", variable).spawn();
        running.until_written("ready");
        running.signal(TERM);
        let run = running.wait();
        assert_eq!(
            (run.code, run.report.signal.as_deref(), run.report.killed_after_grace),
            (137, Some("SIGKILL"), true)
        );
    };
    check(&["--kill-after", "50ms"], "1h");
    check(&[], "50ms");
}

#[test]
fn the_grace_of_a_variable_lasts() {
    let running = script(&[], &format!("trap 'sleep 11; exit 7' TERM; {WAIT}"))
        .env("PVN_KILL_AFTER", "1h")
        .spawn();
    running.until_written("ready");
    running.signal(TERM);
    let run = running.wait();
    assert_eq!((run.code, run.report.killed_after_grace), (7, false));
}

#[test]
fn term_twice_kills_at_once() {
    for second in [TERM, INT] {
        // A second request comes some time after the first: the same signal at once is the same
        // request.
        let running = script(
            &["--kill-after", "1h"],
            &format!("trap 'sleep 0.05; echo x > asked' TERM INT; {WAIT}"),
        )
        .spawn();
        running.until_written("ready");
        running.signal(TERM);
        running.until_written("asked");
        running.signal(second);
        let run = running.wait();
        assert_eq!((run.code, run.report.killed_after_grace), (137, false));
    }
}

#[test]
fn kill_reaches_every_descendant_wherever_it_went() {
    let running = script(
        &["--kill-after", "50ms"],
        &format!(
            "setsid sh -c 'trap \"\" TERM; echo $$ > other; while :; do sleep 0.01; done' & trap \
             '' TERM; {WAIT}"
        ),
    )
    .spawn();
    running.until_written("ready");
    let other: i32 = running.until_written("other").trim().parse().unwrap();
    running.signal(TERM);
    assert_eq!(running.wait().code, 137);
    assert!(!is_alive(other));
}

#[test]
fn term_to_sh_c_whose_command_outlives_the_shell_reaches_that_command() {
    let outliving = "sh -c 'trap \"echo x > reached; exit 0\" TERM; echo > ready; while :; do \
                     sleep 0.01; done' & wait";
    let running = script(&["--drain", "60s"], outliving).spawn();
    running.until_written("ready");
    running.signal(TERM);
    let run = running.wait();
    assert_eq!(run.report.signal.as_deref(), Some("SIGTERM"));
    assert!(run.path("reached").exists());
    assert!(run.took < SOON, "asked at once, not after the drain: {:?}", run.took);
}

#[test]
fn the_stop_signal_stands_in_for_term() {
    let wrapper = script(
        &["--stop-signal", "INT"],
        &format!("trap 'exit 4' INT; trap 'exit 5' TERM; {WAIT}"),
    );
    let running = wrapper.with_default_signals().spawn();
    running.until_written("ready");
    running.signal(TERM);
    assert_eq!(running.wait().code, 4);
}

#[test]
fn term_swept_over_the_first_5_ms_is_not_lost() {
    for delay_us in (0..5000).step_by(250) {
        let running = Wrapper::new(&[], &["sleep", "60"]).spawn();
        std::thread::park_timeout(Duration::from_micros(delay_us));
        running.signal(TERM);
        // Before `main` the kernel's own answer holds: the wrapper dies and nothing was started.
        if let Some(run) = running.wait_unless_killed(Some(TERM)) {
            assert_eq!(
                (run.code, run.report.signal.as_deref()),
                (143, Some("SIGTERM")),
                "{delay_us}"
            );
        }
    }
}

fn check_timed_out(run: &Run) {
    assert_eq!(
        (run.report.timed_out, run.report.signal.as_deref(), run.code),
        (true, Some("SIGTERM"), 143)
    );
    assert_eq!(run.report.stopped_by, None, "its own deadline did");
}

#[test]
fn the_timeout_asks_the_command_to_stop() {
    check_timed_out(&run(&["--timeout", "50ms"], &["sleep", "60"]));
}

#[test]
fn no_output_for_the_idle_timeout_asks_the_command_to_stop() {
    // Longer than the timeout in all, and each pause far shorter.
    let run = script(
        &["--idle-timeout", "3s"],
        "for i in 1 2 3 4 5 6 7 8; do echo $i; sleep 0.5; done; exec sleep 60",
    )
    .run();
    check_timed_out(&run);
    assert_eq!(run.text(), "1\n2\n3\n4\n5\n6\n7\n8\n", "output puts it off");
}

/// Whether this process is stopped.
fn is_stopped(pid: &str) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    stat[stat.rfind(')').unwrap()..].starts_with(") T")
}

/// Stops the wrapper, lets the command go on as soon as it can, and then the wrapper.
fn check_stopped(number: i32, with_the_command: bool) {
    let running = script(
        &["--timeout", "60s"],
        "echo > ready; until [ -e go ]; do sleep 0.01; done; echo done; echo > ended",
    )
    .spawn();
    running.until_written("ready");
    let own = running.child.id().to_string();
    let children = std::fs::read_to_string(format!("/proc/{own}/task/{own}/children")).unwrap();
    running.signal(number);
    until("the wrapper is stopped", || is_stopped(&own).then_some(()));
    if with_the_command {
        until("the command is stopped too", || is_stopped(children.trim()).then_some(()));
    }
    std::fs::write(running.path("go"), "").unwrap();
    if !with_the_command {
        running.until_written("ended");
    }
    running.signal(CONT);
    let run = running.wait();
    assert_eq!((run.code, run.text().as_str()), (0, "done\n"));
    assert!(run.path("ended").exists());
}

#[test]
fn stop_and_cont_lose_nothing() {
    check_stopped(STOP, false);
}

#[test]
fn stop_from_the_terminal_and_cont_stop_the_command_too_and_lose_nothing() {
    check_stopped(TSTP, true);
}
