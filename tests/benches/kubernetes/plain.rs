//! What anybody would do without pvn: `kubectl create job` and `kubectl wait`, by API.

use std::time::Instant;

use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Namespace;
use kube::Api;
use kube::api::PostParams;
use kube::runtime::wait::{await_condition, conditions};
use serde_json::json;
use tests::cluster::{Cluster, TOOLS};
use tokio::task::JoinSet;

use super::{ROUND_WITHIN, run};

/// A namespace for plain Jobs.
pub(crate) struct Plain<'c> {
    cluster: &'c Cluster,
    namespace: String,
}

impl<'c> Plain<'c> {
    pub(crate) fn new(cluster: &'c Cluster) -> Self {
        let namespace = run(async {
            let namespace: Namespace =
                serde_json::from_value(json!({"metadata": {"generateName": "plain-"}}))
                    .expect("it is a Namespace");
            let made =
                Api::all(cluster.client().await).create(&PostParams::default(), &namespace).await;
            made.expect("a namespace can be made").metadata.name.expect("it has a name")
        });
        Self { cluster, namespace }
    }

    pub(crate) fn namespace(&self) -> &str {
        &self.namespace
    }

    /// So many Jobs at once, from the first request until the last one is complete, seconds.
    pub(crate) fn run(&self, count: usize) -> f64 {
        run(async {
            let jobs: Api<Job> = Api::namespaced(self.cluster.client().await, &self.namespace);
            // The connection stands, as pvn's does.
            jobs.get_opt("none").await.expect("the API server answers");
            let start = Instant::now();
            let all: JoinSet<()> = (0..count).map(|_| one(jobs.clone())).collect();
            tokio::time::timeout(ROUND_WITHIN, all.join_all()).await.expect("the Jobs end");
            start.elapsed().as_secs_f64()
        })
    }
}

async fn one(jobs: Api<Job>) {
    let job = json!({
        "metadata": {"generateName": "plain-"},
        "spec": {"backoffLimit": 0, "template": {"spec": {"restartPolicy": "Never", "enableServiceLinks": false, "containers": [
            {"name": "command", "image": TOOLS, "command": ["true"]},
        ]}}},
    });
    let job = serde_json::from_value(job).expect("it is a Job");
    let made = jobs.create(&PostParams::default(), &job).await.expect("a Job can be made");
    let name = made.metadata.name.expect("it has a name");
    await_condition(jobs, &name, conditions::is_job_completed())
        .await
        .expect("a Job can be awaited");
}
