//! `/jobs`: the list of jobs; one job with what it printed, live while it runs.

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{Request, State};
use axum::http::header;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use futures::StreamExt;
use pages::JobsFilter;
use pages::frame::NavEntry;
use schema::spool::Stream as JobStream;
use serde::Deserialize;

use super::output::{LineFollower, OutputPlace, printed};
use super::{frame, given, on_to, page, word};
use crate::http::Api;
use crate::http::access::{Operator, Viewer};
use crate::http::api::{find_job, placed, read_output};
use crate::http::error::{Error, Result};
use crate::http::extract::{self, PathParams, Query};
use crate::http::limits::OUTPUT_PIECE_BYTES;
use crate::http::lookup::{job_id, scope};
use crate::http::sessions::session;
use crate::http::streams::sse;
use crate::store::JobFilter;

/// Jobs of one page of the list.
const ROWS: u32 = 50;

pub(super) fn routes() -> Router<Api> {
    Router::new()
        .route("/jobs", get(jobs))
        .route("/jobs/{job}", get(job))
        .route("/jobs/{job}/live", get(live))
        .route("/jobs/{job}/output/{stream}", get(output))
        .route("/jobs/{job}/cancel", post(cancel))
}

/// As a form sends it: what says nothing is empty.
#[derive(Deserialize, Default)]
#[serde(default)]
struct ListedJobs {
    application: String,
    service: String,
    channel: String,
    kind: String,
    status: String,
    cursor: Option<String>,
}

async fn jobs(
    State(api): State<Api>,
    Viewer(token): Viewer,
    Query(list): Query<ListedJobs>,
) -> Result<Response> {
    let mut frame = frame(&api, &token, "Jobs", NavEntry::Jobs).await?;
    frame.live = Some("/live".to_owned());
    let (app, service) = (given(&list.application), given(&list.service));
    let scope = scope(&api, app, service, given(&list.channel)).await?;
    let filter = JobFilter {
        application: scope.application.map(|row| row.id),
        service: scope.service.map(|row| row.id),
        channel: scope.channel.map(|row| row.id),
        kind: word(&list.kind)?,
        status: word(&list.status)?,
    };
    let found = api.store.jobs(&filter, &extract::page(list.cursor, Some(ROWS))?).await?;
    let ListedJobs { application, service, channel, kind, status, .. } = list;
    page(pages::jobs(&frame, &JobsFilter { application, service, channel, kind, status }, &found))
}

#[derive(Deserialize)]
struct Which {
    job: String,
}

async fn job(
    State(api): State<Api>,
    Viewer(token): Viewer,
    PathParams(which): PathParams<Which>,
) -> Result<Response> {
    let mut frame = frame(&api, &token, "Job", NavEntry::Jobs).await?;
    let job = find_job(&api, &which.job).await?;
    frame.title = format!("{} of {} · {}", job.kind, job.service, job.channel);
    frame.live = Some(format!("/live?application={}&service={}", job.application, job.service));
    let output = printed(&api, &job).await?;
    page(pages::job(&frame, &job, &output))
}

/// Lines as they are printed.
async fn live(
    State(api): State<Api>,
    Viewer(token): Viewer,
    PathParams(which): PathParams<Which>,
    Query(from): Query<OutputPlace>,
    request: Request,
) -> Result<Response> {
    let (parts, _) = request.into_parts();
    let session = session(&parts, &api)?;
    let job = find_job(&api, &which.job).await?;
    let slot = api.streams.admit(&token.name)?;
    // A browser goes on by itself after the last whole line of each stream.
    let seen = parts.headers.get("last-event-id").and_then(|id| id.to_str().ok());
    let from = seen.and_then(OutputPlace::read).unwrap_or(from);
    let follower = LineFollower::new(&api, job, from).await?;
    let over = session.over(api.clock.clone());
    Ok(sse(follower.events().take_until(Box::pin(over)), slot, &api, token))
}

#[derive(Deserialize)]
struct WhichStream {
    job: String,
    stream: String,
}

/// All that a stream holds, as a file.
async fn output(
    State(api): State<Api>,
    _: Viewer,
    PathParams(which): PathParams<WhichStream>,
) -> Result<Response> {
    let job = find_job(&api, &which.job).await?;
    let stream = JobStream::ALL.into_iter().find(|stream| stream.as_str() == which.stream);
    let stream =
        stream.ok_or_else(|| Error::not_found("a job has the streams `stdout` and `stderr`"))?;
    let placed = placed(&api, &job).await?;
    let name = format!("attachment; filename=\"{}-{}.log\"", job.id, stream.as_str());
    let pieces = futures::stream::try_unfold(0u64, move |offset| {
        let (api, job, placed) = (api.clone(), job.clone(), placed.clone());
        async move {
            let read = read_output(&api, &job, &placed, stream, offset, OUTPUT_PIECE_BYTES);
            let bytes =
                read.await.map_err(|error| std::io::Error::other(error.detail().to_owned()))?;
            let end = offset + bytes.len() as u64;
            std::io::Result::Ok((!bytes.is_empty()).then(|| (Bytes::from(bytes), end)))
        }
    });
    let headers = [
        (header::CONTENT_TYPE, "text/plain; charset=utf-8".to_owned()),
        (header::CONTENT_DISPOSITION, name),
        // It is shown by nothing of ours, whatever it holds.
        (header::CONTENT_SECURITY_POLICY, "default-src 'none'; sandbox".to_owned()),
    ];
    Ok((headers, Body::from_stream(pieces)).into_response())
}

async fn cancel(
    State(api): State<Api>,
    Operator(caller): Operator,
    PathParams(which): PathParams<Which>,
) -> Result<Response> {
    api.driver.cancel_job(job_id(&which.job)?, caller).await?;
    Ok(on_to(&format!("/jobs/{}", which.job)))
}
