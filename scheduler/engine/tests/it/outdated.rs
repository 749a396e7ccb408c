//! What was seen, and what failed, with commands that have changed since; and what somebody wants
//! to know anew.

use std::time::Duration;

use engine::desired::Desired;
use engine::event::{Event, Outcome};
use schema::id::{BlobId, JobId};
use schema::status::{Decision, Status};

use crate::scenario::{
    Apply, Fetch, Scenario, apply_only, before_apply, exit_code, manual, other_commands, plan,
};

/// Somebody wants to know how it is now.
fn asks(tries_again: bool) -> Event {
    Event::Refresh { who: "ann".to_owned(), tries_again }
}

fn unknown() -> Outcome {
    Outcome::Unknown { why: "its node is gone".to_owned(), gone: true }
}

#[test]
fn what_was_seen_with_other_commands_is_told_as_such_until_fetch_answers() {
    let desired = exit_code();
    let mut it = Scenario::new(desired.clone());
    it.run(Fetch, 0);
    it.is("CONVERGED");
    assert!(!it.state().is_outdated());
    it.send(Event::Desired(Box::new(other_commands(&desired))));
    it.is("CONVERGED");
    assert!(it.state().is_outdated());
    let message = &it.state().standing().message;
    assert!(message.contains("before its commands changed"), "{message}");
    it.run(Fetch, 1);
    assert!(it.state().is_outdated(), "that fetch has not answered");
    it.until(60).run(Fetch, 0);
    it.is("CONVERGED");
    assert!(!it.state().is_outdated());
}

/// An apply that ended so, of commands that then change: before it is over, or after.
fn failed_before(
    desired: &Desired,
    outcome: &dyn Fn(&Scenario) -> Outcome,
    while_it_ran: bool,
) -> Scenario {
    let mut it = Scenario::new(desired.clone());
    it.run(Fetch, 2);
    let apply = it.start(Apply);
    it.begins(apply.job);
    let change = Event::Desired(Box::new(other_commands(desired)));
    if while_it_ran {
        it.send(change.clone());
    }
    let outcome = outcome(&it);
    it.ends(apply.job, outcome);
    if !while_it_ran {
        it.run(Fetch, 2);
        it.send(change);
    }
    it
}

#[test]
fn rule_06_that_other_commands_failed_keeps_those_of_now_from_nothing() {
    let failed = |it: &Scenario| it.exited(1, engine::event::FetchResult::default());
    let lost = |_: &Scenario| unknown();
    for outcome in [&failed as &dyn Fn(&Scenario) -> Outcome, &lost] {
        for while_it_ran in [false, true] {
            let mut it = failed_before(&exit_code(), outcome, while_it_ran);
            assert!(it.state().is_outdated(), "{}", it.state().standing().message);
            let message = it.state().standing().message.clone();
            assert!(message.contains("with other commands than the config has now"), "{message}");
            it.run(Fetch, 2);
            assert!(!it.state().is_outdated());
            assert!(
                it.wants(Apply),
                "the grace period is that of the commands before: {}",
                it.state().standing().message
            );
            it.run(Apply, 1);
            let message = it.state().standing().message.clone();
            assert!(
                it.state().standing().status == Status::Failed
                    && !message.contains("other commands"),
                "{message}"
            );
            it.run(Fetch, 2);
            assert!(!it.wants(Apply), "they failed themselves now");
        }
    }
}

#[test]
fn rule_06_without_fetch_a_config_is_no_order_to_try_again_and_what_failed_is_told_as_such() {
    let desired = apply_only();
    let mut it = Scenario::new(desired.clone());
    it.run(Apply, 1);
    it.send(Event::Desired(Box::new(other_commands(&desired))));
    it.is("FAILED APPLY_FAILED");
    assert!(!it.wants(Apply) && !it.state().is_outdated());
    let message = &it.state().standing().message;
    assert!(
        message.contains("with other commands than the config has now")
            && message.contains("services retry"),
        "{message}"
    );
}

