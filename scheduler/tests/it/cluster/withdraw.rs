//! What was let go and has not begun is taken away when its gate shuts, however the cluster
//! answers, and what has begun goes on.

use std::sync::atomic::Ordering;

use axum::http::Method;
use serde_json::{Value, json};

use super::ends::{running, status};
use super::fake::Fault;
use super::{IS_OVER, World, job_id};

/// Waits until leave was asked for and refused twice: the answer to the first one was acted upon.
async fn refused_twice(world: &World) {
    world.until("leave to be refused", |_| world.daemon.refused.load(Ordering::SeqCst) >= 2).await;
}

/// A job whose gate has shut, and whose deletion is under way until somebody lets it.
async fn with_a_held_deletion() -> World {
    let world = World::new().await;
    world.fake.fail(Method::DELETE, "/jobs/", Fault::Hold);
    world.daemon.refuses_after(1, "it was paused");
    world.let_go_as(world.spec()).await;
    world.until("its deletion", |fake| fake.count("DELETE", "/jobs/") == 1).await;
    world
}

/// An init container of the user's own in this state, before a command that has not begun.
fn preparing(state: Value) -> Value {
    let mut status = status("Pending", &json!({"waiting": {"reason": "PodInitializing"}}));
    status["initContainerStatuses"] = json!([{
        "name": "migrate", "image": "", "imageID": "", "ready": false, "restartCount": 0,
        "state": state,
    }]);
    status
}

/// Its Pod waits for a node, an image or a quota, or there is none yet.
#[tokio::test]
async fn p2_a_job_that_was_let_go_and_has_not_begun_is_withdrawn_when_its_gate_shuts() {
    let waiting = json!({"waiting": {"reason": "CreateContainerConfigError"}});
    for pod in [None, Some(status("Pending", &waiting))] {
        let mut world = World::new().await;
        world.daemon.refuses_after(1, "it was paused");
        world.let_go_as(world.spec()).await;
        if let Some(pod) = pod.clone() {
            world.fake.pod(json!({}), pod);
        }
        assert_eq!(world.end().await, "gone, taken back: it was paused", "{pod:?}");
        world.until("its Job to be gone", |fake| fake.object("/jobs/").is_none()).await;
    }
}

#[tokio::test]
async fn p2_a_job_is_withdrawn_too_that_an_earlier_life_of_the_daemon_let_go() {
    let mut world = World::new().await;
    world.let_go_as(world.spec()).await;
    world.daemon.refuses_after(0, "observer mode was turned on");
    world.restart().await;
    assert_eq!(world.runner.recover(&[job_id()]).await, []);
    assert_eq!(world.end().await, "gone, taken back: observer mode was turned on");
}

#[tokio::test]
async fn p2_p8_a_withdrawal_that_the_cluster_does_not_take_is_told_and_made_again() {
    let mut world = World::new().await;
    world.fake.fail(Method::DELETE, "/jobs/", Fault::Refuse(403));
    world.fake.fail(Method::DELETE, "/jobs/", Fault::Refuse(500));
    world.daemon.refuses_after(1, "it was paused");
    world.let_go_as(world.spec()).await;
    let told = world.told().await;
    let expected = "waits, surroundings: it may not begin any more (it was paused), and is not \
                    deleted yet: deleting its Job: fault 403; give the scheduler's account this \
                    right in the cluster; ends when the cluster takes the deletion of its Job, \
                    which is tried again every 3 s, or its gates are open again";
    assert_eq!(told, expected);
    assert_eq!(world.end().await, "gone, taken back: it was paused");
    assert_eq!(world.fake.count("DELETE", "/jobs/"), 3);
}

/// What began their watch shows.
#[tokio::test]
async fn p2_p8_a_job_is_withdrawn_whose_pods_are_not_listed_as_long_as_they_are_watched() {
    let waiting = json!({"waiting": {"reason": "CreateContainerConfigError"}});
    for fault in [Fault::Refuse(500), Fault::Refuse(403)] {
        let mut world = World::new().await;
        world.let_go_as(world.spec()).await;
        world.fake.pod(json!({}), status("Pending", &waiting));
        (0..200).for_each(|_| world.fake.fail(Method::GET, "/pods", fault));
        world.daemon.refuses_after(0, "it was paused");
        assert_eq!(world.end().await, "gone, taken back: it was paused", "{fault:?}");
    }
}

