//! Drift has a fingerprint, and somebody may leave it as it is: rule 19.

use engine::desired::Desired;
use engine::event::{Event, FetchResult};
use engine::limiter::ConcurrencyLimiter;
use engine::limits::ACKNOWLEDGED_AT_MOST;
use engine::state::DriftAcknowledgement;
use engine::{Surroundings, explain};
use schema::api::Cause;
use schema::cause::CauseCode;
use schema::id::BlobId;
use schema::time::Timestamp;

use crate::scenario::{
    Apply, Fetch, START_MS, Scenario, before_apply, exit_code, limits, newer, other_commands,
};

/// Seconds between two fetches of what is at rest, with the most of their jitter.
const STEADY: i64 = 330;

fn saw(what: &str) -> FetchResult {
    FetchResult { output: Some(fingerprint(what)), ..FetchResult::default() }
}

fn fingerprint(what: &str) -> BlobId {
    BlobId::of(what.as_bytes())
}

fn at(second: i64) -> Timestamp {
    Timestamp::from_millis(START_MS + second * 1_000)
}

/// Fetch is due by then, and finds this.
fn finds(it: &mut Scenario, second: i64, what: &str) {
    it.until(second).run_with(Fetch, 2, saw(what));
}

fn acknowledge(it: &mut Scenario, what: &str, until: i64) {
    let (who, reason) = ("ann".to_owned(), Some("the audit".to_owned()));
    let by = DriftAcknowledgement { who, at: it.now, until: at(until), reason };
    it.send(Event::Acknowledge { fingerprint: fingerprint(what), by });
}

fn cause(it: &Scenario, code: CauseCode) -> Option<Cause> {
    let lanes = ConcurrencyLimiter::new(limits(1, None), it.now);
    let around = Surroundings { target: "web --app shop --channel eu", ..Surroundings::default() };
    let told = explain(it.state(), &lanes, it.now, around);
    told.causes.into_iter().find(|cause| cause.code == code)
}

/// It was converged, has drifted by `a`, and somebody leaves that as it is until second 5000.
fn left(desired: &Desired) -> Scenario {
    let mut it = Scenario::new(desired.clone());
    it.run(Fetch, 0);
    finds(&mut it, STEADY, "a");
    acknowledge(&mut it, "a", 5_000);
    it
}

#[test]
fn rule_19_the_same_drift_is_one_with_its_first_and_last_time_and_a_count() {
    let mut it = Scenario::new(before_apply());
    it.run(Fetch, 0);
    assert_eq!(it.state().drift(), None);
    let seconds = [STEADY, STEADY + 30, STEADY + 60];
    seconds.iter().for_each(|second| finds(&mut it, *second, "a"));
    let drift = it.state().drift().unwrap();
    assert_eq!(
        (drift.fingerprint, drift.first_seen, drift.last_seen, drift.count),
        (fingerprint("a"), at(STEADY), at(STEADY + 60), 3)
    );
    let told: Vec<_> = it.logged("drift.found").collect();
    assert_eq!(told.len(), 1, "one event: {told:?}");
    assert_eq!(told[0].data["fingerprint"], fingerprint("a").to_string());
    assert!(told[0].message.starts_with("drift: "));
    it.until(STEADY + 90).run(Fetch, 0);
    assert_eq!(it.state().drift(), None, "it is gone");
    finds(&mut it, 2 * STEADY + 120, "a");
    let again = it.logged("drift.found").last().unwrap();
    assert_eq!((again.data["count"].as_str(), it.logged("drift.found").count()), ("4", 2));
    assert_eq!(again.data["firstSeen"], at(STEADY).to_string());
    let words = format!("drift once more, found 3 times since {}: ", at(STEADY));
    assert!(again.message.starts_with(&words), "{}", again.message);
    assert_eq!(it.state().drift().unwrap().first_seen, at(STEADY));
}

#[test]
fn rule_19_what_a_release_has_not_reached_yet_is_no_drift() {
    let mut it = Scenario::new(before_apply());
    finds(&mut it, 0, "a");
    assert_eq!((it.state().drift(), it.logged("drift.found").count()), (None, 0));
    acknowledge(&mut it, "a", 5_000);
    it.approve("ann");
    assert!(it.wants(Apply));
}

#[test]
fn rule_19_what_is_acknowledged_is_not_applied_nor_told_until_then() {
    let mut it = left(&exit_code());
    it.is("CONVERGED RUNTIME_OBJECT_APPLY_NEEDED");
    assert!(!it.wants(Apply), "the apply that was wanted is not any more");
    let until = at(5_000);
    let words = format!("svc-1 is as desired but for drift that ann acknowledged until {until}");
    let message = &it.state().standing().message;
    assert!(message.starts_with(&words) && message.contains("(the audit)"), "{message}");
    let known = cause(&it, CauseCode::DriftAcknowledged).unwrap();
    assert_eq!((known.since, known.until), (Some(at(STEADY)), Some(until)));
    assert!(
        known.message.ends_with("`pvnctl services acknowledge web --app shop --channel eu --end`"),
        "{known:?}"
    );
    let logged = it.logged("drift.acknowledged").next().unwrap();
    assert_eq!(
        (logged.actor.as_deref(), logged.data["until"].as_str()),
        (Some("ann"), &*until.to_string())
    );
    let told = it.logged("drift.found").count();
    let mut second = STEADY;
    while second < 4_600 {
        second += STEADY;
        assert!(!it.until(second).wants(Apply));
        it.run_with(Fetch, 2, saw("a"));
        it.is("CONVERGED RUNTIME_OBJECT_APPLY_NEEDED");
    }
    assert_eq!(it.logged("drift.found").count(), told);
    assert_eq!(
        it.logged("instance.status").filter(|line| line.data["to"] == "CONVERGED").count(),
        2
    );
    it.until(4_999);
    assert!(!it.wants(Apply));
    it.until(5_000);
    assert_eq!(it.logged("drift.acknowledgement_ended").count(), 1);
    it.is("CONVERGING RUNTIME_OBJECT_APPLY_NEEDED");
    if it.wants(Fetch) {
        it.run_with(Fetch, 2, saw("a"));
    }
    assert!(it.wants(Apply));
}

