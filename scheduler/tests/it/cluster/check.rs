//! What works and what does not on a cluster is found by trying: each thing that can be wrong,
//! alone, with its remedy.

use axum::http::Method;
use pvn_scheduler::compile::ClusterPlace;
use schema::api::Finding;
use schema::status::{CheckKind, CheckStatus};
use serde_json::{Value, json};

use super::World;
use super::fake::{Fake, Fault};

/// The place of a runtime that injects the wrapper.
fn place(world: &World) -> ClusterPlace {
    ClusterPlace { wrapper_image: Some("w:1".to_owned()), ..world.spec().cluster.unwrap().place }
}

fn given(namespace: &str, world: &World) -> ClusterPlace {
    ClusterPlace { namespace: namespace.to_owned(), own_namespace: false, ..place(world) }
}

/// What is found: one word for each check, `.` for one that works and `-` for one that was not
/// tried, and the failures in words.
fn shown(findings: &[Finding]) -> (String, String) {
    let checks: Vec<_> = findings.iter().map(|finding| finding.check).collect();
    assert_eq!(checks, CheckKind::OF_CLUSTER, "each once, in order: {findings:#?}");
    let word = |finding: &Finding| match finding.status {
        CheckStatus::Ok => ".",
        CheckStatus::Failed => "FAILED",
        CheckStatus::Skipped => "-",
    };
    let words: Vec<_> = findings.iter().map(word).collect();
    let failures = findings
        .iter()
        .filter_map(|finding| Some(format!("{} => {}", finding.message, finding.remedy.as_ref()?)));
    (words.join(" "), failures.collect::<Vec<_>>().join("\n"))
}

/// Checks what is found at a place, and that nothing is left there.
async fn check(world: &World, place: ClusterPlace, expected: &str, failure: &str) {
    let findings = world.runner.check(vec![place]).await.unwrap();
    let (words, failures) = shown(&findings);
    assert_eq!(words, expected, "{findings:#?}");
    assert!(
        failures.starts_with(failure) && failure.is_empty() == failures.is_empty(),
        "{failures}\nis not\n{failure}"
    );
    assert_eq!(
        (world.fake.object("/jobs/"), world.fake.object("/pods/")),
        (None, None),
        "nothing is left"
    );
}

/// A check whose Job gets a Pod in this state as soon as it is let go.
async fn check_pod(expected: &str, failure: &str, state: fn(&Fake)) {
    let world = World::new().await;
    world.fake.set_runs(false);
    let pod = async {
        world
            .until("the Job to be let go", |fake| {
                fake.object("/jobs/").is_some_and(|job| job["spec"]["suspend"] == false)
            })
            .await;
        state(&world.fake);
    };
    tokio::join!(check(&world, place(&world), expected, failure), pod);
}

fn container(name: &str, state: &Value) -> Value {
    json!({"name": name, "image": "", "imageID": "", "ready": false, "restartCount": 0, "state": state})
}

#[tokio::test]
async fn a_cluster_that_cannot_be_used_is_told_with_what_to_look_at() {
    let world = World::new().await;
    let nowhere =
        ClusterPlace { kubeconfig: Some("/nowhere/kubeconfig".to_owned()), ..place(&world) };
    let failure = "the kubeconfig /nowhere/kubeconfig of runtime `k8s` cannot be used: ";
    check(&world, nowhere, "FAILED - - - -", failure).await;
    world.fake.fail(Method::GET, "/version", Fault::Say(401, "Unauthorized"));
    let failure = "asking for its version: Unauthorized; the credentials of the kubeconfig are \
                   not accepted => give the kubeconfig credentials";
    check(&world, place(&world), "FAILED - - - -", failure).await;
    world.fake.fail(Method::GET, "/version", Fault::Say(500, "not yet"));
    check(
        &world,
        place(&world),
        "FAILED - - - -",
        "asking for its version: not yet => see that the server runs",
    )
    .await;
}

#[tokio::test]
async fn a_server_that_never_answers_is_waited_for_ten_seconds() {
    let world = World::new().await;
    world.fake.fail(Method::GET, "/version", Fault::Hang);
    check(
        &world,
        place(&world),
        "FAILED - - - -",
        "asking for its version: no answer within 10 s => see that the server runs",
    )
    .await;
}

