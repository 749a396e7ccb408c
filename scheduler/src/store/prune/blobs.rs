//! What retention reads and removes of the blobs that the database knows.

use schema::id::BlobId;
use schema::time::Timestamp;
use sqlx::{QueryBuilder, Row as _};

use super::super::row::{named, readable, word};
use super::super::step::RowsStep;
use super::super::{Db, Result, Store, StoreError, meta, structured};
use super::ids;

/// How far the noting of blobs of before has come, counted down from the newest job of then; 0 =
/// all are noted.
pub(in crate::store) const LEFT: &str = "blobs_to_note";

impl Store {
    /// Blobs that no job left since `logs`, and no apply since `applies`, after this one in the
    /// order of their last use.
    pub async fn old_blobs(
        &self,
        logs: Timestamp,
        applies: Timestamp,
        after: &(i64, Vec<u8>),
        limit: u32,
    ) -> Result<RowsStep<BlobId, (i64, Vec<u8>)>> {
        let rows = sqlx::query(
            "SELECT used_at, id, CAST(id AS BLOB) AS place FROM blobs
             WHERE (used_at, id) > ($1, CAST($2 AS TEXT)) AND used_at < $3 AND (applied_at IS NULL \
             OR applied_at < $4) AND typeof(id) = 'text'
             ORDER BY used_at, id LIMIT $5",
        )
        .bind(after.0)
        .bind(&after.1)
        .bind(logs.as_millis())
        .bind(applies.as_millis())
        .bind(i64::from(limit))
        .fetch_all(&self.read)
        .await?;
        let last = rows
            .last()
            .map(|row| Ok::<_, StoreError>((row.try_get("used_at")?, row.try_get("place")?)))
            .transpose()?;
        let (rows, unreadable) =
            readable(&rows, |row| named("blobs", &["id"], row, word(row, "id")))?;
        Ok(RowsStep { rows, unreadable, last })
    }

    /// Forgets blobs whose files are gone, but for those that a job left since.
    pub async fn remove_blobs(&self, blobs: &[BlobId], used_before: Timestamp) -> Result<()> {
        self.change(async |to| {
            let mut query = QueryBuilder::<Db>::new("DELETE FROM blobs WHERE used_at < ");
            query.push_bind(used_before.as_millis()).push(" AND id IN (");
            ids(&mut query, blobs);
            query.build().execute(to).await?;
            Ok(())
        })
        .await
    }

    /// Those of these blobs that the database knows.
    pub async fn known_blobs(&self, blobs: &[BlobId]) -> Result<std::collections::HashSet<BlobId>> {
        let mut query = QueryBuilder::<Db>::new("SELECT id FROM blobs WHERE id IN (");
        ids(&mut query, blobs);
        let rows: Vec<String> = query.build_query_scalar().fetch_all(&self.read).await?;
        rows.iter()
            .map(|id| {
                id.parse().map_err(|error| StoreError::Corrupt(format!("table blobs: {error}")))
            })
            .collect()
    }

    /// How far something has come; `None` where it has not begun, or where nobody can read how far.
    pub async fn progress(&self, key: &str) -> Result<Option<i64>> {
        match self.meta(key).await {
            Ok(text) => Ok(text.and_then(|text| text.parse().ok())),
            Err(StoreError::Corrupt(_)) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Notes the blobs of jobs that ended before blobs were noted; `false` when that is done. At
    /// most `limit` jobs at a time.
    pub async fn note_blobs_of_before(&self, limit: u32) -> Result<bool> {
        let left = match self.progress(LEFT).await? {
            Some(left) => left,
            None => self.counters().await?.job + 1,
        };
        if left == 0 {
            return Ok(false);
        }
        let jobs = self.jobs_below(left, limit).await?;
        let next = jobs.last().map_or(0, |job| job.seq);
        self.change(async |to| {
            structured::note_blobs(to, &jobs).await?;
            meta::set(to, LEFT, &next.to_string()).await
        })
        .await?;
        Ok(next != 0)
    }
}
