//! Trivial local jobs a second through the whole path (decide, start under the wrapper, report,
//! commit durably, history kept), beside bare spawning of the same command on two threads and,
//! where it is installed, HyperQueue's LocalCluster. All in one run, so that the ratios mean
//! something on a shared machine. Beside the rate stands what a job costs in time of the processor,
//! which other people's load changes less. The wrapper is the one that is shipped.
//!
//! `cargo bench -p tests --bench throughput [-- SECONDS]`; `PVN_WRAPPER=FILE` measures with another
//! wrapper.

#![expect(clippy::print_stdout, reason = "a benchmark prints its table")]

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use tests::scheduler::{Scheduler, Start};
use tests::{cpu, programs};

/// Slots tried: one per core starves on waiting, many fight for the cores; the best counts.
const SLOTS: &[&str] = &["2", "4", "8", "16"];

/// Instances that always have a fetch due: enough to keep the most slots busy.
const INSTANCES: usize = 64;

fn main() {
    let seconds = std::env::args().skip(1).find_map(|argument| argument.parse().ok()).unwrap_or(10);
    let span = Duration::from_secs(seconds);
    let wrapper = programs::shipped_wrapper();
    let bare = bare(span);
    println!("{:<44}{bare:>10.0} jobs/s", "bare spawning of `true`, two threads");
    let mut best = 0.0_f64;
    for slots in SLOTS {
        let (rate, own_ms, children_ms) = whole_path(slots, &wrapper, span);
        let cost = format!(
            "{own_ms:.2} ms of CPU a job in the daemon, {children_ms:.2} in wrapper and command"
        );
        println!("{:<44}{rate:>10.0} jobs/s   {cost}", format!("pvn, {slots} slots"));
        best = best.max(rate);
    }
    println!("{:<44}{:>10.2} (to reach: 0.33)", "pvn, best, over bare spawning", best / bare);
    match hyperqueue(seconds) {
        Ok(rate) => {
            println!("{:<44}{rate:>10.0} jobs/s", "HyperQueue, LocalCluster, two cores");
            println!("{:<44}{:>10.2} (to reach: 1.00)", "pvn, best, over HyperQueue", best / rate);
        }
        Err(why) => println!("HyperQueue: skipped: {why}"),
    }
}

fn bare(span: Duration) -> f64 {
    let start = Instant::now();
    let spawn = move || {
        let mut count = 0_u32;
        while start.elapsed() < span {
            let status = Command::new("true")
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .status()
                .expect("`true` can be started");
            assert!(status.success());
            count += 1;
        }
        count
    };
    let threads: Vec<_> = (0..2).map(|_| std::thread::spawn(spawn)).collect();
    let count: u32 =
        threads.into_iter().map(|thread| thread.join().expect("the thread ends well")).sum();
    f64::from(count) / start.elapsed().as_secs_f64()
}

/// Jobs a second, and the milliseconds of CPU that each took of the daemon and of its children.
fn whole_path(slots: &str, wrapper: &Path, span: Duration) -> (f64, f64, f64) {
    let mut scheduler = Scheduler::stopped();
    let wrapper = wrapper.to_str().expect("the path is UTF-8");
    scheduler.run(&Start {
        arguments: &[
            "--max-fetches",
            slots,
            "--max-fetches-per-runtime",
            slots,
            "--wrapper",
            wrapper,
        ],
        ..Start::default()
    });
    let mut yaml = String::from(
        "runtime:\n  name: trivial\n  custom:\n    proxyRuntime: {runtime: local}\n    \
             fetch:\n      taskConfig: {program: {name: fetch, entrypoint: ['true']}}\n      \
             pollInterval: 0.001s\n      steadyStatePollInterval: 0.001s\n    apply:\n      \
             taskConfig: {program: {name: apply, entrypoint: ['true']}}\n---\napplication:\n  \
             name: app\n  releaseChannels:\n",
    );
    for channel in 0..INSTANCES {
        yaml += &format!("  - {{name: c{channel}, runtimes: [{{runtime: trivial}}]}}\n");
    }
    yaml += "---\nservice: {name: s0, application: app}\n";
    scheduler.apply(&yaml);
    scheduler.ok(&["services", "push", "s0", "--app", "app"]);
    let (before, cpu_before) = (jobs(&scheduler), cpu::seconds(scheduler.pid()));
    let start = Instant::now();
    std::thread::park_timeout(span);
    let (ended, cpu) = (jobs(&scheduler) - before, cpu::seconds(scheduler.pid()));
    let rate = ended / start.elapsed().as_secs_f64();
    scheduler.stop();
    let of_a_job = |part: usize| 1_000.0 * (cpu[part] - cpu_before[part]) / ended.max(1.0);
    (rate, of_a_job(0), of_a_job(1))
}

/// Jobs that ended so far, from the daemon's own count of its table.
fn jobs(scheduler: &Scheduler) -> f64 {
    let (_, body) = scheduler.get("/v1/jobs?limit=1&status=SUCCEEDED").expect("the daemon answers");
    let page: serde_json::Value = serde_json::from_str(&body).expect("a page of jobs");
    page["total"].as_f64().expect("a total")
}

/// The same command through HyperQueue's own client on this machine.
fn hyperqueue(seconds: u64) -> Result<f64, String> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/peer_hyperqueue.py");
    let output = Command::new("python3")
        .arg(script)
        .arg(seconds.to_string())
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
