//! Whether the file of a database is what SQLite wrote there: a disk or a copy can change it.
//! Called for files that nobody else uses, by [`super::snapshot`] for the copy that it made and by
//! `restore`: it reads all of it.

use std::path::Path;

use sqlx::Connection as _;
use sqlx::sqlite::SqliteConnectOptions;

use super::{Connection, Result, StoreError, unavailable};

/// The check, which ends with the third thing that it finds: what is to be done is the same after
/// the first.
const CHECK: &str = "PRAGMA integrity_check(3)";

/// Longest text of what it finds, characters: one finding may name many pages.
const FOUND_LIMIT: usize = 400;

/// Reads the whole database, which nobody else may be using, and sees whether it hangs together.
/// What only reads otherwise than before, as a text with another letter, nobody can see in it.
///
/// # Errors
/// [`StoreError::Damaged`]; [`StoreError::Unavailable`] when it cannot be read at all.
pub async fn check_undamaged(path: &Path) -> Result<()> {
    let told = |error: sqlx::Error| of(path, &error).unwrap_or_else(|| unavailable(path)(error));
    // Immutable: neither log nor lock is made beside it.
    let options = SqliteConnectOptions::new().filename(path).read_only(true).immutable(true);
    let mut connection = Connection::connect_with(&options).await.map_err(told)?;
    let found: Vec<String> =
        sqlx::query_scalar(CHECK).fetch_all(&mut connection).await.map_err(told)?;
    connection.close().await.map_err(told)?;
    if found == ["ok"] {
        return Ok(());
    }
    let found = found.join("; ").replace('\n', " ").chars().take(FOUND_LIMIT).collect();
    Err(StoreError::Damaged { path: path.to_owned(), found })
}

/// The damage that an error of SQLite tells, if it tells of one.
pub(super) fn of(path: &Path, error: &sqlx::Error) -> Option<StoreError> {
    /// Source: sqlite.org/rescode.html: `SQLITE_CORRUPT` and `SQLITE_NOTADB`, in the lowest byte of
    /// all their kinds.
    const DAMAGED: [u32; 2] = [11, 26];
    let code: u32 = error.as_database_error()?.code()?.parse().ok()?;
    DAMAGED
        .contains(&(code & 0xff))
        .then(|| StoreError::Damaged { path: path.to_owned(), found: error.to_string() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::secrets::Sealer;
    use crate::store::{Store, snapshot};

    const PAGE_BYTES: usize = 4096;

    /// What is said of a file with these bytes.
    async fn found(bytes: &[u8]) -> Option<String> {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("pvn.db");
        std::fs::write(&path, bytes).unwrap();
        match check_undamaged(&path).await {
            Ok(()) => None,
            Err(StoreError::Damaged { found, .. }) => Some(found),
            Err(other) => panic!("{other}"),
        }
    }

    #[tokio::test]
    async fn every_page_that_is_gone_is_found_and_told_in_few_words() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("pvn.db");
        Store::open(&path, Sealer::with_key([1; 32])).await.unwrap().close().await;
        // What a backup has: no page is free in it.
        let copy = home.path().join("copy.db");
        snapshot(&path, &copy).await.unwrap();
        let whole = std::fs::read(&copy).unwrap();
        assert_eq!(found(&whole).await, None);
        for page in 0..whole.len() / PAGE_BYTES {
            let mut bytes = whole.clone();
            bytes[page * PAGE_BYTES..][..PAGE_BYTES].fill(0);
            let told = found(&bytes).await;
            assert!(told.as_ref().is_some_and(|told| told.chars().count() <= FOUND_LIMIT && !told.contains('\n')), "{page}: {told:?}");
        }
        assert!(found(&whole[..whole.len() / 2]).await.is_some(), "cut off");
        assert!(found(b"a shopping list").await.is_some(), "no database");
    }
}
