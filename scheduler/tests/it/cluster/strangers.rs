//! Jobs on a cluster that the database does not know, because it is an older copy or a restored
//! one.

use axum::http::Method;
use pvn_scheduler::clock::Clock;
use pvn_scheduler::runner::JobSpec;
use schema::id::JobId;
use schema::status::JobKind;
use serde_json::{Value, json};

use super::ends::{ended, running, running_world};
use super::fake::Fault;
use super::{World, job_id};

const OTHER: &str = "/apis/batch/v1/namespaces/n/jobs/other";

fn other_id() -> JobId {
    JobId::derive(&[b"another"])
}

/// An apply of a channel that somebody let go.
fn other(channel: &str) -> Value {
    let labels = json!({
        "pvn.dev/job": other_id().to_string(), "pvn.dev/kind": JobKind::Apply.to_string(), "pvn.dev/application": "app", "pvn.dev/service": "svc",
        "pvn.dev/channel": channel,
    });
    let spec = json!({"suspend": false, "template": {"spec": {"containers": []}}});
    json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "other", "namespace": "n", "labels": labels}, "spec": spec})
}

/// The end of a Job, as the cluster tells it.
fn over(mut job: Value) -> Value {
    job["status"] = json!({"conditions": [{"type": "Complete", "status": "True"}]});
    job
}

const HELD: &str = "gone, never, surroundings: an apply of this instance runs already that nobody \
                    here follows (its end was told as unknown, the database does not know it, or \
                    another scheduler runs it in the same namespace): the Job other in the \
                    namespace n. It is waited for; who does not want that deletes it and what \
                    runs of it with `kubectl delete job other -n n --cascade=foreground`";

#[tokio::test]
async fn p1_no_apply_is_made_beside_one_of_its_instance_that_the_database_does_not_know() {
    let mut world = World::new().await;
    world.fake.put(OTHER, other("c"));
    world.runner.start(world.spec());
    assert_eq!(world.end().await, HELD);
    assert_eq!(world.fake.count("PATCH", "/jobs/"), 0);
    assert_eq!(world.fake.count("POST", "/secrets"), 0);

    for beside in [over(other("c")), other("c2")] {
        let mut world = World::new().await;
        world.fake.put(OTHER, beside);
        world.runner.start(world.spec());
        assert_eq!(world.end().await, "gone, exit Some(0)");
    }
}

/// It was seen to be over, and forgotten, between the two looks at what is there.
#[tokio::test]
async fn an_earlier_apply_that_is_forgotten_while_the_cluster_answers_is_no_stranger() {
    let mut world = running_world().await;
    world.fake.pod(json!({}), ended(0, "Completed"));
    assert_eq!(world.end().await, "gone, exit Some(0)");
    world.fake.fail(Method::GET, "/pods", Fault::Hold);
    world.fake.set_runs(true);
    let before = world.fake.count("GET", "/pods");
    world.runner.start(JobSpec { job: other_id(), ..world.spec() });
    world.until("its second look", |fake| fake.count("GET", "/pods") > before).await;
    world.fake.job(|job| *job = over(job.take()));
    world.runner.forget(job_id()).await;
    let runner = world.runner.clone();
    world.until("it to be forgotten", |_| !runner.recorded().contains(&job_id())).await;
    world.fake.release();
    assert_eq!(world.end().await, "gone, exit Some(0)");
}

/// That its Job was made so many seconds ago, and nobody has let it go.
fn made_ago(seconds: i64) -> Value {
    let mut made = other("c");
    made["spec"]["suspend"] = true.into();
    made["metadata"]["creationTimestamp"] =
        Clock::System.now().plus_ms(-1000 * seconds).to_string().into();
    made
}

/// Two that look before either has made its Job find nobody; each finds the other's afterwards.
#[tokio::test]
async fn p1_of_two_schedulers_that_make_an_apply_at_once_none_runs_beside_the_other() {
    let mut world = World::new().await;
    world.fake.put(OTHER, made_ago(1));
    world.runner.start(world.spec());
    let told = world.end().await;
    let expected = "gone, never, surroundings: another scheduler makes an apply of this instance \
                    in the same namespace at the same moment, and this one gives way: the Job \
                    other in the namespace n.";
    assert!(told.starts_with(expected), "{told}");
    assert_eq!(world.fake.object("/pods/"), None, "nothing ran");

    // What nobody lets go any more holds nobody up.
    let mut world = World::new().await;
    world.fake.put(OTHER, made_ago(3600));
    world.runner.start(world.spec());
    assert_eq!(world.end().await, "gone, exit Some(0)");
}

