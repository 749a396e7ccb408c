//! A daemon with 10,000 instances and 1,000,000 past jobs: how long it takes to start, what it
//! costs to be idle, how fast lists are, how late a due fetch starts, how soon the end of a job is
//! seen.
//!
//! `cargo bench -p tests --bench scale [-- IDLE_SECONDS]`

use std::process::Command;
use std::time::{Duration, Instant};

use schema::time::Timestamp;
use tests::scale::{self, percentiles, row};
use tests::scheduler::{Scheduler, Start};
use tests::{cpu, wait};

const SERVICES: usize = 100;
const CHANNELS: usize = 100;
const PAST_JOBS: u64 = 1_000_000;

/// When each instance is due now, and how many milliseconds later its next fetch began.
const LATE: &str = r#"
import sqlite3, sys, time
database = sqlite3.connect(f"file:{sys.argv[1]}?mode=ro", uri=True)
due = dict(database.execute("SELECT id, next_wake FROM instances WHERE next_wake IS NOT NULL"))
newest = database.execute("SELECT MAX(seq) FROM jobs").fetchone()[0]
time.sleep(float(sys.argv[2]))
began = {}
for instance, at in database.execute("SELECT instance_id, started_at FROM jobs WHERE seq > ? AND started_at IS NOT NULL ORDER BY seq", (newest,)):
    began.setdefault(instance, at)
for instance, at in began.items():
    if instance in due:
        print(at - due[instance])
"#;

/// How often each instance is fetched while lateness is measured: 10,000 of them are 167 fetches a
/// second.
const STEADY: Duration = Duration::from_secs(60);

/// Ends of jobs that are looked for.
const SEEN: usize = 200;

fn main() {
    let idle = std::env::args().skip(1).find_map(|argument| argument.parse().ok()).unwrap_or(30);
    let mut scheduler = Scheduler::stopped();
    scheduler.run(&Start::default());
    scheduler.apply(&scale::configs(SERVICES, CHANNELS));
    let start = Instant::now();
    for service in 0..SERVICES {
        scheduler.ok(&["services", "push", &format!("s{service}"), "--app", "app"]);
    }
    scale::until_converged(&scheduler, SERVICES * CHANNELS);
    row("10,000 pushed to all CONVERGED", start.elapsed().as_secs_f64(), "s", "");
    scheduler.stop();
    scale::make_up_past(&scheduler, PAST_JOBS);

    let start = Instant::now();
    scheduler.spawn(&Start::default());
    wait::until("the daemon to be ready", || answer(&scheduler, "/readyz"));
    row("start to ready, with 1,000,000 past jobs", start.elapsed().as_secs_f64(), "s", "under 2");

    for (what, path) in [
        ("services page", "/v1/services?limit=100"),
        ("jobs page", "/v1/jobs?limit=100"),
        ("failed jobs page", "/v1/jobs?status=FAILED&limit=100"),
        ("applies page", "/v1/jobs?kind=apply&limit=100"),
        ("jobs of one service", "/v1/jobs?application=app&service=s7&limit=100"),
    ] {
        let fastest = (0..5).filter_map(|_| answer(&scheduler, path)).fold(f64::INFINITY, f64::min);
        row(what, fastest * 1_000.0, "ms", "under 200");
    }

    let [before, _] = cpu::seconds(scheduler.pid());
    std::thread::park_timeout(Duration::from_secs(idle));
    let spent = cpu::seconds(scheduler.pid())[0] - before;
    row("idle: share of a core", 100.0 * spent / idle as f64, "%", "under 2");
    row("idle: memory", cpu::resident_mib(scheduler.pid()), "MiB", "under 95 (100 MB)");

    let [median, p99] = late(&scheduler);
    row("due to started, median", median, "ms", "");
    row("due to started, p99", p99, "ms", "under 1000");
    let [median, p99] = seen(&scheduler);
    row("exit of a job to the API that shows it, median", median, "ms", "");
    row("exit of a job to the API that shows it, p99", p99, "ms", "under 300");
}

/// Has every instance fetched once a minute, and reads from the database when each was due and when
/// its next fetch began. Milliseconds: median and 99th percentile.
fn late(scheduler: &Scheduler) -> [f64; 2] {
    let yaml = scale::configs(SERVICES, CHANNELS).replace(
        "steadyStatePollInterval: 3600s",
        &format!("steadyStatePollInterval: {}s", STEADY.as_secs()),
    );
    scheduler.apply(&yaml);
    // What was recompiled is fetched at once; then come rounds over which the jitter spreads all of
    // them.
    std::thread::park_timeout(2 * STEADY);
    let output = Command::new("python3")
        .args(["-c", LATE])
        .arg(scheduler.data().join("pvn.db"))
        .arg(STEADY.as_secs().to_string())
        .output()
        .expect("python3 can be started");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).expect("numbers are UTF-8");
    percentiles(text.split_whitespace().map(|number| number.parse().expect("a number")).collect())
}

/// Looks at the newest job of one service on this machine every 20 ms: from its end by the
/// wrapper's clock to the first answer that shows it. Milliseconds: median and 99th percentile.
fn seen(scheduler: &Scheduler) -> [f64; 2] {
    scheduler.apply(
        "runtime:\n  name: here\n  custom:\n    proxyRuntime: {runtime: local}\n    fetch:\n      \
         taskConfig: {program: {name: fetch, entrypoint: ['true']}}\n      pollInterval: 0.1s\n      steadyStatePollInterval: 0.1s\n    \
         apply:\n      taskConfig: {program: {name: apply, entrypoint: ['true']}}\n---\n\
         application: {name: small, releaseChannels: [{name: only, runtimes: [{runtime: here}]}]}\n---\n\
         service: {name: web, application: small}\n",
    );
    scheduler.ok(&["services", "push", "web", "--app", "small"]);
    let mut last = serde_json::Value::Null;
    let mut seen = Vec::new();
    wait::measured("enough jobs to end", || {
        let (_, body) =
            scheduler.get("/v1/jobs?application=small&service=web&status=SUCCEEDED&limit=1")?;
        let now = now();
        let page: serde_json::Value = serde_json::from_str(&body).expect("a page of jobs");
        let job = &page["items"][0];
        if let Some(ended) = job["endedAt"].as_str()
            && job["id"] != last
        {
            let ended: Timestamp = ended.parse().expect("times are RFC 3339");
            seen.push(now.since_ms(ended) as f64);
            last = job["id"].clone();
        }
        (seen.len() >= SEEN).then_some(())
    });
    percentiles(seen)
}

#[expect(
    clippy::disallowed_methods,
    reason = "compared with what the wrapper read from the same clock"
)]
fn now() -> Timestamp {
    let since = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .expect("it is after 1970");
    Timestamp::from_millis(
        i64::try_from(since.as_millis()).expect("it is before the year 292,000,000"),
    )
}

/// Seconds that a GET took, if it was answered with 200.
fn answer(scheduler: &Scheduler, path: &str) -> Option<f64> {
    let start = Instant::now();
    let (status, _) = scheduler.get(path)?;
    (status == 200).then(|| start.elapsed().as_secs_f64())
}
