//! How fresh it is what is known, and what a look that brought nothing leaves.

use std::time::Duration;

use schema::id::JobId;
use schema::status::Reason;

use super::*;

const NOW: Timestamp = Timestamp::from_millis(1_000_000);
const FRESH_FOR: Duration = Duration::from_secs(60);

fn fetch(number: u8) -> JobId {
    JobId::derive(&[&[number]])
}

fn work(what: &str) -> Finding {
    Finding::Work(Box::new(Work {
        reason: Reason::RuntimeObjectApplyNeeded,
        what: what.to_owned(),
        job: None,
        fingerprint: None,
        plan: None,
        explanation: None,
        may_destroy: true,
        stale_plan: false,
        is_cut: false,
    }))
}

fn see(it: &mut ObservedState, job: JobId, finding: Finding, at: Timestamp) {
    it.see(Some(job), Vec::new(), None, at);
    it.conclude(finding, at);
    it.told(Some(job));
}

#[test]
fn a_fetch_of_before_the_question_answers_nobody_and_is_not_fresh() {
    let mut it = ObservedState::default();
    it.fetch_now(Some(fetch(1)), NOW);
    it.ask(true);
    assert!(!it.answers_whoever_asked(fetch(1)));
    see(&mut it, fetch(1), Finding::Clean, NOW);
    assert!(it.is_asked() && !it.is_fresh() && it.is_outdated());
    see(&mut it, fetch(2), Finding::Clean, NOW);
    assert!(!it.is_asked() && it.is_fresh() && !it.is_outdated());
}

#[test]
fn one_that_began_since_an_earlier_question_counts_for_what_is_applied() {
    let mut it = ObservedState::default();
    it.ask(true);
    assert!(it.answers_whoever_asked(fetch(1)));
    it.fetch_now(Some(fetch(1)), NOW);
    it.ask(true);
    it.count_what_is_of_before(true);
    see(&mut it, fetch(1), work("one to add"), NOW);
    assert!(it.is_asked() && it.is_fresh());
}

#[test]
fn looks_without_an_answer_are_counted_until_there_is_one() {
    let mut it = ObservedState::default();
    see(&mut it, fetch(1), work("one to add"), NOW);
    let miss = |it: &mut ObservedState, blame, ms| it.miss("no".into(), blame, NOW.plus_ms(ms));
    assert!(!miss(&mut it, Blame::Person, 1), "whoever stops a fetch is no error of it");
    assert!(miss(&mut it, Blame::Command, 2));
    assert!(!miss(&mut it, Blame::Surroundings, 3));
    assert_eq!((it.misses(), it.failures(), it.misfires()), (2, 1, 1));
    assert_eq!((it.missed_since(), it.error()), (Some(NOW.plus_ms(2)), Some("no")));
    assert!(it.is_fresh() && it.work().is_some(), "what was known stays");
    it.forget_failures();
    assert_eq!((it.misses(), it.failures(), it.misfires()), (2, 0, 0));
    see(&mut it, fetch(2), Finding::Clean, NOW);
    assert_eq!((it.misses(), it.missed_since(), it.error()), (0, None, None));
}

#[test]
fn since_is_when_the_first_answer_of_its_kind_came() {
    let mut it = ObservedState::default();
    see(&mut it, fetch(1), work("one to add"), NOW);
    see(&mut it, fetch(2), work("two to add"), NOW.plus_ms(1));
    assert_eq!(it.since(), Some(NOW));
    see(&mut it, fetch(3), Finding::Clean, NOW.plus_ms(2));
    assert_eq!(it.since(), Some(NOW.plus_ms(2)));
}

#[test]
fn other_commands_outdate_what_was_found_and_nothing_else() {
    let mut it = ObservedState::default();
    it.commands_changed();
    assert!(!it.is_of_other_commands() && !it.is_outdated(), "nothing was found");
    see(&mut it, fetch(1), work("one to add"), NOW);
    it.outdate();
    assert!(!it.is_outdated(), "work is looked at again anyway");
    it.commands_changed();
    assert!(it.is_of_other_commands() && it.is_outdated());
}

#[test]
fn a_watch_that_is_silent_is_out_of_date_since_it_was_heard_of() {
    let mut it = ObservedState::default();
    it.begin_watch(Some(FRESH_FOR), NOW);
    it.check(true).unwrap();
    assert!(it.watch_is_young());
    it.see(None, Vec::new(), None, NOW);
    it.heard(Some(FRESH_FOR), true, NOW);
    it.ask(true);
    assert!(!it.watch_is_young() && it.is_fresh());
    let late = NOW.plus(FRESH_FOR);
    assert_eq!(it.fall_silent(FRESH_FOR, late.plus_ms(-1)), None);
    assert_eq!(it.fall_silent(FRESH_FOR, late), Some(NOW));
    assert_eq!((it.silent_since(), it.is_fresh(), it.is_asked()), (Some(NOW), false, false));
    assert_eq!(it.watch().map(WatchState::stale_at), Some(late.plus(FRESH_FOR)));
    it.heard(Some(FRESH_FOR), false, late);
    assert_eq!(it.silent_since(), None);
    it.forget_watch();
    assert_eq!(it.check(true), Err(BrokenInvariant::WatchUnwanted));
}

#[test]
fn another_release_in_the_same_place_keeps_what_is_there() {
    let mut it = ObservedState::default();
    it.due_at(NOW);
    it.due_by(Some(NOW.plus_ms(1)));
    assert_eq!(it.due(), Some(NOW));
    see(&mut it, fetch(1), Finding::Clean, NOW);
    it.take_up();
    assert_eq!((it.finding(), it.answered_at()), (&Finding::Nothing, Some(NOW)));
    assert_eq!((it.due(), it.is_fresh()), (None, false));
    it.anew();
    assert_eq!(it, ObservedState::default());
}
