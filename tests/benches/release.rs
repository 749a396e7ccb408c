//! The black box in a burst: thousands of services released with one `configs apply --push`. How
//! long the command takes, what it writes, what the daemon keeps of it afterwards; and how soon
//! services that each run `true` once are all CONVERGED, beside HyperQueue with as many tasks in
//! the same run.
//!
//! `cargo bench -p tests --bench release`; `PVN_WRAPPER=FILE` measures with another wrapper.

#![expect(clippy::print_stdout, reason = "a benchmark prints its table")]

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use tests::scale::{metric, until_converged};
use tests::scheduler::{Scheduler, Start};
use tests::{cpu, programs};

/// Services of the large release.
const MANY: usize = 10_000;

/// Services that run a job each.
const RUNNING: usize = 3_000;

/// How long the daemon is left alone before what it costs to be idle counts: it prunes a minute
/// after its start, and what that costs once an hour is a row of its own.
const PRUNED: Duration = Duration::from_secs(75);

/// How long it is watched then, and after a restart.
const IDLE: Duration = Duration::from_secs(30);

/// Channels of the service of which one is approved.
const CHANNELS: usize = 50;

fn main() {
    large();
    approval();
    let ours = running(&programs::shipped_wrapper());
    match hyperqueue() {
        Ok(rate) => {
            row("HyperQueue, as many tasks of `true`", rate, "a second", "");
            row("pvn over HyperQueue", ours / rate, "", "over 1");
        }
        Err(why) => println!("HyperQueue: skipped: {why}"),
    }
}

/// 10,000 services at once on a runtime where nothing runs, then again unchanged.
fn large() {
    let mut scheduler = Scheduler::stopped();
    scheduler.run(&Start::default());
    let path = scheduler.home().join("many.pvn.yaml");
    std::fs::write(&path, configs(MANY, "nowhere", "---\nruntime: {name: nowhere, fake: {}}\n"))
        .expect("a file can be written");
    for (what, target) in
        [("10,000 new services, apply --push", "under 3"), ("the same again, unchanged", "under 3")]
    {
        let (rows, cpu_before) =
            (metric(&scheduler, "pvn_rows_written_total"), cpu::seconds(scheduler.pid())[0]);
        let start = Instant::now();
        push(&scheduler, &path);
        row(what, start.elapsed().as_secs_f64(), "s", target);
        until_converged(&scheduler, MANY);
        row("  until all were CONVERGED", start.elapsed().as_secs_f64(), "s", "");
        row(
            "  rows written, a service",
            (metric(&scheduler, "pvn_rows_written_total") - rows) / MANY as f64,
            "",
            "",
        );
        row("  CPU of the daemon", cpu::seconds(scheduler.pid())[0] - cpu_before, "s", "");
    }
    row("most resident memory", cpu::most_resident_mib(scheduler.pid()), "MiB", "");
    let before = cpu::seconds(scheduler.pid())[0];
    std::thread::park_timeout(PRUNED);
    let pruned = cpu::seconds(scheduler.pid())[0];
    row("pass of retention: CPU of the daemon", pruned - before, "s", "");
    std::thread::park_timeout(IDLE);
    row(
        "idle after it: share of a core",
        100.0 * (cpu::seconds(scheduler.pid())[0] - pruned) / IDLE.as_secs_f64(),
        "%",
        "under 2",
    );
    row(
        "idle after it: resident memory",
        cpu::resident_mib(scheduler.pid()),
        "MiB",
        "under 95 (100 MB)",
    );
    scheduler.stop();
    scheduler.run(&Start::default());
    std::thread::park_timeout(IDLE / 3);
    row("after a restart: resident memory", cpu::resident_mib(scheduler.pid()), "MiB", "");
}

