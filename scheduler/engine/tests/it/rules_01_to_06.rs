//! Fetch, apply, getInfo and when they run.

use std::time::Duration;

use engine::desired::{Cadence, RetryPolicy};
use engine::event::{Event, FetchResult, Outcome};
use schema::id::BlobId;
use schema::output::Info;
use schema::schedule::Schedule;

use crate::scenario::{
    Apply, Fetch, GetInfo, Scenario, apply_only, exit_code, manual, newer, poll_of, stable,
    structured, with_info,
};

#[test]
fn rule_01_one_fetch_or_apply_at_a_time() {
    let mut it = Scenario::new(exit_code());
    let fetch = it.start(Fetch);
    it.declines(Fetch);
    it.declines(Apply);
    let outcome = it.exited(2, FetchResult::default());
    it.ends(fetch.job, outcome);
    let apply = it.start(Apply);
    it.begins(apply.job);
    it.until(5_000);
    it.declines(Fetch);
    it.declines(Apply);
}

#[test]
fn rule_01_get_info_runs_beside_and_influences_nothing() {
    let mut it = Scenario::new(with_info());
    let mut twin = Scenario::new(exit_code());
    let info = it.start(GetInfo);
    it.run(Fetch, 2);
    twin.run(Fetch, 2);
    it.start(Apply);
    twin.start(Apply);
    for outcome in [
        Outcome::TimedOut,
        Outcome::Unknown { why: "gone".to_owned(), gone: true },
        it.exited(1, FetchResult::default()),
    ] {
        it.ends(info.job, outcome);
        assert_eq!(it.status(), twin.status());
        assert_eq!(it.state().standing().next_action_at, twin.state().standing().next_action_at);
    }
}

#[test]
fn rule_01_what_get_info_told_stays_until_it_tells_something_else() {
    let mut it = Scenario::new(with_info());
    let told = vec![Info { name: "url".to_owned(), text: "http://x".to_owned() }];
    let outcome = |info| Outcome::Exited {
        code: 0,
        started_at: Scenario::new(exit_code()).now,
        ended_at: Scenario::new(exit_code()).now,
        said: String::new(),
        seen: Box::default(),
        info: Some(info),
    };
    let first = it.start(GetInfo).job;
    it.ends(first, outcome(Ok(told.clone())));
    it.until(300);
    let second = it.start(GetInfo).job;
    it.ends(second, outcome(Err("not JSON".to_owned())));
    assert_eq!(it.state().info(), told);
}

#[test]
fn rule_02_fetch_runs_at_once_for_a_new_version_and_after_apply() {
    for code in [0, 1, 75] {
        let mut it = Scenario::new(exit_code());
        it.run(Fetch, 2);
        it.until(7);
        it.run(Apply, code);
        assert!(it.wants(Fetch), "at once after an apply that ended with {code}");
    }
    let mut it = Scenario::new(exit_code());
    it.run(Fetch, 0);
    it.until(10);
    it.send(Event::Desired(Box::new(newer(&exit_code(), 2))));
    assert!(it.wants(Fetch), "at once for a new version");
}

#[test]
fn rule_02_polls_count_from_the_end_of_the_fetch() {
    let mut it = Scenario::new(structured());
    let fetch = it.start(Fetch);
    it.until(20);
    let outcome = it.exited(1, FetchResult::default());
    it.ends(fetch.job, outcome);
    assert_eq!(it.wakes_at(), Some(50.0), "30 s after it completed");
}

#[test]
fn rule_02_steady_polls_have_jitter_and_are_never_early() {
    let mut it = Scenario::new(exit_code());
    let mut waits = std::collections::BTreeSet::new();
    for _ in 0..50 {
        it.run(Fetch, 0);
        let wait = it.wakes_at().unwrap() - it.seconds(it.now);
        assert!((300.0..=330.0).contains(&wait), "{wait}");
        waits.insert((wait * 1_000.0) as i64);
        it.now = it.now.plus_ms(331_000);
        it.send(Event::Tick);
    }
    assert!(waits.len() > 40, "spread: {waits:?}");
}

#[test]
fn rule_02_a_cron_schedule_takes_the_place_of_the_intervals() {
    let mut desired = exit_code();
    poll_of(&mut desired).cadence = Cadence::Cron(Schedule::parse("0 */15 * * * *", None).unwrap());
    let mut it = Scenario::new(desired);
    it.run(Fetch, 0);
    assert_eq!(it.wakes_at().map(|at| at % 900.0), Some(0.0), "at a quarter of an hour");
}

#[test]
fn rule_02_due_fetches_that_were_missed_run_once() {
    let mut it = Scenario::new(exit_code());
    it.run(Fetch, 0);
    it.until(86_400);
    it.run(Fetch, 0);
    assert!(!it.wants(Fetch));
    assert!(it.wakes_at().unwrap() >= 86_400.0 + 300.0);
}

