//! Errors as answers: RFC 9457, `application/problem+json`, with a detail that says what to do
//! next.

use std::sync::Arc;

use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use schema::api::{Diagnostic, Problem};
use schema::wire::{PROBLEMS_PATH, Wanted};

use crate::driver::Refusal;
use crate::store::StoreError;

/// Media type of every error.
pub(super) const PROBLEM: &str = schema::wire::PROBLEM_CONTENT_TYPE;

/// [`schema::wire::OFFSET_HEADER`], as HTTP/2 and this library write it.
pub(super) const OFFSET: HeaderName = HeaderName::from_static("upload-offset");

/// What kind of error it is: the last part of the problem's type, a stable word, and the status.
/// The table in docs/api.md has each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ErrorKind {
    BadRequest,
    Unauthorized,
    Forbidden,
    NotFound,
    MethodNotAllowed,
    IncompleteBody,
    Conflict,
    Gone,
    TooLarge,
    MediaType,
    Config,
    Internal,
    Unreadable,
    Unavailable,
}

impl ErrorKind {
    #[cfg(test)]
    const ALL: [Self; 14] = [
        Self::BadRequest,
        Self::Unauthorized,
        Self::Forbidden,
        Self::NotFound,
        Self::MethodNotAllowed,
        Self::IncompleteBody,
        Self::Conflict,
        Self::Gone,
        Self::TooLarge,
        Self::MediaType,
        Self::Config,
        Self::Internal,
        Self::Unreadable,
        Self::Unavailable,
    ];

    const fn parts(self) -> (StatusCode, &'static str) {
        match self {
            Self::BadRequest => (StatusCode::BAD_REQUEST, "bad-request"),
            Self::Unauthorized => (StatusCode::UNAUTHORIZED, "unauthorized"),
            Self::Forbidden => (StatusCode::FORBIDDEN, "forbidden"),
            Self::NotFound => (StatusCode::NOT_FOUND, "not-found"),
            Self::MethodNotAllowed => (StatusCode::METHOD_NOT_ALLOWED, "method-not-allowed"),
            Self::IncompleteBody => (StatusCode::REQUEST_TIMEOUT, "incomplete-body"),
            Self::Conflict => (StatusCode::CONFLICT, "conflict"),
            Self::Gone => (StatusCode::GONE, "gone"),
            Self::TooLarge => (StatusCode::PAYLOAD_TOO_LARGE, "too-large"),
            Self::MediaType => (StatusCode::UNSUPPORTED_MEDIA_TYPE, "media-type"),
            Self::Config => (StatusCode::UNPROCESSABLE_ENTITY, "config"),
            Self::Internal => (StatusCode::INTERNAL_SERVER_ERROR, "internal"),
            Self::Unreadable => (StatusCode::INTERNAL_SERVER_ERROR, "unreadable"),
            Self::Unavailable => (StatusCode::SERVICE_UNAVAILABLE, "unavailable"),
        }
    }
}

/// An answer that is not 2xx.
#[derive(Debug, Clone)]
pub(super) struct Error(Box<ErrorInner>);

#[derive(Debug, Clone)]
struct ErrorInner {
    problem: Problem,
    /// The next byte that an upload should send.
    offset: Option<u64>,
    /// What a report needs before it is accepted.
    wanted: Option<Wanted>,
}

/// What a handler returns.
pub(super) type Result<T> = std::result::Result<T, Error>;

impl Error {
    pub(super) fn new(kind: ErrorKind, detail: impl Into<String>) -> Self {
        let (status, kind) = kind.parts();
        let problem = Problem {
            kind: format!("{PROBLEMS_PATH}{kind}"),
            title: status.canonical_reason().unwrap_or("Error").to_owned(),
            status: status.as_u16(),
            detail: detail.into(),
            problems: Vec::new(),
        };
        Self(Box::new(ErrorInner { problem, offset: None, wanted: None }))
    }

    /// What it says to whoever reads it.
    pub(super) fn detail(&self) -> &str {
        &self.0.problem.detail
    }

    /// A piece of an upload that leaves a gap: `offset` is the next byte wanted.
    pub(super) fn gap(offset: u64) -> Self {
        let mut error = Self::conflict(format!(
            "bytes before this piece are missing; go on from offset {offset}"
        ));
        error.0.offset = Some(offset);
        error
    }

    /// A report that names what is not here.
    pub(super) fn wanted(wanted: Wanted) -> Self {
        let mut error = Self::conflict(
            "what the report names is missing or has another digest; send what is wanted, then \
             the report again",
        );
        error.0.wanted = Some(wanted);
        error
    }

