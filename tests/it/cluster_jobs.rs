//! Commands as Jobs on a real cluster: the whole path from a release to what the cluster ran, with and without the wrapper.

use std::path::PathBuf;

use serde_json::{Value, json};
use tests::cluster::{ADDRESS, Cluster, Image, TOOLS};
use tests::programs;
use tests::scheduler::{Scheduler, Start};
use tests::wait;

/// An image that holds the wrapper and nothing else, but for the libraries of a program that is not built static.
const WRAPPER: &str = "pvn.test/wrapper:1";

/// A shell with the usual tools, and the libraries that the wrapper needs when it is not built static.
const TOOLS_AND_LIBRARIES: &str = "pvn.test/tools-and-libraries:1";

/// A scheduler that Pods reach, with a directory that they share with this machine.
struct World {
    cluster: &'static Cluster,
    scheduler: Scheduler,
    /// The custom runtime's name, and so that of its namespace.
    runtime: String,
}

impl World {
    fn new(cluster: &'static Cluster, runtime: &str) -> Self {
        let mut scheduler = Scheduler::stopped_at(ADDRESS);
        scheduler.run(&Start::default());
        let unique = scheduler.home().file_name().and_then(|name| name.to_str()).expect("it has a name").to_lowercase();
        Self { cluster, scheduler, runtime: format!("{runtime}-{}", unique.replace(|c: char| !c.is_ascii_alphanumeric(), "")) }
    }

    fn shared(&self) -> PathBuf {
        let shared = self.scheduler.home().join("shared");
        std::fs::create_dir_all(&shared).expect("a directory can be made");
        shared
    }

    fn namespace(&self) -> String {
        format!("pvn-proxy-runtime-{}", self.runtime)
    }

    /// A command as a Job file: a shell script in the shared directory.
    fn script(&self, script: &str) -> String {
        self.script_in(TOOLS, script)
    }

