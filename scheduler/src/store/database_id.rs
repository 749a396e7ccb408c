//! What tells one database from every other: a random number in it, that stays whatever becomes of
//! its file. A copy of the file is the same database, of another time; one that was restored from a
//! backup is another one.

use std::path::Path;

use sqlx::Connection as _;

use super::look::look_into;
use super::row::{get, named};
use super::{
    Connection, LeaseHolder, Result, Row, Store, StoreError, lease, meta, one_path, unavailable,
};

/// The number.
pub(super) const DATABASE_ID: &str = "database_id";

/// Hexadecimal digits of the number.
const DIGITS: usize = 32;

/// Where the database lay when a daemon used it last.
pub(super) const DATABASE_PATH: &str = "database_path";

/// What a database tells of itself.
#[derive(Debug, Default)]
pub struct DatabaseFacts {
    /// The number; `None` when there is no database, it cannot be read, or there is none because
    /// only an older pvn has used it so far.
    pub id: Option<String>,
    /// Why the number cannot be read, with what ends that.
    pub damage: Option<String>,
    /// Whether there is a database that a pvn has used.
    pub is_used: bool,
    /// Who had it last.
    pub owner: Option<LeaseHolder>,
}

/// What the database in this file tells, which is not changed by that but for what [`look_into`]
/// puts right.
///
/// # Errors
/// When the file is there and cannot be read, or is in use by another path.
pub async fn peek(database: &Path) -> Result<DatabaseFacts> {
    if std::fs::metadata(database).map_or(0, |metadata| metadata.len()) == 0 {
        return Ok(DatabaseFacts::default());
    }
    one_path::hold(database)?;
    let unavailable = unavailable(database);
    let mut connection = look_into(database).await?;
    let tables: i64 = sqlx::query_scalar(
        "SELECT COUNT(*) FROM sqlite_master WHERE type = 'table' AND name = 'meta'",
    )
    .fetch_one(&mut connection)
    .await
    .map_err(unavailable)?;
    let is_used = tables > 0;
    let id = if is_used { read(&mut connection).await } else { Ok(None) };
    let owner = lease::last(&mut connection).await;
    connection.close().await.map_err(unavailable)?;
    let (id, damage) = match id {
        Err(StoreError::Corrupt(why)) => (None, Some(why)),
        other => (other?, None),
    };
    Ok(DatabaseFacts { id, damage, is_used, owner })
}

async fn read(connection: &mut Connection) -> Result<Option<String>> {
    let row = sqlx::query("SELECT key, value FROM meta WHERE key = $1")
        .bind(DATABASE_ID)
        .fetch_optional(connection)
        .await?;
    let mend = "; `sqlite3 FILE \"DELETE FROM meta WHERE key = 'database_id'\"` gives it a new \
                one, after which the file `database` in its data directory has to be removed";
    let id = |row: &Row| {
        let id: String = get(row, "value")?;
        let is_one = id.len() == DIGITS
            && id.bytes().all(|digit| matches!(digit, b'0'..=b'9' | b'a'..=b'f'));
        match is_one {
            true => Ok(id),
            false => Err(StoreError::Corrupt(format!("`value` is no id of {DIGITS} digits"))),
        }
    };
    match row.map(|row| named("meta", &["key"], &row, id(&row))).transpose() {
        Err(StoreError::Corrupt(why)) => Err(StoreError::Corrupt(format!("{why}{mend}"))),
        other => other,
    }
}

impl Store {
    /// The number of this database, and whether it is new to it: it is given this one when it has
    /// none that can be read.
    ///
    /// # Errors
    /// When the database cannot be used.
    pub async fn id_or(&self, new: &str) -> Result<(String, bool)> {
        let mut writer = self.write.acquire().await?;
        match read(&mut writer).await {
            Ok(Some(id)) => return Ok((id, false)),
            Ok(None) | Err(StoreError::Corrupt(_)) => {}
            Err(error) => return Err(error),
        }
        meta::set(&mut writer, DATABASE_ID, new).await?;
        Ok((new.to_owned(), true))
    }

    /// Notes that the database lies here. Returns where it lay before, if that is noted and was
    /// another place.
    ///
    /// # Errors
    /// When the database cannot be used.
    pub async fn lies_at(&self, path: &Path) -> Result<Option<String>> {
        let path = path.to_string_lossy();
        let before = match self.meta(DATABASE_PATH).await {
            // Of use to people alone.
            Err(StoreError::Corrupt(_)) => None,
            other => other?,
        };
        if before.as_deref() == Some(&*path) {
            return Ok(None);
        }
        let mut writer = self.write.acquire().await?;
        meta::set(&mut writer, DATABASE_PATH, &path).await?;
        Ok(before)
    }
}
