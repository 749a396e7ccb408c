//! A person lets a release start outside its window: rule 21.

use std::time::Duration;

use engine::desired::{Desired, Window};
use engine::event::Event;
use engine::limiter::ConcurrencyLimiter;
use engine::limits::WINDOW_LIFTED_AT_MOST;
use engine::state::WindowLift;
use engine::{Start, State, Surroundings, explain, start_now};
use schema::api::Cause;
use schema::cause::CauseCode;
use schema::schedule::Schedule;
use schema::time::Timestamp;

use crate::scenario::{
    Apply, Fetch, START_MS, Scenario, apply_only, before_apply, exit_code, limits, newer,
    other_commands,
};

/// Second 0 is 10:00; the window opens at 11:00 for an hour.
fn windowed(desired: Desired) -> Desired {
    let mut desired = desired;
    let opens = Schedule::parse("0 0 11 * * *", None).unwrap();
    desired.apply.window = Some(Window { opens, duration: Duration::from_secs(3_600) });
    desired
}

fn at(second: i64) -> Timestamp {
    Timestamp::from_millis(START_MS + second * 1_000)
}

fn lift(it: &mut Scenario, until: i64) {
    let (who, reason) = ("ann".to_owned(), "the site is down".to_owned());
    let lift = WindowLift { who, at: it.now, until: at(until), reason };
    it.send(Event::LiftWindow(Box::new(lift)));
}

fn cause(it: &Scenario, code: CauseCode) -> Option<Cause> {
    let lanes = ConcurrencyLimiter::new(limits(1, None), it.now);
    let around = Surroundings { target: "web --app shop --channel eu", ..Surroundings::default() };
    let told = explain(it.state(), &lanes, it.now, around);
    told.causes.into_iter().find(|cause| cause.code == code)
}

/// It has work to do, outside its window.
fn waiting() -> Scenario {
    let mut it = Scenario::new(windowed(exit_code()));
    it.run(Fetch, 2);
    it.is("WAITING_PRECONDITIONS OUTSIDE_WINDOW");
    assert!(!it.wants(Apply));
    it
}

#[track_caller]
fn ended(it: &Scenario, why: &str) {
    assert_eq!(it.state().window_lift(), None);
    let told: Vec<_> = it.logged("window.lift_ended").collect();
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(told[0].message.ends_with(why), "{}", told[0].message);
}

#[test]
fn rule_21_a_lifted_window_lets_the_apply_start_and_says_by_whom_and_why() {
    let mut it = waiting();
    let shut = cause(&it, CauseCode::WindowShut).unwrap();
    let way_out = "`pvnctl services open-window web --app shop --channel eu --reason TEXT`";
    assert!(shut.message.contains(way_out), "{shut:?}");
    assert!(it.state().standing().message.contains("`pvnctl services open-window`"));
    lift(&mut it, 600);
    it.is("CONVERGING RUNTIME_OBJECT_APPLY_NEEDED");
    let told = cause(&it, CauseCode::WindowLifted).unwrap();
    let words =
        format!("ann lifted the apply window for svc-1 until {} (the site is down)", at(600));
    assert!(told.message.starts_with(&words), "{told:?}");
    assert_eq!((told.since, told.until), (Some(at(0)), Some(at(600))));
    let logged = it.logged("window.lifted").next().unwrap();
    assert_eq!(
        (logged.actor.as_deref(), logged.data["reason"].as_str(), logged.data["version"].as_str()),
        (Some("ann"), "the site is down", "svc-1")
    );
    it.run(Apply, 0);
    it.run(Fetch, 0);
    it.is("CONVERGED");
    ended(&it, "what it was lifted for has arrived");
    assert_eq!(cause(&it, CauseCode::WindowLifted), None);
    // Drift after that is other work, and waits for the window.
    it.until(400).run(Fetch, 2);
    it.is("WAITING_PRECONDITIONS OUTSIDE_WINDOW");
}

#[test]
fn rule_21_without_a_fetch_it_ends_with_the_apply_that_it_was_for() {
    let mut it = Scenario::new(windowed(apply_only()));
    it.is("WAITING_PRECONDITIONS OUTSIDE_WINDOW");
    lift(&mut it, 600);
    it.run(Apply, 75);
    assert!(it.state().window_lift().is_some(), "another attempt is under the same wish");
    it.until(100).run(Apply, 0);
    ended(&it, "has arrived");
}

#[test]
fn rule_21_it_ends_at_its_time_and_a_start_that_was_not_handed_over_is_withdrawn() {
    let mut it = waiting();
    lift(&mut it, 20);
    let job = it.start(Apply).job;
    assert_eq!(it.wakes_at(), Some(20.0));
    let now = |second| start_now(it.state(), job, at(second));
    assert_eq!(now(19), Start::Holds { until: Some(at(20)) });
    assert!(matches!(now(20), Start::Void { .. }));
    it.until(20);
    ended(&it, "its time is over");
    it.send(Event::Unstarted { job, taken_back: None });
    assert_eq!(it.logged("job.withdrawn").count(), 1);
    it.run(Fetch, 2);
    it.is("WAITING_PRECONDITIONS OUTSIDE_WINDOW");
}

