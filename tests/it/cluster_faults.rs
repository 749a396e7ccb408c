//! What becomes of a command on a real cluster when something is taken from under it: each fault
//! has its own reason, a bounded end and a way out, and nothing is ever started twice for one
//! decision.

use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{Namespace, Pod, ResourceQuota};
use kube::Api;
use kube::api::{DeleteParams, EvictParams, ListParams, Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use tests::cluster::{Cluster, TOOLS};
use tests::wait;

use crate::cluster_world::{TOOLS_AND_LIBRARIES, UNTIL_GO, World, injected, run};

/// Says that all is well when it is asked to stop: nobody may believe that.
const ALL_IS_WELL: &str = "trap 'exit 0' TERM";

/// The one Pod in a namespace.
async fn pod(client: &kube::Client, namespace: &str) -> String {
    let pods: Api<Pod> = Api::namespaced(client.clone(), namespace);
    let found = pods.list(&ListParams::default()).await.expect("Pods can be listed").items;
    assert_eq!(found.len(), 1, "there is one Pod");
    found[0].metadata.name.clone().expect("it has a name")
}

/// Lets an apply run, does something to it, and expects that it ends as unknown with these words; a
/// person's retry then runs it again, as a job of its own.
fn check(test: &str, expected: &str, fault: impl AsyncFnOnce(kube::Client, &str)) {
    let Some(cluster) = Cluster::get(test) else { return };
    let world = World::new(&cluster, "fault");
    world.release(
        &json!({}),
        &format!(
            "    apply: {{kubernetesConfig: {}}}",
            world.script(&format!("{ALL_IS_WELL}; {UNTIL_GO}"))
        ),
    );
    world.runs();
    run(async { fault(cluster.client().await, &world.namespace()).await });

    let channel = world.scheduler.channel_becomes("s", "c", "FAILED");
    let message = channel["message"].as_str().expect("it has a message");
    assert!(
        channel["reason"] == "APPLY_FAILED" && message.contains(expected),
        "expected {expected:?}: {channel:#}"
    );
    let job = world.ended("apply");
    assert_eq!(
        (&job["status"], &job["exitCode"]),
        (&json!("UNKNOWN"), &Value::Null),
        "rule 14: what is unknown is no success"
    );
    world.goes_again();
}

#[test]
fn rule_11_an_apply_whose_pod_is_deleted_is_unknown_and_says_so() {
    check(
        "rule_11_an_apply_whose_pod_is_deleted_is_unknown_and_says_so",
        "its Pod was deleted",
        async |client, namespace| {
            let pod = pod(&client, namespace).await;
            Api::<Pod>::namespaced(client, namespace)
                .delete(&pod, &DeleteParams::default())
                .await
                .expect("a Pod can be deleted");
        },
    );
}

#[test]
fn rule_11_an_apply_whose_job_is_deleted_is_unknown_and_says_so() {
    check(
        "rule_11_an_apply_whose_job_is_deleted_is_unknown_and_says_so",
        "its Job was deleted",
        async |client, namespace| {
            let jobs: Api<Job> = Api::namespaced(client, namespace);
            jobs.delete_collection(&DeleteParams::background(), &ListParams::default())
                .await
                .expect("Jobs can be deleted");
        },
    );
}

#[test]
fn rule_11_an_apply_whose_pod_is_evicted_is_unknown_and_says_so() {
    check(
        "rule_11_an_apply_whose_pod_is_evicted_is_unknown_and_says_so",
        "its Pod was evicted",
        async |client, namespace| {
            let pod = pod(&client, namespace).await;
            Api::<Pod>::namespaced(client, namespace)
                .evict(&pod, &EvictParams::default())
                .await
                .expect("a Pod can be evicted");
        },
    );
}

#[test]
fn rule_11_an_apply_whose_namespace_is_deleted_is_unknown_and_says_so() {
    check(
        "rule_11_an_apply_whose_namespace_is_deleted_is_unknown_and_says_so",
        "with its namespace",
        async |client, namespace| {
            Api::<Namespace>::all(client)
                .delete(namespace, &DeleteParams::default())
                .await
                .expect("a namespace can be deleted");
        },
    );
}

#[test]
fn rule_11_after_a_pod_is_deleted_fetch_decides_what_is_next() {
    let Some(cluster) = Cluster::get("rule_11_after_a_pod_is_deleted_fetch_decides_what_is_next")
    else {
        return;
    };
    let world = World::new(&cluster, "decides");
    let fetch = world.script("[ \"$(cat state)\" = \"$PVN_SERVICE_VERSION\" ] || exit 2");
    // It had done all when it was ended: fetch sees that, and nothing runs again.
    let apply =
        world.script(&format!("{ALL_IS_WELL}; echo $PVN_SERVICE_VERSION > state; {UNTIL_GO}"));
    world.release(
        &json!({}),
        &format!(
            "    fetch: {{pollInterval: 2s, kubernetesConfig: {fetch}}}\n    apply: \
             {{kubernetesConfig: {apply}}}"
        ),
    );
    world.runs();
    run(async {
        let pods: Api<Pod> = Api::namespaced(cluster.client().await, &world.namespace());
        let ours = ListParams::default().labels("pvn.dev/kind=apply");
        pods.delete_collection(&DeleteParams::default(), &ours).await.expect("Pods can be deleted");
    });
    world.scheduler.channel_becomes("s", "c", "CONVERGED");
    assert_eq!(world.ended("apply")["status"], "UNKNOWN");
    world.check_ran(1);
}

#[test]
fn a_container_that_runs_out_of_memory_says_so_with_and_without_the_wrapper() {
    let Some(cluster) =
        Cluster::get("a_container_that_runs_out_of_memory_says_so_with_and_without_the_wrapper")
    else {
        return;
    };
    for (image, settings) in [(TOOLS, json!({})), (TOOLS_AND_LIBRARIES, injected(&cluster))] {
        let world = World::new(&cluster, "memory");
        let program = json!({
            "image": image, "entrypoint": ["tail", "/dev/zero"], "resources": {"limits": {"memory": "48Mi"}},
        });
        world.release(&settings, &format!("    apply: {{taskConfig: {{program: {program}}}}}"));
        let channel = world.scheduler.channel_becomes("s", "c", "FAILED");
        let message = channel["message"].as_str().expect("it has a message");
        assert!(
            channel["reason"] == "APPLY_FAILED" && message.contains("memory"),
            "in {image}: {channel:#}"
        );
        let job = world.ended("apply");
        assert_eq!(
            (&job["status"], &job["exitCode"]),
            (&json!("FAILED"), &json!(137)),
            "in {image}"
        );
        world.check_created_once();
    }
}

/// Makes the namespace that pvn would make, with a quota of nothing.
fn with_quota(cluster: &Cluster, namespace: &str, of: &str) {
    run(async {
        let object: Namespace = serde_json::from_value(json!({"metadata": {"name": namespace}}))
            .expect("it is a Namespace");
        Api::<Namespace>::all(cluster.client().await)
            .create(&PostParams::default(), &object)
            .await
            .expect("a namespace can be made");
        let quota = json!({"metadata": {"name": "few"}, "spec": {"hard": {of: "0"}}});
        let quota = serde_json::from_value(quota).expect("it is a ResourceQuota");
        quotas(cluster, namespace)
            .await
            .create(&PostParams::default(), &quota)
            .await
            .expect("a quota can be made");
    });
    wait::until("the quota to be heeded, which it is when it was counted", || {
        let quota = run(async {
            quotas(cluster, namespace).await.get("few").await.expect("a quota can be read")
        });
        quota.status?.hard.filter(|hard| !hard.is_empty()).map(drop)
    });
}

fn raise_quota(cluster: &Cluster, namespace: &str, of: &str) {
    let patch = Patch::Merge(json!({"spec": {"hard": {of: "100"}}}));
    run(async {
        quotas(cluster, namespace)
            .await
            .patch("few", &PatchParams::default(), &patch)
            .await
            .expect("a quota can be raised")
    });
}

async fn quotas(cluster: &Cluster, namespace: &str) -> Api<ResourceQuota> {
    Api::namespaced(cluster.client().await, namespace)
}

#[test]
fn a_job_that_a_quota_refuses_is_made_when_the_quota_is_raised() {
    let Some(cluster) = Cluster::get("a_job_that_a_quota_refuses_is_made_when_the_quota_is_raised")
    else {
        return;
    };
    let world = World::new(&cluster, "quota");
    let namespace = world.namespace();
    with_quota(&cluster, &namespace, "count/jobs.batch");
    let apply = world.script("echo $PVN_JOB_ID >> ledger");
    world.release(&json!({}), &format!("    apply: {{kubernetesConfig: {apply}}}"));
    wait::until("the API server to refuse the Job", || {
        let is_refused = |event: &Value| {
            let said = event["responseStatus"]["message"].as_str().unwrap_or_default();
            event["objectRef"]["namespace"] == namespace.as_str() && said.contains("exceeded quota")
        };
        cluster.audit().iter().any(is_refused).then_some(())
    });
    raise_quota(&cluster, &namespace, "count/jobs.batch");
    world.scheduler.channel_becomes("s", "c", "CONVERGED");
    assert_eq!(world.jobs("apply").len(), 1, "the job that was refused is the one that ran");
    world.check_ran(1);
}

#[test]
fn a_job_whose_pod_a_quota_refuses_says_so_and_is_tried_again_as_a_job_of_its_own() {
    let Some(cluster) = Cluster::get(
        "a_job_whose_pod_a_quota_refuses_says_so_and_is_tried_again_as_a_job_of_its_own",
    ) else {
        return;
    };
    let world = World::new(&cluster, "room");
    let namespace = world.namespace();
    with_quota(&cluster, &namespace, "pods");
    let apply = world.script("echo $PVN_JOB_ID >> ledger");
    world.release(&json!({}), &format!("    apply: {{timeout: 6s, kubernetesConfig: {apply}}}"));
    let first = world.ended("apply");
    assert_eq!(first["exitCode"], Value::Null);
    let says = |channel: &Value| {
        channel["message"].as_str().is_some_and(|message| message.contains("exceeded quota"))
    };
    let channel = wait::until("the channel to say what it waits for", || {
        Some(world.scheduler.channel("s", "c")).filter(says)
    });
    assert_eq!(channel["status"], "CONVERGING", "the surroundings are no failure: {channel:#}");
    raise_quota(&cluster, &namespace, "pods");
    world.scheduler.channel_becomes("s", "c", "CONVERGED");
    assert!(world.jobs("apply").len() > 1, "another job");
    world.check_ran(1);
}
