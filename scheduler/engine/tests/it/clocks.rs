//! Clocks that are set while jobs run (rule 13), and schedules that run out.

use std::time::Duration;

use engine::desired::{Cadence, Desired, Observe};
use engine::event::{ClockStep, Event, Outcome};
use engine::state::State;
use schema::schedule::Schedule;

use crate::scenario::{Apply, Fetch, Scenario, exit_code, poll_of};

fn with_timeout(seconds: i64) -> Desired {
    let mut desired = exit_code();
    desired.apply.timeout = Some(Duration::from_secs(seconds.unsigned_abs()));
    desired
}

/// The wall clock jumps by so many seconds, and the driver tells.
fn jump(it: &mut Scenario, seconds: i64) {
    it.now = it.now.plus_ms(seconds * 1_000);
    it.send(Event::ClockStepped { by: ClockStep::from_millis(seconds * 1_000) });
}

#[test]
fn rule_13_a_clock_set_ahead_kills_no_apply_and_its_deadline_stays_as_far_away() {
    for seconds in [7_200, -7_200] {
        let mut it = Scenario::new(with_timeout(3_600));
        it.run(Fetch, 2);
        let apply = it.start(Apply);
        it.begins(apply.job);
        it.until(10);
        jump(&mut it, seconds);
        assert_eq!(it.stops(), [], "it has run for 10 s of an hour");
        it.until(seconds + 3_600);
        assert_eq!(it.stops(), [], "its minute of overtime is not over");
        it.until(seconds + 3_700);
        assert_eq!(it.stops().len(), 1, "its time is over");
    }
}

#[test]
fn rule_13_a_start_that_is_told_after_the_clock_jumped_has_its_whole_time() {
    let mut it = Scenario::new(with_timeout(600));
    it.run(Fetch, 2);
    let apply = it.start(Apply);
    let at = it.now;
    jump(&mut it, 7_200);
    it.send(Event::JobStarted { job: apply.job, at });
    it.until(7_200 + 600);
    assert_eq!(it.stops(), []);
}

#[test]
fn rule_13_what_ended_while_the_daemon_was_down_is_heard_before_its_deadline_counts() {
    let mut it = Scenario::new(with_timeout(600));
    it.run(Fetch, 2);
    let apply = it.start(Apply);
    it.begins(apply.job);
    let looked_at = it.now;
    it.now = it.now.plus_ms(7_200_000);
    assert_eq!(it.send(Event::Recovered { stepped: ClockStep::default(), looked_at }), []);
    let outcome = it.exited(0, Default::default());
    it.ends(apply.job, outcome);
    it.is("CONVERGING RUNTIME_OBJECT_APPLY_NEEDED");
    it.run(Fetch, 0);
    it.is("CONVERGED");
}

/// How an instance with this runtime stands when its apply, which was asked to stop past its
/// timeout or by a person, is told to have ended with this code so many seconds before.
fn after_a_late_stop(desired: &Desired, by_person: bool, code: i32, seconds_before: i64) -> String {
    let mut it = Scenario::new(desired.clone());
    if desired.observe.looks() {
        it.run(Fetch, 2);
    }
    let apply = it.start(Apply);
    it.begins(apply.job);
    if by_person {
        it.until(100).send(Event::Cancel { job: apply.job, who: "ann".to_owned() });
    } else {
        it.until(661);
    }
    assert_eq!(it.stops().len(), 1);
    let Outcome::Exited { started_at, ended_at, said, seen, info, .. } =
        it.exited(code, Default::default())
    else {
        unreachable!()
    };
    let ended_at = ended_at.plus_ms(seconds_before * -1_000);
    it.until(if by_person { 102 } else { 663 });
    it.ends(apply.job, Outcome::Exited { code, started_at, ended_at, said, seen, info });
    it.status()
}

#[test]
fn rule_13_what_had_ended_before_it_was_asked_to_stop_is_what_it_is_however_late_that_is_heard() {
    let looks = Desired { grace: Duration::from_secs(3_600), ..with_timeout(600) };
    let alone = Desired { observe: Observe::Never, ..looks.clone() };
    for by_person in [false, true] {
        assert_eq!(after_a_late_stop(&alone, by_person, 0, 60), "CONVERGED");
    }
    assert_eq!(after_a_late_stop(&looks, false, 0, 60), "CONVERGING RUNTIME_OBJECT_APPLY_NEEDED");
    assert_eq!(
        after_a_late_stop(&looks, false, 75, 60),
        "CONVERGING RUNTIME_OBJECT_APPLY_NEEDED",
        "it is tried again"
    );
    // Whose clock is how far behind nobody knows.
    assert_eq!(after_a_late_stop(&looks, false, 75, 9), "FAILED APPLY_FAILED");
    // Who cancels wants no other apply.
    assert_eq!(after_a_late_stop(&alone, true, 0, 9), "FAILED CANCELLED");
    assert_eq!(
        after_a_late_stop(&looks, true, 0, 60),
        "FAILED CANCELLED",
        "until fetch finds nothing to do"
    );
    assert_eq!(after_a_late_stop(&looks, true, 75, 60), "FAILED CANCELLED");
}