/// As a proxy that holds the request until the gate is open again and the command runs.
#[tokio::test]
async fn a_withdrawal_that_is_carried_out_late_ends_nothing_that_has_begun() {
    let mut world = with_a_held_deletion().await;
    world.daemon.refuses_after(usize::MAX, "");
    world.fake.set_runs(true);
    world.fake.job(|job| job["status"]["ready"] = 1.into());
    world.fake.release();
    assert_eq!(world.end().await, "gone, exit Some(0)");
}

#[tokio::test]
async fn a_withdrawal_that_nobody_answered_is_one_when_it_was_carried_out() {
    let mut world = World::new().await;
    world.fake.fail(Method::DELETE, "/jobs/", Fault::DoneButTimedOut);
    world.daemon.refuses_after(1, "it was paused");
    world.let_go_as(world.spec()).await;
    assert_eq!(world.end().await, "gone, taken back: it was paused");
}

#[tokio::test]
async fn what_was_to_be_withdrawn_goes_on_when_its_gates_are_open_again() {
    let mut world = World::new().await;
    world.fake.fail(Method::DELETE, "/jobs/", Fault::Refuse(403));
    world.daemon.refuses_after(1, "it was paused");
    world.let_go_as(world.spec()).await;
    let told = world.told().await;
    assert!(told.starts_with("waits, surroundings: it may not begin any more"), "{told}");
    world.daemon.refuses_after(usize::MAX, "");
    world.fake.set_runs(true);
    assert_eq!(world.end().await, "gone, exit Some(0)");
}

/// Neither by its command nor by an init container of the user's own, also where the watch has not
/// shown that yet.
#[tokio::test]
async fn what_has_begun_is_not_withdrawn() {
    let began = preparing(json!({"running": {"startedAt": "2026-01-01T00:00:00Z"}}));
    for (status, is_asked) in [(running(), false), (began, true)] {
        let world = World::new().await;
        world.let_go_as(world.spec()).await;
        world.fake.pod(json!({}), status);
        world.daemon.refuses_after(0, "it was paused");
        if is_asked {
            refused_twice(&world).await;
        } else {
            // Longer than it takes to ask, and no event tells that nobody does.
            tokio::time::sleep(std::time::Duration::from_secs(8)).await;
        }
        assert_eq!(world.fake.count("DELETE", ""), 0);
        assert!(!world.fake.is_job_told_to_end());
    }
}

/// Lets a job go whose Pod has two containers, both of which wait by its status, while one of them
/// runs by the events of its node.
async fn let_go_with_two(world: &World, running: &str) {
    world.let_go_as(world.spec()).await;
    let containers = json!([{"name": "do"}, {"name": "later"}]);
    let creating = json!({"waiting": {"reason": "ContainerCreating"}});
    let spec = json!({"nodeName": "n", "containers": containers});
    world.fake.pod_as(json!({}), spec, status("Pending", &creating));
    let about =
        json!({"kind": "Pod", "uid": "p", "fieldPath": format!("spec.containers{{{running}}}")});
    let event = json!({
        "apiVersion": "v1", "kind": "Event", "metadata": {"name": running, "namespace": "n"}, "type": "Normal",
        "reason": "Started", "message": "Started container", "involvedObject": about, "firstTimestamp": "2026-01-01T00:00:00Z",
    });
    world.fake.put(&format!("/api/v1/namespaces/n/events/{running}"), event);
}

/// Its node writes no status while it fetches the image of a later container, or runs a hook.
#[tokio::test]
async fn what_runs_by_the_events_of_its_node_is_not_withdrawn() {
    let mut world = World::new().await;
    let_go_with_two(&world, "do").await;
    world.daemon.refuses_after(0, "it was paused");
    assert_eq!(world.told().await, "runs");
    assert_eq!(world.fake.count("DELETE", ""), 0);
}

/// That another container runs, or that nobody may look, says nothing of the command.
#[tokio::test]
async fn p2_what_no_event_says_runs_is_withdrawn() {
    for may_list in [true, false] {
        let mut world = World::new().await;
        if !may_list {
            (0..200).for_each(|_| world.fake.fail(Method::GET, "/events", Fault::Refuse(403)));
        }
        let_go_with_two(&world, "later").await;
        world.daemon.refuses_after(0, "it was paused");
        assert_eq!(world.end().await, "gone, taken back: it was paused", "{may_list}");
    }
}

