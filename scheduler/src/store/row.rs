//! Columns -> our types, and rows -> statements of few sizes.

use std::str::FromStr;

use schema::time::Timestamp;
use serde::de::DeserializeOwned;
use sqlx::Row as _;

use super::{Result, Row, StoreError};

/// A column that is a text of ours: a name, an id, a word.
pub(super) fn word<T: FromStr<Err: std::fmt::Display>>(row: &Row, column: &str) -> Result<T> {
    row.try_get::<&str, _>(column)?.parse().map_err(|error| StoreError::Corrupt(format!("column {column}: {error}")))
}

/// The same, where NULL is `None`.
pub(super) fn word_or_null<T: FromStr<Err: std::fmt::Display>>(row: &Row, column: &str) -> Result<Option<T>> {
    let text: Option<&str> = row.try_get(column)?;
    text.map(|text| text.parse().map_err(|error| StoreError::Corrupt(format!("column {column}: {error}")))).transpose()
}

/// A column that holds JSON.
pub(super) fn json<T: DeserializeOwned>(row: &Row, column: &str) -> Result<T> {
    serde_json::from_str(row.try_get::<&str, _>(column)?).map_err(|error| StoreError::Corrupt(format!("column {column}: {error}")))
}

/// The same, where NULL is `None`.
pub(super) fn json_or_null<T: DeserializeOwned>(row: &Row, column: &str) -> Result<Option<T>> {
    let text: Option<&str> = row.try_get(column)?;
    text.map(|text| serde_json::from_str(text).map_err(|error| StoreError::Corrupt(format!("column {column}: {error}")))).transpose()
}

/// A column that holds epoch milliseconds.
pub(super) fn instant(row: &Row, column: &str) -> Result<Timestamp> {
    Ok(Timestamp::from_millis(row.try_get(column)?))
}

/// The same, where NULL is `None`.
pub(super) fn instant_or_null(row: &Row, column: &str) -> Result<Option<Timestamp>> {
    Ok(row.try_get::<Option<i64>, _>(column)?.map(Timestamp::from_millis))
}

/// A count or number that is never negative.
pub(super) fn count(row: &Row, column: &str) -> Result<u64> {
    u64::try_from(row.try_get::<i64, _>(column)?).map_err(|_| StoreError::Corrupt(format!("column {column} is negative")))
}

/// A small number.
pub(super) fn small<T: TryFrom<i64>>(row: &Row, column: &str) -> Result<T> {
    T::try_from(row.try_get::<i64, _>(column)?).map_err(|_| StoreError::Corrupt(format!("column {column} is out of range")))
}

/// JSON text of a value of ours.
pub(super) fn to_json(value: &impl serde::Serialize) -> String {
    serde_json::to_string(value).expect("our own types have JSON forms")
}

/// Sizes of pieces: any number of rows up to 8 is one piece, as most commits change few rows.
const PIECES: [usize; 11] = [64, 32, 16, 8, 7, 6, 5, 4, 3, 2, 1];

/// Cuts rows into pieces of [`PIECES`] sizes, so that statements over many rows come in few texts that stay prepared (sqlx
/// keeps 100), and few of them are needed: each is a turn on the database's thread, which costs more than a row. 64 rows of
/// 20 columns are far below SQLite's limit of 32766 parameters.
pub(super) fn pieces<T>(mut rows: &[T]) -> impl Iterator<Item = &[T]> {
    std::iter::from_fn(move || {
        let size = PIECES.into_iter().find(|size| *size <= rows.len())?;
        let (piece, rest) = rows.split_at(size);
        rows = rest;
        Some(piece)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_hold_every_row_once_in_order() {
        for len in [0, 1, 3, 4, 63, 64, 65, 150] {
            let rows: Vec<usize> = (0..len).collect();
            let back: Vec<usize> = pieces(&rows).flatten().copied().collect();
            assert_eq!(back, rows);
            assert!(pieces(&rows).all(|piece| PIECES.contains(&piece.len())));
            assert!(len > 8 || pieces(&rows).count() <= 1, "few rows are one statement");
        }
    }
}
