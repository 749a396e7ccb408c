//! `kill -9` anywhere loses nothing and starts nothing twice (promises P1, P4, P5, P6).

use std::os::unix::process::ExitStatusExt;
use std::time::{Duration, Instant};

use serde_json::Value;
use tests::files::Files;
use tests::scheduler::{Scheduler, Start};
use tests::wait;

mod examples;

/// Every job of one kind, over all pages.
fn jobs(scheduler: &Scheduler, service: &str, kind: &str) -> Vec<Value> {
    let jobs =
        scheduler.json(&["jobs", "list", "--app", "app", "--service", service, "--kind", kind]);
    jobs.as_array().expect("a list of jobs").clone()
}

fn all_converged(scheduler: &Scheduler, services: usize) -> Option<()> {
    for service in 0..services {
        let service = scheduler.json(&["services", "get", &format!("s{service}"), "--app", "app"]);
        let channels = service["channels"].as_array()?;
        let done = |channel: &Value| {
            channel["status"] == "CONVERGED" && channel["desiredVersion"] == service["version"]
        };
        if channels.is_empty() || !channels.iter().all(done) {
            return None;
        }
    }
    Some(())
}

/// P1: no two applies of an instance overlapped. P4 and P5: each job ran at most once, and each one
/// that ran is on record, with the end that it had.
fn nothing_lost_and_nothing_twice(scheduler: &Scheduler, files: &Files, services: usize) {
    assert_eq!(files.overlaps(), "", "two applies of one instance at the same moment");
    let runs = files.runs();
    for (job, times) in &runs {
        assert_eq!(*times, 1, "{job} ran {times} times");
    }
    let mut recorded = 0;
    for service in 0..services {
        for job in jobs(scheduler, &format!("s{service}"), "apply") {
            let id = job["id"].as_str().expect("a job has an id");
            if runs.contains_key(id) {
                recorded += 1;
                assert_eq!(
                    job["status"], "SUCCEEDED",
                    "it ran to its end, and the record says {job:#}"
                );
                assert_eq!(job["exitCode"], 0);
            } else {
                assert_ne!(job["status"], "SUCCEEDED", "it never ran: {job:#}");
            }
        }
    }
    assert_eq!(recorded, runs.len(), "each apply that ran is on record");
}

/// Points at which the daemon kills itself: see `pvn_scheduler::crash`, which documents each.
const POINTS: &[&str] = &[
    "before-commit",
    "after-commit",
    "before-start",
    "after-start",
    "after-started",
    "after-report",
    "before-ack",
    "after-ack",
    "after-answer",
];

#[test]
fn p5_killed_at_every_named_point_it_ends_in_the_same_state() {
    for point in POINTS {
        for count in [1, 2] {
            let mut scheduler = Scheduler::stopped();
            let files = Files::new(scheduler.home());
            // Long enough that the runner tells of the start before it tells of the end.
            files.slow("0.3");
            scheduler.run(&Start::default());
            scheduler.apply(&Files::configs(2, 2));
            scheduler.stop();
            let crash_at = format!("{point}:{count}");
            scheduler.spawn(&Start { crash_at: Some(&crash_at), ..Start::default() });
            // The push may or may not get through: that is the point.
            let mut pushed = false;
            wait::until(&format!("the daemon to die at {crash_at}"), || {
                if !pushed {
                    pushed = ["s0", "s1"].iter().all(|service| {
                        scheduler
                            .pvnctl(["services", "push", service, "--app", "app"])
                            .status
                            .success()
                    });
                }
                scheduler.exited()
            });
            scheduler.run(&Start::default());
            for service in ["s0", "s1"] {
                if scheduler
                    .json(&["releases", "list", "--app", "app", "--service", service])
                    .as_array()
                    .is_none_or(Vec::is_empty)
                {
                    scheduler.ok(&["services", "push", service, "--app", "app"]);
                }
            }
            wait::until(&format!("everything to converge after a death at {crash_at}"), || {
                all_converged(&scheduler, 2)
            });
            nothing_lost_and_nothing_twice(&scheduler, &files, 2);
        }
    }
}

