//! Jobs that somebody in the cluster changed, an admission webhook or a person, so that their
//! command could run again unseen.

use std::time::Duration;

use pvn_scheduler::runner::JobSpec;
use schema::id::JobId;
use serde_json::json;

use super::ends::{ended, running, running_with_tries, running_world};
use super::{World, job_id};

/// Longer than a watch needs to show what changed.
const SOON: Duration = Duration::from_secs(2);

#[tokio::test]
async fn p1_a_job_to_which_the_cluster_gave_more_tries_is_never_let_go() {
    for (change, what) in [
        (json!({"backoffLimit": 2}), "`backoffLimit` is 2"),
        (
            json!({"template": {"spec": {"restartPolicy": "OnFailure"}}}),
            "`restartPolicy` is OnFailure",
        ),
        (json!({"parallelism": 2}), "`parallelism` is 2"),
    ] {
        let mut world = World::new().await;
        world.fake.admit_jobs_with(json!({"spec": change}));
        world.runner.start(world.spec());
        let end = world.end().await;
        assert!(
            end.starts_with(&format!(
                "gone, never: the cluster changed its Job: {what}, which was not asked for"
            )),
            "{end}"
        );
        assert_eq!((world.fake.object("/jobs/"), world.fake.object("/pods/")), (None, None));
    }
}

#[tokio::test]
async fn a_job_whose_own_file_has_several_tries_may_be_given_another_number_of_them() {
    let mut world = World::new().await;
    world.fake.admit_jobs_with(json!({"spec": {"backoffLimit": 2}}));
    let mut spec = world.spec();
    spec.command.job.as_mut().unwrap()["spec"]["backoffLimit"] = 1.into();
    world.let_go_as(spec).await;
    world.fake.try_pod(1, running());
    assert_eq!(world.told().await, "runs");
}

#[tokio::test]
async fn p1_a_job_that_was_given_more_tries_while_it_ran_is_ended_before_its_end_is_told() {
    let mut world = running_world().await;
    world.fake.job(|job| job["spec"]["backoffLimit"] = 3.into());
    tokio::time::sleep(SOON).await;
    world.fake.pod(json!({}), ended(1, "Error"));
    assert_eq!(world.end().await, "gone, exit Some(1)");
    assert_eq!(
        world.fake.object("/jobs/").unwrap()["spec"]["activeDeadlineSeconds"],
        1,
        "it makes no other Pod"
    );
}

/// With an end that is stored too: a controller that lags calls a Job over some time after its Pod.
#[tokio::test]
async fn p1_an_apply_waits_for_the_job_of_an_earlier_one_that_is_not_over() {
    for is_stored in [false, true] {
        let mut world = running_world().await;
        world.fake.pod(json!({}), ended(1, "Error"));
        assert_eq!(world.end().await, "gone, exit Some(1)");
        if is_stored {
            world.runner.forget(job_id()).await;
        }
        let made = world.fake.count("PATCH", "/jobs/");
        world.runner.start(JobSpec { job: JobId::derive(&[b"another"]), ..world.spec() });
        let told = world.told().await;
        assert!(
            told.starts_with(
                "waits, surroundings: an earlier apply of this instance is not over in the \
                 cluster: the Job svc-apply-"
            ),
            "{told}"
        );
        tokio::time::sleep(SOON).await;
        assert_eq!(world.fake.count("PATCH", "/jobs/"), made);
        world.fake.job(|job| {
            job["status"] = json!({"conditions": [{"type": "Failed", "status": "True"}]})
        });
        world.fake.set_runs(true);
        assert_eq!(world.end().await, "gone, exit Some(0)");
    }
}

/// The controller of Jobs expects for 5 minutes to see the Pod that it made where that was deleted
/// before, and looks no more after that.
#[tokio::test]
async fn p6_a_job_of_an_earlier_apply_that_its_controller_never_calls_over_keeps_no_apply_waiting_once_its_pods_have_ended()
 {
    let mut world = running_world().await;
    world.fake.pod(json!({}), ended(1, "Error"));
    assert_eq!(world.end().await, "gone, exit Some(1)");
    world.fake.pod(json!({}), running());
    world.fake.job(|job| {
        job["spec"]["activeDeadlineSeconds"] = 1.into();
        job["status"] = json!({"startTime": "2026-01-01T00:00:00Z", "active": 0, "failed": 1, "terminating": 0});
    });
    let made = world.fake.count("PATCH", "/jobs/");
    world.runner.start(JobSpec { job: JobId::derive(&[b"another"]), ..world.spec() });
    let told = world.told().await;
    assert!(
        told.starts_with(
            "waits, surroundings: an earlier apply of this instance is not over in the cluster"
        ),
        "{told}"
    );
    tokio::time::sleep(SOON).await;
    assert_eq!(
        world.fake.count("PATCH", "/jobs/"),
        made,
        "whatever its Job counts, a Pod of it runs"
    );
    world.fake.set_runs(true);
    world.fake.pod(json!({}), ended(1, "Error"));
    assert_eq!(world.end().await, "gone, exit Some(0)");
}

#[tokio::test]
async fn p1_a_job_that_was_scaled_to_nothing_cannot_be_scaled_up_again_unseen() {
    for tries in [0, 1] {
        let mut world = running_with_tries(tries).await;
        world.fake.job(|job| job["spec"]["parallelism"] = 0.into());
        tokio::time::sleep(SOON).await;
        let deleted =
            json!({"deletionTimestamp": "2026-01-01T00:00:00Z", "deletionGracePeriodSeconds": 30});
        world.fake.pod(deleted, ended(143, "Error"));
        let end = tokio::time::timeout(SOON * 5, world.end()).await.expect("nothing runs any more");
        assert_eq!(
            end, "gone, unknown: somebody suspended its Job, which ends what runs",
            "{tries} more tries"
        );
        assert_eq!(world.fake.object("/jobs/"), None);
    }
}
