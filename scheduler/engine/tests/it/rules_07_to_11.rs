//! Gates, releases, cancel, pause, and jobs of which nobody knows.

use std::time::Duration;

use engine::action::StopReason;
use engine::desired::{Desired, Gate, Window};
use engine::event::{Event, FetchResult, Outcome};
use engine::limits::STOP_DEADLINE;
use schema::id::BlobId;
use schema::schedule::Schedule;
use schema::status::{ApprovalKind, ApprovalStatus, Decision};

use crate::scenario::{
    Apply, Fetch, GetInfo, Scenario, apply_only, before_apply, exit_code, manual, newer, plan,
    stable, with_info,
};

mod rule_11;

fn gated(gates: Vec<Gate>) -> Desired {
    Desired { gates, ..exit_code() }
}

#[test]
fn rule_07_a_channel_must_be_stable_at_the_same_version_and_once_met_stays_met() {
    let mut it = Scenario::new(gated(vec![stable(&["staging", "canary"])]));
    it.run(Fetch, 2);
    it.upstream("staging", Some("svc-0"));
    it.upstream("canary", Some("svc-1"));
    it.is("WAITING_PRECONDITIONS RELEASE_CHANNEL_DEPENDENCY_UNMET");
    it.declines(Apply);
    it.upstream("staging", Some("svc-1"));
    it.upstream("staging", None);
    it.start(Apply);
}

#[test]
fn rule_07_what_was_heard_of_a_channel_before_the_release_counts() {
    let mut it = Scenario::new(gated(vec![stable(&["staging"])]));
    it.upstream("staging", Some("svc-2"));
    it.send(Event::Desired(Box::new(newer(&gated(vec![stable(&["staging"])]), 2))));
    it.run(Fetch, 2);
    it.start(Apply);
}

#[test]
fn rule_07_no_channel_to_wait_for_is_an_open_gate() {
    let mut it = Scenario::new(gated(vec![stable(&[])]));
    it.run(Fetch, 2);
    it.start(Apply);
}

#[test]
fn rule_07_a_manual_approval_takes_different_people_and_holds_for_the_release() {
    let mut it = Scenario::new(gated(vec![manual(false, 2)]));
    it.run(Fetch, 2);
    it.is("WAITING_MANUAL_APPROVAL RUNTIME_OBJECT_APPLY_NEEDED");
    it.approve("ann");
    it.approve("ann");
    it.declines(Apply);
    it.approve("bob");
    it.run(Apply, 0);
    it.until(700);
    it.run(Fetch, 2);
    it.start(Apply);
    assert_eq!(it.asked_so_far(), 1);
}

#[test]
fn rule_07_without_fetch_a_manual_approval_has_no_reason() {
    let mut it = Scenario::new(Desired { gates: vec![manual(false, 1)], ..apply_only() });
    it.is("WAITING_MANUAL_APPROVAL");
    it.approve("ann");
    it.run(Apply, 0);
    it.is("CONVERGED");
}

#[test]
fn rule_07_drift_after_convergence_asks_only_for_every_action() {
    let mut it = Scenario::new(gated(vec![manual(false, 1)]));
    it.run(Fetch, 0);
    it.until(400).run(Fetch, 2);
    it.start(Apply);
    let mut it = Scenario::new(gated(vec![manual(true, 1)]));
    it.run(Fetch, 0);
    it.until(400).run(Fetch, 2);
    it.is("WAITING_MANUAL_APPROVAL RUNTIME_OBJECT_APPLY_NEEDED");
    assert_eq!(it.state().approvals()[0].kind, ApprovalKind::Apply);
}

#[test]
fn rule_07_every_apply_asks_again() {
    let mut it = Scenario::new(before_apply());
    it.run(Fetch, 2);
    it.approve("ann");
    let failed = it.run(Apply, 1);
    it.until(600).run(Fetch, 2);
    it.is("WAITING_MANUAL_APPROVAL RUNTIME_OBJECT_APPLY_NEEDED");
    let message = &it.state().standing().message;
    let told = format!("apply {} of svc-1 ended with exit code 1", failed.job);
    assert!(
        message.contains(&told),
        "whoever is asked again is told what came of the last yes: {message}"
    );
    it.declines(Apply);
}

