//! Applies that succeed again and again while there still is work: rule 5. And what an apply left
//! running.

use engine::event::{Event, Outcome};
use engine::limiter::ConcurrencyLimiter;
use engine::{Surroundings, explain};
use schema::cause::CauseCode;

use crate::scenario::{Apply, Fetch, Scenario, exit_code, limits, other_commands};

/// Seconds of the grace period of every release here.
const GRACE: i64 = 600;

fn told(it: &Scenario, code: CauseCode) -> Option<String> {
    let lanes = ConcurrencyLimiter::new(limits(1, None), it.now);
    let told = explain(it.state(), &lanes, it.now, Surroundings::default());
    told.causes.into_iter().find(|cause| cause.code == code).map(|cause| cause.message)
}

/// Lets time pass until this second; whenever fetch is due it finds work. When the next apply is
/// wanted, if that is before.
fn next_apply(it: &mut Scenario, until: i64) -> Option<i64> {
    for second in it.seconds(it.now) as i64..=until {
        it.until(second);
        if it.wants(Fetch) {
            it.run(Fetch, 2);
        }
        if it.wants(Apply) {
            return Some(second);
        }
    }
    None
}

/// So many applies have succeeded one after the other, and fetch saw work after each.
fn applied(times: u32) -> Scenario {
    let mut it = Scenario::new(exit_code());
    it.run(Fetch, 2);
    for _ in 0..times {
        next_apply(&mut it, 100 * GRACE).unwrap();
        it.run(Apply, 0);
        it.run(Fetch, 2);
    }
    it
}

#[test]
fn rule_05_three_applies_without_effect_are_told_as_that_and_two_are_not() {
    for (times, is_told) in [(1, false), (2, false), (3, true), (4, true)] {
        let it = applied(times);
        it.is("CONVERGING RUNTIME_OBJECT_APPLY_NEEDED");
        let words = format!("svc-1 was applied {times} times in a row, each apply succeeded");
        assert_eq!(it.state().standing().message.contains(&words), is_told, "{times}");
        let cause = told(&it, CauseCode::WithoutEffect);
        assert_eq!(cause.as_ref().is_some_and(|cause| cause.contains(&words)), is_told);
        assert_eq!(cause.is_some(), is_told);
        assert_eq!(
            it.logged("apply.without_effect").count(),
            times.saturating_sub(2) as usize,
            "once for each apply"
        );
    }
    let mut it = applied(3);
    it.until(2 * GRACE + 60);
    it.run(Fetch, 2);
    assert_eq!(it.logged("apply.without_effect").count(), 1, "not again with each fetch");
}

#[test]
fn rule_05_the_pauses_between_applies_without_effect_grow_up_to_eight_grace_periods() {
    let mut it = Scenario::new(exit_code());
    it.run(Fetch, 2);
    let mut at = 0;
    let mut pauses = Vec::new();
    for _ in 0..7 {
        it.run(Apply, 0);
        let next = next_apply(&mut it, at + 10 * GRACE).unwrap();
        pauses.push((next - at) / GRACE);
        at = next;
    }
    assert_eq!(pauses, [1, 1, 2, 4, 8, 8, 8]);
}

#[test]
fn rule_05_what_changes_the_matter_is_not_kept_waiting() {
    type Change = fn(&mut Scenario);
    let changes: [(&str, Change); 3] = [
        ("commands", |it| drop(it.send(Event::Desired(Box::new(other_commands(&exit_code())))))),
        ("a retry", |it| drop(it.send(Event::Retry { who: "ann".to_owned() }))),
        ("a question that tries again", |it| {
            drop(it.send(Event::Refresh { who: "ann".to_owned(), tries_again: true }))
        }),
    ];
    for (name, change) in changes {
        let mut it = applied(4);
        change(&mut it);
        it.run(Fetch, 2);
        assert!(it.wants(Apply), "{name}: {:?}", it.state().standing());
        it.run(Apply, 0);
        it.run(Fetch, 2);
        assert_eq!(told(&it, CauseCode::WithoutEffect), None, "{name} counts anew");
    }
    let mut it = applied(4);
    next_apply(&mut it, 100 * GRACE).unwrap();
    it.run(Apply, 0);
    it.run(Fetch, 0);
    it.is("CONVERGED");
    assert_eq!(told(&it, CauseCode::WithoutEffect), None, "an effect ends it");
}

#[test]
fn rule_05_a_failure_between_is_no_success_in_a_row() {
    let mut it = applied(2);
    next_apply(&mut it, 100 * GRACE).unwrap();
    it.run(Apply, 1);
    it.run(Fetch, 2);
    it.is("FAILED APPLY_FAILED");
    next_apply(&mut it, 100 * GRACE).unwrap();
    it.run(Apply, 0);
    it.run(Fetch, 2);
    assert_eq!(told(&it, CauseCode::WithoutEffect), None);
}

#[test]
fn what_an_apply_left_running_is_told_at_once_and_until_the_next_one() {
    let mut it = Scenario::new(exit_code());
    it.run(Fetch, 2);
    let apply = it.start(Apply).job;
    it.begins(apply);
    let left = "left 1 process behind, which was stopped: `./server`";
    let outcome = match it.exited(0, Default::default()) {
        Outcome::Exited { code, started_at, ended_at, seen, info, .. } => {
            Outcome::Exited { code, started_at, ended_at, said: left.to_owned(), seen, info }
        }
        other => panic!("{other:?}"),
    };
    it.ends(apply, outcome);
    let logged = it.logged("job.left_behind").next().unwrap();
    assert_eq!(logged.message, format!("apply {apply} of svc-1 {left}"));
    assert_eq!(logged.data["job"], apply.to_string());
    let told = |it: &Scenario| told(it, CauseCode::LeftBehind);
    assert!(told(&it).unwrap().ends_with(left), "before fetch has looked");
    assert!(it.state().standing().message.contains(left));
    it.run(Fetch, 2);
    assert!(told(&it).unwrap().ends_with(left), "while its effect is waited for");
    assert!(it.state().standing().message.contains(left));
    next_apply(&mut it, 2 * GRACE).unwrap();
    it.run(Apply, 0);
    assert_eq!(told(&it), None);
}
