//! Stops that come before the command runs (promise P7): at every step between the decision and the
//! Pod, and what is left of it.

use axum::http::Method;
use serde_json::json;

use super::ends::{ended, running_world};
use super::fake::{Fake, Fault};
use super::{World, job_id};

const NEVER: &str = "gone, never: it was stopped before it was started";

/// A job of which the cluster leaves the `nth` request of this path unanswered for ever, and that
/// is stopped then.
async fn check(method: Method, path: &'static str, nth: usize, expected: &str) -> World {
    let mut world = World::new().await;
    for _ in 1..nth {
        world.fake.fail(method.clone(), path, Fault::Pass);
    }
    world.fake.fail(method.clone(), path, Fault::Hang);
    world.runner.start(world.spec());
    world.until("the request that hangs", |fake| fake.count(method.as_str(), path) >= nth).await;
    assert!(world.runner.stop(job_id()));
    assert_eq!(world.end().await, expected, "stopped at request {nth} for {path}");
    world.runner.forget(job_id()).await;
    world.until("nothing to be left", |fake| fake.object("/jobs/").is_none()).await;
    assert!(world.fake.object("/pods/").is_none(), "it never ran");
    world
}

#[tokio::test]
async fn p7_a_stop_while_its_job_is_made_ends_it_at_once_and_nothing_is_let_go() {
    check(Method::PATCH, "/jobs/", 1, NEVER).await;
    check(Method::PATCH, "/namespaces/n", 1, NEVER).await;
    check(Method::PATCH, "/jobs/", 2, NEVER).await;
    check(Method::POST, "/secrets", 1, NEVER).await;
}

#[tokio::test]
async fn p7_a_stop_while_its_job_is_let_go_takes_it_away() {
    check(
        Method::PATCH,
        "/jobs/",
        3,
        "gone, never, surroundings: it was ended before a Pod of it started",
    )
    .await;
}

#[tokio::test]
async fn p7_a_stop_while_the_cluster_is_away_ends_it_soon_and_what_is_left_goes_with_the_next_start()
 {
    let mut world = World::new().await;
    world.fake.fail(Method::POST, "/secrets", Fault::Hang);
    world.runner.start(world.spec());
    world.until("its Secret to be asked for", |fake| fake.count("POST", "/secrets") >= 1).await;
    world.fake.refuse_all(Some((503, "away")));
    assert!(world.runner.stop(job_id()));
    assert_eq!(world.end().await, NEVER);
    world.runner.forget(job_id()).await;
    world.restart().await;
    world.fake.refuse_all(None);
    assert!(world.fake.object("/jobs/").is_some());
    assert_eq!(world.runner.recover(&[]).await, []);
    world.until("its Job to be taken away", |fake| fake.object("/jobs/").is_none()).await;
}

#[tokio::test]
async fn p3_p7_a_cancelled_job_whose_pod_never_starts_ends() {
    for (status, expected) in [
        (
            json!({"phase": "Pending", "conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "full"}]}),
            "gone, never, surroundings: its Job and its Pod were deleted before it had a node",
        ),
        (
            json!({"phase": "Pending", "containerStatuses": [{
                "name": "do", "image": "", "imageID": "", "ready": false, "restartCount": 0, "state": {"waiting": {"reason": "ErrImagePull"}},
            }]}),
            "gone, never, surroundings: ContainerStatusUnknown: could not be located",
        ),
    ] {
        let mut world = World::new().await;
        world.let_go().await;
        world.fake.pod(json!({}), status);
        assert!(world.told().await.starts_with("waits"));
        assert!(world.runner.stop(job_id()));
        assert_eq!(world.end().await, expected);
        assert!(world.fake.object("/jobs/").is_none());
    }
}

#[tokio::test]
async fn p7_a_stop_that_the_cluster_refuses_is_told_and_made_again_until_it_takes_it() {
    let mut world = running_world().await;
    world.fake.fail(
        Method::PATCH,
        "/jobs/",
        Fault::Say(403, "jobs.batch \"j\" is forbidden: User \"u\" cannot patch resource \"jobs\""),
    );
    assert!(world.runner.stop(job_id()));
    assert_eq!(
        world.told().await,
        "waits, surroundings: it was not asked to end: stopping its Job: jobs.batch \"j\" is \
         forbidden: User \"u\" cannot patch resource \"jobs\"; give the scheduler's account this \
         right in the cluster; ends when the cluster takes the stop, which is tried again every 5 \
         s, or it ends by itself"
    );
    world.until("its Pod to be ended", Fake::is_job_told_to_end).await;
    assert_eq!(world.told().await, "starts", "nothing is left to say");
}

#[tokio::test]
async fn p7_a_stop_of_what_has_not_begun_is_made_again_until_the_cluster_takes_it() {
    let mut world = World::new().await;
    world.let_go_as(world.spec()).await;
    world.fake.fail(Method::DELETE, "/jobs/", Fault::Refuse(403));
    assert!(world.runner.stop(job_id()));
    let told = world.told().await;
    assert!(
        told.starts_with("waits, surroundings: it was not asked to end: deleting its Job: "),
        "{told}"
    );
    let end = world.end().await;
    assert!(end.starts_with("gone, never"), "{end}");
    assert_eq!(world.fake.count("DELETE", "/jobs/"), 2);
}

#[tokio::test]
async fn p7_a_stop_that_the_cluster_did_not_take_before_a_restart_is_made_after_it() {
    for refusal in [401, 403, 503] {
        let mut world = running_world().await;
        world.fake.refuse_all(Some((refusal, "not now")));
        assert!(world.runner.stop(job_id()));
        world.until("the stop to be refused", |fake| fake.count("PATCH", "/jobs/") >= 3).await;
        world.restart().await;
        assert_eq!(world.runner.recover(&[job_id()]).await, []);
        let told = world.told().await;
        assert!(
            told.contains(": it is not known to have been asked to end: ")
                && !told.contains("somebody cancels"),
            "{told}"
        );
        world.fake.refuse_all(None);
        world.until("its Pod to be ended", Fake::is_job_told_to_end).await;
        world.fake.pod(json!({}), ended(143, "Error"));
        assert_eq!(world.end().await, "gone, exit Some(143)", "{refusal}");
    }
}