#[test]
fn rule_07_rejected_is_failed_until_a_retry_or_a_new_release() {
    for gates in [vec![manual(false, 1)], vec![manual(true, 1)]] {
        let mut it = Scenario::new(gated(gates.clone()));
        it.run(Fetch, 2);
        it.reject("ann");
        it.is("FAILED MANUAL_APPROVAL_REJECTED");
        it.until(30).run(Fetch, 2);
        it.is("FAILED MANUAL_APPROVAL_REJECTED");
        it.declines(Apply);
        it.send(Event::Retry { who: "bob".to_owned() });
        it.run(Fetch, 2);
        it.is("WAITING_MANUAL_APPROVAL RUNTIME_OBJECT_APPLY_NEEDED");
        it.reject("ann");
        it.send(Event::Desired(Box::new(newer(&gated(gates), 2))));
        it.run(Fetch, 2);
        it.is("WAITING_MANUAL_APPROVAL RUNTIME_OBJECT_APPLY_NEEDED");
    }
}

#[test]
fn rule_07_a_shared_approval_is_the_same_in_every_instance_and_counts_before_it_is_asked() {
    let shared =
        || Gate::SharedApproval { name: "launch".to_owned(), description: None, min_approvers: 2 };
    let mut here = Scenario::new(gated(vec![shared()]));
    here.run(Fetch, 2);
    let id = here.pending();
    let mut there = Scenario::new(gated(vec![stable(&["staging"]), shared()]));
    there.run(Fetch, 2);
    for it in [&mut here, &mut there] {
        it.decide(id, "ann", Decision::Approve);
        it.decide(id, "bob", Decision::Approve);
    }
    here.start(Apply);
    there.declines(Apply);
    there.upstream("staging", Some("svc-1"));
    there.start(Apply);
}

#[test]
fn rule_07_a_yes_can_be_taken_back_until_the_apply_starts() {
    let weekdays = Window {
        opens: Schedule::parse("0 0 0 1 1 * 2100", None).unwrap(),
        duration: Duration::from_secs(1),
    };
    let mut desired = before_apply();
    desired.apply.window = Some(weekdays);
    let mut it = Scenario::new(desired);
    it.run(Fetch, 2);
    let asked = it.pending();
    it.decide(asked, "ann", Decision::Approve);
    it.is("WAITING_PRECONDITIONS OUTSIDE_WINDOW");
    it.decide(asked, "ann", Decision::Reject);
    it.is("FAILED MANUAL_APPROVAL_REJECTED");
}

#[test]
fn rule_07_p2_the_yes_of_a_revoked_token_opens_nothing_that_is_still_shut() {
    // Of two people one has said yes, and is nobody's word any more.
    let mut it = Scenario::new(gated(vec![manual(false, 2)]));
    it.run(Fetch, 2);
    let asked = it.pending();
    it.decide(asked, "ann", Decision::Approve);
    it.send(Event::Disowned { who: "ann".to_owned() });
    it.decide(asked, "bob", Decision::Approve);
    it.declines(Apply);
    it.decide(asked, "cat", Decision::Approve);
    it.start(Apply);

    // Given, and its apply has not begun: people are asked again. What began goes on, and a no
    // stands.
    let mut it = Scenario::new(before_apply());
    it.run(Fetch, 2);
    let asked = it.pending();
    it.decide(asked, "ann", Decision::Approve);
    it.send(Event::Disowned { who: "ann".to_owned() });
    it.is("WAITING_MANUAL_APPROVAL RUNTIME_OBJECT_APPLY_NEEDED");
    it.decide(asked, "bob", Decision::Approve);
    let apply = it.start(Apply).job;
    it.begins(apply);
    it.send(Event::Disowned { who: "bob".to_owned() });
    assert!(it.state().jobs_in_flight().any(|job| job.id == apply && job.stop.is_none()));
    let mut it = Scenario::new(before_apply());
    it.run(Fetch, 2);
    it.reject("ann");
    it.send(Event::Disowned { who: "ann".to_owned() });
    it.is("FAILED MANUAL_APPROVAL_REJECTED");
}

