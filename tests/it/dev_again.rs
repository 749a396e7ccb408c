//! `dev` over a directory that an earlier run has used: what it looks at and tries again, and what
//! it leaves to a person.

use std::path::Path;
use std::process::Output;

use tests::dev::Dev;
use tests::wait;

use crate::dev::{run, said, seldom};

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

/// Runs it to the end; what would wait for ever ends with 3.
fn in_time(dev: &Dev) -> Output {
    dev.to_the_end(&["--until-converged", "--timeout", "60s"])
}

/// The quickstart with a second channel, `there`, which waits for the first one.
fn behind(quickstart: &str) -> String {
    let channel = "  - name: here\n    runtimes:\n    - runtime: small-site\n";
    let waits = "    preconditions:\n    - releaseChannelStable:\n        releaseChannel: here\n";
    let two = quickstart
        .replace(channel, &format!("{channel}{}{waits}", channel.replace("here", "there")));
    assert_ne!(quickstart, two, "the quickstart has other channels");
    two
}

/// What is released to the new channel alone would wait for the other one, at a version that is
/// never released there.
#[test]
fn a_channel_that_waits_for_another_is_released_with_it_unless_a_person_decided_something_else_there()
 {
    let mut dev = seldom();
    let path = dev.directory().join("quickstart.pvn.yaml");
    let one = std::fs::read_to_string(&path).expect("the example has it");
    let two = behind(&one);
    // The example's channels would write the same files.
    script(&dev, "fetch.sh", "[ -e \"there-$PVN_RELEASE_CHANNEL\" ] || exit 2");
    script(&dev, "apply.sh", "touch \"there-$PVN_RELEASE_CHANNEL\"");
    let write = |text: &str| std::fs::write(&path, text).expect("a file can be written");
    for text in [&one, &two, &one, &two] {
        write(text);
        ends(&in_time(&dev), 0);
    }
    // And one that is put before a channel that has converged.
    let earlier =
        "    preconditions:\n    - releaseChannelStable:\n        releaseChannel: before\n";
    let three = two.replace(
        "  - name: here\n    runtimes:\n    - runtime: small-site\n",
        &format!(
            "  - name: before\n    runtimes:\n    - runtime: small-site\n  - name: here\n    \
             runtimes:\n    - runtime: small-site\n{earlier}"
        ),
    );
    write(&three);
    ends(&in_time(&dev), 0);
    for channel in ["before", "here", "there"] {
        std::fs::remove_file(dev.directory().join(format!("there-{channel}")))
            .expect("it was applied");
    }
    ends(&in_time(&dev), 0);
    write(&two);
    ends(&in_time(&dev), 0);
    let other = |text: &str| text.replace("defaultValue: hello", "defaultValue: other");
    write(&other(&one));
    dev.start(&[]);
    dev.prints("CONVERGED site-5");
    let back = dev.pvnctl(&[
        "services",
        "rollback",
        "site",
        "--app",
        "quickstart",
        "--to",
        "site-4",
        "--channels",
        "here",
    ]);
    ends(&back, 0);
    dev.interrupt();
    write(&other(&two));
    let held = run(&dev);
    ends(&held, 1);
    let told = "`there` waits until `here` is converged at site-7, which was not released there";
    assert!(said(&held).contains(told), "{}", said(&held));
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
    let apply =
        std::fs::read_to_string(dev.directory().join("apply.sh")).expect("the example has it");
    let apply = apply.replace("set -eu", "set -eu\n[ \"$GREETING\" != never ] || exit 0");
    std::fs::write(dev.directory().join("apply.sh"), apply).expect("a file can be written");
    for _ in 0..2 {
        let taken_back = run(&dev);
        ends(&taken_back, 2);
    }
}

/// The one that waits is at a version that the other one was taken back from, and would not get any
/// more.
#[test]
fn what_is_released_anew_after_it_was_taken_back_goes_to_the_channels_that_wait_for_it_too() {
    let dev = seldom();
    let path = dev.directory().join("quickstart.pvn.yaml");
    let text = behind(&std::fs::read_to_string(&path).expect("the example has it"));
    let text = text.replace(
        "  application: quickstart\n  parameters:",
        "  application: quickstart\n  progressDeadline: 3s\n  autoRollback: {}\n  parameters:",
    );
    script(
        &dev,
        "fetch.sh",
        "[ \"$(cat \"at-$PVN_RELEASE_CHANNEL\")\" = \"$GREETING\" ] || exit 2",
    );
    script(
        &dev,
        "apply.sh",
        "[ \"$GREETING\" != new ] || [ -e mended ] || exit 0\necho \"$GREETING\" \
         >\"at-$PVN_RELEASE_CHANNEL\"",
    );
    std::fs::write(&path, &text).expect("a file can be written");
    ends(&run(&dev), 0);
    std::fs::write(&path, text.replace("defaultValue: hello", "defaultValue: new"))
        .expect("a file can be written");
    ends(&run(&dev), 2);
    script(&dev, "mended", "");
    ends(&in_time(&dev), 0);
    for channel in ["here", "there"] {
        dev.file_becomes(&format!("at-{channel}"), "new\n");
    }
}

/// The quickstart at another greeting, which somebody takes back.
fn rolled_back_by_somebody(arguments: &[&str]) -> Dev {
    let mut dev = seldom();
    ends(&run(&dev), 0);
    dev.start(arguments);
    dev.file_becomes("site/greeting.txt", "new\n");
    let back = dev.pvnctl(&["services", "rollback", "site", "--app", "quickstart", "--wait"]);
    ends(&back, 0);
    dev.interrupt();
    dev
}

#[test]
fn until_converged_is_no_success_where_somebody_released_something_else_than_the_files_say() {
    let given = ["--until-converged", "--param", "greeting=new"];
    let dev = rolled_back_by_somebody(&given[1..]);
    let again = dev.to_the_end(&given);
    ends(&again, 1);
    assert!(
        said(&again).contains("released and which is not what these files and --param say"),
        "{}",
        said(&again)
    );
    let next = " services push site --app quickstart --param greeting=…`";
    assert!(
        said(&again).contains(next) && said(&again).contains("type `pvnctl --server http"),
        "as it reaches this scheduler: {}",
        said(&again)
    );
    // And what that leads to is what the files say, whoever made it.
    let mut dev = dev;
    dev.start(&given[1..]);
    wait::until("dev to answer", || {
        dev.pvnctl(&["services", "list"]).status.success().then_some(())
    });
    ends(
        &dev.pvnctl(&[
            "services",
            "push",
            "site",
            "--app",
            "quickstart",
            "--param",
            "greeting=new",
            "--wait",
        ]),
        0,
    );
    dev.interrupt();
    ends(&dev.to_the_end(&given), 0);
}

#[test]
fn until_converged_is_no_success_where_somebody_gave_a_channel_another_value() {
    let mut dev = seldom();
    let given = ["--until-converged", "--param", "greeting=new"];
    ends(&dev.to_the_end(&given), 0);
    dev.start(&given[1..]);
    wait::until("dev to answer", || {
        dev.pvnctl(&["services", "list"]).status.success().then_some(())
    });
    let own = [
        "services",
        "push",
        "site",
        "--app",
        "quickstart",
        "--param-for-channel",
        "here:greeting=own",
        "--wait",
    ];
    ends(&dev.pvnctl(&own), 0);
    dev.interrupt();
    let again = dev.to_the_end(&given);
    ends(&again, 1);
    assert!(said(&again).contains(" in here, which"), "{}", said(&again));
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
        dev.prints(" services approve site --app quickstart --channel here --approval apr-");
        dev.interrupt();
    }
}
