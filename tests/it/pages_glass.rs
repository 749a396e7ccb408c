//! What people do against the rule, by the pages in a real browser: a release outside its window,
//! and drift that stays.

use std::path::PathBuf;

use serde_json::{Value, json};
use tests::browser::Browser;
use tests::scheduler::{Scheduler, Start};

use crate::pages::sign_in;

/// A service `web` in `staging` and, after that, in `production`, whose window never opens.
const WINDOWED: &str = r#"
runtime: {name: hand, custom: {proxyRuntime: {runtime: local}, apply: {taskConfig: {program: {name: do, entrypoint: ['true']}}}}}
---
runtime:
  name: guarded
  custom:
    proxyRuntime: {runtime: local}
    apply:
      window: {schedule: "0 0 9 1 1 * 2020", duration: 1h}
      taskConfig: {program: {name: do, entrypoint: ['true']}}
---
application:
  name: app
  releaseChannels:
  - {name: staging, runtimes: [{runtime: hand}]}
  - {name: production, runtimes: [{runtime: guarded}], preconditions: [{releaseChannelStable: {releaseChannel: staging}}]}
---
service: {name: web, application: app}
"#;

const PAGE: &str = "/applications/app/services/web?channel=production";

/// A token of this role.
fn token(scheduler: &Scheduler, role: &str) -> String {
    let made = scheduler.json(&["auth", "token", "create", role, "--role", role]);
    made["token"].as_str().expect("a new token is told").to_owned()
}

/// A browser at the page of that service, released. `staging` is paused: what the window waits for
/// besides holds `production` back, also while it is lifted.
fn windowed(test: &str) -> Option<(Scheduler, Browser)> {
    let mut scheduler = Scheduler::stopped();
    scheduler.run(&Start::default());
    let browser = Browser::start(test, scheduler.url())?;
    scheduler.apply(WINDOWED);
    scheduler.ok(&["services", "pause", "web", "--app", "app", "--channel", "staging"]);
    scheduler.ok(&["services", "push", "web", "--app", "app"]);
    browser.open(PAGE);
    Some((scheduler, browser))
}

#[test]
fn a_person_starts_a_release_outside_its_window_by_the_page_and_takes_that_back() {
    let test = "a_person_starts_a_release_outside_its_window_by_the_page_and_takes_that_back";
    let Some((scheduler, browser)) = windowed(test) else { return };
    sign_in(&browser, &token(&scheduler, "operator"));
    // What comes before the window, and the window, stand before the channel, in words.
    browser.shows("#channel-production .gates", "stable: staging");
    browser.shows("#channel-production .gates", "window never opens");
    browser.shows("#channel-staging .gates", "paused by admin");
    browser.shows("#window", "needs the role break-glass");
    assert_eq!(browser.text("form[action$='/open-window']"), None, "not for an operator");
    scheduler.ok(&["services", "resume", "web", "--app", "app", "--channel", "staging"]);
    browser.shows("#why > p.said", "outside the apply window");
    let gates = browser.text("#channel-production .gates").unwrap_or_default();
    assert!(!gates.contains("stable") && gates.contains("window never opens"), "{gates}");
    browser.forget_cookies();
    browser.open(PAGE);
    sign_in(&browser, &token(&scheduler, "break-glass"));
    browser.shows("#why > p.said", "outside the apply window");
    // Held back otherwise, so that it can be seen and taken back.
    scheduler.ok(&["services", "pause", "web", "--app", "app", "--channel", "production"]);
    browser.shows("#channel-production .gates", "paused by admin");
    scheduler.ok(&["services", "resume", "web", "--app", "app", "--channel", "production"]);
    browser.shows("#channel-production .gates", "window never opens");
    browser.click("#window summary");
    // The browser asks for the reason.
    browser.click("#window button");
    assert_eq!(scheduler.channel("web", "production")["windowLift"], Value::Null);
    browser.type_into("#window input[name=reason]", "INC-311: <b>checkout</b> is down");
    browser.click("#window button");
    browser.shows("#channel-production", "Converged");
    browser.shows("#timeline", "INC-311: <b>checkout</b> is down");
    assert_eq!(scheduler.channel("web", "production")["status"], "CONVERGED");
    let noted = browser.complaints();
    assert!(noted.iter().all(|said| said.contains("401")), "{noted:?}");
}

/// While it is lifted the page says by whom and until when, and ends it.
#[test]
fn a_lifted_window_is_ended_by_the_page() {
    let test = "a_lifted_window_is_ended_by_the_page";
    let Some((scheduler, browser)) = windowed(test) else { return };
    sign_in(&browser, &scheduler.token());
    browser.click("#window summary");
    browser.type_into("#window input[name=reason]", "INC-311");
    browser.click("#window button");
    browser.shows("#window", "admin lifted the apply window");
    browser.shows("#window", "INC-311");
    let gates = browser.text("#channel-production .gates").unwrap_or_default();
    assert!(gates.contains("stable: staging") && !gates.contains("window"), "{gates}");
    let lift = &scheduler.channel("web", "production")["windowLift"];
    assert_eq!((&lift["who"], &lift["reason"]), (&json!("admin"), &json!("INC-311")));
    browser.click("#window button");
    browser.shows("#channel-production .gates", "window never opens");
    assert_eq!(scheduler.channel("web", "production")["windowLift"], Value::Null);
}