/// Without a gate that shuts it is told that it runs, not that it waits.
#[tokio::test]
async fn what_runs_by_the_events_of_its_node_is_told_to_run() {
    let mut world = World::new().await;
    let_go_with_two(&world, "do").await;
    assert_eq!(world.told().await, "runs");
}

/// As a gateway does that answers in the cluster's place.
#[tokio::test]
async fn p2_p8_a_job_that_is_not_there_by_its_deletion_and_is_shown_is_deleted_again() {
    let mut world = World::new().await;
    (0..2).for_each(|_| world.fake.fail(Method::DELETE, "/jobs/", Fault::Refuse(404)));
    world.daemon.refuses_after(1, "it was paused");
    world.let_go_as(world.spec()).await;
    let told = world.told().await;
    let expected = "is not deleted yet: deleting its Job: fault 404; but the cluster shows it";
    assert!(told.contains(expected), "{told}");
    assert_eq!(world.end().await, "gone, taken back: it was paused");
    assert_eq!(world.fake.count("DELETE", "/jobs/"), 3);
}

/// Its report came before its Pod was seen to run, and ends the wait for it.
#[tokio::test]
async fn what_is_over_already_is_not_withdrawn() {
    let world = World::new().await;
    world.let_go_as(world.spec()).await;
    world.daemon.refuses_after(0, IS_OVER);
    refused_twice(&world).await;
    assert_eq!(world.fake.count("DELETE", ""), 0);
}

/// A node tells late what it has begun.
#[tokio::test]
async fn what_an_init_container_began_while_it_was_withdrawn_is_not_told_as_never() {
    let mut world = with_a_held_deletion().await;
    let ended = json!({"exitCode": 143, "reason": "Error", "startedAt": "2026-01-01T00:00:00Z", "finishedAt": "2026-01-01T00:00:01Z"});
    world.fake.pod(json!({}), preparing(json!({"terminated": ended})));
    world.fake.release();
    let expected = "gone, never: its init container `migrate` had begun when it was withdrawn (it \
                    was paused), and may have done something";
    assert_eq!(world.end().await, expected);
}

/// Nobody knows whether a deletion that is not answered is carried out yet: what goes on is made
/// another version of the Job than it names.
#[tokio::test]
async fn a_withdrawal_that_nobody_has_answered_is_made_void_when_the_gates_are_open_again() {
    let mut world = World::new().await;
    // It is made again at once.
    (0..2).for_each(|_| world.fake.fail(Method::DELETE, "/jobs/", Fault::Hang));
    world.daemon.refuses_after(1, "it was paused");
    world.let_go_as(world.spec()).await;
    let told = world.told().await;
    assert!(told.contains("deleting its Job: the cluster has not answered for 5 s"), "{told}");
    let version = |fake: &super::fake::Fake| {
        fake.object("/jobs/").expect("it is there")["metadata"]["resourceVersion"].clone()
    };
    let named = version(&world.fake);
    world.daemon.refuses_after(usize::MAX, "");
    world.until("it to be another one", |fake| version(fake) != named).await;
    world.fake.set_runs(true);
    assert_eq!(world.end().await, "gone, exit Some(0)");
}

/// By somebody who changes the Job all the time, or by an API server that takes a finalizer away as
/// it deletes.
#[tokio::test]
async fn p2_p8_a_job_is_withdrawn_that_is_never_as_it_was_looked_at() {
    for times in [2, 4] {
        let mut world = World::new().await;
        let conflict = Fault::Refuse(409);
        (0..times).for_each(|_| world.fake.fail(Method::DELETE, "/jobs/", conflict));
        world.daemon.refuses_after(1, "it was paused");
        world.let_go_as(world.spec()).await;
        if times > 2 {
            let told = world.told().await;
            assert!(told.contains("is not deleted yet: deleting its Job: fault 409"), "{told}");
        }
        assert_eq!(world.end().await, "gone, taken back: it was paused");
        assert_eq!(world.fake.count("DELETE", "/jobs/"), times + 1);
    }
}
