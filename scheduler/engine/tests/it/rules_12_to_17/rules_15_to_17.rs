//! Rules 15 to 17: what a yes is bound to, places, restarts.

use super::*;
use crate::scenario::{grant_all, instance, limits};

// ---- rule 15 ----

#[test]
fn rule_15_many_fetches_of_the_same_plan_ask_once_and_the_shown_plan_runs() {
    let mut it = Scenario::new(before_apply());
    let shown = it.run_with(Fetch, 2, plan("bytes 1", "one to add"));
    let asked = it.pending();
    for round in 1..6 {
        it.until(round * 30).run_with(
            Fetch,
            2,
            plan(&format!("bytes {}", round + 1), "one to add"),
        );
        assert_eq!(it.pending(), asked);
    }
    it.approve("ann");
    it.send(Event::Tick);
    let apply = it.start(Apply);
    assert_eq!((apply.fetch_job, apply.plan), (Some(shown.job), Some(BlobId::of(b"bytes 1"))));
    assert_eq!(it.asked_so_far(), 1);
    assert_eq!(it.state().approvals()[0].explanation.as_deref(), Some("one to add"));
}

#[test]
fn rule_15_another_plan_after_the_approval_is_not_applied_but_asked_again() {
    let mut it = Scenario::new(Desired {
        require_approval_before_apply: true,
        max_concurrency: Some(1),
        ..exit_code()
    });
    it.run_with(Fetch, 2, plan("bytes 1", "one to add"));
    let first = it.pending();
    it.approve("ann");
    it.until(30).run_with(Fetch, 2, plan("bytes 2", "one to destroy"));
    it.declines(Apply);
    it.is("WAITING_MANUAL_APPROVAL RUNTIME_OBJECT_APPLY_NEEDED");
    assert_ne!(it.pending(), first);
    it.decide(first, "bob", Decision::Approve);
    it.declines(Apply);
    it.approve("ann");
    assert_eq!(it.start(Apply).plan, Some(BlobId::of(b"bytes 2")));
}

#[test]
fn rule_15_a_stale_plan_is_made_anew_and_the_same_fingerprint_carries_the_approval_over() {
    let mut it = Scenario::new(before_apply());
    it.run_with(Fetch, 2, plan("bytes 1", "one to add"));
    it.approve("ann");
    it.run(Apply, 75);
    it.run_with(Fetch, 2, plan("bytes 2", "one to add"));
    it.until(30);
    let again = it.start(Apply);
    assert_eq!((again.attempt, again.plan), (2, Some(BlobId::of(b"bytes 2"))));
    it.ends(
        again.job,
        Outcome::Exited {
            code: 75,
            started_at: it.now,
            ended_at: it.now,
            said: String::new(),
            seen: Box::default(),
            info: None,
        },
    );
    it.run_with(Fetch, 2, plan("bytes 3", "two to add"));
    it.until(90);
    it.declines(Apply);
    it.is("WAITING_MANUAL_APPROVAL RUNTIME_OBJECT_APPLY_NEEDED");
}

#[test]
fn rule_15_a_rejection_holds_for_its_fingerprint() {
    let mut it = Scenario::new(before_apply());
    it.run_with(Fetch, 2, plan("bytes 1", "one to destroy"));
    it.reject("ann");
    it.until(30).run_with(Fetch, 2, plan("bytes 2", "one to destroy"));
    it.is("FAILED MANUAL_APPROVAL_REJECTED");
    it.until(60).run_with(Fetch, 2, plan("bytes 3", "one to add"));
    it.is("WAITING_MANUAL_APPROVAL RUNTIME_OBJECT_APPLY_NEEDED");
    it.until(90).run_with(Fetch, 2, plan("bytes 4", "one to destroy"));
    it.is("FAILED MANUAL_APPROVAL_REJECTED");
}

#[test]
fn rule_15_an_approval_does_not_outlive_a_change_of_the_commands() {
    let mut it = Scenario::new(before_apply());
    it.run_with(Fetch, 2, plan("bytes 1", "one to add"));
    it.approve("ann");
    it.send(Event::Desired(Box::new(Desired {
        compiled: BlobId::of(b"other commands"),
        ..before_apply()
    })));
    it.run_with(Fetch, 2, plan("bytes 1", "one to add"));
    it.is("WAITING_MANUAL_APPROVAL RUNTIME_OBJECT_APPLY_NEEDED");
}

