//! Everything that converges on this machine converges on a cluster: one table of cases, two places
//! where their commands run. All cases of a place go at once, each as an application of its own
//! under one scheduler.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use tests::cluster::{ADDRESS, Cluster, Shared};
use tests::scheduler::{Scheduler, Start};
use tests::wait;

use crate::cluster_world::{TOOLS_AND_LIBRARIES, injected};

mod cases;

use cases::CASES;

/// Longest wait for one step of a case: all of them run at once, on whatever is left of a busy
/// machine.
const STEP_WITHIN: std::time::Duration = std::time::Duration::from_secs(180);

/// Pause between two questions of a case: eleven that each start a client all the time would leave
/// a cluster on the same machine so little that its Pods take a minute to begin.
const PAUSE: std::time::Duration = std::time::Duration::from_secs(1);

/// Where the commands run.
enum Place {
    Here,
    On { cluster: Shared, settings: Value },
}

/// The form that a command has in a config document.
type Form<'f> = dyn Fn(&[&str]) -> Value + 'f;

struct Case {
    /// Of its application, its runtime and its directory.
    name: &'static str,
    /// The runtime's commands and what else stands in `custom`, given the form of a command.
    custom: fn(&Form<'_>) -> Value,
    /// What else stands in the service.
    service: fn() -> Value,
    /// What happens after the first release, and what must come of it.
    play: fn(&World<'_>),
}

/// A case that is being played.
struct World<'s> {
    scheduler: &'s Scheduler,
    name: &'static str,
    /// Where its commands run: files that they and the test share.
    directory: PathBuf,
}

impl World<'_> {
    fn push(&self) {
        self.scheduler.ok(&["services", "push", "s", "--app", self.name]);
    }

    fn channel(&self) -> Value {
        self.scheduler.json(&["services", "get", "s", "--app", self.name])["channels"][0].clone()
    }

    fn until<T>(&self, what: &str, ask: impl FnMut() -> Option<T>) -> T {
        wait::within_with_pauses(STEP_WITHIN, PAUSE, ask)
            .unwrap_or_else(|| panic!("gave up waiting for {what} in {}", self.name))
    }

    fn becomes(&self, status: &str, reason: Option<&str>) -> Value {
        let mut last = Value::Null;
        let found = wait::within_with_pauses(STEP_WITHIN, PAUSE, || {
            last = self.channel();
            (last["status"] == status && (reason.is_none() || last["reason"] == json!(reason)))
                .then(|| last.clone())
        });
        found.unwrap_or_else(|| panic!("{} is not {status} {reason:?} but {last:#}", self.name))
    }

    fn jobs(&self, kind: &str) -> Vec<Value> {
        let jobs = self.scheduler.json(&[
            "jobs",
            "list",
            "--app",
            self.name,
            "--service",
            "s",
            "--kind",
            kind,
        ]);
        jobs.as_array().expect("jobs are a list").clone()
    }

    /// What the newest job of this kind printed.
    fn log(&self, kind: &str) -> (Vec<u8>, Vec<u8>) {
        let job = self.jobs(kind).remove(0);
        let output =
            self.scheduler.pvnctl(["jobs", "logs", job["id"].as_str().expect("a job has an id")]);
        (output.stdout, output.stderr)
    }

    fn file(&self, name: &str) -> Option<String> {
        std::fs::read_to_string(self.directory.join(name)).ok()
    }

    fn write(&self, name: &str, text: &str) {
        std::fs::write(self.directory.join(name), text).expect("a file can be written");
    }
}

