//! The pages in a real browser that people open less often: going back to an earlier version, what
//! changed in a config, what a runtime is busy with, the later pages of every list, and a path that
//! leads nowhere. Each is clicked to from where a person would come, and held to axe-core where
//! there is one.

use std::collections::BTreeSet;

use serde_json::Value;
use tests::browser::Browser;
use tests::scale;
use tests::scheduler::{Scheduler, Start};
use tests::wait;

use crate::pages::{instances, sign_in, signed_in};
use crate::pages_access::passes_the_checks;

const SERVICE: &str = "/applications/app/services/web";

/// A service `web` as [`signed_in`] has it, with a parameter.
const WITH_IMAGE: &str = "service:\n  name: web\n  application: app\n  parameters:\n  - {name: \
                          image, required: true, description: What runs, string: {}}\n";

#[test]
fn the_deploy_form_leaves_a_value_of_several_lines_as_it_is() {
    let test = "the_deploy_form_leaves_a_value_of_several_lines_as_it_is";
    let Some((scheduler, browser)) = signed_in(test) else { return };
    let parameters = "  - {name: hosts, string: {}}\n  - {name: keys, string: {}}\n";
    scheduler.apply(&format!("{WITH_IMAGE}{parameters}"));
    let hosts = "\n- a.test\n-\tb.test  \n\n";
    let keys = "one\r\ntwo\r\n";
    let given = [format!("hosts={hosts}"), format!("keys={keys}"), "image=v1".to_owned()];
    let mut push = vec!["services", "push", "web", "--app", "app"];
    given.iter().for_each(|one| push.extend(["--param", one]));
    scheduler.ok(&push);
    browser.open(&format!("{SERVICE}/deploy"));
    browser.script("document.querySelector('[name=\"p.image\"]').value = 'v2'");
    browser.click(".does button.main");
    browser.shows("h1", "web-3");
    let releases = scheduler.json(&["releases", "list", "--app", "app", "--service", "web"]);
    let id = releases[0]["release"].as_str().expect("a release has an id");
    let params = scheduler.json(&["releases", "get", id])["params"].clone();
    assert_eq!(params, serde_json::json!({"image": "v2", "hosts": hosts, "keys": keys}));
}

#[test]
fn a_person_goes_back_to_an_earlier_version() {
    let test = "a_person_goes_back_to_an_earlier_version";
    let Some((scheduler, browser)) = signed_in(test) else { return };
    scheduler.apply(WITH_IMAGE);
    for image in ["image=v1", "image=v2"] {
        scheduler.ok(&["services", "push", "web", "--app", "app", "--param", image]);
    }
    browser.open(SERVICE);
    browser.click(".head a[href$='/rollback']");
    browser.shows("h1", "Roll back web");
    browser.shows("select[name=version]", "web-2");
    // Another one than the one before.
    browser.script("document.querySelector('select[name=version]').value = 'web-1'");
    browser.click("form.filter button");
    let asked = format!("{SERVICE}/rollback?version=web-1");
    wait::until("the preview of that version", || (browser.path() == asked).then_some(()));
    let changed = browser.shows("table", "image");
    assert!(changed.contains("v2") && changed.contains("none"), "{changed}");
    browser.shows("main", "made from another version of the config");
    browser.open(&format!("{SERVICE}/rollback"));
    let changed = browser.shows("table", "image");
    assert!(changed.contains("v2") && changed.contains("v1"), "now and then: {changed}");
    passes_the_checks(&browser);
    browser.click("input[name='c.staging']");
    browser.click(".does button.no");
    browser.shows("dl", "v1");
    assert!(browser.path().starts_with("/releases/"), "{}", browser.path());
    let release = &scheduler.json(&["releases", "list", "--app", "app", "--service", "web"])[0];
    assert_eq!(release["params"], serde_json::json!({"image": "v1"}));
    assert_eq!(release["channels"].as_array().map(Vec::len), Some(1), "staging alone");
    assert_eq!(browser.complaints(), [""; 0]);
}

#[test]
fn a_person_sees_what_changed_in_a_config() {
    let test = "a_person_sees_what_changed_in_a_config";
    let Some((scheduler, browser)) = signed_in(test) else { return };
    scheduler.apply(WITH_IMAGE);
    browser.open("/");
    browser.click("nav a[data-key=c]");
    browser.shows("h1", "Config");
    browser.type_into("form.filter input[name=name]", "web");
    browser.click("form.filter button");
    wait::until("the narrowed list", || browser.path().contains("name=web").then_some(()));
    browser.click("tbody a");
    browser.shows("h1", "web");
    browser.shows("#changed h2", "Changed since version 1");
    browser.shows("#changed pre", "parameters:");
    browser.shows("#changed", "What runs");
    browser.shows("#text pre", "description: What runs");
    passes_the_checks(&browser);
    // The version before, which has none before it.
    browser.click("#versions li:last-child a");
    browser.shows(".head", "version 1");
    assert!(browser.path().contains("version=1"), "{}", browser.path());
    assert_eq!(browser.text("#changed"), None);
    let text = browser.shows("#text pre", "application: app");
    assert!(!text.contains("parameters"), "{text}");
    browser.shows("#versions a[aria-current]", "1");
    passes_the_checks(&browser);
    assert_eq!(browser.complaints(), [""; 0]);
}

