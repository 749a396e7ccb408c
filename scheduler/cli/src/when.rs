//! The present instant, and instants and spans as people say them.

use std::time::{SystemTime, UNIX_EPOCH};

use schema::time::Timestamp;
pub use schema::when::{ago, duration, length, span, until};

/// The present instant by this machine's clock.
#[expect(
    clippy::disallowed_methods,
    reason = "a client shows ages against the clock of the machine it runs on; nothing is decided \
              by it"
)]
pub fn now() -> Timestamp {
    let millis = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis();
    Timestamp::from_millis(i64::try_from(millis).unwrap_or(i64::MAX))
}
