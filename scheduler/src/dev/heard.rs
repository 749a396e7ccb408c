//! What the client half of `dev` hears of the daemon beside it, and what it takes for silence.

use pvnctl::client::Client;
use pvnctl::failure::Failure;
use schema::api::LogEntry;

/// What came, or nothing where both halves were still for so long that one took the other for lost:
/// the process was stopped (Ctrl-Z), or the machine was asleep or too busy. It goes on by itself.
pub(super) fn heard<T>(what: Result<Option<T>, Failure>) -> Result<Option<T>, Failure> {
    match what {
        Err(failure) if failure.is_passing() => Ok(None),
        other => other,
    }
}

/// The number of the newest entry of the log.
pub(super) async fn newest_event(client: &Client) -> Result<Option<u64>, Failure> {
    Ok(client
        .list::<LogEntry>(&["v1", "events"], &[], Some(1))
        .await?
        .items
        .first()
        .map(|entry| entry.seq))
}
