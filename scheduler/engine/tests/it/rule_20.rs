//! A runtime whose applies are held: what the lanes do, and what an instance that waits says. When
//! they are held is in `breaker/tests.rs`.

use engine::action::StopReason;
use engine::breaker::EndedTry;
use engine::event::{Event, FetchResult, Outcome};
use engine::limiter::ConcurrencyLimiter;
use engine::state::AppliesHeld;
use engine::{State, Surroundings, explain, step};
use schema::cause::CauseCode;
use schema::time::Timestamp;

use crate::scenario::{
    ALONE, Apply, Fetch, START_MS, Scenario, apply_only, exit_code, grant_all, instance, limits,
};

fn held(width: u32) -> AppliesHeld {
    let since = Timestamp::from_millis(START_MS);
    let why = "apply failed in 5 of 6 instances".to_owned();
    AppliesHeld { since, why, width, until: since.plus_ms(300_000) }
}

#[test]
fn rule_20_the_lanes_give_out_as_many_places_of_a_runtime_as_may_be_and_no_more() {
    let now = Timestamp::from_millis(START_MS);
    let mut states: Vec<State> = (0..6).map(|number| instance(number, apply_only(), now)).collect();
    let mut lanes = ConcurrencyLimiter::new(limits(100, None), now);
    states.iter().for_each(|state| lanes.update(state, ALONE));
    let runtime = "runtime".parse().unwrap();
    for (limit, granted) in [(Some(0), 0), (Some(1), 1), (Some(4), 3), (Some(0), 0), (None, 2)] {
        lanes.bound_applies(&runtime, limit);
        assert_eq!(grant_all(&mut lanes, &mut states, now).len(), granted, "{limit:?}");
    }
    // A fetch waits for none of this.
    let mut looking = vec![instance(9, exit_code(), now)];
    lanes.bound_applies(&runtime, Some(0));
    lanes.update(&looking[0], ALONE);
    assert_eq!(grant_all(&mut lanes, &mut looking, now), [Fetch]);
}

#[test]
fn rule_20_who_waits_says_what_failed_since_when_and_what_ends_it() {
    let mut it = Scenario::new(exit_code());
    it.run(Fetch, 2);
    it.send(Event::Held(Some(Box::new(held(0)))));
    it.is("WAITING_PRECONDITIONS CONCURRENCY_LIMIT_EXCEEDED");
    let until = held(0).until;
    let words = format!(
        "applies of runtime `runtime` are stopped until {until}, because apply failed in 5 of 6 \
         instances; fetch ended with exit code 2"
    );
    assert!(it.state().standing().message.starts_with(&words), "{:?}", it.state().standing());
    let told = |it: &Scenario| {
        let lanes = ConcurrencyLimiter::new(limits(1, None), it.now);
        explain(it.state(), &lanes, it.now, Surroundings::default())
    };
    let causes = told(&it).causes;
    let cause = causes.iter().find(|cause| cause.code == CauseCode::FleetBreaker).unwrap();
    assert_eq!((cause.since, cause.until), (Some(held(0).since), Some(until)));
    assert!(cause.message.contains("`pvnctl runtimes resume runtime` ends it"), "{cause:?}");
    assert!(!causes.iter().any(|cause| cause.code == CauseCode::StartsNow), "{causes:?}");
    it.send(Event::Held(Some(Box::new(held(1)))));
    assert!(it.state().standing().message.contains("are tried one at a time"));
    assert!(told(&it).causes.iter().any(|cause| cause.code == CauseCode::StartsNow));
    it.send(Event::Held(None));
    assert!(!told(&it).causes.iter().any(|cause| cause.code == CauseCode::FleetBreaker));
    assert!(it.wants(Apply) && !it.state().standing().message.contains("because apply failed"));
}

#[test]
fn rule_20_who_waits_for_something_else_says_that() {
    let mut it = Scenario::new(exit_code());
    it.send(Event::Held(Some(Box::new(held(0)))));
    it.run(Fetch, 0);
    it.is("CONVERGED");
    it.send(Event::Pause { who: "ann".to_owned(), reason: None });
    it.is("PAUSED");
}

/// How this end of a job counts.
fn counts(kind: schema::status::JobKind, outcome: impl Fn(&Scenario) -> Outcome) -> Option<bool> {
    let mut it = Scenario::new(exit_code());
    if kind == Apply {
        it.run(Fetch, 2);
    }
    let id = it.start(kind).job;
    it.begins(id);
    let job = it.state().job(id).unwrap().clone();
    let outcome = outcome(&it);
    let after =
        step(it.state().clone(), Event::JobEnded { job: id, outcome: outcome.clone() }, it.now).0;
    let mut stopped = job.clone();
    stopped.stop = Some(StopReason::Person("ann".to_owned()));
    assert_eq!(EndedTry::of(&stopped, &outcome), None, "a person stopped it");
    EndedTry::of(&job, &outcome)?.failed(&after)
}

#[test]
fn rule_20_only_what_a_command_did_by_itself_counts() {
    let exited = |code: i32| move |it: &Scenario| it.exited(code, FetchResult::default());
    for (code, fetch, apply) in [
        (0, Some(false), Some(false)),
        (2, Some(false), Some(true)),
        (1, Some(true), Some(true)),
        (75, Some(true), None),
    ] {
        assert_eq!((counts(Fetch, exited(code)), counts(Apply, exited(code))), (fetch, apply));
    }
    let why = || "no such program".to_owned();
    for (outcome, expected) in [
        (Outcome::NotStarted { why: why(), surroundings: false }, Some(true)),
        (Outcome::NotStarted { why: why(), surroundings: true }, None),
        (Outcome::Unknown { why: why(), gone: true }, None),
        (Outcome::Cancelled { gone: true }, None),
        (Outcome::InputLost { why: why() }, None),
        (Outcome::TimedOut, Some(true)),
        (Outcome::BadOutput { why: why() }, Some(true)),
    ] {
        for kind in [Fetch, Apply] {
            assert_eq!(counts(kind, |_| outcome.clone()), expected, "{kind} {outcome:?}");
        }
    }
}