#[tokio::test]
async fn rights_that_are_missing_are_told_all_together() {
    let world = World::new().await;
    world.fake.forbid("create", "jobs");
    world.fake.forbid("watch", "pods");
    let failure = "the scheduler's account may not `create` jobs.batch, `watch` pods in the \
                   namespace `n` (no role) => give it the rights in images/kubernetes/rights";
    check(&world, place(&world), ". FAILED - - -", failure).await;
    let failure = "the scheduler's account may not `create` jobs.batch, `watch` pods in the \
                   namespace `g` (no role) => bind the ClusterRole of images/kubernetes/rights to \
                   it: `kubectl create rolebinding pvn-jobs";
    check(&world, given("g", &world), ". FAILED - - -", failure).await;
    assert_eq!(world.fake.count("PATCH", "/"), 0, "nothing was made");
}

#[tokio::test]
async fn a_right_that_only_tells_people_more_keeps_nothing_from_being_tried() {
    let world = World::new().await;
    world.fake.forbid("list", "events");
    let place = ClusterPlace { wrapper_image: None, ..place(&world) };
    check(
        &world,
        place,
        ". FAILED . - -",
        "the scheduler's account may not `list` events in the namespace `n`",
    )
    .await;
}

#[tokio::test]
async fn a_namespace_that_is_not_to_be_had_is_told_before_a_job_is_made() {
    let world = World::new().await;
    world.fake.fail(
        Method::PATCH,
        "/namespaces/",
        Fault::Say(403, "admission webhook \"names\" denied the request: prefix"),
    );
    let failure = "making the namespace: admission webhook \"names\" denied the request: prefix \
                   => see what the cluster's policies say";
    check(&world, place(&world), ". . FAILED - -", failure).await;
    check(
        &world,
        given("absent", &world),
        ". . FAILED - -",
        "`absent` is not there => create the namespace `absent`, or leave",
    )
    .await;
    let ending =
        json!({"metadata": {"name": "ending", "deletionTimestamp": "2026-01-01T00:00:00Z"}});
    world.fake.put("/api/v1/namespaces/ending", ending);
    check(
        &world,
        given("ending", &world),
        ". . FAILED - -",
        "`ending` is being deleted => wait until it is gone",
    )
    .await;
    assert_eq!(world.fake.count("PATCH", "/jobs/"), 0);
}

#[tokio::test]
async fn a_given_namespace_that_nobody_may_look_at_is_tried() {
    let world = World::new().await;
    world.fake.put("/api/v1/namespaces/given", json!({"metadata": {"name": "given"}}));
    world.fake.fail(Method::GET, "/namespaces/given", Fault::Refuse(403));
    check(
        &world,
        given("given", &world),
        ". . - . FAILED",
        "a Pod does not reach this scheduler at http://127.0.0.1:1: from the log",
    )
    .await;
}

#[tokio::test]
async fn a_wrapper_image_that_does_not_run_is_told_in_the_clusters_words() {
    let world = World::new().await;
    world.fake.fail(Method::PATCH, "/jobs/", Fault::Say(422, "Job is invalid"));
    let failure = "no Pod with `w:1` runs: making its Job: Job is invalid => make the image \
                   available to the nodes";
    check(&world, place(&world), ". . . FAILED -", failure).await;

    let failure = "no Pod with `w:1` runs: ErrImagePull: w:1: not found => it ends when the image \
                   can be pulled: look at its name, the registry and the pull secret; make the \
                   image available to the nodes, or name another one in `kubernetes.wrapper.image`";
    check_pod(". . . FAILED -", failure, |fake| {
        let waiting = json!({"waiting": {"reason": "ErrImagePull", "message": "w:1: not found"}});
        fake.pod(json!({}), json!({"phase": "Pending", "initContainerStatuses": [container("pvn-wrapper", &waiting)]}));
    })
    .await;
    let failure = "no Pod with `w:1` runs: its init container `pvn-wrapper` ended with 128: \
                   StartError: no such file";
    check_pod(". . . FAILED -", failure, |fake| {
        let ended = json!({"terminated": {"exitCode": 128, "reason": "StartError", "message": "no such file"}});
        fake.pod(json!({}), json!({"phase": "Failed", "initContainerStatuses": [container("pvn-wrapper", &ended)]}));
    })
    .await;
    let failure = "no Pod with `w:1` runs: its command ended with 125: from the log";
    check_pod(". . . FAILED -", failure, |fake| {
        fake.exit_with(125);
        fake.set_runs(true);
    })
    .await;
}

