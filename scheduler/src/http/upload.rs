//! What the routes for uploading jobs share: whose token it is, bodies in pieces, the mark that
//! says "stop", and what is noted of requests that change nothing.

use std::convert::Infallible;

use axum::body::{Body, BodyDataStream};
use axum::extract::{FromRequest, FromRequestParts, Request};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, HeaderValue, header};
use axum::response::{IntoResponse, Response};
use futures::StreamExt;
use schema::access::Capability;
use schema::id::{BlobId, JobId};
use schema::log_kind::LogKind;
use schema::wire::{LENGTH_HEADER, OFFSET_HEADER, PIECE_CONTENT_TYPE};
use serde_json::{Value, json};

use super::Api;
use super::access::{bearer, caller, origin};
use super::error::{Error, Result};
use super::extract::{incomplete, too_long};
use super::limits::{DRAIN_BYTES, UPLOAD_PIECE_BYTES};
use super::lookup::{job_id, no_job};
use super::openapi::{HandlerInput, HandlerOutput, Operation};
use crate::delivery::{JobToken, TokenRefusal, Upload, UploadError};
use crate::driver::Remark;
use crate::store::JobRow;

const HOW: &str =
    "a job finds its own in the variable PVN_TOKEN; send it as `Authorization: Bearer TOKEN`";

/// [`schema::wire::CANCEL_HEADER`], as HTTP/2 and this library write it.
const CANCEL: HeaderName = HeaderName::from_static("pvn-cancel");

/// Longest text of a report that a remark repeats, bytes: names and messages are shorter.
const REMARK_TEXT_BYTES: usize = 200;

/// Somebody with a good token of the job in the path.
pub(super) struct AuthorizedJob {
    pub(super) token: JobToken,
    origin: String,
}

impl FromRequestParts<Api> for AuthorizedJob {
    type Rejection = Error;

    async fn from_request_parts(parts: &mut Parts, api: &Api) -> Result<Self> {
        let text = bearer(parts, HOW)?.to_owned();
        let job = parts
            .uri
            .path()
            .strip_prefix("/v1/jobs/")
            .and_then(|rest| rest.split('/').next())
            .unwrap_or_default()
            .to_owned();
        let origin = origin(parts);
        match api.delivery.check(&text) {
            Ok(token) if token.job.to_string() == job => Ok(Self { token, origin }),
            Ok(token) => {
                refused(api, &job, &origin, format!("a token of {} was used for it", token.job))
                    .await?;
                Err(Error::unauthorized(format!(
                    "the token is one of another job than `{job}`: {HOW}"
                )))
            }
            Err(TokenRefusal::Expired) => {
                Err(Error::unauthorized(format!("the token of `{job}` has expired: {HOW}")))
            }
            Err(TokenRefusal::Forged) => {
                refused(
                    api,
                    &job,
                    &origin,
                    "a token that this scheduler did not make was used for it".to_owned(),
                )
                .await?;
                Err(Error::unauthorized(format!(
                    "the token is not one that this scheduler made: {HOW}"
                )))
            }
            Err(TokenRefusal::NotOne) => {
                // People's tokens are told apart, so that whoever tries one out reads what is wrong
                // with that.
                let caller = caller(parts, api, Capability::Read).await.map_err(|_| {
                    Error::unauthorized(format!("the token is not one of a job: {HOW}"))
                })?;
                if api.store.job_row(job_id(&job)?).await?.is_none() {
                    return Err(no_job(&job));
                }
                Err(Error::forbidden(format!(
                    "the token `{}` is a person's, and only `{job}` itself may do this: {HOW}",
                    caller.who
                )))
            }
        }
    }
}

impl HandlerInput for AuthorizedJob {
    fn describe(operation: &mut Operation<'_>) {
        operation.members.insert("security".to_owned(), json!([{"job": []}]));
        operation.explain(
            "Needs the token of this very job. 404 and 410: the job is not known or over, stop. \
             Any answer may carry `Pvn-Cancel: true`: stop the command.",
        );
    }
}

