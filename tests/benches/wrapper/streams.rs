//! What capturing costs: bytes a second from the child to the spool, hashed; and how much a child
//! that logs is slowed down.

use std::fs::File;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::{Bench, child, row};

/// Written at each size, less than what a kernel keeps back before it writes to the disk (a tenth
/// of the memory that is free); of the smallest less, for the child itself is slow then.
const TOTAL_BYTES: u64 = 2 << 30;
const SMALL_BYTES: u64 = 256 << 20;

/// Runs of each; the best counts, for others use this machine too.
const RUNS: usize = 3;

/// Bytes of a log line, what a logging child writes in all, and how much a second.
const LINE_BYTES: u64 = 128;
const LOG_BYTES: u64 = 300_000_000;
const LOG_BYTES_A_SECOND: f64 = 100e6;

fn own() -> Command {
    Command::new(std::env::current_exe().expect("a running program has a path"))
}

pub(crate) fn throughput(bench: &Bench) {
    // Where spools lie in daily life: files whose pages the kernel writes to a disk when it has
    // time.
    let disk = tempfile::tempdir().expect("a directory for spools");
    for (size, shown, goal) in [
        (80, "80 B", ""),
        (4 << 10, "4 KiB", "at least 1.5"),
        (64 << 10, "64 KiB", "at least 1.5"),
        (1 << 20, "1 MiB", "at least 1.5"),
    ] {
        let total = if size < 4096 { SMALL_BYTES } else { TOTAL_BYTES };
        let write = |command: &mut Command| {
            command
                .args([child::FLAG, "write", &size.to_string(), &total.to_string()])
                .stdin(Stdio::null())
                .stderr(Stdio::inherit());
            let start = Instant::now();
            let status = command.status().expect("it can be started");
            assert!(status.success(), "{status}");
            total as f64 / start.elapsed().as_secs_f64() / 1e9
        };
        let best = |run: &mut dyn FnMut() -> f64| (0..RUNS).map(|_| run()).fold(0.0, f64::max);
        let wrapped = |spool: &Path| {
            best(&mut || {
                let mut command = bench.exec();
                command
                    .arg("--spool")
                    .arg(spool)
                    .args(["--max-output", &total.to_string(), "--"])
                    .arg(own().get_program());
                let rate = write(command.stdout(Stdio::null()));
                std::fs::remove_dir_all(spool).expect("the spool goes away");
                rate
            })
        };
        let piped = |file: &Path| {
            best(&mut || {
                let script = "exec \"$0\" \"$@\" | cat > \"$FILE\"";
                let rate = write(
                    Command::new("sh")
                        .args(["-c", script])
                        .arg(own().get_program())
                        .env("FILE", file),
                );
                std::fs::remove_file(file).expect("the file goes away");
                rate
            })
        };
        row(
            &format!("captured, hashed and spooled, writes of {shown}"),
            wrapped(&disk.path().join("spool")),
            "GB/s",
            goal,
        );
        row(
            "  the same through `| cat > file`, not hashed",
            piped(&disk.path().join("piped")),
            "GB/s",
            "",
        );
        row("  captured, hashed and spooled in memory", wrapped(&bench.path("spool")), "GB/s", "");
        row(
            "  the same through `| cat > file`, not hashed",
            piped(&bench.path("piped")),
            "GB/s",
            "",
        );
    }
}

pub(crate) fn slowdown(bench: &Bench) {
    let line = Duration::from_secs_f64(LINE_BYTES as f64 / LOG_BYTES_A_SECOND);
    // What the write itself takes goes off the work, so that the child logs as fast as said into a
    // file.
    let idle = log(own().stdout(file(&bench.path("log"))), bench, 0);
    let writes = (LOG_BYTES / LINE_BYTES) as f64;
    let rounds = child::rounds_for(line.saturating_sub(idle.div_f64(writes)));
    let (mut direct, mut wrapped) = (Duration::MAX, Duration::MAX);
    for _ in 0..RUNS {
        direct = direct.min(log(own().stdout(file(&bench.path("log"))), bench, rounds));
        let mut command = bench.exec();
        command.arg("--").arg(own().get_program()).stdout(Stdio::null());
        wrapped = wrapped.min(log(&mut command, bench, rounds));
    }
    let rate = LOG_BYTES as f64 / direct.as_secs_f64() / 1e6;
    row("a child that logs into a file, lines of 128 B", rate, "MB/s", "");
    row(
        "  slowed down by the wrapper",
        (wrapped.as_secs_f64() / direct.as_secs_f64() - 1.0) * 100.0,
        "%",
        "under 5",
    );
}

fn file(path: &Path) -> File {
    File::create(path).expect("a file can be made")
}

/// What a child that logs says it took.
fn log(command: &mut Command, bench: &Bench, rounds: u64) -> Duration {
    let result = bench.path("result");
    command
        .args([
            child::FLAG,
            "log",
            &LINE_BYTES.to_string(),
            &LOG_BYTES.to_string(),
            &rounds.to_string(),
        ])
        .arg(&result);
    let status = command.stdin(Stdio::null()).status().expect("it can be started");
    assert!(status.success(), "{status}");
    let text = std::fs::read_to_string(&result).expect("the child left its result");
    Duration::from_nanos(text.parse().expect("a number"))
}
