//! The examples, killed everywhere.

use tests::dev::Dev;
use tests::skip;

use super::*;

/// An example, and what it comes to.
struct Example {
    name: &'static str,
    application: &'static str,
    service: &'static str,
    /// Its channels; one apply for each.
    channels: &'static [&'static str],
    /// Those that wait for a person.
    approved: &'static [&'static str],
    /// Which time of passing a point it dies.
    counts: &'static [u32],
}

/// Killed at every named point, started again, and approved where it asks: the same end, one apply
/// for each channel.
fn check_killed_everywhere(example: &Example) {
    let mut survived = Vec::new();
    for (point, count) in
        example.counts.iter().flat_map(|count| POINTS.iter().map(move |point| (point, count)))
    {
        let at = format!("{point}:{count}");
        let mut dev = Dev::of(example.name);
        let converged = ["--until-converged", "--timeout", "120s"];
        let killed = dev.to_the_end_with(Some(&at), &converged, || approve(&dev, example));
        if killed.signal() != Some(9) {
            survived.push(at.clone());
        }
        let again = dev.to_the_end_with(None, &converged, || approve(&dev, example));
        assert_eq!(again.code(), Some(0), "{} after a death at {at}: {}", example.name, dev.log());

        dev.start(&[]);
        let listed = wait::until("dev to answer", || {
            list(
                &dev,
                &[
                    "jobs",
                    "list",
                    "--app",
                    example.application,
                    "--service",
                    example.service,
                    "--kind",
                    "apply",
                ],
            )
        });
        // One that was decided before the death and had not started is decided once more, when
        // fetch has looked again.
        let was_withdrawn =
            |job: &&Value| job["status"] == "CANCELLED" && job["startedAt"].is_null();
        let begun = listed.iter().filter(|job| !was_withdrawn(job));
        let mut applied: Vec<_> =
            begun.map(|job| (job["channel"].as_str(), job["status"].as_str())).collect();
        applied.sort_unstable();
        let wanted: Vec<_> =
            example.channels.iter().map(|channel| (Some(*channel), Some("SUCCEEDED"))).collect();
        assert_eq!(
            applied, wanted,
            "{} after a death at {at}: applied once, and on record: {listed:#?}",
            example.name
        );
        dev.interrupt();
        end_what_it_started(&dev);
    }
    // A job that is over at once is never told as started.
    let missed = survived.iter().filter(|at| !at.starts_with("after-started")).count();
    assert_eq!(missed, 0, "{} was not killed at {survived:?}", example.name);
}

fn list(dev: &Dev, arguments: &[&str]) -> Option<Vec<Value>> {
    serde_json::from_slice(&dev.pvnctl(&[arguments, &["-o", "json"]].concat()).stdout).ok()
}

/// Says yes where a person is waited for, if anybody is there to hear it.
fn approve(dev: &Dev, example: &Example) {
    let Example { application, service, .. } = example;
    if example.approved.is_empty() {
        return;
    }
    let output = dev.pvnctl(&["services", "get", service, "--app", application, "-o", "json"]);
    let Ok(shown) = serde_json::from_slice::<Value>(&output.stdout) else { return };
    for channel in shown["channels"].as_array().into_iter().flatten() {
        let waits = channel["status"] == "WAITING_MANUAL_APPROVAL";
        if let (true, Some(name)) =
            (waits, example.approved.iter().find(|name| channel["channel"] == **name))
        {
            // It may die of just this.
            dev.pvnctl(&[
                "services",
                "approve",
                service,
                "--app",
                application,
                "--channel",
                name,
                "--yes",
            ]);
        }
    }
}

#[test]
fn p4_p5_quickstart_ends_in_the_same_state_wherever_it_is_killed() {
    check_killed_everywhere(&Example {
        name: "quickstart",
        application: "quickstart",
        service: "site",
        channels: &["here"],
        approved: &[],
        counts: &[1],
    });
}

#[test]
fn p4_p5_structured_ends_in_the_same_state_wherever_it_is_killed() {
    check_killed_everywhere(&Example {
        name: "structured",
        application: "fleet",
        service: "workers",
        channels: &["here"],
        approved: &[],
        counts: &[1],
    });
}

#[test]
fn p4_p5_static_assets_ends_in_the_same_state_wherever_it_is_killed() {
    check_killed_everywhere(&Example {
        name: "static-assets",
        application: "website",
        service: "assets",
        channels: &["public"],
        approved: &[],
        counts: &[1],
    });
}

#[test]
fn p4_p5_channels_ends_in_the_same_state_wherever_it_is_killed() {
    check_killed_everywhere(&Example {
        name: "channels",
        application: "shop",
        service: "frontend",
        channels: &["production", "staging"],
        approved: &["production"],
        // The third answer is the one to the approval, the third start the first apply.
        counts: &[1, 3],
    });
}

#[test]
fn p1_p2_p4_p5_terraform_ends_in_the_same_state_wherever_it_is_killed() {
    if skip::tool("terraform").or_else(|| skip::tool("tofu")).is_none() {
        skip::skipped(
            "terraform killed at every named point",
            "neither terraform nor tofu is on PATH",
        );
        return;
    }
    check_killed_everywhere(&Example {
        name: "terraform",
        application: "infrastructure",
        service: "site",
        channels: &["production"],
        approved: &["production"],
        // The second job is the apply when the person is quick, and the third answer the one to the
        // approval.
        counts: &[2, 3],
    });
}

/// The processes of the example `structured` outlive their job on purpose.
fn end_what_it_started(dev: &Dev) {
    let Ok(entries) = std::fs::read_dir(dev.directory().join("run")) else { return };
    for entry in
        entries.flatten().filter(|entry| entry.path().extension().is_some_and(|kind| kind != "log"))
    {
        let text = std::fs::read_to_string(entry.path()).expect("a process is on file");
        let pid = text
            .split(' ')
            .next()
            .and_then(|number| number.parse().ok())
            .expect("its number comes first");
        // It may have ended by itself.
        let _ = nix::sys::signal::kill(
            nix::unistd::Pid::from_raw(pid),
            nix::sys::signal::Signal::SIGTERM,
        );
    }
}
