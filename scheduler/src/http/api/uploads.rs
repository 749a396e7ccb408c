//! The wire protocol of jobs that run elsewhere, below `/v1/jobs/{job}`: pieces of streams,
//! declared files, inputs, heartbeats, the report (docs/api.md, [`schema::wire`]). Everything is
//! kept by [`crate::delivery`].

use axum::Json;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{HeaderName, StatusCode, header};
use axum::response::{IntoResponse, Response};
use schema::log_kind::LogKind;
use schema::report::Report;
use schema::spool::Stream;
use schema::wire::{
    Accepted, BLOB_HEADER, Heartbeat, PIECE_CONTENT_TYPE, StoredFile, UPLOAD_LIMIT_BYTES,
};
use schemars::JsonSchema;
use serde::Deserialize;
use tokio_util::io::ReaderStream;

use crate::blobs::{HandOver, unusable};
use crate::delivery::{Reported, StreamTaken, is_same};
use crate::http::Api;
use crate::http::error::{Error, OFFSET, Result};
use crate::http::extract::{PathParams, parse_json, read};
use crate::http::limits::REPORT_BODY_BYTES;
use crate::http::lookup::no_job;
use crate::http::openapi::{FileBytes, HandlerOutput, Operation, RouteDescription, Routes, about};
use crate::http::upload::{AuthorizedJob, CancelMarked, Pieces, Raw, said};

mod files;
mod headers;

use files::file;
use headers::{check_type, number, refuse_form};

/// [`schema::wire::LENGTH_HEADER`], as HTTP/2 and this library write it.
const LENGTH: HeaderName = HeaderName::from_static("upload-length");

/// Types that a piece may have beside its own: tus calls it so, and tools that know only "bytes"
/// or, like curl, call every body a form, mean the same.
const PIECE_TYPES: [&str; 4] = [
    PIECE_CONTENT_TYPE,
    "application/offset+octet-stream",
    "application/octet-stream",
    "application/x-www-form-urlencoded",
];

pub(super) fn routes(routes: Routes) -> Routes {
    let about = |id, summary, description| RouteDescription {
        description,
        ..about(id, "uploads", summary)
    };
    routes
        .patch(
            "/v1/jobs/{job}/streams/{stream}",
            append,
            about(
                "appendStream",
                "Send a piece of stdout or stderr",
                "The body is raw bytes, at most 8 MiB, that begin at `Upload-Offset` of the \
                 stream. What is already held is ignored; a gap is 409 with the `Upload-Offset` \
                 that is wanted.",
            ),
        )
        .head(
            "/v1/jobs/{job}/streams/{stream}",
            length,
            about("getStreamOffset", "The next byte of a stream that is wanted", ""),
        )
        .put(
            "/v1/jobs/{job}/files/{name}",
            file,
            about(
                "putFile",
                "Send a declared file",
                "Whole when it has at most 8 MiB; a larger one in pieces with `Upload-Offset` and \
                 `Upload-Length` (of the whole file), which are answered with 204 and the \
                 `Upload-Offset` wanted next until the last one.",
            ),
        )
        .get(
            "/v1/jobs/{job}/inputs/{reference}",
            input,
            about(
                "getInput",
                "A file for the job: a blob id, or `fetch:NAME`",
                "`Pvn-Blob-Id` tells which blob it is: what arrives is to be compared with it. \
                 404 for what this job may not see.",
            ),
        )
        .post(
            "/v1/jobs/{job}/heartbeat",
            heartbeat,
            about("sendHeartbeat", "A sign of life", "The answer says whether to stop."),
        )
        .put(
            "/v1/jobs/{job}/report",
            report,
            about(
                "putReport",
                "How the command ended",
                "Accepted once all that it names is here; the answer comes when that is stored. \
                 The same report again has the same answer. 409 with `wanted`: send what is \
                 missing, then the report again. 409 without: the job ended otherwise before.",
            ),
        )
}

#[derive(Deserialize, JsonSchema)]
struct StreamAt {
    /// `stdout` or `stderr`.
    stream: String,
    /// Its id.
    #[serde(rename = "job")]
    _job: String,
}

