//! Pods whose Job was deleted with `kubectl delete --cascade=orphan`: they run on, without an
//! owner, and are the job's all the same.

use serde_json::{Value, json};

use super::ends::{ended, ended_ago, running};
use super::{World, job_id};
use crate::wait;

/// Longer than a job is listened to before its time ends it, after a restart.
const HEARD_OUT: std::time::Duration = std::time::Duration::from_secs(90);

/// Longer than a watch needs to show what changed.
const SOON: std::time::Duration = std::time::Duration::from_secs(3);

/// A job whose command runs, with this much time.
async fn running_world(timeout_ms: Option<i64>) -> World {
    let mut world = World::new().await;
    let mut spec = world.spec();
    spec.timeout_ms = timeout_ms;
    world.let_go_as(spec).await;
    world.fake.pod(json!({}), running());
    assert_eq!(world.told().await, "runs");
    world
}

/// Changes the only Pod.
fn pod(world: &World, change: impl FnOnce(&mut Value)) {
    let mut pod = world.fake.object("/pods/").expect("there is a Pod");
    change(&mut pod);
    let name = pod["metadata"]["name"].as_str().unwrap().to_owned();
    world.fake.put(&format!("/api/v1/namespaces/n/pods/{name}"), pod);
}

/// Takes the Job away and leaves its Pod.
fn orphan(world: &World) {
    let uid = world.fake.object("/jobs/").expect("a Job was made")["metadata"]["uid"].clone();
    pod(world, |pod| {
        pod["metadata"]["ownerReferences"] = Value::Null;
        pod["metadata"]["labels"]["batch.kubernetes.io/controller-uid"] = uid;
    });
    world.fake.delete("/jobs/");
}

/// Orphans the Pod, in front of the scheduler or while it is away.
async fn orphan_when(world: &mut World, is_away: bool) {
    if !is_away {
        return orphan(world);
    }
    world.runner.detach().await;
    orphan(world);
    world.restart().await;
    assert_eq!(world.runner.recover(&[job_id()]).await, []);
}

/// The grace with which the Pod was asked to end.
async fn asked_to_end(world: &World) -> Value {
    let grace = |fake: &super::Fake| {
        fake.object("/pods/").map(|pod| pod["metadata"]["deletionGracePeriodSeconds"].clone())
    };
    let asked = wait::until(HEARD_OUT, async || {
        grace(&world.fake).is_some_and(|grace| !grace.is_null()).then_some(())
    })
    .await;
    asked.expect("its Pod is asked to end");
    grace(&world.fake).unwrap()
}

#[tokio::test]
async fn p1_p5_an_orphan_runs_as_its_job_and_its_end_is_the_jobs() {
    for is_away in [false, true] {
        let mut world = running_world(None).await;
        orphan_when(&mut world, is_away).await;
        tokio::time::sleep(SOON).await;
        while let Ok(told) = world.news.try_recv() {
            assert!(
                !matches!(told, super::RunnerEvent::Ended { .. }),
                "it runs; away: {is_away}; {told:?}"
            );
        }
        // The watch has listed since; a copy by hand of the Job's manifest says nothing.
        let copy = json!({"name": "z", "namespace": "n", "uid": "c", "labels": {"pvn.dev/job": job_id().to_string()}});
        let copy = json!({"apiVersion": "v1", "kind": "Pod", "metadata": copy, "status": ended(9, "Error")});
        world.fake.put("/api/v1/namespaces/n/pods/z", copy);
        pod(&world, |pod| pod["status"] = ended(0, "Completed"));
        assert_eq!(world.end().await, "gone, exit Some(0)", "away: {is_away}");
    }
}

#[tokio::test]
async fn p3_an_orphan_is_ended_at_its_timeout() {
    for is_away in [false, true] {
        let mut world = running_world(Some(6_000)).await;
        orphan_when(&mut world, is_away).await;
        assert_eq!(asked_to_end(&world).await, 30, "with the grace of its own");
        pod(&world, |pod| pod["status"] = ended_ago(143, "Error", 0));
        assert_eq!(world.end().await, "gone, exit Some(143), timed out", "away: {is_away}");
    }
}

