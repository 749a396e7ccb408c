//! Path, query and body as types. What cannot be read is a problem that names the field.

use axum::body::Body as Raw;
use axum::extract::{FromRequest, FromRequestParts, Path, Request};
use axum::http::header;
use axum::http::request::Parts;
use futures::StreamExt;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

mod unique;

use super::Api;
use super::error::{Error, ErrorKind, Result};
use super::limits::{BODY_BYTES, CONFIGS_BODY_BYTES, DRAIN_BYTES, OUTPUT_PIECE_BYTES};
use super::openapi::{HandlerInput, Operation, body, parameters};
use crate::store::{PAGE_DEFAULT, PAGE_LIMIT, PageRequest};

/// The variable parts of the path.
pub(super) struct PathParams<T>(pub(super) T);

impl<T: DeserializeOwned + Send> FromRequestParts<Api> for PathParams<T> {
    type Rejection = Error;

    async fn from_request_parts(parts: &mut Parts, api: &Api) -> Result<Self> {
        match Path::from_request_parts(parts, api).await {
            Ok(Path(value)) => Ok(Self(value)),
            Err(rejection) => Err(Error::bad_request(format!(
                "the path `{}` cannot be read: {}",
                parts.uri.path(),
                rejection.body_text()
            ))),
        }
    }
}

impl<T: JsonSchema> HandlerInput for PathParams<T> {
    fn describe(operation: &mut Operation<'_>) {
        parameters::<T>(operation, "path");
    }
}

pub(super) struct Query<T>(pub(super) T);

impl<T: DeserializeOwned + Send> FromRequestParts<Api> for Query<T> {
    type Rejection = Error;

    async fn from_request_parts(parts: &mut Parts, api: &Api) -> Result<Self> {
        match axum::extract::Query::from_request_parts(parts, api).await {
            Ok(axum::extract::Query(value)) => Ok(Self(value)),
            Err(rejection) => Err(Error::bad_request(format!(
                "the query `?{}` cannot be read: {}; /openapi.json lists what `{}` takes",
                parts.uri.query().unwrap_or_default(),
                rejection.body_text().trim_start_matches("Failed to deserialize query string: "),
                parts.uri.path()
            ))),
        }
    }
}

impl<T: JsonSchema> HandlerInput for Query<T> {
    fn describe(operation: &mut Operation<'_>) {
        parameters::<T>(operation, "query");
    }
}

/// Where in a list, and how much of it.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Paging {
    /// The `nextCursor` of the page before.
    pub(super) cursor: Option<String>,
    /// Most items, 1 to 1000; 100 when nothing is said.
    pub(super) limit: Option<u32>,
}

/// A request for a page.
pub(super) fn page(cursor: Option<String>, limit: Option<u32>) -> Result<PageRequest> {
    if limit == Some(0) {
        return Err(Error::bad_request(format!(
            "`limit` is 1 to {PAGE_LIMIT}; without it a page has {PAGE_DEFAULT} items"
        )));
    }
    Ok(PageRequest { cursor, limit })
}

/// How many bytes of an output to answer with. None would be taken for its end.
pub(super) fn piece_bytes(limit: Option<u64>) -> Result<usize> {
    match limit {
        None => Ok(OUTPUT_PIECE_BYTES),
        Some(0) => Err(Error::bad_request(
            "`limit` is at least 1 byte; without it as much is sent as there is, 1 MiB at most",
        )),
        Some(limit) => Ok(usize::try_from(limit).unwrap_or(usize::MAX).min(OUTPUT_PIECE_BYTES)),
    }
}

/// A JSON body of at most 1 MiB. An absent one is read as `{}`.
pub(super) struct JsonBody<T>(pub(super) T);

impl<T: DeserializeOwned> FromRequest<Api> for JsonBody<T> {
    type Rejection = Error;

    async fn from_request(request: Request, _: &Api) -> Result<Self> {
        read_json(request, BODY_BYTES).await.map(Self)
    }
}

