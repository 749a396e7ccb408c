//! The same through pvn: a push, and the end of its applies as the scheduler's API tells it.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tests::cluster::{ADDRESS, Cluster, TOOLS};
use tests::scheduler::{Scheduler, Start};

use super::{MANY, ROUND_WITHIN};

/// Time between two looks at the scheduler.
const LOOK: Duration = Duration::from_millis(20);

/// A scheduler of its own, with one application of one channel and one of many.
pub(crate) struct Pvn {
    scheduler: Scheduler,
    runtime: String,
}

impl Pvn {
    pub(crate) fn new(cluster: &Cluster, name: &str, settings: &Value) -> Self {
        let mut scheduler = Scheduler::stopped_at(ADDRESS);
        let limit = MANY.to_string();
        scheduler.run(&Start {
            arguments: &["--max-applies", &limit, "--max-applies-per-runtime", &limit],
            ..Start::default()
        });
        let unique = scheduler
            .home()
            .file_name()
            .and_then(|name| name.to_str())
            .expect("it has a name")
            .to_lowercase();
        let runtime =
            format!("{name}-{}", unique.replace(|c: char| !c.is_ascii_alphanumeric(), ""));
        let mut kubernetes = json!({"kubeconfig": cluster.account().kubeconfig()});
        kubernetes
            .as_object_mut()
            .expect("it is one")
            .extend(settings.as_object().cloned().unwrap_or_default());
        let mut yaml = format!(
            "runtime: {{name: k8s, kubernetes: {kubernetes}}}\n---\nruntime:\n  name: \
                 {runtime}\n  custom:\n    proxyRuntime: {{runtime: k8s}}\n    apply: \
                 {{taskConfig: {{program: {{image: '{TOOLS}', entrypoint: ['true']}}}}}}\n",
        );
        for channels in [1, MANY] {
            let application = application(channels);
            yaml += &format!("---\napplication:\n  name: {application}\n  releaseChannels:\n");
            for channel in 0..channels {
                yaml += &format!("  - {{name: c{channel}, runtimes: [{{runtime: {runtime}}}]}}\n");
            }
            yaml += &format!("---\nservice: {{name: s, application: {application}}}\n");
        }
        scheduler.apply(&yaml);
        Self { scheduler, runtime }
    }

    /// So many jobs at once, from the start of `pvnctl` until the API shows the last result,
    /// seconds.
    pub(crate) fn run(&self, count: usize) -> f64 {
        let before = self.recorded();
        let application = application(count);
        let start = Instant::now();
        self.scheduler.ok(&["services", "push", "s", "--app", &application]);
        while self.recorded() < before + count {
            assert!(
                start.elapsed() < ROUND_WITHIN,
                "the jobs do not end:\n{}",
                self.scheduler.log()
            );
            std::thread::park_timeout(LOOK);
        }
        start.elapsed().as_secs_f64()
    }

    /// Jobs whose result is recorded.
    fn recorded(&self) -> usize {
        let (_, body) =
            self.scheduler.get("/v1/jobs?limit=1&status=SUCCEEDED").expect("the scheduler answers");
        let page: Value = serde_json::from_str(&body).expect("a page of jobs");
        page["total"].as_u64().and_then(|total| usize::try_from(total).ok()).expect("a total")
    }

    /// Where its Jobs are.
    pub(crate) fn namespace(&self) -> String {
        format!("pvn-proxy-runtime-{}", self.runtime)
    }

    /// What it asked of the API server about its namespace, for each job. A watch is one request.
    pub(crate) fn print_requests(&self, cluster: &Cluster) {
        let mut counts: BTreeMap<String, usize> = BTreeMap::new();
        let namespace = self.namespace();
        for event in cluster.audit() {
            let object = &event["objectRef"];
            if object["namespace"] == namespace.as_str() && event["stage"] == "ResponseComplete" {
                let text = |field: &Value| field.as_str().unwrap_or_default().to_owned();
                let sub =
                    object["subresource"].as_str().map(|sub| format!("/{sub}")).unwrap_or_default();
                *counts
                    .entry(format!("{} {}{sub}", text(&event["verb"]), text(&object["resource"])))
                    .or_default() += 1;
            }
        }
        let jobs = self.recorded();
        #[expect(clippy::cast_precision_loss, reason = "they are few")]
        let per_job = |count: usize| count as f64 / jobs as f64;
        println!(
            "requests to the API server for each of {jobs} jobs, {}: {:.2}",
            self.runtime,
            per_job(counts.values().sum())
        );
        for (what, count) in counts {
            println!("  {what:<44}{:>8.2}", per_job(count));
        }
    }
}

fn application(count: usize) -> String {
    format!("of-{count}")
}
