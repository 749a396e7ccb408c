//! Speaks HTTP with the scheduler. The only place that names `reqwest`. Every answer that is not
//! 2xx is a [`Failure::Refused`] with the server's own words; every wait on the network has a
//! limit.

mod answer;
mod authorities;
mod sse;
mod tls;

use std::time::Duration;

use futures::StreamExt;
use reqwest::{Method, StatusCode, Url};
use schema::api::{Page, Problem};
use schema::wire::PROBLEMS_PATH;
use serde::Serialize;
use serde::de::DeserializeOwned;

use answer::AnswerBody;
pub use authorities::Authorities;
pub use sse::{Events, SseEvent};

use crate::failure::{Failure, speaks_another_language};

/// Longest wait for a connection: beyond it nobody is there.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// Longest silence inside an answer. The server sends a comment into event streams every 15 s, so
/// this means it is gone.
const SILENCE_TIMEOUT: Duration = Duration::from_secs(60);
/// Longest wait for an answer to be whole, however steadily it trickles; twice that with its head.
/// A page of a list is megabytes at most.
const WHOLE_WITHIN: Duration = Duration::from_mins(5);
/// Longest answer read into memory: a page of 1000 large items stays far below.
const ANSWER_LIMIT_BYTES: usize = 256 << 20;
/// Longest time that a connection is kept for the next request. Proxies and schedulers that start
/// anew close those that idle, which is not seen while a person is asked; a wait looks many times
/// within it.
const IDLE_TIMEOUT: Duration = Duration::from_secs(2);
/// Items asked for in one page.
const PAGE_ITEMS: usize = 200;

/// A list as the scheduler told it, joined from its pages.
#[derive(Debug)]
pub struct Listed<T> {
    pub items: Vec<T>,
    /// Rows of the database that belong into the list and cannot be read: each one's place and the
    /// reason.
    pub unreadable: Vec<String>,
}

/// A connection to one scheduler, with a token.
#[derive(Debug, Clone)]
pub struct Client {
    http: reqwest::Client,
    base: Url,
    token: Option<Token>,
    whole_within: Duration,
}

/// What a request does there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Does {
    /// Nothing: it may be sent again.
    Look,
    /// Something, which may have been done although no answer comes.
    Change,
}

/// What opens the door.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Token {
    /// The word.
    pub text: String,
    /// Where it was found, for people.
    pub origin: String,
}

/// Whether the address names this machine by its loopback interface.
pub fn is_local(server: &str) -> bool {
    let Ok(url) = Url::parse(server) else { return false };
    match url.host_str() {
        Some("localhost") => true,
        Some(host) => host
            .trim_matches(['[', ']'])
            .parse::<std::net::IpAddr>()
            .is_ok_and(|address| address.is_loopback()),
        None => false,
    }
}

impl Client {
    /// A client for the scheduler at `server`, `http://HOST:PORT` with an optional path before
    /// `/v1`.
    ///
    /// # Errors
    /// When `server` is no such address.
    pub fn new(
        server: &str,
        authorities: Option<Authorities>,
        token: Option<Token>,
    ) -> Result<Self, Failure> {
        Self::with_timeouts(server, authorities, token, (IDLE_TIMEOUT, WHOLE_WITHIN))
    }

    fn with_timeouts(
        server: &str,
        authorities: Option<Authorities>,
        token: Option<Token>,
        (idle, whole_within): (Duration, Duration),
    ) -> Result<Self, Failure> {
        // Whatever stands before an @ may be a password, which no message repeats.
        let shown = if server.contains('@') {
            "what is given as --server or PVN_SERVER".to_owned()
        } else {
            format!("`{server}`")
        };
        let wrong = |why: &str| {
            Failure::with_next(
                format!("{shown} is not the address of a scheduler: {why}"),
                "write it as http://HOST:PORT",
            )
        };
        if !["http://", "https://"].iter().any(|scheme| server.starts_with(scheme)) {
            return Err(wrong("it does not start with http:// or https://"));
        }
        let base = Url::parse(server).map_err(|error| wrong(&error.to_string()))?;
        if !base.username().is_empty() || base.password().is_some() {
            return Err(wrong(
                "it has a user or a password in it, and a scheduler takes a token alone \
                 (--token-file)",
            ));
        }
        // The whole program's cryptography is ring's; whoever came before set the same.
        let _set_already = rustls::crypto::ring::default_provider().install_default();
        let mut builder = reqwest::Client::builder()
            .user_agent(concat!("pvnctl/", env!("CARGO_PKG_VERSION")))
            .redirect(reqwest::redirect::Policy::none())
            .connect_timeout(CONNECT_TIMEOUT)
            .pool_idle_timeout(idle)
            .read_timeout(SILENCE_TIMEOUT);
        if is_local(server) {
            // A proxy in the environment is for the world outside.
            builder = builder.no_proxy();
        }
        builder = match authorities {
            Some(authorities) => builder.tls_certs_only(authorities.certificates()),
            // Nobody has to vouch for anybody, so a machine without authorities will do.
            None if base.scheme() == "http" => builder.tls_certs_only([]),
            None => builder,
        };
        let http = builder
            .build()
            .map_err(|error| Failure::user(format!("cannot set up the HTTP client: {error}")))?;
        Ok(Self { http, base, token, whole_within })
    }

