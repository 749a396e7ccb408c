//! The real cluster of the tests: that it runs Jobs, and that its audit log counts them.

use std::time::Duration;

use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{Namespace, Pod};
use kube::Api;
use kube::api::{DeleteParams, ListParams, LogParams, Patch, PatchParams, PostParams};
use kube::runtime::wait::{await_condition, conditions};
use serde_json::json;
use tests::cluster::{Cluster, TOOLS};

use crate::cluster_world::run;

/// Longest wait for one Job.
const JOB_WITHIN: Duration = Duration::from_secs(180);

#[test]
fn a_job_runs_on_a_real_cluster_and_is_counted_once() {
    let Some(cluster) = Cluster::get("a_job_runs_on_a_real_cluster_and_is_counted_once") else {
        return;
    };
    run(async {
        let client = cluster.client().await;
        let namespace: Namespace =
            serde_json::from_value(json!({"metadata": {"generateName": "one-job-"}}))
                .expect("it is a Namespace");
        let namespace = Api::all(client.clone())
            .create(&PostParams::default(), &namespace)
            .await
            .expect("a namespace can be made");
        let namespace = namespace.metadata.name.expect("it has a name");
        let job = json!({
            "apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "hello"},
            "spec": {"backoffLimit": 0, "template": {"spec": {"restartPolicy": "Never", "containers": [
                {"name": "hello", "image": TOOLS, "command": ["sh", "-c", "echo hello from $(hostname)"]},
            ]}}},
        });
        let jobs: Api<Job> = Api::namespaced(client.clone(), &namespace);
        // Twice the same: the second one finds the first.
        for _ in 0..2 {
            jobs.patch("hello", &PatchParams::apply("pvn-test"), &Patch::Apply(&job))
                .await
                .expect("a Job can be applied");
        }
        let done = await_condition(jobs.clone(), "hello", conditions::is_job_completed());
        tokio::time::timeout(JOB_WITHIN, done)
            .await
            .expect("the Job ends")
            .expect("it can be watched");

        let pods: Api<Pod> = Api::namespaced(client.clone(), &namespace);
        let pod = pods
            .list(&ListParams::default().labels("job-name=hello"))
            .await
            .expect("Pods can be listed")
            .items
            .remove(0);
        let pod = pod.metadata.name.expect("it has a name");
        let log = pods.logs(&pod, &LogParams::default()).await.expect("the node gives logs");
        assert_eq!(log, format!("hello from {pod}\n"));
        assert_eq!(
            cluster.creations(&namespace).into_iter().collect::<Vec<_>>(),
            [("hello".to_owned(), 1)]
        );

        // Made anew after it was gone, it counts again: this is what a Job that is started twice
        // would look like.
        let uid = jobs.get("hello").await.expect("it is there").metadata.uid.expect("it has a uid");
        jobs.delete("hello", &DeleteParams::background()).await.expect("a Job can be deleted");
        let gone = await_condition(jobs.clone(), "hello", conditions::is_deleted(&uid));
        tokio::time::timeout(JOB_WITHIN, gone)
            .await
            .expect("the Job goes")
            .expect("it can be watched");
        jobs.patch("hello", &PatchParams::apply("pvn-test"), &Patch::Apply(&job))
            .await
            .expect("a Job can be applied");
        assert_eq!(
            cluster.creations(&namespace).into_iter().collect::<Vec<_>>(),
            [("hello".to_owned(), 2)]
        );
        Api::<Namespace>::all(client)
            .delete(&namespace, &Default::default())
            .await
            .expect("a namespace can be deleted");
    });
}
