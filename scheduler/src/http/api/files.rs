//! `/v1/jobs/{job}/files/{name}`: a file that a job left, as far as it was masked for people.

use axum::extract::State;
use axum::http::header;
use axum::response::IntoResponse;
use schema::report::OutputFile;
use schema::spool::EXPLANATION;
use schemars::JsonSchema;
use serde::Deserialize;

use super::jobs;
use crate::http::Api;
use crate::http::access::Viewer;
use crate::http::error::{Error, Result};
use crate::http::extract::{PathParams, Query, piece_bytes};
use crate::http::openapi::{FileBytes, RouteDescription, Routes, about};

pub(super) fn routes(routes: Routes) -> Routes {
    let description = "The bytes from `offset`, at most 1 MiB; an empty answer is the end. Only \
                       `plan-explanation`, which is masked before it is kept, is handed out; a \
                       plan and other files are for commands alone, because they may hold \
                       secrets: 403.";
    let summary = "A file that a job left for people";
    routes.get(
        "/v1/jobs/{job}/files/{name}",
        file,
        RouteDescription { description, ..about("getJobFile", "jobs", summary) },
    )
}

#[derive(Deserialize, JsonSchema)]
struct Which {
    /// The job's id.
    job: String,
    /// The file's declared name.
    name: String,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct FileRange {
    /// From which byte on.
    offset: Option<u64>,
    /// Most bytes, at least 1, at most 1 MiB.
    limit: Option<u64>,
}

async fn file(
    State(api): State<Api>,
    _: Viewer,
    PathParams(which): PathParams<Which>,
    Query(from): Query<FileRange>,
) -> Result<FileBytes> {
    let job = jobs::find(&api, &which.job).await?;
    let files = job.report.as_ref().map_or(&[][..], |report| &report.files);
    let name = &which.name;
    let file = files
        .iter()
        .find(|file| file.name == *name)
        .ok_or_else(|| Error::not_found(absent(&job, name, files)))?;
    let Some(blob) = file.content_blob_id else {
        let why = file.error.as_deref().unwrap_or("it has no content");
        return Err(Error::not_found(format!(
            "{} left no content of the file `{name}`: {why}",
            job.id
        )));
    };
    if *name != EXPLANATION {
        return Err(Error::forbidden(format!(
            "the file `{name}` of {} is for commands alone: it is kept byte for byte and may hold \
             secrets; people read `{EXPLANATION}`, which is masked",
            job.id
        )));
    }
    let (offset, limit) = (from.offset.unwrap_or(0), piece_bytes(from.limit)?);
    let delivery = api.delivery.clone();
    let read = tokio::task::spawn_blocking(move || delivery.kept(blob, offset, limit))
        .await
        .map_err(Error::internal)?;
    let failed = |error| {
        Error::unavailable(format!(
            "the file `{name}` of {} cannot be read at present: {error}",
            job.id
        ))
    };
    let gone = || {
        Error::not_found(format!(
            "the content of the file `{name}` of {} is not kept any more",
            job.id
        ))
    };
    let bytes = read.map_err(failed)?.ok_or_else(gone)?;
    Ok(FileBytes(
        (
            [
                (header::CONTENT_TYPE, "application/octet-stream"),
                (header::CACHE_CONTROL, "no-store"),
            ],
            bytes,
        )
            .into_response(),
    ))
}

fn absent(job: &schema::api::Job, name: &str, files: &[OutputFile]) -> String {
    let names: Vec<_> = files.iter().map(|file| format!("`{}`", file.name)).collect();
    match (job.status.is_final(), names.is_empty()) {
        (false, _) => format!(
            "{} has left no file `{name}` yet: it is {}, and files are known once it has ended",
            job.id, job.status
        ),
        (true, true) => format!("{} left no file `{name}`, and no other", job.id),
        (true, false) => format!("{} left no file `{name}`; it left {}", job.id, names.join(", ")),
    }
}
