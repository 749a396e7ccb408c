//! Job files by which Kubernetes itself may run the command again: the job is over when its Job is,
//! not when a try is.

use schema::report::Report;
use serde_json::{Value, json};

use super::ends::{ended, ended_saying, running};
use super::fake::Fake;
use super::restarts::much_later;
use super::{World, job_id};

/// What the file says that makes more than one Pod possible, or more than one run in a Pod.
fn files() -> [(&'static str, Value); 6] {
    let ignore =
        json!({"rules": [{"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget"}]}]});
    [
        ("backoffLimit", json!({"backoffLimit": 2})),
        ("no backoffLimit", json!({"backoffLimit": null})),
        (
            "backoffLimitPerIndex",
            json!({"backoffLimit": 0, "backoffLimitPerIndex": 1, "completionMode": "Indexed"}),
        ),
        ("podFailurePolicy", json!({"backoffLimit": 0, "podFailurePolicy": ignore})),
        (
            "podReplacementPolicy",
            json!({"backoffLimit": 1, "podReplacementPolicy": "TerminatingOrFailed"}),
        ),
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
    let mut world = twice().await;
    world.fake.try_pod(2, ended(0, "Completed"));
    world.fake.job(|job| {
        job["status"] =
            json!({"succeeded": 1, "conditions": [{"type": "Complete", "status": "True"}]})
    });
    world.until("its Pods to be looked for", |fake| fake.count("GET", "/pods?") >= 3).await;
    assert!(world.news.try_recv().is_err(), "the first one still runs");
    world.fake.try_pod(1, ended(143, "Error"));
    assert_eq!(world.end().await, "gone, exit Some(0)");
}

/// A job with two tries, of which the first runs.
pub(super) async fn twice() -> World {
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
        assert_eq!(
            (report.exit_code, report.bad_output.as_deref()),
            (Some(code), bad),
            "{condition}, {own}, {container}"
        );
    }
}

#[tokio::test]
async fn p3_p7_several_tries_end_when_somebody_suspends_their_job() {
    let mut world = twice().await;
    world.fake.job(|job| job["spec"]["suspend"] = true.into());
    world.fake.try_pod(1, ended(143, "Error"));
    assert_eq!(
        world.end().await,
        "gone, unknown: somebody suspended its Job, which makes no more tries"
    );
    assert_eq!(world.fake.object("/jobs/"), None, "whoever resumed it would run it again, unseen");
}

/// A Pod that is asked to end at the second in which its container ended, or before.
fn deleted() -> Value {
    json!({"deletionTimestamp": "2026-01-01T00:00:30Z", "deletionGracePeriodSeconds": 30})
}

fn complete(job: &mut Value) {
    job["status"] = json!({"succeeded": 1, "conditions": [{"type": "Complete", "status": "True"}]});
}

fn failed(job: &mut Value, reason: &str, failed: u32) {
    job["status"] = json!({"failed": failed, "conditions": [{"type": "Failed", "status": "True", "reason": reason}]});
}

#[tokio::test]
async fn p8_a_complete_job_proves_nothing_when_its_last_pod_was_taken() {
    let said = || ended_saying(0, &Report { exit_code: Some(0), ..Report::default() });
    for status in [|| ended(0, "Completed"), said] {
        let mut world = twice().await;
        world.fake.try_pod_as(1, deleted(), status());
        world.fake.job(complete);
        assert_eq!(world.end().await, "gone, unknown: its Pod was deleted while it ran");
        let mut world = twice().await;
        let mut evicted = status();
        evicted["conditions"] = json!([{"type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI", "message": "m"}]);
        world.fake.try_pod(1, evicted);
        world.fake.job(complete);
        assert_eq!(world.end().await, "gone, unknown: its Pod was evicted: m");
        // The controller counts what ended well before it sees that somebody suspended the Job.
        let mut world = twice().await;
        world.fake.try_pod_as(1, deleted(), status());
        world.fake.job(|job| {
            complete(job);
            job["spec"]["suspend"] = true.into();
        });
        assert_eq!(
            world.end().await,
            "gone, unknown: somebody suspended its Job, which ends what runs"
        );
    }
    // What had ended before somebody took it is what it was.
    let mut world = twice().await;
    let late =
        json!({"deletionTimestamp": "2026-01-01T00:00:45Z", "deletionGracePeriodSeconds": 30});
    world.fake.try_pod_as(1, late, ended(0, "Completed"));
    world.fake.job(complete);
    assert_eq!(world.end().await, "gone, exit Some(0)");
}

