//! What counts as begun and as applied: a start that came to nothing is no apply, other commands
//! are another question, another place has nothing applied in it.

use engine::desired::{Desired, Gate};
use engine::event::{Event, Outcome};
use engine::limiter::ConcurrencyLimiter;
use engine::{Surroundings, explain};
use schema::cause::CauseCode;
use schema::id::BlobId;
use schema::output::{ObjectStatus, ObjectVersion, RuntimeObject};

use crate::scenario::{
    Apply, Fetch, Scenario, apply_only, exit_code, limits, manual, newer, plan, stable, structured,
};

fn asks_once() -> Desired {
    Desired { gates: vec![manual(false, 1)], ..exit_code() }
}

#[test]
fn p8_a_start_that_came_to_nothing_leaves_a_yes_with_the_plan_it_was_given_for() {
    for surroundings in [true, false] {
        let mut it = Scenario::new(asks_once());
        it.run_with(Fetch, 2, plan("a", "1 to add"));
        it.approve("ann");
        let apply = it.start(Apply);
        // Its wrapper was there, and let nothing run.
        it.begins(apply.job);
        it.ends(apply.job, Outcome::NotStarted { why: "not found".to_owned(), surroundings });
        it.send(Event::Pause { who: "ann".to_owned(), reason: None });
        it.send(Event::Resume);
        let mut same = it.clone();
        it.run_with(Fetch, 2, plan("b", "17 to destroy"));
        it.until(10_000);
        it.is("WAITING_MANUAL_APPROVAL RUNTIME_OBJECT_APPLY_NEEDED");
        it.declines(Apply);
        same.run_with(Fetch, 2, plan("a", "1 to add"));
        same.until(10_000);
        if surroundings {
            same.start(Apply);
        }
    }
}

#[test]
fn p8_what_is_left_after_an_apply_that_ran_needs_no_other_yes() {
    let mut it = Scenario::new(asks_once());
    it.run_with(Fetch, 2, plan("a", "2 to add"));
    it.approve("ann");
    it.run(Apply, 1);
    it.run_with(Fetch, 2, plan("b", "1 to add"));
    it.until(10_000);
    if it.wants(Fetch) {
        it.run_with(Fetch, 2, plan("b", "1 to add"));
    }
    it.start(Apply);
}

#[test]
fn p8_a_yes_to_other_commands_is_for_the_plan_that_was_shown_with_them() {
    let mut it = Scenario::new(asks_once());
    it.run_with(Fetch, 2, plan("a", "1 to add"));
    it.approve("ann");
    it.run(Apply, 1);
    it.send(Event::Desired(Box::new(Desired { compiled: BlobId::of(b"others"), ..asks_once() })));
    it.until(600).run_with(Fetch, 2, plan("b", "2 to add"));
    it.is("WAITING_MANUAL_APPROVAL RUNTIME_OBJECT_APPLY_NEEDED");
    it.approve("ann");
    it.send(Event::Pause { who: "ann".to_owned(), reason: None });
    it.send(Event::Resume);
    it.run_with(Fetch, 2, plan("c", "17 to destroy"));
    it.is("WAITING_MANUAL_APPROVAL RUNTIME_OBJECT_APPLY_NEEDED");
}

#[test]
fn p8_a_yes_is_for_the_explanation_that_was_left_whether_or_not_it_can_be_shown() {
    let unreadable =
        |text: &str| engine::event::FetchResult { explanation_text: None, ..plan("plan", text) };
    let mut it = Scenario::new(asks_once());
    it.run_with(Fetch, 2, unreadable("1 to add"));
    it.approve("ann");
    it.send(Event::Pause { who: "ann".to_owned(), reason: None });
    it.send(Event::Resume);
    it.run_with(Fetch, 2, unreadable("17 to destroy"));
    it.is("WAITING_MANUAL_APPROVAL RUNTIME_OBJECT_APPLY_NEEDED");
}