#[test]
fn whoever_wants_to_know_is_told_when_fetch_has_looked_and_nothing_else_ends() {
    let mut it = Scenario::new(exit_code());
    it.run(Fetch, 0);
    it.until(10).send(asks(false));
    it.is("CONVERGED");
    assert!(it.state().is_outdated() && it.wants(Fetch));
    it.run(Fetch, 0);
    assert!(!it.state().is_outdated() && !it.wants(Fetch));

    let mut it = Scenario::new(exit_code());
    it.run(Fetch, 2);
    it.run(Apply, 1);
    it.run(Fetch, 2);
    it.is("FAILED APPLY_FAILED");
    it.send(asks(false));
    assert!(it.state().is_outdated(), "what FAILED was told before the question");
    it.run(Fetch, 2);
    assert!(!it.wants(Apply) && !it.state().is_outdated(), "the grace period stands");
    it.send(asks(false));
    it.run(Fetch, 1);
    assert!(
        !it.state().is_outdated(),
        "and a fetch that does not answer is an answer: nobody waits for ever"
    );
    it.is("FAILED APPLY_FAILED");

    it.send(Event::Pause { who: "ann".to_owned(), reason: None }).clear();
    it.send(asks(false));
    assert!(!it.wants(Fetch));
}

/// How an apply ends.
type Ends = dyn Fn(&mut Scenario, JobId);

/// An apply ended so, fetch has seen work since, and `dev` starts again.
fn starts_again(desired: &Desired, end: &Ends) -> Scenario {
    let mut it = Scenario::new(desired.clone());
    let looks = desired.observe.looks();
    let look = |it: &mut Scenario| {
        if looks && it.wants(Fetch) {
            it.run(Fetch, 2);
        }
    };
    look(&mut it);
    let apply = it.start(Apply);
    it.begins(apply.job);
    end(&mut it, apply.job);
    look(&mut it);
    it.send(asks(true));
    look(&mut it);
    it
}

#[test]
fn only_what_failed_by_itself_is_tried_again_and_nothing_that_is_for_a_person() {
    let exits = |code: i32| {
        move |it: &mut Scenario, job: JobId| {
            let outcome = it.exited(code, engine::event::FetchResult::default());
            it.ends(job, outcome);
        }
    };
    let is_lost = |it: &mut Scenario, job: JobId| drop(it.ends(job, unknown()));
    let is_cancelled = |it: &mut Scenario, job: JobId| {
        it.send(Event::Cancel { job, who: "bob".to_owned() });
        it.ends(job, Outcome::Cancelled { gone: true });
    };
    for desired in [exit_code(), apply_only()] {
        assert!(starts_again(&desired, &exits(1)).wants(Apply), "it failed");
        let told: [(&str, &Ends); 2] =
            [("a person cancelled it", &is_cancelled), ("nobody knows how it ended", &is_lost)];
        for (why, end) in told {
            let it = starts_again(&desired, end);
            assert!(!it.wants(Apply), "{why}: {}", it.state().standing().message);
        }
    }
    assert!(
        !starts_again(&exit_code(), &exits(0)).wants(Apply),
        "its effect may take as long as the grace period"
    );
    let gated = Desired { gates: vec![manual(false, 1)], ..exit_code() };
    let mut it = Scenario::new(gated);
    it.run(Fetch, 2);
    it.reject("bob");
    it.send(asks(true));
    it.run(Fetch, 2);
    it.is("FAILED MANUAL_APPROVAL_REJECTED");
}

#[test]
fn what_fails_with_commands_of_before_is_tried_with_those_of_now_when_somebody_asked_for_it_meanwhile()
 {
    for (desired, asked, code, again) in [
        (apply_only(), true, 1, true),
        (apply_only(), true, 0, false),
        (apply_only(), false, 1, false),
        (exit_code(), true, 1, true),
        (exit_code(), true, 0, false),
    ] {
        let mut it = Scenario::new(desired.clone());
        if desired.observe.looks() {
            it.run(Fetch, 2);
        }
        let apply = it.start(Apply);
        it.begins(apply.job);
        it.send(Event::Desired(Box::new(other_commands(&desired))));
        if asked {
            it.send(asks(true));
        }
        let outcome = it.exited(code, engine::event::FetchResult::default());
        it.ends(apply.job, outcome);
        if desired.observe.looks() {
            it.run(Fetch, 2);
        }
        assert_eq!(it.wants(Apply), again, "{asked} {code}: {}", it.state().standing().message);
    }
    // The question was about these commands, and nothing of a person's is taken back by it.
    let mut it = Scenario::new(apply_only());
    let apply = it.start(Apply);
    it.begins(apply.job);
    it.send(Event::Desired(Box::new(other_commands(&apply_only()))));
    it.send(asks(true));
    it.send(Event::Cancel { job: apply.job, who: "bob".to_owned() });
    it.ends(apply.job, Outcome::Cancelled { gone: true });
    assert!(!it.wants(Apply));
}

