//! A daemon with 10,000 instances and 1,000,000 past jobs: how long it takes to start, what it costs to be idle, how
//! fast lists are.
//!
//! `cargo bench -p tests --bench scale [-- IDLE_SECONDS]`

#![expect(clippy::print_stdout, reason = "a benchmark prints its table")]

use std::process::Command;
use std::time::{Duration, Instant};

use tests::scheduler::{Scheduler, Start};
use tests::{cpu, wait};

const SERVICES: usize = 100;
const CHANNELS: usize = 100;
const PAST_JOBS: u64 = 1_000_000;

/// Copies of one finished job, inserted as the daemon would have: the newest keep their places.
const HISTORY: &str = r#"
import sqlite3, sys
database = sqlite3.connect(sys.argv[1])
columns = [row[1] for row in database.execute("PRAGMA table_info(jobs)")]
copied = [column for column in columns if column not in ("id", "seq")]
total = int(sys.argv[2])
rows = database.execute(f"SELECT {','.join(copied)} FROM jobs WHERE ended_at IS NOT NULL").fetchall()
def past():
    for number in range(total):
        yield (f"job-{number:032x}", -number - 1, *rows[number % len(rows)])
marks = ",".join("?" * (len(copied) + 2))
database.executemany(f"INSERT INTO jobs (id, seq, {','.join(copied)}) VALUES ({marks})", past())
database.commit()
"#;

fn main() {
    let idle = std::env::args().skip(1).find_map(|argument| argument.parse().ok()).unwrap_or(30);
    let mut scheduler = Scheduler::stopped();
    scheduler.run(&Start::default());
    scheduler.apply(&configs());
    let start = Instant::now();
    for service in 0..SERVICES {
        scheduler.ok(&["services", "push", &format!("s{service}"), "--app", "app"]);
    }
    wait::until_within(Duration::from_secs(600), "every instance to converge", || {
        (count(&scheduler, "CONVERGED") == CHANNELS * SERVICES).then_some(())
    });
    row("10,000 pushed to all CONVERGED", start.elapsed().as_secs_f64(), "s", "");
    scheduler.stop();

    let database = scheduler.data().join("pvn.db");
    let status =
        Command::new("python3").args(["-c", HISTORY]).arg(&database).arg(PAST_JOBS.to_string()).status().expect("python3 can be started");
    assert!(status.success(), "the past could not be made up");

    let start = Instant::now();
    scheduler.spawn(&Start::default());
    wait::until("the daemon to be ready", || answer(&scheduler, "/readyz"));
    row("start to ready, with 1,000,000 past jobs", start.elapsed().as_secs_f64(), "s", "under 2");

    for (what, path) in [
        ("services page", "/v1/services?limit=100"),
        ("jobs page", "/v1/jobs?limit=100"),
        ("jobs of one service", "/v1/jobs?application=app&service=s7&limit=100"),
    ] {
        let fastest = (0..5).filter_map(|_| answer(&scheduler, path)).fold(f64::INFINITY, f64::min);
        row(what, fastest * 1_000.0, "ms", "under 200");
    }

    let [before, _] = cpu::seconds(scheduler.pid());
    std::thread::park_timeout(Duration::from_secs(idle));
    let spent = cpu::seconds(scheduler.pid())[0] - before;
    row("idle: share of a core", 100.0 * spent / idle as f64, "%", "under 2");
    row("idle: memory", memory_mib(scheduler.pid()), "MiB", "under 95 (100 MB)");
}

fn row(what: &str, value: f64, unit: &str, target: &str) {
    println!("{what:<44}{value:>10.2} {unit:<4} {target}");
}

/// 100 services in 100 channels on a runtime that answers at once and then has nothing to do for an hour.
fn configs() -> String {
    let task = "taskConfig: {program: {name: nothing, cmd: ['true']}}";
    let mut yaml = format!(
        "runtime: {{name: nowhere, fake: {{}}}}\n---\nruntime:\n  name: world\n  custom:\n    proxyRuntime: {{runtime: nowhere}}\n    \
         fetch: {{{task}, steadyStatePollInterval: 3600s}}\n    apply: {{{task}}}\n---\napplication:\n  name: app\n  releaseChannels:\n"
    );
    for channel in 0..CHANNELS {
        yaml += &format!("  - {{name: c{channel}, runtimes: [{{runtime: world}}]}}\n");
    }
    for service in 0..SERVICES {
        yaml += &format!("---\nservice: {{name: s{service}, application: app}}\n");
    }
    yaml
}

/// Instances with this status.
fn count(scheduler: &Scheduler, status: &str) -> usize {
    let services = scheduler.json(&["services", "list", "--app", "app"]);
    let channels = services.as_array().expect("a list").iter().filter_map(|service| service["channels"].as_array()).flatten();
    channels.filter(|channel| channel["status"] == status).count()
}

/// Seconds that a GET took, if it was answered with 200.
fn answer(scheduler: &Scheduler, path: &str) -> Option<f64> {
    let start = Instant::now();
    let (status, _) = scheduler.get(path)?;
    (status == 200).then(|| start.elapsed().as_secs_f64())
}

/// Resident memory. Source: proc(5), `VmRSS` of `status`.
fn memory_mib(pid: u32) -> f64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("the process runs");
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).expect("status has VmRSS");
    let kib: f64 = line.split_whitespace().nth(1).and_then(|field| field.parse().ok()).expect("VmRSS is a number");
    kib / 1024.0
}
