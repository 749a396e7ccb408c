//! A job's `timeout` counts from its Job's creation, with a wrapper or without, and ends it (promise P3).

use serde_json::json;

use super::ends::{ended, running};
use super::{World, job_id};

/// Milliseconds in which nothing that these tests wait for can be missed.
const SOON_MS: i64 = 3_000;

/// A command runs past its timeout, with a restart of the scheduler in between or not, and answers the TERM that comes then with this
/// exit code: it has timed out.
async fn check(is_restarted: bool, code: i32, reason: &str) {
    let mut world = World::new().await;
    let mut spec = world.spec();
    spec.timeout_ms = Some(SOON_MS);
    world.let_go_as(spec).await;
    world.fake.pod(json!({}), running());
    assert_eq!(world.told().await, "runs");
    if is_restarted {
        world.restart().await;
        assert_eq!(world.runner.recover(&[job_id()]).await, []);
    }
    world.until("its Job to be ended", |fake| fake.object("/jobs/").is_some_and(|job| job["spec"]["activeDeadlineSeconds"] == 1)).await;
    assert_eq!(world.fake.count("DELETE", "/jobs/"), 0, "it stays for people to look at");
    world.fake.pod(json!({"deletionTimestamp": "2026-01-01T00:00:00Z", "deletionGracePeriodSeconds": 30}), ended(code, reason));
    assert_eq!(world.end().await, format!("gone, exit Some({code}), timed out"));
}

#[tokio::test]
async fn p3_a_command_without_a_wrapper_is_ended_at_its_timeout_and_says_so() {
    check(false, 143, "Error").await;
}

#[tokio::test]
async fn p3_a_command_that_says_that_all_is_well_when_its_time_is_over_has_timed_out() {
    check(false, 0, "Completed").await;
}

#[tokio::test]
async fn p3_a_timeout_that_passed_while_the_scheduler_was_away_ends_the_command_when_it_is_back() {
    check(true, 143, "Error").await;
}

#[tokio::test]
async fn p3_a_command_that_is_seen_to_have_started_only_when_its_job_was_deleted_for_its_timeout_has_timed_out() {
    let mut world = World::new().await;
    let mut spec = world.spec();
    spec.timeout_ms = Some(SOON_MS);
    world.let_go_as(spec).await;
    // Its node is slow to say that it runs.
    world.fake.pod(json!({"finalizers": ["batch.kubernetes.io/job-tracking"]}), json!({"phase": "Pending"}));
    world.until("its Job to be deleted", |fake| fake.count("DELETE", "/jobs/") == 1).await;
    let mut pod = world.fake.object("/pods/").expect("it is not gone yet");
    (pod["metadata"]["deletionTimestamp"], pod["status"]) = (json!("2026-01-01T00:00:00Z"), ended(143, "Error"));
    world.fake.put(&format!("/api/v1/namespaces/n/pods/{}", pod["metadata"]["name"].as_str().expect("it has a name")), pod);
    assert_eq!(world.end().await, "gone, exit Some(143), timed out");
}
