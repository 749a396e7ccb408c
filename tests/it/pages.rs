//! The pages in a real browser, against the real daemon with real jobs: the ways that a person
//! goes.

use std::path::PathBuf;

use serde_json::Value;
use tests::browser::{Browser, LOOKS};
use tests::programs::repository;
use tests::scheduler::{Scheduler, Start};

/// An application `app` with a service `web`: `staging` converges by itself, `production` asks for
/// an approval with a plan on screen, and getInfo tells something. What is applied is a file, so
/// that there can be drift.
const CONFIG: &str = r#"
runtime:
  name: files
  custom:
    proxyRuntime: {runtime: local}
    fetch:
      pollInterval: 1s
      steadyStatePollInterval: 1s
      taskConfig: {program: {name: look, entrypoint: [sh, -c], cmd: ['test "$(cat "$PVN_INSTANCE_DIR/v")" = "$PVN_SERVICE_VERSION" || exit 2']}}
    apply:
      taskConfig: {program: {name: copy, entrypoint: [sh, -c], cmd: ['printf "\033[32mcopies\033[0m %s\n" "$PVN_SERVICE_VERSION"; echo "<b>bold</b>" >&2; printf %s "$PVN_SERVICE_VERSION" > "$PVN_INSTANCE_DIR/v"']}}
    getInfo:
      taskConfig: {program: {name: tell, entrypoint: [sh, -c], cmd: ['echo "{\"outputs\": [{\"name\": \"Address\", \"text\": \"https://web.example\"}]}"']}}
---
runtime:
  name: planned
  custom:
    proxyRuntime: {runtime: local}
    requireApprovalBeforeApply: true
    fetch:
      pollInterval: 1s
      taskConfig: {program: {name: plan, entrypoint: [sh, -c], cmd: ['test -e "$PVN_INSTANCE_DIR/done" && exit 0; exec pvn-wrapper exec --success-exit-codes 2 --out plan-explanation="$PVN_INSTANCE_DIR/plan.txt" -- sh -c "printf \"  + resource web\n  - resource old\nPlan: 1 to add, 0 to change, 1 to destroy.\n\" > \"\$PVN_INSTANCE_DIR/plan.txt\"; exit 2"']}}
    apply:
      taskConfig: {program: {name: apply, entrypoint: [sh, -c], cmd: ['for n in 1 2 3; do echo "step $n"; done; while ! test -e "$PVN_INSTANCE_DIR/../go"; do sleep 0.05; done; echo "and the end"; touch "$PVN_INSTANCE_DIR/done"']}}
---
runtime:
  name: faulty
  custom:
    proxyRuntime: {runtime: local}
    apply:
      taskConfig: {program: {name: fail, entrypoint: [sh, -c], cmd: ['echo "uploads 3 files"; sleep 0.3; printf "\033[1;31mError:\033[0m no such bucket <script>document.title = 1</script>\n" >&2; sleep 0.3; echo "gives up"; exit 7']}}
---
application:
  name: app
  releaseChannels:
  - {name: staging, runtimes: [{runtime: files}]}
  - {name: production, runtimes: [{runtime: planned}], preconditions: [{releaseChannelStable: {releaseChannel: staging}}]}
---
service: {name: web, application: app}
---
application: {name: nightly, releaseChannels: [{name: only, runtimes: [{runtime: faulty}]}]}
---
service: {name: upload, application: nightly}
"#;

/// A scheduler with [`CONFIG`], both services released, and a browser that has signed in with the
/// admin's token by the form.
pub(crate) fn signed_in(test: &str) -> Option<(Scheduler, Browser)> {
    let mut scheduler = Scheduler::stopped();
    scheduler.run(&Start::default());
    let browser = Browser::start(test, scheduler.url())?;
    scheduler.apply(CONFIG);
    scheduler.ok(&["services", "push", "web", "--app", "app"]);
    scheduler.ok(&["services", "push", "upload", "--app", "nightly"]);
    browser.open("/approvals");
    sign_in(&browser, &scheduler.token());
    browser.shows("h1", "Approvals");
    assert_eq!(browser.path(), "/approvals", "signing in goes on to where somebody wanted to go");
    // The answer to whoever has not signed in is an error, which the browser notes.
    let noted = browser.complaints();
    assert!(noted.iter().all(|said| said.contains("401")), "{noted:?}");
    Some((scheduler, browser))
}

