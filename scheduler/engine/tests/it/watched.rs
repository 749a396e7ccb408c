//! Instances that somebody watches: what is told comes by itself, in generations, and is fresh for
//! so long.

use std::time::Duration;

use engine::desired::{Desired, Observe, WatchPolicy};
use engine::event::{ClockStep, Event, Outcome};
use engine::limiter::ConcurrencyLimiter;
use engine::observation::{
    Blame, Observation, ObservationError, ObservationSource, ObservedWorld, WorldReport,
};
use engine::{State, Surroundings, explain, next_wake};
use schema::api::Cause;
use schema::cause::CauseCode;
use schema::id::{BlobId, JobId};
use schema::output::RuntimeObject;
use schema::status::ApprovalKind;

use crate::scenario::{
    Apply, Fetch, START_MS, Scenario, apply_only, exit_code, limits, manual, newer, other_commands,
};

mod silence;

/// Fresh for a minute.
fn watched() -> Desired {
    Desired {
        observe: Observe::Watch(WatchPolicy { fresh_for: Duration::from_secs(60) }),
        ..exit_code()
    }
}

fn report(world: ObservedWorld) -> WorldReport {
    WorldReport {
        world,
        fingerprint: None,
        plan: None,
        explanation: None,
        may_destroy: true,
        is_cut: false,
        doubt: None,
    }
}

/// One object that runs this version.
fn runs(version: &str) -> WorldReport {
    let object = serde_json::json!({"name": "web", "objectType": "Process", "status": "SUCCEEDED", "versions": [{"version": version, "active": true}]});
    let object: RuntimeObject = serde_json::from_value(object).unwrap();
    let fingerprint = Some(BlobId::of(version.as_bytes()));
    WorldReport { fingerprint, ..report(ObservedWorld::Objects(vec![object])) }
}

fn observation(
    it: &Scenario,
    generation: u64,
    result: Result<WorldReport, ObservationError>,
) -> Event {
    Event::Observed(Box::new(Observation {
        source: ObservationSource::Watch(generation),
        at: it.now,
        result,
    }))
}

/// The watch of now tells this.
fn tells(it: &mut Scenario, report: WorldReport) {
    let generation = it.state().watch_generation().unwrap();
    let event = observation(it, generation, Ok(report));
    it.send(event);
}

fn cause(it: &Scenario, code: CauseCode) -> Option<Cause> {
    let told = explain(
        it.state(),
        &ConcurrencyLimiter::new(limits(1, None), it.now),
        it.now,
        Surroundings::default(),
    );
    told.causes.into_iter().find(|cause| cause.code == code)
}

/// It changes no more than time alone would.
#[track_caller]
fn changes_nothing(it: &Scenario, event: Event) {
    let (mut with, mut without) = (it.clone(), it.clone());
    with.send(event);
    without.send(Event::Tick);
    assert_eq!(with.state(), without.state());
}

#[test]
fn rule_02_what_a_watch_tells_counts_without_any_fetch() {
    let mut it = Scenario::new(watched());
    it.is("CONVERGING NO_CURRENT_STATE");
    assert!(
        it.state().standing().message.contains("first answer of the watch"),
        "{}",
        it.state().standing().message
    );
    assert_eq!(cause(&it, CauseCode::WatchAwaited).unwrap().until, Some(it.now.plus_ms(60_000)));
    tells(&mut it, runs("svc-1"));
    it.is("CONVERGED");
    assert_eq!(it.state().objects().len(), 1);
    it.until(30);
    tells(&mut it, runs("svc-0"));
    it.is("CONVERGING VERSION_MISMATCH");
    assert_eq!(it.logged("drift.found").count(), 1);
    assert!(!it.wants(Fetch));
    it.declines(Fetch);
}

