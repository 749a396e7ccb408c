//! Secrets: every version sealed, bound to its key and number.

use std::collections::{BTreeMap, BTreeSet};

use futures::TryStreamExt;
use schema::id::{ApplicationName, BlobId, ServiceName};
use schema::status::Status;
use schema::time::Timestamp;

use super::row::{count, get, instant, json, named, readable, word};
use super::{Connection, PageRequest, Result, Row, Store};
use crate::compile::Commands;

/// A service that needs a secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SecretUser {
    pub application: ApplicationName,
    pub service: ServiceName,
    /// Whether a release that it pursues asks for it; else what was applied may have left it live.
    pub is_pursued: bool,
}

pub(super) fn purpose(key: &str, version: u64) -> String {
    format!("secret `{key}` version {version}")
}

impl Store {
    /// The value of a secret and the version it is of; `version` 0 is the latest.
    pub async fn secret(&self, key: &str, version: u64) -> Result<Option<(u64, Vec<u8>)>> {
        let row = if version == 0 {
            sqlx::query(
                "SELECT version, sealed FROM secrets WHERE key = $1 ORDER BY version DESC LIMIT 1",
            )
            .bind(key)
        } else {
            sqlx::query("SELECT version, sealed FROM secrets WHERE key = $1 AND version = $2")
                .bind(key)
                .bind(i64::try_from(version).unwrap_or(i64::MAX))
        };
        let Some(row) = row.fetch_optional(&self.read).await? else { return Ok(None) };
        let version = count(&row, "version")?;
        Ok(Some((version, self.sealer.unseal(&purpose(key, version), get(&row, "sealed")?)?)))
    }

