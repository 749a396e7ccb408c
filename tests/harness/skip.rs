//! Tests that need something absent say so and are counted; they do not pass silently.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::PathBuf;

/// The path of a tool, looked up on `PATH`.
pub fn tool(name: &str) -> Option<PathBuf> {
    std::env::split_paths(&std::env::var_os("PATH")?).map(|directory| directory.join(name)).find(|path| path.is_file())
}

/// Says that a test is skipped and why, and adds it to the list that the check script counts (`PVN_SKIPPED_LIST`).
///
/// # Panics
/// When `PVN_REQUIRE_ALL` is set: then nothing may be skipped.
pub fn skipped(test: &str, why: &str) {
    assert!(std::env::var_os("PVN_REQUIRE_ALL").is_none(), "{test} may not be skipped here: {why}");
    let line = format!("skipped: {test}: {why}\n");
    let list = std::env::var_os("PVN_SKIPPED_LIST").and_then(|path| OpenOptions::new().append(true).create(true).open(path).ok());
    if let Some(mut list) = list {
        list.write_all(line.as_bytes()).expect("the list of skipped tests can be written");
    }
    // Past the test runner's capture, so that a person sees it.
    std::io::stderr().write_all(line.as_bytes()).expect("stderr can be written");
}