impl StreamAt {
    fn stream(&self) -> Result<Stream> {
        let found = Stream::ALL.into_iter().find(|stream| stream.as_str() == self.stream);
        found.ok_or_else(|| {
            Error::not_found(format!(
                "there is no stream `{}`; there are stdout and stderr",
                self.stream
            ))
        })
    }
}

#[derive(Deserialize, JsonSchema)]
struct InputAt {
    /// A blob id, or `fetch:NAME`.
    reference: String,
    /// Its id.
    #[serde(rename = "job")]
    _job: String,
}

#[derive(Deserialize, JsonSchema)]
struct JobAt {
    /// Its id.
    #[serde(rename = "job")]
    _job: String,
}

/// The next byte wanted.
struct NextOffset(u64);

impl IntoResponse for NextOffset {
    fn into_response(self) -> Response {
        (
            StatusCode::NO_CONTENT,
            [(OFFSET, self.0.to_string()), (header::CACHE_CONTROL, "no-store".to_owned())],
        )
            .into_response()
    }
}

impl HandlerOutput for NextOffset {
    fn describe(operation: &mut Operation<'_>) {
        operation.answer("204", "The header `Upload-Offset` is the next byte wanted.", None);
    }
}

/// A file that is complete, or the next byte of it that is wanted.
enum Sent {
    Complete(StoredFile),
    Next(NextOffset),
}

impl IntoResponse for Sent {
    fn into_response(self) -> Response {
        match self {
            Self::Complete(file) => (StatusCode::CREATED, Json(file)).into_response(),
            Self::Next(next) => next.into_response(),
        }
    }
}

impl HandlerOutput for Sent {
    fn describe(operation: &mut Operation<'_>) {
        let schema = operation.schemas.subschema_for::<StoredFile>().to_value();
        operation.answer("201", "The file is complete.", Some(("application/json", schema)));
        NextOffset::describe(operation);
    }
}

async fn append(
    State(api): State<Api>,
    job: AuthorizedJob,
    PathParams(at): PathParams<StreamAt>,
    Raw(request): Raw,
) -> CancelMarked<NextOffset> {
    let result = append_to(&api, &job, &at, request).await;
    job.mark(&api, result)
}

async fn append_to(
    api: &Api,
    job: &AuthorizedJob,
    at: &StreamAt,
    request: Request,
) -> Result<NextOffset> {
    let stream = at.stream()?;
    let (parts, body) = request.into_parts();
    let upload = job.open(api, &format!("a piece of {}", stream.as_str())).await?;
    check_type(&parts.headers, &PIECE_TYPES)?;
    let Some(mut offset) = number(&parts.headers, &OFFSET)? else {
        return Err(Error::bad_request(
            "the header Upload-Offset is missing: it says which byte of the stream the body \
             begins with",
        ));
    };
    let mut pieces = Pieces::of(&parts.headers, body, UPLOAD_LIMIT_BYTES).await?;
    let mut next = None;
    loop {
        let piece = pieces.next().await?;
        // A body without bytes asks where to go on.
        let Some(piece) = piece.or_else(|| next.is_none().then(Vec::new)) else { break };
        let length = piece.len() as u64;
        match upload.append(stream, offset, piece).await? {
            StreamTaken::Next(wanted) => next = Some(wanted),
            StreamTaken::Gap(wanted) => {
                pieces.throw_away().await;
                return Err(Error::gap(wanted));
            }
            StreamTaken::Full => {
                pieces.throw_away().await;
                return Err(Error::too_large(format!(
                    "{} is longer than what is kept of a stream; let the wrapper cut it with \
                     --max-output",
                    stream.as_str()
                )));
            }
            StreamTaken::Over => {
                pieces.throw_away().await;
                return Err(job.over(api, &format!("a piece of {}", stream.as_str())).await?);
            }
        }
        offset += length;
    }
    Ok(NextOffset(next.unwrap_or(offset)))
}

async fn length(
    State(api): State<Api>,
    job: AuthorizedJob,
    PathParams(at): PathParams<StreamAt>,
) -> CancelMarked<NextOffset> {
    let result = async {
        let stream = at.stream()?;
        let what = "a question for an offset";
        match job.open(&api, what).await?.length(stream).await {
            Some(length) => Ok(NextOffset(length)),
            None => Err(job.over(&api, what).await?),
        }
    };
    let result = result.await;
    job.mark(&api, result)
}