#[test]
fn rule_15_who_when_and_why_are_kept() {
    let mut it = Scenario::new(before_apply());
    it.run_with(Fetch, 2, plan("bytes 1", "one to add"));
    let approval = it.pending();
    it.until(5);
    let reason = Some("reviewed in the morning".to_owned());
    it.send(Event::Decided {
        approval,
        who: "ann".to_owned(),
        decision: Decision::Approve,
        reason: reason.clone(),
    });
    let shown = &engine::view::approvals(it.state())[0];
    assert_eq!(
        (shown.by[0].who.as_str(), shown.by[0].when, &shown.by[0].reason),
        ("ann", it.now, &reason)
    );
    assert_eq!(shown.plan_digest, Some(BlobId::of(b"one to add").to_string()));
}

#[test]
fn rule_16_fetch_and_get_info_never_wait_behind_apply() {
    let now = Timestamp::from_millis(START_MS);
    let mut states: Vec<State> = (0..4).map(|number| instance(number, apply_only(), now)).collect();
    states.extend((4..8).map(|number| instance(number, with_info(), now)));
    let mut lanes = ConcurrencyLimiter::new(limits(2, None), now);
    states.iter().for_each(|state| lanes.update(state, ALONE));
    let granted = grant_all(&mut lanes, &mut states, now);
    for kind in [Fetch, Apply, GetInfo] {
        assert_eq!(
            granted.iter().filter(|granted| **granted == kind).count(),
            2,
            "{kind}: {granted:?}"
        );
        assert_eq!((lanes.in_flight(kind), lanes.waiting(kind)), (2, 2));
    }
}

#[test]
fn rule_16_each_lane_has_a_limit_per_runtime() {
    let now = Timestamp::from_millis(START_MS);
    let other = || Desired { runtime: "other".parse().unwrap(), ..with_info() };
    let mut states: Vec<State> = (0..4).map(|number| instance(number, with_info(), now)).collect();
    states.extend((4..8).map(|number| instance(number, other(), now)));
    let mut lanes = ConcurrencyLimiter::new(limits(100, Some(3)), now);
    states.iter().for_each(|state| lanes.update(state, ALONE));
    let granted = grant_all(&mut lanes, &mut states, now);
    for kind in [Fetch, GetInfo] {
        assert_eq!(
            granted.iter().filter(|granted| **granted == kind).count(),
            6,
            "3 in each of two runtimes"
        );
    }
}

#[test]
fn rule_17_nothing_runs_merely_because_of_a_restart() {
    let mut it = Scenario::new(exit_code());
    it.run(Fetch, 0);
    let stored = serde_json::to_string(it.state()).unwrap();
    let state: State = serde_json::from_str(&stored).unwrap();
    let (state, actions) = step(state, Event::Tick, it.now.plus_ms(5_000));
    assert_eq!(actions, []);
    assert_eq!([Fetch, Apply, GetInfo].map(|kind| state.wants(kind)), [None; 3]);
}

#[test]
fn rule_17_what_piled_up_is_spread_oldest_first_and_the_new_does_not_wait_behind_it() {
    let before = Timestamp::from_millis(START_MS);
    let restart = before.plus_ms(3_600_000);
    let mut states: Vec<State> = (0..1_000)
        .map(|number| instance(number, exit_code(), before.plus_ms(number as i64)))
        .collect();
    states.push(instance(1_000, exit_code(), restart.plus_ms(1)));
    let mut lanes = ConcurrencyLimiter::new(limits(10_000, None), restart);
    states.iter().for_each(|state| lanes.update(state, ALONE));
    let mut now = restart.plus_ms(1);
    let at_once = grant_all(&mut lanes, &mut states, now).len() as i64;
    assert_eq!(
        at_once,
        PILED_UP_AT_ONCE + 1 + 1,
        "a bounded number at once, and the one that came up now"
    );
    let started = |state: &State| state.jobs_in_flight().count() == 1;
    assert!(started(&states[1_000]));
    assert!(states[..at_once as usize - 1].iter().all(started), "oldest first");
    let mut granted = at_once;
    while let Some(at) = lanes.next_wake(now) {
        assert!(at > now, "the pace says when to ask again");
        now = at;
        granted += grant_all(&mut lanes, &mut states, now).len() as i64;
    }
    assert_eq!(granted, 1_001, "nothing is forgotten");
    let took_ms = now.since_ms(restart);
    assert!(
        (took_ms - (1_000 - PILED_UP_AT_ONCE) * 1_000 / PILED_UP_PER_SECOND).abs() < 100,
        "{took_ms}"
    );
}

#[test]
fn rule_17_due_times_are_stored() {
    let mut it = Scenario::new(exit_code());
    it.run(Fetch, 0);
    let due = it.wakes_at();
    let stored = serde_json::to_string(it.state()).unwrap();
    assert_eq!(
        engine::next_wake(&serde_json::from_str(&stored).unwrap()).map(|at| it.seconds(at)),
        due
    );
}
