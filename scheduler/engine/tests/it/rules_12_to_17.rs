//! Rollback, ways out, unknown and late results, plans, lanes, restarts.

use std::time::Duration;

use engine::action::{Action, StopReason};
use engine::desired::{Desired, RetryPolicy};
use engine::event::{Event, FetchResult, Outcome};
use engine::limiter::{ConcurrencyLimiter, PILED_UP_AT_ONCE, PILED_UP_PER_SECOND};
use engine::limits::{OVERTIME, START_DEADLINE, STOP_DEADLINE};
use engine::{State, next_wake, step};
use schema::id::BlobId;
use schema::status::{ApprovalStatus, Decision};
use schema::time::Timestamp;

use crate::scenario::{
    ALONE, Apply, Fetch, GetInfo, START_MS, Scenario, apply_only, before_apply, exit_code, manual,
    newer, plan, poll_of, release, stable, with_info,
};

mod rules_15_to_17;

// ---- rule 12 ----

pub(crate) fn with_deadline() -> Desired {
    Desired { progress_deadline: Some(Duration::from_secs(60)), auto_rollback: true, ..exit_code() }
}

/// The first release has arrived, and a fetch of the second one, made at second 100, has found
/// work.
pub(crate) fn at_the_second_release() -> Scenario {
    let mut it = Scenario::new(with_deadline());
    it.run(Fetch, 0);
    it.until(100);
    let second = Desired { released_at: it.now, ..newer(&with_deadline(), 2) };
    it.send(Event::Desired(Box::new(second)));
    it.run(Fetch, 2);
    it
}

#[test]
fn rule_12_a_release_past_its_progress_deadline_is_stuck_and_goes_back_once() {
    let mut it = at_the_second_release();
    it.run(Apply, 0);
    it.until_without_answer(159);
    it.is("CONVERGING FETCH_FAILED");
    it.until_without_answer(160);
    it.is("FAILED STUCK");
    let back = Action::Rollback { from: release(2), to: release(1) };
    assert_eq!(it.actions.iter().filter(|action| **action == back).count(), 1);
    it.until_without_answer(10_000);
    assert_eq!(
        it.actions.iter().filter(|action| matches!(action, Action::Rollback { .. })).count(),
        1
    );
}

#[test]
fn rule_12_a_rollback_that_is_stuck_itself_does_not_go_round_in_circles() {
    let mut it = Scenario::new(with_deadline());
    it.run(Fetch, 0);
    for number in [2, 3, 4] {
        let next = Desired { released_at: it.now, ..newer(&with_deadline(), number) };
        it.send(Event::Desired(Box::new(next)));
        it.run(Fetch, 2);
        it.run(Apply, 1);
        let later = it.seconds(it.now) as i64 + 100;
        it.until_without_answer(later);
        it.is("FAILED STUCK");
    }
    assert_eq!(
        it.actions.iter().filter(|action| matches!(action, Action::Rollback { .. })).count(),
        1
    );
}

#[test]
fn rule_12_a_rollback_that_somebody_rejected_took_nothing_back() {
    let gates = || Desired { gates: vec![manual(false, 1)], ..with_deadline() };
    let mut it = Scenario::new(with_deadline());
    it.run(Fetch, 0);
    it.send(Event::Desired(Box::new(Desired {
        released_at: it.now,
        ..newer(&with_deadline(), 2)
    })));
    it.run(Fetch, 0);
    it.is("CONVERGED");
    it.send(Event::Desired(Box::new(Desired {
        is_rollback: true,
        stable_before: true,
        ..newer(&gates(), 3)
    })));
    it.run(Fetch, 2);
    it.reject("ann");
    it.send(Event::Desired(Box::new(Desired {
        released_at: it.now,
        ..newer(&with_deadline(), 4)
    })));
    it.run(Fetch, 2);
    it.run(Apply, 1);
    let later = it.seconds(it.now) as i64 + 100;
    it.until_without_answer(later);
    it.is("FAILED STUCK");
    assert!(
        it.actions.contains(&Action::Rollback { from: release(4), to: release(2) }),
        "{:?}",
        it.actions.last()
    );
}

#[test]
fn rule_12_a_rollback_that_is_refused_says_why_and_is_asked_for_again_when_the_release_is_stuck_again()
 {
    let mut it = at_the_second_release();
    it.run(Apply, 1);
    it.until_without_answer(160);
    let refused =
        |number| Event::RollbackRefused { from: release(number), why: "`w` is missing".to_owned() };
    it.send(refused(3));
    assert!(!it.state().standing().message.contains("missing"), "another release's");
    it.send(refused(2));
    it.is("FAILED STUCK");
    assert!(
        it.state().standing().message.contains("not taken back: `w` is missing"),
        "{}",
        it.state().standing().message
    );
    let back = |it: &Scenario| {
        it.actions.iter().filter(|action| matches!(action, Action::Rollback { .. })).count()
    };
    it.until_without_answer(5_000);
    assert_eq!(back(&it), 1);
    it.send(Event::Retry { who: "ann".to_owned() });
    it.until_without_answer(10_000);
    it.is("FAILED STUCK");
    assert_eq!(back(&it), 2);
    assert!(
        !it.state().standing().message.contains("missing"),
        "it is asked anew: {}",
        it.state().standing().message
    );
}

