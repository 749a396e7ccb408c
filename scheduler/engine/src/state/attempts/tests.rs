//! Which attempt an apply is, and when another one may come.

use super::*;

const NOW: Timestamp = Timestamp::from_millis(1_000_000);
const GRACE: Duration = Duration::from_secs(600);
const RETRY: RetryPolicy = RetryPolicy {
    base: Duration::from_secs(10),
    max: Duration::from_secs(3_600),
    max_attempts: None,
};

fn job(number: u8) -> JobId {
    JobId::derive(&[&[number]])
}

fn first() -> ApplyAttempts {
    ApplyAttempts::next(None, job(1), GRACE, NOW)
}

fn end(mut it: ApplyAttempts, end: ApplyEnd, ran: bool) -> ApplyAttempts {
    it.ended(end, ran, &RETRY, GRACE, NOW);
    it
}

fn waits(it: &ApplyAttempts) -> Duration {
    it.again_at().since(NOW)
}

#[test]
fn a_retryable_end_is_followed_by_another_attempt_in_the_same_grace_period() {
    let mut it = first();
    it.started(job(2), Some(GRACE), NOW.plus_ms(5_000));
    assert!(it.is_past_grace(NOW.plus(GRACE).plus_ms(1)), "another job's start is none of its");
    it.started(job(1), Some(GRACE), NOW.plus_ms(1_000));
    let it = end(it, ApplyEnd::Retryable(75), true);
    assert!(it.has_failed() && it.may_have_run());
    assert_eq!(waits(&it), RETRY.base);
    let mut second = ApplyAttempts::next(Some(it), job(2), GRACE, NOW);
    assert_eq!((second.job(), second.attempt(), second.end()), (job(2), 2, None));
    second.started(job(2), Some(GRACE), NOW.plus_ms(9_000));
    let grace_until = NOW.plus_ms(1_000).plus(GRACE);
    assert!(!second.is_past_grace(grace_until) && second.is_past_grace(grace_until.plus_ms(1)));
}

#[test]
fn what_never_began_is_tried_again_as_the_same_attempt() {
    let it = end(first(), ApplyEnd::Misfired("no process slots".to_owned()), false);
    assert!(!it.may_have_run() && !it.has_begun());
    assert_eq!(waits(&it), MISFIRE_POLICY.base);
    let it = ApplyAttempts::next(Some(it), job(2), GRACE, NOW);
    assert_eq!(it.attempt(), 1);
    let it = end(it, ApplyEnd::Misfired("no process slots".to_owned()), false);
    assert_eq!(waits(&it), MISFIRE_POLICY.base * 2);
    assert_eq!(it.in_a_row_in_words(), "");
}

#[test]
fn after_any_other_end_nothing_comes_before_its_effect_could_show() {
    let mut it = end(first(), ApplyEnd::Succeeded, true);
    assert!(it.has_succeeded() && it.has_begun());
    assert_eq!(waits(&it), GRACE);
    it = ApplyAttempts::next(Some(it), job(2), Duration::ZERO, NOW);
    it.ended(ApplyEnd::Failed("ended with 1".to_owned()), true, &RETRY, Duration::ZERO, NOW);
    assert_eq!((it.attempt(), waits(&it)), (1, SHORTEST_PAUSE));
    assert!(it.in_a_row_in_words().contains("the last of 2 in a row"));
}

#[test]
fn other_commands_are_not_kept_waiting_by_how_those_before_failed() {
    let mut failed = end(first(), ApplyEnd::Failed("ended with 1".to_owned()), true);
    failed.commands_changed(NOW);
    assert_eq!(waits(&failed), Duration::ZERO);
    assert!(!failed.has_begun() && !failed.other_commands_in_words().is_empty());
    let mut succeeded = end(first(), ApplyEnd::Succeeded, true);
    succeeded.commands_changed(NOW);
    assert_eq!(waits(&succeeded), GRACE);
    let mut running = first();
    running.commands_changed(NOW);
    assert_eq!(running.other_commands_in_words(), "");
}

#[test]
fn to_try_again_is_asked_once() {
    let mut it = first();
    assert!(!it.was_asked_to_try_again());
    it.ask_to_try_again();
    assert!(it.was_asked_to_try_again() && !it.was_asked_to_try_again());
}
