//! Gates that a config takes away, adds or changes while their release waits at them (rules 7 and
//! 15).

use engine::desired::{Desired, Gate};
use engine::event::{Event, FetchResult};
use schema::id::{ApprovalId, BlobId, JobId};
use schema::status::{ApprovalStatus, Decision, Status};

use crate::scenario::{
    Apply, Fetch, Scenario, apply_only, exit_code, manual, newer, other_commands, plan,
};

mod answers;
mod older_apply;

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
        if desired.observe.looks() {
            self.run(Fetch, 2);
        }
        self
    }

    /// The same, and all is well.
    fn recompiled_clean(&mut self, desired: &Desired) {
        self.send(Event::Desired(Box::new(desired.clone())));
        self.run(Fetch, 0);
        self.is("CONVERGED");
    }
}

/// A release that waits at the first gates goes on under the second ones, and nobody is asked for
/// the first any more.
#[track_caller]
fn check_goes_on(before: &Desired, after: &Desired) {
    let mut it = Scenario::new(before.clone());
    if before.observe.looks() {
        it.run(Fetch, 2);
    }
    let asked = it.pending();
    it.recompiled(after);
    assert!(it.wants(Apply), "{:?}", it.state().standing());
    assert_eq!(it.state().approvals()[0].status, ApprovalStatus::Expired);
    it.send(Event::Decided {
        approval: asked,
        who: "ann".to_owned(),
        decision: Decision::Reject,
        reason: None,
    });
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
fn p2_a_no_stands_however_the_config_asks_from_then_on() {
    let named = |name: &str| Gate::ManualApproval {
        name: Some(name.to_owned()),
        description: None,
        every_action: false,
        min_approvers: 1,
    };
    let asks = |desired: Desired| Desired { require_approval_before_apply: true, ..desired };
    let stories = [
        (gated(&[manual(false, 1)]), gated(&[])),
        (gated(&[manual(true, 1)]), gated(&[])),
        (gated(&[shared(1)]), gated(&[])),
        (asks(exit_code()), exit_code()),
        (asks(apply_only()), apply_only()),
        (gated(&[manual(false, 1)]), gated(&[manual(true, 1)])),
        (gated(&[manual(false, 1)]), gated(&[shared(1)])),
        (gated(&[named("ops")]), gated(&[named("operations")])),
        (gated(&[named("ops")]), gated(&[named("first"), named("operations")])),
    ];
    for (before, after) in stories {
        let mut it = Scenario::new(before.clone());
        if before.observe.looks() {
            it.run(Fetch, 2);
        }
        it.reject("ann");
        it.is("FAILED MANUAL_APPROVAL_REJECTED");
        it.recompiled(&after);
        assert!(!it.wants(Apply), "{after:?}");
        it.is("FAILED MANUAL_APPROVAL_REJECTED");
        assert!(it.state().is_refused());
        // And back.
        it.recompiled(&before).is("FAILED MANUAL_APPROVAL_REJECTED");
        it.recompiled(&after);
        let told = it.state().standing().message.clone();
        it.send(Event::Retry { who: "ann".to_owned() });
        if after.observe.looks() {
            it.run(Fetch, 2);
        }
        assert!(it.status() != "FAILED MANUAL_APPROVAL_REJECTED", "a retry ends it: {after:?}");
        assert_eq!(it.wants(Apply), after.gates.is_empty(), "{after:?}");
        assert_eq!(told.contains("asks anew"), !after.gates.is_empty(), "{told}");
    }
    // One to an apply is about the release until that has arrived, whatever fetch shows, and from
    // then on about what it saw.
    let mut it = Scenario::new(asks(exit_code()));
    it.run_with(Fetch, 2, plan("a", "a"));
    it.reject("ann");
    it.send(Event::Desired(Box::new(exit_code())));
    it.run_with(Fetch, 2, plan("b", "b"));
    assert!(!it.wants(Apply));
    it.until(600).run(Fetch, 0);
    it.is("CONVERGED");
    assert!(!it.state().is_refused());
    it.until(5_000).run_with(Fetch, 2, plan("b", "b"));
    assert!(it.wants(Apply), "{:?}", it.state().standing());
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

#[test]
fn p2_a_yes_is_for_the_commands_of_its_moment() {
    for gate in [manual(false, 2), shared(2)] {
        let desired = gated(&[gate]);
        let mut it = Scenario::new(desired.clone());
        it.run(Fetch, 2);
        it.approve("ann");
        it.recompiled(&other_commands(&desired)).approve("bob");
        assert!(!it.wants(Apply), "ann has not seen them");
        it.approve("ann");
        assert!(it.wants(Apply));
        it.recompiled(&desired);
        assert!(!it.wants(Apply), "nor has anybody said yes to going back");
        assert_eq!(it.state().standing().status, Status::WaitingManualApproval);
    }
    let desired = Desired { gates: vec![manual(false, 1)], ..apply_only() };
    let mut it = Scenario::new(desired.clone());
    it.approve("ann");
    it.recompiled(&other_commands(&desired));
    assert!(!it.wants(Apply));
    it.approve("ann");
    it.start(Apply);
}

#[test]
fn rule_18_a_yes_that_other_commands_took_back_is_told_in_words_and_in_the_log() {
    for gate in [manual(false, 1), manual(true, 1)] {
        let desired = gated(&[gate]);
        let mut it = Scenario::new(desired.clone());
        it.run(Fetch, 2);
        it.approve("ann");
        it.recompiled(&other_commands(&desired));
        assert_eq!(it.logged("approval.withdrawn").count(), 1);
        let message = it.state().standing().message.clone();
        assert!(
            message.contains("the yes of ann at ")
                && message.contains("was for other commands than the config has now"),
            "{message}"
        );
    }
}

#[test]
fn p2_a_yes_to_a_question_about_other_commands_counts_for_nothing() {
    for gates in [
        vec![manual(false, 1)],
        vec![manual(true, 1)],
        vec![shared(1)],
        vec![shared(1), manual(false, 1)],
    ] {
        for desired in [gated(&gates), Desired { gates: gates.clone(), ..apply_only() }] {
            let mut it = Scenario::new(desired.clone());
            if desired.observe.looks() {
                it.run(Fetch, 2);
            }
            let asked = it.pending();
            it.recompiled(&other_commands(&desired));
            assert_ne!(it.pending(), asked, "{gates:?}: another question has another name");
            it.decide(asked, "ann", Decision::Approve);
            assert!(!it.wants(Apply), "{gates:?}: ann has not seen them");
            it.recompiled(&Desired {
                shared_for: Some(BlobId::of(b"back again")),
                ..desired.clone()
            });
            it.decide(asked, "ann", Decision::Approve);
            assert!(!it.wants(Apply), "{gates:?}: a question that was withdrawn stays so");
            for _ in &gates {
                it.approve("ann");
            }
            it.start(Apply);
        }
    }
}

#[test]
fn p2_a_shared_approval_is_for_the_commands_of_all_its_channels_and_one_in_all_of_them() {
    let desired = gated(&[shared(1)]);
    let [mut here, mut there] = [Scenario::new(desired.clone()), Scenario::new(desired.clone())];
    here.run(Fetch, 2);
    there.run(Fetch, 2);
    let old = here.pending();
    assert_eq!(there.pending(), old);
    // The commands of the one channel change, what is shared of them in both.
    let changed = other_commands(&desired);
    here.recompiled(&changed);
    there.recompiled(&Desired { shared_for: changed.shared_for, ..desired.clone() });
    let new = here.pending();
    assert_eq!(there.pending(), new, "one question for both");
    for it in [&mut here, &mut there] {
        it.decide(old, "ann", Decision::Approve);
        assert!(!it.wants(Apply), "it was asked about other commands");
        it.decide(new, "ann", Decision::Approve);
        assert!(it.wants(Apply));
    }
    // Where the release has arrived, nothing is asked that its own commands do not ask.
    there.run(Apply, 0);
    there.run(Fetch, 0);
    there.recompiled_clean(&Desired {
        shared_for: Some(BlobId::of(b"once more")),
        ..desired.clone()
    });
    there.until(400).run(Fetch, 2);
    there.start(Apply);
}

#[test]
fn p2_other_commands_need_a_yes_of_their_own_also_after_the_release_has_arrived() {
    let desired = gated(&[manual(false, 1)]);
    let mut it = Scenario::new(desired.clone());
    it.run(Fetch, 0);
    it.recompiled(&other_commands(&desired));
    assert!(!it.wants(Apply));
    it.until(40).run(Fetch, 0);
    it.is("CONVERGED");
    // What is found from here on is drift, as after any release that had nothing to do.
    it.until(400).run(Fetch, 2);
    it.start(Apply);
}

#[test]
fn p2_where_no_fetch_can_tell_a_config_is_no_order_to_apply() {
    let first =
        Desired { gates: vec![manual(false, 1)], apply_id: Some("x".to_owned()), ..apply_only() };
    let mut it = Scenario::new(first.clone());
    it.approve("ann");
    it.run(Apply, 0);
    let second = Desired { apply_id: Some("y".to_owned()), ..other_commands(&first) };
    it.recompiled(&second);
    it.is("CONVERGED");
    assert!(!it.wants(Apply));
    // A release is one, and "y" was never applied.
    it.recompiled(&newer(&second, 2));
    it.approve("ann");
    it.run(Apply, 0);
    it.is("CONVERGED");
    // While it is paused, and while an apply runs.
    let third = Desired { apply_id: Some("z".to_owned()), ..first.clone() };
    it.send(Event::Pause { who: "ann".to_owned(), reason: None });
    it.recompiled(&newer(&third, 2));
    it.send(Event::Resume);
    it.is("CONVERGED");
    let mut it = Scenario::new(first.clone());
    it.approve("ann");
    let apply = it.start(Apply).job;
    it.begins(apply);
    it.recompiled(&second);
    let done = it.exited(0, FetchResult::default());
    it.ends(apply, done);
    it.is("CONVERGED");
    // Without a fetch from now on.
    let mut it = Scenario::new(exit_code());
    it.run(Fetch, 0);
    it.recompiled(&other_commands(&apply_only()));
    it.is("CONVERGED");
    assert!(!it.wants(Apply));
}

#[test]
fn p2_a_yes_to_a_plan_is_for_that_plan_until_its_apply_has_begun() {
    let desired = gated(&[manual(false, 1)]);
    let mut it = Scenario::new(desired.clone());
    it.run_with(Fetch, 2, plan("1", "change a comment"));
    it.approve("ann");
    it.until(40).run_with(Fetch, 2, plan("2", "change a comment"));
    assert!(it.wants(Apply), "the same plan in other bytes");
    it.until(80).run_with(Fetch, 2, plan("3", "drop the database"));
    assert!(!it.wants(Apply));
    assert_eq!(
        it.state()
            .pending_approvals()
            .next()
            .and_then(|asked| asked.explanation.clone())
            .as_deref(),
        Some("drop the database")
    );
    it.approve("ann");
    it.run(Apply, 1);
    // One decision for the release: what is left to do after an apply that failed is another plan.
    it.until(1_000).run_with(Fetch, 2, plan("4", "drop the rest"));
    it.start(Apply);
}

#[test]
fn an_apply_that_did_not_succeed_leaves_nothing_applied() {
    let first = Desired { apply_id: Some("one".to_owned()), ..apply_only() };
    let mut it = Scenario::new(first.clone());
    it.run(Apply, 0);
    it.recompiled(&Desired { apply_id: Some("two".to_owned()), ..newer(&first, 2) });
    it.run(Apply, 1);
    it.is("FAILED APPLY_FAILED");
    it.recompiled(&newer(&first, 3));
    it.run(Apply, 0);
    it.is("CONVERGED");
}
