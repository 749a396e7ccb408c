//! Single values that belong to no family, and the numbers that are counted on from where the last
//! run stopped.

use futures::TryStreamExt;

use super::row::{LARGEST, get, named};
use super::{Connection, Result, Store};

/// The numbers given out last.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counters {
    /// Of the log.
    pub event: i64,
    pub job: i64,
    /// Of pending actions.
    pub action: i64,
    /// Of releases.
    pub release: i64,
}

impl Store {
    /// The numbers given out last, 0 where there are none. Each is the end of an index, however
    /// long the table.
    pub async fn counters(&self) -> Result<Counters> {
        Ok(Counters {
            event: self.last("SELECT seq FROM events WHERE seq <= $1 ORDER BY seq DESC").await?,
            job: self.last("SELECT seq FROM jobs WHERE seq <= $1 ORDER BY seq DESC").await?,
            action: self
                .last("SELECT id FROM pending_actions WHERE id <= $1 ORDER BY id DESC")
                .await?,
            release: self
                .last("SELECT seq FROM releases WHERE seq <= $1 ORDER BY seq DESC")
                .await?,
        })
    }

    /// The first number that a query finds below [`LARGEST`]: what is above was never given out,
    /// and what is no number neither.
    async fn last(&self, query: &'static str) -> Result<i64> {
        let mut rows = sqlx::query_scalar::<_, i64>(query).bind(LARGEST).fetch(&self.read);
        loop {
            match rows.try_next().await {
                Ok(found) => return Ok(found.unwrap_or(0).max(0)),
                Err(sqlx::Error::ColumnDecode { .. } | sqlx::Error::Decode(_)) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// A single value.
    ///
    /// # Errors
    /// [`super::StoreError::Corrupt`] with the row when it cannot be read.
    pub async fn meta(&self, key: &str) -> Result<Option<String>> {
        let row = sqlx::query("SELECT key, value FROM meta WHERE key = $1")
            .bind(key)
            .fetch_optional(&self.read)
            .await?;
        row.map(|row| named("meta", &["key"], &row, get(&row, "value"))).transpose()
    }
}

pub(super) async fn set(connection: &mut Connection, key: &str, value: &str) -> Result<()> {
    sqlx::query(
        "INSERT INTO meta (key, value) VALUES ($1, $2) ON CONFLICT (key) DO UPDATE SET value = \
         excluded.value",
    )
    .bind(key)
    .bind(value)
    .execute(connection)
    .await?;
    Ok(())
}
