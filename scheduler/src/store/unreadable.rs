//! Rows that cannot be read at the start: whose they are, as far as it can be told, so that the
//! instance is stopped and nobody else. Called by the families of tables that the start reads, and
//! by `driver::recover`.

use schema::id::{InstanceId, JobId};

use super::row::readable;
use super::{Result, Row, StoreError};

/// A row that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unreadable {
    /// The instance that it is about.
    pub instance: Option<InstanceId>,
    /// The job that it is.
    pub job: Option<JobId>,
    /// The pending action that it is.
    pub action: Option<i64>,
    /// Where it is, and what is wrong with it.
    pub why: String,
}

impl Unreadable {
    /// Reads rows, and tells of each one that cannot be read whose it is.
    ///
    /// # Errors
    /// Those that are not about one row.
    pub(super) fn apart<T>(
        rows: &[Row],
        mut read: impl FnMut(&Row) -> Result<T>,
        tell: impl Fn(&Row, String) -> Self,
    ) -> Result<(Vec<T>, Vec<Self>)> {
        let mut unreadable = Vec::new();
        let mut told = |row: &Row, error| match error {
            StoreError::Corrupt(why) => {
                unreadable.push(tell(row, why.clone()));
                StoreError::Corrupt(why)
            }
            error => error,
        };
        let (found, _) = readable(rows.iter(), |row| read(row).map_err(|error| told(row, error)))?;
        Ok((found, unreadable))
    }
}