#[test]
fn rule_07_gates_are_checked_in_order_and_the_window_last() {
    // Second 0 is 2026-07-01T10:00:00Z; the window opens at 11:00 for an hour.
    let opens = Schedule::parse("0 0 11 * * *", None).unwrap();
    let mut desired = gated(vec![manual(false, 1), stable(&["staging"])]);
    desired.apply.window = Some(Window { opens, duration: Duration::from_secs(3_600) });
    let mut it = Scenario::new(desired);
    it.run(Fetch, 2);
    it.is("WAITING_PRECONDITIONS RELEASE_CHANNEL_DEPENDENCY_UNMET");
    it.upstream("staging", Some("svc-1"));
    it.is("WAITING_MANUAL_APPROVAL RUNTIME_OBJECT_APPLY_NEEDED");
    it.approve("ann");
    it.is("WAITING_PRECONDITIONS OUTSIDE_WINDOW");
    assert_eq!(
        it.state().standing().next_action_at.map(|at| it.seconds(at)),
        Some(30.0),
        "the next fetch"
    );
    it.run_out_fetches(3_599);
    it.declines(Apply);
    it.run_out_fetches(3_600);
    assert!(it.wants(Apply));
    it.run_out_fetches(7_200);
    it.declines(Apply);
    it.is("WAITING_PRECONDITIONS OUTSIDE_WINDOW");
}

impl Scenario {
    /// Lets time pass until this second; each fetch that is due finds work.
    fn run_out_fetches(&mut self, second: i64) {
        while self.seconds(self.now) < second as f64 {
            let next = (self.seconds(self.now) as i64 + 30).min(second);
            self.until(next);
            if self.wants(Fetch) {
                self.run(Fetch, 2);
            }
        }
    }
}

// ---- rule 8: several instances ----

#[test]
fn rule_09_a_new_release_lets_the_running_apply_finish() {
    let mut it = Scenario::new(exit_code());
    it.run(Fetch, 2);
    let apply = it.start(Apply);
    it.begins(apply.job);
    it.send(Event::Desired(Box::new(newer(&exit_code(), 2))));
    assert_eq!(it.stops(), []);
    it.declines(Fetch);
    let outcome = it.exited(1, FetchResult::default());
    it.ends(apply.job, outcome);
    it.is("CONVERGING NO_CURRENT_STATE");
    assert_eq!(it.run(Fetch, 2).version, "svc-2");
    assert_eq!(it.start(Apply).version, "svc-2");
}

#[test]
fn rule_09_cancel_stops_the_job_and_fails_until_a_retry() {
    for (outcome, fetch) in [
        (Outcome::Cancelled { gone: true }, true),
        (Outcome::Cancelled { gone: true }, false),
        (Outcome::TimedOut, true),
    ] {
        let mut it = Scenario::new(if fetch { exit_code() } else { apply_only() });
        if fetch {
            it.run(Fetch, 2);
        }
        let apply = it.start(Apply);
        it.begins(apply.job);
        it.send(Event::Cancel { job: apply.job, who: "ann".to_owned() });
        assert_eq!(it.stops(), [(apply.job, StopReason::Person("ann".to_owned()))]);
        it.ends(apply.job, outcome);
        it.is("FAILED CANCELLED");
        if fetch {
            it.until(5_000).run(Fetch, 2);
        }
        it.until(5_001);
        it.is("FAILED CANCELLED");
        it.declines(Apply);
        it.send(Event::Retry { who: "ann".to_owned() });
        if fetch {
            it.run(Fetch, 2);
        }
        assert_eq!(it.start(Apply).attempt, 1);
    }
}

