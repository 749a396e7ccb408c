//! Rollback, ways out, unknown and late results, plans, lanes, restarts.

use engine::action::{Action, StopReason};
use engine::desired::{Desired, RetryPolicy};
use engine::event::{Event, FetchResult, Outcome};
use engine::limiter::{ConcurrencyLimiter, Limit, Limits, PILED_UP_AT_ONCE, PILED_UP_PER_SECOND};
use engine::limits::{OVERTIME_MS, START_DEADLINE_MS, STOP_DEADLINE_MS};
use engine::{State, next_wake, step};
use schema::id::{BlobId, InstanceId};
use schema::status::{ApprovalStatus, Decision, JobKind};
use schema::time::Timestamp;

use crate::scenario::{
    ALONE, Apply, Fetch, GetInfo, START_MS, Scenario, apply_only, exit_code, manual, newer, plan, release, stable, with_info,
};

pub(crate) fn before_apply() -> Desired {
    Desired { require_approval_before_apply: true, ..exit_code() }
}

// ---- rule 12 ----

pub(crate) fn with_deadline() -> Desired {
    Desired { progress_deadline_ms: Some(60_000), auto_rollback: true, ..exit_code() }
}

/// The first release has arrived, and a fetch of the second one, made at second 100, has found work.
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
    assert_eq!(it.actions.iter().filter(|action| matches!(action, Action::Rollback { .. })).count(), 1);
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
    assert_eq!(it.actions.iter().filter(|action| matches!(action, Action::Rollback { .. })).count(), 1);
}

#[test]
fn rule_12_a_rollback_that_somebody_rejected_took_nothing_back() {
    let gates = || Desired { gates: vec![manual(false, 1)], ..with_deadline() };
    let mut it = Scenario::new(with_deadline());
    it.run(Fetch, 0);
    it.send(Event::Desired(Box::new(Desired { released_at: it.now, ..newer(&with_deadline(), 2) })));
    it.run(Fetch, 0);
    it.is("CONVERGED");
    it.send(Event::Desired(Box::new(Desired { is_rollback: true, stable_before: true, ..newer(&gates(), 3) })));
    it.run(Fetch, 2);
    it.reject("ann");
    it.send(Event::Desired(Box::new(Desired { released_at: it.now, ..newer(&with_deadline(), 4) })));
    it.run(Fetch, 2);
    it.run(Apply, 1);
    let later = it.seconds(it.now) as i64 + 100;
    it.until_without_answer(later);
    it.is("FAILED STUCK");
    assert!(it.actions.contains(&Action::Rollback { from: release(4), to: release(2) }), "{:?}", it.actions.last());
}

#[test]
fn rule_12_a_rollback_that_is_refused_says_why_and_is_asked_for_again_when_the_release_is_stuck_again() {
    let mut it = at_the_second_release();
    it.run(Apply, 1);
    it.until_without_answer(160);
    let refused = |number| Event::RollbackRefused { from: release(number), why: "`w` is missing".to_owned() };
    it.send(refused(3));
    assert!(!it.state().standing().message.contains("missing"), "another release's");
    it.send(refused(2));
    it.is("FAILED STUCK");
    assert!(it.state().standing().message.contains("not taken back: `w` is missing"), "{}", it.state().standing().message);
    let back = |it: &Scenario| it.actions.iter().filter(|action| matches!(action, Action::Rollback { .. })).count();
    it.until_without_answer(5_000);
    assert_eq!(back(&it), 1);
    it.send(Event::Retry { who: "ann".to_owned() });
    it.until_without_answer(10_000);
    it.is("FAILED STUCK");
    assert_eq!(back(&it), 2);
    assert!(!it.state().standing().message.contains("missing"), "it is asked anew: {}", it.state().standing().message);
}

