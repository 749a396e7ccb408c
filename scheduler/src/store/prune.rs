//! What retention reads and removes. Each call is one small transaction or one short query: commits
//! wait for no more.

use futures::TryStreamExt;
use schema::id::{BlobId, JobId, ReleaseId};
use schema::report::Report;
use schema::status::{JobKind, JobStatus};
use schema::time::Timestamp;
use sqlx::sqlite::SqliteRow;
use sqlx::{Connection as _, QueryBuilder, Row as _};

use super::row::{LARGEST, get, instant, json_or_null, named, word};
use super::step::{Key, RowsStep};
use super::{Connection, Db, Named, Result, Store, StoreError, meta, structured};
use crate::crash;

mod blobs;
mod releases;

pub(super) use blobs::LEFT;

/// The jobs of one kind of one instance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobGroup {
    /// The instance's id.
    pub instance: String,
    pub kind: JobKind,
}

/// A job that is not among the newest of its kind and instance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OldJob {
    pub id: JobId,
    /// How it ended.
    pub status: JobStatus,
    /// When it was decided.
    pub created_at: Timestamp,
    /// Whether it is over.
    pub is_over: bool,
    /// Whether a newer one of its kind and instance ended the same way.
    pub has_newer: bool,
}

/// An entry of the log, as far as retention looks at it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OldEntry {
    /// Its number.
    pub seq: i64,
    /// When it was written.
    pub at: Timestamp,
    pub kind: String,
    /// Whether a person did it.
    pub by_person: bool,
}

/// The newest failed job of a group. The index is named, because one of all jobs of a status looks
/// as good to SQLite, and has those of all instances.
const NEWEST_FAILED: &str = "SELECT seq, report, CAST(report AS BLOB) AS text FROM jobs INDEXED \
                             BY jobs_failed WHERE instance_id = $1 AND kind = $2 AND status = \
                             'FAILED' AND seq <= $3 ORDER BY seq DESC LIMIT 1";

/// The newest succeeded job of a group, which is near the end of them.
const NEWEST_SUCCEEDED: &str = "SELECT seq, report, CAST(report AS BLOB) AS text FROM jobs \
                                INDEXED BY jobs_by_instance_and_kind WHERE instance_id = $1 AND \
                                kind = $2 AND status = 'SUCCEEDED' AND seq <= $3 ORDER BY seq \
                                DESC LIMIT 1";

impl Store {
    /// Whether a daemon of ours, or a program that knows that it is alone, writes here: begins a
    /// small change.
    pub(super) async fn change<T>(
        &self,
        make: impl AsyncFnOnce(&mut Connection) -> Result<T>,
    ) -> Result<T> {
        let mut writer = self.write.acquire().await?;
        let changed = async {
            let mut transaction = writer.begin_with("BEGIN IMMEDIATE").await?;
            if let Some(lease) = &self.lease {
                lease.check(&mut transaction).await?;
            }
            let made = make(&mut transaction).await?;
            transaction.commit().await?;
            crash::at(crash::AFTER_PRUNE);
            Ok(made)
        }
        .await;
        if changed.is_err() {
            // As after a commit that failed: what the connection knows may be wrong.
            writer.close_on_drop();
        }
        changed
    }

    /// Every id that a state or a job under way names.
    pub async fn named(&self) -> Result<Named> {
        let mut named = Named::default();
        // As bytes: what stands in a row that cannot be read is needed no less.
        for query in [
            "SELECT CAST(state AS BLOB) AS text FROM instances WHERE state IS NOT NULL",
            "SELECT CAST(start AS BLOB) AS text FROM jobs WHERE ended_at IS NULL AND start IS NOT \
             NULL",
        ] {
            let mut rows = sqlx::query(query).fetch(&self.read);
            while let Some(row) = rows.try_next().await? {
                named.take(&String::from_utf8_lossy(row.try_get("text")?));
            }
        }
        Ok(named)
    }

