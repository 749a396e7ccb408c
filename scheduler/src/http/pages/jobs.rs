//! `/jobs`: the list of jobs; one job with what it printed, live while it runs.

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{Request, State};
use axum::http::header;
use axum::response::sse::Event;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use futures::{Stream, StreamExt};
use pages::ansi::AnsiPainter;
use pages::frame::NavEntry;
use pages::{JobsFilter, OutputPane};
use schema::api::Job;
use schema::spool::Stream as JobStream;
use schema::target::PlacedJob;
use serde::Deserialize;
use serde_json::json;

use super::{frame, given, on_to, page};
use crate::http::Api;
use crate::http::access::{Admin, Viewer};
use crate::http::api::{LogSubscriber, OutputNews, find_job, placed, read_output};
use crate::http::error::{Error, Result};
use crate::http::extract::{self, PathParams, Query};
use crate::http::limits::OUTPUT_PIECE_BYTES;
use crate::http::lookup::{job_id, scope};
use crate::http::sessions::session;
use crate::http::streams::sse;
use crate::store::JobFilter;

/// Jobs of one page of the list.
const ROWS: u32 = 50;

/// Bytes of each stream that a job's page begins with: some thousand lines. Of a longer one these
/// are its last.
const SHOWN_BYTES: u64 = 256 << 10;

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

