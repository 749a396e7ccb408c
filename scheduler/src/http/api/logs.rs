//! `/v1/jobs/{job}/logs`: what a job printed, as bytes or live.

use axum::extract::State;
use axum::http::{HeaderMap, header};
use axum::response::sse::Event;
use axum::response::{IntoResponse, Response};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use futures::Stream;
use schema::api::{Job, LogChunk, LogEnd};
use schema::spool::Stream as Which;
use schema::target::PlacedJob;
use schemars::JsonSchema;
use serde::Deserialize;

use super::jobs;
use crate::http::access::Viewer;
use crate::http::error::{Error, Result};
use crate::http::extract::{PathParams, Query, piece_bytes};
use crate::http::followed_job::FollowedJob;
use crate::http::limits::OUTPUT_EVENT_BYTES;
use crate::http::openapi::{HandlerOutput, Operation, RouteDescription, Routes, about};
use crate::http::streams::{sse, wants_stream};
use crate::http::{Api, OutputRange};

pub(super) fn routes(routes: Routes) -> Routes {
    let description = "Without `Accept: text/event-stream`: the bytes of `stream` from `offset`, \
                       at most 1 MiB; an empty answer is the end of what there is so far. With \
                       it: events `chunk` (a LogChunk) as the job prints, from `stdoutOffset` and \
                       `stderrOffset`, and `end` (a LogEnd) when it has ended.";
    let summary = "What a job printed: bytes of one stream, or both live";
    routes.get(
        "/v1/jobs/{job}/logs",
        logs,
        RouteDescription { description, ..about("getJobLogs", "jobs", summary) },
    )
}

/// Bytes, or a stream of server-sent events.
struct Printed(Response);

impl IntoResponse for Printed {
    fn into_response(self) -> Response {
        self.0
    }
}

impl HandlerOutput for Printed {
    fn describe(operation: &mut Operation<'_>) {
        let (chunk, end) = (
            operation.schemas.subschema_for::<LogChunk>(),
            operation.schemas.subschema_for::<LogEnd>(),
        );
        operation.answer(
            "200",
            "Bytes, or events.",
            Some(("application/octet-stream", serde_json::json!({}))),
        );
        operation.answer(
            "200",
            "",
            Some(("text/event-stream", serde_json::json!({"anyOf": [chunk, end]}))),
        );
    }
}

/// One of a job's streams.
#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum StreamName {
    Stdout,
    Stderr,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct LogRange {
    /// Which stream, for bytes.
    stream: Option<StreamName>,
    /// From which byte on, for bytes.
    offset: Option<u64>,
    /// Most bytes, at least 1, at most 1 MiB.
    limit: Option<u64>,
    /// From which byte of stdout on, for events.
    stdout_offset: Option<u64>,
    /// From which byte of stderr on, for events.
    stderr_offset: Option<u64>,
}

