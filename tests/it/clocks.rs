//! Wall clocks that step, with the real daemon: what runs is measured by time that passes, what is
//! due comes, and what has expired meanwhile has expired.

use tests::clock::Clock;
use tests::files::Files;
use tests::scheduler::{Scheduler, Start};
use tests::wait;

/// 2031-05-07T09:30:00Z.
const MORNING: i64 = 1_935_912_600;

const HOUR: i64 = 3600;

/// A daemon by a clock that shows the morning, and one service in one channel.
fn start(clock: &Clock, change: impl FnOnce(String) -> String) -> (Scheduler, Files) {
    let mut scheduler = Scheduler::stopped();
    let files = Files::new(scheduler.home());
    clock.shows(MORNING);
    run(clock, &mut scheduler);
    scheduler.apply(&change(Files::configs(1, 1)));
    (scheduler, files)
}

fn run(clock: &Clock, scheduler: &mut Scheduler) {
    scheduler.run(&Start { variables: &clock.variables(), ..Start::default() });
}

/// With an apply that runs, and may run for an hour.
fn applying(clock: &Clock) -> (Scheduler, Files) {
    let (scheduler, files) = start(clock, |configs| {
        configs.replace("    apply:\n", "    apply:\n      timeout: 3600s\n")
    });
    files.hold();
    scheduler.ok(&["services", "push", "s0", "--app", "app"]);
    wait::until("the apply to run", || (files.ledger().len() == 1).then_some(()));
    (scheduler, files)
}

/// The apply still runs, ends when it is let go, and was the only one.
fn ends_well(scheduler: &Scheduler, files: &Files) {
    let apply =
        &scheduler.json(&["jobs", "list", "--app", "app", "--service", "s0", "--kind", "apply"])[0];
    assert!(apply["endedAt"].is_null(), "it still runs: {apply:#}\n{}", scheduler.log());
    files.let_go();
    scheduler.channel_becomes("s0", "c0", "CONVERGED");
    let applies =
        scheduler.json(&["jobs", "list", "--app", "app", "--service", "s0", "--kind", "apply"]);
    assert_eq!(
        (applies.as_array().map(Vec::len), &applies[0]["status"]),
        (Some(1), &"SUCCEEDED".into()),
        "{applies:#}"
    );
    assert_eq!((files.ledger().len(), files.overlaps()), (1, String::new()));
}

#[test]
fn rule_17_a_real_clock_set_back_by_a_day_over_a_restart_does_not_stop_polling() {
    let Some(clock) =
        Clock::new("rule_17_a_real_clock_set_back_by_a_day_over_a_restart_does_not_stop_polling")
    else {
        return;
    };
    let (mut scheduler, files) = start(&clock, |configs| configs);
    scheduler.ok(&["services", "push", "s0", "--app", "app"]);
    scheduler.channel_becomes("s0", "c0", "CONVERGED");
    scheduler.stop();
    clock.shows(MORNING - 24 * HOUR);
    run(&clock, &mut scheduler);
    files.drift("s0", "c0");
    wait::until("the drift to be found and repaired", || files.state("s0", "c0"));
}

#[test]
fn p3_a_real_clock_that_jumps_two_hours_ahead_kills_no_apply() {
    let Some(clock) = Clock::new("p3_a_real_clock_that_jumps_two_hours_ahead_kills_no_apply")
    else {
        return;
    };
    let (scheduler, files) = applying(&clock);
    clock.shows(MORNING + 2 * HOUR);
    // Something has to be decided for the daemon to look at its clock.
    wait::until("the daemon to see the jump", || {
        let _whatever_it_says =
            scheduler.pvnctl(["services", "pause", "s0", "--app", "app", "--channel", "c0"]);
        scheduler.log().contains("the wall clock jumped").then_some(())
    });
    scheduler.ok(&["services", "resume", "s0", "--app", "app", "--channel", "c0"]);
    ends_well(&scheduler, &files);
}

