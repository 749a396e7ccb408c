//! Which approvals an apply uses: those by which it was let through, and no others, whatever is
//! asked and said while it runs (rules 7 and 15). And what counts as applied where no fetch can
//! tell (rule 6).

use engine::desired::{Desired, Gate};
use engine::event::{Event, FetchResult, Outcome};
use engine::{Start, start_now};
use schema::id::{ApprovalId, BlobId, JobId};
use schema::status::{ApprovalStatus, Decision};

use crate::scenario::{Apply, Fetch, Scenario, apply_only, exit_code, manual, newer};

fn shared(name: &str, min_approvers: u32) -> Gate {
    Gate::SharedApproval { name: name.to_owned(), description: None, min_approvers }
}

fn gated(gates: &[Gate]) -> Desired {
    Desired { gates: gates.to_vec(), ..exit_code() }
}

/// What another channel of the release is asked.
fn asked_in_a_sibling(desired: &Desired) -> ApprovalId {
    let mut sibling = Scenario::new(desired.clone());
    sibling.run(Fetch, 2);
    let first = sibling.pending();
    if desired.gates.len() == 1 {
        return first;
    }
    sibling.approve("ann");
    sibling.pending()
}

/// An apply that a yes to `go` let through runs, and what it is.
fn applying(desired: &Desired) -> (Scenario, JobId) {
    let mut it = Scenario::new(desired.clone());
    it.run(Fetch, 2);
    it.approve("ann");
    let apply = it.start(Apply).job;
    it.begins(apply);
    (it, apply)
}

impl Scenario {
    /// The apply ends well, and there is work left.
    fn leaves_work(&mut self, apply: JobId) {
        let outcome = self.exited(0, FetchResult::default());
        self.ends(apply, outcome);
        self.run(Fetch, 2);
        self.until(700);
        if self.wants(Fetch) {
            self.run(Fetch, 2);
        }
    }
}

#[test]
fn p8_an_apply_uses_no_answer_to_a_question_that_was_asked_after_it_had_begun() {
    // A gate that a config adds.
    let (mut it, apply) = applying(&gated(&[shared("go", 1)]));
    let both = gated(&[shared("go", 1), shared("audit", 1)]);
    it.send(Event::Desired(Box::new(both.clone())));
    let audit = asked_in_a_sibling(&both);
    it.decide(audit, "ann", Decision::Approve);
    it.decide(audit, "bob", Decision::Reject);
    it.leaves_work(apply);
    it.is("FAILED MANUAL_APPROVAL_REJECTED");
    // The same question about the commands that another channel has now.
    for raised in [false, true] {
        let (mut it, apply) = applying(&gated(&[shared("go", 1)]));
        let other = Desired { shared_for: Some(BlobId::of(b"other")), ..gated(&[shared("go", 1)]) };
        it.send(Event::Desired(Box::new(other.clone())));
        let go = asked_in_a_sibling(&other);
        it.decide(go, "ann", Decision::Approve);
        if raised {
            it.send(Event::Desired(Box::new(Desired { gates: vec![shared("go", 2)], ..other })));
        } else {
            it.decide(go, "bob", Decision::Reject);
        }
        it.leaves_work(apply);
        it.is(if raised {
            "WAITING_MANUAL_APPROVAL RUNTIME_OBJECT_APPLY_NEEDED"
        } else {
            "FAILED MANUAL_APPROVAL_REJECTED"
        });
    }
}

