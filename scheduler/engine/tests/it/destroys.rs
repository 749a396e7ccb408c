//! `requireApprovalForDestroy`: who asks for nothing else is asked for what cannot be taken back.

use engine::desired::Desired;
use engine::event::{Event, FetchResult};
use schema::id::BlobId;
use schema::status::JobKind::{Apply, Fetch};

use crate::scenario::{Scenario, apply_only, exit_code, plan};

fn for_destroy() -> Desired {
    Desired { require_approval_for_destroy: true, ..exit_code() }
}

/// A plan that says of itself that it destroys nothing.
fn harmless(bytes: &str, explanation: &str) -> FetchResult {
    FetchResult { destroys_nothing: true, ..plan(bytes, explanation) }
}

#[test]
fn a_plan_that_destroys_nothing_goes_through_and_one_that_may_is_asked_about() {
    let mut it = Scenario::new(for_destroy());
    it.run_with(Fetch, 2, harmless("bytes 1", "one to add"));
    assert_eq!(it.start(Apply).plan, Some(BlobId::of(b"bytes 1")));
    assert_eq!(it.asked_so_far(), 0);

    let mut it = Scenario::new(for_destroy());
    it.run_with(Fetch, 2, plan("bytes 1", "one to destroy"));
    it.declines(Apply);
    it.is("WAITING_MANUAL_APPROVAL RUNTIME_OBJECT_APPLY_NEEDED");
    let told = it.state().approvals()[0].description.clone().unwrap_or_default();
    assert!(told.contains("destroys or replaces something"), "{told}");
    it.approve("ann");
    it.send(Event::Tick);
    assert_eq!(it.start(Apply).plan, Some(BlobId::of(b"bytes 1")));
}

#[test]
fn whoever_said_yes_to_one_plan_has_said_nothing_of_another_that_destroys_more() {
    let mut it = Scenario::new(for_destroy());
    it.run_with(Fetch, 2, plan("bytes 1", "one to destroy"));
    it.approve("ann");
    it.until(30).run_with(Fetch, 2, plan("bytes 2", "two to destroy"));
    it.declines(Apply);
    it.is("WAITING_MANUAL_APPROVAL RUNTIME_OBJECT_APPLY_NEEDED");
    // What it destroyed is back: nobody is asked about the rest.
    it.until(60).run_with(Fetch, 2, harmless("bytes 3", "one to add"));
    assert_eq!(it.start(Apply).plan, Some(BlobId::of(b"bytes 3")));
    assert_eq!(it.state().pending_approvals().count(), 0);
}

#[test]
fn a_stale_plan_that_now_destroys_something_is_asked_about() {
    let mut it = Scenario::new(for_destroy());
    it.run_with(Fetch, 2, harmless("bytes 1", "one to add"));
    it.run(Apply, 75);
    it.run_with(Fetch, 2, plan("bytes 2", "one to destroy"));
    it.until(60);
    it.declines(Apply);
    it.is("WAITING_MANUAL_APPROVAL RUNTIME_OBJECT_APPLY_NEEDED");
}

#[test]
fn a_no_to_what_is_destroyed_says_nothing_of_what_is_only_added_once_the_release_has_arrived() {
    let mut it = Scenario::new(for_destroy());
    it.run(Fetch, 0);
    it.is("CONVERGED");
    it.until(3_600).run_with(Fetch, 2, plan("bytes 1", "one to destroy"));
    it.reject("ann");
    it.is("FAILED MANUAL_APPROVAL_REJECTED");
    it.until(7_200).run_with(Fetch, 2, harmless("bytes 2", "one to add"));
    assert_eq!(it.start(Apply).plan, Some(BlobId::of(b"bytes 2")));
}

#[test]
fn where_nothing_tells_what_is_destroyed_people_are_asked() {
    let mut it = Scenario::new(Desired { require_approval_for_destroy: true, ..apply_only() });
    it.declines(Apply);
    it.is("WAITING_MANUAL_APPROVAL");
}

#[test]
fn who_asks_for_every_apply_is_asked_once() {
    let mut it = Scenario::new(Desired { require_approval_before_apply: true, ..for_destroy() });
    it.run_with(Fetch, 2, plan("bytes 1", "one to destroy"));
    assert_eq!(it.state().pending_approvals().count(), 1);
    it.until(30).run_with(Fetch, 2, harmless("bytes 2", "one to add"));
    it.declines(Apply);
    assert_eq!(it.state().pending_approvals().count(), 1);
}
