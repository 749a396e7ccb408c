//! The spool directory of a local job, as the programs leave it.

use std::path::Path;

use serde_json::Value;

/// The process id of the wrapper that claimed the job in `directory`.
///
/// # Panics
/// When none has.
pub fn wrapper(directory: &Path) -> i32 {
    let claim = std::fs::read(directory.join("claim")).expect("the job has a claim");
    let claim: Value = serde_json::from_slice(&claim).expect("a claim is JSON");
    let pid = claim["wrapper"]["pid"].as_i64().expect("a wrapper claimed it");
    pid.try_into().expect("process ids are small")
}