    pub(super) fn conflict(detail: impl Into<String>) -> Self {
        Self::new(ErrorKind::Conflict, detail)
    }

    pub(super) fn gone(detail: impl Into<String>) -> Self {
        Self::new(ErrorKind::Gone, detail)
    }

    pub(super) fn not_found(detail: impl Into<String>) -> Self {
        Self::new(ErrorKind::NotFound, detail)
    }

    pub(super) fn bad_request(detail: impl Into<String>) -> Self {
        Self::new(ErrorKind::BadRequest, detail)
    }

    pub(super) fn unauthorized(detail: impl Into<String>) -> Self {
        Self::new(ErrorKind::Unauthorized, detail)
    }

    pub(super) fn forbidden(detail: impl Into<String>) -> Self {
        Self::new(ErrorKind::Forbidden, detail)
    }

    pub(super) fn too_large(detail: impl Into<String>) -> Self {
        Self::new(ErrorKind::TooLarge, detail)
    }

    pub(super) fn unavailable(detail: impl Into<String>) -> Self {
        Self::new(ErrorKind::Unavailable, detail)
    }

    /// Our own fault. The cause is logged here, once, and not shown.
    pub(super) fn internal(cause: impl std::fmt::Display) -> Self {
        tracing::error!("failed to answer a request: {cause}");
        Self::new(
            ErrorKind::Internal,
            "this is a fault in pvn; the scheduler's log has the cause, please report it",
        )
    }

    /// The database holds what this program cannot have written; `why` names the row, which whoever
    /// mends it has to know.
    fn unreadable(why: &str) -> Self {
        tracing::error!("failed to answer a request: {why}");
        Self::new(ErrorKind::Unreadable, format!("a row of the database cannot be read: {why}"))
    }

    fn config(problems: Vec<Diagnostic>) -> Self {
        let count = problems.len();
        let things = if count == 1 { "1 problem".to_owned() } else { format!("{count} problems") };
        let mut error = Self::new(
            ErrorKind::Config,
            format!("{things} in what was sent; nothing was stored, correct and send it again"),
        );
        error.0.problem.problems = problems;
        error
    }
}

impl From<StoreError> for Error {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Unavailable(_) | StoreError::Lost(_) | StoreError::Removed(_) => {
                Self::unavailable(format!("{error}; try again"))
            }
            StoreError::Conflict(_) => Self::conflict(error.to_string()),
            StoreError::Invalid(_) => Self::bad_request(error.to_string()),
            StoreError::Corrupt(why) => Self::unreadable(&why),
            StoreError::Copy { .. }
            | StoreError::Newer { .. }
            | StoreError::Owned { .. }
            | StoreError::Paths { .. }
            | StoreError::Damaged { .. }
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
            Refusal::Forbidden(detail) => Self::forbidden(detail),
            Refusal::Config(problems) => Self::config(problems),
            Refusal::Unreadable(why) => Self::unreadable(&why),
            Refusal::Unavailable(detail) => Self::unavailable(detail),
        }
    }
}

impl IntoResponse for Error {
    fn into_response(self) -> Response {
        let ErrorInner { problem, offset, wanted } = *self.0;
        let status =
            StatusCode::from_u16(problem.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let mut body = serde_json::to_value(&problem).expect("a problem has a JSON form");
        if let Some(wanted) = wanted {
            // An extension member, as RFC 9457 has them.
            body["wanted"] = serde_json::to_value(wanted).expect("our own types have JSON forms");
        }
        let body = body.to_string();
        let mut response = (status, [(header::CONTENT_TYPE, PROBLEM)], body).into_response();
        // What a browser asked for is answered by a page that says the same.
        response.extensions_mut().insert(Arc::new(problem));
        if status == StatusCode::UNAUTHORIZED {
            response
                .headers_mut()
                .insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer realm=\"pvn\""));
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_type_of_problem_is_in_the_docs_with_its_status_and_no_other() {
        let docs = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/api.md"))
            .unwrap();
        let rows: Vec<_> =
            docs.lines().filter_map(|line| line.split_once("| `/problems/")).collect();
        let documented = rows.iter().map(|(status, rest)| {
            (status.trim_matches(['|', ' ']), rest.split('`').next().unwrap_or_default())
        });
        let known: Vec<_> = ErrorKind::ALL
            .map(ErrorKind::parts)
            .iter()
            .map(|(status, word)| (status.as_u16().to_string(), *word))
            .collect();
        assert_eq!(
            documented.collect::<Vec<_>>(),
            known.iter().map(|(status, word)| (status.as_str(), *word)).collect::<Vec<_>>()
        );
    }
}
