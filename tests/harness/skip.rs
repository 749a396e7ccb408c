//! Tests that need something absent say so and are counted; they do not pass silently. What was
//! skipped in one `cargo test` is told at its end, by the test program `skipped`.

use std::collections::BTreeSet;
use std::fs::OpenOptions;
use std::io::Write;
use std::path::PathBuf;

/// The path of a tool, looked up on `PATH`.
pub fn tool(name: &str) -> Option<PathBuf> {
    std::env::split_paths(&std::env::var_os("PATH")?)
        .map(|directory| directory.join(name))
        .find(|path| path.is_file())
}

/// The list of what is skipped in this run: `PVN_SKIPPED_LIST`, which the check script reads; else
/// a file of the build directory that is named after the `cargo test` that started us.
/// `wrapper/tests/it/main.rs` knows it too.
///
/// # Panics
/// When our own program has no path.
pub fn list() -> PathBuf {
    let own = || {
        let program = std::env::current_exe().expect("a running program has a path");
        let profile = program
            .parent()
            .and_then(std::path::Path::parent)
            .expect("cargo puts tests into PROFILE/deps");
        profile.join(format!("skipped-tests-{}", std::os::unix::process::parent_id()))
    };
    std::env::var_os("PVN_SKIPPED_LIST").map_or_else(own, PathBuf::from)
}

/// Says that a test is skipped and why, and adds it to [`list`].
///
/// # Panics
/// When `PVN_REQUIRE_ALL` is set: then nothing may be skipped.
pub fn skipped(test: &str, why: &str) {
    assert!(std::env::var_os("PVN_REQUIRE_ALL").is_none(), "{test} may not be skipped here: {why}");
    let line = format!("skipped: {test}: {why}\n");
    if let Ok(mut list) = OpenOptions::new().append(true).create(true).open(list()) {
        list.write_all(line.as_bytes()).expect("the list of skipped tests can be written");
    }
    // Past the test runner's capture, so that a person sees it.
    std::io::stderr().write_all(line.as_bytes()).expect("stderr can be written");
}

/// What is told at the end of a run, for people: each test of the list once, and how many there
/// are.
pub fn told(list: &str) -> String {
    let lines: BTreeSet<&str> = list.lines().collect();
    let count = if lines.len() == 1 {
        "1 test was".to_owned()
    } else {
        format!("{} tests were", lines.len())
    };
    let each: String = lines.iter().map(|line| format!("{line}\n")).collect();
    format!("\n{each}{count} skipped for want of something\n\n")
}
