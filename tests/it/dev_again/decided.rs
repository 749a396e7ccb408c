//! What people decided since the last run, or released, and the files that say something else.

use super::*;

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
pub(super) fn rolled_back_by_somebody(arguments: &[&str]) -> Dev {
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
    let next = " services push quickstart/site --param greeting=…`";
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