#[test]
fn rule_21_an_apply_that_has_begun_is_not_stopped_by_its_end() {
    let mut it = waiting();
    lift(&mut it, 600);
    let job = it.start(Apply).job;
    it.begins(job);
    it.send(Event::EndWindowLift { who: "bob".to_owned() });
    ended(&it, "bob ends it");
    it.until(700);
    assert_eq!((it.stops(), it.state().job(job).is_some()), (Vec::new(), true));
}

#[test]
fn rule_21_it_is_for_one_release_and_not_for_the_next() {
    let mut it = waiting();
    lift(&mut it, 3_000);
    it.send(Event::Desired(Box::new(other_commands(&windowed(exit_code())))));
    assert!(it.state().window_lift().is_some(), "it is about when, not about what runs");
    it.send(Event::Desired(Box::new(newer(&windowed(exit_code()), 2))));
    ended(&it, "another release took its place");
    it.run(Fetch, 2);
    it.is("WAITING_PRECONDITIONS OUTSIDE_WINDOW");
}

#[test]
fn rule_21_the_window_itself_may_open_and_shut_meanwhile() {
    let mut it = waiting();
    // Until half past eleven: then the window is open by itself.
    lift(&mut it, 5_400);
    let job = it.start(Apply).job;
    assert_eq!(start_now(it.state(), job, at(1)), Start::Holds { until: Some(at(7_200)) });
    it.begins(job);
    let failed = it.exited(1, Default::default());
    it.ends(job, failed);
    it.run(Fetch, 2);
    it.until_without_answer(5_500);
    ended(&it, "its time is over");
    it.until(5_600).run(Fetch, 2);
    assert!(it.wants(Apply), "inside the window: {:?}", it.state().standing());
    it.until(7_200);
    it.is("WAITING_PRECONDITIONS OUTSIDE_WINDOW");
    // From inside the window beyond its end.
    let mut it = waiting();
    it.until(3_700);
    lift(&mut it, 9_000);
    it.until(8_000);
    assert!(it.wants(Apply) || it.wants(Fetch));
    assert!(it.state().window_lift().is_some());
}

#[test]
fn rule_21_every_other_gate_counts_as_ever() {
    let mut it = Scenario::new(windowed(before_apply()));
    it.run(Fetch, 2);
    it.is("WAITING_MANUAL_APPROVAL RUNTIME_OBJECT_APPLY_NEEDED");
    lift(&mut it, 600);
    it.is("WAITING_MANUAL_APPROVAL RUNTIME_OBJECT_APPLY_NEEDED");
    it.declines(Apply);
    let mut refused = it.clone();
    refused.reject("bob");
    refused.is("FAILED MANUAL_APPROVAL_REJECTED");
    refused.declines(Apply);
    it.approve("bob");
    assert!(it.wants(Apply));
    let pause = Event::Pause { who: "bob".to_owned(), reason: None };
    it.send(pause);
    it.declines(Apply);
    it.send(Event::Resume);
    it.run(Fetch, 2);
    assert!(it.state().window_lift().is_some());
    it.send(Event::Observe(true));
    it.declines(Apply);
}

#[test]
fn rule_21_what_has_no_window_or_has_arrived_is_not_lifted() {
    let mut plain = Scenario::new(exit_code());
    plain.run(Fetch, 2);
    let mut arrived = Scenario::new(windowed(exit_code()));
    arrived.run(Fetch, 0);
    let mut deleted = waiting();
    deleted.send(Event::Deleted);
    for mut it in [plain, arrived, deleted, Scenario::without_release()] {
        lift(&mut it, 600);
        assert_eq!((it.state().window_lift(), it.logged("window.lifted").count()), (None, 0));
        it.send(Event::EndWindowLift { who: "bob".to_owned() });
        assert_eq!(it.logged("window.lift_ended").count(), 0);
    }
    let mut over = waiting();
    lift(&mut over, 0);
    assert_eq!(over.state().window_lift(), None, "for no time");
    let mut gone = waiting();
    lift(&mut gone, 600);
    gone.send(Event::Deleted);
    ended(&gone, "the instance was deleted");
}

#[test]
fn rule_21_it_is_never_for_longer_than_a_day() {
    let mut it = waiting();
    lift(&mut it, i64::MAX / 2_000);
    assert_eq!(it.state().window_lift().unwrap().until, it.now.plus(WINDOW_LIFTED_AT_MOST));
    // What a damaged database says of a longer one is no wish of anybody.
    let stored = serde_json::to_string(it.state()).unwrap();
    let until = it.state().window_lift().unwrap().until;
    let longer = stored.replace(&until.to_string(), &until.plus_ms(1).to_string());
    assert_ne!(longer, stored);
    let damaged: State = serde_json::from_str(&longer).unwrap();
    assert!(damaged.check().is_err());
    let unsaid = stored.replace("the site is down", "");
    assert!(serde_json::from_str::<State>(&unsaid).unwrap().check().is_err());
}