#[test]
fn p3_a_real_clock_that_is_stepped_while_the_daemon_is_down_kills_no_apply_and_starts_none() {
    let Some(clock) = Clock::new(
        "p3_a_real_clock_that_is_stepped_while_the_daemon_is_down_kills_no_apply_and_starts_none",
    ) else {
        return;
    };
    for step in [2 * HOUR, -2 * HOUR, -24 * HOUR] {
        let (mut scheduler, files) = applying(&clock);
        scheduler.kill();
        clock.shows(MORNING + step);
        run(&clock, &mut scheduler);
        // It has taken a turn since.
        scheduler.ok(&["services", "pause", "s0", "--app", "app", "--channel", "c0"]);
        scheduler.ok(&["services", "resume", "s0", "--app", "app", "--channel", "c0"]);
        ends_well(&scheduler, &files);
    }
}

#[test]
fn p2_an_approval_that_expired_while_the_daemon_was_down_lets_nothing_through() {
    let Some(clock) =
        Clock::new("p2_an_approval_that_expired_while_the_daemon_was_down_lets_nothing_through")
    else {
        return;
    };
    let approval = "    requireApprovalBeforeApply: true\n    approvalTimeout: 3600s\n    apply:\n";
    let (mut scheduler, files) = start(&clock, |configs| configs.replace("    apply:\n", approval));
    scheduler.ok(&["services", "push", "s0", "--app", "app"]);
    let asked = scheduler.channel_becomes("s0", "c0", "WAITING_MANUAL_APPROVAL");
    let id = asked["approvals"][0]["id"].as_str().expect("an approval has an id").to_owned();
    scheduler.kill();
    clock.shows(MORNING + 2 * HOUR);
    run(&clock, &mut scheduler);
    wait::until("the approval to be expired", || {
        let channel = scheduler.channel("s0", "c0");
        let approvals = channel["approvals"].as_array()?.clone();
        approvals
            .iter()
            .any(|approval| approval["id"] == id.as_str() && approval["status"] == "EXPIRED")
            .then_some(())
    });
    let late = scheduler.pvnctl([
        "services",
        "approve",
        "s0",
        "--app",
        "app",
        "--channel",
        "c0",
        "--yes",
        "--approval",
        &id,
    ]);
    assert!(
        !late.status.success(),
        "nobody says yes to it any more: {}",
        String::from_utf8_lossy(&late.stdout)
    );
    assert_eq!(files.ledger(), [], "nothing was applied");
}

#[test]
fn bad_input_a_clock_before_1970_is_refused_in_words_until_it_is_set() {
    let Some(clock) =
        Clock::new("bad_input_a_clock_before_1970_is_refused_in_words_until_it_is_set")
    else {
        return;
    };
    let mut scheduler = Scheduler::stopped();
    clock.shows(-24 * HOUR);
    let log = scheduler.is_refused(&Start { variables: &clock.variables(), ..Start::default() });
    assert!(
        log.contains("1969-12-3") && log.contains("date --set") && !log.contains("panicked"),
        "{log}"
    );
    clock.shows(MORNING);
    run(&clock, &mut scheduler);
}

#[test]
fn bad_input_a_clock_that_is_set_before_1970_under_a_daemon_ends_it_in_words_and_no_apply() {
    let Some(clock) = Clock::new(
        "bad_input_a_clock_that_is_set_before_1970_under_a_daemon_ends_it_in_words_and_no_apply",
    ) else {
        return;
    };
    let (mut scheduler, files) = applying(&clock);
    clock.shows(-24 * HOUR);
    let status = wait::until("the daemon to end", || scheduler.exited());
    let log = scheduler.log();
    assert_eq!(status.code(), Some(1), "{log}");
    assert!(log.contains("1969-12-3") && log.contains("date --set"), "{log}");
    clock.shows(MORNING);
    run(&clock, &mut scheduler);
    ends_well(&scheduler, &files);
}
