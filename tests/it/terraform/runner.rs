//! `terraformRunner`, from its document to repaired drift, and written out by `runtimes eject`.

use tests::spool;

use super::*;

const EXAMPLE: &str = "terraform-runner";

impl World<'_> {
    fn status_of(&self, channel: &str) -> Value {
        let service =
            self.scheduler.json(&["services", "get", "site", "--app", "planned-infrastructure"]);
        let channels = service["channels"].as_array().expect("a list").clone();
        channels.into_iter().find(|one| one["channel"] == channel).expect("the example has it")
    }

    fn channel_becomes(&self, channel: &str, status: &str) -> Value {
        wait::until(&format!("{channel} to be {status}"), || {
            let found = self.status_of(channel);
            (found["status"] == status).then_some(found)
        })
    }

    fn approve(&self, channel: &str) {
        let target = ["site", "--app", "planned-infrastructure", "--channel", channel];
        self.scheduler.ok(&[&["services", "approve"], &target[..], &["--yes"]].concat());
    }
}

fn world(scheduler: &Scheduler) -> World<'_> {
    World {
        scheduler,
        service: "site".to_owned(),
        application: "planned-infrastructure".to_owned(),
    }
}

#[test]
fn a_terraform_runner_plans_asks_applies_that_plan_and_repairs_drift_channel_by_channel() {
    let Some(scheduler) = example(EXAMPLE) else { return };
    let world = world(&scheduler);
    let waiting = world.channel_becomes("staging", "WAITING_MANUAL_APPROVAL");
    let shown = waiting["approvals"][0]["explanation"].as_str().expect("the plan is shown");
    assert!(shown.starts_with("Plan: 1 to add\n"), "{shown}");
    assert!(shown.contains("# terraform_data.site will be created"), "{shown}");
    world.channel_becomes("production", "WAITING_PRECONDITIONS");
    assert!(world.jobs("apply").is_empty(), "nothing runs before the approval");
    world.approve("staging");
    world.channel_becomes("staging", "CONVERGED");
    world.channel_becomes("production", "WAITING_MANUAL_APPROVAL");
    world.approve("production");
    world.channel_becomes("production", "CONVERGED");
    assert_eq!(world.jobs("apply").len(), 2, "one apply a channel");
    let info = wait::until("the outputs to be shown", || {
        let info = world.status_of("staging")["info"].clone();
        info.to_string().contains("serial 1").then_some(info)
    });
    assert_eq!(info[0]["name"], "state", "{info}");

    let site = scheduler.home().join("example/site/staging.txt");
    std::fs::write(&site, "somebody was here").expect("a file can be written");
    world.channel_becomes("staging", "WAITING_MANUAL_APPROVAL");
    assert_eq!(world.status_of("production")["status"], "CONVERGED", "the other is left alone");
    world.approve("staging");
    world.channel_becomes("staging", "CONVERGED");
    assert_eq!(std::fs::read_to_string(&site).expect("the site is there"), "v1", "repaired");
}

#[test]
fn what_only_adds_goes_through_and_what_replaces_is_asked_about_and_named() {
    let scheduler = changed_example(EXAMPLE, |root| {
        let file = root.join("terraform-runner.pvn.yaml");
        let text = std::fs::read_to_string(&file).expect("the example can be read");
        let changed = text.replace("requireApprovalBeforeApply", "requireApprovalForDestroy");
        assert_ne!(changed, text, "the example asks before every apply");
        std::fs::write(&file, changed).expect("a file can be written");
    });
    let Some(scheduler) = scheduler else { return };
    let world = world(&scheduler);
    world.channel_becomes("production", "CONVERGED");
    assert_eq!(world.status_of("staging")["approvals"], serde_json::json!([]), "nobody is asked");

    let site = scheduler.home().join("example/site/staging.txt");
    std::fs::write(&site, "somebody was here").expect("a file can be written");
    let waiting = world.channel_becomes("staging", "WAITING_MANUAL_APPROVAL");
    let asked = &waiting["approvals"][0];
    let shown = asked["explanation"].as_str().expect("the plan is shown");
    let first = "Plan: 1 to add, 1 to destroy\n\nreplace terraform_data.site\n";
    assert!(shown.starts_with(first), "{shown}");
    let why = asked["description"].as_str().expect("it is said why somebody is asked");
    assert!(why.contains("destroys or replaces something"), "{why}");
    world.approve("staging");
    world.channel_becomes("staging", "CONVERGED");
    assert_eq!(std::fs::read_to_string(&site).expect("the site is there"), "v1", "repaired");
}