const POD: &str = "/api/v1/namespaces/n/pods/other-x";

/// A Pod of that apply whose Job is gone, as `kubectl delete job` leaves it for its grace, and
/// `--cascade=orphan` for good.
fn left(channel: &str, more: Value, phase: &str) -> Value {
    let mut metadata = other(channel)["metadata"].take();
    (metadata["name"], metadata["uid"]) = ("other-x".into(), "o".into());
    metadata.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "status": {"phase": phase}})
}

#[tokio::test]
async fn p1_no_apply_is_made_beside_the_pod_of_one_whose_job_was_deleted() {
    let terminating =
        json!({"deletionTimestamp": "2026-01-01T00:00:30Z", "deletionGracePeriodSeconds": 30});
    for (more, phase) in [(terminating, "Running"), (json!({}), "Running"), (json!({}), "Pending")]
    {
        let mut world = World::new().await;
        world.fake.put(POD, left("c", more, phase));
        world.runner.start(world.spec());
        let told = world.end().await;
        let expected = "the Pod other-x in the namespace n, which no Job that runs has. It is \
                        waited for; who does not want that ends it with `kubectl delete pod \
                        other-x -n n`";
        assert!(
            told.starts_with("gone, never, surroundings: an apply of this instance runs already")
                && told.ends_with(expected),
            "{told}"
        );
        assert_eq!(
            (world.fake.count("PATCH", "/jobs/"), world.fake.count("DELETE", "/pods")),
            (0, 0)
        );
    }
    for beside in [
        left("c", json!({}), "Succeeded"),
        left("c", json!({}), "Failed"),
        left("c2", json!({}), "Running"),
    ] {
        let mut world = World::new().await;
        world.fake.put(POD, beside);
        world.runner.start(world.spec());
        assert_eq!(world.end().await, "gone, exit Some(0)");
    }
}

#[tokio::test]
async fn p1_p6_a_job_that_an_older_copy_of_the_database_does_not_know_goes_on_and_holds_its_instance()
 {
    let mut world = World::new().await;
    world.let_go().await;
    world.fake.pod(json!({}), running());
    assert_eq!(world.told().await, "runs");
    world.restart().await;
    let asked = world.fake.count("GET", "/jobs/");
    let changed = world.fake.count("PATCH", "/jobs/");
    world.runner.spare(world.runner.recorded());
    assert_eq!(world.runner.recover(&[]).await, []);
    world.until("it to be looked for", |fake| fake.count("GET", "/jobs/") > asked).await;

    let next = JobSpec { job: other_id(), ..world.spec() };
    world.runner.start(next);
    let end = world.end().await;
    assert!(
        end.starts_with("gone, never, surroundings: an apply of this instance runs already"),
        "{end}"
    );
    assert_eq!(
        (world.fake.count("PATCH", "/jobs/"), world.fake.count("DELETE", "/jobs/")),
        (changed, 0)
    );

    world.fake.job(|job| *job = over(job.take()));
    world.restart().await;
    world.runner.spare(vec![job_id()]);
    world.runner.recover(&[]).await;
    let runner = world.runner.clone();
    world.until("it to be forgotten", |_| !runner.recorded().contains(&job_id())).await;
}

#[tokio::test]
async fn a_job_that_an_older_copy_of_the_database_decides_again_is_the_one_that_runs() {
    let mut world = World::new().await;
    world.let_go().await;
    world.restart().await;
    world.runner.spare(world.runner.recorded());
    world.runner.recover(&[]).await;
    let changed = world.fake.count("PATCH", "/jobs/");
    world.runner.start(world.spec());
    world.fake.exit_with(9);
    world.fake.set_runs(true);
    assert_eq!(world.end().await, "gone, exit Some(9)");
    assert_eq!(world.fake.count("PATCH", "/jobs/"), changed);
    assert!(world.runner.recorded().contains(&job_id()));
}
