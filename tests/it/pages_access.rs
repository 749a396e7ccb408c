//! The pages in a real browser: for whoever cannot see them well, whoever was signed out meanwhile,
//! and two who decide the same.

use tests::browser::{Browser, LOOKS};
use tests::skip;

use crate::pages::{all_pages, sign_in, signed_in};

/// The script of axe-core, where there is one.
fn axe() -> Option<String> {
    std::env::var_os("PVN_AXE").and_then(|path| std::fs::read_to_string(path).ok())
}

/// What axe-core finds wrong with the page that is shown.
fn violations(browser: &Browser, axe: &str) -> Vec<String> {
    browser.script(axe);
    let found = browser.script(
        "return axe.run(document).then((told) => told.violations.map((one) => one.id + ': ' + \
         one.nodes.map((node) => node.html).slice(0, 3).join(' ')))",
    );
    let found = found.as_array().expect("axe answers with a list");
    found.iter().map(ToString::to_string).collect()
}

/// Fails where axe-core finds something wrong with the page that is shown. Where there is none the
/// test of every page says so.
#[track_caller]
pub(crate) fn passes_the_checks(browser: &Browser) {
    if let Some(axe) = axe() {
        let found = violations(browser, &axe);
        assert!(found.is_empty(), "{}: {}", browser.path(), found.join("\n"));
    }
}

/// No violation on any page, in light and in dark, of the checks that axe-core has.
#[test]
fn every_page_passes_the_checks_of_accessibility() {
    let test = "every_page_passes_the_checks_of_accessibility";
    let Some(source) = axe() else {
        return skip::skipped(test, "PVN_AXE names no axe.min.js (`npm pack axe-core` has one)");
    };
    let Some((scheduler, browser)) = signed_in(test) else { return };
    scheduler.channel_becomes("web", "production", "WAITING_MANUAL_APPROVAL");
    let pages = all_pages(&scheduler);
    let mut found = Vec::new();
    for look in LOOKS {
        browser.look(look);
        for (name, path) in &pages {
            browser.open(path);
            let wrong = violations(&browser, &source);
            found.extend(wrong.iter().map(|one| format!("{name}, {}: {one}", look.name)));
        }
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}

/// Whoever was signed out meanwhile and sends a form is asked to sign in and comes back to where
/// they were; what the form said is not done, then or later.
#[test]
fn a_form_that_is_sent_after_the_end_of_its_session_does_nothing() {
    let test = "a_form_that_is_sent_after_the_end_of_its_session_does_nothing";
    let Some((scheduler, browser)) = signed_in(test) else { return };
    scheduler.channel_becomes("web", "staging", "CONVERGED");
    // Without script, so that the page does not notice before.
    browser.scripts_run(false);
    let page = "/applications/app/services/web?channel=staging";
    browser.open(page);
    browser.shows("#why", "Converged");
    browser.forget_cookies();
    browser.click("form[action$='/pause'] button");
    browser.shows("h1", "Sign in");
    sign_in(&browser, &scheduler.token());
    browser.shows("#why", "Converged");
    assert_eq!(browser.path(), page, "back where they were");
    assert_eq!(scheduler.channel("web", "staging")["paused"], false);
    browser.click("form[action$='/pause'] button");
    browser.shows("#why", "Paused");
}

/// Of two people who approve the same plan at once the second hears who was first.
#[test]
fn whoever_approves_second_hears_who_was_first() {
    let test = "whoever_approves_second_hears_who_was_first";
    let Some((scheduler, first)) = signed_in(test) else { return };
    let made = scheduler.json(&["auth", "token", "create", "bob", "--role", "approver"]);
    let Some(second) = Browser::start(test, scheduler.url()) else { return };
    scheduler.channel_becomes("web", "production", "WAITING_MANUAL_APPROVAL");
    // Without script, so that their page does not follow.
    second.scripts_run(false);
    let page = "/applications/app/services/web?channel=production";
    second.open(page);
    sign_in(&second, made["token"].as_str().expect("a new token is told"));
    second.shows("pre.plan", "Plan: 1 to add");
    first.open(page);
    first.click("button.yes");
    first.shows("#decided", "admin approved");
    second.click("button.yes");
    second.shows(
        "main",
        "is not pending for app/web in production any more, it is APPROVED by admin",
    );
    let approvals = scheduler.channel("web", "production")["approvals"].clone();
    assert_eq!(approvals[0]["by"].as_array().map(Vec::len), Some(1), "{approvals}");
}
