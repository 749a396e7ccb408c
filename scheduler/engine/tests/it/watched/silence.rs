//! A watch that is silent, or says that it cannot see: an error, until it is heard of again.

use super::*;

#[test]
fn a_watch_that_is_silent_for_too_long_is_an_error_until_it_is_heard_of() {
    let mut it = Scenario::new(watched());
    it.until(5);
    tells(&mut it, runs("svc-1"));
    assert_eq!(it.wakes_at(), Some(65.0), "that nothing was heard is noticed by itself");
    it.until(64).is("CONVERGED");
    it.until(65).is("CONVERGED FETCH_FAILED");
    assert!(
        it.state().standing().message.contains("the watch was not heard of for 1m"),
        "{}",
        it.state().standing().message
    );
    let told = cause(&it, CauseCode::NotHeard).unwrap();
    assert_eq!(
        (told.since.map(|at| it.seconds(at)), told.until.map(|at| it.seconds(at))),
        (Some(5.0), Some(125.0))
    );
    assert!(
        told.message.contains("ends when it is heard of again, and `pvnctl services retry`"),
        "{}",
        told.message
    );
    assert_eq!(it.logged("watch.failed").count(), 1);
    it.until(185).is("CONVERGING FETCH_FAILED");
    assert_eq!(it.logged("watch.failed").count(), 1, "the same once more is no news");
    let told = cause(&it, CauseCode::NotHeard).unwrap();
    assert!(
        told.message.starts_with("3 times in a row; ")
            && told.since.map(|at| it.seconds(at)) == Some(5.0),
        "{told:?}"
    );
    tells(&mut it, runs("svc-1"));
    it.is("CONVERGED");
    assert_eq!(cause(&it, CauseCode::NotHeard), None);
    assert_eq!(it.wakes_at(), Some(245.0));
}

#[test]
fn rule_05_nothing_is_applied_on_what_a_silent_watch_told_before() {
    let mut it = Scenario::new(watched());
    tells(&mut it, runs("svc-0"));
    assert!(it.wants(Apply));
    it.until(60);
    it.declines(Apply);
    assert!(
        it.state().standing().message.contains("waits for the watch to tell how things are now"),
        "{:?}",
        it.state().standing()
    );
    tells(&mut it, runs("svc-0"));
    it.start(Apply);
}

#[test]
fn a_watch_that_says_why_it_cannot_see_is_heard_of() {
    let mut it = Scenario::new(watched());
    tells(&mut it, runs("svc-1"));
    it.until(50);
    let error =
        ObservationError { why: "may not list what it watches".to_owned(), blame: Blame::Command };
    let event = observation(&it, it.state().watch_generation().unwrap(), Err(error));
    it.send(event);
    it.is("CONVERGED FETCH_FAILED");
    assert!(cause(&it, CauseCode::FetchFailed).unwrap().message.contains("the watch may not list"));
    it.until(61);
    assert_eq!(cause(&it, CauseCode::NotHeard), None);
    it.until(110);
    assert!(cause(&it, CauseCode::NotHeard).is_some());
}

#[test]
fn a_retry_has_a_silent_watch_look_anew() {
    let mut it = Scenario::new(watched());
    let first = it.state().watch_generation();
    it.until(61).send(Event::Retry { who: "ann".to_owned() });
    assert!(it.state().watch_generation() > first);
}

#[test]
fn rule_13_a_clock_that_is_set_or_a_daemon_that_was_away_makes_no_watch_silent() {
    let mut it = Scenario::new(watched());
    tells(&mut it, runs("svc-1"));
    for by_ms in [7_200_000, -7_200_000] {
        assert!(it.state().follows_elapsed_time());
        it.now = it.now.plus_ms(by_ms);
        it.send(Event::ClockStepped { by: ClockStep::from_millis(by_ms) });
        it.is("CONVERGED");
        tells(&mut it, runs("svc-1"));
    }
    let looked_at = it.now;
    it.now = it.now.plus_ms(600_000);
    it.send(Event::Recovered { stepped: ClockStep::default(), looked_at });
    it.is("CONVERGED");
    it.until(600 + 59).is("CONVERGED");
    it.until(600 + 61).is("CONVERGED FETCH_FAILED");
    assert_eq!(it.now.as_millis(), START_MS + 661_000);
}

#[test]
fn a_row_with_any_freshness_is_minded_at_a_bounded_pace() {
    for fresh_for in [Duration::ZERO, Duration::from_millis(i64::MAX as u64)] {
        let desired = Desired { observe: Observe::Watch(WatchPolicy { fresh_for }), ..exit_code() };
        let mut it = Scenario::new(desired);
        tells(&mut it, runs("svc-1"));
        it.until(10);
        assert!(next_wake(it.state()).is_some_and(|at| at.since_ms(it.now) >= 1_000));
    }
}
