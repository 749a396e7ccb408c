//! Rule 11: an apply is started at most once for a decision.

use super::*;

// ---- rule 11 ----

#[test]
fn rule_11_an_apply_is_started_at_most_once_per_decision() {
    let mut it = Scenario::new(exit_code());
    it.run(Fetch, 2);
    let first = it.start(Apply);
    for _ in 0..3 {
        it.declines(Apply);
    }
    assert_ne!(first.job, first.fetch_job.unwrap());
    it.ends(first.job, Outcome::TimedOut);
    it.until(600).run(Fetch, 2);
    assert_ne!(it.start(Apply).job, first.job, "another decision is another job");
}

#[test]
fn rule_11_after_an_unknown_end_fetch_decides() {
    let mut it = Scenario::new(exit_code());
    it.run(Fetch, 2);
    let apply = it.start(Apply);
    it.ends(apply.job, Outcome::Unknown { why: "its node is gone".to_owned(), gone: true });
    it.is("CONVERGING APPLY_FAILED");
    assert!(it.state().standing().message.contains("its node is gone"));
    it.declines(Apply);
    it.run(Fetch, 2);
    it.declines(Apply);
    it.until(600).run(Fetch, 2);
    it.start(Apply);
}

#[test]
fn p1_rule_11_fetch_looks_but_no_apply_comes_beside_one_on_a_node_that_does_not_answer() {
    let mut it = Scenario::new(exit_code());
    it.run(Fetch, 2);
    let apply = it.start(Apply);
    it.ends(
        apply.job,
        Outcome::Unknown { why: "its node does not answer".to_owned(), gone: false },
    );
    it.run(Fetch, 2);
    it.until(100_000).run(Fetch, 2);
    it.declines(Apply);
    it.is("FAILED APPLY_FAILED");
    assert!(it.state().standing().message.contains("its node does not answer"));
    it.ends(apply.job, Outcome::Unknown { why: "its node is gone".to_owned(), gone: true });
    it.declines(Apply);
    it.run(Fetch, 2);
    it.start(Apply);
}

#[test]
fn rule_11_what_did_its_work_after_it_was_given_up_is_not_applied_again() {
    let mut it = Scenario::new(exit_code());
    it.run(Fetch, 2);
    let apply = it.start(Apply);
    it.ends(apply.job, Outcome::Unknown { why: "its wrapper was killed".to_owned(), gone: false });
    it.run(Fetch, 2);
    let look = it.until(600).start(Fetch);
    it.ends(apply.job, Outcome::Unknown { why: "its wrapper was killed".to_owned(), gone: true });
    let answer = it.exited(2, FetchResult::default());
    it.ends(look.job, answer);
    it.declines(Apply);
    it.run(Fetch, 0);
    it.is("CONVERGED");
}

#[test]
fn rule_11_without_fetch_an_unknown_end_is_failed_for_a_person() {
    let mut it = Scenario::new(apply_only());
    let apply = it.start(Apply);
    it.ends(apply.job, Outcome::Unknown { why: "its node is gone".to_owned(), gone: true });
    it.is("FAILED APPLY_FAILED");
    it.until(100_000);
    it.declines(Apply);
    it.send(Event::Retry { who: "ann".to_owned() });
    it.start(Apply);
}

#[test]
fn rule_11_no_apply_beside_one_that_is_not_known_to_be_gone() {
    for released_by_person in [true, false] {
        let mut it = Scenario::new(exit_code());
        it.run(Fetch, 2);
        let apply = it.start(Apply);
        it.send(Event::Cancel { job: apply.job, who: "ann".to_owned() });
        it.until(STOP_DEADLINE.as_secs() as i64);
        it.run(Fetch, 2);
        it.send(Event::Desired(Box::new(newer(&exit_code(), 2))));
        it.run(Fetch, 2);
        it.is("FAILED APPLY_FAILED");
        it.ends(apply.job, Outcome::Cancelled { gone: false });
        it.ends(apply.job, Outcome::Unknown { why: "no word of it".to_owned(), gone: false });
        it.declines(Apply);
        if released_by_person {
            it.send(Event::Retry { who: "ann".to_owned() });
        } else {
            it.ends(apply.job, Outcome::Cancelled { gone: true });
        }
        it.run(Fetch, 2);
        assert_eq!(it.start(Apply).version, "svc-2");
    }
}

#[test]
fn rule_11_what_the_surroundings_prevented_is_started_anew_with_back_off() {
    let mut it = Scenario::new(before_apply());
    let fetched = it.run_with(Fetch, 2, plan("p1", "one to add"));
    it.approve("ann");
    let mut second = 0;
    for wait in [1, 2, 4, 8] {
        let apply = it.start(Apply);
        assert_eq!((apply.attempt, apply.fetch_job), (1, Some(fetched.job)));
        it.ends(
            apply.job,
            Outcome::NotStarted { why: "no process slots".to_owned(), surroundings: true },
        );
        it.is("CONVERGING RUNTIME_OBJECT_APPLY_NEEDED");
        it.run_with(Fetch, 2, plan("p2", "one to add"));
        it.declines(Apply);
        second += wait;
        it.until(second);
    }
    assert_eq!(it.start(Apply).plan, Some(BlobId::of(b"p1")), "still approved, still that plan");
    assert_eq!(it.asked_so_far(), 1);
}

#[test]
fn rule_11_a_command_that_cannot_start_is_a_failure() {
    let mut it = Scenario::new(exit_code());
    it.run(Fetch, 2);
    let apply = it.start(Apply);
    it.ends(
        apply.job,
        Outcome::NotStarted { why: "no such program: terrafrom".to_owned(), surroundings: false },
    );
    it.is("FAILED APPLY_FAILED");
    assert!(it.state().standing().message.contains("no such program: terrafrom"));
    let fetch = it.start(Fetch);
    it.ends(
        fetch.job,
        Outcome::NotStarted { why: "no such program".to_owned(), surroundings: false },
    );
    assert_eq!(
        it.state()
            .approvals()
            .iter()
            .filter(|approval| approval.status == ApprovalStatus::Pending)
            .count(),
        0
    );
}
