//! The wrapper's own peak of memory, as `/proc` tells it while it runs: what `wait4` tells is the
//! starter's, too, after a start like `vfork`.

use std::io::Write;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use crate::{Bench, child, row};

/// Time between two looks.
const LOOK: Duration = Duration::from_millis(5);

/// What goes through a cap.
const FLOOD_BYTES: u64 = 10_000_000_000;

pub(crate) fn table(bench: &Bench) {
    let mut idle = bench
        .exec()
        .args(["--", "cat"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("it can be started");
    let mut stdin = idle.stdin.take().expect("its standard input is a pipe");
    stdin.write_all(b"x\n").expect("it reads");
    let mut echo = [0; 2];
    let mut stdout = idle.stdout.take().expect("its standard output is a pipe");
    std::io::Read::read_exact(&mut stdout, &mut echo).expect("it answers");
    let peak = peak_kib(&idle);
    drop((stdin, stdout));
    assert!(idle.wait().expect("it ends").success());
    row("peak memory, idle", peak.expect("it runs") as f64 / 1024.0, "MiB", "under 4");

    let report = bench.path("report.json");
    let own = std::env::current_exe().expect("a running program has a path");
    let mut command = bench.exec();
    command.arg("--report").arg(&report).arg("--").arg(own).args([
        child::FLAG,
        "write",
        "65536",
        &FLOOD_BYTES.to_string(),
    ]);
    let start = Instant::now();
    let mut flood = command.stdout(Stdio::null()).spawn().expect("it can be started");
    let mut peak = 0;
    while flood.try_wait().expect("it can be waited for").is_none() {
        peak = peak.max(peak_kib(&flood).unwrap_or(0));
        std::thread::park_timeout(LOOK);
    }
    let text = std::fs::read_to_string(report).expect("it left a report");
    let report: serde_json::Value = serde_json::from_str(&text).expect("a report is JSON");
    let counted = FLOOD_BYTES / 65536 * 65536;
    assert_eq!(
        (&report["stdoutBytes"], &report["truncated"], &report["lostBytes"]),
        (&counted.into(), &true.into(), &0.into())
    );
    row("peak memory, 10 GB through a cap of 64 MiB", peak as f64 / 1024.0, "MiB", "under 8");
    row("  at", counted as f64 / start.elapsed().as_secs_f64() / 1e9, "GB/s", "");
}

fn peak_kib(child: &Child) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{}/status", child.id())).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().strip_suffix(" kB")?.parse().ok()
}