    /// The server's address as it was given.
    pub fn server(&self) -> &str {
        self.base.as_str().trim_end_matches('/')
    }

    /// Where the token was found, for people; `None` where there is none.
    pub fn token_origin(&self) -> Option<&str> {
        self.token.as_ref().map(|token| token.origin.as_str())
    }

    /// Reads one thing.
    ///
    /// # Errors
    /// [`Failure::Unreachable`], [`Failure::Refused`].
    pub async fn get<T: DeserializeOwned>(
        &self,
        path: &[&str],
        query: &[(&str, String)],
    ) -> Result<T, Failure> {
        self.answer(self.request(Method::GET, path, query)?, Does::Look).await
    }

    /// Reads bytes as they are.
    ///
    /// # Errors
    /// [`Failure::Unreachable`], [`Failure::Refused`].
    pub async fn get_bytes(
        &self,
        path: &[&str],
        query: &[(&str, String)],
    ) -> Result<Vec<u8>, Failure> {
        let answer = self
            .sent_for(AnswerBody::Bytes, self.request(Method::GET, path, query)?, Does::Look)
            .await?;
        self.body(answer, Does::Look).await
    }

    /// Reads a whole list page by page, at most `limit` items.
    ///
    /// # Errors
    /// [`Failure::Unreachable`], [`Failure::Refused`].
    pub async fn list<T: DeserializeOwned>(
        &self,
        path: &[&str],
        query: &[(&str, String)],
        limit: Option<usize>,
    ) -> Result<Listed<T>, Failure> {
        let mut listed = Listed { items: Vec::new(), unreadable: Vec::new() };
        let mut left = limit.unwrap_or(usize::MAX);
        let mut cursor: Option<String> = None;
        while left > 0 {
            let mut query = query.to_vec();
            query.push(("limit", left.min(PAGE_ITEMS).to_string()));
            query.extend(cursor.take().map(|cursor| ("cursor", cursor)));
            let mut page: Page<T> = self.get(path, &query).await?;
            page.items.truncate(left);
            left -= page.items.len();
            listed.items.extend(page.items);
            listed.unreadable.extend(page.unreadable);
            cursor = page.next_cursor;
            if cursor.is_none() {
                break;
            }
        }
        Ok(listed)
    }

    /// Sends a body that changes something and reads the answer.
    ///
    /// # Errors
    /// [`Failure::Unreachable`], [`Failure::Unknown`], [`Failure::Refused`].
    pub async fn post<T: DeserializeOwned>(
        &self,
        path: &[&str],
        body: &impl Serialize,
    ) -> Result<T, Failure> {
        self.answer(self.request(Method::POST, path, &[])?.json(body), Does::Change).await
    }

    /// Sends a body that only asks, and reads the answer.
    ///
    /// # Errors
    /// [`Failure::Unreachable`], [`Failure::Refused`].
    pub async fn ask<T: DeserializeOwned>(
        &self,
        path: &[&str],
        query: &[(&str, String)],
        body: &impl Serialize,
    ) -> Result<T, Failure> {
        self.answer(self.request(Method::POST, path, query)?.json(body), Does::Look).await
    }

    /// Puts a body in place and reads the answer.
    ///
    /// # Errors
    /// [`Failure::Unreachable`], [`Failure::Unknown`], [`Failure::Refused`].
    pub async fn put<T: DeserializeOwned>(
        &self,
        path: &[&str],
        body: &impl Serialize,
    ) -> Result<T, Failure> {
        self.answer(self.request(Method::PUT, path, &[])?.json(body), Does::Change).await
    }