async fn logs(
    State(api): State<Api>,
    Viewer(token): Viewer,
    PathParams(which): PathParams<jobs::Which>,
    headers: HeaderMap,
    Query(from): Query<LogRange>,
) -> Result<Printed> {
    let job = jobs::find(&api, &which.job).await?;
    let placed = placed(&api, &job).await?;
    if wants_stream(&headers) {
        let slot = api.streams.admit(&token.name)?;
        let mut offsets = [from.stdout_offset.unwrap_or(0), from.stderr_offset.unwrap_or(0)];
        // A browser goes on by itself with the last id, which holds both offsets.
        if let Some((stdout, stderr)) =
            headers.get("last-event-id").and_then(|id| id.to_str().ok()?.split_once(','))
        {
            let offset = |text: &str| {
                text.parse()
                    .map_err(|_| Error::bad_request("Last-Event-ID is not one of this stream's"))
            };
            offsets = [offset(stdout)?, offset(stderr)?];
        }
        let follower = LogSubscriber::new(&api, job, placed, offsets);
        return Ok(Printed(sse(follower.stream(), slot, &api, token)));
    }
    let stream = match from.stream {
        Some(StreamName::Stdout) => Which::Stdout,
        Some(StreamName::Stderr) => Which::Stderr,
        None => {
            return Err(Error::bad_request(
                "say which stream: `?stream=stdout` or `?stream=stderr`; both at once come with \
                 `Accept: text/event-stream`",
            ));
        }
    };
    let bytes =
        read(&api, &job, &placed, stream, from.offset.unwrap_or(0), piece_bytes(from.limit)?)
            .await?;
    Ok(Printed(
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

/// Where the output of a job is.
pub(in crate::http) async fn placed(api: &Api, job: &Job) -> Result<PlacedJob> {
    // Of one that has reported all is in the blobs, wherever it ran.
    Ok(match job.report {
        Some(_) => PlacedJob { job: job.id, target: None },
        None => api.store.placed_job(job.id).await?,
    })
}

/// A piece of what a job printed; nothing at the end of what there is so far.
pub(in crate::http) async fn read(
    api: &Api,
    job: &Job,
    placed: &PlacedJob,
    stream: Which,
    offset: u64,
    limit: usize,
) -> Result<Vec<u8>> {
    let range = OutputRange {
        placed: placed.clone(),
        report: job.report.clone().map(Box::new),
        stream,
        offset,
        limit,
    };
    (api.output)(range).await.map_err(|error| {
        Error::unavailable(format!("the output of {} cannot be read at present: {error}", job.id))
    })
}

/// What one who follows a job hears next.
enum OutputNews {
    /// More that was printed.
    Piece {
        stream: Which,
        /// Of its first byte in the stream.
        offset: u64,
        bytes: Vec<u8>,
    },
    /// All was printed.
    End(LogEnd),
}

/// One who follows a job.
struct LogSubscriber {
    followed: FollowedJob,
    offsets: [u64; 2],
    over: bool,
}

impl LogSubscriber {
    /// One who has read the streams up to these bytes.
    fn new(api: &Api, job: Job, placed: PlacedJob, offsets: [u64; 2]) -> Self {
        Self { followed: FollowedJob::new(api, job, placed), offsets, over: false }
    }

    fn stream(self) -> impl Stream<Item = Event> + Send {
        futures::stream::unfold(self, |mut follower| async move {
            follower.next().await.map(|event| (event, follower))
        })
    }

    async fn next(&mut self) -> Option<Event> {
        match self.news().await? {
            OutputNews::Piece { stream, offset, bytes } => {
                let data = STANDARD.encode(&bytes);
                let chunk = LogChunk { stream: stream.as_str().to_owned(), offset, data };
                let id = format!("{},{}", self.offsets[0], self.offsets[1]);
                Event::default().event("chunk").id(id).json_data(&chunk).ok()
            }
            OutputNews::End(end) => Event::default().event("end").json_data(&end).ok(),
        }
    }

    /// The next piece, or the end. A fault ends the stream; the client comes back with the offsets
    /// it has.
    async fn news(&mut self) -> Option<OutputNews> {
        loop {
            if self.over {
                return None;
            }
            let FollowedJob { api, job, placed, .. } = &self.followed;
            for (at, stream) in Which::ALL.into_iter().enumerate() {
                let offset = self.offsets[at];
                let read = read(api, job, placed, stream, offset, OUTPUT_EVENT_BYTES);
                let bytes = read.await.ok()?;
                if !bytes.is_empty() {
                    self.offsets[at] += bytes.len() as u64;
                    return Some(OutputNews::Piece { stream, offset, bytes });
                }
            }
            if job.status.is_final() {
                self.over = true;
                let Job { status, exit_code, .. } = *job;
                return Some(OutputNews::End(LogEnd { status, exit_code }));
            }
            self.followed.wait().await?;
        }
    }
}
