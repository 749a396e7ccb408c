//! `dev` over a directory that an earlier run has used: what it looks at and tries again, and what it leaves to a person.

use std::path::Path;
use std::process::Output;

use tests::dev::Dev;
use tests::wait;

use crate::dev::{run, said, seldom};

fn script(dev: &Dev, name: &str, text: &str) {
    std::fs::write(dev.directory().join(name), format!("#!/bin/sh\n{text}\n")).expect("a file can be written");
}

fn has(path: &Path) -> Option<()> {
    path.exists().then_some(())
}

fn ends(output: &Output, code: i32) {
    assert_eq!(output.status.code(), Some(code), "{}", said(output));
}

/// Stopped while its first fetch runs, which ends with this code while nobody listens.
fn stopped_while_it_looked(code: u8) -> Dev {
    let mut dev = seldom();
    script(&dev, "fetch.sh", &format!("touch began; sleep 2; touch ended; exit {code}"));
    script(&dev, "apply.sh", "touch applied");
    dev.start(&[]);
    wait::until("the fetch to begin", || has(&dev.directory().join("began")));
    assert_eq!(dev.interrupt().code(), Some(0));
    wait::until("the fetch to end", || has(&dev.directory().join("ended")));
    dev
}

#[test]
fn nothing_is_applied_because_of_what_a_fetch_of_an_earlier_run_found() {
    let dev = stopped_while_it_looked(2);
    script(&dev, "fetch.sh", "exit 0");
    let second = run(&dev);
    ends(&second, 0);
    assert!(!dev.directory().join("applied").exists(), "{}", said(&second));
}

#[test]
fn what_has_left_the_files_is_not_applied_because_of_what_a_fetch_of_an_earlier_run_found_either() {
    let mut dev = stopped_while_it_looked(2);
    let path = dev.directory().join("quickstart.pvn.yaml");
    let text = std::fs::read_to_string(&path).expect("the example has it");
    let (before, service) = text.split_once("---\nservice:").expect("the example has a service in a document of its own");
    assert!(!service.contains("\n---"), "and nothing behind it");
    std::fs::write(&path, before).expect("a file can be written");
    script(&dev, "fetch.sh", "touch looked; exit 0");
    dev.start(&[]);
    wait::until("fetch to look again", || has(&dev.directory().join("looked")));
    wait::until("it to be converged", || {
        let shown = dev.pvnctl(&["services", "get", "site", "--app", "quickstart", "-o", "json"]);
        let shown: serde_json::Value = serde_json::from_slice(&shown.stdout).ok()?;
        (shown["channels"][0]["status"] == "CONVERGED").then_some(())
    });
    assert!(!dev.directory().join("applied").exists(), "{}", dev.log());
    dev.interrupt();
}

#[test]
fn an_apply_that_an_earlier_run_had_decided_is_decided_once_more_with_the_files_of_now() {
    let dev = seldom();
    script(&dev, "fetch.sh", "exit 2");
    script(&dev, "apply.sh", "touch applied");
    // Before its third start, after fetch and getInfo.
    let crashed = dev.to_the_end_with(Some("before-start:3"), &["--until-converged"], || {});
    assert!(!crashed.success() && !dev.directory().join("applied").exists(), "{}", dev.log());
    script(&dev, "fetch.sh", "exit 0");
    let second = run(&dev);
    ends(&second, 0);
    assert!(said(&second).contains("was withdrawn before it started"), "no apply had been decided: {}", said(&second));
    assert!(!dev.directory().join("applied").exists(), "{}", said(&second));
}

#[test]
fn until_converged_takes_no_answer_of_an_earlier_run_for_one() {
    let dev = stopped_while_it_looked(0);
    script(&dev, "fetch.sh", "touch looked; exit 0");
    let second = run(&dev);
    ends(&second, 0);
    assert!(dev.directory().join("looked").exists(), "{}", said(&second));
}

#[test]
fn a_channel_that_is_back_in_the_files_is_released_again() {
    let dev = seldom();
    let path = dev.directory().join("quickstart.pvn.yaml");
    let one = std::fs::read_to_string(&path).expect("the example has it");
    let channel = "  - name: here\n    runtimes:\n    - runtime: small-site\n";
    let two = one.replace(channel, &format!("{channel}{}", channel.replace("here", "there")));
    assert_ne!(one, two, "the quickstart has other channels");
    // The example's channels would write the same files.
    script(&dev, "fetch.sh", "[ -e \"there-$PVN_RELEASE_CHANNEL\" ] || exit 2");
    script(&dev, "apply.sh", "touch \"there-$PVN_RELEASE_CHANNEL\"");
    for text in [&two, &one, &two] {
        std::fs::write(&path, text).expect("a file can be written");
        ends(&run(&dev), 0);
    }
    let last = run(&dev);
    ends(&last, 0);
    assert!(said(&last).contains("there CONVERGED") && !said(&last).contains("DELETED"), "{}", said(&last));
}

#[test]
fn until_converged_is_no_success_while_what_the_files_say_is_taken_back() {
    let dev = seldom();
    let path = dev.directory().join("quickstart.pvn.yaml");
    let good = std::fs::read_to_string(&path).expect("the example has it");
    let good = good.replace(
        "  application: quickstart\n  parameters:",
        "  application: quickstart\n  progressDeadline: 3s\n  autoRollback: {}\n  parameters:",
    );
    std::fs::write(&path, &good).expect("a file can be written");
    ends(&run(&dev), 0);
    let bad = good.replace("defaultValue: hello", "defaultValue: never");
    std::fs::write(&path, &bad).expect("a file can be written");
    let apply = std::fs::read_to_string(dev.directory().join("apply.sh")).expect("the example has it");
    let apply = apply.replace("set -eu", "set -eu\n[ \"$GREETING\" != never ] || exit 0");
    std::fs::write(dev.directory().join("apply.sh"), apply).expect("a file can be written");
    for _ in 0..2 {
        let taken_back = run(&dev);
        ends(&taken_back, 2);
    }
}
