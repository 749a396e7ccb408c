//! What many open pages show alike, read once for all who ask for it at the same time: a thousand
//! overviews that hear of one commit cost the database one look. Called by `pages`.
//!
//! What always holds: nobody is given less than what was committed when they asked.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::FutureExt;
use futures::future::{BoxFuture, Shared};
use pages::Overview;
use tokio::time::Instant;
use tokio_util::task::AbortOnDropHandle;

use super::error::{Error, Result};

/// How long something that was read is given to others while nothing is committed: time alone
/// changes some of it, and ages are told to the second.
const GOOD_FOR: Duration = Duration::from_millis(500);

/// Everything that is read together.
#[derive(Clone, Default)]
pub(super) struct SharedReads {
    /// What the overview shows.
    pub(super) overview: SharedRead<Arc<Overview>>,
    /// Approvals that are waited for, which stand at the top of every page.
    pub(super) approvals: SharedRead<u64>,
}

/// One thing that is read together; clones are the same.
#[derive(Clone)]
pub(super) struct SharedRead<T>(Arc<Mutex<Option<ReadInCommon<T>>>>)
where
    T: Clone;

/// The newest reading: it may go on still.
struct ReadInCommon<T: Clone> {
    /// The newest commit when it began.
    revision: u64,
    since: Instant,
    found: Shared<BoxFuture<'static, Result<T>>>,
}

impl<T: Clone> Default for SharedRead<T> {
    fn default() -> Self {
        Self(Arc::default())
    }
}

impl<T: Clone + Send + Sync + 'static> SharedRead<T> {
    /// What `read` finds, or found for somebody else since this commit, the newest one when the
    /// caller asks.
    ///
    /// # Errors
    /// What `read` fails with, to all who waited for it; the next one reads again.
    pub(super) async fn get(
        &self,
        revision: u64,
        read: impl Future<Output = Result<T>> + Send + 'static,
    ) -> Result<T> {
        self.join(revision, Instant::now(), read).await
    }

    fn join(
        &self,
        revision: u64,
        now: Instant,
        read: impl Future<Output = Result<T>> + Send + 'static,
    ) -> Shared<BoxFuture<'static, Result<T>>> {
        // Whole after a panic, too: each change is one.
        let mut newest = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_good = |newest: &ReadInCommon<T>| {
            let is_wrong = matches!(newest.found.peek(), Some(Err(_)));
            newest.revision >= revision && now < newest.since + GOOD_FOR && !is_wrong
        };
        if let Some(newest) = newest.as_ref().filter(|newest| is_good(newest)) {
            return newest.found.clone();
        }
        // By a task of its own: a reader that leaves in the middle of a question would keep its
        // connection from everybody else.
        let reading = AbortOnDropHandle::new(tokio::spawn(read));
        let found = reading.map(|read| read.unwrap_or_else(|died| Err(Error::internal(died))));
        let found = found.boxed().shared();
        *newest = Some(ReadInCommon { revision, since: now, found: found.clone() });
        found
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;

    /// Reads how often it was read.
    fn read(reads: &Arc<AtomicU64>) -> impl Future<Output = Result<u64>> + Send + 'static {
        let reads = Arc::clone(reads);
        async move {
            tokio::task::yield_now().await;
            Ok(reads.fetch_add(1, Ordering::SeqCst) + 1)
        }
    }

    #[tokio::test]
    async fn many_at_once_are_one_read_and_nobody_is_given_what_is_old() {
        let (shared, reads, now) = (SharedRead::default(), Arc::default(), Instant::now());
        let many = (0..1000).map(|_| shared.join(7, now, read(&reads)));
        let found = futures::future::try_join_all(many).await.unwrap();
        assert!(found.iter().all(|found| *found == 1), "{found:?}");
        let newer = shared.join(6, now, read(&reads)).await.unwrap();
        assert_eq!(newer, 1, "it is newer than that");
        let committed = shared.join(8, now, read(&reads)).await.unwrap();
        assert_eq!(committed, 2, "something was committed");
        let later = shared.join(8, now + GOOD_FOR, read(&reads)).await.unwrap();
        assert_eq!(later, 3, "time has passed");
    }

    #[tokio::test]
    async fn a_fault_is_told_to_those_who_waited_and_not_kept() {
        let shared = SharedRead::default();
        let fails = async { Err(Error::unavailable("the database is away")) };
        assert!(shared.get(7, fails).await.is_err());
        assert_eq!(shared.get(7, read(&Arc::default())).await.unwrap(), 1);
    }
}