/// Who has the places of a runtime, as it changes; and what a check of it finds.
#[test]
fn a_person_sees_what_a_runtime_is_busy_with() {
    let test = "a_person_sees_what_a_runtime_is_busy_with";
    let Some((scheduler, browser)) = signed_in(test) else { return };
    scheduler.channel_becomes("web", "production", "WAITING_MANUAL_APPROVAL");
    browser.open("/");
    browser.click("nav a[data-key=t]");
    browser.shows("h1", "Runtimes");
    browser.click("#row-planned a");
    browser.shows("h1", "planned");
    browser.shows("#holders", "Nothing runs here");
    browser.script("window.notReloaded = true");
    let approve =
        ["services", "approve", "web", "--app", "app", "--channel", "production", "--yes"];
    scheduler.ok(&approve);
    browser.shows("#holders", "app/web · production");
    passes_the_checks(&browser);
    std::fs::write(instances(&scheduler).join("go"), "").expect("a file can be written");
    browser.shows("#holders", "Nothing runs here");
    assert_eq!(browser.script("return window.notReloaded"), Value::Bool(true));
    browser.click("form[action$='/check'] button");
    browser.shows("#check h2", "works");
    passes_the_checks(&browser);
    assert_eq!(browser.complaints(), [""; 0]);
}

#[test]
fn a_path_that_leads_nowhere_says_so_and_shows_ways_on() {
    let test = "a_path_that_leads_nowhere_says_so_and_shows_ways_on";
    let Some((_scheduler, browser)) = signed_in(test) else { return };
    for (path, said) in [
        ("/nowhere/at/all", "There is no page /nowhere/at/all"),
        ("/jobs/job-0123456789abcdef0123456789abcdef", "job-01234567"),
        ("/applications/app/services/none", "none"),
        ("/releases/rel-0", "rel-0"),
        ("/runtimes/none", "none"),
    ] {
        browser.open(path);
        browser.shows("main", said);
        passes_the_checks(&browser);
        browser.shows("main a[href='/services']", "Services");
        browser.click("main a[href='/services']");
        browser.shows("h1", "Services");
        browser.shows("tbody", "app/web");
    }
    // The browser notes each answer that is an error, and nothing else.
    let noted = browser.complaints();
    let is_refusal = |said: &String| said.contains("404") || said.contains("400");
    assert!(noted.iter().all(is_refusal), "{noted:?}");
}

/// What stands in the first cells of the list that is shown.
fn rows(browser: &Browser) -> Vec<String> {
    let script = "return [...document.querySelectorAll('tbody tr')].map((row) => row.id || \
                  row.querySelector('a').getAttribute('href'))";
    let rows = browser.script(script);
    let rows = rows.as_array().expect("it is a list").iter();
    rows.map(|row| row.as_str().expect("a row has a name").to_owned()).collect()
}

/// From page to page of a list by its button: every row once.
fn walked(browser: &Browser, path: &str) -> BTreeSet<String> {
    browser.open(path);
    let mut all = BTreeSet::new();
    let mut pages = 0;
    loop {
        let shown = rows(browser);
        assert!(!shown.is_empty() && shown.len() <= 50, "{path}: {} rows", shown.len());
        for row in shown {
            assert!(all.insert(row.clone()), "{path}: {row} stands on two pages");
        }
        pages += 1;
        if browser.text("a[rel=next]").is_none() {
            break;
        }
        if pages == 1 {
            passes_the_checks(browser);
        }
        let before = browser.path();
        browser.click("a[rel=next]");
        wait::until("the next page", || (browser.path() != before).then_some(()));
        assert!(browser.path().contains("cursor="), "{}", browser.path());
    }
    assert!(pages > 1, "{path} has one page");
    all
}

#[test]
fn every_list_leads_to_its_next_page() {
    /// More than a page of each list holds.
    const SERVICES: usize = 51;
    let test = "every_list_leads_to_its_next_page";
    let mut scheduler = Scheduler::stopped();
    scheduler.run(&Start::default());
    let Some(browser) = Browser::start(test, scheduler.url()) else { return };
    let runtimes: String =
        (0..SERVICES).map(|n| format!("---\nruntime: {{name: r{n}, fake: {{}}}}\n")).collect();
    scheduler.apply_and_push(&format!("{}{runtimes}", scale::configs(SERVICES, 1)));
    scale::until_converged(&scheduler, SERVICES);
    browser.open("/services");
    sign_in(&browser, &scheduler.token());
    browser.shows("h1", "Services");
    browser.complaints();
    let services = walked(&browser, "/services");
    assert_eq!(services.len(), SERVICES);
    assert!(services.contains("/applications/app/services/s50"), "{services:?}");
    // What a list was narrowed to holds on its later pages.
    assert_eq!(walked(&browser, "/services?application=app&order=changed"), services);
    assert_eq!(walked(&browser, "/releases?application=app").len(), SERVICES);
    let jobs = scheduler.json(&["jobs", "list", "--app", "app", "--limit", "1000"]);
    let jobs = jobs.as_array().map(Vec::len);
    assert_eq!(Some(walked(&browser, "/jobs?application=app").len()), jobs);
    // The two of the services' and one that is built in.
    let runtimes = walked(&browser, "/runtimes");
    assert!(runtimes.contains("row-r50") && runtimes.len() >= SERVICES + 2, "{runtimes:?}");
    assert_eq!(walked(&browser, "/configs").len(), 2 * SERVICES + 3);
    assert!(walked(&browser, "/audit").len() > SERVICES);
    assert!(walked(&browser, "/audit?all=1&kind=instance").len() >= SERVICES);
    assert_eq!(browser.complaints(), [""; 0]);
}