/// A request whose body is raw bytes.
pub(super) struct Raw(pub(super) Request);

impl FromRequest<Api> for Raw {
    type Rejection = Infallible;

    async fn from_request(request: Request, _: &Api) -> std::result::Result<Self, Infallible> {
        Ok(Self(request))
    }
}

impl HandlerInput for Raw {
    fn describe(operation: &mut Operation<'_>) {
        operation.members.insert(
            "requestBody".to_owned(),
            json!({"content": {PIECE_CONTENT_TYPE: {}, "application/octet-stream": {}}}),
        );
        let mut header = |name: &str, description: &str| {
            let parameters = operation.members.entry("parameters").or_insert_with(|| json!([]));
            let schema = json!({"type": "integer", "minimum": 0});
            let parameter = json!({
                "name": name, "in": "header", "required": false, "description": description,
                "schema": schema,
            });
            parameters.as_array_mut().expect("only lists are put here").push(parameter);
        };
        header(
            OFFSET_HEADER,
            "The byte that the body begins with; every piece of a stream has it.",
        );
        header(LENGTH_HEADER, "The length of the whole file, for a file in pieces.");
    }
}

impl AuthorizedJob {
    /// Its uploads, if it is not over; the request is a sign of life.
    pub(super) async fn open(&self, api: &Api, what: &str) -> Result<Upload> {
        match api.delivery.admit(&self.token).filter(|upload| !upload.is_over()) {
            Some(upload) => {
                upload.sign().await?;
                Ok(upload)
            }
            None => Err(self.over(api, what).await?),
        }
    }

    /// What is said to a job that is over, or was never handed out.
    pub(super) async fn over(&self, api: &Api, what: &str) -> Result<Error> {
        let job = self.token.job;
        let Some(row) = api.store.job_row(job).await? else { return Ok(no_job(&job.to_string())) };
        if row.ended_at.is_none() && api.delivery.admit(&self.token).is_none() {
            return Ok(Error::not_found(format!(
                "{job} is not a job that uploads, or not as attempt {}",
                self.token.attempt
            )));
        }
        self.late(api, &row, what, LogKind::JobLateUpload, json!({})).await?;
        Ok(Error::gone(format!(
            "{job} is over ({}); nothing more of it is kept, stop sending",
            row.status
        )))
    }

    /// Notes that something came for a job that is over.
    pub(super) async fn late(
        &self,
        api: &Api,
        row: &JobRow,
        what: &str,
        kind: LogKind,
        said: Value,
    ) -> Result<()> {
        let message = format!(
            "{what} came for {} when it was over ({}); it changed nothing",
            row.id, row.status
        );
        let (attempt, from) = (self.token.attempt, &self.origin);
        let data = json!({"job": row.id, "attempt": attempt, "from": from, "said": said});
        note(api, row, kind, what, message, data).await
    }

    /// An answer, with the mark when the job is to be stopped.
    pub(super) fn mark<T>(&self, api: &Api, result: Result<T>) -> CancelMarked<T> {
        CancelMarked { cancel: api.delivery.is_cancelled(self.token.job), result }
    }
}

/// Notes that somebody without a good token tried, if there is such a job.
async fn refused(api: &Api, job: &str, origin: &str, what: String) -> Result<()> {
    let Ok(id) = job.parse::<JobId>() else { return Ok(()) };
    let Some(row) = api.store.job_row(id).await? else { return Ok(()) };
    let data = json!({"job": id, "from": origin});
    note(
        api,
        &row,
        LogKind::JobRefusedUpload,
        &format!("{what} from {origin}"),
        format!("an upload for {id} was refused: {what}"),
        data,
    )
    .await
}

/// Notes something about a job, if it is new and there is room. `what` tells it from others.
async fn note(
    api: &Api,
    row: &JobRow,
    kind: LogKind,
    what: &str,
    message: String,
    data: Value,
) -> Result<()> {
    let digest = BlobId::of(format!("{kind} {what} {}", data["said"]).as_bytes());
    if api.delivery.records().is_new(row.id, digest) {
        api.driver.remark(Remark { instance: row.instance, kind, message, data }).await?;
    }
    Ok(())
}