    /// The group after this place, in an order of their own: its place, and the group or why it is
    /// none of ours.
    pub async fn job_group_after(
        &self,
        after: &Key,
    ) -> Result<Option<(Key, std::result::Result<JobGroup, String>)>> {
        let row = sqlx::query(
            "SELECT seq, CAST(instance_id AS BLOB) AS place, CAST(kind AS BLOB) AS named, \
             instance_id, kind FROM jobs
             WHERE (instance_id, kind) > (CAST($1 AS TEXT), CAST($2 AS TEXT)) AND \
             typeof(instance_id) = 'text' AND typeof(kind) = 'text'
             ORDER BY instance_id, kind LIMIT 1",
        )
        .bind(&after.0)
        .bind(&after.1)
        .fetch_optional(&self.read)
        .await?;
        let Some(row) = row else { return Ok(None) };
        let group =
            || Ok(JobGroup { instance: get(&row, "instance_id")?, kind: word(&row, "kind")? });
        let group = match named("jobs", &["seq"], &row, group()) {
            Ok(group) => Ok(group),
            Err(StoreError::Corrupt(why)) => Err(why),
            Err(error) => return Err(error),
        };
        Ok(Some(((row.try_get("place")?, row.try_get("named")?), group)))
    }

    /// The number of the oldest of the newest `keep` jobs of a group; `None` when there are no more
    /// than these.
    pub async fn newest_jobs_from(&self, group: &JobGroup, keep: u32) -> Result<Option<i64>> {
        let seqs: Vec<i64> = sqlx::query_scalar(
            "SELECT seq FROM jobs WHERE instance_id = $1 AND kind = $2 AND seq <= $4 ORDER BY seq \
             DESC LIMIT 2 OFFSET $3",
        )
        .bind(&group.instance)
        .bind(group.kind.as_str())
        .bind(i64::from(keep) - 1)
        .bind(LARGEST)
        .fetch_all(&self.read)
        .await?;
        Ok(seqs.first().copied().filter(|_| seqs.len() == 2))
    }

    /// Jobs of a group with numbers above `after` and below `below`, oldest first.
    pub async fn old_jobs(
        &self,
        group: &JobGroup,
        after: i64,
        below: i64,
        limit: u32,
    ) -> Result<RowsStep<OldJob>> {
        let rows = sqlx::query(
            "SELECT id, seq, status, created_at, ended_at FROM jobs
             WHERE instance_id = $1 AND kind = $2 AND seq > $3 AND seq < $4 ORDER BY seq LIMIT $5",
        )
        .bind(&group.instance)
        .bind(group.kind.as_str())
        .bind(after)
        .bind(below)
        .bind(i64::from(limit))
        .fetch_all(&self.read)
        .await?;
        let newest = [
            self.newest(group, JobStatus::Succeeded).await?,
            self.newest(group, JobStatus::Failed).await?,
        ];
        RowsStep::read("jobs", &rows, |row| {
            let (seq, status): (i64, JobStatus) = (row.try_get("seq")?, word(row, "status")?);
            let newest = match status {
                JobStatus::Succeeded => &newest[0],
                _ => &newest[1],
            };
            Ok(OldJob {
                id: word(row, "id")?,
                status,
                created_at: instant(row, "created_at")?,
                is_over: get::<Option<i64>>(row, "ended_at")?.is_some(),
                has_newer: newest.as_ref().is_some_and(|newest| {
                    newest.try_get::<i64, _>("seq").is_ok_and(|newest| newest > seq)
                }),
            })
        })
    }

    /// The row of the newest job of a group that ended this way: its number and its report.
    async fn newest(&self, group: &JobGroup, status: JobStatus) -> Result<Option<SqliteRow>> {
        let newest = if status == JobStatus::Failed { NEWEST_FAILED } else { NEWEST_SUCCEEDED };
        Ok(sqlx::query(newest)
            .bind(&group.instance)
            .bind(group.kind.as_str())
            .bind(LARGEST)
            .fetch_optional(&self.read)
            .await?)
    }

    /// The blobs that the newest success and the newest failure of a group left; of a report that
    /// cannot be read whatever stands in it.
    pub async fn landmarks(&self, group: &JobGroup) -> Result<Vec<BlobId>> {
        let mut blobs = Vec::new();
        for status in [JobStatus::Succeeded, JobStatus::Failed] {
            let Some(row) = self.newest(group, status).await? else { continue };
            match json_or_null::<Report>(&row, "report") {
                Ok(report) => blobs.extend(report.iter().flat_map(structured::blobs_of)),
                Err(_) => {
                    let mut named = Named::default();
                    named.take(&String::from_utf8_lossy(
                        row.try_get::<Option<&[u8]>, _>("text")?.unwrap_or_default(),
                    ));
                    blobs.extend(named.blobs);
                }
            }
        }
        Ok(blobs)
    }

