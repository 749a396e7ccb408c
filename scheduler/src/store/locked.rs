//! A daemon that starts while another program holds the database's lock waits for it, for a bounded
//! time and with words: to end at once would use up the starts that a service manager allows, over
//! a lock that is gone in a moment.

use std::path::Path;
use std::time::Duration;

use sqlx::Connection as _;
use tokio::time::Instant;

use super::{Db, Result, StoreError, said, unavailable};

/// How long a start waits. Less than the 90 s that systemd gives a start (systemd-system.conf(5),
/// `DefaultTimeoutStartSec=`).
pub(super) const PATIENCE: Duration = Duration::from_secs(60);

/// Source: sqlite.org/rescode.html: `SQLITE_BUSY`, the lowest byte of all its extended codes.
const BUSY: i32 = 5;

fn is_busy(error: &sqlx::Error) -> bool {
    let code = error
        .as_database_error()
        .and_then(|error| error.code())
        .and_then(|code| code.parse::<i32>().ok());
    code.is_some_and(|code| code & 0xff == BUSY)
}

async fn try_lock(pool: &sqlx::Pool<Db>) -> std::result::Result<(), sqlx::Error> {
    pool.acquire().await?.begin_with("BEGIN IMMEDIATE").await?.rollback().await
}

/// Waits until the database can be written.
///
/// # Errors
/// [`StoreError::Unavailable`] when somebody else holds it for longer than `patience`.
pub(super) async fn wait(pool: &sqlx::Pool<Db>, path: &Path, patience: Duration) -> Result<()> {
    let until = Instant::now() + patience;
    let mut is_told = false;
    // Each try waits by itself, for the connection's busy timeout.
    while let Err(error) = try_lock(pool).await {
        if !is_busy(&error) {
            return Err(unavailable(path)(error));
        }
        if Instant::now() >= until {
            return Err(StoreError::Unavailable(format!(
                "{}: another program has kept it locked for {} s ({}); `fuser {0}` names it: end \
                 it, then start again",
                path.display(),
                patience.as_secs(),
                said(&error)
            )));
        }
        if !is_told {
            tracing::warn!(
                "another program has locked {0}; `fuser {0}` names it. Waiting for up to {1} s",
                path.display(),
                patience.as_secs()
            );
            is_told = true;
        }
    }
    if is_told {
        tracing::info!("{} is no longer locked; going on", path.display());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::secrets::Sealer;
    use crate::store::{LeaseHolder, Store, StoreError};

    async fn opened(directory: &Path) -> Result<Store> {
        let owner =
            LeaseHolder::here("a".to_owned(), directory, schema::time::Timestamp::from_millis(1));
        Store::open_as(&directory.join("pvn.db"), Sealer::with_key([7; 32]), &owner).await
    }

    #[tokio::test]
    async fn p9_a_start_waits_for_a_program_that_has_locked_the_database() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("pvn.db");
        std::fs::File::create(&path).unwrap();
        opened(directory.path()).await.unwrap().close().await;
        let mut other = super::super::Connection::connect(&format!("sqlite://{}", path.display()))
            .await
            .unwrap();
        let held = other.begin_with("BEGIN EXCLUSIVE").await.unwrap();
        let waiting = tokio::spawn({
            let directory = directory.path().to_owned();
            async move { opened(&directory).await }
        });
        // Longer than any statement waits by itself.
        tokio::time::sleep(super::super::BUSY_TIMEOUT * 2).await;
        assert!(!waiting.is_finished());
        held.rollback().await.unwrap();
        waiting.await.unwrap().unwrap();
    }

    #[tokio::test]
    async fn p9_a_lock_that_stays_ends_the_start_with_who_to_ask() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("pvn.db");
        let store = Store::open(&path, Sealer::with_key([7; 32])).await.unwrap();
        let mut other = super::super::Connection::connect(&format!("sqlite://{}", path.display()))
            .await
            .unwrap();
        let _held = other.begin_with("BEGIN EXCLUSIVE").await.unwrap();
        let error = wait(&store.write, &path, Duration::ZERO).await.unwrap_err();
        assert!(matches!(error, StoreError::Unavailable(_)));
        let text = error.to_string();
        assert!(
            text.contains("another program has kept it locked for 0 s")
                && text.contains(&format!("`fuser {}`", path.display())),
            "{text}"
        );
    }
}
