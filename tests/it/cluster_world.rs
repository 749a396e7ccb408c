//! A scheduler that runs its commands on the real cluster, with one application `app`, service `s`
//! and channel `c`.

use std::path::PathBuf;

use serde_json::{Value, json};
use tests::cluster::{ADDRESS, Cluster, Image, TOOLS};
use tests::programs;
use tests::scheduler::{Scheduler, Start};
use tests::wait;

/// An image that holds the wrapper and nothing else, but for the libraries of a program that is not
/// built static.
const WRAPPER: &str = "pvn.test/wrapper:1";

/// A shell with the usual tools, and the libraries that the wrapper needs when it is not built
/// static.
pub(crate) const TOOLS_AND_LIBRARIES: &str = "pvn.test/tools-and-libraries:1";

/// A command that runs until `go` is there, and notes that it ran.
pub(crate) const UNTIL_GO: &str =
    "echo $PVN_JOB_ID >> ledger; while [ ! -e go ]; do sleep 0.1; done";

/// A scheduler that Pods reach, with a directory that they share with this machine.
pub(crate) struct World<'c> {
    cluster: &'c Cluster,
    pub(crate) scheduler: Scheduler,
    /// The custom runtime's name, and so that of its namespace.
    runtime: String,
}

impl<'c> World<'c> {
    /// A scheduler that runs, and a name for the runtime that nobody else has.
    pub(crate) fn new(cluster: &'c Cluster, runtime: &str) -> Self {
        let mut scheduler = Scheduler::stopped_at(ADDRESS);
        scheduler.run(&Start::default());
        Self::of(cluster, runtime, scheduler)
    }

    /// The same with this scheduler.
    pub(crate) fn of(cluster: &'c Cluster, runtime: &str, scheduler: Scheduler) -> Self {
        let unique = scheduler
            .home()
            .file_name()
            .and_then(|name| name.to_str())
            .expect("it has a name")
            .to_lowercase();
        Self {
            cluster,
            scheduler,
            runtime: format!(
                "{runtime}-{}",
                unique.replace(|c: char| !c.is_ascii_alphanumeric(), "")
            ),
        }
    }

    /// A directory that this machine and the Pods share.
    pub(crate) fn shared(&self) -> PathBuf {
        let shared = self.scheduler.home().join("shared");
        std::fs::create_dir_all(&shared).expect("a directory can be made");
        shared
    }

    /// Where its Jobs are.
    pub(crate) fn namespace(&self) -> String {
        format!("pvn-proxy-runtime-{}", self.runtime)
    }

    /// A command as a Job file: a shell script in the shared directory.
    pub(crate) fn script(&self, script: &str) -> String {
        self.script_in(TOOLS, script)
    }

    /// The same in another image.
    pub(crate) fn script_in(&self, image: &str, script: &str) -> String {
        let shared = self.shared();
        let job = json!({
            "apiVersion": "batch/v1", "kind": "Job",
            "spec": {"template": {"spec": {
                "terminationGracePeriodSeconds": 5,
                "volumes": [{"name": "shared", "hostPath": {"path": shared}}],
                "containers": [{
                    "name": "script", "image": image, "command": ["sh", "-c", script], "workingDir": shared,
                    "volumeMounts": [{"name": "shared", "mountPath": shared}],
                }],
            }}},
        });
        json!({"type": "KUBERNETES", "inlined": job.to_string()}).to_string()
    }

    /// Applies a custom runtime of these commands on a cluster with these settings, an application
    /// and a service, and releases it.
    pub(crate) fn release(&self, settings: &Value, commands: &str) {
        self.apply(settings, commands);
        self.scheduler.ok(&["services", "push", "s", "--app", "app"]);
    }

    /// The same without the release.
    pub(crate) fn apply(&self, settings: &Value, commands: &str) {
        let (runtime, kubeconfig) = (&self.runtime, self.cluster.account().kubeconfig());
        let mut cluster = json!({"kubeconfig": kubeconfig});
        cluster
            .as_object_mut()
            .expect("it is one")
            .extend(settings.as_object().cloned().unwrap_or_default());
        self.scheduler.apply(&format!(
            "runtime: {{name: k8s, kubernetes: {cluster}}}\n---\nruntime:\n  name: {runtime}\n  \
             custom:\n    proxyRuntime: {{runtime: k8s}}\n{commands}\n---\napplication: {{name: \
             app, releaseChannels: [{{name: c, runtimes: [{{runtime: \
             {runtime}}}]}}]}}\n---\nservice: {{name: s, application: app}}\n",
        ));
    }