#[test]
fn p4_what_is_of_another_generation_or_of_a_job_changes_nothing_in_any_state() {
    let mut it = Scenario::new(watched());
    let first = it.state().watch_generation().unwrap();
    let late = |it: &Scenario| {
        changes_nothing(it, observation(it, first, Ok(runs("svc-1"))));
        changes_nothing(it, observation(it, u64::MAX, Ok(runs("svc-1"))));
        let source = ObservationSource::Job(JobId::derive(&[b"somebody's"]));
        changes_nothing(
            it,
            Event::Observed(Box::new(Observation {
                source,
                at: it.now,
                result: Ok(runs("svc-1")),
            })),
        );
    };
    it.send(Event::Desired(Box::new(newer(&watched(), 2))));
    assert_ne!(it.state().watch_generation(), Some(first));
    late(&it);
    tells(&mut it, runs("svc-1"));
    late(&it);
    let apply = it.start(Apply);
    late(&it);
    it.begins(apply.job);
    it.send(Event::Pause { who: "ann".to_owned(), reason: None });
    assert_eq!(it.state().watch_generation(), None, "nobody watches what is paused");
    late(&it);
    let outcome = it.exited(0, Default::default());
    it.ends(apply.job, outcome);
    late(&it);
    it.send(Event::Resume);
    late(&it);
    it.send(Event::Deleted);
    assert_eq!(it.state().watch_generation(), None);
    late(&it);
    for it in [Scenario::without_release(), Scenario::new(exit_code())] {
        late(&it);
    }
}

#[test]
fn rule_03_work_that_a_watch_finds_is_approved_by_its_fingerprint_and_applied() {
    let mut it = Scenario::new(Desired { require_approval_before_apply: true, ..watched() });
    tells(&mut it, runs("svc-0"));
    it.is("WAITING_MANUAL_APPROVAL VERSION_MISMATCH");
    let asked = it.state().pending_approvals().next().unwrap();
    assert_eq!((asked.kind, asked.fingerprint), (ApprovalKind::Apply, Some(BlobId::of(b"svc-0"))));
    it.approve("ann");
    assert!(it.wants(Apply));
    it.until(20);
    tells(&mut it, runs("svc-0"));
    assert!(it.wants(Apply), "the same work needs no other yes");
    tells(&mut it, runs("svc-00"));
    it.is("WAITING_MANUAL_APPROVAL VERSION_MISMATCH");
    assert!(
        it.state().standing().message.contains("was for other work than the watch finds now"),
        "{:?}",
        it.state().standing()
    );
    it.approve("ann");
    let apply = it.start(Apply);
    assert_eq!((apply.fetch_job, apply.plan), (None, None));
}

#[test]
fn rule_05_after_an_apply_only_what_is_told_since_its_end_decides() {
    let mut it = Scenario::new(watched());
    tells(&mut it, runs("svc-0"));
    let apply = it.start(Apply);
    it.begins(apply.job);
    let during = it.state().watch_generation().unwrap();
    it.until(10);
    tells(&mut it, runs("svc-1"));
    assert!(
        it.state().objects()[0].versions.iter().any(|at| at.version == "svc-1"),
        "people see how it goes"
    );
    it.is("CONVERGING VERSION_MISMATCH");
    let outcome = it.exited(1, Default::default());
    it.ends(apply.job, outcome);
    it.is("FAILED APPLY_FAILED");
    assert!(
        it.state().standing().message.contains("if the watch still sees work"),
        "{}",
        it.state().standing().message
    );
    let late = observation(&it, during, Ok(runs("svc-1")));
    changes_nothing(&it, late);
    assert!(!it.wants(Fetch));
    let mut well = it.clone();
    tells(&mut well, runs("svc-1"));
    well.is("CONVERGED");
    // It is still to be done: once the grace period is over, if the watch is heard of by then.
    tells(&mut it, runs("svc-0"));
    it.is("FAILED APPLY_FAILED");
    for second in [50, 100, 150, 200, 250, 300, 350, 400, 450, 500, 550, 599] {
        it.until(second);
        assert!(!it.wants(Apply), "at {second}");
        tells(&mut it, runs("svc-0"));
    }
    it.until(600);
    it.start(Apply);
}

#[test]
fn rule_04_the_effect_of_an_apply_has_the_grace_period_to_show() {
    let mut it = Scenario::new(watched());
    tells(&mut it, runs("svc-0"));
    it.run(Apply, 0);
    assert!(
        it.state().standing().message.contains("waits for the watch"),
        "{:?}",
        it.state().standing()
    );
    tells(&mut it, runs("svc-0"));
    assert!(cause(&it, CauseCode::GracePeriod).unwrap().message.contains("the watch goes on"));
    it.until(30);
    tells(&mut it, runs("svc-1"));
    it.is("CONVERGED");
}