#[test]
fn rule_09_a_cancelled_apply_that_turns_out_well_is_seen_by_fetch() {
    let mut it = Scenario::new(exit_code());
    it.run(Fetch, 2);
    let apply = it.start(Apply);
    it.send(Event::Cancel { job: apply.job, who: "ann".to_owned() });
    let outcome = it.exited(0, FetchResult::default());
    it.ends(apply.job, outcome);
    it.is("FAILED CANCELLED");
    it.run(Fetch, 0);
    it.is("CONVERGED");
}

#[test]
fn rule_09_a_cancelled_fetch_is_not_an_error_of_the_command() {
    let mut it = Scenario::new(exit_code());
    it.run(Fetch, 0);
    it.until(400);
    let fetch = it.start(Fetch);
    it.send(Event::Cancel { job: fetch.job, who: "ann".to_owned() });
    it.ends(fetch.job, Outcome::Cancelled { gone: true });
    it.is("CONVERGED");
    assert_eq!(it.wakes_at(), Some(430.0));
}

#[test]
fn rule_09_cancelling_what_is_over_does_nothing() {
    let mut it = Scenario::new(exit_code());
    let fetch = it.run(Fetch, 0);
    assert_eq!(it.send(Event::Cancel { job: fetch.job, who: "ann".to_owned() }), []);
    it.is("CONVERGED");
}

// ---- rule 10 ----

#[test]
fn rule_10_pause_stops_fetch_and_apply() {
    let mut it = Scenario::new(with_info());
    it.run(Fetch, 2);
    it.send(Event::Pause { who: "ann".to_owned(), reason: None });
    it.is("PAUSED");
    it.until(10_000);
    it.declines(Fetch);
    it.declines(Apply);
    it.run(GetInfo, 0);
    it.send(Event::Resume);
    it.declines(Apply);
    it.run(Fetch, 2);
    it.start(Apply);
}

#[test]
fn rule_10_pause_stops_a_running_fetch_and_never_a_running_apply() {
    let mut it = Scenario::new(exit_code());
    let fetch = it.start(Fetch);
    it.send(Event::Pause { who: "ann".to_owned(), reason: None });
    assert_eq!(it.stops(), [(fetch.job, StopReason::NotWanted)]);
    let outcome = it.exited(143, FetchResult::default());
    it.ends(fetch.job, outcome);
    it.send(Event::Resume);
    it.is("CONVERGING NO_CURRENT_STATE");
    it.run(Fetch, 2);
    it.start(Apply);
    it.send(Event::Pause { who: "ann".to_owned(), reason: None });
    assert_eq!(it.stops().len(), 1);
    it.is("PAUSED");
}

#[test]
fn rule_10_an_observer_looks_and_says_what_it_would_do() {
    let mut it = Scenario::new(before_apply());
    it.send(Event::Observe(true));
    it.run(Fetch, 2);
    it.is("CONVERGING RUNTIME_OBJECT_APPLY_NEEDED");
    assert!(
        it.state().standing().message.contains("it would apply svc-1"),
        "{}",
        it.state().standing().message
    );
    assert_eq!(it.asked_so_far(), 0);
    it.declines(Apply);
    it.until(30).run(Fetch, 2);
    it.send(Event::Observe(false));
    it.approve("ann");
    it.start(Apply);
}

#[test]
fn rule_07_a_no_to_an_apply_that_backs_off_is_told_at_once() {
    let mut it = Scenario::new(Desired { gates: vec![manual(true, 1)], ..exit_code() });
    it.run(Fetch, 2);
    let asked = it.pending();
    it.approve("ann");
    it.run(Apply, 75);
    it.decide(asked, "bob", Decision::Reject);
    it.is("FAILED MANUAL_APPROVAL_REJECTED");
    it.until(3_600);
    assert!(!it.wants(Apply), "{}", it.status());
}
