//! Gates that a config takes away, adds or changes while their release waits at them (rules 7 and 15).

use engine::desired::{Desired, Gate};
use engine::event::Event;
use schema::status::{ApprovalStatus, Decision};

use crate::scenario::{Apply, Fetch, Scenario, apply_only, exit_code, manual};

fn gated(gates: &[Gate]) -> Desired {
    Desired { gates: gates.to_vec(), ..exit_code() }
}

fn shared(min_approvers: u32) -> Gate {
    Gate::SharedApproval { name: "launch".to_owned(), description: None, min_approvers }
}

impl Scenario {
    /// The same release with another config; a fetch looks again and finds the same work.
    fn recompiled(&mut self, desired: &Desired) -> &mut Self {
        self.send(Event::Desired(Box::new(desired.clone())));
        if desired.fetch.is_some() {
            self.run(Fetch, 2);
        }
        self
    }
}

/// A release that waits at the first gates goes on under the second ones, and nobody is asked for the first any more.
#[track_caller]
fn check_goes_on(before: &Desired, after: &Desired) {
    let mut it = Scenario::new(before.clone());
    if before.fetch.is_some() {
        it.run(Fetch, 2);
    }
    let asked = it.pending();
    it.recompiled(after);
    assert!(it.wants(Apply), "{:?}", it.state().standing());
    assert_eq!(it.state().approvals()[0].status, ApprovalStatus::Expired);
    it.send(Event::Decided { approval: asked, who: "ann".to_owned(), decision: Decision::Reject, reason: None });
    it.start(Apply);
}

#[test]
fn rule_07_a_gate_that_is_taken_away_holds_nothing_up() {
    check_goes_on(&gated(&[manual(false, 1)]), &gated(&[]));
    check_goes_on(&gated(&[manual(true, 1)]), &gated(&[]));
    check_goes_on(&gated(&[shared(1)]), &gated(&[]));
    check_goes_on(&Desired { require_approval_before_apply: true, ..exit_code() }, &exit_code());
    check_goes_on(&Desired { gates: vec![manual(false, 1)], ..apply_only() }, &apply_only());
    check_goes_on(&Desired { require_approval_before_apply: true, ..apply_only() }, &apply_only());
}

#[test]
fn rule_07_a_gate_of_another_kind_asks_anew() {
    let mut it = Scenario::new(gated(&[manual(false, 1)]));
    it.run(Fetch, 2);
    let first = it.pending();
    it.recompiled(&gated(&[manual(true, 1)]));
    assert_ne!(it.pending(), first);
    it.approve("ann");
    it.start(Apply);
}

#[test]
fn rule_07_as_many_people_as_the_config_now_says_have_to_say_yes() {
    for gate in [manual as fn(bool, u32) -> Gate, |_, needed| shared(needed)] {
        let mut it = Scenario::new(gated(&[gate(false, 1)]));
        it.run(Fetch, 2);
        it.recompiled(&gated(&[gate(false, 2)])).approve("ann");
        assert!(!it.wants(Apply), "one of two");
        it.recompiled(&gated(&[gate(false, 1)]));
        assert!(it.wants(Apply), "one of one");
        it.recompiled(&gated(&[gate(false, 2)]));
        assert!(!it.wants(Apply), "one of two again, as nothing was applied yet");
        it.approve("bob");
        it.start(Apply);
    }
}

#[test]
fn rule_07_a_release_that_has_arrived_is_past_its_gates() {
    let mut it = Scenario::new(gated(&[manual(false, 1)]));
    it.run(Fetch, 2);
    it.approve("ann");
    it.run(Apply, 0);
    it.run(Fetch, 0);
    it.recompiled(&gated(&[manual(false, 2), shared(1)]));
    it.start(Apply);
}
