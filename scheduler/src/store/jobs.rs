//! Jobs: one row for each execution of a command. A row is always written whole from what the
//! driver holds in memory, so that however often a job changes within one commit, it costs one row
//! of one statement.

use engine::action::{StartJob, StopReason};
use schema::api::{Job, Page};
use schema::id::{ApplicationId, ChannelId, InstanceId, JobId, ReleaseId, RuntimeName, ServiceId};
use schema::report::Report;
use schema::status::{JobKind, JobStatus};
use schema::target::{JobTarget, PlacedJob};
use schema::time::Timestamp;
use serde::{Deserialize, Serialize};
use sqlx::QueryBuilder;

use super::row::{
    flag, get, instant, instant_or_null, json_or_null, named, number, pieces, readable, small,
    to_json, word, word_or_null,
};
use super::{
    Connection, Db, PageRequest, Result, Row, Store, StoreError, Unreadable, given, structured,
};

mod list;

use list::{push_count, push_page};

#[derive(Debug, Clone, PartialEq)]
pub struct JobRow {
    pub id: JobId,
    /// Order of decision.
    pub seq: i64,
    /// The instance that it is for.
    pub instance: InstanceId,
    pub service: ServiceId,
    pub channel: ChannelId,
    /// The release that it is for.
    pub release: ReleaseId,
    /// Which command.
    pub kind: JobKind,
    /// The desired version.
    pub version: String,
    pub runtime: RuntimeName,
    /// Where it runs; `None` in rows of before this was kept.
    pub target: Option<JobTarget>,
    /// From 1.
    pub attempt: u32,
    /// How it stands.
    pub status: JobStatus,
    /// The command's exit code.
    pub exit_code: Option<i32>,
    /// Why it was started or why it failed.
    pub message: String,
    /// When it was decided.
    pub created_at: Timestamp,
    /// When its command started.
    pub started_at: Option<Timestamp>,
    /// When it ended.
    pub ended_at: Option<Timestamp>,
    /// What the wrapper told, without inline streams.
    pub report: Option<Box<Report>>,
    /// How to start it, until it is over: the pending start itself.
    pub start: Option<Box<StartJob>>,
    /// For a dry run: why it was asked to stop. (What the engine stops it remembers itself.)
    pub stop: Option<StopReason>,
    /// Asked for by a person as a dry run: never counts as the instance's.
    pub once: bool,
}

impl JobRow {
    /// The job for whoever has to find its runner.
    pub fn placed(&self) -> PlacedJob {
        PlacedJob { job: self.id, target: self.target.clone() }
    }

    /// Says again why it was started, in place of what it waited for.
    pub fn waits_no_more(&mut self) {
        if let Some(start) = &self.start {
            self.message.clone_from(&start.why);
        }
    }
}

/// What is stored of a start until the job is over.
#[derive(Serialize, Deserialize)]
struct Pending<S> {
    #[serde(flatten)]
    start: S,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    stop: Option<StopReason>,
}

/// Which jobs are wanted; `None` means any.
#[derive(Debug, Clone, Default)]
pub struct JobFilter {
    /// Of this application.
    pub application: Option<ApplicationId>,
    /// Of this service.
    pub service: Option<ServiceId>,
    /// Of this channel.
    pub channel: Option<ChannelId>,
    /// Of this kind.
    pub kind: Option<JobKind>,
    /// In this status.
    pub status: Option<JobStatus>,
}

fn read_columns(row: &Row) -> Result<JobRow> {
    let pending: Option<Pending<StartJob>> = json_or_null(row, "start")?;
    let (start, stop) = pending.map(|pending| (Box::new(pending.start), pending.stop)).unzip();
    Ok(JobRow {
        id: word(row, "id")?,
        seq: number(row, "seq")?,
        instance: word(row, "instance_id")?,
        service: word(row, "service_id")?,
        channel: word(row, "channel_id")?,
        release: word(row, "release_id")?,
        kind: word(row, "kind")?,
        version: get(row, "version")?,
        runtime: word(row, "runtime")?,
        target: word_or_null(row, "target")?,
        attempt: small(row, "attempt")?,
        status: word(row, "status")?,
        exit_code: exit_code(row)?,
        message: get(row, "message")?,
        created_at: instant(row, "created_at")?,
        started_at: instant_or_null(row, "started_at")?,
        ended_at: instant_or_null(row, "ended_at")?,
        report: structured::put_together(row)?,
        start,
        stop: stop.flatten(),
        once: flag(row, "once")?,
    })
}

/// A process's exit code, which fits into 32 bits whoever counts.
fn exit_code(row: &Row) -> Result<Option<i32>> {
    if get::<Option<i64>>(row, "exit_code")?.is_none() {
        Ok(None)
    } else {
        small(row, "exit_code").map(Some)
    }
}