#[test]
fn p8_a_yes_to_words_is_not_for_work_without_any() {
    let silent = |text: &str| engine::event::FetchResult {
        output: Some(BlobId::of(text.as_bytes())),
        ..Default::default()
    };
    for first in [1, 2] {
        let mut it = Scenario::new(Desired { gates: vec![manual(false, first)], ..exit_code() });
        it.run_with(Fetch, 2, plan("a", "1 to add"));
        it.approve("ann");
        it.send(Event::Pause { who: "ann".to_owned(), reason: None });
        it.send(Event::Resume);
        it.run_with(Fetch, 2, silent("destroy all"));
        it.is("WAITING_MANUAL_APPROVAL RUNTIME_OBJECT_APPLY_NEEDED");
        it.approve("bob");
        assert_eq!(it.wants(Apply), first == 1, "the first yes was to other work");
    }
}

fn with_id(id: &str, runtime: &str) -> Desired {
    let runtime = runtime.parse().unwrap();
    Desired { apply_id: Some(id.to_owned()), runtime, ..apply_only() }
}

#[test]
fn an_apply_id_holds_for_the_place_in_which_it_was_applied() {
    let applied = || {
        let mut it = Scenario::new(with_id("c1", "one"));
        it.run(Apply, 0);
        it.is("CONVERGED");
        it
    };
    let mut same = applied();
    same.send(Event::Desired(Box::new(newer(&with_id("c1", "one"), 2))));
    same.is("CONVERGED");

    let mut pushed = applied();
    pushed.send(Event::Desired(Box::new(newer(&with_id("c1", "two"), 2))));
    pushed.run(Apply, 0);
    pushed.is("CONVERGED");

    let mut moved = applied();
    moved.send(Event::Desired(Box::new(with_id("c1", "two"))));
    moved.is("CONVERGED");
    moved.send(Event::Desired(Box::new(newer(&with_id("c1", "two"), 2))));
    moved.run(Apply, 0);
    moved.send(Event::Desired(Box::new(newer(&with_id("c1", "two"), 3))));
    moved.is("CONVERGED");

    let mut back = applied();
    back.send(Event::Deleted);
    back.send(Event::Desired(Box::new(newer(&with_id("c1", "one"), 2))));
    back.run(Apply, 0);

    // The runtime changes while the apply runs.
    let mut during = Scenario::new(with_id("c1", "one"));
    let apply = during.start(Apply);
    during.begins(apply.job);
    during.send(Event::Desired(Box::new(with_id("c1", "two"))));
    let outcome = during.exited(0, Default::default());
    during.ends(apply.job, outcome);
    during.is("CONVERGED");
    during.send(Event::Desired(Box::new(newer(&with_id("c1", "two"), 2))));
    during.start(Apply);
}

#[test]
fn votes_on_a_shared_approval_stay_while_the_channel_has_not_arrived() {
    let gate = Gate::SharedApproval { name: "cab".to_owned(), description: None, min_approvers: 2 };
    let mut it = Scenario::new(Desired { gates: vec![gate], ..structured() });
    let object = |version: &str, status| {
        let version = ObjectVersion {
            version: version.to_owned(),
            active: true,
            drifted: false,
            replicas: None,
            available_replicas: None,
            target_replicas: None,
        };
        let object = RuntimeObject {
            name: "web".to_owned(),
            object_type: String::new(),
            versions: vec![version],
            status,
            message: String::new(),
            external_links: Vec::new(),
            debug_events: Vec::new(),
        };
        engine::event::FetchResult { objects: Some(Ok(vec![object])), ..Default::default() }
    };
    it.run_with(Fetch, 0, object("old", ObjectStatus::Succeeded));
    it.approve("ann");
    let asked = it.pending();
    it.until(600).run_with(Fetch, 0, object("svc-1", ObjectStatus::Pending));
    it.until(1_200).run_with(Fetch, 0, object("old", ObjectStatus::Succeeded));
    assert_eq!(it.pending(), asked);
    it.approve("bob");
    it.start(Apply);
}