    /// Removes jobs, and the documents that no other job printed. Returns how many documents went.
    pub async fn remove_jobs(&self, jobs: &[JobId]) -> Result<u64> {
        self.change(async |to| {
            let mut query = QueryBuilder::<Db>::new(
                "SELECT DISTINCT structured FROM jobs WHERE structured IS NOT NULL AND id IN (",
            );
            ids(&mut query, jobs);
            let documents = texts(query.build().fetch_all(&mut *to).await?);
            let mut query = QueryBuilder::<Db>::new("DELETE FROM jobs WHERE id IN (");
            ids(&mut query, jobs);
            query.build().execute(&mut *to).await?;
            let mut gone = 0;
            for document in documents {
                let done = sqlx::query(
                    "DELETE FROM structured WHERE digest = $1 AND NOT EXISTS (SELECT 1 FROM jobs \
                     WHERE jobs.structured = $1)",
                )
                .bind(document)
                .execute(&mut *to)
                .await?;
                gone += done.rows_affected();
            }
            Ok(gone)
        })
        .await
    }

    /// Entries of the log after this number, oldest first; never the newest, which the next number
    /// follows.
    pub async fn old_entries(&self, after: i64, limit: u32) -> Result<RowsStep<OldEntry>> {
        let rows = sqlx::query(
            "SELECT seq, at, kind, actor FROM events WHERE seq > $1 AND seq < (SELECT MAX(seq) \
             FROM events WHERE seq <= $3) ORDER BY seq LIMIT $2",
        )
        .bind(after)
        .bind(i64::from(limit))
        .bind(LARGEST)
        .fetch_all(&self.read)
        .await?;
        RowsStep::read("events", &rows, |row| {
            Ok(OldEntry {
                seq: row.try_get("seq")?,
                at: instant(row, "at")?,
                kind: get(row, "kind")?,
                by_person: get::<Option<String>>(row, "actor")?.is_some(),
            })
        })
    }

    /// Removes entries of the log, and notes how far this has come.
    pub async fn remove_entries(&self, entries: &[i64], noted: (&'static str, i64)) -> Result<()> {
        self.change(async |to| {
            if !entries.is_empty() {
                let mut query = QueryBuilder::<Db>::new("DELETE FROM events WHERE seq IN (");
                ids(&mut query, entries);
                query.build().execute(&mut *to).await?;
            }
            meta::set(to, noted.0, &noted.1.to_string()).await
        })
        .await
    }

    /// Of these jobs those that are over, or that the database does not know.
    pub async fn over_or_unknown(&self, jobs: &[JobId]) -> Result<Vec<JobId>> {
        let mut query =
            QueryBuilder::<Db>::new("SELECT id FROM jobs WHERE ended_at IS NULL AND id IN (");
        ids(&mut query, jobs);
        let rows: Vec<String> = query.build_query_scalar().fetch_all(&self.read).await?;
        Ok(jobs.iter().copied().filter(|job| !rows.contains(&job.to_string())).collect())
    }
}

/// The first column of these rows, where it is a text.
fn texts(rows: Vec<SqliteRow>) -> Vec<String> {
    rows.iter().filter_map(|row| row.try_get(0).ok()).collect()
}

fn ids<T: ToText>(query: &mut QueryBuilder<Db>, ids: &[T]) {
    let mut list = query.separated(", ");
    for id in ids {
        id.bind(&mut list);
    }
    query.push(")");
}

/// What stands in a list of ids.
trait ToText {
    fn bind(&self, list: &mut sqlx::query_builder::Separated<'_, Db, &'static str>);
}

impl ToText for i64 {
    fn bind(&self, list: &mut sqlx::query_builder::Separated<'_, Db, &'static str>) {
        list.push_bind(*self);
    }
}

macro_rules! as_text {
    ($($type:ty),*) => {
        $(impl ToText for $type {
            fn bind(&self, list: &mut sqlx::query_builder::Separated<'_, Db, &'static str>) {
                list.push_bind(self.to_string());
            }
        })*
    };
}

as_text!(JobId, ReleaseId, BlobId);

#[cfg(test)]
mod tests;
