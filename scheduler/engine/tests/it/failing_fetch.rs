//! A fetch that fails again and again is no progress: rule 2.

use engine::action::Action;
use engine::event::{Event, FetchResult, Outcome};
use engine::limits::FAILURES_UNTIL_FAILED;
use engine::{Surroundings, explain};
use schema::cause::CauseCode;
use schema::output::{ObjectStatus, RuntimeObject};

use crate::scenario::{
    Apply, Fetch, Scenario, exit_code, grant_all, limits, newer, other_commands, structured,
};

const TWICE: i64 = 30 * (FAILURES_UNTIL_FAILED as i64 - 1);

/// Fetch has failed twice, once a poll interval, and is due again.
fn failed_twice() -> Scenario {
    let mut it = Scenario::new(exit_code());
    for second in [0, 30] {
        it.until(second).run(Fetch, 1);
        it.is("CONVERGING FETCH_FAILED");
    }
    it.until(TWICE);
    it
}

fn failed() -> Scenario {
    let mut it = failed_twice();
    it.run(Fetch, 1);
    it.is("FAILED FETCH_FAILED");
    it
}

#[test]
fn rule_02_three_fetches_in_a_row_that_fail_are_failed_until_one_answers() {
    let mut it = failed();
    let message = &it.state().standing().message;
    assert!(
        message.starts_with("fetch failed 3 times in a row; nothing is known of svc-1 yet: fetch ")
            && message.ends_with("fetch goes on by itself, and an answer ends this"),
        "{message}"
    );
    let told = |it: &Scenario| {
        let lanes = engine::limiter::ConcurrencyLimiter::new(limits(1, None), it.now);
        explain(it.state(), &lanes, it.now, Surroundings::default())
    };
    let cause = told(&it).causes.into_iter().find(|cause| cause.code == CauseCode::FetchFailed);
    assert!(cause.unwrap().message.starts_with("3 times in a row; fetch "));
    assert_eq!(it.logged("instance.status").last().unwrap().data["to"], "FAILED");
    it.until(TWICE + 30).run(Fetch, 1);
    it.is("FAILED FETCH_FAILED");
    it.until(TWICE + 60).run(Fetch, 2);
    it.is("CONVERGING RUNTIME_OBJECT_APPLY_NEEDED");
    it.run(Apply, 0);
    it.run(Fetch, 0);
    it.is("CONVERGED");
}

#[test]
fn rule_02_a_fetch_that_never_starts_through_its_own_fault_is_failed_as_well() {
    let mut it = failed_twice();
    let job = it.start(Fetch).job;
    let why = "`fetch.sh`: no such file".to_owned();
    it.ends(job, Outcome::NotStarted { why, surroundings: false });
    it.is("FAILED FETCH_FAILED");
    assert!(it.state().standing().message.contains("`fetch.sh`: no such file"));
}

#[test]
fn rule_02_surroundings_that_keep_fetch_from_starting_are_no_failure_of_the_release() {
    let mut it = Scenario::new(exit_code());
    for _ in 0..5 {
        let next = it.state().standing().next_action_at.unwrap_or(it.now);
        it.until(it.seconds(next).ceil() as i64);
        let job = it.start(Fetch).job;
        let why = "no process slots".to_owned();
        it.ends(job, Outcome::NotStarted { why, surroundings: true });
        it.is("CONVERGING FETCH_FAILED");
    }
}

#[test]
fn rule_02_after_an_apply_a_fetch_that_fails_again_and_again_is_failed_and_nothing_is_applied() {
    let mut it = Scenario::new(exit_code());
    it.run(Fetch, 2);
    it.run(Apply, 0);
    for (second, status) in [(0, "CONVERGING"), (30, "CONVERGING"), (60, "FAILED"), (90, "FAILED")]
    {
        it.until(second).run(Fetch, 1);
        it.is(&format!("{status} FETCH_FAILED"));
    }
    it.until_without_answer(2_000);
    assert!(!it.wants(Apply));
    it.is("FAILED FETCH_FAILED");
}

#[test]
fn rule_02_objects_on_their_way_that_nobody_sees_any_more_are_failed() {
    let version = serde_json::json!({"version": "svc-1", "active": true});
    let pending: RuntimeObject = serde_json::from_value(
        serde_json::json!({"name": "web", "objectType": "T", "status": "PENDING", "versions": [version]}),
    )
    .unwrap();
    assert_eq!(pending.status, ObjectStatus::Pending);
    let mut it = Scenario::new(structured());
    let seen = FetchResult { objects: Some(Ok(vec![pending])), ..FetchResult::default() };
    it.run_with(Fetch, 0, seen);
    it.is("CONVERGING");
    it.until_without_answer(80).is("CONVERGING FETCH_FAILED");
    it.until_without_answer(95).is("FAILED FETCH_FAILED");
    assert!(it.state().standing().message.contains("every object runs svc-1, but"));
}

#[test]
fn rule_02_who_was_converged_and_is_not_seen_any_more_is_not_failed() {
    let mut it = Scenario::new(exit_code());
    it.run(Fetch, 0);
    it.until_without_answer(4_000).is("CONVERGING FETCH_FAILED");
}

#[test]
fn rule_02_another_release_other_commands_and_a_person_who_tries_again_begin_anew() {
    type Change = fn(&mut Scenario);
    let changes: [(&str, Change); 4] = [
        ("a release", |it| drop(it.send(Event::Desired(Box::new(newer(&exit_code(), 2)))))),
        ("commands", |it| drop(it.send(Event::Desired(Box::new(other_commands(&exit_code())))))),
        ("a retry", |it| drop(it.send(Event::Retry { who: "ann".to_owned() }))),
        ("a question", |it| {
            drop(it.send(Event::Refresh { who: "ann".to_owned(), tries_again: true }))
        }),
    ];
    for (name, change) in changes {
        let mut it = failed();
        change(&mut it);
        assert_eq!(it.state().standing().status.as_str(), "CONVERGING", "{name}");
        it.run(Fetch, 1);
        it.is("CONVERGING FETCH_FAILED");
    }
}

#[test]
fn rule_02_a_failing_fetch_is_failed_over_a_restart_too() {
    let it = failed();
    let stored = serde_json::to_string(it.state()).unwrap();
    let mut states = vec![serde_json::from_str::<engine::State>(&stored).unwrap()];
    let mut lanes = engine::limiter::ConcurrencyLimiter::new(limits(1, None), it.now);
    lanes.update(&states[0], crate::scenario::ALONE);
    assert_eq!(grant_all(&mut lanes, &mut states, it.now), [], "no fetch is due yet");
    let (after, actions) = engine::step(states.remove(0), Event::Tick, it.now);
    assert_eq!(after.standing().status.as_str(), "FAILED");
    assert!(!actions.iter().any(|action| matches!(action, Action::Log(_))), "and it is no news");
}
