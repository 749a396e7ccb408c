//! Single values that belong to no family, and the numbers that are counted on from where the last run stopped.

use sqlx::Row as _;

use super::{Connection, Result, Store};

/// The numbers given out last.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counters {
    /// Of the log.
    pub event: i64,
    /// Of jobs.
    pub job: i64,
    /// Of pending actions.
    pub action: i64,
    /// Of releases.
    pub release: i64,
}

impl Store {
    /// The numbers given out last, 0 where there are none. Each is the end of an index, however long the table.
    pub async fn counters(&self) -> Result<Counters> {
        let row = sqlx::query(
            "SELECT (SELECT COALESCE(MAX(seq), 0) FROM events) AS event, (SELECT COALESCE(MAX(seq), 0) FROM jobs) AS job,
                    (SELECT COALESCE(MAX(id), 0) FROM pending_actions) AS action, (SELECT COALESCE(MAX(seq), 0) FROM releases) AS release",
        )
        .fetch_one(&self.read)
        .await?;
        Ok(Counters {
            event: row.try_get("event")?,
            job: row.try_get("job")?,
            action: row.try_get("action")?,
            release: row.try_get("release")?,
        })
    }

    /// A single value.
    pub async fn meta(&self, key: &str) -> Result<Option<String>> {
        Ok(sqlx::query_scalar("SELECT value FROM meta WHERE key = $1").bind(key).fetch_optional(&self.read).await?)
    }
}

pub(super) async fn set(connection: &mut Connection, key: &str, value: &str) -> Result<()> {
    sqlx::query("INSERT INTO meta (key, value) VALUES ($1, $2) ON CONFLICT (key) DO UPDATE SET value = excluded.value")
        .bind(key)
        .bind(value)
        .execute(connection)
        .await?;
    Ok(())
}
