//! A release on its way: what starts anew, and what its deadline counts.

use super::*;
use crate::retry::MISFIRE_POLICY;
use crate::state::ApplyEnd;

const NOW: Timestamp = Timestamp::from_millis(1_000_000);
const DEADLINE: Duration = Duration::from_secs(60);
const GRACE: Duration = Duration::from_secs(600);

fn job(number: u8) -> JobId {
    JobId::derive(&[&[number]])
}

fn end(it: &mut Rollout, end: ApplyEnd) {
    it.attempts_mut().unwrap().ended(end, true, &MISFIRE_POLICY, GRACE, NOW);
}

#[test]
fn the_deadline_runs_only_while_there_is_one_and_passes_once() {
    let mut it = Rollout::default();
    assert_eq!(it.press(Some(DEADLINE), NOW), None);
    assert_eq!(it.press(None, NOW.plus_ms(1)), None, "a gate is shut");
    assert_eq!(it.stuck_at(), None);
    let since = NOW.plus_ms(2);
    assert_eq!(it.press(Some(DEADLINE), since), None);
    assert_eq!(it.stuck_at(), Some(since.plus(DEADLINE)), "past the gate it starts anew");
    assert_eq!(it.press(Some(DEADLINE), since.plus(DEADLINE)), Some(DEADLINE));
    it.give_time(since.plus(DEADLINE * 2));
    assert_eq!(it.press(Some(DEADLINE), since.plus(DEADLINE)), None);
    it.get_stuck();
    assert_eq!(it.press(Some(DEADLINE), since.plus(DEADLINE * 3)), None);
    it.refuse_rollback("it went back once already".to_owned());
    assert!(it.is_stuck() && it.rollback_refused().is_some());
    it.commands_changed(NOW);
    assert!(!it.is_stuck() && it.has_other_commands());
}

#[test]
fn what_has_arrived_is_pressed_by_nobody_and_has_applied_nothing_yet() {
    let mut it = Rollout::begin(Some(NOW));
    it.start(job(1), GRACE, NOW);
    it.commands_changed(NOW);
    it.arrive(false);
    assert!(it.has_arrived() && it.has_other_commands() && it.attempts().is_none());
    it.arrive(true);
    assert!(!it.has_other_commands());
    assert_eq!((it.press(Some(DEADLINE), NOW), it.stuck_at()), (None, None));
}

#[test]
fn an_apply_that_never_was_leaves_those_before_it() {
    let mut it = Rollout::default();
    assert_eq!(it.start(job(1), GRACE, NOW), (1, None));
    end(&mut it, ApplyEnd::Retryable(75));
    let before = it.clone();
    let (attempt, was) = it.start(job(2), GRACE, NOW);
    assert_eq!((attempt, &was), (2, &before.attempts));
    it.undo(job(1), None);
    assert_eq!(it.attempts().map(ApplyAttempts::job), Some(job(2)), "another one is meant");
    it.undo(job(2), was);
    assert_eq!(it, before);
}

#[test]
fn what_went_well_has_its_grace_period_although_somebody_tries_again() {
    let mut it = Rollout::default();
    it.start(job(1), GRACE, NOW);
    end(&mut it, ApplyEnd::Succeeded);
    it.forget_failed();
    assert!(it.attempts().is_some());
    it.begin_again();
    assert!(it.attempts().is_none());
    it.start(job(2), GRACE, NOW);
    end(&mut it, ApplyEnd::Failed("ended with 1".to_owned()));
    it.forget_failed();
    assert!(it.attempts().is_none());
}

#[test]
fn it_is_ready_since_the_gates_opened_and_a_place_is_wanted_of_no_other() {
    let mut it = Rollout::default();
    it.stand_at_gates(true, None, NOW);
    it.stand_at_gates(true, Some(NOW), NOW.plus_ms(1));
    assert_eq!((it.ready_since(), it.window_at()), (Some(NOW), Some(NOW)));
    it.check(true).unwrap();
    it.stand_at_gates(false, None, NOW);
    assert_eq!(it.check(true), Err(BrokenInvariant::WantsUnready));
    it.check(false).unwrap();
}
