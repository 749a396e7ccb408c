//! Explain: every state in which an instance can wait says what would end it.

use std::time::Duration;

use engine::desired::{Cadence, Desired, Gate, Window};
use engine::event::{Event, FetchResult, Outcome};
use engine::limiter::{Blocked, ConcurrencyLimiter, Limit, Limits};
use engine::state::{DriftAcknowledgement, WindowLift};
use engine::{SITUATIONS, State, Surroundings, explain, situation, step};
use schema::api::Explanation;
use schema::cause::CauseCode;
use schema::id::BlobId;
use schema::output::{ObjectStatus, RuntimeObject};
use schema::schedule::Schedule;
use schema::status::Reason;
use schema::time::Timestamp;

use crate::scenario::{
    ALONE, Apply, Fetch, GetInfo, START_MS, Scenario, apply_only, before_apply, exit_code,
    grant_all, instance, limits, manual, newer, plan, poll_of, stable, structured, with_info,
};

mod stories;
mod told;

#[test]
fn rule_18_explain_of_a_full_limit_names_the_holder_and_its_job() {
    let now = Timestamp::from_millis(START_MS);
    let narrow = || Desired { max_concurrency: Some(1), ..apply_only() };
    let mut states: Vec<State> =
        (0..2).map(|number| instance(number, narrow(), now.plus_ms(number as i64))).collect();
    let mut lanes = ConcurrencyLimiter::new(limits(10, None), now);
    states.iter().for_each(|state| lanes.update(state, ALONE));
    grant_all(&mut lanes, &mut states, now);
    let job = states[0].jobs_in_flight().next().unwrap().id;
    let waiting = step(states.remove(1), Event::Tick, now.plus_ms(1_000)).0;
    let told = explain(
        &waiting,
        &lanes,
        now,
        Surroundings { name: &|_| "web/staging".to_owned(), ..Surroundings::default() },
    );
    assert_eq!(told.status.as_str(), "WAITING_PRECONDITIONS");
    let full = told.causes.iter().find(|cause| cause.code == CauseCode::LimitFull).unwrap();
    assert_eq!(
        full.message,
        format!(
            "1 of 1 places for apply in runtime `runtime` are taken by web/staging with {job} \
             since {now}; it is next"
        )
    );
}

#[test]
fn rule_18_what_the_config_tells_the_people_who_are_asked_is_told_and_logged() {
    let gate = Gate::ManualApproval {
        name: None,
        description: Some("look at\nthe quota".to_owned()),
        every_action: true,
        min_approvers: 1,
    };
    let mut it = Scenario::new(Desired { gates: vec![gate], ..exit_code() });
    it.run(Fetch, 2);
    let asked = it.logged("approval.asked").next().unwrap();
    assert!(asked.message.ends_with(": look at the quota"), "{}", asked.message);
    assert_eq!(asked.data.get("description").map(String::as_str), Some("look at\nthe quota"));
    let told = explain(
        it.state(),
        &ConcurrencyLimiter::new(limits(1, None), it.now),
        it.now,
        Surroundings::default(),
    );
    let cause = told.causes.iter().find(|cause| cause.code == CauseCode::ApprovalPending).unwrap();
    assert!(cause.message.contains(", with the words \"look at the quota\""), "{}", cause.message);
    let shown = serde_json::to_value(engine::view::approvals(it.state())).unwrap();
    assert_eq!(shown[0]["description"], "look at\nthe quota");
}

#[test]
fn rule_18_errors_of_get_info_are_told_and_change_nothing() {
    let mut it = Scenario::new(with_info());
    it.run(Fetch, 0);
    it.run(GetInfo, 3);
    it.is("CONVERGED");
    let told = explain(
        it.state(),
        &ConcurrencyLimiter::new(limits(1, None), it.now),
        it.now,
        Surroundings::default(),
    );
    let cause = told.causes.iter().find(|cause| cause.code == CauseCode::GetInfoFailed).unwrap();
    assert!(cause.message.contains("exit code 3"), "{}", cause.message);
}

