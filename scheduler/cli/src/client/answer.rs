//! How an answer is read: whose it is, how large, how long it may take, and what it means when
//! there is none.

use futures::StreamExt;
use reqwest::StatusCode;
use reqwest::header::CONTENT_TYPE;
use serde::de::DeserializeOwned;

use super::{ANSWER_LIMIT_BYTES, Client, Does, cause, may_have_arrived, tls};
use crate::failure::Failure;

/// What a scheduler answers with where that is no JSON, which tells by itself whose it is. The page
/// of a proxy is none of these.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AnswerBody {
    /// The bytes of an output or a file.
    Bytes,
    /// Server-sent events.
    Events,
    /// Nothing: it is done.
    None,
}

impl AnswerBody {
    pub(super) fn is_in(self, answer: &reqwest::Response) -> bool {
        let is = |kind: &str| {
            let told = answer
                .headers()
                .get(CONTENT_TYPE)
                .and_then(|value| value.to_str().ok())
                .unwrap_or_default();
            told.split(';').next().is_some_and(|told| told.trim().eq_ignore_ascii_case(kind))
        };
        match self {
            Self::Bytes => is("application/octet-stream"),
            Self::Events => is("text/event-stream"),
            Self::None => answer.status() == StatusCode::NO_CONTENT,
        }
    }
}

impl Client {
    pub(super) async fn body(
        &self,
        answer: reqwest::Response,
        does: Does,
    ) -> Result<Vec<u8>, Failure> {
        let whole = async {
            let mut body = Vec::new();
            let mut pieces = answer.bytes_stream();
            while let Some(piece) = pieces.next().await {
                body.extend_from_slice(&piece.map_err(|error| self.broken_off(&error, does))?);
                if body.len() > ANSWER_LIMIT_BYTES {
                    return Err(self.foreign(
                        format!("answers with more than {ANSWER_LIMIT_BYTES} bytes"),
                        None,
                        does,
                    ));
                }
            }
            Ok(body)
        };
        self.in_time(does, whole).await
    }

    /// What is waited for no longer than an answer may take.
    pub(super) async fn in_time<T>(
        &self,
        does: Does,
        answer: impl Future<Output = Result<T, Failure>>,
    ) -> Result<T, Failure> {
        let (server, why) = (
            self.server().to_owned(),
            format!("its answer was not whole within {} s", self.whole_within.as_secs()),
        );
        tokio::time::timeout(self.whole_within, answer).await.unwrap_or_else(|_| {
            Err(match does {
                Does::Change => Failure::Unknown { server, why },
                Does::Look => Failure::Unreachable {
                    server,
                    why,
                    next: Some("whoever answers there, or the network, is too slow".to_owned()),
                },
            })
        })
    }

    pub(super) async fn answer<T: DeserializeOwned>(
        &self,
        request: reqwest::RequestBuilder,
        does: Does,
    ) -> Result<T, Failure> {
        let answer = self.sent(request, does).await?;
        let body = self.body(answer, does).await?;
        serde_json::from_slice(&body).map_err(|error| {
            self.foreign(format!("does not answer as a scheduler does: {error}"), None, does)
        })
    }

    /// Something else answered. Whoever stands before the scheduler may have handed the request on.
    pub(super) fn foreign(&self, what: String, status: Option<StatusCode>, does: Does) -> Failure {
        let server = self.server().to_owned();
        let is_passing = status.is_some_and(|status| {
            status == StatusCode::TOO_MANY_REQUESTS || status.is_server_error()
        });
        match does {
            Does::Change => Failure::Unknown {
                server,
                why: format!("something else under that address {what}"),
            },
            Does::Look => Failure::Foreign { server, what, is_passing },
        }
    }

    /// What an error of the network means for a request: where it was sent and changes something,
    /// that nobody knows what became of it.
    pub(super) fn broken_off(&self, error: &reqwest::Error, does: Does) -> Failure {
        match does {
            Does::Change if may_have_arrived(error) => {
                Failure::Unknown { server: self.server().to_owned(), why: cause(error) }
            }
            Does::Change | Does::Look => self.unreachable(error),
        }
    }

    pub(super) fn unreachable(&self, error: &reqwest::Error) -> Failure {
        let server = self.server().to_owned();
        match tls::told(error) {
            Some(told) => Failure::Unreachable { server, why: told.why, next: Some(told.next) },
            None => {
                let is_silent = error.is_timeout() && !error.is_connect();
                let next = is_silent.then(|| {
                    format!(
                        "it listens and does not answer: its log says why, and {server}/readyz (a \
                         disk that hangs, say)"
                    )
                });
                Failure::Unreachable { server, why: cause(error), next }
            }
        }
    }
}
