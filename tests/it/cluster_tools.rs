//! A built-in runtime on a real cluster: terraform in Pods that come and go, with its state and the
//! world that it looks after at an address that they reach.

use std::path::Path;
use std::time::Duration;

use fakes::terraform_state::StateServer;
use serde_json::{Value, json};
use tests::cluster::{ADDRESS, Cluster, Image};
use tests::scheduler::{Scheduler, Start};
use tests::{programs, skip, wait};

mod aws;
mod ecs;

/// An image with a shell, terraform, the wrapper and the configuration: what a user builds.
const IMAGE: &str = "pvn.test/terraform:1";

/// How long an apply takes that is to be killed on its way, seconds.
const LONG: u32 = 8;

struct World {
    scheduler: Scheduler,
    states: StateServer,
    /// The cluster's runtime, and the one of terraform on it.
    config: String,
}

impl World {
    /// `None`, counted as skipped, without a cluster or the tool.
    fn new(test: &str, settings: &str) -> Option<Self> {
        let cluster = Cluster::get(test)?;
        let Some(terraform) = skip::tool("terraform").or_else(|| skip::tool("tofu")) else {
            skip::skipped(test, "neither terraform nor tofu is on PATH");
            return None;
        };
        let configuration = programs::repository().join("tests/it/cluster_tools/main.tf");
        cluster.import(
            &Image::with_tools(IMAGE)
                .program("bin/terraform", Path::new(&terraform))
                .program("pvn-wrapper", &programs::program("pvn-wrapper"))
                .file("site/main.tf", &configuration),
        );
        let states = StateServer::listening(&format!("{ADDRESS}:0"));
        let mut scheduler = Scheduler::stopped_at(ADDRESS);
        scheduler.run(&Start::default());
        let account = cluster.account();
        let runtime = account.name("tf");
        let at = states.address;
        let config = format!(
            "runtime: {{name: k8s, kubernetes: {{kubeconfig: {}}}}}\n---\nruntime:\n  name: \
             {runtime}\n  terraformRunner:\n    proxyRuntime: {{runtime: k8s}}\n    pollInterval: \
             2s\n    steadyStatePollInterval: 2s\n    fetchRetryPolicy: {{baseInterval: 2s, \
             maxInterval: 2s}}\n{settings}---\napplication: {{name: app, releaseChannels: [{{name: \
             c, runtimes: [{{runtime: {runtime}}}]}}]}}\n---\nservice:\n  name: s\n  application: \
             app\n  parameters: [{{name: seconds, string: {{defaultValue: '0'}}}}]\n  terraform:\n    \
             image: {IMAGE}\n    path: /site\n    backendConfig: {{address: http://{at}/states/s, \
             lock_address: http://{at}/states/s, unlock_address: http://{at}/states/s}}\n  env:\n    \
             TF_VAR_world: {{value: http://{at}/world}}\n    TF_VAR_content: {{value: v1}}\n    \
             TF_VAR_seconds: {{value: '{{{{.Params.seconds}}}}'}}\n",
            account.kubeconfig().display()
        );
        Some(Self { scheduler, states, config })
    }

    fn push(&self, seconds: u32) {
        self.scheduler.apply(&self.config);
        let seconds = format!("seconds={seconds}");
        self.scheduler.ok(&["services", "push", "s", "--app", "app", "--param", &seconds]);
    }

    fn becomes(&self, status: &str) -> Value {
        self.scheduler.channel_becomes("s", "c", status)
    }

    fn approve(&self) {
        self.scheduler.ok(&["services", "approve", "s", "--app", "app", "--channel", "c", "--yes"]);
    }

    /// The applies so far, with what each printed.
    fn applies(&self) -> Vec<(Value, String)> {
        let log = |job: &Value| {
            let id = job["id"].as_str().expect("a job has an id");
            let output = self.scheduler.pvnctl(["jobs", "logs", id]);
            let text = [output.stdout, output.stderr].concat();
            String::from_utf8_lossy(&text).into_owned()
        };
        let jobs = self.scheduler.jobs("s", "apply");
        jobs.into_iter().map(|job| (job.clone(), log(&job))).collect()
    }

    /// How often terraform has set the world.
    fn settings(&self) -> usize {
        self.states.kept().settings
    }

    fn content(&self) -> String {
        self.states.kept().content.clone()
    }
}

#[test]
fn terraform_in_pods_plans_asks_about_what_it_replaces_repairs_and_tells_a_lock() {
    let test = "terraform_in_pods_plans_asks_about_what_it_replaces_repairs_and_tells_a_lock";
    let Some(world) = World::new(test, "    requireApprovalForDestroy: true\n") else { return };
    world.push(0);
    world.becomes("CONVERGED");
    assert_eq!((world.content().as_str(), world.settings()), ("v1", 1));
    wait::until("the outputs to be shown", || {
        let info = world.scheduler.channel("s", "c")["info"].to_string();
        (info.contains("output content") && info.contains("serial 1")).then_some(())
    });

    "somebody".clone_into(&mut world.states.kept().content);
    let waiting = world.becomes("WAITING_MANUAL_APPROVAL");
    let shown = waiting["approvals"][0]["explanation"].as_str().expect("the plan is shown");
    let first = "Plan: 1 to add, 1 to destroy\n\nreplace terraform_data.site\n";
    assert!(shown.starts_with(first), "{shown}");
    world.approve();
    world.becomes("CONVERGED");
    assert_eq!((world.content().as_str(), world.settings()), ("v1", 2));

    let lock = json!({"ID": "1f2e", "Operation": "OperationTypeApply", "Who": "ann@laptop",
        "Version": "1.11.4", "Created": "2026-11-28T03:00:00Z", "Info": "", "Path": ""});
    world.states.kept().locks.insert("s".to_owned(), lock);
    let mut told = String::new();
    let is_told = wait::within(wait::PATIENCE, || {
        let explain = ["services", "explain", "s", "--app", "app", "--channel", "c"];
        told = world.scheduler.ok(&explain);
        told.contains("is locked under the ID 1f2e").then_some(())
    });
    assert!(is_told.is_some(), "{told}\n{}", world.scheduler.situation("s", "c"));
    world.states.kept().locks.clear();
    "somebody".clone_into(&mut world.states.kept().content);
    world.becomes("WAITING_MANUAL_APPROVAL");
}

#[test]
fn p1_terraform_in_a_pod_goes_on_without_the_daemon_and_runs_once() {
    let test = "p1_terraform_in_a_pod_goes_on_without_the_daemon_and_runs_once";
    let Some(mut world) = World::new(test, "") else { return };
    world.push(LONG);
    wait::until_within(wait::PATIENCE * 2, "terraform to hold its lock", || {
        let is_applying = |lock: &Value| lock["Operation"] == "OperationTypeApply";
        world.states.kept().locks.get("s").is_some_and(is_applying).then_some(())
    });
    world.scheduler.kill();
    wait::until_within(
        wait::PATIENCE + Duration::from_secs(LONG.into()),
        "terraform to end without the daemon",
        || (world.settings() == 1).then_some(()),
    );
    world.scheduler.run(&Start::default());
    world.becomes("CONVERGED");
    assert_eq!((world.content().as_str(), world.settings()), ("v1", 1));
    // One that came to nothing before it reached terraform is no second run; a busy node makes
    // such.
    let ran: Vec<(Value, String)> =
        world.applies().into_iter().filter(|(_, log)| log.contains("+ terraform apply")).collect();
    assert!(matches!(ran.as_slice(), [(job, _)] if job["status"] == "SUCCEEDED"), "{ran:#?}");
}
