//! What an instance was given that may be live there: the newest apply that succeeded, the newest
//! fetch that found what is desired, all applies begun since that success, and whatever commands of
//! its newest jobs there were.

use engine::action::StartJob;
use engine::state::Matched;
use schema::id::{BlobId, InstanceId, JobId};
use schema::status::{JobKind, JobStatus, Status};
use schema::time::Timestamp;
use sqlx::QueryBuilder;

use super::jobs::JobRow;
use super::row::{count, get, instant, instant_or_null, json_or_null, word};
use super::secrets::purpose;
use super::{Db, Result, Row, Store};

/// Most different commands of applies that may have left something: those of some releases that
/// failed one after the other.
const BEGUN_LIMIT: i64 = 16;

/// Most channels of a service that a config has taken away and that are thought of.
const GONE_LIMIT: i64 = 4;

/// Most versions of one secret that are opened: those that were set while one job waited for its
/// start, or over some failures.
const VERSIONS_LIMIT: i64 = 256;

/// How far the clocks of two machines may be apart, milliseconds: when a job began is told by the
/// one that it ran on. 10 minutes.
const CLOCKS_APART_MS: i64 = 600_000;

/// Jobs of one instance with the same commands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobsOfCommands {
    /// Their commands.
    pub compiled: BlobId,
    /// When the first of them was decided.
    pub since: Timestamp,
    /// When the first fetch was decided whose files one of them was handed, or that one of them
    /// was; the beginning of time where nobody knows.
    pub fetched_since: Timestamp,
    /// Until when the last of them may have been given its values; `None` = that may still come.
    pub until: Option<Timestamp>,
    /// Whether what they were given was live afterwards; else it may be.
    pub is_live: bool,
}

impl JobsOfCommands {
    fn of_fetch(matched: &Matched) -> Self {
        Self {
            compiled: matched.compiled,
            since: matched.decided_at,
            fetched_since: matched.decided_at,
            until: Some(matched.ended_at.plus_ms(CLOCKS_APART_MS)),
            is_live: true,
        }
    }

    /// Jobs of which only the commands are remembered.
    fn of_commands(compiled: BlobId) -> Self {
        let since = Timestamp::from_millis(0);
        Self { compiled, since, fetched_since: since, until: None, is_live: false }
    }

    fn of_applies(row: &Row, is_live: bool) -> Result<Self> {
        let is_waiting = get::<i64>(row, "is_waiting")? > 0;
        Ok(Self {
            compiled: word(row, "digest")?,
            since: instant(row, "since")?,
            fetched_since: instant(row, "fetched_since")?,
            until: instant_or_null(row, "until")?
                .filter(|_| !is_waiting)
                .map(|until| until.plus_ms(CLOCKS_APART_MS)),
            is_live,
        })
    }
}

/// What is kept of an apply's start when it is over.
pub(super) fn kept(job: &JobRow) -> Option<&StartJob> {
    job.start.as_deref().filter(|start| start.kind == JobKind::Apply)
}

/// Applies by their commands. One of before there was this column has those of its release, as they
/// are now.
const APPLIES: &str = "SELECT COALESCE(j.compiled, rc.compiled) AS digest, MIN(j.created_at) AS \
                       since,
    MAX(COALESCE(j.started_at, j.ended_at)) AS until, MIN(COALESCE(f.created_at, 0)) AS \
                       fetched_since,
    MAX(CASE WHEN COALESCE(j.started_at, j.ended_at) IS NULL THEN 1 ELSE 0 END) AS is_waiting
    FROM jobs AS j LEFT JOIN jobs AS f ON f.id = j.fetch_job
    LEFT JOIN release_channels AS rc ON rc.release_id = j.release_id AND rc.channel_id = \
                       j.channel_id WHERE ";

impl Store {
    /// What other applies of an instance than `job` were given that may have been live there at
    /// some time since `at`: the newest that had succeeded by then, and those that were decided
    /// after it and may have begun, newest first.
    pub async fn given(
        &self,
        instance: InstanceId,
        job: JobId,
        at: Timestamp,
    ) -> Result<(Vec<JobsOfCommands>, Vec<JobsOfCommands>)> {
        let arrived: Option<i64> = sqlx::query_scalar(
            "SELECT seq FROM jobs WHERE instance_id = $1 AND kind = $3 AND +status = $4 AND id <> \
             $2 AND ended_at <= $5
             ORDER BY seq DESC LIMIT 1",
        )
        .bind(instance.to_string())
        .bind(job.to_string())
        .bind(JobKind::Apply.as_str())
        .bind(JobStatus::Succeeded.as_str())
        .bind(at.as_millis())
        .fetch_optional(&self.read)
        .await?;
        let live = QueryBuilder::<Db>::new(APPLIES)
            .push("j.seq = ")
            .push_bind(arrived)
            .push(" GROUP BY digest")
            .build()
            .fetch_all(&self.read)
            .await?;
        let begun = QueryBuilder::<Db>::new(APPLIES)
            .push("j.instance_id = ")
            .push_bind(instance.to_string())
            .push(" AND j.kind = ")
            .push_bind(JobKind::Apply.as_str())
            .push(" AND j.id <> ")
            .push_bind(job.to_string())
            .push(" AND j.seq > ")
            .push_bind(arrived.unwrap_or_default())
            .push(" AND (j.started_at IS NOT NULL OR j.ended_at IS NULL OR j.status <> ")
            .push_bind(JobStatus::Failed.as_str())
            .push(") GROUP BY digest ORDER BY MAX(j.seq) DESC LIMIT ")
            .push_bind(BEGUN_LIMIT)
            .build()
            .fetch_all(&self.read)
            .await?;
        // What cannot be read of the past keeps no job from its start.
        let live = live.iter().filter_map(|row| JobsOfCommands::of_applies(row, true).ok());
        let begun = begun.iter().filter_map(|row| JobsOfCommands::of_applies(row, false).ok());
        Ok((live.collect(), begun.collect()))
    }