#[test]
fn p6_a_running_apply_outlives_the_daemon_and_is_found_again() {
    let mut scheduler = Scheduler::stopped();
    let files = Files::new(scheduler.home());
    files.hold();
    scheduler.run(&Start::default());
    scheduler.apply(&Files::configs(1, 1));
    scheduler.ok(&["services", "push", "s0", "--app", "app"]);
    wait::until("the apply to run", || (!files.ledger().is_empty()).then_some(()));
    scheduler.kill();
    scheduler.run(&Start::default());
    wait::until("the apply to be adopted", || {
        (jobs(&scheduler, "s0", "apply")[0]["status"] == "RUNNING").then_some(())
    });
    files.let_go();
    wait::until("the adopted apply to be recorded", || all_converged(&scheduler, 1));
    nothing_lost_and_nothing_twice(&scheduler, &files, 1);
    assert_eq!(files.ledger().len(), 1, "and not started again");
}

#[test]
fn p5_a_report_left_while_the_daemon_was_away_counts_once() {
    let mut scheduler = Scheduler::stopped();
    let files = Files::new(scheduler.home());
    files.hold();
    scheduler.run(&Start::default());
    scheduler.apply(&Files::configs(1, 1));
    scheduler.ok(&["services", "push", "s0", "--app", "app"]);
    wait::until("the apply to run", || (!files.ledger().is_empty()).then_some(()));
    scheduler.kill();
    files.let_go();
    wait::until("the apply to end without a daemon", || files.state("s0", "c0"));
    scheduler.run(&Start::default());
    wait::until("the report to be found", || all_converged(&scheduler, 1));
    nothing_lost_and_nothing_twice(&scheduler, &files, 1);
    assert_eq!(files.ledger().len(), 1);
}

/// Instances in the storm: services times channels.
const STORM: (usize, usize) = (10, 20);

/// How long the storm lasts, unless `PVN_STORM_SECONDS` says otherwise.
const STORM_SECONDS: u64 = 60;

#[test]
fn p1_p4_p5_a_storm_of_kills_under_200_instances_loses_nothing_and_doubles_nothing() {
    let seconds = std::env::var("PVN_STORM_SECONDS")
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(STORM_SECONDS);
    let seed = std::env::var("PVN_STORM_SEED")
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(u64::from(std::process::id()));
    eprintln!("PVN_STORM_SEED={seed}");
    let mut random = Random(seed);
    let (services, channels) = STORM;

    let mut scheduler = Scheduler::stopped();
    let files = Files::new(scheduler.home());
    files.slow("0.05");
    scheduler.run(&Start::default());
    scheduler.apply(&Files::configs(services, channels));
    for service in 0..services {
        scheduler.ok(&["services", "push", &format!("s{service}"), "--app", "app"]);
    }

    let end = Instant::now() + Duration::from_secs(seconds);
    let mut kills = 0;
    while Instant::now() < end {
        for _ in 0..random.below(6) {
            files.drift(
                &format!("s{}", random.below(services)),
                &format!("c{}", random.below(channels)),
            );
        }
        if random.below(4) == 0 {
            // Killed or not in the middle of it: a push is made whole or not at all.
            scheduler.pvnctl([
                "services",
                "push",
                &format!("s{}", random.below(services)),
                "--app",
                "app",
            ]);
        }
        std::thread::park_timeout(Duration::from_millis(30 + random.below(1_500) as u64));
        scheduler.kill();
        kills += 1;
        scheduler.spawn(&Start::default());
    }
    eprintln!("{kills} kills, {} applies", files.ledger().len());
    assert!(kills > seconds / 3, "a storm of {kills} kills is none");

    scheduler.kill();
    scheduler.run(&Start::default());
    // The files first: of one that was broken last the record may not know yet.
    let in_shape = || {
        (0..services).all(|service| {
            (0..channels).all(|channel| {
                files.state(&format!("s{service}"), &format!("c{channel}")).is_some()
            })
        })
    };
    wait::until_within(Duration::from_secs(180), "everything to converge after the storm", || {
        in_shape().then(|| all_converged(&scheduler, services)).flatten()
    });
    scheduler.stop();
    scheduler.run(&Start::default());
    nothing_lost_and_nothing_twice(&scheduler, &files, services);
}

/// SplitMix64: small, seeded, the same everywhere.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        usize::try_from((bits ^ (bits >> 31)) % limit as u64).expect("a remainder fits")
    }
}
