//! The requests of the wire protocol, and what their answers mean. Called by `courier`, `heart` and
//! `fetch`; nobody else knows HTTP. Nothing here waits or tries again: that is the callers'
//! business.
//!
//! What always holds: the token stands in one header and in no message; every connect, read and
//! write has a limit; a redirect is not followed, for it would carry the job's output to somebody
//! who was not named; only an answer that has the protocol's own marks is believed. A proxy, an
//! ingress without a backend, a login page or a captive portal answers in the scheduler's place:
//! what it says is no answer, and the request is made again.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileExt;
use std::time::Duration;

use schema::id::BlobId;
use schema::spool::Stream;
use schema::wire;
use ureq::http::{self, StatusCode, header};
use ureq::tls::{Certificate, PemItem, RootCerts, TlsConfig, parse_pem};

use self::response::{Response, media_type};
use super::target::{BearerToken, CaFile, DeliveryTarget};
use crate::copying::{FILE_LIMIT_BYTES, copy};

mod response;

/// Time for connection, proxy and TLS.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// Longest silence in an answer, and longest wait for the other side to take more: a slow scheduler
/// is waited for, a dead one is given up.
const SILENCE_TIMEOUT: Duration = Duration::from_secs(30);

/// Buffers of a connection: the least memory that costs no throughput.
const BUFFER_BYTES: usize = 32 << 10;

/// Content type of an input. Source: docs/api.md.
const INPUT_CONTENT_TYPE: &str = "application/octet-stream";

/// Most bytes of an answer that are read: a refusal of a report names some files.
const ANSWER_LIMIT_BYTES: u64 = 256 << 10;

/// Why a request did not do what it should.
#[derive(Debug)]
pub(crate) enum RequestFault {
    /// Try again, not before `after` if it is given.
    Again { why: String, after: Option<Duration> },
    /// Somebody between us and the scheduler takes no body of this size.
    TooLarge(String),
    /// The job is over: stop.
    Over(String),
    /// What was asked for is not there, or cannot be taken; trying again is no use.
    Never(String),
}