    /// The jobs of this kind, newest first.
    pub(crate) fn jobs(&self, kind: &str) -> Vec<Value> {
        self.scheduler.jobs("s", kind)
    }

    /// The Jobs that the cluster has of it, as JSON.
    pub(crate) fn jobs_there(&self) -> String {
        self.cluster
            .kubectl(&["get", "jobs", "--namespace", &self.namespace(), "--output", "json"], "")
    }

    /// The newest job of this kind that is over.
    pub(crate) fn ended(&self, kind: &str) -> Value {
        wait::until_within(wait::PATIENCE * 2, &format!("a {kind} to end"), || {
            self.jobs(kind).into_iter().find(|job| !job["endedAt"].is_null())
        })
    }

    /// What it printed: stdout, stderr.
    pub(crate) fn log(&self, job: &Value) -> (String, String) {
        let output =
            self.scheduler.pvnctl(["jobs", "logs", job["id"].as_str().expect("a job has an id")]);
        (
            String::from_utf8_lossy(&output.stdout).into_owned(),
            String::from_utf8_lossy(&output.stderr).into_owned(),
        )
    }

    /// Releases the service, if the daemon can be reached.
    pub(crate) fn pushes(&self) -> bool {
        self.scheduler.pvnctl(["services", "push", "s", "--app", "app"]).status.success()
    }

    /// Lets commands end that wait for it.
    pub(crate) fn go(&self) {
        std::fs::write(self.shared().join("go"), "").expect("a file can be written");
    }

    /// Waits until the apply runs, and pvn knows it.
    pub(crate) fn runs(&self) {
        let ledger = self.shared().join("ledger");
        wait::until("the apply to run", || ledger.exists().then_some(()));
        wait::until("pvn to see that it runs", || {
            self.jobs("apply").iter().any(|job| job["status"] == "RUNNING").then_some(())
        });
    }

    /// Whoever was unlucky is retried by hand, and that is one more run.
    pub(crate) fn goes_again(&self) {
        self.go();
        self.scheduler.ok(&["services", "retry", "s", "--app", "app", "--channel", "c"]);
        self.scheduler.channel_becomes("s", "c", "CONVERGED");
        self.check_ran(2);
    }

    /// So many jobs ran, each once, and the cluster saw as many decisions.
    pub(crate) fn check_ran(&self, times: usize) {
        let ledger = std::fs::read_to_string(self.shared().join("ledger")).unwrap_or_default();
        let mut ran: Vec<_> = ledger.lines().collect();
        let runs = ran.len();
        ran.sort_unstable();
        ran.dedup();
        assert_eq!((ran.len(), runs), (times, times), "jobs that ran, and runs: {ledger}");
        self.check_created_once();
    }

    /// P1 and rule 11 as the API server saw them: every Job was created once.
    pub(crate) fn check_created_once(&self) {
        let creations = self.cluster.creations(&self.namespace());
        assert!(!creations.is_empty(), "no Job was created in {}", self.namespace());
        let twice: Vec<_> = creations.iter().filter(|(_, count)| **count != 1).collect();
        assert!(twice.is_empty(), "created more than once: {twice:?}");
    }
}

/// What was printed came over HTTP and not in a marked line of the container's log, as it does
/// after 10 s without an answer.
pub(crate) fn check_delivered(cluster: &Cluster, namespace: &str) {
    // A report is often here before the kubelet has told how its Pod is.
    let jobs = ["jobs", "--namespace", namespace, "--selector", "pvn.dev/kind=apply"];
    cluster.kubectl(
        &[&["wait", "--for", "condition=Complete", "--timeout", "180s"], &jobs[..]].concat(),
        "",
    );
    let log = cluster.kubectl(
        &["logs", "--namespace", namespace, "--selector", "pvn.dev/kind=apply", "--tail", "-1"],
        "",
    );
    assert!(log.contains("out") && !log.contains("pvn-wrapper-report:"), "{log}");
}

/// Runs a test's talk with the cluster.
pub(crate) fn run<T>(test: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime can be made")
        .block_on(test)
}

/// Settings of a runtime that puts our wrapper before its commands.
pub(crate) fn injected(cluster: &Cluster) -> Value {
    let wrapper = programs::program("pvn-wrapper");
    cluster.import(&Image::empty(WRAPPER).program("pvn-wrapper", &wrapper));
    cluster.import(&Image::with_tools(TOOLS_AND_LIBRARIES).program("unused/pvn-wrapper", &wrapper));
    json!({"wrapper": {"inject": true, "image": WRAPPER}})
}