#[test]
fn p8_what_is_said_while_an_apply_runs_holds_for_all_that_starts_after_it() {
    let ends = |what: &str, it: &Scenario| match what {
        "gave its turn back" => {
            Outcome::NotStarted { why: "job-1 still uses /tf.plan".to_owned(), surroundings: true }
        }
        "ran" => it.exited(1, FetchResult::default()),
        _ => Outcome::Unknown { why: "lost".to_owned(), gone: true },
    };
    for what in ["gave its turn back", "ran", "nobody knows"] {
        for (gate, raised) in [
            (shared("go", 1), shared("go", 2)),
            (manual(false, 1), manual(false, 2)),
            (manual(true, 1), manual(true, 2)),
        ] {
            for is_no in [true, false] {
                let desired = gated(std::slice::from_ref(&gate));
                let (mut it, apply) = applying(&desired);
                let asked = it.state().approvals()[0].id;
                if is_no {
                    it.decide(asked, "ann", Decision::Reject);
                    assert!(
                        it.state()
                            .standing()
                            .message
                            .contains(&format!("`pvnctl jobs cancel {apply}` stops it"))
                    );
                    it.decide(asked, "ann", Decision::Approve);
                } else {
                    it.send(Event::Desired(Box::new(gated(std::slice::from_ref(&raised)))));
                }
                let outcome = ends(what, &it);
                it.ends(apply, outcome);
                it.run(Fetch, 2);
                it.until(700);
                if it.wants(Fetch) {
                    it.run(Fetch, 2);
                }
                assert!(!it.wants(Apply), "{what}: {:?}", it.state().standing());
                assert_eq!(
                    it.status().starts_with("FAILED MANUAL_APPROVAL_REJECTED"),
                    is_no,
                    "{what}: {:?}",
                    it.state().standing()
                );
            }
        }
    }
}

#[test]
fn p8_a_question_that_is_asked_again_under_the_same_name_has_answers_of_its_own() {
    let desired = gated(&[shared("go", 1)]);
    let (mut it, apply) = applying(&desired);
    it.send(Event::Desired(Box::new(gated(&[]))));
    it.send(Event::Desired(Box::new(desired.clone())));
    let again = asked_in_a_sibling(&desired);
    it.decide(again, "ann", Decision::Approve);
    it.decide(again, "bob", Decision::Reject);
    it.leaves_work(apply);
    it.is("FAILED MANUAL_APPROVAL_REJECTED");
}

#[test]
fn p2_a_no_stands_over_other_commands_of_a_sibling() {
    let desired = gated(&[shared("go", 1)]);
    let (mut it, apply) = applying(&desired);
    let asked = it.state().approvals()[0].id;
    it.decide(asked, "bob", Decision::Reject);
    let other = Desired { shared_for: Some(BlobId::of(b"other")), ..desired };
    it.send(Event::Desired(Box::new(other.clone())));
    it.leaves_work(apply);
    it.decide(asked_in_a_sibling(&other), "ann", Decision::Approve);
    assert!(!it.wants(Apply));
    it.is("FAILED MANUAL_APPROVAL_REJECTED");
}

#[test]
fn p2_a_no_or_more_approvers_before_an_apply_is_handed_over_are_obeyed() {
    for raised in [false, true] {
        let mut it = Scenario::new(gated(&[manual(false, 1)]));
        it.run(Fetch, 2);
        it.approve("ann");
        let given = it.state().approvals()[0].id;
        let apply = it.start(Apply).job;
        assert!(matches!(start_now(it.state(), apply, it.now), Start::Holds { .. }));
        if raised {
            it.send(Event::Desired(Box::new(gated(&[manual(false, 2)]))));
        } else {
            it.decide(given, "bob", Decision::Reject);
        }
        let start = start_now(it.state(), apply, it.now);
        assert_eq!(start, Start::Void { why: "an approval is missing" }, "raised: {raised}");
        it.send(Event::Unstarted { job: apply, taken_back: None });
        it.run(Fetch, 2);
        it.is(if raised {
            "WAITING_MANUAL_APPROVAL RUNTIME_OBJECT_APPLY_NEEDED"
        } else {
            "FAILED MANUAL_APPROVAL_REJECTED"
        });
    }
}

