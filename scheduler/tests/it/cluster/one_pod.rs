//! A Job with one try has one Pod, whatever somebody in the cluster does to make it have another;
//! what comes to two Pods all the same is ended and is no success.

use std::time::Duration;

use axum::http::Method;
use serde_json::{Value, json};

use super::ends::{ended, ended_beside_another, running, running_with_tries, running_world};
use super::fake::{Fake, Fault};
use super::{RunnerEvent, World, check, job_id};

/// Longer than a watch needs to show what changed.
const SOON: Duration = Duration::from_secs(3);

fn asked_to_end() -> Value {
    json!({"deletionTimestamp": "2026-01-01T00:00:00Z", "deletionGracePeriodSeconds": 30})
}

/// It goes on for now.
async fn is_not_over(world: &mut World) {
    tokio::time::sleep(SOON).await;
    while let Ok(told) = world.news.try_recv() {
        assert!(!matches!(told, RunnerEvent::Ended { .. }), "something of it runs: {told:?}");
    }
}

#[tokio::test]
async fn p1_a_cluster_that_is_older_than_what_keeps_a_job_to_one_pod_gets_it_without() {
    let unknown = Fault::Say(
        500,
        "failed to create typed patch object: .spec.podReplacementPolicy: field not declared in \
         schema",
    );
    let world = check(
        &[(Method::PATCH, "/jobs/", Fault::Refuse(404)), (Method::PATCH, "/jobs/", unknown)],
        "gone, exit Some(3)",
    )
    .await;
    assert!(world.fake.object("/jobs/").unwrap()["spec"]["podReplacementPolicy"].is_null());
    let world = check(&[], "gone, exit Some(3)").await;
    assert_eq!(world.fake.object("/jobs/").unwrap()["spec"]["podReplacementPolicy"], "Failed");
}

#[tokio::test]
async fn p1_a_job_that_is_suspended_while_it_runs_is_deleted_before_somebody_can_resume_it() {
    for (tries, change) in [
        (0, json!({"suspend": true})),
        (0, json!({"parallelism": 0})),
        (1, json!({"suspend": true})),
    ] {
        let mut world = running_with_tries(tries).await;
        world.fake.job(|job| {
            job["spec"].as_object_mut().unwrap().extend(change.as_object().unwrap().clone())
        });
        world.until("its Job to be deleted", |fake| fake.object("/jobs/").is_none()).await;
        is_not_over(&mut world).await;
        world.fake.pod(asked_to_end(), ended(143, "Error"));
        let end = world.end().await;
        assert_eq!(
            end, "gone, unknown: somebody suspended its Job, which ends what runs",
            "{tries} more tries, {change}"
        );
    }
}

#[tokio::test]
async fn p1_a_job_whose_pod_is_asked_to_end_makes_no_other_one_meanwhile() {
    let mut world = running_world().await;
    world.fake.pod(asked_to_end(), running());
    world.until("its Job to be ended", Fake::is_job_told_to_end).await;
    is_not_over(&mut world).await;
    world.fake.job(|job| {
        let failed = json!({"type": "FailureTarget", "status": "True", "reason": "DeadlineExceeded", "message": "m"});
        job["status"] = json!({"conditions": [failed]});
    });
    tokio::time::sleep(SOON).await;
    world.fake.pod(asked_to_end(), ended(0, "Completed"));
    assert_eq!(
        world.end().await,
        "gone, unknown: its Pod was deleted while it ran",
        "the deadline is only how we end its Job"
    );
}

const TWICE: &str = "unknown: its Job made a second Pod";

#[tokio::test]
async fn p1_a_job_that_made_a_second_pod_is_ended_at_once_and_its_end_is_unknown() {
    // What is in the books of the first one when the second one is made.
    let runs: fn(&Fake) = |_| {};
    let ends: fn(&Fake) = |fake| fake.pod(asked_to_end(), running());
    let went: fn(&Fake) = |fake| fake.lose("/pods/");
    for (is_away, first) in [(false, runs), (false, ends), (true, runs), (true, ends), (true, went)]
    {
        let mut world = running_world().await;
        if is_away {
            world.runner.detach().await;
        }
        let is_alone = first as usize == went as usize;
        first(&world.fake);
        world.fake.try_pod(2, running());
        if is_away {
            world.restart().await;
            assert_eq!(world.runner.recover(&[job_id()]).await, []);
        }
        world.until("its Job to be deleted", |fake| fake.object("/jobs/").is_none()).await;
        if !is_alone {
            world.fake.try_pod_as(2, asked_to_end(), ended(0, "Completed"));
            is_not_over(&mut world).await;
            world.fake.pod(asked_to_end(), ended(143, "Error"));
        } else {
            is_not_over(&mut world).await;
            world.fake.try_pod_as(2, asked_to_end(), ended(0, "Completed"));
        }
        let end = world.end().await;
        // Of the first one nobody saw the end.
        let gone = if is_alone { "not gone" } else { "gone" };
        assert!(end.starts_with(&format!("{gone}, {TWICE}")), "away: {is_away}: {end}");
    }
}

/// Its end is stored, and another container of its Pod runs on.
async fn stored_beside_another() -> World {
    let mut world = running_world().await;
    world.fake.pod(json!({}), ended_beside_another(0, "Completed"));
    assert_eq!(world.end().await, "gone, exit Some(0)");
    world.runner.forget(job_id()).await;
    world
}

#[tokio::test]
async fn p1_a_job_that_could_run_again_once_its_end_is_stored_is_deleted() {
    for change in [json!({"suspend": true}), json!({"parallelism": 0})] {
        let world = stored_beside_another().await;
        tokio::time::sleep(SOON).await;
        assert!(world.fake.object("/jobs/").is_some(), "its other containers have some time");
        world.fake.job(|job| {
            job["spec"].as_object_mut().unwrap().extend(change.as_object().unwrap().clone())
        });
        world.until("its Job to be deleted", |fake| fake.object("/jobs/").is_none()).await;
    }
}

#[tokio::test]
async fn p1_a_second_pod_of_a_job_whose_end_is_stored_is_ended_with_its_job() {
    let world = stored_beside_another().await;
    world.fake.try_pod(2, running());
    world.until("its Job to be deleted", |fake| fake.object("/jobs/").is_none()).await;
}
