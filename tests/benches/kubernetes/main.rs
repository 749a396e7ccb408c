//! From a job that is submitted to its result that is recorded, on a real cluster, beside a plain
//! Job that is created and awaited by API: single, and many at once; what pvn asks of the API
//! server for each; and where the time of one goes. All in one run, so that the ratios mean
//! something on a shared machine. `docs/kubernetes-benchmark.md` has the method.
//!
//! `cargo bench -p tests --bench kubernetes [-- ROUNDS]`; `PVN_WRAPPER=FILE` measures with another
//! static wrapper.

#![expect(clippy::print_stdout, reason = "a benchmark prints its table")]

mod milestones;
mod plain;
mod pvn;

use std::time::Duration;

use serde_json::json;
use tests::cluster::{Cluster, Image};
use tests::programs;

use plain::Plain;
use pvn::Pvn;

/// Jobs at once.
const MANY: usize = 50;
/// Single jobs of each kind, one after the other, when nothing else is said.
const ROUNDS: usize = 7;
/// Longest wait for all jobs of one round.
const ROUND_WITHIN: Duration = Duration::from_secs(300);
/// Image with the wrapper, where it is put before the command.
const WRAPPER: &str = "pvn.test/wrapper:bench";

fn main() {
    let rounds =
        std::env::args().skip(1).find_map(|argument| argument.parse().ok()).unwrap_or(ROUNDS);
    let wrapper = programs::shipped_wrapper();
    let Some(cluster) = Cluster::alone("benchmark of jobs on Kubernetes") else { return };
    cluster.import(&Image::empty(WRAPPER).program("pvn-wrapper", &wrapper));
    let plain = Plain::new(&cluster);
    let pvn = Pvn::new(&cluster, "plain", &json!({}));
    let wrapped =
        Pvn::new(&cluster, "wrapped", &json!({"wrapper": {"inject": true, "image": WRAPPER}}));

    for (name, count, rounds) in
        [("one job", 1, rounds), ("50 jobs at once", MANY, rounds.div_ceil(3))]
    {
        println!("{name}, median of {rounds} (fastest, slowest)");
        // In turns, so that what the machine does meanwhile hits all alike; the first round warms
        // up.
        let mut times = [Vec::new(), Vec::new(), Vec::new()];
        for round in 0..=rounds {
            let taken = [plain.run(count), pvn.run(count), wrapped.run(count)];
            if round > 0 {
                times.iter_mut().zip(taken).for_each(|(times, taken)| times.push(taken));
            }
        }
        let [plain, pvn, wrapped] = times.map(Times::of);
        println!("  {:<44}{plain}", "a plain Job, created and awaited by API");
        println!(
            "  {:<44}{pvn}{:>8.2} times (to reach: 1.10)",
            "pvn, submitted to recorded",
            pvn.median / plain.median
        );
        println!(
            "  {:<44}{wrapped}{:>8.2} times",
            "the same with the wrapper put before it",
            wrapped.median / plain.median
        );
    }
    for pvn in [&pvn, &wrapped] {
        pvn.print_requests(&cluster);
    }
    milestones::print("a plain Job", &cluster, plain.namespace(), || plain.run(1));
    milestones::print("pvn", &cluster, &pvn.namespace(), || pvn.run(1));
    milestones::print("pvn with the wrapper put before it", &cluster, &wrapped.namespace(), || {
        wrapped.run(1)
    });
}

/// Seconds of several rounds.
struct Times {
    median: f64,
    fastest: f64,
    slowest: f64,
}

impl Times {
    fn of(mut times: Vec<f64>) -> Self {
        times.sort_unstable_by(f64::total_cmp);
        let [fastest, .., slowest] = times[..] else {
            return Self { median: times[0], fastest: times[0], slowest: times[0] };
        };
        Self { median: times[times.len() / 2], fastest, slowest }
    }
}

impl std::fmt::Display for Times {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{:>8.2} s  ({:.2}, {:.2})", self.median, self.fastest, self.slowest)
    }
}

fn run<T>(talk: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime can be made")
        .block_on(talk)
}