#[tokio::test]
async fn p7_an_orphan_is_asked_to_end_by_a_stop_and_killed_by_the_second_one() {
    let mut world = running_world(None).await;
    orphan(&world);
    assert!(world.runner.stop(job_id()));
    assert_eq!(asked_to_end(&world).await, 30);
    assert!(world.runner.stop(job_id()));
    let is_killed = |fake: &super::Fake| {
        fake.object("/pods/").is_some_and(|pod| pod["metadata"]["deletionGracePeriodSeconds"] == 1)
    };
    world.until("its Pod to be killed", is_killed).await;
    pod(&world, |pod| pod["status"] = ended(137, "Error"));
    assert_eq!(world.end().await, "gone, exit Some(137)");
}

#[tokio::test]
async fn p3_an_orphan_that_does_not_start_is_deleted() {
    let mut world = World::new().await;
    let mut spec = world.spec();
    spec.timeout_ms = Some(5_000);
    world.let_go_as(spec).await;
    let condition = json!({"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/1 nodes"});
    world.fake.pod(json!({}), json!({"phase": "Pending", "conditions": [condition]}));
    orphan(&world);
    asked_to_end(&world).await;
    world.fake.delete("/pods/");
    assert_eq!(
        world.end().await,
        "gone, never, surroundings: it did not start in time: Unschedulable: 0/1 nodes"
    );
}

/// Takes from the only Pod what says whose it is, but for our own label.
fn take_its_owner(world: &World) {
    pod(world, |pod| {
        pod["metadata"]["ownerReferences"] = Value::Null;
        pod["metadata"]["labels"]
            .as_object_mut()
            .unwrap()
            .retain(|label, _| label.starts_with("pvn.dev/"));
    });
}

#[tokio::test]
async fn p1_an_orphan_without_the_clusters_labels_is_known_again_by_its_uid() {
    let mut world = running_world(None).await;
    world.runner.detach().await;
    take_its_owner(&world);
    world.fake.delete("/jobs/");
    world.restart().await;
    assert_eq!(world.runner.recover(&[job_id()]).await, []);
    tokio::time::sleep(SOON).await;
    pod(&world, |pod| pod["status"] = ended(0, "Completed"));
    assert_eq!(world.end().await, "gone, exit Some(0)");
}

#[tokio::test]
async fn p1_a_pod_without_owner_that_may_be_the_jobs_keeps_it_from_being_gone() {
    let expected = "its Job was deleted while nobody watched; the Pod svc-apply-";
    for (status, is_named) in [(running(), true), (ended(0, "Completed"), false)] {
        // Nobody has seen its Pod before.
        let mut world = World::new().await;
        world.let_go().await;
        world.runner.detach().await;
        world.fake.pod(json!({}), status);
        take_its_owner(&world);
        world.fake.delete("/jobs/");
        world.restart().await;
        assert_eq!(world.runner.recover(&[job_id()]).await, []);
        let end = world.end().await;
        assert!(
            end.starts_with("not gone, unknown: its Job was deleted while nobody watched"),
            "{end}"
        );
        assert_eq!(end.contains(expected), is_named, "{end}");
        assert!(
            world.fake.object("/pods/").unwrap()["metadata"]["deletionTimestamp"].is_null(),
            "it may be a copy"
        );
    }
}

#[tokio::test]
async fn p1_nor_is_a_job_gone_that_was_deleted_in_front_of_the_scheduler() {
    let mut world = World::new().await;
    world.let_go().await;
    let others = json!({"name": "z", "namespace": "n", "uid": "c", "labels": {"pvn.dev/job": job_id().to_string()}});
    let others =
        json!({"apiVersion": "v1", "kind": "Pod", "metadata": others, "status": running()});
    world.fake.put("/api/v1/namespaces/n/pods/z", others);
    world.fake.delete("/jobs/");
    let end = world.end().await;
    assert!(
        end.starts_with(
            "not gone, unknown: its Job was deleted, and nobody saw a Pod of it; the Pod z"
        ),
        "{end}"
    );
}
