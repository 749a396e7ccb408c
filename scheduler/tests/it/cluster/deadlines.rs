//! A job's `timeout` counts from its Job's creation, with a wrapper or without, and ends it (promise P3).

use serde_json::json;

use super::World;
use super::ends::{ended, running};

/// Milliseconds in which nothing that these tests wait for can be missed.
const SOON_MS: i64 = 3_000;

#[tokio::test]
async fn p3_a_command_without_a_wrapper_is_ended_at_its_timeout_and_says_so() {
    let mut world = World::new().await;
    let mut spec = world.spec();
    spec.timeout_ms = Some(SOON_MS);
    world.let_go_as(spec).await;
    world.fake.pod(json!({}), running());
    assert_eq!(world.told().await, "runs");
    world.until("its Job to be ended", |fake| fake.object("/jobs/").is_some_and(|job| job["spec"]["activeDeadlineSeconds"] == 1)).await;
    world.fake.pod(json!({"deletionTimestamp": "2026-01-01T00:00:00Z", "deletionGracePeriodSeconds": 30}), ended(143, "Error"));
    assert_eq!(world.end().await, "gone, exit Some(143), timed out");
}

#[tokio::test]
async fn p3_a_command_that_says_that_all_is_well_when_its_time_is_over_has_timed_out() {
    let mut world = World::new().await;
    let mut spec = world.spec();
    spec.timeout_ms = Some(SOON_MS);
    world.let_go_as(spec).await;
    world.fake.pod(json!({}), running());
    world.until("its Job to be ended", |fake| fake.object("/jobs/").is_some_and(|job| job["spec"]["activeDeadlineSeconds"] == 1)).await;
    world.fake.pod(json!({"deletionTimestamp": "2026-01-01T00:00:00Z", "deletionGracePeriodSeconds": 30}), ended(0, "Completed"));
    assert_eq!(world.end().await, "gone, exit Some(0), timed out");
}

#[tokio::test]
async fn p3_a_timeout_that_passed_while_the_scheduler_was_away_ends_the_command_when_it_is_back() {
    let mut world = World::new().await;
    let mut spec = world.spec();
    spec.timeout_ms = Some(SOON_MS);
    world.let_go_as(spec).await;
    world.fake.pod(json!({}), running());
    assert_eq!(world.told().await, "runs");
    world.restart().await;
    assert_eq!(world.runner.recover(&[super::job_id()]).await, []);
    world.until("its Job to be ended", |fake| fake.object("/jobs/").is_some_and(|job| job["spec"]["activeDeadlineSeconds"] == 1)).await;
    assert_eq!(world.fake.count("DELETE", "/jobs/"), 0);
    world.fake.pod(json!({"deletionTimestamp": "2026-01-01T00:00:00Z", "deletionGracePeriodSeconds": 30}), ended(143, "Error"));
    assert_eq!(world.end().await, "gone, exit Some(143), timed out");
}
