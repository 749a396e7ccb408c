//! What a large installation looks like, for the benchmarks: thousands of converged instances, a
//! long past of jobs, and rows of a table of results.

#![expect(clippy::print_stdout, reason = "a benchmark prints its table")]

use std::process::Command;

use crate::scheduler::{Scheduler, Start};
use crate::wait;

/// Copies of one finished job, inserted as the daemon would have: the newest keep their places.
const HISTORY: &str = r#"
import sqlite3, sys
database = sqlite3.connect(sys.argv[1])
columns = [row[1] for row in database.execute("PRAGMA table_info(jobs)")]
copied = [column for column in columns if column not in ("id", "seq")]
total = int(sys.argv[2])
ended = f"SELECT {','.join(copied)} FROM jobs WHERE ended_at IS NOT NULL"
rows = database.execute(ended).fetchall()
def past():
    for number in range(total):
        yield (f"job-{number:032x}", -number - 1, *rows[number % len(rows)])
marks = ",".join("?" * (len(copied) + 2))
database.executemany(f"INSERT INTO jobs (id, seq, {','.join(copied)}) VALUES ({marks})", past())
database.commit()
"#;

/// A scheduler with an application `app` of so many services (`s0`, `s1`, …) in so many channels
/// (`c0`, `c1`, …), all of them converged.
///
/// # Panics
/// When they do not converge.
pub fn converged(services: usize, channels: usize) -> Scheduler {
    let mut scheduler = Scheduler::stopped();
    scheduler.run(&Start::default());
    scheduler.apply_and_push(&configs(services, channels));
    until_converged(&scheduler, services * channels);
    scheduler
}

/// Waits until so many instances are converged.
///
/// # Panics
/// When they do not come to it.
pub fn until_converged(scheduler: &Scheduler, instances: usize) {
    wait::measured("every instance to converge", || {
        let converged = metric(scheduler, "pvn_instances{status=\"CONVERGED\"}");
        (converged >= instances as f64).then_some(())
    });
}

/// Gives a scheduler that does not run so many jobs of the past.
///
/// # Panics
/// When it has no finished job to copy, or there is no `python3`.
pub fn make_up_past(scheduler: &Scheduler, jobs: u64) {
    let status = Command::new("python3")
        .args(["-c", HISTORY])
        .arg(scheduler.data().join("pvn.db"))
        .arg(jobs.to_string())
        .status()
        .expect("python3 can be started");
    assert!(status.success(), "the past could not be made up");
}

/// So many services in so many channels on a runtime that answers at once and then has nothing to
/// do for an hour.
pub fn configs(services: usize, channels: usize) -> String {
    let task = "taskConfig: {program: {name: nothing, cmd: ['true']}}";
    let mut yaml = format!(
        "runtime: {{name: nowhere, fake: {{}}}}\n---\nruntime:\n  name: world\n  custom:\n    \
         proxyRuntime: {{runtime: nowhere}}\n    fetch: {{{task}, steadyStatePollInterval: \
         3600s}}\n    apply: {{{task}}}\n---\napplication:\n  name: app\n  releaseChannels:\n"
    );
    for channel in 0..channels {
        yaml += &format!("  - {{name: c{channel}, runtimes: [{{runtime: world}}]}}\n");
    }
    for service in 0..services {
        yaml += &format!("---\nservice: {{name: s{service}, application: app}}\n");
    }
    yaml
}

/// A number of `/metrics`; none yet is 0.
///
/// # Panics
/// When the daemon does not answer, or with something else than a number.
pub fn metric(scheduler: &Scheduler, name: &str) -> f64 {
    let (_, text) = scheduler.get("/metrics").expect("the daemon answers");
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    line.map_or(0.0, |number| number.trim().parse().expect("metrics are numbers"))
}

/// The median and the 99th percentile.
///
/// # Panics
/// When there are no values.
pub fn percentiles(mut values: Vec<f64>) -> [f64; 2] {
    assert!(!values.is_empty(), "something was measured");
    values.sort_by(f64::total_cmp);
    [0.5, 0.99].map(|share| values[((values.len() as f64 * share) as usize).min(values.len() - 1)])
}

/// Prints one line of the table: what was measured, and what it should be.
pub fn row(what: &str, value: f64, unit: &str, target: &str) {
    println!("{what:<44}{value:>10.2} {unit:<4} {target}");
}
