//! Whether the jobs that a database knows can be in the spool directory that is there. Called by
//! `daemon` at the start, before the jobs are taken up.
//!
//! A spool directory that is new, lost, restored or another daemon's holds nothing about the jobs
//! that were decided before it came: that such a job has no directory in it does not prove that it
//! never started, nor that it is gone. So the database keeps the id of its spool directory, and the
//! number of the newest job that was decided before this one came.

use crate::clock::Clock;
use crate::store::{Change, Commit, Result, Store, StoreError};
use schema::log_kind::LogKind;

/// Id of the spool directory.
const SPOOL: &str = "spool";

/// The number of the newest job that was decided for an earlier spool directory.
const SPOOL_AFTER: &str = "spool_after";

/// Notes which spool directory the database has from now on, and tells people when it is another
/// one.
///
/// # Errors
/// When the database cannot be used.
pub(crate) async fn note(
    store: &Store,
    clock: &Clock,
    id: &str,
    path: &std::path::Path,
) -> Result<()> {
    let before = match store.meta(SPOOL).await {
        // Which one it was is not known, so it was another one.
        Err(StoreError::Corrupt(why)) => Some(why),
        other => other?,
    };
    if before.as_deref() == Some(id) {
        return Ok(());
    }
    let counters = store.counters().await?;
    let mut commit =
        Commit { changes: vec![Change::Meta(SPOOL, id.to_owned())], ..Commit::default() };
    if before.is_some() {
        let (readable, unreadable) = store.unfinished_jobs().await?;
        let under_way = readable.len() + unreadable.len();
        let message = format!(
            "the spool directory {} is not the one that this database had: it is new, lost or \
             another daemon's; of {under_way} jobs that were under way nobody can say here \
             whether they run; see whether they do, then `pvnctl services retry` where an apply \
             is held back",
            path.display()
        );
        tracing::warn!("{message}");
        commit.changes.push(Change::Meta(SPOOL_AFTER, counters.job.to_string()));
        commit.tell(
            &counters,
            clock.now(),
            LogKind::SpoolReplaced,
            message,
            serde_json::json!({"jobs": under_way}),
        );
    }
    store.commit(&commit).await
}

/// The number of the newest job that cannot be in the spool directory; 0 when all can. Where that
/// is noted and cannot be read, it is any job.
///
/// # Errors
/// When the database cannot be read.
pub(crate) async fn lost_up_to(store: &Store) -> Result<i64> {
    match store.meta(SPOOL_AFTER).await {
        Ok(None) => Ok(0),
        Ok(Some(text)) => Ok(text.parse().ok().filter(|noted| *noted >= 0).unwrap_or(i64::MAX)),
        Err(StoreError::Corrupt(_)) => Ok(i64::MAX),
        Err(error) => Err(error),
    }
}
