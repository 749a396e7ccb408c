//! What the headers of an upload say.

use axum::http::{HeaderMap, HeaderName, header};

use crate::http::error::{Error, ErrorKind, Result};

/// A number in a header, when it is there.
pub(super) fn number(headers: &HeaderMap, name: &HeaderName) -> Result<Option<u64>> {
    let Some(value) = headers.get(name) else { return Ok(None) };
    // Digits alone: a sign is no part of an offset.
    let digits = value
        .to_str()
        .ok()
        .map(str::trim)
        .filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()));
    let number = digits
        .and_then(|text| text.parse::<u64>().ok())
        .filter(|number| *number <= i64::MAX.unsigned_abs());
    number.map(Some).ok_or_else(|| {
        Error::bad_request(format!(
            "the header {name} is `{}` and should be a number of bytes",
            value.to_str().unwrap_or("…")
        ))
    })
}

fn media_type(headers: &HeaderMap) -> Option<String> {
    let value = headers.get(header::CONTENT_TYPE)?.to_str().unwrap_or_default();
    Some(value.split(';').next().unwrap_or_default().trim().to_ascii_lowercase())
}

pub(super) fn check_type(headers: &HeaderMap, known: &[&str]) -> Result<()> {
    match media_type(headers) {
        Some(found) if !known.contains(&found.as_str()) => Err(Error::new(
            ErrorKind::MediaType,
            format!("the body is `{found}`; send raw bytes with `Content-Type: {}`", known[0]),
        )),
        _ => Ok(()),
    }
}

/// A form wraps what it carries, and the wrapping would be stored with it. Everything else is taken
/// as it is.
pub(super) fn refuse_form(headers: &HeaderMap) -> Result<()> {
    match media_type(headers) {
        Some(found) if found.starts_with("multipart/") => Err(Error::new(
            ErrorKind::MediaType,
            format!(
                "the body is `{found}`, which wraps the bytes; send them raw, with curl by \
                 --data-binary or -T"
            ),
        )),
        _ => Ok(()),
    }
}