/// What tells jobs apart.
const KEYS: &[&str] = &["id", "seq"];

fn read_row(row: &Row) -> Result<JobRow> {
    named("jobs", KEYS, row, read_columns(row))
}

fn shown(row: &Row, with_report: bool) -> Result<Job> {
    named("jobs", KEYS, row, shown_columns(row, with_report))
}

fn shown_columns(row: &Row, with_report: bool) -> Result<Job> {
    Ok(Job {
        id: word(row, "id")?,
        kind: word(row, "kind")?,
        application: word(row, "application")?,
        service: word(row, "service")?,
        channel: word(row, "channel")?,
        runtime: word(row, "runtime")?,
        version: get(row, "version")?,
        attempt: small(row, "attempt")?,
        status: word(row, "status")?,
        exit_code: exit_code(row)?,
        message: get(row, "message")?,
        created_at: instant(row, "created_at")?,
        started_at: instant_or_null(row, "started_at")?,
        ended_at: instant_or_null(row, "ended_at")?,
        report: if with_report {
            structured::put_together(row)?.map(|report| *report)
        } else {
            None
        },
    })
}

/// A whole row, and the document that is kept beside it.
const WHOLE: &str = "SELECT j.*, d.body AS document FROM jobs AS j LEFT JOIN structured AS d ON \
                     d.digest = j.structured";

/// What people see of one job, with its report.
const SHOWN_WHOLE: &str = "SELECT j.*, d.body AS document, a.name AS application, s.name AS \
                           service, c.name AS channel FROM jobs AS j
    LEFT JOIN services AS s ON s.id = j.service_id LEFT JOIN applications AS a ON a.id = \
                           s.application_id LEFT JOIN channels AS c ON c.id = j.channel_id
    LEFT JOIN structured AS d ON d.digest = j.structured";

/// Without what a list does not show: reports and starts are most of a row.
const SHOWN: &str = "SELECT j.id, j.seq, j.kind, j.version, j.runtime, j.attempt, j.status, \
                     j.exit_code, j.message, j.created_at, j.started_at,
    j.ended_at, a.name AS application, s.name AS service, c.name AS channel";
const JOINED: &str = " FROM jobs AS j
    LEFT JOIN services AS s ON s.id = j.service_id LEFT JOIN applications AS a ON a.id = \
                      s.application_id LEFT JOIN channels AS c ON c.id = j.channel_id";

impl Store {
    /// Jobs, newest first; counted up to [`COUNT_LIMIT`](super::COUNT_LIMIT).
    pub async fn jobs(&self, filter: &JobFilter, page: &PageRequest) -> Result<Page<Job>> {
        let mut query = QueryBuilder::<Db>::new("");
        push_count(&mut query, filter);
        let total: i64 = query.build_query_scalar().fetch_one(&self.lists).await?;
        let mut query = QueryBuilder::<Db>::new("");
        push_page(&mut query, filter, page.number()?, page.rows());
        let rows = query.build().fetch_all(&self.lists).await?;
        page.page(
            rows,
            total,
            |row| Ok(get::<i64>(row, "seq")?.to_string()),
            |row| shown(row, false),
        )
    }

    /// One job, with its report.
    pub async fn job(&self, id: JobId) -> Result<Option<Job>> {
        let mut query = QueryBuilder::<Db>::new(SHOWN_WHOLE);
        query.push(" WHERE j.id = ").push_bind(id.to_string());
        let row = query.build().fetch_optional(&self.read).await?;
        row.as_ref().map(|row| shown(row, true)).transpose()
    }

    /// One job as it is stored.
    pub async fn job_row(&self, id: JobId) -> Result<Option<JobRow>> {
        let row = QueryBuilder::<Db>::new(WHOLE)
            .push(" WHERE j.id = ")
            .push_bind(id.to_string())
            .build()
            .fetch_optional(&self.read)
            .await?;
        row.as_ref().map(read_row).transpose()
    }

    /// Where a job runs, as far as its row says it.
    pub async fn placed_job(&self, job: JobId) -> Result<PlacedJob> {
        let row = sqlx::query("SELECT id, seq, target FROM jobs WHERE id = $1")
            .bind(job.to_string())
            .fetch_optional(&self.read)
            .await?;
        let target =
            row.map(|row| named("jobs", KEYS, &row, word_or_null(&row, "target"))).transpose()?;
        Ok(PlacedJob { job, target: target.flatten() })
    }

