//! The pages on a phone at night: from a message to the reason, the line of the log and the
//! decision in three taps, and what stands on the first screen without scrolling.

use std::sync::mpsc::{Receiver, channel};

use fakes::http::Reply;
use serde_json::Value;
use tests::browser::{Browser, Look};
use tests::scheduler::{Scheduler, Start};
use tests::wait;

use crate::pages::sign_in;

/// A phone of today, held upright.
const PHONE: Look = Look { name: "night", width: 390, height: 844, scheme: "dark" };

/// A service that asks about a long plan in `asks`, and one that fails after a long log in `fails`;
/// three more channels stand before those. `@` is where messages go.
const CONFIG: &str = r#"
runtime:
  name: planned
  custom:
    proxyRuntime: {runtime: local}
    requireApprovalBeforeApply: true
    fetch:
      pollInterval: 1h
      taskConfig: {program: {name: plan, entrypoint: [sh, -c], cmd: ['exec pvn-wrapper exec --success-exit-codes 2 --out plan-explanation="$PVN_INSTANCE_DIR/plan.txt" -- sh -c "for n in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30; do echo \"  + resource web_\$n\"; done > \"\$PVN_INSTANCE_DIR/plan.txt\"; echo \"Plan: 30 to add, 0 to change, 0 to destroy.\" | tee -a \"\$PVN_INSTANCE_DIR/plan.txt\"; exit 2"']}}
    apply:
      taskConfig: {program: {name: do, entrypoint: ['true']}}
---
runtime:
  name: faulty
  custom:
    proxyRuntime: {runtime: local}
    apply:
      taskConfig: {program: {name: fail, entrypoint: [sh, -c], cmd: ['n=0; while [ $n -lt 300 ]; do n=$((n+1)); echo "uploads file $n of 300"; done; sleep 0.3; echo "Error: no such bucket shop-production" >&2; exit 7']}}
---
runtime: {name: well, custom: {proxyRuntime: {runtime: local}, apply: {taskConfig: {program: {name: do, entrypoint: ['true']}}}}}
---
application:
  name: app
  releaseChannels:
  - {name: development, runtimes: [{runtime: well}]}
  - {name: staging, runtimes: [{runtime: well}]}
  - {name: canary, runtimes: [{runtime: well}]}
  - {name: asks, runtimes: [{runtime: planned}]}
  - {name: fails, runtimes: [{runtime: faulty}]}
  notifications:
  - {name: chat, webhook: {url: {value: "@"}}, events: [APPROVAL_ASKED, FAILED]}
---
service: {name: orders, application: app}
"#;

/// Takes messages as a chat does: the address where it listens, and what it is sent.
fn chat() -> (String, Receiver<Value>) {
    let (sent, messages) = channel();
    let address = fakes::listen("127.0.0.1:0", move |request| {
        let message = serde_json::from_slice(&request.body).expect("a message is JSON");
        // Whoever has read enough of them is gone.
        let _read = sent.send(message);
        Some(Reply::empty(200))
    });
    (format!("http://{address}/hook"), messages)
}

/// Somebody with a phone, who has signed in before.
struct Phone {
    browser: Browser,
    taps: u32,
}

impl Phone {
    /// The first link that a message of this type had: a tap on it.
    fn follows(&mut self, messages: &Receiver<Value>, kind: &str) {
        let message = wait::until(&format!("a message {kind}"), || {
            messages.try_iter().find(|message| message["type"] == kind)
        });
        let url = message["data"]["url"].as_str().expect("a message has a link");
        let path = url.strip_prefix("https://pvn.example.com").expect("it leads here");
        self.browser.open(path);
        self.taps = 1;
    }

    /// A tap on what is on the screen.
    fn taps(&mut self, selector: &str) {
        self.sees(selector, "");
        self.browser.click(selector);
        self.taps += 1;
    }

    /// Waits until all of an element with this text is on the screen, which nobody has scrolled,
    /// and nothing lies above it.
    fn sees(&self, selector: &str, text: &str) {
        self.browser.shows(selector, text);
        let script = format!(
            "const seen = document.querySelector({selector:?}); \
             const {{top, bottom, left, right}} = seen.getBoundingClientRect(); \
             const above = document.elementFromPoint((left + right) / 2, (top + bottom) / 2); \
             return {{top, bottom, left, right, high: innerHeight, wide: innerWidth, scrolled: \
             scrollY, is_above: !!above && (seen.contains(above) || above.contains(seen))}}"
        );
        let mut last = Value::Null;
        let found = wait::within(wait::PATIENCE, || {
            last = self.browser.script(&script);
            let number = |name: &str| last[name].as_f64().unwrap_or(-1.0);
            let is_whole = number("top") >= 0.0 && number("bottom") <= number("high");
            let is_within = number("left") >= 0.0 && number("right") <= number("wide");
            let is_seen = number("scrolled") == 0.0 && last["is_above"] == true;
            (is_whole && is_within && is_seen).then_some(())
        });
        assert!(found.is_some(), "{selector} is not on the screen: {last}");
    }
}

