//! A look into a database before it is opened as its owner. Called by [`super::peek`] and
//! [`super::peek_key`].

use std::path::Path;

use sqlx::Connection as _;
use sqlx::sqlite::SqliteConnectOptions;

use super::{BUSY_TIMEOUT, Connection, Result, unavailable};

/// SQLite's word for a database whose last change was cut off and has to be rolled back, which only
/// whoever may write can do. Source: `SQLITE_READONLY_ROLLBACK`.
const HALF_CHANGED: &str = "776";

/// A connection that changes nothing. Only what a program left that was killed while it made the
/// database (before its first start had come so far that SQLite keeps a log of changes) is put
/// right first.
///
/// # Errors
/// When the file cannot be read, or is in use.
pub(super) async fn look_into(database: &Path) -> Result<Connection> {
    let options = SqliteConnectOptions::new().filename(database).busy_timeout(BUSY_TIMEOUT);
    let looked = match open(&options.clone().read_only(true)).await {
        Err(sqlx::Error::Database(error)) if error.code().as_deref() == Some(HALF_CHANGED) => {
            open(&options)
                .await
                .map_err(unavailable(database))?
                .close()
                .await
                .map_err(unavailable(database))?;
            open(&options.read_only(true)).await
        }
        looked => looked,
    };
    looked.map_err(unavailable(database))
}

/// Opens and reads something: only that shows what state the file is in.
async fn open(options: &SqliteConnectOptions) -> sqlx::Result<Connection> {
    let mut connection = Connection::connect_with(options).await?;
    let _: i64 =
        sqlx::query_scalar("SELECT COUNT(*) FROM sqlite_master").fetch_one(&mut connection).await?;
    Ok(connection)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn p5_a_database_whose_making_was_killed_is_put_right_by_the_next_look() {
        let directory = tempfile::tempdir().unwrap();
        let (whole, killed) =
            (directory.path().join("whole.db"), directory.path().join("killed.db"));
        let options = SqliteConnectOptions::new().filename(&whole).create_if_missing(true);
        let mut connection = Connection::connect_with(&options).await.unwrap();
        for statement in [
            "PRAGMA journal_mode = DELETE",
            "CREATE TABLE t (x)",
            "INSERT INTO t VALUES (1)",
            "PRAGMA cache_size = 2",
            "BEGIN IMMEDIATE",
            // More than the cache holds, so that some of it is in the file and the journal says
            // how that was.
            "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 2000) \
             INSERT INTO t SELECT zeroblob(500) FROM n",
        ] {
            sqlx::query(statement).execute(&mut connection).await.unwrap();
        }
        let journal = |path: &Path| path.with_extension("db-journal");
        std::fs::copy(&whole, &killed).unwrap();
        std::fs::copy(journal(&whole), journal(&killed)).unwrap();

        let mut looked = look_into(&killed).await.unwrap();
        let rows: i64 =
            sqlx::query_scalar("SELECT COUNT(*) FROM t").fetch_one(&mut looked).await.unwrap();
        assert_eq!((rows, journal(&killed).exists()), (1, false), "what was not committed is gone");
        assert!(
            sqlx::query("INSERT INTO t VALUES (2)").execute(&mut looked).await.is_err(),
            "it only looks"
        );
    }
}
