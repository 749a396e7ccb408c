//! A plan that is on the screen is not swapped for another one under whoever reads it, in a real
//! browser.

use tests::browser::Browser;
use tests::scheduler::{Scheduler, Start};
use tests::wait;

use crate::pages::sign_in;

/// A service whose plan is what the file `plan` holds.
const PLANNED: &str = r#"
runtime:
  name: r
  custom:
    proxyRuntime: {runtime: local}
    requireApprovalBeforeApply: true
    fetch:
      pollInterval: 1s
      taskConfig: {program: {name: look, entrypoint: [sh, -c], cmd: ['[ -e done ] && exit 0; exec pvn-wrapper exec --success-exit-codes 2 --out plan-explanation="$PVN_INSTANCE_DIR/words" -- sh -c "cat plan >\"\$PVN_INSTANCE_DIR/words\"; exit 2"']}}
    apply:
      taskConfig: {program: {name: do, entrypoint: [sh, -c], cmd: ['cp plan done']}}
---
application: {name: app, releaseChannels: [{name: c, runtimes: [{runtime: r}]}]}
---
service: {name: web, application: app}
"#;

#[test]
fn p2_a_plan_stays_on_the_screen_and_cannot_be_approved_once_another_is_asked_about() {
    let test = "p2_a_plan_stays_on_the_screen_and_cannot_be_approved_once_another_is_asked_about";
    let mut scheduler = Scheduler::stopped();
    scheduler.run(&Start::default());
    let plan = |text: &str| {
        let (half, whole) = (scheduler.home().join("half"), scheduler.home().join("plan"));
        std::fs::write(&half, text).expect("a file can be written");
        std::fs::rename(half, whole).expect("a file can be moved");
    };
    plan("+ one bucket\n");
    let Some(browser) = Browser::start(test, scheduler.url()) else { return };
    scheduler.apply(PLANNED);
    scheduler.ok(&["services", "push", "web", "--app", "app"]);
    for page in ["/applications/app/services/web?channel=c", "/approvals"] {
        browser.open(page);
        if page.starts_with("/applications") {
            sign_in(&browser, &scheduler.token());
        }
        browser.shows("pre.plan", "+ one bucket");
        browser.type_into("input[name=reason]", "looks harmless");
        plan("- every bucket\n");
        browser.shows(".swapped", "Another plan is asked about by now.");
        assert_eq!(browser.text("pre.plan").as_deref(), Some("+ one bucket"), "{page}");
        let approves = "return document.querySelector('button.yes').disabled";
        assert_eq!(browser.script(approves), true, "{page}");
        let typed = "return document.querySelector('input[name=reason]').value";
        assert_eq!(browser.script(typed), "looks harmless", "{page}");
        // As it was, it may be approved again.
        plan("+ one bucket\n");
        wait::until("the notice to go", || browser.text(".swapped").is_none().then_some(()));
        plan("- every bucket\n");
        browser.shows(".swapped", "Show it");
        browser.click(".swapped button");
        browser.shows("pre.plan", "- every bucket");
        assert_eq!(browser.script(approves), false, "{page}");
        plan("+ one bucket\n");
        browser.shows(".swapped", "Show it");
    }
    assert!(!scheduler.home().join("done").exists(), "nothing was applied");
    browser.click(".swapped button");
    browser.shows("pre.plan", "+ one bucket");
    browser.click("button.yes");
    scheduler.channel_becomes("web", "c", "CONVERGED");
    let noted = browser.complaints();
    assert!(noted.iter().all(|said| said.contains("401")), "{noted:?}");
}