#[test]
fn an_apply_whose_wrapper_is_killed_ends_by_terraform_itself_and_its_state_is_saved() {
    let scheduler = changed_example(EXAMPLE, |root| {
        let file = root.join("site/main.tf");
        let text = std::fs::read_to_string(&file).expect("the example can be read");
        // Once, and longer than anybody waits here.
        let slow = "test -e was-slow || { touch was-slow; sleep 600; }; printf";
        let changed = text.replacen("command     = \"printf", &format!("command = \"{slow}"), 1);
        assert_ne!(changed, text, "the example writes a file");
        std::fs::write(&file, changed).expect("a file can be written");
    });
    let Some(scheduler) = scheduler else { return };
    let world = world(&scheduler);
    world.channel_becomes("staging", "WAITING_MANUAL_APPROVAL");
    world.approve("staging");
    let site = scheduler.home().join("example/site");
    wait::until("terraform to be at work", || site.join("was-slow").exists().then_some(()));
    let apply = world.jobs("apply")[0]["id"].as_str().expect("a job has an id").to_owned();
    let wrapper = spool::wrapper(&scheduler.data().join("spool").join(&apply));
    let wrapper = nix::unistd::Pid::from_raw(wrapper);
    nix::sys::signal::kill(wrapper, nix::sys::signal::Signal::SIGKILL).expect("it runs");

    let ended = wait::until("its end to be told", || {
        let job = scheduler.ok(&["jobs", "get", &apply]);
        job.contains("UNKNOWN").then_some(job)
    });
    let state = std::fs::read_to_string(site.join("staging.tfstate")).unwrap_or_default();
    assert!(state.contains("\"tainted\""), "what was being made is in no state: {state}");
    assert!(ended.contains("processes that it left were stopped"), "{ended}");
    assert!(!ended.contains("SIGKILL"), "{ended}");
    let target = ["site", "--app", "planned-infrastructure", "--channel", "staging"];
    scheduler.ok(&[&["services", "retry"], &target[..]].concat());
    world.channel_becomes("staging", "WAITING_MANUAL_APPROVAL");
    world.approve("staging");
    world.channel_becomes("staging", "CONVERGED");
    assert_eq!(std::fs::read_to_string(site.join("staging.txt")).expect("the site is there"), "v1");
}

#[test]
fn a_runtime_that_was_ejected_behaves_as_before() {
    let Some(scheduler) = example(EXAMPLE) else { return };
    let world = world(&scheduler);
    world.channel_becomes("staging", "WAITING_MANUAL_APPROVAL");
    world.approve("staging");
    world.channel_becomes("staging", "CONVERGED");

    let ejected = scheduler.ok(&["runtimes", "eject", "terraform-local"]);
    assert!(ejected.contains("    # Is there work to do?\n    fetch:\n"), "{ejected}");
    let file = scheduler.home().join("ejected.pvn.yaml");
    std::fs::write(&file, &ejected).expect("a file can be written");
    let path = file.to_str().expect("the path is UTF-8");
    scheduler.ok(&["configs", "validate", path]);
    scheduler.ok(&["configs", "apply", "--no-prompt", path]);
    assert_eq!(scheduler.json(&["runtimes", "get", "terraform-local"])["kind"], "custom");

    let fetches = world.jobs("fetch").len();
    wait::until("two more fetches", || (world.jobs("fetch").len() >= fetches + 2).then_some(()));
    assert_eq!(world.status_of("staging")["status"], "CONVERGED");
    assert_eq!(world.jobs("apply").len(), 1, "nothing is applied because of it");
    let site = scheduler.home().join("example/site/staging.txt");
    std::fs::write(&site, "somebody was here").expect("a file can be written");
    world.channel_becomes("staging", "WAITING_MANUAL_APPROVAL");
    world.approve("staging");
    world.channel_becomes("staging", "CONVERGED");
    assert_eq!(std::fs::read_to_string(&site).expect("the site is there"), "v1", "repaired");

    let refused = scheduler.pvnctl(["runtimes", "eject", "terraform-local"]);
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(!refused.status.success() && said.contains("of kind `custom`"), "{said}");
}
