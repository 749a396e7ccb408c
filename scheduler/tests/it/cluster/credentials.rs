//! A kubeconfig whose credentials were changed, as everything that rotates them does; a cluster
//! that does not know yet what it permits.

use axum::http::Method;
use serde_json::json;

use super::ends::{ended, running};
use super::fake::Fault;
use super::{World, check, job_id};

fn rotate(world: &World) {
    world.fake.accept_only("new");
    std::fs::write(world.dir.path().join("kubeconfig"), world.fake.kubeconfig_with("new")).unwrap();
}

#[tokio::test]
async fn p6_credentials_that_change_while_a_job_runs_blind_nobody() {
    let mut world = World::new().await;
    world.let_go().await;
    world.fake.pod(json!({}), running());
    assert_eq!(world.told().await, "runs");
    rotate(&world);
    world.fake.pod(json!({}), ended(4, "Error"));
    assert_eq!(world.end().await, "gone, exit Some(4)");
}

#[tokio::test]
async fn credentials_that_are_refused_are_read_again_and_the_job_goes_on() {
    let mut world = World::new().await;
    // The connection is known before the file changes.
    world.runner.start(world.spec());
    assert_eq!(world.end().await, "gone, exit Some(0)");
    world.fake.job(|job| {
        job["status"] = serde_json::json!({"conditions": [{"type": "Complete", "status": "True"}]})
    });
    rotate(&world);
    let mut spec = world.spec();
    spec.job = schema::id::JobId::derive(&[b"another"]);
    world.runner.start(spec);
    assert_eq!(world.end().await, "gone, exit Some(0)");
}

#[tokio::test]
async fn credentials_that_are_refused_for_a_while_are_a_wait_that_says_so() {
    let mut world = World::new().await;
    world.fake.accept_only("new");
    world.runner.start(world.spec());
    let told = world.told().await;
    assert!(
        told.starts_with("waits, surroundings: ")
            && told.contains("the credentials of the kubeconfig are not accepted"),
        "{told}"
    );
    rotate(&world);
    assert_eq!(world.end().await, "gone, exit Some(0)");
}

#[tokio::test]
async fn p6_a_cluster_that_comes_back_before_it_knows_its_roles_is_asked_again() {
    let forbidden =
        Fault::Say(403, "jobs.batch is forbidden: User \"u\" cannot patch resource \"jobs\"");
    let path = "/jobs/";
    // Making its Job, and letting it go.
    for pass in [0, 2] {
        let faults = [(Method::PATCH, path, Fault::Cut), (Method::PATCH, path, forbidden)];
        let passes = std::iter::repeat_n((Method::PATCH, path, Fault::Pass), pass);
        check(&passes.chain(faults).collect::<Vec<_>>(), "gone, exit Some(3)").await;
    }
}

#[tokio::test]
async fn rule_13_a_plugin_that_takes_long_is_told_as_a_wait_and_a_stop_is_heard_meanwhile() {
    let mut world = World::new().await;
    let exec = "exec: {apiVersion: client.authentication.k8s.io/v1, command: sleep, args: ['20'], \
                interactiveMode: Never}";
    let kubeconfig = world.fake.kubeconfig().replace("token: t", exec);
    std::fs::write(world.dir.path().join("kubeconfig"), kubeconfig).unwrap();
    world.runner.start(world.spec());
    let told = world.told().await;
    assert!(
        told.starts_with("waits, surroundings: its kubeconfig gives no connection yet; a plugin"),
        "{told}"
    );
    assert!(world.runner.stop(job_id()));
    assert_eq!(world.end().await, "gone, never: it was stopped before it was started");
}

#[tokio::test]
async fn that_nobody_sees_a_running_job_for_want_of_credentials_is_told_until_there_are_some() {
    for is_restarted in [false, true] {
        let mut world = World::new().await;
        world.let_go().await;
        world.fake.pod(json!({}), running());
        assert_eq!(world.told().await, "runs");
        world.fake.accept_only("new");
        if is_restarted {
            world.restart().await;
            assert_eq!(world.runner.recover(&[job_id()]).await, []);
        } else {
            world.fake.end_watches(0);
        }
        while !world.told().await.contains("credentials of the kubeconfig") {}
        rotate(&world);
        world.fake.pod(json!({}), ended(4, "Error"));
        assert_eq!(world.end().await, "gone, exit Some(4)");
    }
}