/// Signs in by the form that is shown.
pub(crate) fn sign_in(browser: &Browser, token: &str) {
    browser.type_into("input[name=token]", token);
    browser.click("main button");
}

/// What a person on call does: sees what waits, reads the plan, approves, reads the job's log while
/// it runs, sees it converge; all without a reload.
#[test]
fn a_person_approves_a_plan_and_watches_it_converge() {
    let Some((scheduler, browser)) = signed_in("a_person_approves_a_plan_and_watches_it_converge")
    else {
        return;
    };
    browser.shows("pre.plan", "Plan: 1 to add, 0 to change, 1 to destroy.");
    browser.shows("pre.plan .add", "+ resource web");
    browser.click("main h2 a");
    assert_eq!(browser.path(), "/applications/app/services/web?channel=production");
    browser.shows("#why", "waits for the approval of this apply");
    browser.shows("#channel-staging", "Converged");
    browser.shows("#channel-production .gates", "approval: 0 of 1");
    browser.type_into("input[name=reason]", "looked at it");
    browser.click("button.yes");
    browser.shows("#channel-production", "Converging");
    browser.shows("#decided", "admin approved");
    browser.shows("#decided", "looked at it");
    browser.shows("#jobs li[data-kind=apply]", "Running");
    browser.script("document.querySelector('#jobs li[data-kind=apply] a').click()");
    browser.shows("h1", "apply of web");
    browser.shows("#log", "step 3");
    browser.script("window.notReloaded = true");
    std::fs::write(instances(&scheduler).join("go"), "").expect("a file can be written");
    browser.shows("#log", "and the end");
    browser.shows(".head", "Succeeded");
    assert_eq!(browser.script("return window.notReloaded"), Value::Bool(true));
    browser.open("/applications/app/services/web?channel=production");
    browser.shows("#channel-production", "Converged");
    assert_eq!(browser.complaints(), [""; 0]);
}

/// Where service instances keep what is theirs.
pub(crate) fn instances(scheduler: &Scheduler) -> PathBuf {
    scheduler.data().join("instances")
}

/// A change is on an open page without anybody doing anything, and what a person has typed and
/// opened stays.
#[test]
fn an_open_page_follows_what_happens_and_keeps_what_a_person_typed() {
    let test = "an_open_page_follows_what_happens_and_keeps_what_a_person_typed";
    let Some((scheduler, browser)) = signed_in(test) else { return };
    browser.open("/applications/app/services/web?channel=production");
    browser.shows("#why", "waits for the approval");
    browser.script("window.notReloaded = true");
    browser.type_into("input[name=reason]", "half a sent");
    scheduler.ok(&["services", "pause", "web", "--app", "app", "--channel", "staging"]);
    browser.shows("#channel-staging", "Paused");
    scheduler.ok(&["services", "resume", "web", "--app", "app", "--channel", "staging"]);
    browser.shows("#channel-staging", "Converged");
    assert_eq!(browser.script("return window.notReloaded"), Value::Bool(true));
    let typed = browser.script("return document.querySelector('input[name=reason]').value");
    assert_eq!(typed, "half a sent");
    // The overview counts, whatever concerns it.
    browser.open("/");
    browser.shows("#failing", "nightly/upload");
    scheduler.ok(&["services", "pause", "upload", "--app", "nightly", "--channel", "only"]);
    browser.shows(".counts", "Paused");
    assert_eq!(browser.complaints(), [""; 0]);
}

