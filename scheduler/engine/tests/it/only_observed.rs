//! Rule 10: what a person wants to be observed only is looked at and told, and nothing is applied.

use std::time::Duration;

use engine::desired::Desired;
use engine::event::{Event, FetchResult};
use engine::limiter::ConcurrencyLimiter;
use engine::state::State;
use engine::view::{observed_only, waits_for};
use engine::{GoBack, Salvaged, Surroundings, explain, go_back_now};
use schema::api::Cause;
use schema::cause::CauseCode;
use schema::status::GateKind;
use schema::time::Timestamp;

use crate::scenario::{
    Apply, Fetch, GetInfo, START_MS, Scenario, before_apply, exit_code, limits, manual, with_info,
};

fn observe(it: &mut Scenario, who: &str, reason: Option<&str>) {
    it.send(Event::ObserveOnly { who: who.to_owned(), reason: reason.map(str::to_owned) });
}

fn pause(it: &mut Scenario) {
    it.send(Event::Pause { who: "bob".to_owned(), reason: None });
}

#[track_caller]
fn says(it: &Scenario, words: &str) {
    let message = &it.state().standing().message;
    assert!(message.contains(words), "{message}");
}

/// What `explain` says of whoever only looks.
fn causes(it: &Scenario) -> Vec<Cause> {
    let lanes = ConcurrencyLimiter::new(limits(1, None), it.now);
    let mut causes = explain(it.state(), &lanes, it.now, Surroundings::default()).causes;
    causes.retain(|cause| cause.code == CauseCode::Observer);
    causes
}

#[test]
fn rule_10_what_a_person_observes_is_looked_at_and_nothing_is_applied_until_resume() {
    let mut it = Scenario::new(Desired { gates: vec![manual(true, 1)], ..with_info() });
    it.run(Fetch, 0);
    it.run(GetInfo, 0);
    it.is("CONVERGED");
    observe(&mut it, "ann", Some("disk swap"));
    it.is("CONVERGED");
    says(&it, "is as desired; observed by ann (disk swap): no apply starts until `pvnctl services");
    it.until(400).run(Fetch, 2);
    it.is("CONVERGING RUNTIME_OBJECT_APPLY_NEEDED");
    says(&it, "observed by ann (disk swap): it would apply svc-1 once");
    says(&it, "but only looks until `pvnctl services resume`");
    assert_eq!(it.asked_so_far(), 0, "nobody is asked");
    it.declines(Apply);
    it.until(10_000).run(Fetch, 2);
    it.run(GetInfo, 0);
    it.declines(Apply);
    let told = causes(&it);
    assert_eq!(told.len(), 1, "{told:#?}");
    assert!(told[0].message.starts_with("observed by ann (disk swap): it is looked at"));
    assert_eq!(told[0].since, Some(Timestamp::from_millis(START_MS)));
    // Somebody may have done it by hand: what was seen before counts no more.
    it.send(Event::Resume);
    assert_eq!(causes(&it), []);
    it.declines(Apply);
    it.run(Fetch, 2);
    it.approve("ann");
    it.start(Apply);
}

#[test]
fn rule_10_one_wish_takes_the_place_of_the_other_and_resume_ends_both() {
    let mut it = Scenario::new(exit_code());
    it.run(Fetch, 2);
    observe(&mut it, "ann", Some("disk swap"));
    // Without words nobody takes it over.
    observe(&mut it, "eve", None);
    says(&it, "observed by ann (disk swap)");
    observe(&mut it, "eve", Some("her turn"));
    says(&it, "observed by eve (her turn)");
    pause(&mut it);
    it.is("PAUSED");
    assert_eq!(observed_only(it.state()), None);
    it.declines(Fetch);
    observe(&mut it, "ann", None);
    it.is("CONVERGING RUNTIME_OBJECT_APPLY_NEEDED");
    assert!(!it.state().is_paused() && it.state().paused_by().is_none());
    it.run(Fetch, 2);
    it.declines(Apply);
    pause(&mut it);
    it.send(Event::Resume);
    assert!(!it.state().is_paused() && it.state().observe_wish().is_none());
    it.run(Fetch, 2);
    it.start(Apply);
}

