//! Secrets: every version sealed, bound to its key and number.

use schema::time::Timestamp;
use sqlx::Row as _;

use super::row::{count, instant};
use super::{Connection, PageRequest, Result, Store};

fn purpose(key: &str, version: u64) -> String {
    format!("secret `{key}` version {version}")
}

impl Store {
    /// The value of a secret and the version it is of; `version` 0 is the latest.
    pub async fn secret(&self, key: &str, version: u64) -> Result<Option<(u64, Vec<u8>)>> {
        let row = if version == 0 {
            sqlx::query("SELECT version, sealed FROM secrets WHERE key = $1 ORDER BY version DESC LIMIT 1").bind(key)
        } else {
            sqlx::query("SELECT version, sealed FROM secrets WHERE key = $1 AND version = $2")
                .bind(key)
                .bind(i64::try_from(version).unwrap_or(i64::MAX))
        };
        let Some(row) = row.fetch_optional(&self.read).await? else { return Ok(None) };
        let version = count(&row, "version")?;
        Ok(Some((version, self.sealer.unseal(&purpose(key, version), row.try_get("sealed")?)?)))
    }

    /// Keys and versions, never values.
    pub async fn secrets(&self, page: &PageRequest) -> Result<schema::api::Page<schema::api::Secret>> {
        let total: i64 = sqlx::query_scalar("SELECT COUNT(DISTINCT key) FROM secrets").fetch_one(&self.read).await?;
        let keys: Vec<(String, i64)> =
            sqlx::query_as("SELECT key, MAX(created_at) FROM secrets WHERE key > $1 GROUP BY key ORDER BY key LIMIT $2")
                .bind(page.cursor.as_deref().unwrap_or(""))
                .bind(page.rows())
                .fetch_all(&self.read)
                .await?;
        let mut secrets = Vec::new();
        for (key, created_at) in keys {
            let rows = sqlx::query("SELECT version FROM secrets WHERE key = $1 ORDER BY version").bind(&key).fetch_all(&self.read).await?;
            let versions = rows.iter().map(|row| count(row, "version")).collect::<Result<_>>()?;
            secrets.push(schema::api::Secret { key, versions, created_at: Timestamp::from_millis(created_at) });
        }
        Ok(page.page(secrets, total.unsigned_abs(), |secret| secret.key.clone(), |secret| secret))
    }

    /// When the latest version of a secret was set; `None` when there is no such secret.
    pub async fn secret_set_at(&self, key: &str) -> Result<Option<Timestamp>> {
        let row = sqlx::query("SELECT created_at FROM secrets WHERE key = $1 ORDER BY version DESC LIMIT 1").bind(key);
        row.fetch_optional(&self.read).await?.as_ref().map(|row| instant(row, "created_at")).transpose()
    }

    /// The row of a new version, sealed.
    pub(super) fn sealed_secret(&self, key: &str, version: u64, value: &[u8]) -> String {
        self.sealer.seal(&purpose(key, version), value)
    }
}

pub(super) async fn insert(connection: &mut Connection, key: &str, version: u64, sealed: &str, at: Timestamp, by: &str) -> Result<()> {
    sqlx::query("INSERT INTO secrets (key, version, sealed, created_at, created_by) VALUES ($1, $2, $3, $4, $5)")
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
    sqlx::query("DELETE FROM secrets WHERE key = $1").bind(key).execute(connection).await?;
    Ok(())
}
