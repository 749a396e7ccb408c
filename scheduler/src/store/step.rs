//! Rows that are gone through step by step, past those that cannot be read. Called by `prune`.

use sqlx::Row as _;
use sqlx::sqlite::SqliteRow;

use super::Result;
use super::row::{named, readable};

/// A place in an order of rows whose texts may be what no program of ours wrote, as bytes.
pub type Key = (Vec<u8>, Vec<u8>);

/// Some rows in their order.
#[derive(Debug)]
pub struct RowsStep<T, K = i64> {
    /// What could be read of them.
    pub rows: Vec<T>,
    /// Of each other one why not.
    pub unreadable: Vec<String>,
    /// Where the last of them all stands; `None` when there are no more.
    pub last: Option<K>,
}

impl<T> RowsStep<T> {
    /// Rows of a table, by their numbers, which the query has seen to be numbers.
    pub(super) fn read(
        table: &str,
        rows: &[SqliteRow],
        read: impl Fn(&SqliteRow) -> Result<T>,
    ) -> Result<Self> {
        let last = rows.last().map(|row| row.try_get("seq")).transpose()?;
        let (rows, unreadable) = readable(rows, |row| named(table, &["seq"], row, read(row)))?;
        Ok(Self { rows, unreadable, last })
    }
}