#[test]
fn who_asks_to_look_now_gets_another_generation_and_no_fetch() {
    for question in [
        Event::Refresh { who: "ann".to_owned(), tries_again: false },
        Event::Retry { who: "ann".to_owned() },
    ] {
        let mut it = Scenario::new(watched());
        tells(&mut it, runs("svc-1"));
        let before = it.state().watch_generation().unwrap();
        it.until(10);
        assert_eq!(it.send(question.clone()), [], "no job is started");
        let after = it.state().watch_generation().unwrap();
        assert!(after > before && it.state().is_outdated() && !it.wants(Fetch));
        let message = &it.state().standing().message;
        assert!(
            message.contains("when the watch last told; it looks anew, and no fetch is run"),
            "{message}"
        );
        assert!(it.actions.iter().any(|action| {
            format!("{action:?}").contains("so the watch looks anew and no fetch is run")
        }));
        let late = observation(&it, before, Ok(runs("svc-0")));
        changes_nothing(&it, late);
        it.send(question.clone());
        assert_eq!(
            it.state().watch_generation(),
            Some(after),
            "who asks once more waits for the same answer"
        );
        tells(&mut it, runs("svc-1"));
        it.is("CONVERGED");
        assert!(!it.state().is_outdated());
    }
}

#[test]
fn an_apply_that_is_withdrawn_waits_for_what_is_told_then() {
    let mut it = Scenario::new(Desired { gates: vec![manual(false, 1)], ..watched() });
    tells(&mut it, runs("svc-0"));
    it.approve("ann");
    let apply = it.start(Apply);
    it.until(5);
    tells(&mut it, runs("svc-00"));
    it.send(Event::Observe(true));
    it.send(Event::Unstarted { job: apply.job, taken_back: None });
    it.send(Event::Observe(false));
    assert!(!it.wants(Apply), "{:?}", it.state().standing());
    tells(&mut it, runs("svc-00"));
    it.start(Apply);
}

#[test]
fn how_it_is_looked_at_can_change_under_the_same_release() {
    let mut it = Scenario::new(exit_code());
    let fetch = it.start(Fetch);
    it.send(Event::Desired(Box::new(watched())));
    let outcome = it.exited(0, Default::default());
    it.ends(fetch.job, outcome);
    it.is("CONVERGING NO_CURRENT_STATE");
    assert!(!it.wants(Fetch));
    tells(&mut it, runs("svc-0"));
    it.is("CONVERGING VERSION_MISMATCH");
    let last = it.state().watch_generation();
    it.send(Event::Desired(Box::new(other_commands(&exit_code()))));
    assert_eq!(it.state().watch_generation(), None);
    it.run(Fetch, 0);
    it.is("CONVERGED");
    it.send(Event::Desired(Box::new(watched())));
    assert!(it.state().watch_generation() > last, "a number never comes again");
}

#[test]
fn a_watch_of_an_apply_that_may_still_run_opens_nothing() {
    let mut it = Scenario::new(watched());
    tells(&mut it, runs("svc-0"));
    let apply = it.start(Apply);
    it.ends(apply.job, Outcome::Unknown { why: "its node is gone".to_owned(), gone: false });
    tells(&mut it, runs("svc-0"));
    it.is("FAILED APPLY_FAILED");
    assert!(!it.wants(Apply));
    let before = it.state().watch_generation();
    it.ends(apply.job, Outcome::Cancelled { gone: true });
    assert!(it.state().watch_generation() > before, "what it still did nobody has seen");
}

#[test]
fn what_is_polled_or_not_looked_at_is_stored_as_versions_of_before_had_it() {
    let stored = serde_json::to_string(Scenario::new(exit_code()).state()).unwrap();
    let fetch = r#""fetch":{"mode":"ExitCode","cadence":{"Interval":{"poll_ms":30000,"steady_ms":300000}},"retry":null,"timeout_ms":600000}"#;
    assert!(stored.contains(fetch) && !stored.contains("watch"), "{stored}");
    let it = Scenario::new(apply_only());
    let stored = serde_json::to_string(it.state()).unwrap();
    assert!(stored.contains(r#""fetch":null,"#) && !stored.contains("watch"), "{stored}");
    let without = stored.replacen(r#""fetch":null,"#, "", 1);
    assert_eq!(&serde_json::from_str::<State>(&without).unwrap(), it.state());
}
