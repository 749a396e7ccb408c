//! Jobs whose time is over before they start.

use super::*;

/// A job with so little time to start meets a cluster that never lets it.
async fn check_late(set: fn(&Fake), later: fn(&Fake), expected: &str) {
    let mut world = World::new().await;
    world.fake.set_runs(false);
    set(&world.fake);
    let mut spec = world.spec();
    spec.timeout_ms = Some(5_000);
    world.runner.start(spec);
    world.until("its Job to be asked for", |fake| fake.count("PATCH", "/jobs/") >= 3).await;
    later(&world.fake);
    assert_eq!(world.end().await, expected);
    assert_eq!(world.fake.object("/jobs/"), None, "nothing of it is left");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn p3_what_cannot_start_in_time_ends_with_the_reason_and_only_what_may_pass_is_tried_again() {
    tokio::join!(
        check_late(
            |_| {},
            |fake| {
                let event = json!({
                    "apiVersion": "v1", "kind": "Event", "metadata": {"name": "e", "namespace": "n"}, "type": "Warning", "involvedObject": {},
                    "reason": "FailedCreate", "message": "pods \"p\" is forbidden: exceeded quota: few",
                });
                fake.put("/api/v1/namespaces/n/events/e", event);
            },
            "gone, never, surroundings: it did not start in time: FailedCreate: pods \"p\" is \
             forbidden: exceeded quota: few",
        ),
        check_late(
            |_| {},
            |fake| fake.pod(
                json!({}),
                status(
                    "Pending",
                    &json!({"waiting": {"reason": "ErrImagePull", "message": "x: not found"}})
                )
            ),
            "gone, never: it did not start in time: ErrImagePull: x: not found",
        ),
        check_late(
            |_| {},
            |fake| {
                let condition = json!({"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/1 nodes"});
                fake.pod(json!({}), json!({"phase": "Pending", "conditions": [condition]}));
            },
            "gone, never, surroundings: it did not start in time: Unschedulable: 0/1 nodes",
        ),
        check_late(
            |fake| {
                for _ in 0..100 {
                    fake.fail(
                        Method::PATCH,
                        "/jobs/",
                        Fault::Say(403, "jobs is forbidden: exceeded quota: few"),
                    );
                }
            },
            |_| {},
            "gone, never, surroundings: making its Job: jobs is forbidden: exceeded quota: few",
        ),
    );
}

#[tokio::test]
async fn p3_an_init_container_that_the_timeout_ended_is_not_run_again() {
    let mut world = World::new().await;
    let mut spec = world.spec();
    spec.timeout_ms = Some(5_000);
    world.let_go_as(spec).await;
    let mut all = status("Pending", &json!({"waiting": {"reason": "PodInitializing"}}));
    let state = json!({"running": {"startedAt": "2026-01-01T00:00:00Z"}});
    all["initContainerStatuses"] = json!([{"name": "prep", "image": "", "imageID": "", "ready": false, "restartCount": 0, "state": state}]);
    world.fake.pod(json!({}), all);
    assert_eq!(
        world.end().await,
        "gone, never: it ran past its timeout and was stopped while its init container `prep` ran"
    );
}