fn panic_message(panic: &(dyn std::any::Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no words")
}

fn with(command: &Value, more: &Value) -> Value {
    let mut apply = command.clone();
    apply.as_object_mut().expect("it is one").extend(more.as_object().expect("it is one").clone());
    apply
}

impl Place {
    /// A command in the form that it has in a config document here.
    fn command(&self, directory: &Path, argv: &[&str]) -> Value {
        match self {
            Self::Here => {
                json!({"taskConfig": {"program": {"name": "do", "entrypoint": argv, "workingDirectory": directory}}})
            }
            Self::On { .. } => {
                let job = json!({
                    "apiVersion": "batch/v1", "kind": "Job",
                    "spec": {"template": {"spec": {
                        "terminationGracePeriodSeconds": 5,
                        "volumes": [{"name": "shared", "hostPath": {"path": directory}}],
                        "containers": [{
                            "name": "do", "image": TOOLS_AND_LIBRARIES, "command": argv, "workingDir": directory,
                            "volumeMounts": [{"name": "shared", "mountPath": directory}],
                        }],
                    }}},
                });
                json!({"kubernetesConfig": {"type": "KUBERNETES", "inlined": job.to_string()}})
            }
        }
    }

    fn scheduler(&self) -> Scheduler {
        let mut scheduler = match self {
            Self::Here => Scheduler::stopped(),
            Self::On { .. } => Scheduler::stopped_at(ADDRESS),
        };
        scheduler.run(&Start::default());
        scheduler
    }

    /// Plays all cases at once; says of each that failed why.
    fn play(&self, cases: &[Case]) {
        let scheduler = self.scheduler();
        let unique = scheduler
            .home()
            .file_name()
            .and_then(|name| name.to_str())
            .expect("it has a name")
            .to_lowercase();
        let unique = unique.replace(|c: char| !c.is_ascii_alphanumeric(), "");
        let mut configs = String::new();
        let proxy = match self {
            Self::Here => "local",
            Self::On { settings, .. } => {
                writeln!(
                    configs,
                    "---\n{}",
                    json!({"runtime": {"name": "k8s", "kubernetes": settings}})
                )
                .expect("writing to a String");
                "k8s"
            }
        };
        let directory = |case: &Case| scheduler.home().join("shared").join(case.name);
        for case in cases {
            std::fs::create_dir_all(directory(case)).expect("a directory can be made");
            let runtime = format!("{}-{unique}", case.name);
            let custom = with(
                &(case.custom)(&|argv| self.command(&directory(case), argv)),
                &json!({"proxyRuntime": {"runtime": proxy}}),
            );
            let service = with(&(case.service)(), &json!({"name": "s", "application": case.name}));
            let channels = json!([{"name": "c", "runtimes": [{"runtime": runtime}]}]);
            for document in [
                json!({"runtime": {"name": runtime, "custom": custom}}),
                json!({"application": {"name": case.name, "releaseChannels": channels}}),
                json!({"service": service}),
            ] {
                writeln!(configs, "---\n{document}").expect("writing to a String");
            }
        }
        scheduler.apply(&configs);
        let failed: Vec<String> = std::thread::scope(|scope| {
            let (scheduler, directory) = (&scheduler, &directory);
            let played: Vec<_> = cases
                .iter()
                .map(|case| {
                    let play = move || {
                        let world =
                            World { scheduler, name: case.name, directory: directory(case) };
                        world.push();
                        (case.play)(&world);
                    };
                    (case.name, scope.spawn(play))
                })
                .collect();
            played
                .into_iter()
                .filter_map(|(name, thread)| {
                    let panic = thread.join().err()?;
                    Some(format!("{name}: {}", panic_message(panic.as_ref())))
                })
                .collect()
        });
        // Why comes last, which is what is read of a long log.
        assert!(
            failed.is_empty(),
            "the scheduler said:\n{}\nfailed:\n{}",
            scheduler.log(),
            failed.join("\n")
        );
        self.check_made_once(cases, &unique);
    }

    /// P1, of all Jobs of these cases.
    fn check_made_once(&self, cases: &[Case], unique: &str) {
        let Self::On { cluster, .. } = self else { return };
        for case in cases {
            let creations = cluster.creations(&format!("pvn-proxy-runtime-{}-{unique}", case.name));
            assert!(
                !creations.is_empty() && creations.values().all(|count| *count == 1),
                "P1: {creations:?}"
            );
        }
    }
}

#[test]
fn every_case_converges_on_this_machine() {
    Place::Here.play(CASES);
}

#[test]
fn every_case_converges_on_a_cluster() {
    let Some(cluster) = Cluster::get("every_case_converges_on_a_cluster") else { return };
    let mut settings = injected(&cluster);
    settings["kubeconfig"] = json!(cluster.kubeconfig());
    Place::On { cluster, settings }.play(CASES);
}