#[tokio::test]
async fn a_pod_that_reaches_nobody_is_told_with_its_last_words() {
    let world = World::new().await;
    let failure = "a Pod does not reach this scheduler at http://127.0.0.1:1: from the log => \
                   give the scheduler an `--advertise-url`";
    check(&world, place(&world), ". . . . FAILED", failure).await;
}

#[tokio::test]
async fn what_is_up_to_others_is_not_tried() {
    let world = World::new().await;
    check(&world, ClusterPlace { wrapper_image: None, ..place(&world) }, ". . . - -", "").await;
    let alone = ClusterPlace { runtime: "k8s".parse().unwrap(), ..place(&world) };
    check(&world, alone, ". . . - -", "").await;
    assert_eq!(world.fake.object("/namespaces/"), None, "no namespace is made that no job needs");
}

#[tokio::test]
async fn a_check_removes_its_job_when_nobody_waits_for_it_or_the_daemon_stops() {
    let world = World::new().await;
    world.fake.set_runs(false);
    let nobody_waits = world.runner.check(vec![place(&world)]);
    let mut nobody_waits = Box::pin(nobody_waits);
    tokio::select! {
        found = &mut nobody_waits => panic!("it has no Pod yet: {found:?}"),
        () = world.until("the Job to be let go", |fake| fake.object("/jobs/").is_some_and(|job| job["spec"]["suspend"] == false)) => {}
    }
    drop(nobody_waits);
    world.fake.set_runs(true);
    world.until("the Job to be removed", |fake| fake.object("/jobs/").is_none()).await;

    world.fake.set_runs(false);
    let stopped = async {
        world
            .until("another Job to be let go", |fake| {
                fake.object("/jobs/").is_some_and(|job| job["spec"]["suspend"] == false)
            })
            .await;
        world.runner.detach().await;
        assert_eq!(world.fake.object("/jobs/"), None, "removed before the daemon is gone");
    };
    let (findings, ()) = tokio::join!(world.runner.check(vec![place(&world)]), stopped);
    assert_eq!(shown(&findings.unwrap()).0, ". . . FAILED -");
    assert_eq!(
        std::fs::read_dir(world.dir.path().join("cluster")).unwrap().count(),
        0,
        "nothing is remembered"
    );
    assert_eq!(
        std::fs::read_dir(world.dir.path().join("uploads")).unwrap().count(),
        0,
        "nothing is expected"
    );
}

#[tokio::test]
async fn more_checks_than_can_be_done_at_a_time_are_refused() {
    let world = World::new().await;
    let places: Vec<_> = (0..9).map(|_| place(&world)).collect();
    let refused = world.runner.check(places).await.unwrap_err();
    assert!(
        refused.starts_with("8 runtimes can be checked at a time; check one of them"),
        "{refused}"
    );
}

#[tokio::test]
async fn a_given_namespace_counts_as_absent_only_when_the_cluster_says_so() {
    let world = World::new().await;
    world.fake.put("/api/v1/namespaces/there", json!({"metadata": {"name": "there"}}));
    let nowhere = ClusterPlace {
        kubeconfig: Some("/nowhere/kubeconfig".to_owned()),
        ..given("absent", &world)
    };
    let another = ClusterPlace { runtime: "another".parse().unwrap(), ..given("absent", &world) };
    let places = vec![given("there", &world), given("absent", &world), another.clone(), nowhere];
    assert_eq!(world.runner.absent(places).await, [given("absent", &world), another]);
    assert_eq!(world.fake.count("GET", "/namespaces/absent"), 1, "asked once for all");
    world.fake.refuse_all(Some((403, "namespaces is forbidden")));
    assert_eq!(world.runner.absent(vec![given("absent", &world)]).await, []);
    world.fake.refuse_all(None);
    world.fake.fail(Method::GET, "/namespaces/", Fault::Hang);
    assert_eq!(
        world.runner.absent(vec![given("absent", &world)]).await,
        [],
        "not within five seconds"
    );
}