impl<T: JsonSchema> HandlerInput for JsonBody<T> {
    fn describe(operation: &mut Operation<'_>) {
        body::<T>(operation);
    }
}

/// The body of a request with which nothing is said.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct EmptyBody {}

/// A JSON body of at most 64 MiB, for config files.
pub(super) struct LargeBody<T>(pub(super) T);

impl<T: DeserializeOwned> FromRequest<Api> for LargeBody<T> {
    type Rejection = Error;

    async fn from_request(request: Request, _: &Api) -> Result<Self> {
        read_json(request, CONFIGS_BODY_BYTES).await.map(Self)
    }
}

impl<T: JsonSchema> HandlerInput for LargeBody<T> {
    fn describe(operation: &mut Operation<'_>) {
        body::<T>(operation);
    }
}

async fn read_json<T: DeserializeOwned>(request: Request, limit: usize) -> Result<T> {
    let (parts, body) = request.into_parts();
    let bytes = read(body, limit).await?;
    if let Some(kind) = parts.headers.get(header::CONTENT_TYPE) {
        let kind = kind.to_str().unwrap_or_default();
        let essence = kind.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
        if essence != "application/json" && !essence.ends_with("+json") {
            return Err(Error::new(
                ErrorKind::MediaType,
                format!("the body is `{kind}`; send JSON with `Content-Type: application/json`"),
            ));
        }
    }
    let bytes: &[u8] = if bytes.is_empty() { b"{}" } else { &bytes };
    unique::check(bytes).map_err(unreadable)?;
    parse_json(bytes)
}

fn unreadable(error: serde_path_to_error::Error<serde_json::Error>) -> Error {
    let path = error.path().to_string();
    let at = if path == "." || path == "?" { String::new() } else { format!(" at `{path}`") };
    Error::bad_request(format!("the body cannot be read{at}: {}", error.inner()))
}

/// A JSON body as a value, or what is wrong with it and where. All of ours are objects; serde would
/// also take a list of a type's fields in order, and an empty one for a body that says nothing.
pub(super) fn parse_json<T: DeserializeOwned>(bytes: &[u8]) -> Result<T> {
    if bytes.trim_ascii_start().starts_with(b"[") {
        return Err(Error::bad_request(
            "the body cannot be read: expected an object, found an array",
        ));
    }
    let mut json = serde_json::Deserializer::from_slice(bytes);
    let value = serde_path_to_error::deserialize(&mut json).map_err(unreadable)?;
    json.end().map_err(|error| {
        Error::bad_request(format!("the body goes on after its JSON value: {error}"))
    })?;
    Ok(value)
}

/// Reads a body. One that is too long is read on for a while and thrown away, so that its sender
/// gets to our answer.
pub(super) async fn read(body: Raw, limit: usize) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let mut total = 0;
    let mut pieces = body.into_data_stream();
    while let Some(piece) = pieces.next().await {
        let piece = piece.map_err(|error| incomplete(&error))?;
        total += piece.len();
        if total <= limit {
            bytes.extend_from_slice(&piece);
        } else {
            bytes = Vec::new();
        }
        if total > limit + DRAIN_BYTES {
            break;
        }
    }
    if total > limit {
        return Err(too_long(total, limit));
    }
    Ok(bytes)
}

/// A body that ended before its end.
pub(super) fn incomplete(error: &axum::Error) -> Error {
    Error::new(
        ErrorKind::IncompleteBody,
        format!("the body did not arrive: {error}; send it again"),
    )
}

/// A body of `total` bytes, as far as it was read.
pub(super) fn too_long(total: usize, limit: usize) -> Error {
    let what = if total > limit + DRAIN_BYTES {
        format!("more than {DRAIN_BYTES}")
    } else {
        total.to_string()
    };
    Error::too_large(format!(
        "the body has {what} bytes and at most {limit} are read here; send less at a time"
    ))
}
