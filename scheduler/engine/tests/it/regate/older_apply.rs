//! Approvals of a release while the apply of the one before still runs.

use super::*;

/// A channel in which the apply of the release before still runs, and what its shared approval of
/// the next one is called.
fn beside_an_older_apply(gates: &[Gate]) -> (Scenario, JobId, Desired, ApprovalId) {
    let next = newer(&gated(gates), 2);
    let mut sibling = Scenario::new(next.clone());
    sibling.run(Fetch, 2);
    let mut it = Scenario::new(gated(&[]));
    it.run(Fetch, 2);
    let older = it.start(Apply).job;
    it.begins(older);
    it.send(Event::Desired(Box::new(next.clone())));
    (it, older, next, sibling.pending())
}

impl Scenario {
    /// The older apply ends, and there is work left for the release.
    fn goes_on_after(&mut self, older: JobId) {
        let outcome = self.exited(0, FetchResult::default());
        self.ends(older, outcome);
        self.run(Fetch, 2);
    }
}

#[test]
fn p8_a_yes_can_be_taken_back_while_the_apply_of_an_older_release_runs() {
    let (mut it, older, _, asked) = beside_an_older_apply(&[shared(1)]);
    it.decide(asked, "ann", Decision::Approve);
    it.decide(asked, "bob", Decision::Reject);
    it.goes_on_after(older);
    it.is("FAILED MANUAL_APPROVAL_REJECTED");
}

#[test]
fn p8_more_approvers_count_while_the_apply_of_an_older_release_runs() {
    let (mut it, older, next, asked) = beside_an_older_apply(&[shared(1)]);
    it.decide(asked, "ann", Decision::Approve);
    it.send(Event::Desired(Box::new(Desired { gates: vec![shared(2)], ..next })));
    it.goes_on_after(older);
    it.is("WAITING_MANUAL_APPROVAL RUNTIME_OBJECT_APPLY_NEEDED");
    it.decide(asked, "bob", Decision::Approve);
    it.start(Apply);
}

#[test]
fn p8_more_approvers_count_for_an_apply_that_nobody_has_used_its_yes_for_after_the_release_has_arrived()
 {
    let desired = gated(&[manual(true, 1)]);
    let mut it = Scenario::new(desired.clone());
    it.run(Fetch, 0);
    it.until(1_000).run(Fetch, 2);
    it.approve("ann");
    it.send(Event::Pause { who: "ann".to_owned(), reason: None });
    it.send(Event::Desired(Box::new(Desired { gates: vec![manual(true, 2)], ..desired })));
    it.send(Event::Resume);
    it.run(Fetch, 2);
    it.is("WAITING_MANUAL_APPROVAL RUNTIME_OBJECT_APPLY_NEEDED");
    it.approve("bob");
    it.start(Apply);
}