/// What a report says, short enough for the log.
pub(super) fn said(report: &schema::report::Report) -> Value {
    let cut = |text: &str| text.chars().take(REMARK_TEXT_BYTES).collect::<String>();
    json!({
        "exitCode": report.exit_code,
        "signal": report.signal.as_deref().map(cut),
        "execError": report.exec_error.as_deref().map(cut),
        "timedOut": report.timed_out,
        "stdoutBytes": report.stdout_bytes,
        "stderrBytes": report.stderr_bytes,
        "stdoutBlobId": report.stdout_blob_id,
        "stderrBlobId": report.stderr_blob_id,
        "startTimestampNs": cut(&report.start_timestamp_ns),
        "durationNs": cut(&report.duration_ns),
        "hostname": cut(&report.hostname),
    })
}

/// An answer that may say "stop the command".
pub(super) struct CancelMarked<T> {
    cancel: bool,
    result: Result<T>,
}

impl<T: IntoResponse> IntoResponse for CancelMarked<T> {
    fn into_response(self) -> Response {
        let mut response = self.result.into_response();
        if self.cancel {
            response.headers_mut().insert(CANCEL, HeaderValue::from_static("true"));
        }
        response
    }
}

impl<T: HandlerOutput> HandlerOutput for CancelMarked<T> {
    fn describe(operation: &mut Operation<'_>) {
        Result::<T>::describe(operation);
    }
}

impl From<UploadError> for Error {
    fn from(error: UploadError) -> Self {
        if let UploadError::Disk(cause) = &error {
            tracing::warn!(%cause, "an upload cannot be stored; its sender tries again");
        }
        Self::unavailable(error.to_string())
    }
}

/// A body that is taken in pieces, so that memory does not grow with it.
pub(super) struct Pieces {
    body: BodyDataStream,
    limit: usize,
    total: usize,
    broken: Option<Error>,
}

impl Pieces {
    /// A body of at most `limit` bytes. One that says at once that it is longer is thrown away.
    pub(super) async fn of(headers: &HeaderMap, body: Body, limit: usize) -> Result<Self> {
        let declared = headers
            .get(header::CONTENT_LENGTH)
            .and_then(|value| value.to_str().ok()?.parse::<usize>().ok())
            .unwrap_or(0);
        let mut pieces = Self { body: body.into_data_stream(), limit, total: 0, broken: None };
        if declared > limit {
            pieces.throw_away().await;
            return Err(too_long(declared, limit));
        }
        Ok(pieces)
    }

    /// The next bytes; `None` at the end. A body that breaks off is an error only after all that
    /// came of it was given out.
    pub(super) async fn next(&mut self) -> Result<Option<Vec<u8>>> {
        if let Some(error) = self.broken.take() {
            return Err(error);
        }
        let mut bytes = Vec::new();
        while bytes.len() < UPLOAD_PIECE_BYTES {
            match self.body.next().await {
                Some(Ok(piece)) => {
                    self.total += piece.len();
                    if self.total > self.limit {
                        self.throw_away().await;
                        return Err(too_long(self.total, self.limit));
                    }
                    bytes.extend_from_slice(&piece);
                }
                Some(Err(error)) if bytes.is_empty() => return Err(incomplete(&error)),
                Some(Err(error)) => {
                    self.broken = Some(incomplete(&error));
                    break;
                }
                None => break,
            }
        }
        Ok((!bytes.is_empty()).then_some(bytes))
    }

    /// Reads the rest for a while, so that its sender gets to our answer instead of a broken
    /// connection.
    pub(super) async fn throw_away(&mut self) {
        while self.total <= self.limit + DRAIN_BYTES
            && let Some(Ok(piece)) = self.body.next().await
        {
            self.total += piece.len();
        }
    }
}
