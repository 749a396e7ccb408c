//! What objects and commands say of why something failed, while there is still something to wait
//! for.

use engine::desired::Desired;
use engine::event::{FetchResult, Outcome};
use schema::output::RuntimeObject;

use crate::scenario::{Apply, Fetch, GetInfo, Scenario, exit_code, structured, with_info};

/// One object: how it fares, and its versions, of which the first is active.
fn seen(status: &str, versions: &[&str]) -> FetchResult {
    let versions: Vec<_> = versions
        .iter()
        .enumerate()
        .map(|(at, version)| serde_json::json!({"version": version, "active": at == 0}))
        .collect();
    let object = serde_json::json!({
        "name": "web", "objectType": "", "status": status, "versions": versions,
        "message": "the container does not listen",
    });
    let object: RuntimeObject = serde_json::from_value(object).unwrap();
    FetchResult { objects: Some(Ok(vec![object])), ..FetchResult::default() }
}

#[test]
fn rule_05_a_version_that_could_not_be_taken_into_use_has_failed_at_once() {
    let mut it = Scenario::new(structured());
    it.run_with(Fetch, 0, seen("FAILED", &["old"]));
    it.run(Apply, 0);
    // The one that is to be replaced may be what has failed.
    it.run_with(Fetch, 0, seen("FAILED", &["old"]));
    it.is("CONVERGING VERSION_MISMATCH");
    it.until(30).run_with(Fetch, 0, seen("PENDING", &["old", "svc-1"]));
    it.is("CONVERGING VERSION_MISMATCH");
    it.until(60).run_with(Fetch, 0, seen("FAILED", &["old", "svc-1"]));
    it.is("FAILED RUNTIME_OBJECT_FAILED");
    let message = it.state().standing().message.clone();
    assert!(message.contains("runs old instead of svc-1, and reports that it failed"), "{message}");
    assert!(message.contains("the container does not listen"), "{message}");
    // What the period allows is unchanged: it polls, applies again after it, or converges.
    it.declines(Apply);
    let mut mended = it.clone();
    mended.until(90).run_with(Fetch, 0, seen("SUCCEEDED", &["svc-1", "old"]));
    mended.is("CONVERGED");
    it.until(90).run_with(Fetch, 0, seen("FAILED", &["old", "svc-1"]));
    it.until(600);
    it.start(Apply);
    it.is("CONVERGING RUNTIME_OBJECT_FAILED");
}

#[test]
fn rule_02_get_info_tells_of_objects_once_more_when_they_have_arrived() {
    let mut it = Scenario::new(Desired { get_info: with_info().get_info, ..structured() });
    it.run(GetInfo, 0);
    it.run_with(Fetch, 0, seen("SUCCEEDED", &["old"]));
    it.run(Apply, 0);
    it.run(GetInfo, 0);
    it.run_with(Fetch, 0, seen("SUCCEEDED", &["old", "svc-1"]));
    it.until(30).run_with(Fetch, 0, seen("PENDING", &["svc-1", "old"]));
    it.is("CONVERGING");
    assert!(!it.wants(GetInfo));
    it.until(60).run_with(Fetch, 0, seen("SUCCEEDED", &["svc-1"]));
    it.is("CONVERGED");
    assert_eq!(it.run(GetInfo, 0).fresh_after, Some(it.now));
    it.until(400).run_with(Fetch, 0, seen("SUCCEEDED", &["svc-1"]));
    it.run(GetInfo, 0); // by its interval, and not for that look
    assert!(!it.wants(GetInfo));
}

#[test]
fn rule_06_what_a_command_says_of_a_retryable_end_is_told_while_the_next_attempt_waits() {
    let mut it = Scenario::new(exit_code());
    it.run(Fetch, 2);
    let apply = it.start(Apply);
    let Outcome::Exited { code, started_at, ended_at, seen, info, .. } =
        it.exited(75, FetchResult::default())
    else {
        panic!("it has exited")
    };
    let said = "the stack is locked by ann".to_owned();
    it.ends(apply.job, Outcome::Exited { code, started_at, ended_at, said, seen, info });
    it.run(Fetch, 2);
    it.is("CONVERGING RUNTIME_OBJECT_APPLY_NEEDED");
    let message = it.state().standing().message.clone();
    assert!(message.contains("exit code 75: the stack is locked by ann; next"), "{message}");
}
