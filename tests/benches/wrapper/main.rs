//! What the wrapper costs, beside other inits and beside no wrapper at all, in one run:
//! `docs/wrapper-benchmark.md` has the method. It measures the program that is shipped: the static
//! one that `images/build-wrapper.sh` builds.
//!
//! `cargo bench -p tests --bench wrapper [-- PART...]`, a part being `start`, `memory`,
//! `throughput`, `slowdown`, `delivery`, `orphans` or `size`; without any, all. `PVN_WRAPPER=FILE`
//! measures another build, `PVN_BENCH_DIR=DIR` spools there.

#![expect(clippy::print_stdout, reason = "a benchmark prints its table")]

mod child;
mod delivery;
mod memory;
mod orphans;
mod start;
mod streams;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use tests::programs::shipped_wrapper;

fn main() {
    let arguments: Vec<String> =
        std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
    if let [first, rest @ ..] = arguments.as_slice()
        && first == child::FLAG
    {
        child::run(rest);
        return;
    }
    let bench = Bench {
        wrapper: shipped_wrapper(),
        directory: tempfile::tempdir_in(directory()).expect("a directory for spools"),
    };
    let wanted =
        |part: &str| arguments.is_empty() || arguments.iter().any(|argument| argument == part);
    let parts: [(&str, Table); 7] = [
        ("start", start::table),
        ("memory", memory::table),
        ("throughput", streams::throughput),
        ("slowdown", streams::slowdown),
        ("delivery", delivery::table),
        ("orphans", orphans::table),
        ("size", size),
    ];
    for (part, table) in parts {
        if wanted(part) {
            table(&bench);
        }
    }
}

/// Measures and prints one part.
type Table = fn(&Bench);

/// What every part needs.
struct Bench {
    wrapper: PathBuf,
    /// For spools and results; goes away in the end.
    directory: tempfile::TempDir,
}

impl Bench {
    /// `pvn-wrapper exec`.
    fn exec(&self) -> Command {
        let mut command = Command::new(&self.wrapper);
        command.arg("exec").env("TMPDIR", self.directory.path());
        command
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }
}

/// Where spools go: memory where there is some, so that the wrapper is measured and not a disk.
fn directory() -> PathBuf {
    let memory = Path::new("/dev/shm");
    std::env::var_os("PVN_BENCH_DIR").map_or_else(
        || if memory.is_dir() { memory.to_owned() } else { std::env::temp_dir() },
        PathBuf::from,
    )
}

fn size(bench: &Bench) {
    let bytes = std::fs::metadata(&bench.wrapper).expect("the wrapper is there").len();
    row("size of the static program", bytes as f64 / f64::from(1 << 20), "MiB", "under 6");
}

fn row(what: &str, value: f64, unit: &str, goal: &str) {
    println!("{what:<58}{value:>10.2} {unit:<6}{goal}");
}

/// The value below which this share of `values` is; `values` need not be sorted.
fn percentile(values: &mut [Duration], share: f64) -> Duration {
    values.sort();
    let at = (values.len() as f64 * share) as usize;
    values[at.min(values.len() - 1)]
}

fn ms(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e3
}