/// A page whose scheduler goes away says so, and catches up when it is back: with another sign-in,
/// as sessions do not outlive the daemon.
#[test]
fn a_page_says_when_it_is_not_connected_and_catches_up() {
    let test = "a_page_says_when_it_is_not_connected_and_catches_up";
    let Some((mut scheduler, browser)) = signed_in(test) else { return };
    browser.open("/");
    browser.shows("h1", "Overview");
    scheduler.kill();
    browser.shows("#offline", "Not connected");
    scheduler.run(&Start::default());
    browser.shows("h1", "Sign in");
    sign_in(&browser, &scheduler.token());
    browser.shows("#failing", "nightly/upload");
}

/// Why a job failed, on the page that leads to it and in its own log, as text whatever it holds.
#[test]
fn a_person_finds_out_why_a_job_failed() {
    let Some((scheduler, browser)) = signed_in("a_person_finds_out_why_a_job_failed") else {
        return;
    };
    scheduler.ok(&["services", "list"]);
    browser.open("/");
    browser.shows("#failing", "ended with exit code 7");
    browser.click("#failing li a");
    browser.shows("#why", "no such bucket <script>");
    browser.click("#jobs li a");
    browser.shows(".head", "exit code 7");
    let printed = browser.shows("#log", "gives up");
    let printed: Vec<_> = printed.lines().collect();
    let failed = "Error: no such bucket <script>document.title = 1</script>";
    assert_eq!(printed, ["uploads 3 files", failed, "gives up"], "as both streams came");
    browser.click("#only-e");
    assert_eq!(browser.text("#log").as_deref(), Some(failed), "stderr alone");
    browser.click("#both");
    let colour = browser.script(
        "return getComputedStyle(document.querySelector('#log .e .a31')).color \
         !== getComputedStyle(document.querySelector('#log')).color",
    );
    assert_eq!(colour, Value::Bool(true), "its colours are seen");
    assert_ne!(browser.script("return document.title"), "1");
    assert_eq!(browser.complaints(), [""; 0]);
}

/// Without script everything can be read and every form sent.
#[test]
fn all_of_it_works_without_script() {
    let Some((scheduler, browser)) = signed_in("all_of_it_works_without_script") else { return };
    // Without script a page stays as it was when it was opened.
    browser.open("/");
    browser.shows("#failing", "nightly/upload");
    browser.scripts_run(false);
    for (path, selector, text) in [
        ("/", "#failing", "nightly/upload"),
        ("/services?name=we", "tbody", "app/web"),
        ("/jobs", "tbody", "apply"),
        ("/audit", "tbody", "release.created"),
        ("/runtimes", "tbody", "planned"),
        ("/releases", "tbody", "web-1"),
        ("/applications/app/services/web?channel=staging", "#info", "https://web.example"),
    ] {
        browser.open(path);
        browser.shows(selector, text);
    }
    browser.click("form[action$='/pause'] button");
    browser.shows("#why", "Paused");
    let shown = scheduler.channel("web", "staging");
    assert_eq!(shown["paused"], true);
}

/// A release by the form that the parameters make.
#[test]
fn a_person_deploys_by_a_form() {
    let Some((scheduler, browser)) = signed_in("a_person_deploys_by_a_form") else { return };
    scheduler.apply(
        "service:\n  name: web\n  application: app\n  parameters:\n  - {name: image, required: \
         true, description: What runs, string: {}}\n  - {name: replicas, int: {defaultValue: 2}}\n",
    );
    browser.open("/applications/app/services/web");
    browser.click(".head .main");
    browser.shows("h1", "Deploy web");
    // The browser itself asks for what is required.
    browser.click("main button.main");
    assert_eq!(browser.path(), "/applications/app/services/web/deploy");
    browser.type_into("input[name='p.image']", "v7");
    browser.click("input[name='c.staging']");
    browser.click("main button.main");
    browser.shows("h1", "web-2");
    browser.shows("dl", "v7");
    let release = &scheduler.json(&["releases", "list", "--app", "app", "--service", "web"])[0];
    assert_eq!(release["params"], serde_json::json!({"image": "v7"}));
    assert_eq!(release["channels"].as_array().map(Vec::len), Some(1));
    // What was given is in the form of the next one.
    browser.open("/applications/app/services/web/deploy");
    let last = browser.script("return document.querySelector(\"input[name='p.image']\").value");
    assert_eq!(last, "v7");
    assert_eq!(browser.complaints(), [""; 0]);
}