#[test]
fn rule_19_it_is_looked_at_as_seldom_as_what_is_as_desired() {
    let mut it = left(&exit_code());
    finds(&mut it, STEADY + 30, "a");
    assert!(!it.until(STEADY + 30 + 299).wants(Fetch));
    assert!(it.until(STEADY + 30 + STEADY).wants(Fetch));
}

#[test]
fn rule_19_other_drift_is_told_and_repaired_and_the_one_that_is_known_stays_known() {
    let mut it = left(&exit_code());
    let told = it.logged("drift.found").count();
    finds(&mut it, STEADY + 30, "b");
    it.is("CONVERGING RUNTIME_OBJECT_APPLY_NEEDED");
    assert_eq!(it.logged("drift.found").count(), told + 1);
    it.run(Apply, 0);
    it.run(Fetch, 0);
    it.is("CONVERGED");
    finds(&mut it, 3 * STEADY, "a");
    it.is("CONVERGED RUNTIME_OBJECT_APPLY_NEEDED");
    assert!(!it.wants(Apply));
    assert_eq!(it.logged("drift.found").count(), told + 1);
}

#[test]
fn rule_19_whoever_was_asked_about_it_is_not_any_more() {
    let it = left(&before_apply());
    it.is("CONVERGED RUNTIME_OBJECT_APPLY_NEEDED");
    assert_eq!(it.state().pending_approvals().count(), 0);
}

#[test]
fn rule_19_an_apply_that_was_decided_is_not_handed_over() {
    let mut it = Scenario::new(exit_code());
    it.run(Fetch, 0);
    finds(&mut it, STEADY, "a");
    let apply = it.start(Apply).job;
    acknowledge(&mut it, "a", 5_000);
    assert_eq!(engine::void_start(it.state(), it.now), Some(apply));
    it.send(Event::Unstarted { job: apply, taken_back: None });
    it.is("CONVERGED RUNTIME_OBJECT_APPLY_NEEDED");
}

#[test]
fn rule_19_a_person_a_retry_and_a_release_end_it() {
    type Change = fn(&mut Scenario);
    let changes: [(&str, Change); 3] = [
        ("a person", |it| drop(it.send(Event::EndAcknowledged { who: "bob".to_owned() }))),
        ("a retry", |it| drop(it.send(Event::Retry { who: "bob".to_owned() }))),
        ("a release", |it| drop(it.send(Event::Desired(Box::new(newer(&exit_code(), 2)))))),
    ];
    for (name, change) in changes {
        let mut it = left(&exit_code());
        change(&mut it);
        if it.wants(Fetch) {
            it.run_with(Fetch, 2, saw("a"));
        }
        assert!(it.wants(Apply), "{name}: {:?}", it.state().standing());
    }
    let mut it = left(&exit_code());
    it.send(Event::Desired(Box::new(other_commands(&exit_code()))));
    it.run_with(Fetch, 2, saw("a"));
    it.is("CONVERGED RUNTIME_OBJECT_APPLY_NEEDED");
}

#[test]
fn rule_19_what_cannot_be_known_again_cannot_be_left() {
    for seen in [FetchResult::default(), FetchResult { is_cut: true, ..saw("a") }] {
        let mut it = Scenario::new(exit_code());
        it.run(Fetch, 0);
        it.until(STEADY).run_with(Fetch, 2, seen);
        assert_eq!(it.logged("drift.found").count(), 1, "it is drift all the same");
        acknowledge(&mut it, "a", 5_000);
        assert!(it.wants(Apply));
    }
    let mut it = Scenario::new(exit_code());
    it.run(Fetch, 0);
    finds(&mut it, STEADY, "a");
    acknowledge(&mut it, "b", 5_000);
    acknowledge(&mut it, "a", STEADY);
    assert!(it.wants(Apply), "nor another one, nor for no time");
}

#[test]
fn rule_19_nothing_is_left_for_longer_than_a_year_at_once() {
    let mut it = left(&exit_code());
    acknowledge(&mut it, "a", i64::MAX / 2_000);
    let until = it.state().drift().unwrap().acknowledged.as_ref().unwrap().until;
    assert_eq!(until, it.now.plus(ACKNOWLEDGED_AT_MOST));
}

#[test]
fn rule_19_what_is_left_and_cannot_be_seen_any_more_is_told() {
    let mut it = left(&exit_code());
    it.until(STEADY + 30).run(Fetch, 1);
    it.is("CONVERGED RUNTIME_OBJECT_APPLY_NEEDED");
    assert!(it.state().standing().message.contains("as last seen: fetch job-"));
    it.until_without_answer(STEADY + 120);
    it.is("CONVERGING FETCH_FAILED");
}