/// One channel of many is approved: its row is written, and no other.
fn approval() {
    let scheduler = Scheduler::start();
    let mut yaml = "runtime: {name: nowhere, fake: {}}\n---\nservice: {name: web, application: \
                    app}\n---\napplication:\n  name: app\n  releaseChannels:\n"
        .to_owned();
    for channel in 0..CHANNELS {
        yaml += &format!(
            "  - {{name: c{channel}, runtimes: [{{runtime: nowhere}}], preconditions: \
             [{{manualApproval: {{name: a{channel}}}}}]}}\n"
        );
    }
    let path = scheduler.home().join("gates.pvn.yaml");
    std::fs::write(&path, yaml).expect("a file can be written");
    push(&scheduler, &path);
    let before = metric(&scheduler, "pvn_rows_written_total");
    scheduler.ok(&["services", "approve", "web", "--app", "app", "--channel", "c7", "--yes"]);
    until_converged(&scheduler, 1);
    row(
        "approve in one channel of 50: rows until CONVERGED",
        metric(&scheduler, "pvn_rows_written_total") - before,
        "",
        "",
    );
}

/// Services of which each runs `true` once: how many a second, from the command to the last
/// CONVERGED.
fn running(wrapper: &Path) -> f64 {
    let mut scheduler = Scheduler::stopped();
    let wrapper = wrapper.to_str().expect("the path is UTF-8");
    scheduler.run(&Start { arguments: &["--wrapper", wrapper], ..Start::default() });
    let path = scheduler.home().join("running.pvn.yaml");
    let task = "taskConfig: {program: {name: apply, entrypoint: ['true']}}";
    let runtime = format!(
        "---\nruntime:\n  name: trivial\n  custom:\n    proxyRuntime: {{runtime: local}}\n    \
         apply: {{{task}}}\n"
    );
    std::fs::write(&path, configs(RUNNING, "trivial", &runtime)).expect("a file can be written");
    let before = cpu::seconds(scheduler.pid());
    let start = Instant::now();
    push(&scheduler, &path);
    row("3,000 services that run `true`, apply --push", start.elapsed().as_secs_f64(), "s", "");
    until_converged(&scheduler, RUNNING);
    let rate = RUNNING as f64 / start.elapsed().as_secs_f64();
    row("  to all CONVERGED", rate, "a second", "800");
    let after = cpu::seconds(scheduler.pid());
    for (part, what) in
        [(0, "  CPU a service, daemon"), (1, "  CPU a service, wrapper and command")]
    {
        row(what, 1_000.0 * (after[part] - before[part]) / RUNNING as f64, "ms", "");
    }
    rate
}

fn push(scheduler: &Scheduler, path: &Path) {
    scheduler.ok(&[
        "configs",
        "apply",
        "--no-prompt",
        "--push",
        path.to_str().expect("the path is UTF-8"),
    ]);
}

/// The rate of as many tasks through HyperQueue's own client on this machine.
fn hyperqueue() -> Result<f64, String> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/peer_hyperqueue.py");
    let tasks = RUNNING.to_string();
    let output = Command::new("python3")
        .arg(script)
        .args(["0.001", &tasks])
        .output()
        .map_err(|error| error.to_string())?;
    if !output.status.success() {
        let stderr = String::from_utf8_lossy(&output.stderr);
        return Err(stderr.lines().last().unwrap_or("it failed").to_owned());
    }
    String::from_utf8_lossy(&output.stdout)
        .lines()
        .last()
        .unwrap_or_default()
        .trim()
        .parse()
        .map_err(|_| "it printed no number".to_owned())
}

fn row(what: &str, value: f64, unit: &str, target: &str) {
    println!("{what:<52}{value:>10.2} {unit:<9} {target}");
}

/// One application with one channel on a runtime, and services in it.
fn configs(services: usize, runtime: &str, runtimes: &str) -> String {
    let mut yaml = format!(
        "{runtimes}---\napplication: {{name: app, releaseChannels: [{{name: only, runtimes: \
         [{{runtime: {runtime}}}]}}]}}\n"
    );
    for service in 0..services {
        yaml += &format!("---\nservice:\n  name: s{service}\n  application: app\n");
    }
    yaml
}
