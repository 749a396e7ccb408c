//! What keeps a job from starting is told in the cluster's own words, with what would end it, and
//! told as over.

use axum::http::Method;
use serde_json::{Value, json};

use super::World;
use super::fake::{Fake, Fault};

/// A name of the state, how the cluster gets there, and what is told.
type Row = (&'static str, fn(&Fake), &'static str);

fn condition(fake: &Fake, reason: &str, message: &str) {
    let condition =
        json!({"type": "PodScheduled", "status": "False", "reason": reason, "message": message});
    fake.pod(json!({}), json!({"phase": "Pending", "conditions": [condition]}));
}

fn container(state: &Value) -> Value {
    json!({"name": "do", "image": "", "imageID": "", "ready": false, "restartCount": 0, "state": state})
}

fn waiting(fake: &Fake, reason: &str, message: &str) {
    let state = json!({"waiting": {"reason": reason, "message": message}});
    fake.pod(json!({}), json!({"phase": "Pending", "containerStatuses": [container(&state)]}));
}

fn event(fake: &Fake, reason: &str, message: &str) {
    let event = json!({
        "apiVersion": "v1", "kind": "Event", "metadata": {"name": "e", "namespace": "n"}, "type": "Warning",
        "reason": reason, "message": message, "involvedObject": {}, "lastTimestamp": "2026-01-01T00:00:00Z",
    });
    fake.put("/api/v1/namespaces/n/events/e", event);
}

fn creating(fake: &Fake, reason: &str, message: &str) {
    event(fake, reason, message);
    waiting(fake, "ContainerCreating", "");
}