#[test]
fn p2_a_no_stands_whatever_is_said_elsewhere_about_other_commands() {
    let mut it = Scenario::new(gated(&[shared("go", 1)]));
    it.run(Fetch, 2);
    it.reject("bob");
    let other = Desired { shared_for: Some(BlobId::of(b"other")), ..gated(&[shared("go", 1)]) };
    it.send(Event::Desired(Box::new(other.clone())));
    it.run(Fetch, 2);
    it.decide(asked_in_a_sibling(&other), "ann", Decision::Approve);
    it.is("FAILED MANUAL_APPROVAL_REJECTED");
    assert!(!it.wants(Apply));
    it.send(Event::Retry { who: "bob".to_owned() });
    it.run(Fetch, 2);
    assert!(it.wants(Apply), "what was said meanwhile counts once nobody says no any more");
}

#[test]
fn a_yes_by_which_the_release_has_arrived_is_past_taking_back() {
    let desired = gated(&[manual(false, 1)]);
    let (mut it, apply) = applying(&desired);
    let outcome = it.exited(0, FetchResult::default());
    it.ends(apply, outcome);
    it.run(Fetch, 0);
    it.is("CONVERGED");
    assert_eq!(it.state().given_approvals().count(), 0);
    let used = it.state().approvals()[0].id;
    it.decide(used, "bob", Decision::Reject);
    assert_eq!(it.state().approvals()[0].status, ApprovalStatus::Approved);
    it.send(Event::Desired(Box::new(Desired {
        compiled: BlobId::of(b"other commands"),
        ..desired
    })));
    it.run(Fetch, 2);
    it.is("WAITING_MANUAL_APPROVAL RUNTIME_OBJECT_APPLY_NEEDED");
}

#[test]
fn where_no_fetch_can_tell_a_channel_that_is_converged_asks_nobody() {
    let desired = Desired { gates: vec![shared("go", 1)], ..apply_only() };
    let mut it = Scenario::new(desired.clone());
    it.approve("ann");
    let apply = it.start(Apply).job;
    it.begins(apply);
    let both = Desired { gates: vec![shared("go", 1), shared("audit", 2)], ..desired };
    it.send(Event::Desired(Box::new(both.clone())));
    let mut sibling = Scenario::new(both);
    sibling.approve("ann");
    it.decide(sibling.pending(), "ann", Decision::Approve);
    let outcome = it.exited(0, FetchResult::default());
    it.ends(apply, outcome);
    it.is("CONVERGED");
    assert_eq!(it.state().pending_approvals().count(), 0);
}

fn with_id(id: &str) -> Desired {
    Desired { apply_id: Some(id.to_owned()), ..apply_only() }
}

#[test]
fn p8_a_text_of_apply_id_that_was_never_applied_is_applied_by_the_next_release() {
    // The config changes while all is well, or while the apply runs.
    for during in [false, true] {
        let mut it = Scenario::new(with_id("one"));
        let apply = it.start(Apply).job;
        it.begins(apply);
        if during {
            it.send(Event::Desired(Box::new(with_id("two"))));
        }
        let outcome = it.exited(0, FetchResult::default());
        it.ends(apply, outcome);
        it.send(Event::Desired(Box::new(with_id("two"))));
        it.is("CONVERGED");
        it.send(Event::Desired(Box::new(newer(&with_id("one"), 2))));
        it.is("CONVERGED");
        it.send(Event::Desired(Box::new(newer(&with_id("two"), 3))));
        it.run(Apply, 0);
        it.is("CONVERGED");
        it.send(Event::Desired(Box::new(newer(&with_id("two"), 4))));
        it.is("CONVERGED");
    }
    // All in one, and what a fetch found well says nothing of a text.
    let mut it = Scenario::new(with_id("one"));
    it.run(Apply, 0);
    it.send(Event::Desired(Box::new(newer(&with_id("two"), 2))));
    it.run(Apply, 0);
    let mut it = Scenario::new(Desired { apply_id: Some("one".to_owned()), ..exit_code() });
    it.run(Fetch, 0);
    it.send(Event::Desired(Box::new(with_id("one"))));
    it.is("CONVERGED");
    it.send(Event::Desired(Box::new(newer(&with_id("one"), 2))));
    it.run(Apply, 0);
    it.is("CONVERGED");
}