#[test]
fn p4_two_copies_of_a_database_never_give_two_jobs_one_id() {
    let it = Scenario::new(exit_code());
    let (mut original, mut copy) = (it.clone(), it);
    let first = original.start(Fetch);
    copy.until(1);
    assert_ne!(first.job, copy.start(Fetch).job);
}

#[test]
fn what_an_apply_left_behind_is_told_where_no_fetch_looks_again() {
    let mut it = Scenario::new(apply_only());
    let apply = it.start(Apply);
    it.begins(apply.job);
    let Outcome::Exited { code, started_at, ended_at, seen, info, .. } =
        it.exited(0, Default::default())
    else {
        unreachable!()
    };
    it.ends(
        apply.job,
        Outcome::Exited {
            code,
            started_at,
            ended_at,
            said: "left 1 process behind".to_owned(),
            seen,
            info,
        },
    );
    it.is("CONVERGED");
    assert!(
        it.state().standing().message.contains("left 1 process behind"),
        "{}",
        it.state().standing().message
    );
    it.send(Event::Desired(Box::new(newer(&apply_only(), 2))));
    it.run(Apply, 0);
    assert!(!it.state().standing().message.contains("left 1"), "{}", it.state().standing().message);
}

#[test]
fn what_an_apply_left_behind_is_told_where_fetch_finds_nothing_more_to_do() {
    let mut it = Scenario::new(exit_code());
    it.run(Fetch, 2);
    let apply = it.start(Apply);
    it.begins(apply.job);
    let Outcome::Exited { code, started_at, ended_at, seen, info, .. } =
        it.exited(0, Default::default())
    else {
        unreachable!()
    };
    it.ends(
        apply.job,
        Outcome::Exited {
            code,
            started_at,
            ended_at,
            said: "left 1 process behind".to_owned(),
            seen,
            info,
        },
    );
    it.run(Fetch, 0);
    it.is("CONVERGED");
    let lanes = ConcurrencyLimiter::new(limits(1, None), it.now);
    let told = explain(it.state(), &lanes, it.now, Surroundings::default());
    let left = told.causes.iter().find(|cause| cause.code == CauseCode::LeftBehind);
    assert!(left.is_some_and(|cause| cause.message.contains("left 1 process behind")), "{told:?}");
}

#[test]
fn a_rollback_of_what_was_never_left_applies_nothing_where_no_fetch_can_tell() {
    let waits = |number: u8, version: &str| {
        let gates = vec![stable(&["staging"])];
        Box::new(Desired { gates, version: version.to_owned(), ..newer(&apply_only(), number) })
    };
    let back = |number: u8| {
        Event::Desired(Box::new(Desired {
            is_rollback: true,
            stable_before: true,
            ..*waits(number, "svc-1")
        }))
    };
    let mut it = Scenario::new(Desired { version: "svc-1".to_owned(), ..apply_only() });
    it.run(Apply, 0);
    // The new version never comes here, and goes back twice.
    for number in [2, 4] {
        it.send(Event::Desired(waits(number, "svc-2")));
        it.is("WAITING_PRECONDITIONS RELEASE_CHANNEL_DEPENDENCY_UNMET");
        it.send(back(number + 1));
        it.is("CONVERGED");
        it.declines(Apply);
    }

    // Whatever became of an apply since, that is something to go back from.
    let mut moved = it.clone();
    moved.send(Event::Desired(Box::new(Desired {
        runtime: "other".parse().unwrap(),
        ..*waits(6, "svc-2")
    })));
    moved.send(back(7));
    moved.run(Apply, 0);
    it.upstream("staging", Some("svc-2"));
    it.send(Event::Desired(waits(6, "svc-2")));
    it.upstream("staging", Some("svc-2"));
    let mut under_way = it.clone();
    it.run(Apply, 1);
    it.send(back(7));
    it.run(Apply, 0);
    it.is("CONVERGED");
    let apply = under_way.start(Apply);
    under_way.begins(apply.job);
    under_way.send(back(7));
    let outcome = under_way.exited(0, Default::default());
    under_way.ends(apply.job, outcome);
    under_way.run(Apply, 0);
    under_way.is("CONVERGED");
}
