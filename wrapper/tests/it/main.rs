//! The real binary around small real children. Each test names the rule that it shows; every run
//! ends with the common assertions of [`run::Run`]: one report, sizes and digests that agree with
//! the bytes, nothing left behind.

#![expect(
    clippy::unwrap_used,
    reason = "clippy knows test functions, not the helpers that they share"
)]

mod deliver;
mod exit;
mod inherit;
mod job;
mod kernel;
mod leftovers;
mod outputs;
mod run;
mod scheduler;
mod signals;
mod strace;
mod streams;
mod structured;
mod terminal;
mod terraform;
mod tools;
mod worlds;

/// How much of something: `full` when `PVN_FULL_SIZE` is set, which takes minutes, else `usual`.
pub(crate) fn sized<T>(usual: T, full: T) -> T {
    if std::env::var_os("PVN_FULL_SIZE").is_some() { full } else { usual }
}

/// Says that a test is skipped and why, and adds it to the list that `tests::skip::list` names:
/// this package cannot ask it.
pub(crate) fn skipped(test: &str, why: &str) {
    use std::io::Write;
    assert!(std::env::var_os("PVN_REQUIRE_ALL").is_none(), "{test} may not be skipped here: {why}");
    let line = format!("skipped: {test}: {why}\n");
    let own = || {
        let program = std::env::current_exe().unwrap();
        program
            .ancestors()
            .nth(2)
            .unwrap()
            .join(format!("skipped-tests-{}", std::os::unix::process::parent_id()))
    };
    let list = std::env::var_os("PVN_SKIPPED_LIST").map_or_else(own, std::path::PathBuf::from);
    std::fs::OpenOptions::new()
        .append(true)
        .create(true)
        .open(list)
        .unwrap()
        .write_all(line.as_bytes())
        .unwrap();
    // Past the test runner's capture, so that a person sees it.
    std::io::stderr().write_all(line.as_bytes()).unwrap();
}