/// Where it is observed only the page says by whom and what for, and ends it.
#[test]
fn a_channel_is_observed_only_by_the_page_and_goes_on() {
    let test = "a_channel_is_observed_only_by_the_page_and_goes_on";
    let Some((scheduler, browser)) = windowed(test) else { return };
    sign_in(&browser, &token(&scheduler, "operator"));
    browser.open("/applications/app/services/web?channel=staging");
    browser.shows("#why", "paused by admin");
    // What is paused can be observed as well: it is looked at again.
    browser.click("#observe summary");
    browser.type_into("#observe input[name=reason]", "<b>disk</b> swap");
    browser.click("#observe button");
    browser.shows("#channel-staging .gates", "observed by operator");
    browser.shows("#observe", "Observed by operator");
    browser.shows("#observe", "<b>disk</b> swap");
    browser.shows("form[action$='/pause'] button", "Pause");
    let shown = scheduler.channel("web", "staging");
    assert_eq!(shown["observed"]["reason"], "<b>disk</b> swap", "{shown}");
    browser.click("form[action$='/resume'] button");
    browser.shows("#channel-staging", "Converged");
    browser.shows("#observe summary", "Observe");
    assert_eq!(scheduler.channel("web", "staging").get("observed"), None);
}

/// A service whose state is a file, with its scripts beside it.
struct DriftedFiles {
    scheduler: Scheduler,
}

impl DriftedFiles {
    fn directory(&self) -> PathBuf {
        self.scheduler.home().join("commands")
    }

    /// Writes a whole file in one go: one that is read while it is written is another one.
    fn write(&self, name: &str, text: &str) {
        let (half, whole) = (self.directory().join("half"), self.directory().join(name));
        std::fs::write(&half, text).expect("a file can be written");
        std::fs::rename(half, whole).expect("a file can be moved");
    }

    fn release(&self) {
        let command = |name: &str| json!({"program": {"name": "do", "entrypoint": ["sh", name], "workingDirectory": self.directory()}});
        let custom = json!({
            "proxyRuntime": {"runtime": "local"},
            "fetch": {
                "pollInterval": "200ms",
                "steadyStatePollInterval": "200ms",
                "taskConfig": command("fetch.sh"),
            },
            "apply": {"taskConfig": command("apply.sh")},
        });
        let channels = json!([{"name": "production", "runtimes": [{"runtime": "tool"}]}]);
        let documents = [
            json!({"runtime": {"name": "tool", "custom": custom}}),
            json!({"application": {"name": "app", "releaseChannels": channels}}),
            json!({"service": {"name": "web", "application": "app"}}),
        ];
        let documents: Vec<String> = documents.iter().map(|one| format!("---\n{one}\n")).collect();
        self.scheduler.apply(&documents.concat());
        self.scheduler.ok(&["services", "push", "web", "--app", "app"]);
        self.scheduler.channel_becomes("web", "production", "CONVERGED");
    }
}

#[test]
fn drift_is_on_the_page_and_is_left_and_repaired_by_it() {
    let test = "drift_is_on_the_page_and_is_left_and_repaired_by_it";
    let mut files = DriftedFiles { scheduler: Scheduler::stopped() };
    files.scheduler.run(&Start::default());
    let Some(browser) = Browser::start(test, files.scheduler.url()) else { return };
    std::fs::create_dir_all(files.directory()).expect("a directory can be made");
    files.write("fetch.sh", "[ \"$(cat state)\" = right ] || { echo it is $(cat state); exit 2; }");
    files.write("apply.sh", "echo right > state");
    files.write("state", "right");
    files.release();
    // Nothing is repaired before somebody has seen it.
    files.write("apply.sh", "exit 1");
    files.write("state", "wrong");
    browser.open(PAGE);
    sign_in(&browser, &files.scheduler.token());
    files.scheduler.channel_becomes("web", "production", "FAILED");
    browser.shows("#drift", "first");
    browser.click("#drift summary");
    browser.type_into("#drift input[name=reason]", "the <audit>");
    browser.click("#drift button");
    browser.shows("#drift", "admin leaves it as it is until");
    browser.shows("#drift", "the <audit>");
    browser.shows("#channel-production", "Converged");
    let known = files.scheduler.channel("web", "production")["drift"]["acknowledged"].clone();
    assert_eq!(known["reason"], "the <audit>", "{known}");
    files.write("apply.sh", "echo right > state; touch repaired");
    browser.click("#drift button");
    // The apply failed before; what a person asks for does not wait until it is tried again.
    browser.shows("#channel-production", "Failed");
    browser.click("form[action$='/retry'] button");
    tests::wait::until("it to be repaired", || {
        files.directory().join("repaired").exists().then_some(())
    });
    files.scheduler.channel_becomes("web", "production", "CONVERGED");
    tests::wait::until("the page to say so", || browser.text("#drift").is_none().then_some(()));
}