async fn input(
    State(api): State<Api>,
    job: AuthorizedJob,
    PathParams(at): PathParams<InputAt>,
) -> CancelMarked<FileBytes> {
    let result = open_input(&api, &job, &at.reference).await;
    job.mark(&api, result)
}

async fn open_input(api: &Api, job: &AuthorizedJob, reference: &str) -> Result<FileBytes> {
    let upload = job.open(api, "a question for an input").await?;
    let missing = || {
        Error::not_found(format!(
            "{} has no input `{reference}`, or it is not kept any more",
            job.token.job
        ))
    };
    let failed = |error: std::io::Error| {
        Error::unavailable(format!("the input `{reference}` cannot be read at present: {error}"))
    };
    let (blob, found) = upload.input(reference).await.map_err(failed)?.ok_or_else(missing)?;
    let (length, body) = match found {
        // Nothing is run with it; trying again finds the same.
        HandOver::Lost(why) => return Err(Error::not_found(unusable(reference, &why))),
        HandOver::Empty => (0, Body::empty()),
        HandOver::File(path) => match tokio::fs::File::open(&path).await {
            Ok(file) => (
                file.metadata().await.map_err(failed)?.len(),
                Body::from_stream(ReaderStream::new(file)),
            ),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Err(missing()),
            Err(error) => return Err(failed(error)),
        },
    };
    let headers = [
        (header::CONTENT_TYPE, "application/octet-stream".to_owned()),
        (header::CONTENT_LENGTH, length.to_string()),
        (header::CACHE_CONTROL, "no-store".to_owned()),
    ];
    Ok(FileBytes((headers, [(BLOB_HEADER, blob.to_string())], body).into_response()))
}

async fn heartbeat(
    State(api): State<Api>,
    job: AuthorizedJob,
    PathParams(_): PathParams<JobAt>,
) -> CancelMarked<Json<Heartbeat>> {
    let result = job
        .open(&api, "a heartbeat")
        .await
        .map(|upload| Json(Heartbeat { cancel: upload.is_cancelled() }));
    job.mark(&api, result)
}

async fn report(
    State(api): State<Api>,
    job: AuthorizedJob,
    PathParams(_): PathParams<JobAt>,
    request: Request,
) -> CancelMarked<Json<Accepted>> {
    let result = take_report(&api, &job, request).await;
    job.mark(&api, result)
}

async fn take_report(api: &Api, job: &AuthorizedJob, request: Request) -> Result<Json<Accepted>> {
    let (parts, body) = request.into_parts();
    refuse_form(&parts.headers)?;
    let bytes = read(body, REPORT_BODY_BYTES).await?;
    let report: Box<Report> = parse_json(&bytes)?;
    if let Some(upload) = api.delivery.admit(&job.token) {
        match upload.report(report.clone()).await? {
            Reported::Wanted(wanted) => return Err(Error::wanted(wanted)),
            Reported::Wrong(why) => return Err(Error::bad_request(why)),
            Reported::TooMuch(why) => return Err(Error::too_large(why)),
            Reported::Kept => return Ok(Json(Accepted { accepted: true })),
            // What is stored decides, the same for the first and for every later report; of what
            // will be, the first.
            Reported::Stored | Reported::Second => {}
        }
    }
    let id = job.token.job;
    let Some(row) = api.store.job_row(id).await? else { return Err(no_job(&id.to_string())) };
    if row.report.as_deref().is_some_and(|kept| is_same(kept, &report)) {
        return Ok(Json(Accepted { accepted: true }));
    }
    if row.ended_at.is_none() && api.delivery.admit(&job.token).is_none() {
        return Err(Error::not_found(format!(
            "{id} is not a job that uploads, or not as attempt {}",
            job.token.attempt
        )));
    }
    job.late(api, &row, "another report", LogKind::JobLateReport, said(&report)).await?;
    if row.ended_at.is_none() {
        return Err(Error::conflict(format!(
            "{id} has another report already; this one changes nothing and is noted, stop sending"
        )));
    }
    Err(Error::conflict(format!(
        "{id} ended otherwise before ({}); this report changes nothing and is noted, stop sending",
        row.status
    )))
}