/// What is sent.
pub(crate) enum RequestBody<'a> {
    Nothing,
    Json(&'a [u8]),
    Bytes(&'a [u8]),
    File { file: &'a File, from: u64, length: u64 },
}

/// What a scheduler says about a file.
pub(crate) enum FileAnswer {
    /// It has all of it.
    Whole(BlobId),
    /// It wants the piece that begins here.
    Wanted(u64),
}

/// An input that came.
pub(crate) struct ReceivedInput {
    /// What it is.
    pub(crate) blob: BlobId,
    /// What the scheduler says that it is.
    pub(crate) named: Option<BlobId>,
    /// Whether the answer told its length, which then is right.
    pub(crate) has_length: bool,
}

/// What a scheduler says about a report.
pub(crate) enum ReportAnswer {
    Accepted,
    Wanted(wire::Wanted),
}

/// Speaks to one scheduler about one job. Connections are kept and shared between threads.
pub(crate) struct JobClient {
    agent: ureq::Agent,
    base: String,
    tokens: BearerToken,
    /// Why nothing can be sent at all: the certificates that we were given cannot be read.
    useless: Option<String>,
    on_cancel: Box<dyn Fn() + Send + Sync>,
}

impl JobClient {
    /// A client that calls `on_cancel` whenever an answer says that the command is to be stopped.
    pub(crate) fn new(target: &DeliveryTarget, on_cancel: Box<dyn Fn() + Send + Sync>) -> Self {
        let mut config = ureq::Agent::config_builder()
            .http_status_as_error(false)
            .max_redirects(0)
            .max_redirects_will_error(false)
            .user_agent(concat!("pvn-wrapper/", env!("CARGO_PKG_VERSION")))
            .timeout_connect(Some(CONNECT_TIMEOUT))
            .timeout_per_read(Some(SILENCE_TIMEOUT))
            .timeout_per_write(Some(SILENCE_TIMEOUT))
            .timeout_await_100(None)
            .input_buffer_size(BUFFER_BYTES)
            .output_buffer_size(BUFFER_BYTES);
        let roots = target.ca_file.as_ref().map_or(Ok(None), roots);
        if let Ok(Some(roots)) = &roots {
            config = config.tls_config(TlsConfig::builder().root_certs(roots.clone()).build());
        }
        let useless = roots.err();
        Self {
            agent: config.build().new_agent(),
            base: target.base(),
            tokens: target.tokens.clone(),
            useless,
            on_cancel,
        }
    }

    /// `PATCH /streams/{name}`: the next offset wanted, whether the piece was taken or refused for
    /// a gap.
    pub(crate) fn patch(
        &self,
        stream: Stream,
        offset: u64,
        body: RequestBody<'_>,
    ) -> Result<u64, RequestFault> {
        let path = format!("/streams/{}", stream.as_str());
        let headers = [(wire::OFFSET_HEADER, offset.to_string())];
        let answer = self.call("PATCH", &path, &headers, body)?;
        match (answer.status.as_u16(), answer.offset()) {
            (409, Some(wanted)) => Ok(wanted),
            (409, None) => Err(answer.over()),
            (_, Some(wanted)) => Ok(wanted),
            (_, None) => Err(answer.not_the_schedulers()),
        }
    }

    /// `HEAD /streams/{name}`: the next offset wanted.
    pub(crate) fn offset(&self, stream: Stream) -> Result<u64, RequestFault> {
        let answer =
            self.call("HEAD", &format!("/streams/{}", stream.as_str()), &[], RequestBody::Nothing);
        match answer.and_then(|answer| match (answer.status.as_u16(), answer.offset()) {
            (_, Some(wanted)) => Ok(wanted),
            (409, None) => Err(answer.over()),
            (_, None) => Err(answer.not_the_schedulers()),
        }) {
            // Without a body nobody can tell who says so, and of what: what has one is asked.
            Err(RequestFault::Over(why)) => {
                Err(self.heartbeat().err().unwrap_or(RequestFault::Again { why, after: None }))
            }
            told => told,
        }
    }

    /// `PUT /files/{name}`, whole or `length` bytes from `offset` on.
    pub(crate) fn file(
        &self,
        name: &str,
        file: &File,
        offset: u64,
        length: u64,
        total: u64,
    ) -> Result<FileAnswer, RequestFault> {
        let place =
            [(wire::OFFSET_HEADER, offset.to_string()), (wire::LENGTH_HEADER, total.to_string())];
        let headers: &[_] = if length < total { &place } else { &[] };
        let body = if length == 0 {
            RequestBody::Bytes(b"")
        } else {
            RequestBody::File { file, from: offset, length }
        };
        let answer = self.call("PUT", &format!("/files/{name}"), headers, body)?;
        match (answer.status.as_u16(), answer.offset()) {
            (201, _) => match serde_json::from_slice::<wire::StoredFile>(&answer.body) {
                Ok(stored) => Ok(FileAnswer::Whole(stored.blob_id)),
                Err(_) => Err(answer.not_the_schedulers()),
            },
            (409, None) => Err(answer.over()),
            (_, Some(wanted)) => Ok(FileAnswer::Wanted(wanted)),
            (_, None) => Err(answer.not_the_schedulers()),
        }
    }

    /// `GET /inputs/{ref}` into `to`. Whether it is the right one, and all of it, is for the caller
    /// to judge.
    pub(crate) fn input(
        &self,
        reference: &str,
        to: &mut File,
    ) -> Result<ReceivedInput, RequestFault> {
        let mut response =
            self.send("GET", &format!("/inputs/{reference}"), &[], RequestBody::Nothing)?;
        if response.status() == StatusCode::OK
            && media_type(response.headers()) == Some(INPUT_CONTENT_TYPE)
        {
            let cut = |why: &dyn std::fmt::Display| RequestFault::Again {
                why: format!("the answer broke off: {why}"),
                after: None,
            };
            let number = |name: header::HeaderName| {
                response.headers().get(name)?.to_str().ok()?.trim().parse::<u64>().ok()
            };
            let length = number(header::CONTENT_LENGTH);
            let named = response
                .headers()
                .get(wire::BLOB_HEADER)
                .map(|blob| blob.to_str().ok()?.trim().parse().ok());
            let most = FILE_LIMIT_BYTES + 1;
            let mut body = response.body_mut().with_config().limit(u64::MAX).reader().take(most);
            let blob = copy(&mut body, to).map_err(|error| cut(&error))?;
            let arrived = most - body.limit();
            return match named {
                _ if arrived == most => {
                    Err(RequestFault::Never(format!("it has more than {FILE_LIMIT_BYTES} bytes")))
                }
                _ if length.is_some_and(|length| length != arrived) => {
                    Err(cut(&format_args!("{arrived} bytes came")))
                }
                Some(None) => Err(self.read(response).not_the_schedulers()),
                Some(named) => Ok(ReceivedInput { blob, named, has_length: length.is_some() }),
                None => Ok(ReceivedInput { blob, named: None, has_length: length.is_some() }),
            };
        }
        let answer = self.read(response);
        match answer.status.as_u16() {
            404 if answer.is_problem() => Err(RequestFault::Never(answer.why())),
            _ => answer.checked().and_then(|answer| Err(answer.not_the_schedulers())),
        }
    }

    /// `POST /heartbeat`.
    pub(crate) fn heartbeat(&self) -> Result<(), RequestFault> {
        let answer = self.call("POST", "/heartbeat", &[], RequestBody::Json(b"{}"))?;
        if answer.status == StatusCode::CONFLICT {
            return Err(answer.over());
        }
        match serde_json::from_slice(&answer.body) {
            Ok(wire::Heartbeat { cancel: true }) => (self.on_cancel)(),
            Ok(wire::Heartbeat { cancel: false }) => {}
            Err(_) => return Err(answer.not_the_schedulers()),
        }
        Ok(())
    }

    /// `PUT /report`.
    pub(crate) fn report(&self, report: &[u8]) -> Result<ReportAnswer, RequestFault> {
        let answer = self.call("PUT", "/report", &[], RequestBody::Json(report))?;
        if answer.status != StatusCode::CONFLICT {
            return match serde_json::from_slice(&answer.body) {
                Ok(wire::Accepted { accepted: true }) => Ok(ReportAnswer::Accepted),
                _ => Err(answer.not_the_schedulers()),
            };
        }
        match serde_json::from_slice(&answer.body) {
            Ok(wire::Refused { wanted: Some(wanted) }) => Ok(ReportAnswer::Wanted(wanted)),
            _ => Err(answer.over()),
        }
    }

    /// An answer that is a success or a 409.
    fn call(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, String)],
        body: RequestBody<'_>,
    ) -> Result<Response, RequestFault> {
        let response = self.send(method, path, headers, body)?;
        self.read(response).checked()
    }

    fn send(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, String)],
        body: RequestBody<'_>,
    ) -> Result<http::Response<ureq::Body>, RequestFault> {
        let again = |why: String| RequestFault::Again { why, after: None };
        if let Some(why) = &self.useless {
            return Err(again(why.clone()));
        }
        let token = self.tokens.current().map_err(again)?;
        let response = match self.request(method, path, headers, body, &token) {
            Err(error) => return Err(again(error.to_string())),
            Ok(response) => response,
        };
        if response.status() == StatusCode::UNAUTHORIZED {
            self.tokens.refused(&token);
        }
        if response
            .headers()
            .get(wire::CANCEL_HEADER)
            .is_some_and(|value| value.as_bytes().eq_ignore_ascii_case(b"true"))
        {
            (self.on_cancel)();
        }
        Ok(response)
    }

    fn request(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, String)],
        body: RequestBody<'_>,
        token: &str,
    ) -> Result<http::Response<ureq::Body>, ureq::Error> {
        let mut request =
            http::Request::builder().method(method).uri(format!("{}{path}", self.base));
        request = request.header(header::AUTHORIZATION, format!("Bearer {token}"));
        for (name, value) in headers {
            request = request.header(*name, value);
        }
        let binary =
            if method == "PATCH" { wire::PIECE_CONTENT_TYPE } else { "application/octet-stream" };
        match body {
            RequestBody::Nothing => self.agent.run(request.body(())?),
            RequestBody::Json(bytes) => self
                .agent
                .run(request.header(header::CONTENT_TYPE, "application/json").body(bytes)?),
            RequestBody::Bytes(bytes) => {
                self.agent.run(request.header(header::CONTENT_TYPE, binary).body(bytes)?)
            }
            RequestBody::File { file, from, length } => {
                let request = request
                    .header(header::CONTENT_TYPE, binary)
                    .header(header::CONTENT_LENGTH, length);
                let mut part = FilePart { file, at: from, left: length };
                self.agent.run(request.body(ureq::SendBody::from_reader(&mut part))?)
            }
        }
    }

    fn read(&self, response: http::Response<ureq::Body>) -> Response {
        let (parts, mut body) = response.into_parts();
        // An answer that breaks off here says enough by its status.
        let body = body.with_config().limit(ANSWER_LIMIT_BYTES).read_to_vec().unwrap_or_default();
        Response { status: parts.status, headers: parts.headers, body }
    }
}

/// A part of a file, as a body.
struct FilePart<'a> {
    file: &'a File,
    at: u64,
    left: u64,
}

impl Read for FilePart<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let most = usize::try_from(self.left).unwrap_or(usize::MAX).min(buffer.len());
        let count = self.file.read_at(&mut buffer[..most], self.at)?;
        if count == 0 && most > 0 {
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the file became shorter"));
        }
        self.at += count as u64;
        self.left -= count as u64;
        Ok(count)
    }
}

/// Those whom a bundle vouches for; `None` for those that are built in.
fn roots(file: &CaFile) -> Result<Option<RootCerts>, String> {
    let Some(pem) = file.read()? else { return Ok(None) };
    let all: Vec<Certificate<'static>> = parse_pem(&pem)
        .filter_map(|item| match item {
            Ok(PemItem::Certificate(certificate)) => Some(certificate),
            _ => None,
        })
        .collect();
    match (all.is_empty(), file.empty()) {
        (true, Some(why)) => Err(why),
        (true, None) => Ok(None),
        (false, _) => Ok(Some(RootCerts::new_with_certs(&all))),
    }
}
