//! A real scheduler over a copy of an example that has one service in one release channel, and what
//! a person who looks after it would ask and do.

use std::ffi::OsStr;
use std::path::PathBuf;

use serde_json::Value;

use crate::scheduler::{Scheduler, Start};
use crate::{copy, wait};

/// The scheduler, its service pushed.
pub struct Example {
    scheduler: Scheduler,
    service: String,
    application: String,
}

impl Example {
    /// A copy of `examples/NAME`, run with these variables and pushed with these values of
    /// parameters (`NAME=VALUE`).
    ///
    /// # Panics
    /// When the scheduler does not start, or refuses the configs.
    pub fn of(name: &str, environment: &[(&str, &OsStr)], values: &[&str]) -> Self {
        let mut scheduler = Scheduler::stopped();
        let root = scheduler.home().join("example");
        copy::example(name, &root);
        scheduler.run(&Start {
            root: Some(&root),
            environment: environment.to_vec(),
            ..Start::default()
        });
        scheduler.ok(&[
            "configs",
            "apply",
            "--no-prompt",
            root.to_str().expect("the path is UTF-8"),
        ]);
        let services = scheduler.json(&["services", "list"]);
        let named = |field: &str| {
            let name = services[0][field].as_str();
            name.unwrap_or_else(|| panic!("no {field} in {services}")).to_owned()
        };
        let (service, application) = (named("name"), named("application"));
        let example = Self { scheduler, service, application };
        example.push(values);
        example
    }

    /// Where its files are.
    pub fn directory(&self) -> PathBuf {
        self.scheduler.home().join("example")
    }

    /// A release with these values of parameters; the others stay.
    ///
    /// # Panics
    /// When it is refused.
    pub fn push(&self, values: &[&str]) {
        let mut arguments = vec!["services", "push", &self.service, "--app", &self.application];
        for value in values {
            arguments.extend(["--param", value]);
        }
        self.scheduler.ok(&arguments);
    }

    /// The channel as `services get` shows it.
    pub fn channel(&self) -> Value {
        let asked = ["services", "get", &self.service, "--app", &self.application];
        self.scheduler.json(&asked)["channels"][0].clone()
    }

    /// Waits until the channel is as wanted, and returns it.
    ///
    /// # Panics
    /// When it does not become so; with what it is instead and what its jobs said.
    pub fn becomes(&self, what: &str, is_so: impl Fn(&Value) -> bool) -> Value {
        let mut last = Value::Null;
        let found = wait::within(wait::PATIENCE, || {
            last = self.channel();
            is_so(&last).then(|| last.clone())
        });
        found.unwrap_or_else(|| {
            let jobs = [self.jobs("apply"), self.jobs("fetch")].concat();
            let said: Vec<_> = jobs.iter().take(4).map(|job| self.log(job)).collect();
            panic!("it is not {what} but {last:#}\n{jobs:#?}\n{}", said.join("\n---\n"))
        })
    }

    /// Waits until it is converged after this many applies.
    ///
    /// # Panics
    /// When it does not become so.
    pub fn converges_after(&self, applies: usize) {
        // Before the channel is asked: a converged one may have its next apply a moment later.
        let ended = wait::within(wait::PATIENCE, || {
            let jobs = self.jobs("apply");
            let ended = jobs.iter().all(|job| job["endedAt"].is_string());
            (ended && jobs.len() >= applies).then_some(())
        });
        let jobs = || self.jobs("apply");
        assert!(ended.is_some(), "{applies} applies did not end: {:#?}", jobs());
        let channel = self.becomes("converged", |channel| channel["status"] == "CONVERGED");
        assert_eq!(jobs().len(), applies, "{channel:#}");
    }

    /// Has fetch and getInfo run now.
    ///
    /// # Panics
    /// When it is refused.
    pub fn refresh(&self) {
        self.decide("refresh");
    }

    /// Has pvn try again what failed.
    ///
    /// # Panics
    /// When it is refused.
    pub fn retry(&self) {
        self.decide("retry");
    }

    fn decide(&self, word: &str) {
        let channel = self.channel()["channel"].as_str().expect("a channel has a name").to_owned();
        let flags = ["--app", &self.application, "--channel", &channel];
        self.scheduler.ok(&[&["services", word, &self.service][..], &flags].concat());
    }

    /// Its jobs of a kind, the last first.
    ///
    /// # Panics
    /// When they cannot be listed.
    pub fn jobs(&self, kind: &str) -> Vec<Value> {
        let of = ["--app", &self.application, "--service", &self.service, "--kind", kind];
        let jobs = self.scheduler.json(&[&["jobs", "list"][..], &of].concat());
        jobs.as_array().expect("a list").clone()
    }

    /// What a job printed.
    pub fn log(&self, job: &Value) -> String {
        let output = self.scheduler.pvnctl(["jobs", "logs", id(job)]);
        String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned()
    }

    /// What was shown to people by the last fetch that found work.
    ///
    /// # Panics
    /// When there is none, or it left nothing for people.
    pub fn explanation(&self) -> String {
        let fetches = self.jobs("fetch");
        let last = fetches.iter().find(|job| job["exitCode"] == 2).expect("a fetch found work");
        self.scheduler.ok(&["jobs", "files", id(last), "plan-explanation"])
    }
}

fn id(job: &Value) -> &str {
    job["id"].as_str().expect("a job has an id")
}
