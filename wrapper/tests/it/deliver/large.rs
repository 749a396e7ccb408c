//! Much output. The tests of every day move a part of what the names say, for the sake of slow
//! machines; with `PVN_FULL_SIZE=1` they move all of it.

use schema::id::BlobId;
use sha2::{Digest, Sha256};

use super::{check, shell};
use crate::run::{Running, until};
use crate::scheduler::Scheduler;
use crate::sized;

/// What `yes` is told to repeat: a line whose length is no power of two, so that nothing falls on a
/// border.
const LINE: &str = "all work and no play makes jack a dull boy";

/// Digest of these parts of what `yes LINE` writes, each from one byte to before another.
fn digest(parts: &[(u64, u64)]) -> BlobId {
    let line = format!("{LINE}\n").into_bytes();
    let block: Vec<u8> = line.iter().copied().cycle().take(line.len() * 4096).collect();
    let mut sha = Sha256::new();
    for (from, until) in parts {
        let mut at = *from;
        while at < *until {
            let start = usize::try_from(at % line.len() as u64).unwrap();
            let count = (block.len() - start).min(usize::try_from(until - at).unwrap());
            sha.update(&block[start..start + count]);
            at += count as u64;
        }
    }
    BlobId::from_digest(sha.finalize().into())
}

/// Most memory that the wrapper has had, KiB.
fn peak(running: &Running) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", running.child.id())).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    line.split_ascii_whitespace().nth(1).unwrap().parse().unwrap()
}

/// What a build without optimisation may have, its own pages included; the release is measured by
/// `images/build-wrapper.sh` and the benchmarks.
const PEAK_KIB: u64 = 24 << 10;

#[test]
fn one_gigabyte_on_both_at_once() {
    let size = sized(96_u64 << 20, 1 << 30);
    let scheduler = Scheduler::start();
    let script = format!(
        "yes '{LINE}' | head -c {size} & yes '{LINE}' | head -c {size} >&2; wait; echo x > \
         written; until [ -e go ]; do sleep 0.01; done"
    );
    let mut wrapper = shell(&scheduler, &["--max-output", &(4_u64 << 30).to_string()], &script);
    let away = || std::fs::File::options().write(true).open("/dev/null").unwrap();
    wrapper.command.stdout(away()).stderr(away());
    let running = wrapper.spawn();
    let path = running.path("written");
    // Only limited by patience, and a gigabyte takes longer than that on a slow machine.
    while !path.exists() {
        std::thread::park_timeout(std::time::Duration::from_millis(20));
    }
    let peak = peak(&running);
    assert!(peak < PEAK_KIB, "{peak} KiB");
    std::fs::write(running.path("go"), "").unwrap();
    let run = running.wait();
    check(&scheduler, &run);
    let truth = digest(&[(0, size)]);
    assert_eq!((run.report.stdout_blob_id, run.report.stderr_blob_id), (Some(truth), Some(truth)));
    assert_eq!(
        (run.report.stdout_bytes, run.report.stderr_bytes, run.report.lost_bytes),
        (size, size, 0)
    );
}

#[test]
fn ten_gigabytes_with_a_cap() {
    let (size, cap) = (sized(300_u64 << 20, 10 << 30), 10_000_000);
    let scheduler = Scheduler::start();
    let script = format!(
        "yes '{LINE}' | head -c {size}; echo x > written; until [ -e go ]; do sleep 0.01; done"
    );
    let mut wrapper = shell(&scheduler, &["--max-output", &cap.to_string()], &script);
    wrapper.command.stdout(std::process::Stdio::null());
    let running = wrapper.spawn();
    while !running.path("written").exists() {
        std::thread::park_timeout(std::time::Duration::from_millis(20));
    }
    let peak = peak(&running);
    assert!(peak < PEAK_KIB, "{peak} KiB");
    until("the head arrived", || (scheduler.state().streams[0].length == cap / 2).then_some(()));
    std::fs::write(running.path("go"), "").unwrap();
    let run = running.wait();
    check(&scheduler, &run);
    assert_eq!(run.report.stdout_blob_id, Some(digest(&[(0, cap / 2), (size - cap / 2, size)])));
    assert_eq!(
        (run.report.stdout_bytes, run.report.stdout_head_bytes, run.report.truncated),
        (size, Some(cap / 2), true)
    );
}
