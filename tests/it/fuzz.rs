//! Fuzz from outside, with the real programs: commands print whatever the schemas let through,
//! configs say whatever the reader lets through, and after each batch the daemon is restarted, by
//! `kill -9` and softly in turns. It never ends by itself, everything can be read, and what was
//! poisoned converges once it is given something good.
//!
//! A few batches run with the other tests; more with `PVN_FUZZ_BATCHES=200`, others with
//! `PVN_FUZZ_SEED=7`. What fails is printed with its batch's seed.

mod configs;
mod outputs;

use tests::scheduler::{Scheduler, Start};
use tests::wait;

/// Batches when nothing is said: a minute of an ordinary run of the tests.
const BATCHES: u64 = 4;

/// Ends the daemon by force or softly and starts it again over the same data.
fn restart(scheduler: &mut Scheduler, by_force: bool) {
    if by_force {
        scheduler.kill();
    } else {
        let status = scheduler.stop();
        assert!(status.success(), "a soft stop ended with {status}:\n{}", scheduler.log());
    }
    scheduler.run(&Start::default());
}

/// The daemon runs and says that it can work; every instance can be read and explained.
fn is_well(scheduler: &mut Scheduler, input: &dyn Fn() -> String) {
    if let Some(status) = scheduler.exited() {
        panic!("the daemon ended by itself with {status} after {}\n{}", input(), scheduler.log());
    }
    wait::within(wait::PATIENCE, || (scheduler.get("/readyz")?.0 == 200).then_some(()))
        .unwrap_or_else(|| {
            panic!("/readyz stays red after {}\n{:?}", input(), scheduler.get("/readyz"))
        });
    let services = scheduler.json(&["services", "list", "--app", "app"]);
    for service in services.as_array().expect("a list of services") {
        let name = service["name"].as_str().expect("a service has a name");
        let whole = scheduler.pvnctl(["services", "get", name, "--app", "app", "-o", "json"]);
        let stderr = String::from_utf8_lossy(&whole.stderr).into_owned();
        assert!(whole.status.success(), "{name} cannot be read: {stderr}\nafter {}", input());
        let whole: serde_json::Value =
            serde_json::from_slice(&whole.stdout).expect("pvnctl prints JSON");
        for channel in whole["channels"].as_array().expect("channels is a list") {
            let channel = channel["channel"].as_str().expect("a channel has a name");
            let explained = scheduler.pvnctl([
                "services",
                "explain",
                name,
                "--app",
                "app",
                "--channel",
                channel,
                "-o",
                "json",
            ]);
            let stderr = String::from_utf8_lossy(&explained.stderr);
            assert!(
                explained.status.success(),
                "{name} in {channel} cannot be explained: {stderr}\nafter {}",
                input()
            );
        }
    }
}

/// Every channel of every service is CONVERGED at its service's newest version.
fn all_converged(scheduler: &Scheduler) -> bool {
    let services = scheduler.json(&["services", "list", "--app", "app"]);
    services.as_array().expect("a list of services").iter().all(|service| {
        let whole = scheduler.json(&[
            "services",
            "get",
            service["name"].as_str().expect("a name"),
            "--app",
            "app",
        ]);
        let channels = whole["channels"].as_array().expect("channels is a list");
        channels.iter().all(|channel| {
            channel["status"] == "CONVERGED" && channel["desiredVersion"] == whole["version"]
        })
    })
}
