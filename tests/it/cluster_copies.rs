//! What people do by hand beside a job on a real cluster, with its manifest or its Pod, says
//! nothing of how its command ends (promises P1 and P8).

use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{DeleteParams, EvictParams, ListParams, PostParams};
use kube::{Api, ResourceExt};
use serde_json::{Value, json};
use tests::cluster::{Cluster, TOOLS};

use crate::cluster_world::{TOOLS_AND_LIBRARIES, UNTIL_GO, World, injected, run};

/// The manifest of the one Job there, as a person takes it to try it with another command.
async fn manifest(jobs: &Api<Job>, name: Option<&str>) -> Value {
    let found = jobs.list(&ListParams::default()).await.expect("Jobs can be listed").items;
    assert_eq!(found.len(), 1, "there is one Job");
    let mut job = serde_json::to_value(&found[0]).expect("a Job is JSON");
    job["metadata"] =
        json!({"name": name.unwrap_or(&found[0].name_any()), "labels": found[0].labels()});
    job.as_object_mut().expect("it is one").remove("status");
    job["spec"].as_object_mut().expect("it is one").remove("selector");
    let template = &mut job["spec"]["template"];
    let labels = template["metadata"]["labels"].as_object_mut().expect("it has labels");
    labels.retain(|label, _| !label.contains("controller-uid") && !label.contains("job-name"));
    let main = &mut template["spec"]["containers"][0];
    (main["command"], main["args"]) = (json!(["true"]), json!([]));
    job
}

async fn make(jobs: &Api<Job>, manifest: Value) {
    let copy: Job = serde_json::from_value(manifest).expect("it is a Job");
    let name = copy.name_any();
    jobs.create(&PostParams::default(), &copy).await.expect("a Job can be made");
    let is_complete = async || {
        let job = jobs.get(&name).await.expect("it is there");
        job.status.is_some_and(|status| status.succeeded == Some(1))
    };
    while !is_complete().await {
        tokio::time::sleep(std::time::Duration::from_millis(200)).await;
    }
}

#[test]
fn p8_a_copy_of_a_jobs_manifest_that_somebody_tries_says_nothing_of_the_job() {
    let Some(cluster) =
        Cluster::get("p8_a_copy_of_a_jobs_manifest_that_somebody_tries_says_nothing_of_the_job")
    else {
        return;
    };
    for (image, settings) in [(TOOLS, json!({})), (TOOLS_AND_LIBRARIES, injected(&cluster))] {
        let world = World::new(&cluster, "copy");
        world.release(
            &settings,
            &format!(
                "    apply: {{kubernetesConfig: {}}}",
                world.script_in(image, &format!("{UNTIL_GO}; exit 3"))
            ),
        );
        world.runs();
        run(async {
            let jobs: Api<Job> = Api::namespaced(cluster.client().await, &world.namespace());
            let copy = manifest(&jobs, Some("copy")).await;
            make(&jobs, copy).await;
        });
        // Its end was seen by every watch when a list of all is.
        std::thread::park_timeout(std::time::Duration::from_secs(3));
        assert_eq!(world.jobs("apply")[0]["status"], "RUNNING", "in {image}");
        world.go();
        world.scheduler.channel_becomes("s", "c", "FAILED");
        let job = world.ended("apply");
        assert_eq!((&job["status"], &job["exitCode"]), (&json!("FAILED"), &json!(3)), "in {image}");
    }
}

#[test]
fn p8_a_job_that_somebody_replaces_by_another_of_its_name_has_an_unknown_end() {
    let Some(cluster) =
        Cluster::get("p8_a_job_that_somebody_replaces_by_another_of_its_name_has_an_unknown_end")
    else {
        return;
    };
    let world = World::new(&cluster, "by-hand");
    world.release(
        &json!({}),
        &format!("    apply: {{kubernetesConfig: {}}}", world.script(UNTIL_GO)),
    );
    world.runs();
    run(async {
        let jobs: Api<Job> = Api::namespaced(cluster.client().await, &world.namespace());
        let other = manifest(&jobs, None).await;
        // As `kubectl replace --force` does.
        let name = other["metadata"]["name"].as_str().expect("it has a name").to_owned();
        jobs.delete(&name, &DeleteParams::background()).await.expect("a Job can be deleted");
        while jobs.get_opt(&name).await.expect("the cluster answers").is_some() {
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        }
        make(&jobs, other).await;
    });
    world.scheduler.channel_becomes("s", "c", "FAILED");
    let job = world.ended("apply");
    assert_eq!((&job["status"], &job["exitCode"]), (&json!("UNKNOWN"), &Value::Null), "{job:#}");
}

/// A Pod whose command ends well as soon as it is asked to, and whose other container takes a
/// while.
fn with_a_slow_neighbour(world: &World<'_>) -> String {
    let mut file: Value =
        serde_json::from_str(&world.script(&format!("trap 'exit 0' TERM; {UNTIL_GO}")))
            .expect("it is JSON");
    let mut job: Value =
        serde_json::from_str(file["inlined"].as_str().expect("it is a text")).expect("it is JSON");
    let pod = &mut job["spec"]["template"]["spec"];
    pod["terminationGracePeriodSeconds"] = json!(30);
    let slow = "trap 'sleep 8; exit 0' TERM; while :; do sleep 0.1; done";
    let neighbour = json!({"name": "slow", "image": TOOLS, "command": ["sh", "-c", slow]});
    pod["containers"].as_array_mut().expect("it is a list").push(neighbour);
    file["inlined"] = json!(job.to_string());
    file.to_string()
}

#[test]
fn p8_a_pod_that_is_deleted_and_then_evicted_too_did_not_end_by_itself() {
    let Some(cluster) =
        Cluster::get("p8_a_pod_that_is_deleted_and_then_evicted_too_did_not_end_by_itself")
    else {
        return;
    };
    let world = World::new(&cluster, "twice");
    world.release(
        &json!({}),
        &format!("    apply: {{kubernetesConfig: {}}}", with_a_slow_neighbour(&world)),
    );
    world.runs();
    run(async {
        let pods: Api<Pod> = Api::namespaced(cluster.client().await, &world.namespace());
        let found = pods.list(&ListParams::default()).await.expect("Pods can be listed").items;
        let name = found[0].name_any();
        pods.delete(&name, &DeleteParams::default()).await.expect("a Pod can be deleted");
        tokio::time::sleep(std::time::Duration::from_secs(4)).await;
        pods.evict(&name, &EvictParams::default())
            .await
            .expect("a Pod that is being deleted can be evicted");
    });
    world.scheduler.channel_becomes("s", "c", "FAILED");
    let job = world.ended("apply");
    assert_eq!((&job["status"], &job["exitCode"]), (&json!("UNKNOWN"), &Value::Null), "{job:#}");
}
