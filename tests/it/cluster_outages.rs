//! Jobs on a real cluster of which a part is away for a while: nothing is lost, nothing runs twice,
//! nobody waits for ever. These tests have the cluster to themselves; each does all that it can in
//! one outage.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::api::{DeleteParams, ListParams};
use serde_json::json;
use tests::cluster::{Cluster, Part};
use tests::scheduler::Start;

use crate::cluster_world::{TOOLS_AND_LIBRARIES, UNTIL_GO, World, injected, run};

/// How long the API server is away. Source: the promise is about 30 s.
const AWAY: Duration = Duration::from_secs(30);

#[test]
fn p1_p5_p6_the_api_server_may_be_away_while_jobs_are_submitted_and_run() {
    let test = "p1_p5_p6_the_api_server_may_be_away_while_jobs_are_submitted_and_run";
    let Some(cluster) = Cluster::alone(test) else { return };
    let wrapped = injected(&cluster);
    let apply = |world: &World<'_>, image| {
        format!("    apply: {{kubernetesConfig: {}}}", world.script_in(image, UNTIL_GO))
    };
    let mut worlds: Vec<World<'_>> =
        ["submitted", "runs", "reports", "restarted"].map(|name| World::new(&cluster, name)).into();
    let [submitted, runs, reports, restarted] = worlds.as_mut_slice() else {
        panic!("there are four")
    };
    submitted.apply(&json!({}), &apply(submitted, TOOLS_AND_LIBRARIES));
    runs.release(&json!({}), &apply(runs, TOOLS_AND_LIBRARIES));
    reports.release(&wrapped, &apply(reports, TOOLS_AND_LIBRARIES));
    restarted.release(&json!({}), &apply(restarted, TOOLS_AND_LIBRARIES));
    [&*runs, &*reports, &*restarted].into_iter().for_each(World::runs);

    let outage = cluster.stop(Part::ApiServer);
    submitted.scheduler.ok(&["services", "push", "s", "--app", "app"]);
    restarted.scheduler.kill();
    [&*submitted, &*runs, &*reports, &*restarted].into_iter().for_each(World::go);
    restarted.scheduler.run(&Start::default());
    // What the wrapper delivers needs no API server.
    reports.scheduler.channel_becomes("s", "c", "CONVERGED");
    outage.lasts(AWAY);
    for world in [&*submitted, &*runs, &*restarted] {
        let channel = world.scheduler.channel("s", "c");
        assert_eq!(
            channel["status"], "CONVERGING",
            "nobody knows yet, and nothing is wrong: {channel:#}"
        );
    }
    outage.end();
    for world in &worlds {
        world.scheduler.channel_becomes("s", "c", "CONVERGED");
        world.check_ran(1);
    }
}

#[test]
fn p6_rule_11_rule_13_of_a_node_without_a_kubelet_nobody_waits_for_ever() {
    let Some(cluster) =
        Cluster::alone("p6_rule_11_rule_13_of_a_node_without_a_kubelet_nobody_waits_for_ever")
    else {
        return;
    };
    let wrapped = injected(&cluster);
    let (lost, reports) = (World::new(&cluster, "lost"), World::new(&cluster, "reports"));
    lost.release(
        &json!({}),
        &format!(
            "    apply: {{kubernetesConfig: {}}}",
            lost.script_in(TOOLS_AND_LIBRARIES, UNTIL_GO)
        ),
    );
    reports.release(
        &wrapped,
        &format!(
            "    apply: {{kubernetesConfig: {}}}",
            reports.script_in(TOOLS_AND_LIBRARIES, UNTIL_GO)
        ),
    );
    [&lost, &reports].into_iter().for_each(World::runs);

    // A test that dies brings the kubelet back.
    let died = catch_unwind(AssertUnwindSafe(|| {
        let _outage = cluster.stop(Part::Kubelet);
        reports.go();
        // What the wrapper delivers needs no kubelet.
        reports.scheduler.channel_becomes("s", "c", "CONVERGED");
        run(give_up(&cluster, &lost.namespace()));
        assert_eq!(
            lost.jobs("apply")[0]["status"],
            "RUNNING",
            "it may have ended well, which its node would say"
        );
        let channel = lost.scheduler.channel_becomes("s", "c", "FAILED");
        let message = channel["message"].as_str().expect("it has a message");
        assert!(
            channel["reason"] == "APPLY_FAILED" && message.contains("its node does not answer"),
            "{channel:#}"
        );
        assert_eq!(lost.ended("apply")["status"], "UNKNOWN");
        std::panic::panic_any(AsPlanned);
    }));
    let why = died.expect_err("it dies");
    if !why.is::<AsPlanned>() {
        resume_unwind(why);
    }
    lost.goes_again();
    reports.check_ran(1);
}

struct AsPlanned;

/// Deletes the one Pod of this namespace, in the books: its node does not hear of it. In a larger
/// cluster the node controller does so; where no node at all answers it suspects itself and deletes
/// nothing.
async fn give_up(cluster: &Cluster, namespace: &str) {
    let pods: Api<Pod> = Api::namespaced(cluster.client().await, namespace);
    pods.delete_collection(&DeleteParams::default(), &ListParams::default())
        .await
        .expect("Pods can be deleted");
}
