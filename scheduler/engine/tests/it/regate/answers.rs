//! Answers to questions that the config, or a rollback, changed meanwhile.

use std::time::Duration;

use super::*;

#[test]
fn p2_a_rollback_that_was_refused_took_nothing_back_also_when_its_channel_leaves_the_config() {
    let back = |number: u8| Desired {
        is_rollback: true,
        stable_before: true,
        ..newer(&gated(&[manual(false, 1)]), number)
    };
    for leaves in [false, true] {
        let deadline = || Desired {
            progress_deadline: Some(Duration::from_secs(60)),
            auto_rollback: true,
            ..exit_code()
        };
        let mut it = Scenario::new(exit_code());
        it.run(Fetch, 0);
        it.send(Event::Desired(Box::new(newer(&exit_code(), 2))));
        it.run(Fetch, 0);
        it.send(Event::Desired(Box::new(back(3))));
        it.run(Fetch, 2);
        it.reject("ann");
        if leaves {
            it.send(Event::Deleted);
        }
        it.send(Event::Desired(Box::new(Desired { released_at: it.now, ..newer(&deadline(), 4) })));
        it.run(Fetch, 2);
        it.run(Apply, 1);
        let later = it.seconds(it.now) as i64 + 100;
        it.until_without_answer(later);
        let goes_to = crate::scenario::release(2);
        let is_back = |action: &engine::action::Action| match action {
            engine::action::Action::Rollback { to, .. } => *to == goes_to,
            _ => false,
        };
        assert!(it.actions.iter().any(is_back), "{leaves}");
    }
}

#[test]
fn p8_a_yes_without_a_name_is_for_the_words_that_were_shown() {
    let gate = |description: &str| Gate::ManualApproval {
        name: None,
        description: Some(description.to_owned()),
        every_action: false,
        min_approvers: 1,
    };
    let mut it = Scenario::new(gated(&[gate("legal")]));
    it.run(Fetch, 2);
    it.approve("alice");
    it.recompiled(&gated(&[gate("security must agree")]));
    assert!(!it.wants(Apply));
    it.reject("bob");
    it.recompiled(&gated(&[gate("security must agree!")]));
    it.is("FAILED MANUAL_APPROVAL_REJECTED");
}

#[test]
fn a_yes_to_a_plan_without_words_outlives_its_bytes() {
    let mut it = Scenario::new(gated(&[manual(false, 2)]));
    for (second, who) in [(0, "ann"), (40, "bob")] {
        let bytes = format!("at {second}");
        it.until(second).run_with(
            Fetch,
            2,
            FetchResult { plan: Some(BlobId::of(bytes.as_bytes())), ..FetchResult::default() },
        );
        it.approve(who);
    }
    it.start(Apply);
}

#[test]
fn p8_a_yes_that_an_apply_uses_is_used_however_many_people_the_config_wants_meanwhile() {
    for back in [1, 2] {
        let desired = gated(&[manual(true, 1)]);
        let mut it = Scenario::new(desired.clone());
        it.run(Fetch, 2);
        it.approve("ann");
        let apply = it.start(Apply).job;
        it.begins(apply);
        it.send(Event::Desired(Box::new(gated(&[manual(true, 2)]))));
        assert_eq!(it.state().approvals()[0].status, ApprovalStatus::Approved);
        let outcome = it.exited(0, FetchResult::default());
        it.ends(apply, outcome);
        it.run(Fetch, 2);
        it.send(Event::Desired(Box::new(gated(&[manual(true, back)]))));
        it.until(700);
        it.run(Fetch, 2);
        it.is("WAITING_MANUAL_APPROVAL RUNTIME_OBJECT_APPLY_NEEDED");
        it.approve("bob");
        assert_eq!(it.wants(Apply), back == 1, "ann's yes was for the first apply");
    }
}

#[test]
fn p8_a_no_to_other_commands_counts_while_an_apply_with_the_commands_of_before_runs() {
    let desired = gated(&[shared(1)]);
    let other = other_commands(&desired);
    let mut sibling = Scenario::new(other.clone());
    sibling.run(Fetch, 2);
    let mut it = Scenario::new(desired);
    it.run(Fetch, 2);
    it.approve("ann");
    let apply = it.start(Apply).job;
    it.begins(apply);
    it.send(Event::Desired(Box::new(other)));
    it.decide(sibling.pending(), "ann", Decision::Approve);
    it.decide(sibling.pending(), "bob", Decision::Reject);
    let outcome = it.exited(0, FetchResult::default());
    it.ends(apply, outcome);
    it.until(700).run(Fetch, 2);
    it.is("FAILED MANUAL_APPROVAL_REJECTED");
}
