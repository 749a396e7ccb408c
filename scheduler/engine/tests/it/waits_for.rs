//! What is drawn before a channel: what its next apply waits for, all of it and in order, from the
//! description of its situation.

use std::time::Duration;

use engine::desired::{Desired, Window};
use engine::event::Event;
use engine::view::waits_for;
use schema::schedule::Schedule;
use schema::status::GateKind::{self, Approval, Channels, Pause, Rejected, Window as Shut};
use schema::time::Timestamp;

use crate::scenario::{Apply, Fetch, START_MS, Scenario, exit_code, manual, newer, stable};

/// Second 0 is 10:00; the window opens at 11:00 for an hour.
fn gated() -> Desired {
    let gates = vec![stable(&["staging", "canary"]), manual(false, 2)];
    let mut desired = Desired { gates, ..exit_code() };
    let opens = Schedule::parse("0 0 11 * * *", None).unwrap();
    desired.apply.window = Some(Window { opens, duration: Duration::from_secs(3_600) });
    desired
}

#[track_caller]
fn check(it: &Scenario, expected: &[(GateKind, &str)]) {
    let told = waits_for(it.state());
    let found: Vec<_> = told.iter().map(|gate| (gate.kind, gate.words.as_str())).collect();
    assert_eq!(found, expected, "{}", it.state().standing().message);
    let opens = Timestamp::from_millis(START_MS + 3_600_000);
    for gate in told {
        assert_eq!(gate.opens_at, (gate.kind == Shut).then_some(opens));
    }
}

#[test]
fn all_that_an_apply_waits_for_is_told_in_order_until_nothing_is_left() {
    let mut it = Scenario::new(gated());
    check(&it, &[]);
    it.run(Fetch, 2);
    let window = (Shut, "window opens");
    check(&it, &[(Channels, "stable: staging, canary"), (Approval, "qa: not asked yet"), window]);
    it.upstream("staging", Some("svc-1"));
    check(&it, &[(Channels, "stable: canary"), (Approval, "qa: not asked yet"), window]);
    it.upstream("canary", Some("svc-1"));
    check(&it, &[(Approval, "qa: 0 of 2"), window]);
    it.approve("ann");
    check(&it, &[(Approval, "qa: 1 of 2"), window]);
    it.send(Event::Pause { who: "bob".to_owned(), reason: None });
    check(&it, &[(Pause, "paused by bob")]);
    it.send(Event::Resume);
    // It looks first.
    check(&it, &[]);
    it.run(Fetch, 2);
    it.approve("bob");
    check(&it, &[window]);
    it.until(3_600);
    assert!(it.wants(Apply) || it.wants(Fetch));
    check(&it, &[]);
}

#[test]
fn a_no_is_a_gate_of_its_own_and_what_is_as_desired_waits_for_nothing() {
    let mut it = Scenario::new(gated());
    it.run(Fetch, 2);
    for channel in ["staging", "canary"] {
        it.upstream(channel, Some("svc-1"));
    }
    it.reject("ann");
    check(&it, &[(Rejected, "qa: rejected"), (Shut, "window opens")]);
    let mut it = Scenario::new(newer(&gated(), 2));
    it.run(Fetch, 0);
    check(&it, &[]);
}