    /// Deletes.
    ///
    /// # Errors
    /// [`Failure::Unreachable`], [`Failure::Unknown`], [`Failure::Refused`].
    pub async fn delete(&self, path: &[&str]) -> Result<(), Failure> {
        self.sent_for(AnswerBody::None, self.request(Method::DELETE, path, &[])?, Does::Change)
            .await
            .map(drop)
    }

    /// Opens a stream of server-sent events; `last_id` is the one after which to go on.
    ///
    /// # Errors
    /// [`Failure::Unreachable`], [`Failure::Refused`].
    pub async fn events(
        &self,
        path: &[&str],
        query: &[(&str, String)],
        last_id: Option<&str>,
    ) -> Result<Events, Failure> {
        let mut request =
            self.request(Method::GET, path, query)?.header("accept", "text/event-stream");
        if let Some(id) = last_id {
            request = request.header("last-event-id", id);
        }
        let answer = self.sent_for(AnswerBody::Events, request, Does::Look).await?;
        let client = self.clone();
        let bytes = answer.bytes_stream().map(move |piece| {
            piece.map(|bytes| bytes.to_vec()).map_err(|error| client.unreachable(&error))
        });
        Ok(Events::new(bytes.boxed()))
    }

    fn request(
        &self,
        method: Method,
        path: &[&str],
        query: &[(&str, String)],
    ) -> Result<reqwest::RequestBuilder, Failure> {
        let mut url = self.base.clone();
        url.path_segments_mut()
            .map_err(|()| Failure::user(format!("`{}` cannot carry a path", self.base)))?
            .pop_if_empty()
            .extend(path);
        let mut request =
            self.http.request(method, url).query(query).header("accept", "application/json");
        if let Some(token) = &self.token {
            request = request.bearer_auth(&token.text);
        }
        Ok(request)
    }

    /// The same where the answer has to be of this kind.
    async fn sent_for(
        &self,
        body: AnswerBody,
        request: reqwest::RequestBuilder,
        does: Does,
    ) -> Result<reqwest::Response, Failure> {
        let answer = self.sent(request, does).await?;
        if body.is_in(&answer) {
            return Ok(answer);
        }
        Err(self.foreign(
            format!("answered with {}, not in a scheduler's words", answer.status()),
            None,
            does,
        ))
    }

    async fn sent(
        &self,
        request: reqwest::RequestBuilder,
        does: Does,
    ) -> Result<reqwest::Response, Failure> {
        let head = async { request.send().await.map_err(|error| self.broken_off(&error, does)) };
        let answer = self.in_time(does, head).await?;
        if answer.status().is_success() {
            return Ok(answer);
        }
        let status = answer.status();
        let body = self.body(answer, does).await?;
        // Gateways tell problems too, of another type.
        let told: Option<Problem> = serde_json::from_slice(&body)
            .ok()
            .filter(|told: &Problem| told.kind.contains(PROBLEMS_PATH));
        let Some(problem) = told.map(Box::new) else {
            return Err(self.foreign(
                format!("answered with {status}, not in a scheduler's words"),
                Some(status),
                does,
            ));
        };
        Err(match &self.token {
            Some(token) if status == StatusCode::UNAUTHORIZED => Failure::Token {
                server: self.server().to_owned(),
                origin: token.origin.clone(),
                problem,
            },
            _ => Failure::Refused(problem),
        })
    }
}

/// The innermost cause: "connection refused" rather than "error sending request".
fn cause(error: &reqwest::Error) -> String {
    if error.is_timeout() {
        return if error.is_connect() {
            format!("no answer within {} s", CONNECT_TIMEOUT.as_secs())
        } else {
            format!("silent for {} s", SILENCE_TIMEOUT.as_secs())
        };
    }
    let mut innermost: &dyn std::error::Error = error;
    while let Some(source) = innermost.source() {
        innermost = source;
    }
    let text = innermost.to_string();
    // The operating system's number helps nobody.
    text.split(" (os error").next().unwrap_or(&text).to_lowercase()
}

/// Whether a scheduler may have got the request. Not where no connection came about, where the
/// request was given back unsent (source: the words of hyper for `Canceled`), and where whoever
/// listens speaks no HTTP.
fn may_have_arrived(error: &reqwest::Error) -> bool {
    let mut next: Option<&dyn std::error::Error> = Some(error);
    while let Some(error) = next {
        if error.to_string() == "operation was canceled" {
            return false;
        }
        next = error.source();
    }
    !error.is_builder() && !error.is_connect() && !speaks_another_language(&cause(error))
}

#[cfg(test)]
mod tests;
