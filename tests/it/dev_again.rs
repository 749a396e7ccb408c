//! `dev` over a directory that an earlier run has used: what it looks at and tries again, and what
//! it leaves to a person.

use std::path::Path;
use std::process::Output;

use tests::dev::Dev;
use tests::wait;

use crate::dev::{run, said, seldom};

mod decided;

use decided::rolled_back_by_somebody;

fn script(dev: &Dev, name: &str, text: &str) {
    std::fs::write(dev.directory().join(name), format!("#!/bin/sh\n{text}\n"))
        .expect("a file can be written");
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
    let (before, service) = text
        .split_once("---\nservice:")
        .expect("the example has a service in a document of its own");
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
    assert!(
        said(&second).contains("was withdrawn before it started"),
        "no apply had been decided: {}",
        said(&second)
    );
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
    assert!(
        said(&last).contains("there CONVERGED") && !said(&last).contains("DELETED"),
        "{}",
        said(&last)
    );
}

/// The quickstart's files with a secret that nobody has set.
fn without_its_secret(dev: &Dev) -> String {
    let text = std::fs::read_to_string(dev.directory().join("quickstart.pvn.yaml"))
        .expect("the example has it");
    let asks = "  application: quickstart\n  env:\n    KEY: {secret: {key: nobody-set-this}}\n  \
                parameters:";
    let changed = text
        .replace("  application: quickstart\n  parameters:", asks)
        .replace("cmd: [./apply.sh]", "cmd: [./other.sh]");
    assert!(changed.contains("nobody-set-this") && changed.contains("other.sh"), "{changed}");
    changed
}

#[test]
fn files_whose_release_is_refused_change_nothing_and_are_no_success() {
    let mut dev = seldom();
    ends(&run(&dev), 0);
    let path = dev.directory().join("quickstart.pvn.yaml");
    let good = std::fs::read_to_string(&path).expect("the example has it");
    let refused = without_its_secret(&dev);
    std::fs::write(&path, &refused).expect("a file can be written");
    script(&dev, "other.sh", "touch other-ran");
    let first = run(&dev);
    ends(&first, 1);
    assert!(
        said(&first).contains("nobody-set-this") && said(&first).contains("nothing was stored"),
        "{}",
        said(&first)
    );

    // Nor where they are watched: what was in force is what runs.
    std::fs::write(&path, &good).expect("a file can be written");
    dev.start(&["--watch"]);
    dev.prints("goes on at");
    std::fs::write(&path, &refused).expect("a file can be written");
    dev.prints("waiting for the files to change");
    let diff = dev.pvnctl(&["configs", "diff", path.to_str().expect("a path"), "--exit-code"]);
    ends(&diff, 2);
    std::fs::remove_dir_all(dev.directory().join("site")).expect("it was made");
    ends(
        &dev.pvnctl(&["services", "refresh", "site", "--app", "quickstart", "--channel", "here"]),
        0,
    );
    dev.file_becomes("site/greeting.txt", "hello\n");
    assert!(!dev.directory().join("other-ran").exists(), "{}", dev.log());
    assert!(!dev.log().contains("as they were applied again"), "{}", dev.log());

    // What they were refused for is mended elsewhere, and they are taken without a change, once
    // somebody touches them.
    ends(&dev.pvnctl_with(&["secrets", "set", "nobody-set-this"], "hunter2-of-mine"), 0);
    std::fs::write(&path, &refused).expect("a file can be written");
    wait::until("the files to be taken", || {
        let shown = dev.pvnctl(&["services", "get", "site", "--app", "quickstart", "-o", "json"]);
        let shown: serde_json::Value = serde_json::from_slice(&shown.stdout).ok()?;
        (shown["version"] == "site-2").then_some(())
    });
    dev.interrupt();
}

#[test]
fn a_channel_that_is_added_hides_no_other_that_is_not_as_the_files_say() {
    let dev = rolled_back_by_somebody(&["--param", "greeting=new"]);
    let path = dev.directory().join("quickstart.pvn.yaml");
    let one = std::fs::read_to_string(&path).expect("the example has it");
    let channel = "  - name: here\n    runtimes:\n    - runtime: small-site\n";
    std::fs::write(
        &path,
        one.replace(channel, &format!("{channel}{}", channel.replace("here", "there"))),
    )
    .expect("a file can be written");
    // The example's channels would write the same files.
    script(&dev, "fetch.sh", "exit 0");
    let added = dev.to_the_end(&["--until-converged", "--param", "greeting=new"]);
    ends(&added, 1);
    assert!(
        said(&added).contains("in here, which") && !said(&added).contains("in there"),
        "{}",
        said(&added)
    );
}

