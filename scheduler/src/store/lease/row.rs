//! The row that says who has the database.

use std::path::PathBuf;

use schema::time::Timestamp;

use super::super::row::{flag, get, instant, named, number, small};
use super::super::{Connection, Result, Row, StoreError};
use super::LeaseHolder;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct LeaseRow {
    pub(super) epoch: i64,
    pub(super) renewals: i64,
    pub(super) released: bool,
    pub(super) owner: LeaseHolder,
}

pub(super) async fn read(connection: &mut Connection) -> Result<Option<LeaseRow>> {
    let row = sqlx::query("SELECT * FROM owner WHERE id = 1").fetch_optional(connection).await?;
    row.map(|row| named("owner", &["id"], &row, columns(&row))).transpose()
}

/// Who had the database last, as far as that can be read.
pub(in crate::store) async fn last(connection: &mut Connection) -> Option<LeaseHolder> {
    // Whoever opens the database says why it cannot be read; one that nobody had yet has no such
    // table.
    read(connection).await.ok().flatten().map(|seen| seen.owner)
}

/// What only people read of the owner may say anything; without the rest nobody can tell whose the
/// database is.
fn columns(row: &Row) -> Result<LeaseRow> {
    let free =
        "; when no daemon runs on this database, `sqlite3 FILE \"DELETE FROM owner\"` frees it";
    let numbers = || Ok((number(row, "epoch")?, number(row, "renewals")?, flag(row, "released")?));
    let (epoch, renewals, released) = numbers().map_err(|error| match error {
        StoreError::Corrupt(why) => StoreError::Corrupt(format!("{why}{free}")),
        error => error,
    })?;
    let text = |column: &str| get::<String>(row, column).unwrap_or_default();
    let owner = LeaseHolder {
        data_directory: text("data_directory"),
        path: PathBuf::from(text("path")),
        host: text("host"),
        pid: small(row, "pid").unwrap_or(0),
        since: instant(row, "since").unwrap_or(Timestamp::from_millis(0)),
    };
    Ok(LeaseRow { epoch, renewals, released, owner })
}