#[test]
fn rule_18_what_keeps_a_job_from_starting_is_told_with_its_deadline_until_it_starts() {
    let mut it = Scenario::new(exit_code());
    let job = it.start(Fetch).job;
    it.waits(job, "ErrImagePull: no such image");
    it.until(5).waits(job, "ImagePullBackOff: back-off");
    let until = it.now.plus_ms(60_000);
    let told = |it: &Scenario| {
        explain(
            it.state(),
            &ConcurrencyLimiter::new(limits(1, None), it.now),
            it.now,
            Surroundings::default(),
        )
    };
    let cause =
        told(&it).causes.into_iter().find(|cause| cause.code == CauseCode::JobWaits).unwrap();
    assert!(
        cause.message.contains(
            "ImagePullBackOff: back-off; ends when the image can be pulled, or at its deadline"
        ),
        "{cause:?}"
    );
    assert_eq!((cause.since, cause.until), (Some(Timestamp::from_millis(START_MS)), Some(until)));
    assert!(
        it.state()
            .standing()
            .message
            .ends_with(&format!("fetch {job} waits (until {until}): ImagePullBackOff: back-off"))
    );
    assert_eq!(it.state().standing().next_action_at, Some(until));
    assert_eq!(it.logged("job.waits").count(), 1, "words that change are no news");
    it.begins(job);
    it.waits(job, "told too late");
    assert!(
        !told(&it).causes.iter().any(|cause| cause.code == CauseCode::JobWaits)
            && !it.state().standing().message.contains("waits (")
    );
}

#[test]
fn where_nothing_fetches_no_fetch_is_named_as_a_way_out() {
    for (desired, named) in [(exit_code(), true), (apply_only(), false)] {
        let mut it = Scenario::new(desired);
        if named {
            it.run(Fetch, 2);
        }
        let job = it.start(Apply).job;
        it.send(Event::Cancel { job, who: "ann".to_owned() });
        it.ends(job, Outcome::Cancelled { gone: true });
        let told = explain(
            it.state(),
            &ConcurrencyLimiter::new(limits(1, None), it.now),
            it.now,
            Surroundings::default(),
        );
        let way_out = &told
            .causes
            .iter()
            .find(|cause| cause.code == CauseCode::WaitsForPerson)
            .unwrap()
            .message;
        assert_eq!(way_out.contains("fetch"), named, "{way_out}");
    }
}

#[test]
fn who_approves_is_told_that_the_channel_before_has_left_the_version() {
    let mut it = Scenario::new(Desired {
        gates: vec![stable(&["staging"]), manual(false, 1)],
        ..exit_code()
    });
    it.upstream("staging", Some("svc-1"));
    it.run(Fetch, 2);
    it.is("WAITING_MANUAL_APPROVAL RUNTIME_OBJECT_APPLY_NEEDED");
    let left = |it: &Scenario| {
        let told = explain(
            it.state(),
            &ConcurrencyLimiter::new(limits(1, None), it.now),
            it.now,
            Surroundings::default(),
        );
        let is_told = told.causes.iter().any(|cause| {
            cause.code == CauseCode::UpstreamLeft && cause.message.contains("is at svc-0 by now")
        });
        (
            is_told,
            it.state().standing().message.contains("`staging` is at svc-0 by now, not at svc-1"),
        )
    };
    assert_eq!(left(&it), (false, false));
    it.upstream("staging", None);
    assert_eq!(left(&it), (false, false), "it may only be drifting");
    it.upstream("staging", Some("svc-0"));
    assert_eq!(left(&it), (true, true));
    it.approve("ann");
    it.run(Apply, 0);
}

#[test]
fn rule_18_that_the_place_of_a_job_cannot_be_looked_at_is_told_of_one_that_runs_too() {
    let mut it = Scenario::new(exit_code());
    let job = it.start(Fetch).job;
    it.begins(job);
    let deadline = it.state().job(job).unwrap().deadline.unwrap();
    it.until(5).is_unseen(job, Some("its cluster does not answer"));
    let told = |it: &Scenario| {
        explain(
            it.state(),
            &ConcurrencyLimiter::new(limits(1, None), it.now),
            it.now,
            Surroundings::default(),
        )
    };
    let cause = |it: &Scenario| {
        told(it).causes.into_iter().find(|cause| cause.code == CauseCode::JobRunning).unwrap()
    };
    let found = cause(&it);
    assert!(
        found.message.contains(
            "runs; its cluster does not answer; ends when the cluster answers; it is stopped if"
        ),
        "{found:?}"
    );
    assert_eq!(found.until, Some(deadline));
    let words = format!("fetch {job} waits (until {deadline}): its cluster does not answer");
    assert!(it.state().standing().message.ends_with(&words), "{}", it.state().standing().message);
    it.is_unseen(job, None);
    assert!(
        !cause(&it).message.contains("its cluster")
            && !it.state().standing().message.contains("waits (")
    );
}

