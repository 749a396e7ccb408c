//! The tools that are built in, through the real daemon: each by its own command-line tool against
//! a small server that stands in for its cloud, Pulumi by a replay of what it does.

use fakes::turnstile::Turnstile;
use serde_json::Value;
use tests::dice::Dice;
use tests::scheduler::{Scheduler, Start};
use tests::{skip, wait};

mod cloud_run;
mod ecs;
mod published;
mod pulumi;
mod shared_calls;

/// A service in a channel of the application `app`, as `pvnctl` shows and moves it.
struct Followed<'a> {
    scheduler: &'a Scheduler,
    service: &'a str,
    channel: &'a str,
}

impl Followed<'_> {
    fn now(&self) -> Value {
        self.scheduler.channel(self.service, self.channel)
    }

    #[track_caller]
    fn becomes(&self, status: &str) -> Value {
        self.scheduler.channel_becomes(self.service, self.channel, status)
    }

    /// Waits until it is so, and returns how it stands.
    #[track_caller]
    fn comes_to(&self, what: &str, is_so: impl Fn(&Value) -> bool) -> Value {
        let mut last = Value::Null;
        let found = wait::within(wait::PATIENCE, || {
            last = self.now();
            is_so(&last).then(|| last.clone())
        });
        found.unwrap_or_else(|| {
            let situation = self.scheduler.situation(self.service, self.channel);
            panic!("{situation}\nnot {what}: {last:#}")
        })
    }

    /// Waits until its message says all of this.
    #[track_caller]
    fn says(&self, words: &[&str]) -> Value {
        self.comes_to(&format!("one that says {words:?}"), |channel| {
            let message = channel["message"].as_str().unwrap_or_default();
            words.iter().all(|word| message.contains(word))
        })
    }

    /// Waits until it has converged at this version.
    #[track_caller]
    fn arrives(&self, version: &str) -> Value {
        self.comes_to(&format!("converged at {version}"), |channel| {
            channel["status"] == "CONVERGED" && channel["desiredVersion"] == version
        })
    }

    /// Releases it with this value of its parameter `tag`; returns the version.
    fn push(&self, tag: &str) -> String {
        let value = format!("tag={tag}");
        let release = self.scheduler.json(&[
            "services",
            "push",
            self.service,
            "--app",
            "app",
            "--param",
            &value,
        ]);
        release["version"].as_str().unwrap_or_else(|| panic!("{release:#}")).to_owned()
    }

    fn decide(&self, word: &str, more: &[&str]) {
        let target = ["services", word, self.service, "--app", "app", "--channel", self.channel];
        self.scheduler.ok(&[&target[..], more].concat());
    }

    /// Waits until people are asked, and says yes to what they see.
    #[track_caller]
    fn is_asked_and_approves(&self) -> Value {
        let asked = self.becomes("WAITING_MANUAL_APPROVAL");
        self.decide("approve", &["--yes"]);
        asked
    }

    fn jobs(&self, kind: &str) -> Vec<Value> {
        let of = ["jobs", "list", "--app", "app", "--service", self.service];
        let which = ["--channel", self.channel, "--kind", kind];
        let jobs = self.scheduler.json(&[of.as_slice(), &which].concat());
        jobs.as_array().expect("a list").clone()
    }

    /// The applies whose command began. One that was decided before a death of the daemon and had
    /// not begun is decided anew.
    fn applies(&self) -> Vec<Value> {
        self.jobs("apply").into_iter().filter(|job| !job["startedAt"].is_null()).collect()
    }

    /// The cause with this code, of `explain`.
    #[track_caller]
    fn cause(&self, code: &str) -> Value {
        let of = ["services", "explain", self.service, "--app", "app", "--channel", self.channel];
        let explained = self.scheduler.json(&of);
        let causes = explained["causes"].as_array().expect("a list").clone();
        let found = causes.into_iter().find(|cause| cause["code"] == code);
        found.unwrap_or_else(|| panic!("no {code} in {explained:#}"))
    }

    /// What getInfo tells under this name, once it does and it holds this.
    #[track_caller]
    fn info(&self, name: &str, text: &str) {
        self.comes_to(&format!("one of which getInfo tells {name} {text}"), |channel| {
            channel["info"].as_array().into_iter().flatten().any(|info| {
                info["name"] == name && info["text"].as_str().is_some_and(|at| at.contains(text))
            })
        });
    }
}

/// Kills the daemon while a call waits at the turnstile, and lets the call go on before or after
/// another daemon is started: soon, for a tool waits half a minute for an answer.
fn killed_at(scheduler: &mut Scheduler, turnstile: &Turnstile, start: &Start<'_>, dice: &mut Dice) {
    wait::until("a call to wait", || (turnstile.waiting() > 0).then_some(()));
    scheduler.kill();
    let goes_on_alone = dice.percent(50);
    if goes_on_alone {
        turnstile.open();
    }
    scheduler.spawn(start);
    if !goes_on_alone {
        turnstile.open();
    }
    wait::until("another daemon to be ready", || {
        scheduler.pvnctl(["runtimes", "list"]).status.success().then_some(())
    });
}

/// The last link of what is seen of the only object, by its name.
#[track_caller]
fn link<'a>(channel: &'a Value, name: &str) -> &'a str {
    let links = channel["objects"][0]["externalLinks"].as_array();
    let found = links.into_iter().flatten().find(|link| link["name"] == name);
    found.and_then(|link| link["url"].as_str()).unwrap_or_else(|| panic!("no {name}: {channel:#}"))
}

/// Whether a tool is there; counted as skipped if it is not.
fn is_there(tool: &str, test: &str) -> bool {
    let found = skip::tool(tool).is_some();
    if !found {
        skip::skipped(test, &format!("{tool} is not on PATH"));
    }
    found
}
