//! Hands a message to a server over HTTP. The one place of the daemon that names `reqwest`.
//! Whatever the server does, it ends soon and takes little: a deadline for all of it, a few bytes
//! of the answer, no redirect followed.

use std::error::Error;
use std::sync::OnceLock;
use std::time::Duration;

use reqwest::{Client, Response, StatusCode, Url, header};
use schema::mask::{self, Secrets};
use schema::shown::seen;

use super::SendFailure;

/// How long a connection may take to come about.
const CONNECT_WITHIN: Duration = Duration::from_secs(5);

/// How long all of it may take. Source: Standard Webhooks advises 15 s to 30 s; Slack answers in
/// one, and a server that only takes a message needs no more than this.
pub(super) const ANSWER_WITHIN: Duration = Duration::from_secs(15);

/// Bytes that are read of an answer that says no.
const ANSWER_LIMIT_BYTES: usize = 2 << 10;

/// Letters and digits in a row that nobody takes for a word.
const TOKEN_BYTES: usize = 16;

/// Characters of such an answer that people are shown.
const SAID_LIMIT_CHARS: usize = 200;

/// A message on its way to a server.
pub(super) struct HttpPost<'a> {
    pub(super) url: &'a str,
    pub(super) headers: Vec<(&'static str, String)>,
    /// JSON.
    pub(super) body: String,
}

/// The clients, each made when it is first needed: with TLS or without, through the proxy of the
/// environment or, for this machine, not.
#[derive(Debug)]
pub(super) struct Poster {
    clients: [OnceLock<Client>; 4],
    /// How long all of a message may take.
    within: Duration,
}

impl Poster {
    pub(super) fn new(within: Duration) -> Self {
        Self { clients: Default::default(), within }
    }

    /// Sends it; well when the server took it, which any 2xx says.
    pub(super) async fn post(
        &self,
        post: &HttpPost<'_>,
        secrets: Option<&Secrets>,
    ) -> Result<(), SendFailure> {
        let hide = |text: &str| mask::hide(secrets, text).into_owned();
        let url = Url::parse(post.url)
            .map_err(|error| SendFailure::later(hide(&format!("`url` is no URL: {error}"))))?;
        let client = self.client(&url)?;
        let mut request = client
            .post(url)
            .header(header::CONTENT_TYPE, "application/json")
            .body(post.body.clone());
        for (name, value) in &post.headers {
            request = request.header(*name, value);
        }
        let sent = tokio::time::timeout(self.within, async {
            let answer = request.send().await.map_err(|error| {
                SendFailure::later(hide(&format!("it cannot be reached: {}", cause(error))))
            })?;
            judge(answer, hide).await
        });
        sent.await.unwrap_or_else(|_| {
            Err(SendFailure::later(format!("it did not answer within {:?}", self.within)))
        })
    }

    fn client(&self, url: &Url) -> Result<&Client, SendFailure> {
        let is_plain = url.scheme() == "http";
        let is_local = url
            .host_str()
            .is_some_and(|host| matches!(host, "localhost" | "[::1]") || host.starts_with("127."));
        let place = &self.clients[usize::from(is_plain) * 2 + usize::from(is_local)];
        if let Some(client) = place.get() {
            return Ok(client);
        }
        // The whole program's cryptography is ring's; whoever came before set the same.
        let _set_already = rustls::crypto::ring::default_provider().install_default();
        let mut builder = Client::builder()
            .user_agent(concat!("pvn-scheduler/", env!("CARGO_PKG_VERSION")))
            .redirect(reqwest::redirect::Policy::none())
            .retry(reqwest::retry::never())
            .connect_timeout(CONNECT_WITHIN)
            .pool_max_idle_per_host(1);
        if is_local {
            builder = builder.no_proxy();
        }
        if is_plain {
            // Nobody has to vouch for anybody, so a machine without authorities will do.
            builder = builder.tls_certs_only([]);
        }
        let client = builder.build().map_err(|error| {
            SendFailure::later(format!("the HTTP client cannot be set up: {}", cause(error)))
        })?;
        Ok(place.get_or_init(|| client))
    }
}

/// What an answer means.
async fn judge(answer: Response, hide: impl Fn(&str) -> String) -> Result<(), SendFailure> {
    let status = answer.status();
    if status.is_success() {
        return Ok(());
    }
    if status.is_redirection() {
        return Err(SendFailure::later(format!(
            "it answered {status}, which leads elsewhere and is not followed: give the address \
             that it leads to"
        )));
    }
    let after = answer
        .headers()
        .get(header::RETRY_AFTER)
        .and_then(|value| value.to_str().ok()?.trim().parse().ok())
        .map(Duration::from_secs);
    let why = format!("it answered {status}{}", hide(&said(answer).await));
    Err(match status {
        StatusCode::GONE => SendFailure::Gone(why),
        StatusCode::BAD_REQUEST
        | StatusCode::PAYLOAD_TOO_LARGE
        | StatusCode::UNPROCESSABLE_ENTITY => SendFailure::Refused(why),
        _ => SendFailure::Later { why, after },
    })
}

/// The beginning of what it says, for people.
async fn said(mut answer: Response) -> String {
    let mut bytes = Vec::new();
    while bytes.len() < ANSWER_LIMIT_BYTES
        && let Ok(Some(piece)) = answer.chunk().await
    {
        let room = ANSWER_LIMIT_BYTES - bytes.len();
        bytes.extend_from_slice(&piece[..piece.len().min(room)]);
    }
    let text = seen(&String::from_utf8_lossy(&bytes));
    let words: Vec<&str> = text.split_whitespace().collect();
    let short = without_tokens(&words.join(" "));
    let short: String = short.chars().take(SAID_LIMIT_CHARS).collect();
    if short.is_empty() { short } else { format!(": {short}") }
}

/// The same without what may be a token, also one in a form that nobody thought of.
fn without_tokens(text: &str) -> String {
    let is_of_token = |c: char| c.is_ascii_alphanumeric() || "+/=_-".contains(c);
    let mut shown = String::with_capacity(text.len());
    let mut rest = text;
    while !rest.is_empty() {
        let end = rest.find(|c| !is_of_token(c)).unwrap_or(rest.len());
        let (run, after) = rest.split_at(end);
        let is_token = run.len() >= TOKEN_BYTES
            && run.contains(|c: char| c.is_ascii_digit())
            && run.contains(|c: char| c.is_ascii_alphabetic());
        shown.push_str(if is_token { mask::SHOWN_MASK } else { run });
        let other = after.find(is_of_token).unwrap_or(after.len());
        shown.push_str(&after[..other]);
        rest = &after[other..];
    }
    shown
}

/// The innermost cause, without the address.
fn cause(error: reqwest::Error) -> String {
    let error = error.without_url();
    if error.is_timeout() {
        return format!("no connection within {} s", CONNECT_WITHIN.as_secs());
    }
    let mut innermost: &dyn Error = &error;
    while let Some(source) = innermost.source() {
        innermost = source;
    }
    innermost.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_may_be_a_token_is_not_shown() {
        for (said, shown) in [
            ("invalid_payload", "invalid_payload"),
            ("no hook XYZTOPSECRETTOK99 (404)", "no hook *** (404)"),
            ("{\"key\":\"MDEyMzQ1Njc4OTAxMjM0NTY3\"}", "{\"key\":\"***\"}"),
            (
                "2026-11-29 or a-very-long-word-of-letters",
                "2026-11-29 or a-very-long-word-of-letters",
            ),
            ("", ""),
            ("é: 0123456789abcdef0", "é: ***"),
        ] {
            assert_eq!(without_tokens(said), shown);
        }
    }
}
