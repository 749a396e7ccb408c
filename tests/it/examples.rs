//! Every example, run as its README says, and the README of the project itself. Terraform has a
//! file of its own.

use std::process::Command;

use serde_json::Value;
use tests::dev::Dev;
use tests::{programs, wait};

fn converges(dev: &Dev, arguments: &[&str]) -> String {
    let output = dev.to_the_end(&[arguments, &["--until-converged", "--timeout", "60s"]].concat());
    let said = [output.stdout, output.stderr].concat();
    let said = String::from_utf8_lossy(&said).into_owned();
    assert_eq!(output.status.code(), Some(0), "{said}");
    said
}

fn json(dev: &Dev, arguments: &[&str]) -> Value {
    let output = dev.pvnctl(&[arguments, &["-o", "json"]].concat());
    assert!(
        output.status.success(),
        "{arguments:?}: {}\n{}",
        String::from_utf8_lossy(&output.stderr),
        dev.log()
    );
    serde_json::from_slice(&output.stdout).expect("pvnctl prints JSON")
}

#[test]
fn quickstart_converges_repairs_and_survives_kill_9() {
    let mut dev = Dev::of("quickstart");
    converges(&dev, &[]);
    dev.file_becomes("site/greeting.txt", "hello\n");
    converges(&dev, &["--param", "greeting=good morning = now"]);
    dev.file_becomes("site/greeting.txt", "good morning = now\n");

    dev.start(&[]);
    dev.prints("CONVERGED");
    let wanted = std::fs::read_to_string(dev.directory().join("wanted/index.html"))
        .expect("the example has it");
    std::fs::write(dev.directory().join("site/index.html"), "oops").expect("a file can be written");
    dev.file_becomes("site/index.html", &wanted);
    wait::until("the repair to be told", || {
        (dev.log().matches("CONVERGED").count() >= 2).then_some(())
    });
    let status = dev.interrupt();
    assert!(status.code().is_some(), "Ctrl-C is an ordinary end: {status}");
}

#[test]
fn quickstart_serves_a_second_channel_at_the_same_time() {
    for _ in 0..3 {
        let dev = Dev::of("quickstart");
        let path = dev.directory().join("quickstart.pvn.yaml");
        let one = std::fs::read_to_string(&path).expect("the example has it");
        let channel = "  - name: here\n    runtimes:\n    - runtime: small-site\n";
        let two = one.replace(channel, &format!("{channel}{}", channel.replace("here", "there")));
        assert_ne!(one, two, "the quickstart has other channels");
        std::fs::write(&path, two).expect("a file can be written");
        converges(&dev, &[]);
        let site = std::fs::read_dir(dev.directory().join("site")).expect("it was made");
        assert_eq!(site.count(), 3, "nothing is left beside the three files");
    }
}

#[test]
fn structured_keeps_a_fleet_of_real_processes() {
    let mut dev = Dev::of("structured");
    dev.start(&[]);
    let fleet = || {
        let service = json(&dev, &["services", "get", "workers", "--app", "fleet"]);
        (service["channels"][0]["status"] == "CONVERGED").then(|| service["channels"][0].clone())
    };
    wait::until("dev to listen", || {
        dev.pvnctl(&["services", "get", "workers", "--app", "fleet"]).status.success().then_some(())
    });
    let channel = wait::until("the fleet to converge", fleet);
    let web = &channel["objects"][0];
    assert_eq!(
        (&web["name"], &web["objectType"], &web["status"]),
        (&"web".into(), &"Process".into(), &"SUCCEEDED".into())
    );
    assert_eq!(web["versions"][0]["targetReplicas"], 2);
    assert!(web["debugEvents"].as_array().is_some_and(|events| !events.is_empty()));

    let pid_of = || {
        let text = std::fs::read_to_string(dev.directory().join("run/here/web.1")).ok()?;
        text.split(' ').next().map(str::to_owned)
    };
    let first = pid_of().expect("a process is on file");
    assert!(Command::new("kill").arg(&first).status().expect("kill can be started").success());
    wait::until("another process in its place", || pid_of().filter(|pid| *pid != first));
    wait::until("the fleet to converge again", fleet);
    for entry in
        std::fs::read_dir(dev.directory().join("run/here")).expect("the fleet's files").flatten()
    {
        if entry.file_name().to_string_lossy().ends_with(".log") {
            continue;
        }
        let text = std::fs::read_to_string(entry.path()).expect("a process is on file");
        let pid = text.split(' ').next().expect("its number comes first");
        assert!(Command::new("kill").arg(pid).status().expect("kill can be started").success());
    }
}

#[test]
fn static_assets_copies_once_per_revision_and_tells_where() {
    let mut dev = Dev::of("static-assets");
    converges(&dev, &[]);
    dev.file_becomes("public/revision.txt", "first\n");
    converges(&dev, &["--param", "revision=second"]);
    dev.file_becomes("public/revision.txt", "second\n");
    dev.start(&[]);
    let info = wait::until("getInfo to be shown", || {
        let output = dev.pvnctl(&["services", "get", "assets", "--app", "website", "-o", "json"]);
        let service: Value = serde_json::from_slice(&output.stdout).ok()?;
        service["channels"][0]["info"][0]["text"].as_str().map(str::to_owned)
    });
    assert!(info.ends_with("public/index.html"), "{info}");
    let service = json(&dev, &["services", "get", "assets", "--app", "website"]);
    assert_eq!(service["version"], "assets-second", "named by bundleName");
    let applies =
        json(&dev, &["jobs", "list", "--app", "website", "--service", "assets", "--kind", "apply"]);
    assert_eq!(applies.as_array().map(Vec::len), Some(2), "once per revision: {applies:#}");
}

#[test]
fn channels_goes_to_production_after_staging_and_a_person() {
    let mut dev = Dev::of("channels");
    dev.start(&[]);
    let production = |status: &str| {
        let output = dev.pvnctl(&["services", "get", "frontend", "--app", "shop", "-o", "json"]);
        let service: Value = serde_json::from_slice(&output.stdout).ok()?;
        let channels = service["channels"].as_array()?;
        channels
            .iter()
            .find(|channel| channel["channel"] == "production" && channel["status"] == status)
            .cloned()
    };
    wait::until("production to wait for a person", || production("WAITING_MANUAL_APPROVAL"));
    dev.file_becomes("deployed/staging", "frontend-1 in blue\n");
    assert!(!dev.directory().join("deployed/production").exists());
    dev.prints("services approve");
    let approve =
        ["services", "approve", "frontend", "--app", "shop", "--channel", "production", "--yes"];
    assert!(dev.pvnctl(&approve).status.success());
    wait::until("production to converge", || production("CONVERGED"));
    dev.file_becomes("deployed/production", "frontend-1 in green\n");
}

#[test]
fn every_example_validates_without_a_server() {
    let output = Command::new(programs::program("pvnctl"))
        .args(["configs", "validate", "examples/..."])
        .current_dir(programs::repository())
        .env("PVN_SERVER", "http://127.0.0.1:9")
        .output()
        .expect("pvnctl can be started");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn the_readmes_two_commands_are_whole_lines_of_it() {
    let readme = std::fs::read_to_string(programs::repository().join("README.md"))
        .expect("there is a README");
    let commands: Vec<_> = readme.lines().filter(|line| line.starts_with("cargo ")).collect();
    assert_eq!(commands.len(), 2, "{commands:?}");
    assert!(commands[0].contains("dev examples/quickstart"));
    assert!(commands[1].starts_with("cargo test "));
}
