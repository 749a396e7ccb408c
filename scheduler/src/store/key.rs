//! Which key a database is sealed with. A check value in `meta` opens with that key alone; a
//! database of an older pvn has none and is told by what is sealed in it.

use sqlx::Connection as _;
use std::path::Path;

use super::look::look_into;
use super::row::{count, get};
use super::{
    Connection, DocumentKind, Result, Store, StoreError, StoredDocumentKey, documents, meta,
    one_path, secrets, unavailable,
};
use crate::secrets::Sealer;

/// The check value.
const KEY_CHECK: &str = "key_check";

/// What the check value is sealed for, and what it says.
const PURPOSE: &str = "which key this database is sealed with";

/// Oldest rows of each table that are tried where there is no check value.
const SAMPLES: i64 = 100;

/// What tells whether a key is the one that a database is sealed with.
#[derive(Debug, Default)]
pub struct KeyMark {
    check: Option<String>,
    /// What is sealed, oldest first, where there is no check value.
    samples: Vec<Sample>,
}

#[derive(Debug)]
struct Sample {
    at: i64,
    purpose: String,
    sealed: String,
}

/// What a key is to a database.
#[derive(Debug, PartialEq, Eq)]
pub enum Fit {
    /// The one that it is sealed with. What an older pvn sealed with another one after it is named.
    Right {
        /// What of it does not open.
        others: Vec<String>,
    },
    /// One that an older pvn made where it found none: it opens some, but not the oldest.
    Later {
        /// How many things it opens.
        opens: usize,
        /// Of how many.
        tried: usize,
    },
    /// Another one.
    Wrong,
}

impl KeyMark {
    /// Whether the database is sealed with any.
    pub fn is_sealed(&self) -> bool {
        self.check.is_some() || !self.samples.is_empty()
    }

    /// What this key is to it; any is right, where nothing is sealed or somebody emptied the check
    /// value.
    pub fn fit(&self, sealer: &Sealer) -> Fit {
        if let Some(check) = &self.check {
            let is_right = check.is_empty() || sealer.unseal(PURPOSE, check).is_ok();
            return if is_right { Fit::Right { others: Vec::new() } } else { Fit::Wrong };
        }
        let (opened, others): (Vec<_>, Vec<_>) = self
            .samples
            .iter()
            .partition(|sample| sealer.unseal(&sample.purpose, &sample.sealed).is_ok());
        match (self.samples.first(), opened.first()) {
            (Some(_), None) => Fit::Wrong,
            (Some(oldest), Some(first)) if !std::ptr::eq(oldest, *first) => {
                Fit::Later { opens: opened.len(), tried: self.samples.len() }
            }
            _ => {
                Fit::Right { others: others.iter().map(|sample| sample.purpose.clone()).collect() }
            }
        }
    }

    pub(super) async fn read(connection: &mut Connection) -> Result<Self> {
        let tables: i64 = sqlx::query_scalar(
            "SELECT COUNT(*) FROM sqlite_master WHERE type = 'table' AND name = 'meta'",
        )
        .fetch_one(&mut *connection)
        .await?;
        if tables == 0 {
            return Ok(Self::default());
        }
        let check = sqlx::query("SELECT value FROM meta WHERE key = $1")
            .bind(KEY_CHECK)
            .fetch_optional(&mut *connection)
            .await?;
        if let Some(row) = check {
            // One that is no text opens with no key.
            let check = get(&row, "value").unwrap_or_else(|_| "no text".to_owned());
            return Ok(Self { check: Some(check), samples: Vec::new() });
        }
        let mut samples = Vec::new();
        for row in sqlx::query(
            "SELECT created_at, key, version, sealed FROM secrets ORDER BY created_at LIMIT $1",
        )
        .bind(SAMPLES)
        .fetch_all(&mut *connection)
        .await?
        {
            let columns = || {
                let purpose = secrets::purpose(get(&row, "key")?, count(&row, "version")?);
                Ok::<_, StoreError>(Sample {
                    at: get(&row, "created_at")?,
                    purpose,
                    sealed: get(&row, "sealed")?,
                })
            };
            samples.extend(columns().ok());
        }
        for row in sqlx::query(
            "SELECT created_at, kind, application, name, version, source FROM documents ORDER BY \
             created_at LIMIT $1",
        )
        .bind(SAMPLES)
        .fetch_all(&mut *connection)
        .await?
        {
            let columns = || {
                let Some(kind) = DocumentKind::of(get(&row, "kind")?) else { return Ok(None) };
                let key = StoredDocumentKey {
                    kind,
                    application: get(&row, "application")?,
                    name: get(&row, "name")?,
                };
                let purpose = documents::purpose(&key, count(&row, "version")?);
                Ok::<_, StoreError>(Some(Sample {
                    at: get(&row, "created_at")?,
                    purpose,
                    sealed: get(&row, "source")?,
                }))
            };
            samples.extend(columns().ok().flatten());
        }
        samples.sort_by_key(|sample: &Sample| sample.at);
        Ok(Self { check: None, samples })
    }
}

/// What tells the key of the database in this file, which is not changed by that; of nothing when
/// there is no database.
///
/// # Errors
/// When the file is there and cannot be read, or is in use by another path.
pub async fn peek_key(database: &Path) -> Result<KeyMark> {
    if std::fs::metadata(database).map_or(0, |metadata| metadata.len()) == 0 {
        return Ok(KeyMark::default());
    }
    one_path::hold(database)?;
    let unavailable = unavailable(database);
    let mut connection = look_into(database).await?;
    let mark = KeyMark::read(&mut connection).await;
    connection.close().await.map_err(unavailable)?;
    mark
}

impl Store {
    /// What the key that this was opened with is to the database; the right one is from then on
    /// noted as such.
    ///
    /// # Errors
    /// When the database cannot be used.
    pub async fn note_key(&self) -> Result<Fit> {
        let mut writer = self.write.acquire().await?;
        let mark = KeyMark::read(&mut writer).await?;
        let fit = mark.fit(&self.sealer);
        if matches!(fit, Fit::Right { .. }) && mark.check.is_none_or(|check| check.is_empty()) {
            meta::set(&mut writer, KEY_CHECK, &self.sealer.seal(PURPOSE, PURPOSE.as_bytes()))
                .await?;
        }
        Ok(fit)
    }
}

/// Does what a message tells a person to do with `sqlite3`.
#[cfg(test)]
pub(crate) async fn by_hand(database: &Path, statement: &str) {
    let mut connection =
        Connection::connect_with(&sqlx::sqlite::SqliteConnectOptions::new().filename(database))
            .await
            .unwrap();
    sqlx::query(sqlx::AssertSqlSafe(statement.to_owned())).execute(&mut connection).await.unwrap();
    connection.close().await.unwrap();
}