#[test]
fn what_a_person_cancelled_stays_so_whatever_else_is_wrong_with_it() {
    let mut it =
        Scenario::new(Desired { progress_deadline: Some(Duration::from_secs(60)), ..exit_code() });
    it.run(Fetch, 2);
    let apply = it.start(Apply);
    it.until_without_answer(61).is("FAILED STUCK");
    it.send(Event::Cancel { job: apply.job, who: "bob".to_owned() });
    it.ends(apply.job, Outcome::Cancelled { gone: true });
    it.send(asks(true));
    it.run(Fetch, 2);
    it.is("FAILED CANCELLED");
    assert!(!it.wants(Apply));
}

#[test]
fn an_answer_of_before_the_question_is_no_answer_to_it() {
    for question in [asks(false), Event::Retry { who: "ann".to_owned() }] {
        let mut it = Scenario::new(exit_code());
        it.run(Fetch, 0);
        let before = it.until(331).start(Fetch);
        it.send(question);
        let seen = it.exited(0, engine::event::FetchResult::default());
        it.ends(before.job, seen);
        it.is("CONVERGED");
        assert!(it.state().is_outdated() && it.wants(Fetch), "{}", it.state().standing().message);
        it.run(Fetch, 2);
        assert!(it.wants(Apply) && !it.state().is_outdated());
    }
}

#[test]
fn who_asks_more_often_than_a_fetch_lasts_keeps_no_apply_away() {
    let mut it = Scenario::new(exit_code());
    it.run(Fetch, 0);
    let before = it.until(331).start(Fetch);
    let ends = |it: &mut Scenario, job: JobId| {
        let seen = it.exited(2, engine::event::FetchResult::default());
        it.ends(job, seen);
    };
    it.send(asks(false));
    it.send(asks(false));
    ends(&mut it, before.job);
    assert!(!it.wants(Apply), "it looked before the first question");
    let since = it.start(Fetch);
    it.send(asks(false));
    it.send(asks(false));
    ends(&mut it, since.job);
    assert!(
        it.state().is_outdated() && it.wants(Fetch),
        "the last question is still to be answered"
    );
    assert!(
        it.wants(Apply),
        "it looked after the first question: {}",
        it.state().standing().message
    );
}

#[test]
fn what_fetch_is_to_decide_anew_is_not_decided_by_one_that_began_before() {
    for anew in [asks(true), Event::Retry { who: "ann".to_owned() }] {
        let mut it = Scenario::new(exit_code());
        it.run(Fetch, 0);
        it.until(10).send(asks(false));
        let since = it.start(Fetch);
        it.send(asks(false));
        it.send(anew);
        let seen = it.exited(2, engine::event::FetchResult::default());
        it.ends(since.job, seen);
        assert!(!it.wants(Apply) && it.wants(Fetch));
    }
}

#[test]
fn p8_a_rollback_is_refused_although_a_start_of_it_came_to_nothing() {
    let desired = Desired { gates: vec![manual(false, 1)], is_rollback: true, ..exit_code() };
    let mut it = Scenario::new(desired);
    it.run(Fetch, 2);
    let asked = it.pending();
    it.approve("ann");
    let apply = it.start(Apply);
    it.ends(
        apply.job,
        Outcome::NotStarted { why: "another job has its file".to_owned(), surroundings: true },
    );
    assert!(!it.state().is_refused());
    it.decide(asked, "bob", Decision::Reject);
    assert!(it.state().is_refused(), "nothing of it began: {}", it.state().standing().message);
}

#[test]
fn rule_10_a_plan_that_was_lost_is_made_anew_and_a_yes_to_what_it_says_still_counts() {
    let lost = || Outcome::InputLost { why: "sha256:1 is gone".to_owned() };
    for (says, asks_anew) in [("one to add", false), ("two to add", true)] {
        let mut it = Scenario::new(before_apply());
        it.run_with(Fetch, 2, plan("p1", "one to add"));
        it.approve("ann");
        let apply = it.start(Apply);
        it.ends(apply.job, lost());
        assert!(
            it.state().standing().message.contains("sha256:1 is gone"),
            "{}",
            it.state().standing().message
        );
        it.until(1);
        it.declines(Apply);
        let fetched = it.run_with(Fetch, 2, plan("p2", says));
        if asks_anew {
            it.is("WAITING_MANUAL_APPROVAL RUNTIME_OBJECT_APPLY_NEEDED");
            it.approve("ann");
        }
        let apply = it.start(Apply);
        assert_eq!(
            (apply.plan, apply.fetch_job),
            (Some(BlobId::of(b"p2")), Some(fetched.job)),
            "{says}"
        );
        assert_eq!(it.asked_so_far(), 1 + usize::from(asks_anew), "{says}");
    }
}