/// A key for what a person does often.
#[test]
fn keys_find_go_walk_and_open() {
    let Some((_scheduler, browser)) = signed_in("keys_find_go_walk_and_open") else { return };
    browser.type_into("body", "gs");
    browser.shows("h1", "Services");
    browser.type_into("body", "jj");
    let at = browser.script("return document.activeElement.getAttribute('href')");
    assert_eq!(at, "/applications/nightly/services/upload");
    browser.type_into("body", "/");
    assert_eq!(browser.script("return document.activeElement.id"), "search");
    browser.type_into("#search", "we\u{e007}");
    browser.shows("tbody", "app/web");
    assert_eq!(browser.path(), "/services?name=we");
}

/// The name and path of every page, when production waits for its approval.
pub(crate) fn all_pages(scheduler: &Scheduler) -> Vec<(&'static str, String)> {
    let jobs = scheduler.json(&["jobs", "list", "--app", "nightly", "--service", "upload"]);
    let releases = scheduler.json(&["releases", "list", "--app", "app", "--service", "web"]);
    let job = jobs[0]["id"].as_str().expect("a job has an id").to_owned();
    let release = releases[0]["release"].as_str().expect("a release has an id").to_owned();
    let service = "/applications/app/services/web";
    [
        ("overview", "/".to_owned()),
        ("services", "/services".to_owned()),
        ("service", format!("{service}?channel=production")),
        ("converged", format!("{service}?channel=staging")),
        ("failed", "/applications/nightly/services/upload".to_owned()),
        ("deploy", format!("{service}/deploy")),
        ("rollback", format!("{service}/rollback")),
        ("job", format!("/jobs/{job}")),
        ("jobs", "/jobs".to_owned()),
        ("approvals", "/approvals".to_owned()),
        ("releases", "/releases".to_owned()),
        ("release", format!("/releases/{release}")),
        ("runtimes", "/runtimes".to_owned()),
        ("runtime", "/runtimes/files".to_owned()),
        ("configs", "/configs".to_owned()),
        ("document", "/configs/document?kind=service&application=app&name=web".to_owned()),
        ("audit", "/audit".to_owned()),
        ("refused", "/services?application=nobody".to_owned()),
        ("nowhere", "/nowhere".to_owned()),
        ("sign-in", "/sign-in".to_owned()),
    ]
    .into()
}

/// Every page in light, dark and on a phone: nothing is wider than its window. With
/// `PVN_PICTURES=DIRECTORY` a picture of each is written there, for people to look at.
#[test]
fn every_page_fits_its_window_and_can_be_pictured() {
    let test = "every_page_fits_its_window_and_can_be_pictured";
    let Some((scheduler, browser)) = signed_in(test) else { return };
    let pages = all_pages(&scheduler);
    scheduler.channel_becomes("web", "production", "WAITING_MANUAL_APPROVAL");
    let pictures = std::env::var_os("PVN_PICTURES").map(|path| repository().join(path));
    for look in LOOKS {
        browser.look(look);
        for (name, path) in &pages {
            browser.open(path);
            browser.shows("h1", "");
            let wide = browser.script("return document.documentElement.scrollWidth - innerWidth");
            assert!(wide.as_i64().is_some_and(|wide| wide <= 0), "{name}, {}: {wide}", look.name);
            if let Some(pictures) = &pictures {
                std::fs::create_dir_all(pictures).expect("a directory can be made");
                browser.picture(&pictures.join(format!("{name}-{}.png", look.name)));
            }
        }
    }
    let noted = browser.complaints();
    let is_wrong = |said: &String| said.contains("application=nobody") || said.contains("/nowhere");
    let is_expected = |said: &String| is_wrong(said) && said.contains("404");
    assert!(noted.iter().all(is_expected), "{noted:?}");
}
