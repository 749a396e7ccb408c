//! Job files by which Kubernetes itself may run the command again: the job is over when its Job is, not when a try is.

use schema::report::Report;
use serde_json::{Value, json};

use super::World;
use super::ends::{ended, ended_saying, running};

/// What the file says that makes more than one Pod possible, or more than one run in a Pod.
fn files() -> [(&'static str, Value); 6] {
    let ignore = json!({"rules": [{"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget"}]}]});
    [
        ("backoffLimit", json!({"backoffLimit": 2})),
        ("no backoffLimit", json!({"backoffLimit": null})),
        ("backoffLimitPerIndex", json!({"backoffLimit": 0, "backoffLimitPerIndex": 1, "completionMode": "Indexed"})),
        ("podFailurePolicy", json!({"backoffLimit": 0, "podFailurePolicy": ignore})),
        ("podReplacementPolicy", json!({"backoffLimit": 1, "podReplacementPolicy": "TerminatingOrFailed"})),
        ("restartPolicy", json!({"template": {"spec": {"restartPolicy": "OnFailure"}}})),
    ]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn p1_a_job_that_kubernetes_may_try_again_is_over_when_its_job_is() {
    let each = files().map(|(name, file)| async move {
        let mut world = World::new().await;
        let mut spec = world.spec();
        let job = spec.command.job.as_mut().unwrap();
        if let Some(policy) = file.pointer("/template/spec/restartPolicy") {
            job["spec"]["template"]["spec"]["restartPolicy"] = policy.clone();
        } else {
            job["spec"].as_object_mut().unwrap().extend(file.as_object().unwrap().clone());
        }
        world.let_go_as(spec).await;
        world.fake.try_pod(1, running());
        assert_eq!(world.told().await, "runs", "{name}");
        let mut disrupted = ended(143, "Error");
        disrupted["conditions"] =
            json!([{"type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI", "message": "m"}]);
        world.fake.try_pod(1, disrupted);
        world.fake.try_pod(2, running());
        world.fake.try_pod(2, ended(0, "Completed"));
        world.fake.job(|job| job["status"] = json!({"succeeded": 1, "conditions": [{"type": "Complete", "status": "True"}]}));
        assert_eq!(world.end().await, "gone, exit Some(0)", "{name}");
    });
    futures::future::join_all(each).await;
}

#[tokio::test]
async fn p1_a_job_with_several_tries_does_not_end_beside_a_pod_that_still_runs() {
    let mut world = World::new().await;
    let mut spec = world.spec();
    spec.command.job.as_mut().unwrap()["spec"]["backoffLimit"] = 1.into();
    world.let_go_as(spec).await;
    world.fake.try_pod(1, running());
    assert_eq!(world.told().await, "runs");
    world.fake.try_pod(2, ended(0, "Completed"));
    world.fake.job(|job| job["status"] = json!({"succeeded": 1, "conditions": [{"type": "Complete", "status": "True"}]}));
    world.until("its Pods to be looked for", |fake| fake.count("GET", "/pods?") >= 3).await;
    assert!(world.news.try_recv().is_err(), "the first one still runs");
    world.fake.try_pod(1, ended(143, "Error"));
    assert_eq!(world.end().await, "gone, exit Some(0)");
}

/// A job with two tries, of which the first runs.
async fn twice() -> World {
    let mut world = World::new().await;
    let mut spec = world.spec();
    spec.command.job.as_mut().unwrap()["spec"]["backoffLimit"] = 1.into();
    world.let_go_as(spec).await;
    world.fake.try_pod(1, running());
    assert_eq!(world.told().await, "runs");
    world
}

#[tokio::test]
async fn p8_of_several_tries_the_job_says_how_they_ended_whatever_a_wrapper_left() {
    let failed = "its Job failed: BackoffLimitExceeded";
    for (condition, own, container, code, bad) in [
        ("Failed", 0, 9, 9, None),
        ("Failed", 0, 0, 0, Some(failed)),
        ("Failed", 3, 0, 3, None),
        ("Complete", 3, 0, 0, None),
        ("Complete", 0, 0, 0, None),
    ] {
        let mut world = twice().await;
        let report = Report { exit_code: Some(own), ..Report::default() };
        world.fake.try_pod(1, ended_saying(container, &report));
        world.fake.job(|job| {
            job["status"] = json!({"conditions": [{"type": condition, "status": "True", "reason": "BackoffLimitExceeded"}]});
        });
        let report = world.report().await;
        assert_eq!((report.exit_code, report.bad_output.as_deref()), (Some(code), bad), "{condition}, {own}, {container}");
    }
}

#[tokio::test]
async fn p3_p7_several_tries_end_when_somebody_suspends_their_job() {
    let mut world = twice().await;
    world.fake.job(|job| job["spec"]["suspend"] = true.into());
    world.fake.try_pod(1, ended(143, "Error"));
    assert_eq!(world.end().await, "gone, unknown: somebody suspended its Job, which makes no more tries");
    assert_eq!(world.fake.object("/jobs/"), None, "whoever resumed it would run it again, unseen");
}