#[test]
fn a_secret_is_given_by_a_file_and_another_value_releases() {
    let dev = Dev::of("quickstart");
    let path = dev.directory().join("quickstart.pvn.yaml");
    let asks = without_its_secret(&dev).replace("./other.sh", "./apply.sh");
    std::fs::write(&path, asks).expect("a file can be written");
    script(&dev, "fetch.sh", "exit 0");
    script(&dev, "apply.sh", "");
    let missing = run(&dev);
    ends(&missing, 1);
    assert!(
        said(&missing).contains("give its value with `--secret nobody-set-this=FILE`"),
        "{}",
        said(&missing)
    );

    let value = dev.directory().join("value");
    let given = format!("nobody-set-this={}", value.display());
    for (text, goes_on) in
        [("first-of-mine\n", false), ("first-of-mine", true), ("second-of-mine\n", false)]
    {
        std::fs::write(&value, text).expect("a file can be written");
        let output = dev.to_the_end(&["--until-converged", "--secret", &given]);
        ends(&output, 0);
        assert_eq!(said(&output).contains("goes on at"), goes_on, "{}", said(&output));
        assert!(!said(&output).contains("of-mine"), "{}", said(&output));
    }
    // Whoever gives none changes nothing.
    let without = run(&dev);
    ends(&without, 0);
    assert!(said(&without).contains("goes on at site-2"), "{}", said(&without));
    for (argument, words) in [
        ("k", "write it as KEY=FILE"),
        ("k=", "write it as KEY=FILE"),
        ("k=/nowhere/k", "cannot be opened"),
        ("k=/", "no regular file"),
    ] {
        let refused = dev.to_the_end(&["--secret", argument]);
        ends(&refused, 1);
        assert!(said(&refused).contains(words), "{}", said(&refused));
    }
}

#[test]
fn what_a_new_data_directory_finds_at_its_own_version_is_told() {
    let dev = Dev::of("structured");
    let object = r#"{"name": "w", "objectType": "T", "status": "SUCCEEDED", "versions": [{"version": "%s", "active": true}]}"#;
    script(&dev, "fetch.sh", &format!("printf '{{\"objects\": [{object}]}}' \"$(cat world)\""));
    script(&dev, "apply.sh", "printf %s \"$PVN_SERVICE_VERSION\" >world");
    script(&dev, "info.sh", "echo '{\"outputs\": []}'");
    std::fs::write(dev.directory().join("world"), "nothing").expect("a file can be written");
    let arguments = ["--until-converged", "--timeout", "1m", "--param", "replicas=1"];
    let first = dev.to_the_end(&arguments);
    ends(&first, 0);
    assert!(!said(&first).contains("was found at"), "{}", said(&first));
    // As on a fresh checkout.
    std::fs::remove_dir_all(dev.directory().join(".pvn")).expect("it has a data directory");
    let second = dev.to_the_end(&arguments);
    ends(&second, 0);
    assert!(
        said(&second).contains("was found at")
            && said(&second).contains("nothing was applied from this new data directory"),
        "{}",
        said(&second)
    );
    let third = dev.to_the_end(&arguments);
    assert!(!said(&third).contains("was found at"), "{}", said(&third));
}

#[test]
fn what_an_earlier_run_asked_is_told_with_the_commands_that_answer_it() {
    let mut dev = seldom();
    let path = dev.directory().join("quickstart.pvn.yaml");
    let text = std::fs::read_to_string(&path).expect("the example has it");
    let gated = text.replacen(
        "    parameters:\n",
        "    requireApprovalBeforeApply: true\n    parameters:\n",
        1,
    );
    assert_ne!(gated, text, "the quickstart has parameters");
    std::fs::write(&path, gated).expect("a file can be written");
    for _ in 0..2 {
        dev.start(&[]);
        dev.prints(" services approve quickstart/site@here --approval apr-");
        dev.interrupt();
    }
}
