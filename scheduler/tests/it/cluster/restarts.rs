//! Jobs that are older than every constant when the scheduler comes back, and what happened to them
//! while it was away.

use axum::http::Method;
use pvn_scheduler::clock::{Clock, Manual};
use serde_json::json;

use super::ends::{ended, running, running_world};
use super::fake::{Fake, Fault};
use super::{World, job_id};

/// Longer than any job may take to start.
const LONG_MS: i64 = 3_600_000;

pub(super) fn much_later() -> Clock {
    Clock::Manual(Manual::starting_at(Clock::System.now().plus_ms(LONG_MS)))
}

#[tokio::test]
async fn p5_p6_a_job_that_runs_for_longer_than_it_may_take_to_start_is_taken_up_and_left_alone() {
    let mut world = World::new().await;
    world.let_go().await;
    world.fake.pod(json!({}), running());
    assert_eq!(world.told().await, "runs");
    world.runner.detach().await;
    let before = world.fake.count("GET", "/jobs");
    world.restart_at(much_later()).await;
    // The Jobs are listed long before the Pods.
    world.fake.fail(Method::GET, "/pods", Fault::Hold);
    assert_eq!(world.runner.recover(&[job_id()]).await, []);
    world
        .until("the Jobs to be looked at, listed and watched", |fake| {
            fake.count("GET", "/jobs") >= before + 3
        })
        .await;
    world.fake.release();
    let mut told = world.told().await;
    while told == "starts" {
        told = world.told().await;
    }
    assert_eq!(told, "runs");
    world.fake.pod(json!({}), ended(7, "Error"));
    assert_eq!(world.end().await, "gone, exit Some(7)");
    assert_eq!(world.fake.count("DELETE", "/jobs/"), 0, "nobody deletes what runs");
}

#[tokio::test]
async fn the_end_of_a_job_is_seen_although_the_cluster_does_not_let_its_pods_be_watched_any_more() {
    let mut world = running_world().await;
    world.fake.forbid("watch", "pods");
    world.fake.end_watches(0);
    world
        .until("its Pods to be listed and not to be watched", |fake| {
            fake.count("GET", "/pods?") >= 3
        })
        .await;
    world.fake.pod(json!({}), ended(7, "Error"));
    assert_eq!(world.end().await, "gone, exit Some(7)");
}

#[tokio::test]
async fn p3_a_job_that_still_has_not_started_when_the_scheduler_comes_back_is_given_up() {
    let mut world = World::new().await;
    world.let_go().await;
    let condition = json!({"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/1 nodes"});
    world.fake.pod(json!({}), json!({"phase": "Pending", "conditions": [condition]}));
    world.restart_at(much_later()).await;
    assert_eq!(world.runner.recover(&[job_id()]).await, []);
    assert_eq!(
        world.end().await,
        "gone, never, surroundings: it did not start in time: Unschedulable: 0/1 nodes"
    );
    assert_eq!(world.fake.object("/jobs/"), None);
}

#[tokio::test]
async fn p1_a_pod_that_went_while_nobody_watched_is_no_job_that_never_started() {
    // Its Job says that there was a Pod, whether somebody saw it run or not.
    for was_seen in [true, false] {
        let mut world = World::new().await;
        world.let_go().await;
        if was_seen {
            world.fake.pod(json!({}), running());
            assert_eq!(world.told().await, "runs");
        }
        world.runner.detach().await;
        world.fake.lose("/pods/");
        world.fake.job(|job| {
            let failed = json!({"type": "Failed", "status": "True", "reason": "BackoffLimitExceeded", "message": "m"});
            job["status"] = json!({"failed": 1, "conditions": [failed]});
        });
        world.restart_at(much_later()).await;
        assert_eq!(world.runner.recover(&[job_id()]).await, []);
        let end = world.end().await;
        assert!(end.starts_with("not gone, unknown: its Pod went while nobody watched"), "{end}");
    }
}

#[tokio::test]
async fn p1_a_pod_that_went_while_a_watch_was_broken_may_have_run() {
    let mut world = World::new().await;
    world.let_go().await;
    let condition = json!({"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/1 nodes"});
    world.fake.pod(json!({}), json!({"phase": "Pending", "conditions": [condition]}));
    assert!(world.told().await.starts_with("waits"));
    world.fake.lose("/pods/");
    world.fake.end_watches(4);
    let end = world.end().await;
    assert!(end.starts_with("not gone, unknown: its Pod was deleted"), "{end}");
}

#[tokio::test]
async fn p7_a_job_that_is_stopped_right_after_a_restart_is_asked_to_end() {
    let mut world = World::new().await;
    world.let_go().await;
    world.fake.pod(json!({}), running());
    assert_eq!(world.told().await, "runs");
    world.restart_at(much_later()).await;
    assert_eq!(world.runner.recover(&[job_id()]).await, []);
    assert!(world.runner.stop(job_id()));
    world.until("its Job to be ended", Fake::is_job_told_to_end).await;
    world.fake.pod(
        json!({"deletionTimestamp": "2026-01-01T00:00:00Z", "deletionGracePeriodSeconds": 30}),
        ended(143, "Error"),
    );
    assert_eq!(world.end().await, "gone, exit Some(143)");
    assert_eq!(world.fake.count("DELETE", "/jobs/"), 0);
}
