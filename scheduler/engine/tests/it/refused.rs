//! A no and what it outlives (rule 7): until a retry or a new release nothing that it is about is
//! applied, whoever else brings it about.

use engine::desired::{Desired, Gate};
use engine::event::Event;
use schema::status::{Decision, Status};

use crate::scenario::{Apply, Fetch, Scenario, exit_code, manual, newer, other_commands};

fn gates() -> [Gate; 2] {
    [
        manual(false, 1),
        Gate::SharedApproval { name: "launch".to_owned(), description: None, min_approvers: 1 },
    ]
}

/// Somebody makes it as desired by hand, and somebody takes that back.
fn by_hand_and_back(it: &mut Scenario) {
    for code in [0, 2] {
        it.send(Event::Refresh { who: "bob".to_owned(), tries_again: true });
        it.run(Fetch, code);
        assert_eq!(it.state().standing().status == Status::Converged, code == 0);
    }
}

#[test]
fn rule_07_a_no_outlives_that_somebody_else_makes_it_as_desired() {
    for gate in gates() {
        let desired = Desired { gates: vec![gate], ..exit_code() };
        let mut it = Scenario::new(desired.clone());
        it.run(Fetch, 2);
        it.reject("ann");
        by_hand_and_back(&mut it);
        it.is("FAILED MANUAL_APPROVAL_REJECTED");
        assert!(!it.wants(Apply));
        let mut retried = it.clone();
        retried.send(Event::Retry { who: "ann".to_owned() });
        retried.run(Fetch, 2);
        retried.start(Apply);
        it.send(Event::Desired(Box::new(newer(&desired, 2))));
        it.run(Fetch, 2);
        it.is("WAITING_MANUAL_APPROVAL RUNTIME_OBJECT_APPLY_NEEDED");
    }
}

#[test]
fn rule_07_a_no_to_changed_commands_outlives_it_too() {
    for gate in gates() {
        let desired = Desired { gates: vec![gate], ..exit_code() };
        let mut it = Scenario::new(desired.clone());
        it.run(Fetch, 0);
        it.send(Event::Desired(Box::new(other_commands(&desired))));
        it.run(Fetch, 2);
        it.reject("ann");
        by_hand_and_back(&mut it);
        it.is("FAILED MANUAL_APPROVAL_REJECTED");
        assert!(!it.wants(Apply));
    }
}

#[test]
fn rule_07_after_a_no_to_an_apply_that_runs_no_other_follows() {
    for gate in gates() {
        let mut it = Scenario::new(Desired { gates: vec![gate], ..exit_code() });
        it.run(Fetch, 2);
        let asked = it.pending();
        it.approve("ann");
        let job = it.start(Apply).job;
        it.decide(asked, "ann", Decision::Reject);
        let outcome = it.exited(0, Default::default());
        it.ends(job, outcome);
        by_hand_and_back(&mut it);
        it.is("FAILED MANUAL_APPROVAL_REJECTED");
        assert!(!it.wants(Apply));
    }
}