#[test]
fn rule_13_a_machine_that_tells_nonsense_of_its_clock_gives_no_job_more_time() {
    let mut it = Scenario::new(with_timeout(600));
    it.run(Fetch, 2);
    let apply = it.start(Apply);
    it.begins(apply.job);
    let looked_at = it.now;
    it.send(Event::Recovered { stepped: ClockStep::from_millis(864_000_000), looked_at });
    it.until(661);
    assert_eq!(it.stops().len(), 1);
}

#[test]
fn rule_17_a_clock_set_back_over_a_restart_does_not_stop_polling() {
    let mut it = Scenario::new(exit_code());
    it.run(Fetch, 0);
    let looked_at = it.now;
    it.now = it.now.plus_ms(-86_400_000);
    it.send(Event::Recovered { stepped: ClockStep::default(), looked_at });
    it.until(-86_400 + 331);
    assert!(it.wants(Fetch), "in steady state it looks every 300 s and a tenth at most");
}

#[test]
fn a_schedule_that_has_run_out_and_commands_that_fail_leave_a_way_out() {
    let mut desired = with_timeout(60);
    poll_of(&mut desired).cadence =
        Cadence::Cron(Schedule::parse("0 0 9 1 1 * 2020", None).unwrap());
    desired.grace = Duration::from_secs(1);
    for fails in [true, false] {
        let mut it = Scenario::new(desired.clone());
        it.run(Fetch, 2);
        let apply = it.start(Apply);
        let outcome = if fails {
            it.exited(1, Default::default())
        } else {
            Outcome::Unknown { why: "lost".to_owned(), gone: true }
        };
        it.ends(apply.job, outcome);
        it.run(Fetch, 1);
        // Every invariant is checked after each step; here the last timer is over.
        it.until(86_400);
        it.send(Event::Retry { who: "ann".to_owned() });
        it.run(Fetch, 0);
        it.is("CONVERGED");
    }
}

#[test]
fn a_state_of_another_format_is_not_read() {
    let it = Scenario::new(exit_code());
    let stored = serde_json::to_string(it.state()).unwrap();
    assert!(stored.starts_with("{\"format\":1,"), "{stored}");
    let without = stored.replacen("\"format\":1,", "", 1);
    assert_eq!(
        serde_json::from_str::<State>(&without).unwrap(),
        *it.state(),
        "those of before had none"
    );
    let error = serde_json::from_str::<State>(&stored.replacen("\"format\":1", "\"format\":2", 1))
        .unwrap_err();
    assert!(error.to_string().contains("another version of pvn (format 2"), "{error}");
}

#[test]
fn rule_01_a_fetch_that_may_still_run_holds_an_apply_back() {
    let mut it = Scenario::new(exit_code());
    let lost = it.start(Fetch);
    it.ends(lost.job, Outcome::Unknown { why: "lost".to_owned(), gone: false });
    it.until(30);
    it.run(Fetch, 2);
    it.is("FAILED FETCH_FAILED");
    assert!(!it.wants(Apply), "{:?}", it.state().standing());
    it.ends(lost.job, Outcome::Cancelled { gone: true });
    it.start(Apply);

    // Or a person takes the responsibility.
    let mut it = Scenario::new(exit_code());
    let lost = it.start(Fetch);
    it.ends(lost.job, Outcome::Unknown { why: "lost".to_owned(), gone: false });
    it.send(Event::Retry { who: "ann".to_owned() });
    it.run(Fetch, 2);
    it.start(Apply);
}

#[test]
fn rule_01_no_more_than_three_fetches_may_linger() {
    let mut it = Scenario::new(exit_code());
    for round in 1..=3 {
        let lost = it.start(Fetch);
        it.ends(lost.job, Outcome::Unknown { why: "lost".to_owned(), gone: false });
        it.until(round * 30);
    }
    it.until(3_600);
    assert!(!it.wants(Fetch));
    it.send(Event::Retry { who: "ann".to_owned() });
    assert!(it.wants(Fetch));
}

#[test]
fn rule_17_a_schedule_that_ran_out_by_a_clock_far_ahead_goes_on_when_the_clock_is_right() {
    let mut desired = exit_code();
    poll_of(&mut desired).cadence = Cadence::Cron(Schedule::parse("*/3 * * * * *", None).unwrap());
    let mut it = Scenario::new(desired);
    let right = it.now;
    it.run(Fetch, 0);
    // Beyond the last year that a schedule knows.
    jump(&mut it, 140 * 365 * 86_400);
    it.run(Fetch, 0);
    assert_eq!(it.state().standing().next_action_at, None, "nothing is planned by that clock");
    it.now = right.plus_ms(10_000);
    it.send(Event::Tick);
    it.run(Fetch, 0);
    assert!(it.state().standing().next_action_at.is_some_and(|at| at <= it.now.plus_ms(3_000)));
}