#[test]
fn rule_12_a_channel_goes_back_to_a_version_that_it_had_past_the_channels_and_not_past_the_people()
{
    let gates = || Desired { gates: vec![stable(&["staging"]), manual(false, 1)], ..exit_code() };
    let mut it = Scenario::new(Desired { stable_before: true, ..gates() });
    it.upstream("staging", Some("svc-9"));
    it.run(Fetch, 2);
    it.is("WAITING_MANUAL_APPROVAL RUNTIME_OBJECT_APPLY_NEEDED");
    it.approve("ann");
    it.start(Apply);
    let mut it = Scenario::new(gates());
    it.upstream("staging", Some("svc-9"));
    it.run(Fetch, 2);
    it.is("WAITING_PRECONDITIONS RELEASE_CHANNEL_DEPENDENCY_UNMET");
}

#[test]
fn rule_12_without_an_earlier_release_or_disabled_nothing_goes_back() {
    let mut it = Scenario::new(with_deadline());
    it.run(Fetch, 1);
    it.until_without_answer(60);
    it.is("FAILED STUCK");
    assert!(!it.actions.iter().any(|action| matches!(action, Action::Rollback { .. })));
    it.run(Fetch, 0);
    it.is("CONVERGED");
}

#[test]
fn rule_12_people_and_gates_stop_the_progress_deadline() {
    let mut it = Scenario::new(Desired { gates: vec![manual(false, 1)], ..with_deadline() });
    it.run(Fetch, 2);
    it.until(100_000);
    it.is("WAITING_MANUAL_APPROVAL RUNTIME_OBJECT_APPLY_NEEDED");
    it.approve("ann");
    it.run(Apply, 0);
    it.run(Fetch, 2);
    it.is("CONVERGING RUNTIME_OBJECT_APPLY_NEEDED");
    it.until_without_answer(100_060);
    it.is("FAILED STUCK");
}

#[test]
fn rule_12_a_changed_progress_deadline_counts_from_the_change() {
    let mut it = Scenario::new(with_deadline());
    it.until_without_answer(50).send(Event::Desired(Box::new(Desired {
        progress_deadline: Some(Duration::from_secs(30)),
        ..with_deadline()
    })));
    it.until_without_answer(79);
    it.is("FAILED FETCH_FAILED");
    it.until_without_answer(80);
    it.is("FAILED STUCK");
    let mut it = Scenario::new(with_deadline());
    it.until_without_answer(50)
        .send(Event::Desired(Box::new(Desired { progress_deadline: None, ..with_deadline() })));
    it.until_without_answer(100_000);
    it.is("FAILED FETCH_FAILED");
}

// ---- rule 13 ----

#[test]
fn rule_13_a_job_that_never_starts_is_stopped_and_its_silence_ends() {
    for kind in [Fetch, Apply, GetInfo] {
        let mut it = Scenario::new(with_info());
        if kind == Apply {
            it.run(Fetch, 2);
        }
        let job = it.start(kind).job;
        let start_s = START_DEADLINE.as_secs() as i64;
        it.until(start_s - 1);
        assert_eq!(it.stops(), []);
        it.until(start_s);
        assert_eq!(it.stops(), [(job, StopReason::Deadline)]);
        it.until(start_s + STOP_DEADLINE.as_secs() as i64);
        assert!(it.state().job(job).is_none(), "{kind} is given up");
    }
}

#[test]
fn rule_13_a_running_job_is_stopped_past_its_timeout() {
    let mut it = Scenario::new(exit_code());
    let fetch = it.start(Fetch);
    it.begins(fetch.job);
    let overdue_s = 600 + OVERTIME.as_secs() as i64;
    it.until(overdue_s);
    assert_eq!(it.stops(), [(fetch.job, StopReason::Deadline)]);
    let outcome = it.exited(143, FetchResult::default());
    it.ends(fetch.job, outcome);
    it.is("CONVERGING FETCH_FAILED");
    assert!(
        it.state().standing().message.contains("timeout of 10m"),
        "{}",
        it.state().standing().message
    );
}