fn object(status: ObjectStatus) -> FetchResult {
    let version =
        serde_json::from_value(serde_json::json!({"version": "svc-1", "active": true})).unwrap();
    let mut object: RuntimeObject =
        serde_json::from_value(serde_json::json!({"name": "web", "objectType": "Process"}))
            .unwrap();
    object.status = status;
    object.versions = vec![version];
    FetchResult { objects: Some(Ok(vec![object])), ..FetchResult::default() }
}

/// What can be in the way of a free place, with the code that says so.
fn blocked_ways() -> Vec<(Blocked, Explanation)> {
    let now = Timestamp::from_millis(START_MS);
    let told = |limits: Limits, max_concurrency: Option<u32>, of: u64, due_before_start_ms: i64| {
        let wanted = || Desired { max_concurrency, ..apply_only() };
        let mut states: Vec<State> = (0..of)
            .map(|number| instance(number, wanted(), now.plus_ms(-due_before_start_ms)))
            .collect();
        let mut lanes = ConcurrencyLimiter::new(limits, now);
        states.iter().for_each(|state| lanes.update(state, ALONE));
        grant_all(&mut lanes, &mut states, now);
        let last = states.iter().rev().find(|state| state.wants(Apply).is_some()).unwrap();
        (
            lanes.blocked(last, Apply, now),
            explain(
                last,
                &lanes,
                now,
                Surroundings { name: &|_| "web/staging".to_owned(), ..Surroundings::default() },
            ),
        )
    };
    let not_yet = Scenario::new(apply_only());
    let mut free = ConcurrencyLimiter::new(limits(1, None), now);
    free.update(not_yet.state(), ALONE);
    vec![
        told(limits(1_000, None), Some(1), 2, 0),
        told(limits(1, None), None, 2, 0),
        told(limits(1_000, None), None, 200, 1_000),
        told(
            Limits { apply: Limit { total: 8, per_runtime: None }, ..limits(8, None) },
            None,
            8,
            0,
        ),
        (
            free.blocked(not_yet.state(), Apply, now),
            explain(not_yet.state(), &free, now, Surroundings::default()),
        ),
    ]
}

#[test]
fn rule_18_explain_says_whatever_is_in_the_way_of_a_place() {
    let mut ways = std::collections::BTreeSet::new();
    for (blocked, told) in blocked_ways() {
        // Without a wildcard: a new way of being blocked does not compile before it is told here.
        let (way, code) = match &blocked {
            Blocked::Runtime { .. } => (1, "LIMIT_FULL"),
            Blocked::Daemon { .. } => (2, "LIMIT_FULL"),
            Blocked::Pace => (3, "RESTART_PACE"),
            Blocked::NotBlocked => (4, "STARTS_NOW"),
            Blocked::Share { .. } => (5, "LIMIT_FULL"),
        };
        ways.insert(way);
        assert!(
            told.causes.iter().any(|cause| cause.code.as_str() == code),
            "{blocked:?}: no {code} in {told:#?}"
        );
    }
    assert_eq!(ways.len(), 5, "every way of being blocked is met");
}

#[test]
fn rule_18_nobody_is_told_that_fetch_looks_where_there_is_none() {
    let mut it = Scenario::new(apply_only());
    it.run(Apply, 0);
    it.is("CONVERGED");
    let told = explain(
        it.state(),
        &ConcurrencyLimiter::new(limits(1, None), it.now),
        it.now,
        Surroundings::default(),
    );
    let cause = told.causes.iter().find(|cause| cause.code == CauseCode::Converged).unwrap();
    assert!(
        cause.message.contains("no fetch") && !cause.message.contains("keeps looking"),
        "{}",
        cause.message
    );
}