/// A job with many tries of which nobody sees a container run: they are over too soon. It has this
/// long.
async fn quick(timeout_ms: Option<i64>) -> World {
    let world = World::new().await;
    let mut spec = world.spec();
    spec.timeout_ms = timeout_ms;
    spec.command.job.as_mut().unwrap()["spec"]["backoffLimit"] = 6.into();
    world.let_go_as(spec).await;
    world
}

fn unschedulable() -> Value {
    let condition = json!({"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/1 nodes"});
    json!({"phase": "Pending", "conditions": [condition]})
}

/// Its timeout ends it through its Job, which stays for people to look at.
async fn is_ended_by_its_deadline(world: &World) {
    world.until("its Job to be ended", Fake::is_job_told_to_end).await;
    assert_eq!(world.fake.count("DELETE", "/jobs/"), 0);
}

#[tokio::test]
async fn p3_quick_tries_that_all_fail_time_out_with_the_code_of_the_last_one() {
    let mut world = quick(Some(3_000)).await;
    world.fake.try_pod(1, ended(4, "Error"));
    assert_eq!(world.told().await, "runs", "it has run");
    world.fake.try_pod(2, ended(5, "Error"));
    is_ended_by_its_deadline(&world).await;
    world.fake.job(|job| failed(job, "DeadlineExceeded", 2));
    assert_eq!(world.end().await, "gone, exit Some(5), timed out");
}

#[tokio::test]
async fn p1_a_job_of_which_one_try_ran_is_never_told_as_never_started() {
    let mut world = quick(Some(3_000)).await;
    world.fake.try_pod(1, ended(4, "Error"));
    assert_eq!(world.told().await, "runs");
    world.fake.try_pod(2, unschedulable());
    is_ended_by_its_deadline(&world).await;
    world.fake.delete_pod(2);
    world.fake.job(|job| failed(job, "DeadlineExceeded", 2));
    assert_eq!(world.end().await, "gone, exit Some(4), timed out");
    // Only the Job knows of the first one.
    let mut world = quick(Some(3_000)).await;
    world.fake.job(|job| job["status"] = json!({"failed": 1}));
    world.fake.try_pod(2, unschedulable());
    is_ended_by_its_deadline(&world).await;
    world.fake.delete_pod(2);
    world.fake.job(|job| failed(job, "DeadlineExceeded", 2));
    let expected = "not gone, unknown: its last Pod did not run, and how its tries before that \
                    ended nobody saw";
    assert_eq!(world.end().await, expected);
}

#[tokio::test]
async fn p1_tries_that_never_came_to_run_are_still_told_as_never_started() {
    let mut world = quick(None).await;
    let refused = json!({"phase": "Failed", "reason": "OutOfcpu", "message": "m"});
    world.fake.try_pod(1, refused.clone());
    world.fake.try_pod(2, refused);
    world.fake.job(|job| failed(job, "BackoffLimitExceeded", 2));
    assert_eq!(world.end().await, "gone, never, surroundings: OutOfcpu: m");
}

#[tokio::test]
async fn p1_the_time_to_start_is_not_counted_once_a_try_has_run() {
    let mut world = quick(None).await;
    world.fake.try_pod(1, ended(4, "Error"));
    world.fake.try_pod(2, unschedulable());
    let before = world.fake.count("GET", "/pods");
    world.restart_at(much_later()).await;
    assert_eq!(world.runner.recover(&[job_id()]).await, []);
    world.until("its Pods to be watched", |fake| fake.count("GET", "/pods") >= before + 2).await;
    tokio::time::sleep(std::time::Duration::from_secs(1)).await;
    assert_eq!(world.fake.count("DELETE", "/jobs/"), 0);
    world.fake.try_pod(2, ended(6, "Error"));
    world.fake.job(|job| failed(job, "BackoffLimitExceeded", 2));
    assert_eq!(world.end().await, "gone, exit Some(6)");
}
