//! How much room states take (10,000 of them are kept in memory and read at the start), and lanes
//! as an index of them.

use engine::event::Event;
use engine::limiter::{ConcurrencyLimiter, Limit, Limits};
use engine::{State, step};
use schema::id::InstanceId;
use schema::status::JobKind;
use schema::time::Timestamp;

use crate::scenario::{
    ALONE, Apply, Fetch, START_MS, Scenario, exit_code, manual, plan, with_info,
};

/// Most bytes of a stored state in ordinary circumstances: 10,000 of them are 30 MB of text and
/// less in memory.
const STORED_BYTES: usize = 3_000;

#[test]
fn ten_thousand_states_stay_small() {
    let mut desired = with_info();
    desired.gates = vec![manual(true, 1)];
    let mut it = Scenario::new(desired);
    for round in 0..40 {
        it.until(round * 700);
        it.run_with(
            Fetch,
            2,
            plan(&format!("plan {round}"), "one to add, none to change, none to destroy"),
        );
        it.approve("ann");
        it.run(Apply, 0);
        it.run(Fetch, 0);
    }
    let stored = serde_json::to_string(it.state()).unwrap();
    assert!(
        stored.len() < 3 * STORED_BYTES,
        "{} bytes with a full history of approvals",
        stored.len()
    );
    let mut it = Scenario::new(with_info());
    it.run(Fetch, 0);
    let stored = serde_json::to_string(it.state()).unwrap();
    assert!(stored.len() < STORED_BYTES, "{} bytes", stored.len());
    assert!(std::mem::size_of::<State>() < 1_500, "{} bytes", std::mem::size_of::<State>());
}

/// Lanes hold what follows from the states, however it came about.
#[test]
fn lanes_rebuilt_from_the_states_answer_alike() {
    let now = Timestamp::from_millis(START_MS);
    let limit = Limit { total: 40, per_runtime: Some(30) };
    let limits = Limits { fetch: limit, apply: limit, get_info: limit };
    let mut lanes = ConcurrencyLimiter::new(limits, now);
    let mut states: Vec<State> =
        (0..100_u8).map(|number| State::new(InstanceId::derive(&[&[number]]), now)).collect();
    for (since, state) in (0..).zip(&mut states) {
        let since = now.plus_ms(since);
        *state = step(state.clone(), Event::Desired(Box::new(exit_code())), since).0;
        lanes.update(state, ALONE);
    }
    for _ in 0..25 {
        let (next, kind) = lanes.next(now).unwrap();
        let state = states.iter_mut().find(|state| state.instance() == next).unwrap();
        *state = step(state.clone(), Event::Granted(kind), now).0;
        lanes.update(state, ALONE);
    }
    let gone = states.pop().unwrap();
    lanes.forget(gone.instance());
    let mut rebuilt = ConcurrencyLimiter::new(limits, now);
    states.iter().rev().for_each(|state| rebuilt.update(state, ALONE));
    for kind in JobKind::ALL {
        assert_eq!(
            (rebuilt.in_flight(*kind), rebuilt.waiting(*kind)),
            (lanes.in_flight(*kind), lanes.waiting(*kind))
        );
    }
    assert_eq!(rebuilt.next(now), lanes.next(now));
}

/// After the clock was set back nothing new is taken for something that piled up.
#[test]
fn lanes_do_not_wait_for_the_old_time_to_come_round() {
    let now = Timestamp::from_millis(START_MS);
    let limit = Limit { total: 1_000, per_runtime: None };
    let mut lanes =
        ConcurrencyLimiter::new(Limits { fetch: limit, apply: limit, get_info: limit }, now);
    let earlier = now.plus_ms(-3_600_000);
    lanes.next(earlier);
    for number in 0..200_u8 {
        let state = State::new(InstanceId::derive(&[&[number]]), earlier);
        lanes.update(&step(state, Event::Desired(Box::new(exit_code())), earlier).0, ALONE);
    }
    let mut granted = 0;
    while let Some((instance, _)) = lanes.next(earlier) {
        lanes.forget(instance);
        granted += 1;
    }
    assert_eq!(granted, 200);
}
