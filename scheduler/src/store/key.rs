//! Which key a database is sealed with. A check value in `meta` opens with that key alone; a database of an older pvn has none and
//! is told by what is sealed in it.

use sqlx::Connection as _;
use sqlx::sqlite::SqliteConnectOptions;
use std::path::Path;

use super::row::{count, get};
use super::{Connection, DocumentKey, DocumentKind, Result, Store, StoreError, documents, meta, one_path, secrets};
use crate::secrets::Sealer;

/// The check value.
const KEY_CHECK: &str = "key_check";

/// What the check value is sealed for, and what it says.
const PURPOSE: &str = "which key this database is sealed with";

/// Oldest rows of each table that are tried where there is no check value: a few would tell the key, more bear damaged ones.
const SAMPLES: i64 = 100;

/// What tells whether a key is the one that a database is sealed with.
#[derive(Debug, Default)]
pub struct KeyMark {
    check: Option<String>,
    /// Purpose and sealed text of what is sealed, where there is no check value.
    samples: Vec<(String, String)>,
}

impl KeyMark {
    /// Whether the database is sealed with any.
    pub fn is_sealed(&self) -> bool {
        self.check.is_some() || !self.samples.is_empty()
    }

    /// Whether this is the key; any is, where nothing is sealed. Without a check value it has to open at least half of what is
    /// tried: a pvn of before made a new key where it found none, and then a few things are sealed with that.
    pub fn fits(&self, sealer: &Sealer) -> bool {
        let opens = |purpose: &str, sealed: &str| sealer.unseal(purpose, sealed).is_ok();
        match &self.check {
            Some(check) => opens(PURPOSE, check),
            None => self.samples.iter().filter(|(purpose, sealed)| opens(purpose, sealed)).count() * 2 >= self.samples.len(),
        }
    }

    pub(super) async fn read(connection: &mut Connection) -> Result<Self> {
        let tables: i64 = sqlx::query_scalar("SELECT COUNT(*) FROM sqlite_master WHERE type = 'table' AND name = 'meta'")
            .fetch_one(&mut *connection)
            .await?;
        if tables == 0 {
            return Ok(Self::default());
        }
        let check = sqlx::query("SELECT value FROM meta WHERE key = $1").bind(KEY_CHECK).fetch_optional(&mut *connection).await?;
        if let Some(row) = check {
            // One that is no text opens with no key.
            return Ok(Self { check: Some(get(&row, "value").unwrap_or_default()), samples: Vec::new() });
        }
        let mut samples = Vec::new();
        for row in sqlx::query("SELECT key, version, sealed FROM secrets ORDER BY created_at LIMIT $1")
            .bind(SAMPLES)
            .fetch_all(&mut *connection)
            .await?
        {
            let columns = || Ok::<_, StoreError>((secrets::purpose(get(&row, "key")?, count(&row, "version")?), get(&row, "sealed")?));
            samples.extend(columns().ok());
        }
        for row in sqlx::query("SELECT kind, application, name, version, source FROM documents ORDER BY created_at LIMIT $1")
            .bind(SAMPLES)
            .fetch_all(&mut *connection)
            .await?
        {
            let columns = || {
                let Some(kind) = DocumentKind::of(get(&row, "kind")?) else { return Ok(None) };
                let key = DocumentKey { kind, application: get(&row, "application")?, name: get(&row, "name")? };
                Ok::<_, StoreError>(Some((documents::purpose(&key, count(&row, "version")?), get(&row, "source")?)))
            };
            samples.extend(columns().ok().flatten());
        }
        Ok(Self { check: None, samples })
    }
}

/// What tells the key of the database in this file, which is not changed by that; of nothing when there is no database.
///
/// # Errors
/// When the file is there and cannot be read, or is in use by another path.
pub async fn peek_key(database: &Path) -> Result<KeyMark> {
    if std::fs::metadata(database).map_or(0, |metadata| metadata.len()) == 0 {
        return Ok(KeyMark::default());
    }
    one_path::hold(database)?;
    let unavailable = |error: sqlx::Error| StoreError::Unavailable(format!("{}: {error}", database.display()));
    let options = SqliteConnectOptions::new().filename(database).read_only(true).busy_timeout(super::BUSY_TIMEOUT);
    let mut connection = Connection::connect_with(&options).await.map_err(unavailable)?;
    let mark = KeyMark::read(&mut connection).await;
    connection.close().await.map_err(unavailable)?;
    mark
}

impl Store {
    /// Whether the key that this was opened with is the one that the database is sealed with; from then on it is, if it was sealed
    /// with none.
    ///
    /// # Errors
    /// When the database cannot be used.
    pub async fn note_key(&self) -> Result<bool> {
        let mut writer = self.write.acquire().await?;
        let mark = KeyMark::read(&mut writer).await?;
        if !mark.fits(&self.sealer) {
            return Ok(false);
        }
        if mark.check.is_none() {
            meta::set(&mut writer, KEY_CHECK, &self.sealer.seal(PURPOSE, PURPOSE.as_bytes())).await?;
        }
        Ok(true)
    }
}
