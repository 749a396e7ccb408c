//! The real `terraform` (or OpenTofu), with its built-in provider, through drift, plan, approval
//! and apply.

use serde_json::Value;
use tests::scheduler::{Scheduler, Start};
use tests::{copy, skip, wait};

mod runner;

/// The scheduler over a copy of an example, with every config in it pushed.
fn example(name: &str) -> Option<Scheduler> {
    changed_example(name, |_| {})
}

/// An example, copied and changed before anything reads it.
fn changed_example(name: &str, change: impl FnOnce(&std::path::Path)) -> Option<Scheduler> {
    if skip::tool("terraform").or_else(|| skip::tool("tofu")).is_none() {
        skip::skipped("terraform", "neither terraform nor tofu is on PATH");
        return None;
    }
    let mut scheduler = Scheduler::stopped();
    let root = scheduler.home().join("example");
    copy::example(name, &root);
    change(&root);
    scheduler.run(&Start { root: Some(&root), ..Start::default() });
    scheduler.ok(&[
        "configs",
        "apply",
        "--no-prompt",
        "--push",
        root.to_str().expect("the path is UTF-8"),
    ]);
    Some(scheduler)
}

fn service(scheduler: &Scheduler) -> (String, String) {
    let services = scheduler.json(&["services", "list"]);
    let name = |field: &str| {
        services[0][field].as_str().unwrap_or_else(|| panic!("no {field} in {services}")).to_owned()
    };
    (name("name"), name("application"))
}

struct World<'a> {
    scheduler: &'a Scheduler,
    service: String,
    application: String,
}

impl World<'_> {
    fn channel(&self) -> Value {
        self.scheduler.json(&["services", "get", &self.service, "--app", &self.application])
            ["channels"][0]
            .clone()
    }

    fn becomes(&self, status: &str) -> Value {
        let mut last = Value::Null;
        wait::until(&format!("the channel to be {status}"), || {
            last = self.channel();
            (last["status"] == status).then(|| last.clone())
        })
    }

    /// Approves, pauses or resumes the channel, as a person would.
    fn decide(&self, word: &str) {
        let channel = self.channel()["channel"].as_str().expect("a channel has a name").to_owned();
        let mut arguments = vec![
            "services",
            word,
            &self.service,
            "--app",
            &self.application,
            "--channel",
            &channel,
        ];
        if word == "approve" {
            arguments.extend(["--yes", "--reason", "looked at it"]);
        }
        self.scheduler.ok(&arguments);
    }

    fn jobs(&self, kind: &str) -> Vec<Value> {
        let jobs = self.scheduler.json(&[
            "jobs",
            "list",
            "--app",
            &self.application,
            "--service",
            &self.service,
            "--kind",
            kind,
        ]);
        jobs.as_array().expect("a list").clone()
    }

    fn approvals(&self) -> Vec<Value> {
        self.channel()["approvals"].as_array().expect("a list").clone()
    }
}

#[test]
fn rule_15_drift_is_planned_shown_approved_and_exactly_that_plan_is_applied() {
    let Some(scheduler) = example("terraform") else { return };
    let (service, application) = service(&scheduler);
    let world = World { scheduler: &scheduler, service, application };

    let waiting = world.becomes("WAITING_MANUAL_APPROVAL");
    let asked = &waiting["approvals"][0];
    assert_eq!(asked["status"], "PENDING");
    let shown = asked["explanation"].as_str().expect("the plan is shown");
    assert!(shown.contains("terraform_data.site") && shown.contains("1 to add"), "{shown}");
    assert!(world.jobs("apply").is_empty(), "nothing runs before the approval");

    let fetches = world.jobs("fetch").len();
    wait::until("two more fetches of the same plan", || {
        (world.jobs("fetch").len() >= fetches + 2).then_some(())
    });
    let approvals = world.approvals();
    assert_eq!(approvals.len(), 1, "the same plan asks once: {approvals:#?}");

    world.decide("approve");
    let converged = world.becomes("CONVERGED");
    assert_eq!(converged["reason"], Value::Null, "{converged:#}");
    let applies = world.jobs("apply");
    assert_eq!(applies.len(), 1, "{applies:#?}");
    let log = scheduler.ok(&["jobs", "logs", applies[0]["id"].as_str().expect("a job has an id")]);
    assert!(log.contains("1 added, 0 changed, 0 destroyed"), "{log}");

    // The world behind it changes: that is drift, a new plan and a new question.
    let site = scheduler.home().join("example/production/site.txt");
    std::fs::write(&site, "somebody was here").expect("a file can be written");
    let waiting = world.becomes("WAITING_MANUAL_APPROVAL");
    assert_eq!(waiting["approvals"][0]["status"], "PENDING");
    assert_eq!(world.jobs("apply").len(), 1, "nothing runs before the approval");
    world.decide("approve");
    world.becomes("CONVERGED");
    assert_ne!(
        std::fs::read_to_string(&site).expect("the site is there"),
        "somebody was here",
        "repaired"
    );
    assert_eq!(world.jobs("apply").len(), 2);
}

#[test]
fn rule_15_a_plan_that_changed_after_its_approval_is_not_applied_but_asks_again() {
    let Some(scheduler) = example("terraform") else { return };
    let (service, application) = service(&scheduler);
    let world = World { scheduler: &scheduler, service, application };
    world.becomes("WAITING_MANUAL_APPROVAL");
    world.decide("approve");
    world.becomes("CONVERGED");

    let example = scheduler.home().join("example");
    let break_it = || {
        std::fs::write(example.join("production/site.txt"), "somebody was here")
            .expect("a file can be written")
    };
    break_it();
    world.becomes("WAITING_MANUAL_APPROVAL");
    // While nothing moves, a person approves and somebody else changes the state: the plan that was
    // approved is no more.
    world.decide("pause");
    let approved = world.approvals()[0].clone();
    world.decide("approve");
    let tool =
        skip::tool("terraform").or_else(|| skip::tool("tofu")).expect("checked by the example");
    let mut by_hand = std::process::Command::new(tool);
    by_hand.args(["apply", "-auto-approve", "-input=false", "-no-color"]).current_dir(&example);
    let own = std::fs::read_dir(scheduler.data().join("instances"))
        .expect("it is there")
        .next()
        .expect("one instance")
        .expect("it can be read");
    by_hand
        .env("TF_VAR_content", "v1")
        .env("TF_VAR_channel", "production")
        .env("TF_DATA_DIR", own.path().join("terraform"));
    assert!(by_hand.output().expect("the tool can be started").status.success());
    break_it();
    world.decide("resume");

    let asked = wait::until("the other plan to be asked about", || {
        let newest = world.approvals().first()?.clone();
        (newest["status"] == "PENDING" && newest["planDigest"] != approved["planDigest"])
            .then_some(newest)
    });
    assert_ne!(asked["id"], approved["id"]);
    let applied: Vec<_> =
        world.jobs("apply").into_iter().filter(|job| job["status"] == "SUCCEEDED").collect();
    assert_eq!(applied.len(), 1, "only the first plan was ever applied: {applied:#?}");
}
