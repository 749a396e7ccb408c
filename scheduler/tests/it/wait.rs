//! The one place where the tests of this crate wait for a condition.

use std::time::Duration;

/// Pause between two looks. The deadline is what a test relies on; this only keeps the looks from
/// taking a whole core.
const BETWEEN_LOOKS: Duration = Duration::from_millis(5);

/// What the look finds, unless it finds nothing until the deadline.
pub(crate) async fn until<T>(
    patience: Duration,
    mut look: impl AsyncFnMut() -> Option<T>,
) -> Option<T> {
    let looked = async {
        loop {
            if let Some(found) = look().await {
                return found;
            }
            tokio::time::sleep(BETWEEN_LOOKS).await;
        }
    };
    tokio::time::timeout(patience, looked).await.ok()
}