#[test]
fn rule_12_a_channel_goes_back_to_a_version_that_it_had_past_the_channels_and_not_past_the_people() {
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
    it.until_without_answer(50).send(Event::Desired(Box::new(Desired { progress_deadline_ms: Some(30_000), ..with_deadline() })));
    it.until_without_answer(79);
    it.is("CONVERGING FETCH_FAILED");
    it.until_without_answer(80);
    it.is("FAILED STUCK");
    let mut it = Scenario::new(with_deadline());
    it.until_without_answer(50).send(Event::Desired(Box::new(Desired { progress_deadline_ms: None, ..with_deadline() })));
    it.until_without_answer(100_000);
    it.is("CONVERGING FETCH_FAILED");
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
        let start_s = START_DEADLINE_MS / 1_000;
        it.until(start_s - 1);
        assert_eq!(it.stops(), []);
        it.until(start_s);
        assert_eq!(it.stops(), [(job, StopReason::Deadline)]);
        it.until(start_s + STOP_DEADLINE_MS / 1_000);
        assert!(it.state().job(job).is_none(), "{kind} is given up");
    }
}

#[test]
fn rule_13_a_running_job_is_stopped_past_its_timeout() {
    let mut it = Scenario::new(exit_code());
    let fetch = it.start(Fetch);
    it.begins(fetch.job);
    let overdue_s = (600_000 + OVERTIME_MS) / 1_000;
    it.until(overdue_s);
    assert_eq!(it.stops(), [(fetch.job, StopReason::Deadline)]);
    let outcome = it.exited(143, FetchResult::default());
    it.ends(fetch.job, outcome);
    it.is("CONVERGING FETCH_FAILED");
    assert!(it.state().standing().message.contains("timeout of 10m"), "{}", it.state().standing().message);
}