    fn script_in(&self, image: &str, script: &str) -> String {
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

    /// Applies a custom runtime of these commands on a cluster with these settings, an application and a service, and releases it.
    fn release(&self, settings: &Value, commands: &str) {
        self.apply(settings, commands);
        self.scheduler.ok(&["services", "push", "s", "--app", "app"]);
    }

    fn apply(&self, settings: &Value, commands: &str) {
        let (runtime, kubeconfig) = (&self.runtime, self.cluster.kubeconfig());
        let mut cluster = json!({"kubeconfig": kubeconfig});
        cluster.as_object_mut().expect("it is one").extend(settings.as_object().cloned().unwrap_or_default());
        self.scheduler.apply(&format!(
            "runtime: {{name: k8s, kubernetes: {cluster}}}\n---\nruntime:\n  name: {runtime}\n  custom:\n    proxyRuntime: {{runtime: k8s}}\n{commands}\n---\n\
             application: {{name: app, releaseChannels: [{{name: c, runtimes: [{{runtime: {runtime}}}]}}]}}\n---\nservice: {{name: s, application: app}}\n",
        ));
    }

    fn jobs(&self, kind: &str) -> Vec<Value> {
        let jobs = self.scheduler.json(&["jobs", "list", "--app", "app", "--service", "s", "--kind", kind]);
        jobs.as_array().expect("jobs are a list").clone()
    }

    /// The newest job of this kind that is over.
    fn ended(&self, kind: &str) -> Value {
        wait::until_within(wait::PATIENCE * 2, &format!("a {kind} to end"), || {
            self.jobs(kind).into_iter().find(|job| !job["endedAt"].is_null())
        })
    }

    fn log(&self, job: &Value) -> (String, String) {
        let output = self.scheduler.pvnctl(["jobs", "logs", job["id"].as_str().expect("a job has an id")]);
        (String::from_utf8_lossy(&output.stdout).into_owned(), String::from_utf8_lossy(&output.stderr).into_owned())
    }

    /// P1 and rule 11 as the API server saw them: every Job was created once.
    fn check_created_once(&self) {
        let creations = self.cluster.creations(&self.namespace());
        assert!(!creations.is_empty(), "no Job was created in {}", self.namespace());
        let twice: Vec<_> = creations.iter().filter(|(_, count)| **count != 1).collect();
        assert!(twice.is_empty(), "created more than once: {twice:?}");
    }
}

fn injected(cluster: &Cluster) -> Value {
    let wrapper = programs::program("pvn-wrapper");
    cluster.import(&Image::empty(WRAPPER).program("pvn-wrapper", &wrapper));
    cluster.import(&Image::with_tools(TOOLS_AND_LIBRARIES).program("unused/pvn-wrapper", &wrapper));
    json!({"wrapper": {"inject": true, "image": WRAPPER}})
}

#[test]
fn a_service_converges_on_a_cluster_by_exit_codes() {
    let Some(cluster) = Cluster::get("a_service_converges_on_a_cluster_by_exit_codes") else { return };
    let world = World::new(cluster, "plain");
    let fetch = world.script("echo looking; [ \"$(cat state)\" = \"$PVN_SERVICE_VERSION\" ] || exit 2");
    let apply = world.script("echo doing; echo aside >&2; echo $PVN_SERVICE_VERSION > state");
    world.release(&json!({}), &format!("    fetch: {{kubernetesConfig: {fetch}}}\n    apply: {{kubernetesConfig: {apply}}}"));
    world.scheduler.channel_becomes("s", "c", "CONVERGED");
    let apply = world.ended("apply");
    assert_eq!((&apply["status"], &apply["exitCode"]), (&json!("SUCCEEDED"), &json!(0)));
    let (stdout, stderr) = world.log(&apply);
    let mut lines: Vec<_> = stdout.lines().collect();
    lines.sort_unstable();
    assert_eq!((lines, stderr.as_str()), (vec!["aside", "doing"], ""), "without a wrapper the log is one");
    assert!(world.jobs("fetch").iter().any(|job| job["exitCode"] == 2), "the first fetch found work");
    world.check_created_once();
}

#[test]
fn an_injected_wrapper_reports_with_streams_apart_and_structured_output() {
    let Some(cluster) = Cluster::get("an_injected_wrapper_reports_with_streams_apart_and_structured_output") else { return };
    let world = World::new(cluster, "wrapped");
    let object = r#"{"objects": [{"name": "o", "objectType": "T", "status": "SUCCEEDED", "versions": [{"version": "'$(cat state)'", "active": true}]}]}"#;
    let fetch = world.script_in(TOOLS_AND_LIBRARIES, &format!("[ -e state ] || echo none > state; echo '{object}'"));
    let apply = world.script_in(TOOLS_AND_LIBRARIES, "echo out; echo err >&2; echo $PVN_SERVICE_VERSION > state");
    world.release(
        &injected(cluster),
        &format!("    fetch: {{fetchMode: STRUCTURED_OUTPUT, kubernetesConfig: {fetch}}}\n    apply: {{kubernetesConfig: {apply}}}"),
    );
    let channel = world.scheduler.channel_becomes("s", "c", "CONVERGED");
    assert_eq!(channel["objects"][0]["name"], "o");
    let apply = world.ended("apply");
    assert_eq!(world.log(&apply), ("out\n".to_owned(), "err\n".to_owned()));
    world.check_created_once();
}

#[test]
fn an_image_that_is_not_there_is_told_in_the_clusters_own_words() {
    let Some(cluster) = Cluster::get("an_image_that_is_not_there_is_told_in_the_clusters_own_words") else { return };
    let world = World::new(cluster, "absent");
    world.release(&json!({}), "    apply: {timeout: 8s, taskConfig: {program: {image: 'pvn.test/absent:1'}}}");
    let channel = world.scheduler.channel_becomes("s", "c", "FAILED");
    assert_eq!(channel["reason"], "APPLY_FAILED");
    let message = channel["message"].as_str().expect("it has a message");
    assert!(message.contains("pvn.test/absent:1") && message.contains("Pull"), "{channel:#}");
    assert_eq!(world.ended("apply")["exitCode"], Value::Null);
}

#[test]
fn a_command_that_is_not_there_is_told() {
    let Some(cluster) = Cluster::get("a_command_that_is_not_there_is_told") else { return };
    let world = World::new(cluster, "nocommand");
    world.release(&json!({}), &format!("    apply: {{taskConfig: {{program: {{image: '{TOOLS}', entrypoint: [no-such-command]}}}}}}"));
    let channel = world.scheduler.channel_becomes("s", "c", "FAILED");
    assert!(channel["message"].as_str().is_some_and(|message| message.contains("no-such-command")), "{channel:#}");
}

#[test]
fn p6_a_job_goes_on_without_the_scheduler_and_is_taken_up_again() {
    let Some(cluster) = Cluster::get("p6_a_job_goes_on_without_the_scheduler_and_is_taken_up_again") else { return };
    let mut world = World::new(cluster, "restart");
    let apply = world.script("echo $PVN_JOB_ID >> ledger; while [ ! -e go ]; do sleep 0.1; done; echo done");
    world.release(&json!({}), &format!("    apply: {{kubernetesConfig: {apply}}}"));
    let ledger = world.shared().join("ledger");
    wait::until("the apply to run", || ledger.exists().then_some(()));
    world.scheduler.kill();
    std::fs::write(world.shared().join("go"), "").expect("a file can be written");
    world.scheduler.run(&Start::default());
    world.scheduler.channel_becomes("s", "c", "CONVERGED");
    let runs = std::fs::read_to_string(ledger).expect("the ledger can be read");
    assert_eq!(runs.lines().count(), 1, "it ran once: {runs}");
    world.check_created_once();
}

#[test]
fn p7_a_job_that_is_cancelled_is_gone_from_the_cluster() {
    let Some(cluster) = Cluster::get("p7_a_job_that_is_cancelled_is_gone_from_the_cluster") else { return };
    let world = World::new(cluster, "cancel");
    let apply = world.script("trap 'echo stopped > stopped; exit 3' TERM; echo > started; while :; do sleep 0.1; done");
    world.release(&json!({}), &format!("    apply: {{kubernetesConfig: {apply}}}"));
    let started = world.shared().join("started");
    wait::until("the apply to run", || started.exists().then_some(()));
    let job = world.jobs("apply").remove(0);
    world.scheduler.ok(&["jobs", "cancel", job["id"].as_str().expect("a job has an id")]);
    let channel = world.scheduler.channel_becomes("s", "c", "FAILED");
    assert_eq!(channel["reason"], "CANCELLED");
    assert_eq!(world.ended("apply")["status"], "CANCELLED");
    assert!(world.shared().join("stopped").exists(), "it was asked to stop");
    world.check_created_once();
}

/// Points at which the daemon kills itself, in the order in which a job on a cluster passes them. `pvn_scheduler::crash`
/// documents each.
const POINTS: &[&str] = &[
    "before-start",
    "after-start",
    "after-made",
    "after-recorded",
    "after-let-go",
    "after-started",
    "after-report",
    "before-ack",
    "after-ack",
];

#[test]
fn p1_p5_killed_at_every_named_point_with_jobs_on_a_cluster_each_runs_once() {
    let Some(cluster) = Cluster::get("p1_p5_killed_at_every_named_point_with_jobs_on_a_cluster_each_runs_once") else { return };
    for point in POINTS {
        let mut world = World::new(cluster, "kill");
        let fetch = world.script("[ \"$(cat state)\" = \"$PVN_SERVICE_VERSION\" ] || exit 2");
        let apply = world.script("echo $PVN_JOB_ID >> ledger; sleep 1; echo $PVN_SERVICE_VERSION > state");
        let commands = format!(
            "    fetch: {{pollInterval: 2s, kubernetesConfig: {fetch}}}\n    apply: {{kubernetesConfig: {apply}}}\n    convergenceGracePeriod: 2s"
        );
        world.apply(&json!({}), &commands);
        world.scheduler.stop();
        // The second time: the apply, after the fetch.
        let crash_at = format!("{point}:2");
        world.scheduler.spawn(&Start { crash_at: Some(&crash_at), ..Start::default() });
        let mut pushed = false;
        wait::until(&format!("the daemon to die at {crash_at}"), || {
            pushed |= pushed || world.scheduler.pvnctl(["services", "push", "s", "--app", "app"]).status.success();
            world.scheduler.exited()
        });
        world.scheduler.run(&Start::default());
        world.scheduler.channel_becomes("s", "c", "CONVERGED");
        let ledger = std::fs::read_to_string(world.shared().join("ledger")).expect("an apply ran");
        let mut jobs: Vec<_> = ledger.lines().collect();
        let runs = jobs.len();
        jobs.sort_unstable();
        jobs.dedup();
        assert_eq!(jobs.len(), runs, "after a death at {crash_at} a job ran twice: {ledger}");
        world.check_created_once();
    }
}
