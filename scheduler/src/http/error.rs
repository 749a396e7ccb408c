//! Errors as answers: RFC 9457, `application/problem+json`, with a detail that says what to do next.

use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use schema::api::{Diagnostic, Problem};
use schema::wire::Wanted;

use crate::driver::Refusal;
use crate::store::StoreError;

/// Media type of every error.
pub(super) const PROBLEM: &str = schema::wire::PROBLEM_CONTENT_TYPE;

/// [`schema::wire::OFFSET_HEADER`], as HTTP/2 and this library write it.
pub(super) const OFFSET: HeaderName = HeaderName::from_static("upload-offset");

/// An answer that is not 2xx.
#[derive(Debug)]
pub(super) struct Error(Box<Inner>);

#[derive(Debug)]
struct Inner {
    problem: Problem,
    /// The next byte that an upload should send.
    offset: Option<u64>,
    /// What a report needs before it is accepted.
    wanted: Option<Wanted>,
}

/// What a handler returns.
pub(super) type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// `kind` is the last part of the problem's type, a stable word.
    pub(super) fn new(status: StatusCode, kind: &str, detail: impl Into<String>) -> Self {
        let problem = Problem {
            kind: format!("/problems/{kind}"),
            title: status.canonical_reason().unwrap_or("Error").to_owned(),
            status: status.as_u16(),
            detail: detail.into(),
            problems: Vec::new(),
        };
        Self(Box::new(Inner { problem, offset: None, wanted: None }))
    }

    /// A piece of an upload that leaves a gap: `offset` is the next byte wanted.
    pub(super) fn gap(offset: u64) -> Self {
        let mut error = Self::conflict(format!("bytes before this piece are missing; go on from offset {offset}"));
        error.0.offset = Some(offset);
        error
    }

    /// A report that names what is not here.
    pub(super) fn wanted(wanted: Wanted) -> Self {
        let mut error =
            Self::conflict("what the report names is missing or has another digest; send what is wanted, then the report again");
        error.0.wanted = Some(wanted);
        error
    }

    pub(super) fn conflict(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::CONFLICT, "conflict", detail)
    }

    pub(super) fn gone(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::GONE, "gone", detail)
    }

    pub(super) fn not_found(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, "not-found", detail)
    }

    pub(super) fn bad_request(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "bad-request", detail)
    }

    pub(super) fn unauthorized(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::UNAUTHORIZED, "unauthorized", detail)
    }

    pub(super) fn forbidden(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::FORBIDDEN, "forbidden", detail)
    }

    pub(super) fn too_large(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, "too-large", detail)
    }

    pub(super) fn unavailable(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "unavailable", detail)
    }

    /// Our own fault. The cause is logged here, once, and not shown.
    pub(super) fn internal(cause: impl std::fmt::Display) -> Self {
        tracing::error!("failed to answer a request: {cause}");
        Self::new(
            StatusCode::INTERNAL_SERVER_ERROR,
            "internal",
            "this is a fault in pvn; the scheduler's log has the cause, please report it",
        )
    }

    /// The database holds what this program cannot have written; `why` names the row, which whoever mends it has to know.
    fn unreadable(why: &str) -> Self {
        tracing::error!("failed to answer a request: {why}");
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "unreadable", format!("a row of the database cannot be read: {why}"))
    }

    fn config(problems: Vec<Diagnostic>) -> Self {
        let count = problems.len();
        let things = if count == 1 { "1 problem".to_owned() } else { format!("{count} problems") };
        let mut error = Self::new(
            StatusCode::UNPROCESSABLE_ENTITY,
            "config",
            format!("{things} in what was sent; nothing was stored, correct and send it again"),
        );
        error.0.problem.problems = problems;
        error
    }
}

impl From<StoreError> for Error {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Unavailable(_) | StoreError::Lost(_) | StoreError::Removed(_) => Self::unavailable(format!("{error}; try again")),
            StoreError::Conflict(_) => Self::conflict(error.to_string()),
            StoreError::Invalid(_) => Self::bad_request(error.to_string()),
            StoreError::Corrupt(why) => Self::unreadable(&why),
            StoreError::Copy { .. }
            | StoreError::Newer { .. }
            | StoreError::Owned { .. }
            | StoreError::Paths { .. }
            | StoreError::Sealed(_) => Self::internal(error),
        }
    }
}

impl From<Refusal> for Error {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::NotFound(detail) => Self::not_found(detail),
            Refusal::Conflict(detail) => Self::conflict(detail),
            Refusal::Invalid(detail) => Self::bad_request(detail),
            Refusal::Config(problems) => Self::config(problems),
            Refusal::Unreadable(why) => Self::unreadable(&why),
            Refusal::Unavailable(detail) => Self::unavailable(detail),
        }
    }
}

impl IntoResponse for Error {
    fn into_response(self) -> Response {
        let Inner { problem, offset, wanted } = *self.0;
        let status = StatusCode::from_u16(problem.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let mut body = serde_json::to_value(problem).expect("a problem has a JSON form");
        if let Some(wanted) = wanted {
            // An extension member, as RFC 9457 has them.
            body["wanted"] = serde_json::to_value(wanted).expect("our own types have JSON forms");
        }
        let body = body.to_string();
        let mut response = (status, [(header::CONTENT_TYPE, PROBLEM)], body).into_response();
        if status == StatusCode::UNAUTHORIZED {
            response.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer realm=\"pvn\""));
        }
        if status == StatusCode::SERVICE_UNAVAILABLE {
            response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
        }
        if let Some(offset) = offset {
            response.headers_mut().insert(OFFSET, offset.into());
        }
        response
    }
}
