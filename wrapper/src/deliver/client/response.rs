//! What an answer means: the scheduler's, or that of somebody between. Called by `client`.

use std::time::SystemTime;

use schema::wire;
use ureq::http::{HeaderMap, StatusCode, header};

use super::RequestFault;
use crate::deliver::backoff;

pub(super) struct Response {
    pub(super) status: StatusCode,
    pub(super) headers: HeaderMap,
    pub(super) body: Vec<u8>,
}

impl Response {
    fn text(&self, name: impl header::AsHeaderName) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    pub(super) fn offset(&self) -> Option<u64> {
        self.text(wire::OFFSET_HEADER)?.trim().parse().ok()
    }

    /// Sorts out what is neither a success nor a 409.
    pub(super) fn checked(self) -> Result<Self, RequestFault> {
        match self.status.as_u16() {
            200..=299 | 409 => Ok(self),
            404 | 410 => Err(self.over()),
            413 | 422 if self.is_problem() => Err(RequestFault::Never(self.why())),
            413 => Err(RequestFault::TooLarge(self.why())),
            300..=399 => {
                let to = self.text(header::LOCATION).unwrap_or("nowhere");
                Err(self.again(&format!(
                    "it redirects to {to}; set {} to where the scheduler is",
                    wire::URL_VARIABLE
                )))
            }
            _ => Err(self.again("")),
        }
    }

    /// The job is over, if it is the scheduler that says so, and does not say what it wants in a
    /// way that cannot be read.
    pub(super) fn over(&self) -> RequestFault {
        let body = serde_json::from_slice::<serde_json::Value>(&self.body).unwrap_or_default();
        let wants = self.text(wire::OFFSET_HEADER).is_some()
            || body.get("wanted").is_some_and(|wanted| !wanted.is_null());
        if self.is_problem() && !wants {
            RequestFault::Over(self.why())
        } else {
            self.not_the_schedulers()
        }
    }

    /// Whether it is an error as the protocol has them. A gateway speaks of problems too where it
    /// has no route or takes no body of this size, of a kind of its own (`about:blank`, or a
    /// section of an RFC); one that names no kind is believed.
    pub(super) fn is_problem(&self) -> bool {
        let is_of_a_gateway = |kind: &str| {
            !matches!(self.status.as_u16(), 409 | 410) && !kind.contains(wire::PROBLEMS_PATH)
        };
        media_type(&self.headers) == Some(wire::PROBLEM_CONTENT_TYPE)
            && !self.word("type").is_some_and(|kind| is_of_a_gateway(&kind))
    }

    /// What a problem says under this name (RFC 9457).
    fn word(&self, name: &str) -> Option<String> {
        let problem: serde_json::Value = serde_json::from_slice(&self.body).ok()?;
        Some(problem.get(name)?.as_str()?.to_owned())
    }

    /// Somebody else answered in the scheduler's place.
    pub(super) fn not_the_schedulers(&self) -> RequestFault {
        let kind = media_type(&self.headers).unwrap_or("nothing that says what it is");
        self.again(&format!(
            "this is no answer of a pvn scheduler ({kind}); is something between, or {} wrong?",
            wire::URL_VARIABLE
        ))
    }

    fn again(&self, hint: &str) -> RequestFault {
        let after = self
            .text(header::RETRY_AFTER)
            .and_then(|value| backoff::retry_after(value, self.text(header::DATE), now()));
        let why = if hint.is_empty() { self.why() } else { format!("{}: {hint}", self.why()) };
        RequestFault::Again { why, after }
    }

    /// The status, and what the scheduler says about it (RFC 9457).
    pub(super) fn why(&self) -> String {
        match self.word("detail").or_else(|| self.word("title")) {
            Some(words) => {
                format!(
                    "{} ({})",
                    self.status,
                    words
                        .chars()
                        .filter(|c| !schema::shown::steers(*c))
                        .take(300)
                        .collect::<String>()
                )
            }
            None => self.status.to_string(),
        }
    }
}

/// The media type of an answer, without its parameters.
pub(super) fn media_type(headers: &HeaderMap) -> Option<&str> {
    let value = headers.get(header::CONTENT_TYPE)?.to_str().ok()?;
    Some(value.split(';').next().unwrap_or_default().trim()).filter(|kind| !kind.is_empty())
}

#[expect(
    clippy::disallowed_methods,
    reason = "only where an answer names a time of day and not its own"
)]
fn now() -> SystemTime {
    SystemTime::now()
}