    /// Every value that the latest version of a secret may have been since then: that of then, and
    /// those that came later.
    pub async fn secret_since(&self, key: &str, since: Timestamp) -> Result<Vec<Vec<u8>>> {
        let rows = sqlx::query(
            "SELECT version, sealed FROM secrets WHERE key = $1 AND version >= COALESCE(
             (SELECT MAX(version) FROM secrets WHERE key = $1 AND created_at <= $2), 0) ORDER BY \
             version",
        )
        .bind(key)
        .bind(since.as_millis())
        .fetch_all(&self.read)
        .await?;
        let value = |row: &_| {
            Ok(self.sealer.unseal(&purpose(key, count(row, "version")?), get(row, "sealed")?)?)
        };
        rows.iter().map(value).collect()
    }

    /// Keys and versions, never values.
    pub async fn secrets(
        &self,
        page: &PageRequest,
    ) -> Result<schema::api::Page<schema::api::Secret>> {
        let total: i64 = sqlx::query_scalar("SELECT COUNT(DISTINCT key) FROM secrets")
            .fetch_one(&self.read)
            .await?;
        let keys = sqlx::query(
            "SELECT key, MAX(created_at) AS created_at FROM secrets WHERE key > $1 GROUP BY key \
             ORDER BY key LIMIT $2",
        )
        .bind(page.cursor.as_deref().unwrap_or(""))
        .bind(page.rows())
        .fetch_all(&self.read)
        .await?;
        let mut all = BTreeMap::new();
        for row in &keys {
            let Ok(key) = get::<String>(row, "key") else { continue };
            let rows = sqlx::query("SELECT version FROM secrets WHERE key = $1 ORDER BY version")
                .bind(&key)
                .fetch_all(&self.read)
                .await?;
            all.insert(
                key,
                readable(rows, |row| {
                    named("secrets", &["key", "version"], row, count(row, "version"))
                })?
                .0,
            );
        }
        let shown = |row: &Row| {
            let columns = || Ok((get::<String>(row, "key")?, instant(row, "created_at")?));
            let (key, created_at) = named("secrets", &["key"], row, columns())?;
            let versions = all.remove(&key).unwrap_or_default();
            Ok(schema::api::Secret { key, versions, created_at })
        };
        page.page(keys, total, |row| get(row, "key"), shown)
    }

    /// The newest version of a secret; 0 when there is none.
    pub async fn secret_version(&self, key: &str) -> Result<u64> {
        let row =
            sqlx::query("SELECT COALESCE(MAX(version), 0) AS version FROM secrets WHERE key = $1")
                .bind(key)
                .fetch_one(&self.read)
                .await?;
        count(&row, "version")
    }

    /// The number that a secret's next version gets: one more than any that it ever had, those
    /// deleted included.
    pub async fn next_secret_version(&self, key: &str) -> Result<u64> {
        let row = sqlx::query(
            "SELECT COALESCE(MAX(version), 0) + 1 AS next FROM (SELECT version FROM secrets WHERE \
             key = $1
             UNION ALL SELECT last AS version FROM secret_versions WHERE key = $1) AS every",
        )
        .bind(key)
        .fetch_one(&self.read)
        .await?;
        count(&row, "next")
    }

    /// A service that asks for this secret in a release that it pursues now, or where it may be
    /// live.
    pub async fn secret_user(&self, key: &str) -> Result<Option<SecretUser>> {
        let naming = self.naming(key).await?;
        let rows = sqlx::query(
            "SELECT i.id, a.name AS application, s.name AS service, COALESCE(rc.compiled IN \
             (SELECT value FROM json_each($1)), 0) AS is_pursued
             FROM (SELECT *, CASE WHEN json_valid(state) THEN state ELSE '{}' END AS known FROM \
             instances WHERE status <> $2) AS i
             JOIN services AS s ON s.id = i.service_id JOIN applications AS a ON a.id = \
             s.application_id
             LEFT JOIN release_channels AS rc ON rc.release_id = i.release_id AND rc.channel_id = \
             i.channel_id
             WHERE rc.compiled IN (SELECT value FROM json_each($1))
             OR EXISTS (SELECT 1 FROM json_each(i.known, '$.commands') WHERE value IN (SELECT \
             value FROM json_each($1)))
             ORDER BY is_pursued DESC",
        )
        .bind(serde_json::to_string(&naming).expect("names of blobs are text"))
        .bind(Status::Deleted.as_str())
        .fetch_all(&self.read)
        .await?;
        for row in &rows {
            let is_pursued = get::<i64>(row, "is_pursued")? > 0;
            let is_user = is_pursued
                || self
                    .may_be_live(word(row, "id")?)
                    .await?
                    .iter()
                    .any(|commands| naming.contains(commands));
            if is_user {
                return Ok(Some(SecretUser {
                    application: word(row, "application")?,
                    service: word(row, "service")?,
                    is_pursued,
                }));
            }
        }
        Ok(None)
    }

    /// All commands that ask for this secret. Those that cannot be read start nothing that could.
    async fn naming(&self, key: &str) -> Result<BTreeSet<BlobId>> {
        let mut rows = sqlx::query("SELECT digest, body FROM compiled WHERE instr(body, $1) > 0")
            .bind(key)
            .fetch(&self.read);
        let mut naming = BTreeSet::new();
        while let Some(row) = rows.try_next().await? {
            if json::<Commands>(&row, "body")
                .is_ok_and(|commands| commands.secret_keys().contains(key))
            {
                naming.insert(word(&row, "digest")?);
            }
        }
        Ok(naming)
    }

    /// The row of a new version, sealed.
    pub(super) fn sealed_secret(&self, key: &str, version: u64, value: &[u8]) -> String {
        self.sealer.seal(&purpose(key, version), value)
    }
}

pub(super) async fn insert(
    connection: &mut Connection,
    key: &str,
    version: u64,
    sealed: &str,
    at: Timestamp,
    by: &str,
) -> Result<()> {
    sqlx::query(
        "INSERT INTO secrets (key, version, sealed, created_at, created_by) VALUES ($1, $2, $3, \
         $4, $5)",
    )
    .bind(key)
    .bind(version.cast_signed())
    .bind(sealed)
    .bind(at.as_millis())
    .bind(by)
    .execute(connection)
    .await?;
    Ok(())
}

pub(super) async fn delete(connection: &mut Connection, key: &str) -> Result<()> {
    sqlx::query(
        "INSERT INTO secret_versions (key, last) SELECT key, MAX(version) FROM secrets WHERE key \
         = $1 GROUP BY key
         ON CONFLICT (key) DO UPDATE SET last = excluded.last",
    )
    .bind(key)
    .execute(&mut *connection)
    .await?;
    sqlx::query("DELETE FROM secrets WHERE key = $1").bind(key).execute(connection).await?;
    Ok(())
}