#[test]
fn rule_02_a_failed_fetch_changes_nothing_until_three_in_a_row() {
    let mut it = Scenario::new(exit_code());
    it.run(Fetch, 0);
    it.is("CONVERGED");
    for (second, expected) in [
        (400, "CONVERGED FETCH_FAILED"),
        (500, "CONVERGED FETCH_FAILED"),
        (600, "CONVERGING FETCH_FAILED"),
    ] {
        it.until(second).run(Fetch, 1);
        it.is(expected);
    }
    assert!(
        it.state().standing().message.contains("has not been seen since"),
        "{}",
        it.state().standing().message
    );
    it.until(700).run(Fetch, 0);
    it.is("CONVERGED");
}

#[test]
fn rule_02_a_failed_fetch_leaves_known_work_known() {
    let mut it = Scenario::new({
        let mut desired = exit_code();
        desired.gates = vec![manual(false, 1)];
        desired
    });
    it.run(Fetch, 2);
    it.until(30).run(Fetch, 1);
    it.is("WAITING_MANUAL_APPROVAL RUNTIME_OBJECT_APPLY_NEEDED");
    it.approve("ann");
    it.start(Apply);
}

#[test]
fn rule_02_get_info_runs_at_once_for_a_version_and_after_apply_then_by_its_interval() {
    let mut it = Scenario::new(with_info());
    it.run(GetInfo, 0);
    it.run(Fetch, 2);
    assert!(!it.wants(GetInfo));
    it.until(10).run(Apply, 0);
    assert!(it.wants(GetInfo), "after apply");
    it.run(GetInfo, 1);
    it.run(Fetch, 0);
    it.until(39);
    assert!(!it.wants(GetInfo));
    it.until(40);
    assert!(it.wants(GetInfo), "back-off after an error");
    it.send(Event::Desired(Box::new(newer(&with_info(), 2))));
    assert!(it.wants(GetInfo), "for a new version");
}

#[test]
fn rule_03_fetch_runs_while_preconditions_are_unmet() {
    let mut desired = exit_code();
    desired.gates = vec![stable(&["staging"]), manual(false, 1)];
    let mut it = Scenario::new(desired);
    it.run(Fetch, 2);
    it.is("WAITING_PRECONDITIONS RELEASE_CHANNEL_DEPENDENCY_UNMET");
    assert_eq!(it.asked_so_far(), 0, "nobody is asked before the preconditions are met");
    it.until(30).run(Fetch, 2);
    it.until(60).run(Fetch, 0);
    it.is("CONVERGED");
    assert_eq!(it.asked_so_far(), 0, "nobody is asked for what is converged");
}

#[test]
fn rule_03_an_approval_is_withdrawn_when_fetch_says_converged() {
    let mut desired = exit_code();
    desired.require_approval_before_apply = true;
    let mut it = Scenario::new(desired);
    it.run(Fetch, 2);
    it.is("WAITING_MANUAL_APPROVAL RUNTIME_OBJECT_APPLY_NEEDED");
    it.until(30).run(Fetch, 0);
    it.is("CONVERGED");
    assert_eq!(it.state().pending_approvals().count(), 0);
}

#[test]
fn rule_04_work_with_all_gates_open_is_applied() {
    let mut it = Scenario::new(exit_code());
    it.is("CONVERGING NO_CURRENT_STATE");
    let fetch = it.run(Fetch, 2);
    let apply = it.start(Apply);
    assert_eq!(apply.fetch_job, Some(fetch.job));
    assert_eq!(apply.attempt, 1);
    it.is("CONVERGING RUNTIME_OBJECT_APPLY_NEEDED");
    it.begins(apply.job);
    let outcome = it.exited(0, FetchResult::default());
    it.ends(apply.job, outcome);
    it.run(Fetch, 0);
    it.is("CONVERGED");
    assert_eq!(it.state().converged().map(|converged| converged.version.as_str()), Some("svc-1"));
}

#[test]
fn rule_04_an_error_of_fetch_is_never_work() {
    let mut it = Scenario::new(exit_code());
    for round in 0..5 {
        it.until(round * 30).run(Fetch, 1);
        it.declines(Apply);
        it.is(if round < 2 { "CONVERGING FETCH_FAILED" } else { "FAILED FETCH_FAILED" });
    }
}

#[test]
fn rule_05_inside_the_grace_period_it_polls_and_past_it_applies_again() {
    let mut it = Scenario::new(exit_code());
    it.run(Fetch, 2);
    it.until(5).run(Apply, 0);
    for second in [5, 35, 65] {
        it.until(second).run(Fetch, 2);
        it.is("CONVERGING RUNTIME_OBJECT_APPLY_NEEDED");
        it.declines(Apply);
    }
    it.until(604);
    it.declines(Apply);
    it.until(605);
    assert_eq!(it.start(Apply).attempt, 1, "605 s: 600 s after the start of the apply");
}