/// A word of a closed set, where one is given.
fn word<T: std::str::FromStr<Err: std::fmt::Display>>(text: &str) -> Result<Option<T>> {
    let read = given(text).map(|text| text.parse().map_err(|error: T::Err| error.to_string()));
    read.transpose().map_err(Error::bad_request)
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

const PREFIXES: [char; 2] = ['o', 'e'];

async fn job(
    State(api): State<Api>,
    Viewer(token): Viewer,
    PathParams(which): PathParams<Which>,
) -> Result<Response> {
    let mut frame = frame(&api, &token, "Job", NavEntry::Jobs).await?;
    let job = find_job(&api, &which.job).await?;
    frame.title = format!("{} of {} · {}", job.kind, job.service, job.channel);
    frame.live = Some(format!("/live?application={}&service={}", job.application, job.service));
    let placed = placed(&api, &job).await?;
    let (mut panes, mut offsets) = (Vec::new(), [0; 2]);
    for (at, stream) in JobStream::ALL.into_iter().enumerate() {
        let shown = pane(&api, &job, &placed, stream, PREFIXES[at]).await?;
        panes.push(shown.0);
        offsets[at] = shown.1;
    }
    let live = format!("/jobs/{}/live?stdout={}&stderr={}", job.id, offsets[0], offsets[1]);
    let live = (!job.status.is_final()).then_some(live);
    page(pages::job(&frame, &job, &panes, live.as_deref()))
}

/// How many bytes of a stream there are by now, as few as possible of them read: twice as far until
/// there are none, then halves.
async fn length(api: &Api, job: &Job, placed: &PlacedJob, stream: JobStream) -> Result<u64> {
    let is_there = async |at: u64| {
        Ok::<_, Error>(!read_output(api, job, placed, stream, at, 1).await?.is_empty())
    };
    let (mut there, mut beyond) = (0, SHOWN_BYTES);
    while is_there(beyond).await? {
        (there, beyond) = (beyond, beyond.saturating_mul(2));
    }
    if there == 0 {
        // What fits into the page is read whole.
        return Ok(beyond);
    }
    while beyond - there > 1 {
        let middle = there + (beyond - there) / 2;
        if is_there(middle).await? { there = middle } else { beyond = middle }
    }
    Ok(beyond)
}

/// A stream as the page begins, and from which byte on more is to follow.
async fn pane(
    api: &Api,
    job: &Job,
    placed: &PlacedJob,
    stream: JobStream,
    prefix: char,
) -> Result<(OutputPane, u64)> {
    let begin = length(api, job, placed, stream).await?.saturating_sub(SHOWN_BYTES);
    let shown = usize::try_from(SHOWN_BYTES).unwrap_or(usize::MAX);
    let mut bytes = read_output(api, job, placed, stream, begin, shown).await?;
    let (mut painter, mut from) = (AnsiPainter::new(prefix, (begin == 0).then_some(1)), begin);
    if begin > 0 {
        // The first line is cut somewhere.
        let cut = bytes.iter().position(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        bytes.drain(..cut);
        from += cut as u64;
    }
    let html = painter.paint(&bytes, job.status.is_final());
    let note = match (begin, bytes.is_empty()) {
        (0, true) if job.status.is_final() => Some("nothing was printed".to_owned()),
        (0, true) => Some("nothing yet".to_owned()),
        (0, false) => None,
        _ => Some(format!("the first {from} bytes are left out")),
    };
    let end = from + (bytes.len() - painter.held_bytes()) as u64;
    let pane = OutputPane { stream: stream.as_str(), html, numbered: begin == 0, note };
    Ok((pane, end))
}

#[derive(Deserialize)]
struct OutputOffsets {
    stdout: u64,
    stderr: u64,
}

/// Lines as they are printed, as HTML that the daemon has escaped.
async fn live(
    State(api): State<Api>,
    Viewer(token): Viewer,
    PathParams(which): PathParams<Which>,
    Query(from): Query<OutputOffsets>,
    request: Request,
) -> Result<Response> {
    let (parts, _) = request.into_parts();
    let session = session(&parts, &api)?;
    let job = find_job(&api, &which.job).await?;
    let placed = placed(&api, &job).await?;
    let slot = api.streams.admit(&token.name)?;
    let mut offsets = [from.stdout, from.stderr];
    // A browser goes on by itself after the last whole line of each stream.
    let seen = parts.headers.get("last-event-id").and_then(|id| id.to_str().ok()?.split_once(','));
    if let Some((Ok(stdout), Ok(stderr))) = seen.map(|(out, err)| (out.parse(), err.parse())) {
        offsets = [stdout, stderr];
    }
    let printing = LogSubscriber::new(&api, job, placed, offsets);
    let over = session.over(api.clock.clone());
    Ok(sse(lines(printing, offsets).take_until(Box::pin(over)), slot, api, token))
}

fn lines(printing: LogSubscriber, offsets: [u64; 2]) -> impl Stream<Item = Event> + Send {
    // Their numbers are counted by the page.
    let painters = PREFIXES.map(|prefix| AnsiPainter::new(prefix, None));
    futures::stream::unfold(
        (printing, painters, offsets),
        |(mut printing, mut painters, mut ends)| async move {
            loop {
                match printing.news().await? {
                    OutputNews::Piece { stream, offset, bytes } => {
                        let at = usize::from(stream == JobStream::Stderr);
                        let html = painters[at].paint(&bytes, false);
                        let held = painters[at].held_bytes() as u64;
                        ends[at] = (offset + bytes.len() as u64).saturating_sub(held);
                        if html.is_empty() {
                            continue;
                        }
                        let data = json!({"stream": stream.as_str(), "html": html});
                        let id = format!("{},{}", ends[0], ends[1]);
                        let event = Event::default().event("lines").id(id).json_data(&data).ok()?;
                        return Some((event, (printing, painters, ends)));
                    }
                    OutputNews::End(_) => {
                        let rest = painters.each_mut().map(|painter| painter.paint(&[], true));
                        let data = json!({"stdout": rest[0], "stderr": rest[1]});
                        let event = Event::default().event("end").json_data(&data).ok()?;
                        return Some((event, (printing, painters, ends)));
                    }
                }
            }
        },
    )
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
    Admin(caller): Admin,
    PathParams(which): PathParams<Which>,
) -> Result<Response> {
    api.driver.cancel_job(job_id(&which.job)?, caller).await?;
    Ok(on_to(&format!("/jobs/{}", which.job)))
}