    /// Jobs with numbers below this one that are over, newest first; at most `limit`.
    pub(super) async fn jobs_below(&self, below: i64, limit: u32) -> Result<Vec<JobRow>> {
        let mut query = QueryBuilder::<Db>::new(WHOLE);
        query.push(" WHERE j.ended_at IS NOT NULL AND j.seq < ").push_bind(below);
        query.push(" ORDER BY j.seq DESC LIMIT ").push_bind(i64::from(limit));
        Ok(readable(query.build().fetch_all(&self.read).await?, read_row)?.0)
    }

    /// Jobs that are not over, oldest first, and what can be told of those whose rows cannot be
    /// read.
    pub async fn unfinished_jobs(&self) -> Result<(Vec<JobRow>, Vec<Unreadable>)> {
        let rows = QueryBuilder::<Db>::new(WHOLE)
            .push(" WHERE j.ended_at IS NULL ORDER BY j.seq")
            .build()
            .fetch_all(&self.read)
            .await?;
        Unreadable::apart(&rows, read_row, |row, why| {
            let instance = word(row, "instance_id").or_else(|_| {
                Ok::<_, StoreError>(InstanceId::of(
                    word(row, "service_id")?,
                    word(row, "channel_id")?,
                ))
            });
            Unreadable { instance: instance.ok(), job: word(row, "id").ok(), action: None, why }
        })
    }
}

pub(super) async fn put(connection: &mut Connection, jobs: &[JobRow]) -> Result<()> {
    let stored: Vec<_> = jobs.iter().map(structured::take_apart).collect();
    let values = stored
        .iter()
        .filter_map(|stored| stored.value.as_ref())
        .map(|(digest, body)| (digest.as_str(), body.as_str()))
        .collect();
    structured::put(connection, &values).await?;
    structured::note_blobs(connection, jobs).await?;
    let jobs: Vec<_> = jobs.iter().zip(&stored).collect();
    for piece in pieces(&jobs) {
        QueryBuilder::<Db>::new(
            "INSERT INTO jobs (id, seq, instance_id, service_id, channel_id, release_id, kind, \
             version, runtime, attempt, status, exit_code, message, created_at, started_at, \
             ended_at, report, structured, start, once, compiled, fetch_job, application_id, \
             target) ",
        )
        .push_values(piece, |mut row, (job, stored)| {
            row.push_bind(job.id.to_string())
                .push_bind(job.seq)
                .push_bind(job.instance.to_string())
                .push_bind(job.service.to_string())
                .push_bind(job.channel.to_string())
                .push_bind(job.release.to_string())
                .push_bind(job.kind.as_str())
                .push_bind(job.version.clone())
                .push_bind(job.runtime.to_string())
                .push_bind(i64::from(job.attempt))
                .push_bind(job.status.as_str())
                .push_bind(job.exit_code.map(i64::from))
                .push_bind(job.message.clone())
                .push_bind(job.created_at.as_millis())
                .push_bind(job.started_at.map(Timestamp::as_millis))
                .push_bind(job.ended_at.map(Timestamp::as_millis))
                .push_bind(stored.report.clone())
                .push_bind(stored.value.as_ref().map(|(digest, _)| digest.clone()))
                .push_bind(
                    job.start
                        .as_ref()
                        .map(|start| to_json(&Pending { start, stop: job.stop.clone() })),
                )
                .push_bind(i64::from(job.once))
                .push_bind(given::kept(job).map(|start| start.compiled.to_string()))
                .push_bind(
                    given::kept(job)
                        .and_then(|start| start.fetch_job)
                        .map(|fetch| fetch.to_string()),
                )
                .push("(SELECT application_id FROM services WHERE id = ")
                .push_bind_unseparated(job.service.to_string())
                .push_unseparated(")")
                .push_bind(job.target.as_ref().map(ToString::to_string));
        })
        .push(
            " ON CONFLICT (id) DO UPDATE SET status = excluded.status, exit_code = \
             excluded.exit_code, message = excluded.message, started_at = excluded.started_at, \
             ended_at = excluded.ended_at, report = excluded.report, structured = \
             excluded.structured, start = excluded.start",
        )
        .build()
        .execute(&mut *connection)
        .await?;
    }
    Ok(())
}

/// Writes that a job is over whose row cannot be read, as far as it goes.
pub(super) async fn give_up(
    connection: &mut Connection,
    job: JobId,
    at: Timestamp,
    why: &str,
) -> Result<()> {
    sqlx::query(
        "UPDATE jobs SET status = $2, ended_at = $3, message = $4, start = NULL WHERE id = $1 AND \
         ended_at IS NULL",
    )
    .bind(job.to_string())
    .bind(JobStatus::Unknown.as_str())
    .bind(at.as_millis())
    .bind(why)
    .execute(connection)
    .await?;
    Ok(())
}

#[cfg(test)]
mod tests;