#[test]
fn rule_13_a_command_whose_pod_has_long_to_end_is_waited_for_so_long() {
    for (grace_ms, more_s) in [(Some(300_000), 270), (Some(30_000), 0), (Some(0), 0), (Some(i64::MAX), 86_370), (None, 0)] {
        let mut desired = apply_only();
        desired.apply.stop_grace_ms = grace_ms;
        let mut it = Scenario::new(desired);
        let apply = it.start(Apply);
        it.begins(apply.job);
        it.until(1_000);
        it.send(Event::Cancel { job: apply.job, who: "ann".to_owned() });
        let silent_s = 1_000 + STOP_DEADLINE_MS / 1_000 + more_s;
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
    it.until(1_000_000 + STOP_DEADLINE_MS / 1_000);
    it.is("FAILED CANCELLED");
    it.send(Event::Retry { who: "ann".to_owned() });
    it.start(Apply);
}

#[test]
fn rule_13_an_approval_expires_when_it_has_a_timeout() {
    for granted in [false, true] {
        let mut it = Scenario::new(Desired { approval_timeout_ms: Some(10_000), ..before_apply() });
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
    desired.fetch.as_mut().unwrap().retry = Some(RetryPolicy { base_ms: 1_000, max_ms: 60_000, max_attempts: Some(3) });
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

// ---- rule 15 ----

#[test]
fn rule_15_many_fetches_of_the_same_plan_ask_once_and_the_shown_plan_runs() {
    let mut it = Scenario::new(before_apply());
    let shown = it.run_with(Fetch, 2, plan("bytes 1", "one to add"));
    let asked = it.pending();
    for round in 1..6 {
        it.until(round * 30).run_with(Fetch, 2, plan(&format!("bytes {}", round + 1), "one to add"));
        assert_eq!(it.pending(), asked);
    }
    it.approve("ann");
    it.send(Event::Tick);
    let apply = it.start(Apply);
    assert_eq!((apply.fetch_job, apply.plan), (Some(shown.job), Some(BlobId::of(b"bytes 1"))));
    assert_eq!(it.asked_so_far(), 1);
    assert_eq!(it.state().approvals()[0].explanation.as_deref(), Some("one to add"));
}

#[test]
fn rule_15_another_plan_after_the_approval_is_not_applied_but_asked_again() {
    let mut it = Scenario::new(Desired { require_approval_before_apply: true, max_concurrency: Some(1), ..exit_code() });
    it.run_with(Fetch, 2, plan("bytes 1", "one to add"));
    let first = it.pending();
    it.approve("ann");
    it.until(30).run_with(Fetch, 2, plan("bytes 2", "one to destroy"));
    it.declines(Apply);
    it.is("WAITING_MANUAL_APPROVAL RUNTIME_OBJECT_APPLY_NEEDED");
    assert_ne!(it.pending(), first);
    it.decide(first, "bob", Decision::Approve);
    it.declines(Apply);
    it.approve("ann");
    assert_eq!(it.start(Apply).plan, Some(BlobId::of(b"bytes 2")));
}

#[test]
fn rule_15_a_stale_plan_is_made_anew_and_the_same_fingerprint_carries_the_approval_over() {
    let mut it = Scenario::new(before_apply());
    it.run_with(Fetch, 2, plan("bytes 1", "one to add"));
    it.approve("ann");
    it.run(Apply, 75);
    it.run_with(Fetch, 2, plan("bytes 2", "one to add"));
    it.until(30);
    let again = it.start(Apply);
    assert_eq!((again.attempt, again.plan), (2, Some(BlobId::of(b"bytes 2"))));
    it.ends(
        again.job,
        Outcome::Exited { code: 75, started_at: it.now, ended_at: it.now, said: String::new(), seen: Box::default(), info: None },
    );
    it.run_with(Fetch, 2, plan("bytes 3", "two to add"));
    it.until(90);
    it.declines(Apply);
    it.is("WAITING_MANUAL_APPROVAL RUNTIME_OBJECT_APPLY_NEEDED");
}

#[test]
fn rule_15_a_rejection_holds_for_its_fingerprint() {
    let mut it = Scenario::new(before_apply());
    it.run_with(Fetch, 2, plan("bytes 1", "one to destroy"));
    it.reject("ann");
    it.until(30).run_with(Fetch, 2, plan("bytes 2", "one to destroy"));
    it.is("FAILED MANUAL_APPROVAL_REJECTED");
    it.until(60).run_with(Fetch, 2, plan("bytes 3", "one to add"));
    it.is("WAITING_MANUAL_APPROVAL RUNTIME_OBJECT_APPLY_NEEDED");
    it.until(90).run_with(Fetch, 2, plan("bytes 4", "one to destroy"));
    it.is("FAILED MANUAL_APPROVAL_REJECTED");
}

#[test]
fn rule_15_an_approval_does_not_outlive_a_change_of_the_commands() {
    let mut it = Scenario::new(before_apply());
    it.run_with(Fetch, 2, plan("bytes 1", "one to add"));
    it.approve("ann");
    it.send(Event::Desired(Box::new(Desired { compiled: BlobId::of(b"other commands"), ..before_apply() })));
    it.run_with(Fetch, 2, plan("bytes 1", "one to add"));
    it.is("WAITING_MANUAL_APPROVAL RUNTIME_OBJECT_APPLY_NEEDED");
}

#[test]
fn rule_15_who_when_and_why_are_kept() {
    let mut it = Scenario::new(before_apply());
    it.run_with(Fetch, 2, plan("bytes 1", "one to add"));
    let approval = it.pending();
    it.until(5);
    let reason = Some("reviewed in the morning".to_owned());
    it.send(Event::Decided { approval, who: "ann".to_owned(), decision: Decision::Approve, reason: reason.clone() });
    let shown = &engine::view::approvals(it.state())[0];
    assert_eq!((shown.by[0].who.as_str(), shown.by[0].when, &shown.by[0].reason), ("ann", it.now, &reason));
    assert_eq!(shown.plan_digest, Some(BlobId::of(b"one to add").to_string()));
}

// ---- rules 16 and 17: lanes ----

pub(crate) fn instance(number: u64, desired: Desired, at: Timestamp) -> State {
    let state = State::new(InstanceId::derive(&[&number.to_le_bytes()]), at);
    step(state, Event::Desired(Box::new(desired)), at).0
}

pub(crate) fn limits(total: u32, per_runtime: Option<u32>) -> Limits {
    let limit = Limit { total, per_runtime };
    Limits { fetch: limit, apply: limit, get_info: limit }
}

/// Grants all that has room now and returns the kinds.
pub(crate) fn grant_all(lanes: &mut ConcurrencyLimiter, states: &mut [State], now: Timestamp) -> Vec<JobKind> {
    let mut granted = Vec::new();
    while let Some((instance, kind)) = lanes.next(now) {
        let state = states.iter_mut().find(|state| state.instance() == instance).unwrap();
        *state = step(state.clone(), Event::Granted(kind), now).0;
        lanes.update(state, ALONE);
        granted.push(kind);
    }
    granted
}

#[test]
fn rule_16_fetch_and_get_info_never_wait_behind_apply() {
    let now = Timestamp::from_millis(START_MS);
    let mut states: Vec<State> = (0..4).map(|number| instance(number, apply_only(), now)).collect();
    states.extend((4..8).map(|number| instance(number, with_info(), now)));
    let mut lanes = ConcurrencyLimiter::new(limits(2, None), now);
    states.iter().for_each(|state| lanes.update(state, ALONE));
    let granted = grant_all(&mut lanes, &mut states, now);
    for kind in [Fetch, Apply, GetInfo] {
        assert_eq!(granted.iter().filter(|granted| **granted == kind).count(), 2, "{kind}: {granted:?}");
        assert_eq!((lanes.in_flight(kind), lanes.waiting(kind)), (2, 2));
    }
}

#[test]
fn rule_16_each_lane_has_a_limit_per_runtime() {
    let now = Timestamp::from_millis(START_MS);
    let other = || Desired { runtime: "other".parse().unwrap(), ..with_info() };
    let mut states: Vec<State> = (0..4).map(|number| instance(number, with_info(), now)).collect();
    states.extend((4..8).map(|number| instance(number, other(), now)));
    let mut lanes = ConcurrencyLimiter::new(limits(100, Some(3)), now);
    states.iter().for_each(|state| lanes.update(state, ALONE));
    let granted = grant_all(&mut lanes, &mut states, now);
    for kind in [Fetch, GetInfo] {
        assert_eq!(granted.iter().filter(|granted| **granted == kind).count(), 6, "3 in each of two runtimes");
    }
}

#[test]
fn rule_17_nothing_runs_merely_because_of_a_restart() {
    let mut it = Scenario::new(exit_code());
    it.run(Fetch, 0);
    let stored = serde_json::to_string(it.state()).unwrap();
    let state: State = serde_json::from_str(&stored).unwrap();
    let (state, actions) = step(state, Event::Tick, it.now.plus_ms(5_000));
    assert_eq!(actions, []);
    assert_eq!([Fetch, Apply, GetInfo].map(|kind| state.wants(kind)), [None; 3]);
}

#[test]
fn rule_17_what_piled_up_is_spread_oldest_first_and_the_new_does_not_wait_behind_it() {
    let before = Timestamp::from_millis(START_MS);
    let restart = before.plus_ms(3_600_000);
    let mut states: Vec<State> = (0..1_000).map(|number| instance(number, exit_code(), before.plus_ms(number as i64))).collect();
    states.push(instance(1_000, exit_code(), restart.plus_ms(1)));
    let mut lanes = ConcurrencyLimiter::new(limits(10_000, None), restart);
    states.iter().for_each(|state| lanes.update(state, ALONE));
    let mut now = restart.plus_ms(1);
    let at_once = grant_all(&mut lanes, &mut states, now).len() as i64;
    assert_eq!(at_once, PILED_UP_AT_ONCE + 1 + 1, "a bounded number at once, and the one that came up now");
    let started = |state: &State| state.jobs_in_flight().count() == 1;
    assert!(started(&states[1_000]));
    assert!(states[..at_once as usize - 1].iter().all(started), "oldest first");
    let mut granted = at_once;
    while let Some(at) = lanes.next_wake(now) {
        assert!(at > now, "the pace says when to ask again");
        now = at;
        granted += grant_all(&mut lanes, &mut states, now).len() as i64;
    }
    assert_eq!(granted, 1_001, "nothing is forgotten");
    let took_ms = now.since_ms(restart);
    assert!((took_ms - (1_000 - PILED_UP_AT_ONCE) * 1_000 / PILED_UP_PER_SECOND).abs() < 100, "{took_ms}");
}

#[test]
fn rule_17_due_times_are_stored() {
    let mut it = Scenario::new(exit_code());
    it.run(Fetch, 0);
    let due = it.wakes_at();
    let stored = serde_json::to_string(it.state()).unwrap();
    assert_eq!(engine::next_wake(&serde_json::from_str(&stored).unwrap()).map(|at| it.seconds(at)), due);
}