/// Every state in which a Job that was let go can wait.
const ROWS: &[Row] = &[
    (
        "no room",
        |fake| condition(fake, "Unschedulable", "0/1 nodes are available: 1 Insufficient cpu."),
        "waits, surroundings: Unschedulable: 0/1 nodes are available: 1 Insufficient cpu.; ends \
         when a node has room for it",
    ),
    (
        "a gate",
        |fake| condition(fake, "SchedulingGated", "gated"),
        "waits, surroundings: SchedulingGated: gated; ends when its scheduling gates are removed",
    ),
    (
        "no image",
        |fake| waiting(fake, "ErrImagePull", "x: not found"),
        "waits: ErrImagePull: x: not found; ends when the image can be pulled: look at its name, \
         the registry and the pull secret",
    ),
    (
        "still no image",
        |fake| waiting(fake, "ImagePullBackOff", "Back-off pulling image x"),
        "waits: ImagePullBackOff: Back-off pulling image x; ends when the image can be pulled: \
         look at its name, the registry and the pull secret",
    ),
    (
        "no such name",
        |fake| waiting(fake, "InvalidImageName", "X"),
        "waits: InvalidImageName: X; ends when a release with a legal image name takes its place",
    ),
    (
        "never pulled",
        |fake| waiting(fake, "ErrImageNeverPull", "x"),
        "waits: ErrImageNeverPull: x; ends when the image is on the node, from which alone it may \
         be taken",
    ),
    (
        "no such Secret",
        |fake| waiting(fake, "CreateContainerConfigError", "secret \"s\" not found"),
        "waits: CreateContainerConfigError: secret \"s\" not found; ends when the Secret or \
         ConfigMap that it names is there, with that key",
    ),
    (
        "root in the image",
        |fake| {
            waiting(
                fake,
                "CreateContainerConfigError",
                "container has runAsNonRoot and image will run as root",
            )
        },
        "waits: CreateContainerConfigError: container has runAsNonRoot and image will run as \
         root; ends when its image has a user by number, or `runAsUser` in its `securityContext` \
         says one",
    ),
    (
        "the node cannot",
        |fake| waiting(fake, "CreateContainerError", "no device"),
        "waits: CreateContainerError: no device; ends when its node can start its container",
    ),
    (
        "no image of the wrapper",
        |fake| {
            let state = json!({"waiting": {"reason": "ErrImagePull", "message": "w"}});
            fake.pod(
                json!({}),
                json!({"phase": "Pending", "initContainerStatuses": [container(&state)]}),
            );
        },
        "waits: ErrImagePull: w; ends when the image can be pulled: look at its name, the \
         registry and the pull secret",
    ),
    (
        "no volume",
        |fake| creating(fake, "FailedMount", "configmap \"c\" not found"),
        "waits: FailedMount: configmap \"c\" not found; ends when the volume can be mounted: make \
         what it names",
    ),
    (
        "no sandbox",
        |fake| creating(fake, "FailedCreatePodSandBox", "no network"),
        "waits, surroundings: FailedCreatePodSandBox: no network; ends when its node can start \
         Pods again",
    ),
    (
        "quota",
        |fake| event(fake, "FailedCreate", "pods \"p\" is forbidden: exceeded quota: few"),
        "waits, surroundings: FailedCreate: pods \"p\" is forbidden: exceeded quota: few; ends \
         when other Pods end or the quota is raised",
    ),
    (
        "policy",
        |fake| event(fake, "FailedCreate", "pods \"p\" is forbidden: violates PodSecurity"),
        "waits: FailedCreate: pods \"p\" is forbidden: violates PodSecurity; ends when the \
         namespace's policy admits its Pod",
    ),
    (
        "no service account",
        |fake| event(fake, "FailedCreate", "serviceaccount \"a\" not found"),
        "waits: FailedCreate: serviceaccount \"a\" not found; ends when what it names is made",
    ),
    (
        "suspended",
        |fake| {
            let mut job = fake.object("/jobs/").unwrap();
            job["spec"]["suspend"] = true.into();
            let path = format!(
                "/apis/batch/v1/namespaces/n/jobs/{}",
                job["metadata"]["name"].as_str().unwrap()
            );
            fake.put(&path, job);
        },
        "waits, surroundings: Suspended: its Job is suspended by somebody in the cluster; ends \
         when somebody resumes its Job",
    ),
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rule_13_every_state_in_which_a_job_waits_is_told_with_what_ends_it_and_when_it_is_over() {
    let rows = ROWS.iter().map(|(state, make, expected)| async move {
        let mut world = World::new().await;
        world.let_go().await;
        make(&world.fake);
        assert_eq!(world.told().await, *expected, "{state}");
        world.fake.pod(
            json!({}),
            json!({"phase": "Running", "containerStatuses": [container(&json!({"running": {}}))]}),
        );
        assert_eq!(world.told().await, "runs", "{state}");
    });
    futures::future::join_all(rows).await;
}

#[tokio::test]
async fn rule_13_a_cluster_that_is_asked_again_is_told_as_a_wait() {
    for (fault, expected) in [
        (
            Fault::Say(403, "jobs is forbidden: exceeded quota: few"),
            "waits, surroundings: making its Job: jobs is forbidden: exceeded quota: few; ends \
             when other Pods end or the quota is raised",
        ),
        (
            Fault::Say(
                403,
                "secrets is forbidden: exceeded quota: few, requested: count/secrets=1",
            ),
            "waits, surroundings: making its Job: secrets is forbidden: exceeded quota: few, \
             requested: count/secrets=1; ends when older Jobs are removed, which their Secrets go \
             with, or the quota is raised",
        ),
        (
            Fault::Say(403, "secrets is forbidden: exceeded quota: few, requested: secrets=1"),
            "waits, surroundings: making its Job: secrets is forbidden: exceeded quota: few, \
             requested: secrets=1; ends when older Jobs are removed, which their Secrets go with, \
             or the quota is raised",
        ),
        (
            Fault::Say(500, "no leader"),
            "waits, surroundings: making its Job: no leader; ends when the cluster answers and \
             takes it",
        ),
    ] {
        let mut world = World::new().await;
        world.fake.fail(Method::PATCH, "/jobs/", fault);
        world.runner.start(world.spec());
        assert_eq!(world.told().await, expected);
        assert_eq!(world.end().await, "gone, exit Some(0)");
    }
}

#[tokio::test]
async fn p5_what_a_job_waits_for_is_told_again_after_a_restart() {
    let mut world = World::new().await;
    world.let_go().await;
    waiting(&world.fake, "ErrImagePull", "x");
    let told = world.told().await;
    world.restart().await;
    assert_eq!(world.runner.recover(&[super::job_id()]).await, []);
    assert_eq!(world.told().await, told);
    world.restart().await;
    waiting(&world.fake, "ContainerCreating", "");
    assert_eq!(world.runner.recover(&[super::job_id()]).await, []);
    assert_eq!(world.told().await, "starts", "it passed while nobody watched");
}
