//! What was seen, and what failed, with commands that have changed since; and what somebody wants to know anew.

use engine::desired::Desired;
use engine::event::{Event, Outcome};
use schema::status::{Decision, Status};

use crate::scenario::{Apply, Fetch, Scenario, apply_only, exit_code, manual, other_commands};

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
fn failed_before(desired: &Desired, outcome: &dyn Fn(&Scenario) -> Outcome, while_it_ran: bool) -> Scenario {
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
    let failed = |it: &Scenario| it.exited(1, engine::event::Seen::default());
    let lost = |_: &Scenario| unknown();
    for outcome in [&failed as &dyn Fn(&Scenario) -> Outcome, &lost] {
        for while_it_ran in [false, true] {
            let mut it = failed_before(&exit_code(), outcome, while_it_ran);
            assert!(it.state().is_outdated(), "{}", it.state().standing().message);
            let message = it.state().standing().message.clone();
            assert!(message.contains("with other commands than the config has now"), "{message}");
            it.run(Fetch, 2);
            assert!(!it.state().is_outdated());
            assert!(it.wants(Apply), "the grace period is that of the commands before: {}", it.state().standing().message);
            it.run(Apply, 1);
            let message = it.state().standing().message.clone();
            assert!(it.state().standing().status == Status::Failed && !message.contains("other commands"), "{message}");
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
    assert!(message.contains("with other commands than the config has now") && message.contains("services retry"), "{message}");
}

#[test]
fn whoever_wants_to_know_is_told_when_fetch_has_looked_and_nothing_else_ends() {
    let mut it = Scenario::new(exit_code());
    it.run(Fetch, 0);
    it.until(10).send(Event::Refresh { who: "ann".to_owned() });
    it.is("CONVERGED");
    assert!(it.state().is_outdated() && it.wants(Fetch));
    it.run(Fetch, 0);
    assert!(!it.state().is_outdated() && !it.wants(Fetch));

    let mut it = Scenario::new(exit_code());
    it.run(Fetch, 2);
    it.run(Apply, 1);
    it.run(Fetch, 2);
    it.is("FAILED APPLY_FAILED");
    it.send(Event::Refresh { who: "ann".to_owned() });
    it.run(Fetch, 2);
    assert!(!it.wants(Apply), "the grace period stands");
    it.is("FAILED APPLY_FAILED");

    it.send(Event::Pause(true)).clear();
    it.send(Event::Refresh { who: "ann".to_owned() });
    assert!(!it.wants(Fetch));
}

#[test]
fn an_answer_of_before_the_question_is_no_answer_to_it() {
    for question in [Event::Refresh { who: "ann".to_owned() }, Event::Retry { who: "ann".to_owned() }] {
        let mut it = Scenario::new(exit_code());
        it.run(Fetch, 0);
        let before = it.until(331).start(Fetch);
        it.send(question);
        let seen = it.exited(0, engine::event::Seen::default());
        it.ends(before.job, seen);
        it.is("CONVERGED");
        assert!(it.state().is_outdated() && it.wants(Fetch), "{}", it.state().standing().message);
        it.run(Fetch, 2);
        assert!(it.wants(Apply) && !it.state().is_outdated());
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
    it.ends(apply.job, Outcome::NotStarted { why: "another job has its file".to_owned(), surroundings: true });
    assert!(!it.state().is_refused());
    it.decide(asked, "bob", Decision::Reject);
    assert!(it.state().is_refused(), "nothing of it began: {}", it.state().standing().message);
}