#[test]
fn rule_13_a_command_whose_pod_has_long_to_end_is_waited_for_so_long() {
    for (grace_ms, more_s) in [
        (Some(300_000), 270),
        (Some(30_000), 0),
        (Some(0), 0),
        (Some(i64::MAX as u64), 86_370),
        (None, 0),
    ] {
        let mut desired = apply_only();
        desired.apply.stop_grace = grace_ms.map(Duration::from_millis);
        let mut it = Scenario::new(desired);
        let apply = it.start(Apply);
        it.begins(apply.job);
        it.until(1_000);
        it.send(Event::Cancel { job: apply.job, who: "ann".to_owned() });
        let silent_s = 1_000 + STOP_DEADLINE.as_secs() as i64 + more_s;
        it.until(silent_s - 1);
        assert!(it.state().job(apply.job).is_some(), "{grace_ms:?}");
        it.until(silent_s);
        assert!(it.state().job(apply.job).is_none(), "{grace_ms:?}");
    }
}

#[test]
fn rule_13_an_apply_without_timeout_can_be_cancelled_even_when_nobody_answers() {
    let mut it = Scenario::new(apply_only());
    let apply = it.start(Apply);
    it.begins(apply.job);
    it.until(1_000_000);
    assert_eq!(it.stops(), []);
    it.send(Event::Cancel { job: apply.job, who: "ann".to_owned() });
    it.until(1_000_000 + STOP_DEADLINE.as_secs() as i64);
    it.is("FAILED CANCELLED");
    it.send(Event::Retry { who: "ann".to_owned() });
    it.start(Apply);
}

#[test]
fn rule_13_an_approval_expires_when_it_has_a_timeout() {
    for granted in [false, true] {
        let mut it = Scenario::new(Desired {
            approval_timeout: Some(Duration::from_secs(10)),
            ..before_apply()
        });
        it.run(Fetch, 2);
        if granted {
            it.until(5).approve("ann");
        }
        it.until(15);
        assert_eq!(it.state().approvals()[0].status, ApprovalStatus::Expired);
        it.declines(Apply);
        // However short the timeout is, fetch runs no more often than its config says.
        it.declines(Fetch);
        assert_eq!(it.wakes_at(), Some(30.0));
        it.until(30).run(Fetch, 2);
        it.is("WAITING_MANUAL_APPROVAL RUNTIME_OBJECT_APPLY_NEEDED");
        assert_eq!(it.asked_so_far(), 2);
    }
}

#[test]
fn rule_13_a_retry_policy_that_is_used_up_falls_back_to_the_poll_interval() {
    let mut desired = exit_code();
    poll_of(&mut desired).retry = Some(RetryPolicy {
        base: Duration::from_secs(1),
        max: Duration::from_secs(60),
        max_attempts: Some(3),
    });
    let mut it = Scenario::new(desired);
    for (second, next) in [(0, 1.0), (1, 3.0), (3, 33.0), (33, 63.0)] {
        it.until(second).run(Fetch, 1);
        assert_eq!(it.wakes_at(), Some(next));
    }
}

// ---- rule 14 ----

#[test]
fn rule_14_an_unknown_end_is_never_success() {
    let mut it = Scenario::new(exit_code());
    let fetch = it.start(Fetch);
    it.ends(fetch.job, Outcome::Unknown { why: "no report".to_owned(), gone: true });
    it.is("CONVERGING FETCH_FAILED");
    let mut it = Scenario::new(apply_only());
    let apply = it.start(Apply);
    it.ends(apply.job, Outcome::Unknown { why: "no report".to_owned(), gone: true });
    it.is("FAILED APPLY_FAILED");
}

#[test]
fn rule_14_late_and_repeated_reports_move_nothing() {
    let mut it = Scenario::new(exit_code());
    let fetch = it.run(Fetch, 0);
    let before = serde_json::to_string(it.state()).unwrap();
    for code in [0, 1, 2] {
        let outcome = it.exited(code, FetchResult::default());
        assert_eq!(it.ends(fetch.job, outcome), []);
        it.begins(fetch.job);
    }
    assert_eq!(serde_json::to_string(it.state()).unwrap(), before);
}

#[test]
fn rule_14_an_end_without_a_start_counts() {
    let mut it = Scenario::new(exit_code());
    let fetch = it.start(Fetch);
    let outcome = it.exited(0, FetchResult::default());
    it.ends(fetch.job, outcome);
    it.is("CONVERGED");
}

#[test]
fn rule_14_a_clock_set_back_neither_hangs_nor_bursts() {
    let mut it = Scenario::new(exit_code());
    it.until(100_000).run(Fetch, 0);
    let wait = next_wake(it.state()).unwrap().since_ms(it.now);
    it.now = Timestamp::from_millis(START_MS);
    it.send(Event::Tick);
    assert!(!it.wants(Fetch));
    assert_eq!(next_wake(it.state()), Some(it.now.plus_ms(wait)));
    it.until(331).run(Fetch, 2);
    it.start(Apply);
}