#[test]
fn rule_05_a_clean_fetch_ends_the_grace_period() {
    let mut it = Scenario::new(exit_code());
    it.run(Fetch, 2);
    it.run(Apply, 0);
    it.run(Fetch, 0);
    it.until(331).run(Fetch, 2);
    assert_eq!(it.logged("drift.found").count(), 1);
    it.start(Apply);
}

#[test]
fn rule_06_a_retryable_code_is_tried_again_by_the_retry_policy() {
    let mut it = Scenario::new(exit_code());
    it.run(Fetch, 2);
    let mut second = 0;
    for (attempt, wait) in [(1, 30), (2, 60), (3, 120)] {
        assert_eq!(it.run(Apply, 75).attempt, attempt);
        it.run(Fetch, 2);
        it.is("CONVERGING RUNTIME_OBJECT_APPLY_NEEDED");
        it.until(second + wait - 1);
        it.declines(Apply);
        second += wait;
        it.until(second);
    }
    assert_eq!(it.run(Apply, 0).attempt, 4);
}

#[test]
fn rule_06_retries_end_with_the_grace_period() {
    let mut it = Scenario::new(exit_code());
    it.run(Fetch, 2);
    for (attempt, second) in [(1, 0), (2, 30), (3, 90), (4, 210), (5, 450)] {
        assert_eq!(it.until(second).run(Apply, 75).attempt, attempt);
        it.run(Fetch, 2);
    }
    it.is("FAILED APPLY_FAILED");
    it.until(599);
    it.declines(Apply);
    it.until(600);
    assert_eq!(it.start(Apply).attempt, 1, "a new chain of attempts");
}

#[test]
fn rule_06_retries_end_with_their_number() {
    let mut desired = apply_only();
    desired.apply.retry = RetryPolicy {
        base: Duration::from_secs(1),
        max: Duration::from_secs(1),
        max_attempts: Some(2),
    };
    let mut it = Scenario::new(desired);
    it.run(Apply, 75);
    it.is("CONVERGING");
    it.until(1).run(Apply, 75);
    it.is("FAILED APPLY_FAILED");
    it.until(100_000);
    it.declines(Apply);
}

#[test]
fn rule_06_a_failed_apply_is_tried_again_after_the_grace_period_if_fetch_still_sees_work() {
    let mut it = Scenario::new(exit_code());
    it.run(Fetch, 2);
    it.run(Apply, 1);
    it.is("FAILED APPLY_FAILED");
    it.until(600);
    it.declines(Apply);
    it.run(Fetch, 1);
    it.is("FAILED APPLY_FAILED");
    it.until(630);
    it.declines(Apply);
    it.run(Fetch, 2);
    it.start(Apply);
}

#[test]
fn rule_06_never_in_a_tight_loop() {
    let mut desired = exit_code();
    desired.grace = Duration::from_millis(1);
    let mut it = Scenario::new(desired);
    it.run(Fetch, 2);
    it.run(Apply, 1);
    it.run(Fetch, 2);
    it.declines(Apply);
    it.until(1);
    it.start(Apply);
}

#[test]
fn rule_06_a_long_apply_that_fails_is_not_repeated_at_once() {
    let mut it = Scenario::new(exit_code());
    it.run(Fetch, 2);
    let apply = it.start(Apply);
    it.begins(apply.job);
    it.until(3_600);
    let outcome = it.exited(1, FetchResult::default());
    it.ends(apply.job, outcome);
    it.run(Fetch, 2);
    it.declines(Apply);
    it.until(3_630);
    it.start(Apply);
}

#[test]
fn a_change_of_the_runtime_makes_no_version_and_fetches_again() {
    let mut it = Scenario::new(exit_code());
    it.run(Fetch, 0);
    let mut desired = exit_code();
    desired.compiled = BlobId::of(b"other commands");
    it.send(Event::Desired(Box::new(desired)));
    it.is("CONVERGED");
    it.run(Fetch, 2);
    it.start(Apply);
}

#[test]
fn a_change_of_an_interval_alone_fetches_again_and_counts_from_then() {
    let every = |steady| {
        let mut desired = exit_code();
        poll_of(&mut desired).cadence =
            Cadence::Interval { poll: Duration::from_secs(1), steady: Duration::from_secs(steady) };
        desired
    };
    let mut it = Scenario::new(every(86_400));
    it.run(Fetch, 0);
    it.send(Event::Desired(Box::new(every(10))));
    it.is("CONVERGED");
    it.run(Fetch, 0);
    it.until(12);
    assert!(it.wants(Fetch), "at the latest a tenth of it later, for the spread");
}

#[test]
fn an_answer_about_an_older_release_says_nothing_about_the_new_one() {
    let mut it = Scenario::new(exit_code());
    let fetch = it.start(Fetch);
    it.send(Event::Desired(Box::new(newer(&exit_code(), 2))));
    let outcome = it.exited(0, FetchResult::default());
    it.ends(fetch.job, outcome);
    it.is("CONVERGING NO_CURRENT_STATE");
    assert!(it.wants(Fetch));
}
