//! Objects that say that they failed, while the effect of an apply is waited for.

use engine::event::FetchResult;
use schema::output::RuntimeObject;

use crate::scenario::{Apply, Fetch, Scenario, structured};

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