#[test]
fn rule_10_an_apply_that_runs_is_let_go_on_and_one_that_has_not_begun_is_withdrawn() {
    let mut it = Scenario::new(exit_code());
    it.run(Fetch, 2);
    let apply = it.start(Apply);
    observe(&mut it, "ann", None);
    it.send(Event::Unstarted { job: apply.job, taken_back: None });
    assert_eq!(it.state().jobs_in_flight().count(), 0, "it is as if it had never been");
    it.send(Event::Resume);
    it.run(Fetch, 2);
    let apply = it.start(Apply);
    it.begins(apply.job);
    observe(&mut it, "ann", None);
    assert_eq!(it.stops(), []);
    says(&it, "observed by ann: no apply starts until `pvnctl services resume`");
    let outcome = it.exited(0, FetchResult::default());
    it.ends(apply.job, outcome);
    it.run(Fetch, 0);
    it.is("CONVERGED");
}

#[test]
fn rule_12_the_progress_deadline_stands_still_and_a_rollback_that_was_decided_is_not_done() {
    let deadline = Some(Duration::from_secs(60));
    let mut it = Scenario::new(Desired { progress_deadline: deadline, ..exit_code() });
    it.run(Fetch, 2);
    observe(&mut it, "ann", None);
    it.until(1_000).run(Fetch, 2);
    it.is("CONVERGING RUNTIME_OBJECT_APPLY_NEEDED");
    let release = it.state().desired().unwrap().release;
    let now = it.now;
    assert_eq!(
        go_back_now(it.state(), release, now),
        GoBack::Dropped("a person wants it to be observed only")
    );
    it.send(Event::Resume);
    it.run(Fetch, 2);
    let apply = it.start(Apply);
    it.begins(apply.job);
    it.until(1_050);
    assert!(!it.status().contains("STUCK"), "it starts anew: {}", it.status());
    it.until(1_070);
    assert!(it.status().contains("STUCK"), "{}", it.status());
}

#[test]
fn all_that_comes_after_the_wish_is_told_before_the_channel() {
    let mut it = Scenario::new(before_apply());
    it.run(Fetch, 2);
    let gates = |it: &Scenario| -> Vec<_> {
        waits_for(it.state()).into_iter().map(|gate| (gate.kind, gate.words)).collect()
    };
    assert_eq!(gates(&it).len(), 1);
    observe(&mut it, "ann", Some("disk swap"));
    let told = gates(&it);
    assert_eq!(told[0], (GateKind::Observe, "observed by ann".to_owned()));
    assert_eq!((told.len(), told[1].0), (2, GateKind::Approval));
    it.until(400).run(Fetch, 0);
    assert_eq!(gates(&it), [], "there is nothing to apply");
}

#[test]
fn a_daemon_in_observer_mode_and_a_person_are_both_told() {
    let mut it = Scenario::new(exit_code());
    it.run(Fetch, 2);
    observe(&mut it, "ann", None);
    it.send(Event::Observe(true));
    says(&it, "observer mode: it would apply svc-1 now, but only looks; ");
    says(&it, "; observed by ann: no apply starts");
    let told = causes(&it);
    assert_eq!(told.len(), 2, "{told:#?}");
    it.send(Event::Observe(false));
    it.declines(Apply);
    assert_eq!(causes(&it).len(), 1);
}

#[test]
fn a_wish_outlives_whatever_is_stored_and_made_anew() {
    let mut it = Scenario::new(exit_code());
    it.run(Fetch, 2);
    observe(&mut it, "ann", Some("disk swap"));
    let stored = serde_json::to_string(it.state()).unwrap();
    let read: State = serde_json::from_str(&stored).unwrap();
    assert_eq!(read.observe_wish(), it.state().observe_wish());
    let known = |paused| Salvaged {
        desired: read.desired().cloned().map(Box::new),
        observe_wish: read.observe_wish().cloned().map(Box::new),
        paused,
        ..Salvaged::default()
    };
    let (anew, _) = State::anew(read.instance(), known(false), it.now);
    assert_eq!(anew.observe_wish(), read.observe_wish());
    assert_eq!(anew.check(), Ok(()));
    // What may have been a pause stops more.
    let (anew, _) = State::anew(read.instance(), known(true), it.now);
    assert!(anew.is_paused() && anew.observe_wish().is_none());
    assert_eq!(anew.check(), Ok(()));
}