fn at_night(test: &str) -> Option<(Scheduler, Phone, Receiver<Value>)> {
    let mut scheduler = Scheduler::stopped();
    let arguments = &["--advertise-url", "https://pvn.example.com"];
    scheduler.run(&Start { arguments, ..Start::default() });
    let browser = Browser::start(test, scheduler.url())?;
    browser.look(PHONE);
    browser.open("/");
    sign_in(&browser, &scheduler.token());
    browser.shows("h1", "Overview");
    let (url, messages) = chat();
    scheduler.apply(&CONFIG.replace('@', &url));
    scheduler.ok(&["services", "push", "orders", "--app", "app"]);
    Some((scheduler, Phone { browser, taps: 0 }, messages))
}

#[test]
fn with_a_phone_it_is_three_taps_from_a_message_to_reason_log_line_and_decision() {
    let test = "with_a_phone_it_is_three_taps_from_a_message_to_reason_log_line_and_decision";
    let Some((scheduler, mut phone, messages)) = at_night(test) else { return };
    scheduler.channel_becomes("orders", "asks", "WAITING_MANUAL_APPROVAL");
    phone.follows(&messages, "APPROVAL_ASKED");
    // The first screen: which channel, why it waits, what would be done, and the decision.
    phone.sees("#channel-asks a", "asks");
    phone.sees("#why > p.said", "waits for the approval of this apply");
    phone.sees(".figures", "30 to add");
    phone.sees("button.yes", "Approve");
    phone.sees("button.no", "Reject");
    phone.taps("#telling a");
    phone.sees("#log .l:last-child", "Plan: 30 to add, 0 to change, 0 to destroy.");
    phone.taps(".crumbs li:last-child a");
    phone.sees("#why > p.said", "waits for the approval of this apply");
    phone.sees("button.yes", "Approve");
    assert_eq!(phone.taps, 3);
    phone.taps("button.yes");
    scheduler.channel_becomes("orders", "asks", "CONVERGING");
}

#[test]
fn with_a_phone_it_is_three_taps_from_a_failure_to_its_log_line_and_the_retry() {
    let test = "with_a_phone_it_is_three_taps_from_a_failure_to_its_log_line_and_the_retry";
    let Some((scheduler, mut phone, messages)) = at_night(test) else { return };
    scheduler.channel_becomes("orders", "fails", "FAILED");
    phone.follows(&messages, "FAILED");
    phone.sees("#channel-fails a", "Failed");
    phone.sees("#why > p.said", "ended with exit code 7");
    phone.sees("form[action$='/retry'] button", "Retry");
    phone.sees("form[action$='/pause'] button", "Pause");
    phone.taps("#telling a");
    phone.sees("h1", "apply of orders");
    phone.sees("#log .l.e", "Error: no such bucket shop-production");
    phone.taps(".crumbs li:last-child a");
    phone.sees("#why > p.said", "ended with exit code 7");
    phone.sees("form[action$='/retry'] button", "Retry");
    assert_eq!(phone.taps, 3);
    let before = scheduler.jobs("orders", "apply").len();
    phone.taps("form[action$='/retry'] button");
    wait::until("another apply", || {
        (scheduler.jobs("orders", "apply").len() > before).then_some(())
    });
}

/// The head is one line with the way to everything behind one tap, without script too.
#[test]
fn on_a_phone_the_head_is_one_line_and_its_menu_leads_everywhere() {
    let test = "on_a_phone_the_head_is_one_line_and_its_menu_leads_everywhere";
    let Some((_scheduler, phone, _)) = at_night(test) else { return };
    let browser = &phone.browser;
    for runs in [true, false] {
        browser.scripts_run(runs);
        for width in [360, 430] {
            browser.look(Look { width, ..PHONE });
            browser.open("/services");
            phone.sees(".menu summary", "Menu");
            let high = browser
                .script("return document.querySelector('.top').getBoundingClientRect().height");
            assert!(high.as_f64().is_some_and(|high| high < 60.0), "{width} px: {high}");
            assert_eq!(browser.text(".top nav").as_deref(), Some(""), "closed");
        }
        browser.click(".menu summary");
        phone.sees("#search", "");
        phone.sees(".who button", "Sign out");
        browser.click(".top nav a[href='/audit']");
        browser.shows("h1", "Audit");
    }
}