    /// What an instance remembers of the jobs that it was given: the newest fetch that found what
    /// is desired, and the commands there were, newest first. With what the service's channels
    /// remember that a config has taken away: one of them may have had another name.
    pub async fn remembered(
        &self,
        instance: InstanceId,
    ) -> Result<(Vec<JobsOfCommands>, Vec<JobsOfCommands>)> {
        let rows = sqlx::query(
            "SELECT json_extract(state, '$.look.matched') AS matched, json_extract(state, \
             '$.commands') AS commands
             FROM instances WHERE json_valid(state) AND id IN (SELECT $1 UNION ALL SELECT id FROM (
                 SELECT gone.id FROM instances AS gone WHERE gone.service_id = (SELECT service_id \
             FROM instances WHERE id = $1)
                 AND +gone.status = $2 ORDER BY gone.since DESC LIMIT $3))
             ORDER BY id = $1 DESC, since DESC",
        )
        .bind(instance.to_string())
        .bind(Status::Deleted.as_str())
        .bind(GONE_LIMIT)
        .fetch_all(&self.read)
        .await?;
        let matched =
            rows.iter().filter_map(|row| json_or_null::<Matched>(row, "matched").ok().flatten());
        let commands = rows
            .iter()
            .filter_map(|row| json_or_null::<Vec<BlobId>>(row, "commands").ok().flatten());
        let commands = commands.flat_map(|commands| commands.into_iter().rev());
        Ok((
            matched.map(|matched| JobsOfCommands::of_fetch(&matched)).collect(),
            commands.map(JobsOfCommands::of_commands).collect(),
        ))
    }

    /// The commands of which something may be live at an instance: those of the newest apply that
    /// succeeded, or of a later fetch that found what is desired, and those of all applies
    /// begun since.
    pub(super) async fn may_be_live(&self, instance: InstanceId) -> Result<Vec<BlobId>> {
        let row = sqlx::query(
            "SELECT json_extract(state, '$.look.matched') AS matched FROM instances WHERE id = $1 \
             AND json_valid(state)",
        )
        .bind(instance.to_string())
        .fetch_optional(&self.read)
        .await?;
        let matched = row.and_then(|row| json_or_null::<Matched>(&row, "matched").ok().flatten());
        let rows = sqlx::query(
            "SELECT COALESCE(j.compiled, rc.compiled) AS digest, j.status, j.created_at FROM jobs \
             AS j
             LEFT JOIN release_channels AS rc ON rc.release_id = j.release_id AND rc.channel_id = \
             j.channel_id
             WHERE j.instance_id = $1 AND j.kind = $2 AND (j.started_at IS NOT NULL OR j.ended_at \
             IS NULL OR j.status <> $4)
             AND j.seq >= COALESCE((SELECT MAX(seq) FROM jobs WHERE instance_id = $1 AND kind = $2 \
             AND +status = $3), 0)
             ORDER BY j.seq",
        )
        .bind(instance.to_string())
        .bind(JobKind::Apply.as_str())
        .bind(JobStatus::Succeeded.as_str())
        .bind(JobStatus::Failed.as_str())
        .fetch_all(&self.read)
        .await?;
        let mut live = Vec::new();
        let mut matched = matched;
        for row in &rows {
            let (decided_at, status) =
                (instant(row, "created_at")?, word::<JobStatus>(row, "status")?);
            // No apply is under way while a fetch looks, so it saw what all before it had left.
            let is_seen = matched.as_ref().is_some_and(|matched| decided_at <= matched.decided_at);
            if !is_seen {
                live.extend(word::<BlobId>(row, "digest"));
                matched = matched.filter(|_| status != JobStatus::Succeeded);
            }
        }
        live.extend(matched.map(|matched| matched.compiled));
        Ok(live)
    }

    /// The values that the latest version of a secret may have been between these times, both
    /// included, newest first; `until`: to this day. Those that cannot be opened any more are
    /// left out.
    pub async fn secret_between(
        &self,
        key: &str,
        since: Timestamp,
        until: Option<Timestamp>,
    ) -> Result<Vec<Vec<u8>>> {
        let rows = sqlx::query(
            "SELECT version, sealed FROM secrets WHERE key = $1 AND created_at <= $3 AND version \
             >= COALESCE(
             (SELECT MAX(version) FROM secrets WHERE key = $1 AND created_at <= $2), 0) ORDER BY \
             version DESC LIMIT $4",
        )
        .bind(key)
        .bind(since.as_millis())
        .bind(until.map_or(i64::MAX, Timestamp::as_millis))
        .bind(VERSIONS_LIMIT)
        .fetch_all(&self.read)
        .await?;
        let value = |row: &Row| {
            let version = count(row, "version").ok()?;
            let sealed: String = get(row, "sealed").ok()?;
            self.sealer.unseal(&purpose(key, version), &sealed).ok()
        };
        Ok(rows.iter().filter_map(value).collect())
    }
}
