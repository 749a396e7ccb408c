//! Rule 8: how many applies of a runtime run at a time, who is next, and what people are told of
//! it.

use engine::desired::Desired;
use engine::event::{Event, FetchResult, Outcome};
use engine::limiter::{Blocked, ConcurrencyLimiter, Limit, Limits};
use engine::{State, step};
use schema::id::InstanceId;
use schema::time::Timestamp;

use crate::scenario::{ALONE, Apply, Fetch, START_MS, Scenario, apply_only, exit_code, manual};

const WIDE: Limit = Limit { total: 1_000, per_runtime: None };

fn lanes() -> ConcurrencyLimiter {
    ConcurrencyLimiter::new(
        Limits { fetch: WIDE, apply: WIDE, get_info: WIDE },
        Timestamp::from_millis(START_MS),
    )
}

fn ready(number: u8, second: i64, max_concurrency: Option<u32>) -> State {
    let now = Timestamp::from_millis(START_MS + second * 1_000);
    let state = State::new(InstanceId::derive(&[&[number]]), now);
    step(state, Event::Desired(Box::new(Desired { max_concurrency, ..apply_only() })), now).0
}

#[test]
fn rule_08_a_full_limit_is_told_only_where_nothing_else_is_in_the_way() {
    let mut it = Scenario::new(Desired {
        max_concurrency: Some(1),
        gates: vec![manual(false, 1)],
        ..exit_code()
    });
    it.run(Fetch, 2);
    let fetch = it.until(30).start(Fetch);
    it.approve("ann");
    it.until(33).is("CONVERGING RUNTIME_OBJECT_APPLY_NEEDED");
    let outcome = it.exited(2, FetchResult::default());
    it.ends(fetch.job, outcome);
    it.is("CONVERGING RUNTIME_OBJECT_APPLY_NEEDED");
    it.until(34).is("WAITING_PRECONDITIONS CONCURRENCY_LIMIT_EXCEEDED");
    let fetch = it.until(90).start(Fetch);
    it.until(93).is("WAITING_PRECONDITIONS CONCURRENCY_LIMIT_EXCEEDED");
    let message = &it.state().standing().message;
    assert!(
        message.contains(&format!("goes on once fetch {}", fetch.job)),
        "what ends it is not an apply of somebody else: {message}"
    );

    let full = |waiting: &Scenario, free: bool| {
        let mut lanes = lanes();
        let now = Timestamp::from_millis(START_MS + 93_000);
        let holder = ready(7, 1, Some(1));
        lanes.update(&holder, ALONE);
        if !free {
            let (holder, _) = step(holder, Event::Granted(Apply), now);
            lanes.update(&holder, ALONE);
        }
        lanes.update(waiting.state(), ALONE);
        lanes.blocked(waiting.state(), Apply, now)
    };
    assert!(
        matches!(full(&it, false), Blocked::Runtime { limit: 1, .. }),
        "who has the place is told also while fetch runs"
    );
    assert_eq!(full(&it, true), Blocked::NotBlocked);
}

#[test]
fn rule_08_of_those_of_one_moment_the_first_to_come_is_the_first_served() {
    let mut lanes = lanes();
    let now = Timestamp::from_millis(START_MS + 60_000);
    let mut states: Vec<State> = (0..20).map(|number| ready(number, 1, None)).collect();
    states.iter().for_each(|state| lanes.update(state, ALONE));
    // What is told again has come already.
    states.iter().rev().for_each(|state| lanes.update(state, ALONE));
    while !states.is_empty() {
        let state = states.remove(0);
        assert_eq!(lanes.next(now), Some((state.instance(), Apply)));
        lanes.update(&step(state, Event::Granted(Apply), now).0, ALONE);
    }
}

#[test]
fn rule_08_at_most_max_concurrency_applies_first_ready_first_served() {
    let mut lanes = lanes();
    let now = Timestamp::from_millis(START_MS + 60_000);
    let mut states: Vec<State> =
        [3, 1, 2].iter().map(|second| ready(*second as u8, *second, Some(1))).collect();
    states.iter().for_each(|state| lanes.update(state, ALONE));
    for turn in 1..=3_u8 {
        let (next, kind) = lanes.next(now).unwrap();
        assert_eq!((next, kind), (InstanceId::derive(&[&[turn]]), Apply));
        let at = states.iter().position(|state| state.instance() == next).unwrap();
        let (state, _) = step(states.swap_remove(at), Event::Granted(kind), now);
        lanes.update(&state, ALONE);
        assert_eq!(lanes.next(now), None, "one at a time");
        let job = state.jobs_in_flight().next().unwrap().id;
        if let Some(waiting) = states.first() {
            let Blocked::Runtime { limit: 1, holders, .. } = lanes.blocked(waiting, Apply, now)
            else {
                panic!("blocked")
            };
            assert_eq!((holders[0].instance, holders[0].job), (next, job));
        }
        let (state, _) = step(state, Event::JobEnded { job, outcome: Outcome::TimedOut }, now);
        lanes.update(&state, ALONE);
    }
    assert_eq!(lanes.next(now), None);
}

#[test]
fn rule_08_the_one_that_waits_says_what_it_waits_for() {
    let mut it = Scenario::new(exit_code());
    it.run(Fetch, 2);
    it.is("CONVERGING RUNTIME_OBJECT_APPLY_NEEDED");
    it.until(1);
    it.is("WAITING_PRECONDITIONS CONCURRENCY_LIMIT_EXCEEDED");
    it.until(30).run(Fetch, 2);
    it.is("WAITING_PRECONDITIONS CONCURRENCY_LIMIT_EXCEEDED");
    assert_eq!(
        it.state().wants(Apply).map(|since| it.seconds(since)),
        Some(0.0),
        "fetches do not cost the turn"
    );
}

// ---- rule 9 ----
