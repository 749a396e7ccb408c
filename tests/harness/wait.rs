//! Waiting for a condition instead of for a time.

use std::time::{Duration, Instant};

/// Longest wait for anything in a test: far above what a loaded two-core machine needs, far below a
/// test run's limit.
pub const PATIENCE: Duration = Duration::from_secs(180);

/// Shortest pause between two questions.
const PAUSE: Duration = Duration::from_millis(20);

/// Longest pause, and how many times as long as its answer took one is: whoever asks by starting a
/// program takes a part of a core, and not what it waits for the whole of it.
const LONGEST_PAUSE: Duration = Duration::from_secs(1);
const PAUSE_PER_ANSWER: u32 = 4;

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

/// Asks until there is an answer, with pauses that are always the same, for whoever measures how
/// long something takes: pauses that grow with the time of an answer would count a slow one
/// several times over.
///
/// # Panics
/// After ten minutes, saying what was awaited.
pub fn measured<T>(what: &str, mut ask: impl FnMut() -> Option<T>) -> T {
    const LIMIT: Duration = Duration::from_secs(600);
    let start = Instant::now();
    loop {
        if let Some(answer) = ask() {
            return answer;
        }
        assert!(start.elapsed() < LIMIT, "gave up after {LIMIT:?} waiting for {what}");
        std::thread::park_timeout(PAUSE);
    }
}

/// Asks until there is an answer, at most for `limit`; none where it does not come.
pub fn within<T>(limit: Duration, ask: impl FnMut() -> Option<T>) -> Option<T> {
    within_with_pauses(limit, PAUSE, ask)
}

/// The same with pauses of at least `pause`, for one of many that ask at once.
pub fn within_with_pauses<T>(
    limit: Duration,
    pause: Duration,
    mut ask: impl FnMut() -> Option<T>,
) -> Option<T> {
    let start = Instant::now();
    loop {
        let asked = Instant::now();
        let answer = ask();
        if answer.is_some() || start.elapsed() >= limit {
            return answer;
        }
        let took = (asked.elapsed() * PAUSE_PER_ANSWER).min(LONGEST_PAUSE);
        std::thread::park_timeout(took.max(pause));
    }
}
