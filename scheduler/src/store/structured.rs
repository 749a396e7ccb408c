//! Structured output by content, and which blobs jobs left: what is written beside the rows of
//! jobs. A document that a command prints at every poll is stored once; a blob's row says when a
//! job last left it, for retention.

use std::collections::{BTreeMap, BTreeSet};

use schema::id::BlobId;
use schema::report::Report;
use schema::status::JobKind;
use schema::time::Timestamp;
use sqlx::QueryBuilder;

use super::row::{json_or_null, pieces, to_json};
use super::{Connection, Db, JobRow, Result, Row};
use crate::blobs::is_empty;

/// Values whose text is shorter stay in the report: looking them up would cost more than they do.
const INLINE_LIMIT_BYTES: usize = 1024;

/// A job's report as its row has it, and the value that was taken out of it.
pub(super) struct StoredReport {
    pub(super) report: Option<String>,
    pub(super) value: Option<(String, String)>,
}

/// Takes the structured value out of a job's report when it is large.
pub(super) fn take_apart(job: &JobRow) -> StoredReport {
    let Some(report) = &job.report else { return StoredReport { report: None, value: None } };
    let body =
        report.structured.as_ref().and_then(|structured| structured.value.as_ref()).map(to_json);
    let Some(body) = body.filter(|body| body.len() >= INLINE_LIMIT_BYTES) else {
        return StoredReport { report: Some(to_json(report)), value: None };
    };
    let digest = BlobId::of(body.as_bytes()).to_string();
    let mut rest = report.clone();
    if let Some(structured) = &mut rest.structured {
        structured.value = None;
    }
    StoredReport { report: Some(to_json(&rest)), value: Some((digest, body)) }
}

/// The report of a row, with the structured value that was taken out of it: the column `document`
/// has it.
pub(super) fn put_together(row: &Row) -> Result<Option<Box<Report>>> {
    let mut report: Option<Box<Report>> = json_or_null(row, "report")?;
    let document: Option<serde_json::Value> = json_or_null(row, "document")?;
    if let (Some(document), Some(structured)) =
        (document, report.as_mut().and_then(|report| report.structured.as_mut()))
    {
        structured.value = Some(document);
    }
    Ok(report)
}

/// Writes the values, each once.
pub(super) async fn put(connection: &mut Connection, values: &BTreeMap<&str, &str>) -> Result<()> {
    let values: Vec<_> = values.iter().collect();
    for piece in pieces(&values) {
        QueryBuilder::<Db>::new("INSERT INTO structured (digest, body) ")
            .push_values(piece, |mut row, (digest, body)| {
                row.push_bind((**digest).to_owned()).push_bind((**body).to_owned());
            })
            .push(" ON CONFLICT (digest) DO NOTHING")
            .build()
            .execute(&mut *connection)
            .await?;
    }
    Ok(())
}

/// The blobs that a report names.
pub fn blobs_of(report: &Report) -> BTreeSet<BlobId> {
    let files = report.files.iter().filter_map(|file| file.content_blob_id);
    [report.stdout_blob_id, report.stderr_blob_id, report.order_blob_id]
        .into_iter()
        .flatten()
        .chain(files)
        .filter(|blob| !is_empty(*blob))
        .collect()
}

/// Notes which blobs these jobs left, and when.
pub(super) async fn note_blobs(connection: &mut Connection, jobs: &[JobRow]) -> Result<()> {
    let mut used: BTreeMap<BlobId, (Timestamp, Option<Timestamp>)> = BTreeMap::new();
    for job in jobs {
        let (Some(report), Some(at)) = (&job.report, job.ended_at) else { continue };
        let applied = (job.kind == JobKind::Apply).then_some(at);
        for blob in blobs_of(report) {
            let entry = used.entry(blob).or_insert((at, applied));
            *entry = (entry.0.max(at), entry.1.max(applied));
        }
    }
    let rows: Vec<_> = used.into_iter().collect();
    for piece in pieces(&rows) {
        QueryBuilder::<Db>::new("INSERT INTO blobs (id, used_at, applied_at) ")
            .push_values(piece, |mut row, (blob, (used, applied))| {
                row.push_bind(blob.to_string())
                    .push_bind(used.as_millis())
                    .push_bind(applied.map(Timestamp::as_millis));
            })
            .push(
                " ON CONFLICT (id) DO UPDATE SET
                 used_at = CASE WHEN excluded.used_at > blobs.used_at THEN excluded.used_at ELSE \
                 blobs.used_at END,
                 applied_at = CASE WHEN excluded.applied_at IS NULL OR excluded.applied_at < \
                 blobs.applied_at THEN blobs.applied_at ELSE excluded.applied_at END",
            )
            .build()
            .execute(&mut *connection)
            .await?;
    }
    Ok(())
}
