//! More open pages than there is room for, in a real browser: the one too many can be read, says
//! that it does not follow, and goes on by itself.

use tests::browser::Browser;
use tests::open_page::OpenPage;
use tests::person::Person;
use tests::scheduler::{Scheduler, Start};
use tests::wait;

use crate::pages::sign_in;

/// Connections of the scheduler of these tests: half are streams, three quarters of those for one
/// token.
const CONNECTIONS: &str = "64";
const OF_ONE_TOKEN: usize = 24;

const CONFIG: &str = "
runtime: {name: nowhere, fake: {}}
---
application: {name: app, releaseChannels: [{name: only, runtimes: [{runtime: nowhere}]}]}
---
service: {name: web, application: app}
";

#[test]
fn one_open_page_too_many_is_read_says_so_and_follows_when_there_is_room() {
    let test = "one_open_page_too_many_is_read_says_so_and_follows_when_there_is_room";
    let mut scheduler = Scheduler::stopped();
    let arguments = ["--max-connections", CONNECTIONS];
    scheduler.run(&Start { arguments: &arguments, ..Start::default() });
    let Some(browser) = Browser::start(test, scheduler.url()) else { return };
    scheduler.apply(CONFIG);
    let person = Person::signed_in(&scheduler, &scheduler.token());
    let mut open: Vec<_> = (0..OF_ONE_TOKEN).map(|_| OpenPage::of(&person, "")).collect();
    wait::until("all pages to follow", || {
        open.iter_mut().all(|page| page.has_heard(1)).then_some(())
    });
    browser.open("/services");
    sign_in(&browser, &scheduler.token());
    browser.shows("tbody", "app/web");
    browser.shows("#unfollowed", "no room for one more open page");
    browser.script("window.notReloaded = true");
    // It looks by itself all the same.
    scheduler.ok(&["services", "push", "web", "--app", "app"]);
    browser.shows("tbody", "web-1");
    assert!(browser.text("#unfollowed").is_some_and(|said| !said.is_empty()), "it says so still");
    // Somebody leaves.
    open.clear();
    wait::until("the page to follow", || {
        browser.text("#unfollowed").filter(String::is_empty).map(drop)
    });
    scheduler.ok(&["services", "push", "web", "--app", "app"]);
    browser.shows("tbody", "web-2");
    assert_eq!(browser.script("return window.notReloaded"), true);
    let noted = browser.complaints();
    let is_refusal = |said: &String| said.contains("401") || said.contains("503");
    assert!(noted.iter().all(is_refusal), "{noted:?}");
}
