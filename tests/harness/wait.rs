//! Waiting for a condition instead of for a time.

use std::time::{Duration, Instant};

/// Longest wait for anything in a test: far above what a loaded two-core machine needs, far below a
/// test run's limit.
pub const PATIENCE: Duration = Duration::from_secs(180);

const PAUSE: Duration = Duration::from_millis(20);

/// Asks until there is an answer.
///
/// # Panics
/// After [`PATIENCE`], saying what was awaited.
pub fn until<T>(what: &str, ask: impl FnMut() -> Option<T>) -> T {
    until_within(PATIENCE, what, ask)
}

/// Asks until there is an answer, at most for `limit`.
///
/// # Panics
/// After `limit`, saying what was awaited.
pub fn until_within<T>(limit: Duration, what: &str, ask: impl FnMut() -> Option<T>) -> T {
    within(limit, ask).unwrap_or_else(|| panic!("gave up after {limit:?} waiting for {what}"))
}

/// Asks until there is an answer, at most for `limit`; none where it does not come.
pub fn within<T>(limit: Duration, mut ask: impl FnMut() -> Option<T>) -> Option<T> {
    let start = Instant::now();
    loop {
        let answer = ask();
        if answer.is_some() || start.elapsed() >= limit {
            return answer;
        }
        std::thread::park_timeout(PAUSE);
    }
}
