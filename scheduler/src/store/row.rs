//! Columns -> our types, and rows -> statements of few sizes.

use std::str::FromStr;

use schema::time::Timestamp;
use serde::de::DeserializeOwned;
use sqlx::{Row as _, ValueRef as _};

use super::{Db, Result, Row, StoreError};

/// The largest number that anything here counts to. One above it was never given out, and counting
/// on from it would soon end.
pub(super) const LARGEST: i64 = 1 << 60;

/// Most of a value that is shown where it cannot be read: enough to find it, not a whole document.
const SHOWN_CHARACTERS: usize = 60;

/// What a column holds, for people, whatever it is.
fn raw(row: &Row, column: &str) -> String {
    match row.try_get_raw(column) {
        Ok(value) if value.is_null() => return "NULL".to_owned(),
        Ok(_) => {}
        Err(_) => return "nothing".to_owned(),
    }
    let bytes: Vec<u8> = row.try_get_unchecked(column).unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes);
    let short: String = text.chars().take(SHOWN_CHARACTERS).collect();
    if short.len() < text.len() { format!("{short:?}…") } else { format!("{short:?}") }
}

fn bad(row: &Row, column: &str, why: impl std::fmt::Display) -> StoreError {
    StoreError::Corrupt(format!("column {column} holds {}: {why}", raw(row, column)))
}

/// A column as it is.
pub(super) fn get<'r, T: sqlx::Decode<'r, Db> + sqlx::Type<Db>>(
    row: &'r Row,
    column: &str,
) -> Result<T> {
    row.try_get(column).map_err(|error| match error {
        sqlx::Error::ColumnDecode { source, .. } => bad(row, column, source),
        error => error.into(),
    })
}

/// Says which row it is that cannot be read: the table, and the columns that tell its rows apart.
pub(super) fn named<T>(table: &str, keys: &[&str], row: &Row, read: Result<T>) -> Result<T> {
    read.map_err(|error| match error {
        StoreError::Corrupt(why) => {
            let keys: Vec<String> =
                keys.iter().map(|key| format!("{key} = {}", raw(row, key))).collect();
            StoreError::Corrupt(format!("table {table}, row {}: {why}", keys.join(", ")))
        }
        other => other,
    })
}

/// What could be read of some rows, and of each other one why not.
///
/// # Errors
/// Those that are not about one row.
pub(super) fn readable<R, T>(
    rows: impl IntoIterator<Item = R>,
    mut read: impl FnMut(&R) -> Result<T>,
) -> Result<(Vec<T>, Vec<String>)> {
    let (mut found, mut unreadable) = (Vec::new(), Vec::new());
    for row in rows {
        match read(&row) {
            Ok(item) => found.push(item),
            Err(StoreError::Corrupt(why)) => unreadable.push(why),
            Err(error) => return Err(error),
        }
    }
    Ok((found, unreadable))
}

/// A column that is a text of ours: a name, an id, a word.
pub(super) fn word<T: FromStr<Err: std::fmt::Display>>(row: &Row, column: &str) -> Result<T> {
    get::<&str>(row, column)?.parse().map_err(|error| bad(row, column, error))
}

/// The same, where NULL is `None`.
pub(super) fn word_or_null<T: FromStr<Err: std::fmt::Display>>(
    row: &Row,
    column: &str,
) -> Result<Option<T>> {
    let text: Option<&str> = get(row, column)?;
    text.map(|text| text.parse().map_err(|error| bad(row, column, error))).transpose()
}

/// A column that holds texts of ours with commas between, one at least, where NULL is `None`.
pub(super) fn listed<T: FromStr<Err: std::fmt::Display>>(
    row: &Row,
    column: &str,
) -> Result<Option<Vec<T>>> {
    let text: Option<&str> = get(row, column)?;
    let read = |text: &str| text.split(',').map(str::parse).collect::<std::result::Result<_, _>>();
    text.map(|text| read(text).map_err(|error: T::Err| bad(row, column, error))).transpose()
}

/// A column that holds JSON.
pub(super) fn json<T: DeserializeOwned>(row: &Row, column: &str) -> Result<T> {
    serde_json::from_str(get::<&str>(row, column)?).map_err(|error| bad(row, column, error))
}

/// The same, where NULL is `None`.
pub(super) fn json_or_null<T: DeserializeOwned>(row: &Row, column: &str) -> Result<Option<T>> {
    let text: Option<&str> = get(row, column)?;
    text.map(|text| serde_json::from_str(text).map_err(|error| bad(row, column, error))).transpose()
}

/// A column that holds epoch milliseconds.
pub(super) fn instant(row: &Row, column: &str) -> Result<Timestamp> {
    get(row, column).map(Timestamp::from_millis)
}

/// The same, where NULL is `None`.
pub(super) fn instant_or_null(row: &Row, column: &str) -> Result<Option<Timestamp>> {
    Ok(get::<Option<i64>>(row, column)?.map(Timestamp::from_millis))
}

/// A number that is counted up from 0, at most [`LARGEST`].
pub(super) fn number(row: &Row, column: &str) -> Result<i64> {
    let found: i64 = get(row, column)?;
    if (0..=LARGEST).contains(&found) {
        Ok(found)
    } else {
        Err(bad(row, column, "it is out of range"))
    }
}

/// The same, as it is mostly wanted.
pub(super) fn count(row: &Row, column: &str) -> Result<u64> {
    number(row, column).map(i64::unsigned_abs)
}

/// A small number.
pub(super) fn small<T: TryFrom<i64>>(row: &Row, column: &str) -> Result<T> {
    T::try_from(get(row, column)?).map_err(|_| bad(row, column, "it is out of range"))
}

/// A yes or no, 1 or 0.
pub(super) fn flag(row: &Row, column: &str) -> Result<bool> {
    match get::<i64>(row, column)? {
        0 => Ok(false),
        1 => Ok(true),
        _ => Err(bad(row, column, "it is neither 0 nor 1")),
    }
}

/// JSON text of a value of ours.
pub(super) fn to_json(value: &impl serde::Serialize) -> String {
    serde_json::to_string(value).expect("our own types have JSON forms")
}

/// Sizes of pieces: any number of rows up to 8 is one piece, as most commits change few rows.
const PIECES: [usize; 11] = [64, 32, 16, 8, 7, 6, 5, 4, 3, 2, 1];

/// Cuts rows into pieces of [`PIECES`] sizes, so that statements over many rows come in few texts
/// that stay prepared (sqlx keeps 100), and few of them are needed: each is a turn on the
/// database's thread, which costs more than a row. 64 rows of 20 columns are far below SQLite's
/// limit of 32766 parameters.
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
