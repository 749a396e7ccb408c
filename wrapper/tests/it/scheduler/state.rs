//! What the scheduler knows of the job, and what the protocol has it answer.

use std::collections::BTreeMap;
use std::time::Instant;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use schema::id::BlobId;
use schema::report::Report;
use schema::spool::Stream;
use schema::wire;
use serde_json::json;
use sha2::{Digest, Sha256};

use super::{JOB, Reply, Request};

/// Of a stream that is longer, only length and digest are kept.
const KEPT_BYTES: usize = 32 << 20;

/// One stream, as far as it came.
#[derive(Default)]
pub(crate) struct Held {
    pub(crate) bytes: Vec<u8>,
    pub(crate) length: u64,
    sha: Sha256,
}

impl Held {
    fn push(&mut self, bytes: &[u8]) {
        self.length += bytes.len() as u64;
        self.sha.update(bytes);
        if self.bytes.len() < KEPT_BYTES {
            self.bytes.extend_from_slice(bytes);
        }
    }

    pub(crate) fn blob(&self) -> BlobId {
        BlobId::from_digest(self.sha.clone().finalize().into())
    }
}

/// What it knows of the job.
pub(crate) struct State {
    pub(crate) streams: [Held; 2],
    pub(crate) files: BTreeMap<String, BlobId>,
    pub(super) partial: BTreeMap<String, Held>,
    pub(crate) inputs: BTreeMap<String, Vec<u8>>,
    pub(crate) report: Option<Report>,
    /// How often a report was accepted that was not there already.
    pub(super) accepted: usize,
    pub(crate) tokens: Vec<String>,
    pub(crate) cancel: bool,
    /// Method and path below the job, and when.
    pub(crate) requests: Vec<(String, Instant)>,
    pub(super) breaches: Vec<String>,
}

impl State {
    pub(super) fn names(&self) -> Vec<&str> {
        self.requests.iter().map(|(name, _)| name.as_str()).collect()
    }

    fn breach(&mut self, what: String) {
        self.breaches.push(what);
    }

    /// What holds for every request, whatever is answered.
    pub(super) fn keep_to_the_rules(&mut self, request: &Request, name: &str) {
        if !request.path.starts_with(&format!("/v1/jobs/{JOB}/")) {
            self.breach(format!("{name}: outside of the job"));
        }
        if request.header("transfer-encoding").is_some() || request.header("expect").is_some() {
            self.breach(format!("{name}: {:?}", request.headers));
        }
        let small = request.body.len() <= wire::UPLOAD_LIMIT_BYTES;
        let right = match request.method.as_str() {
            "PATCH" => {
                request.header("content-type") == Some(wire::PIECE_CONTENT_TYPE)
                    && request.number(wire::OFFSET_HEADER).is_some()
                    && small
            }
            "PUT" if name.starts_with("PUT /files/") => {
                let (offset, length) =
                    (request.number(wire::OFFSET_HEADER), request.number(wire::LENGTH_HEADER));
                offset.is_some() == length.is_some()
                    && small
                    && length.is_none_or(|length| length > request.body.len() as u64)
            }
            "PUT" | "POST" => request.header("content-type") == Some("application/json"),
            "GET" | "HEAD" => request.body.is_empty(),
            _ => false,
        };
        if !right {
            self.breach(format!("{name}: {:?}, {} bytes", request.headers, request.body.len()));
        }
    }

    pub(super) fn usual(&mut self, request: &Request, below: &str) -> Reply {
        let bearer =
            request.header("authorization").and_then(|value| value.strip_prefix("Bearer "));
        if !bearer.is_some_and(|token| self.tokens.iter().any(|known| known == token)) {
            return Reply::problem(401, "the token is not valid");
        }
        let parts: Vec<&str> = below.trim_start_matches('/').split('/').collect();
        match (request.method.as_str(), parts.as_slice()) {
            ("POST", ["heartbeat"]) => Reply::json(200, &json!({ "cancel": self.cancel })),
            ("PUT", ["report"]) => self.take_report(request),
            (method, ["streams", name]) => {
                match Stream::ALL.into_iter().find(|stream| stream.as_str() == *name) {
                    None => Reply::problem(404, "no such stream"),
                    Some(_) if self.report.is_some() => Reply::problem(409, "the job is over"),
                    Some(stream) => self.stream(method, stream, request),
                }
            }
            ("PUT", ["files", name]) => self.file(name, request),
            ("GET", ["inputs", reference]) => match self.inputs.get(*reference) {
                Some(bytes) => Reply::input(bytes).with("Pvn-Blob-Id", BlobId::of(bytes)),
                None => Reply::problem(404, "no such input"),
            },
            _ => Reply::problem(404, "no such path"),
        }
    }

    fn stream(&mut self, method: &str, stream: Stream, request: &Request) -> Reply {
        let held = &mut self.streams[stream as usize];
        let mut status = 204;
        if method == "PATCH" {
            let offset = request.number(wire::OFFSET_HEADER).unwrap_or_default();
            match usize::try_from(held.length.wrapping_sub(offset)) {
                Ok(known) if offset <= held.length => {
                    let fresh = known.min(request.body.len());
                    held.push(&request.body[fresh..]);
                }
                _ => status = 409,
            }
        }
        Reply::empty(status).with(wire::OFFSET_HEADER, held.length)
    }

    fn file(&mut self, name: &str, request: &Request) -> Reply {
        let (Some(offset), Some(length)) =
            (request.number(wire::OFFSET_HEADER), request.number(wire::LENGTH_HEADER))
        else {
            let blob = BlobId::of(&request.body);
            self.files.insert(name.to_owned(), blob);
            return Reply::json(201, &json!({ "blobId": blob }));
        };
        let held = self.partial.entry(name.to_owned()).or_default();
        if offset == 0 {
            *held = Held::default();
        }
        if offset == held.length {
            held.push(&request.body);
        }
        if held.length < length {
            return Reply::empty(204).with(wire::OFFSET_HEADER, held.length);
        }
        let blob = held.blob();
        self.files.insert(name.to_owned(), blob);
        Reply::json(201, &json!({ "blobId": blob }))
    }

    fn take_report(&mut self, request: &Request) -> Reply {
        let report: Report = match serde_json::from_slice(&request.body) {
            Ok(report) => report,
            Err(error) => {
                self.breach(format!("report: {error}"));
                return Reply::problem(400, "no report");
            }
        };
        if let Some(known) = &self.report {
            let same = *known == report;
            return if same {
                Reply::json(200, &json!({ "accepted": true }))
            } else {
                Reply::problem(409, "the job is over")
            };
        }
        let mut wanted = wire::Wanted::default();
        let told = [
            (report.stdout_blob_id, &report.stdout_inline),
            (report.stderr_blob_id, &report.stderr_inline),
        ];
        for ((blob, inline), stream) in told.into_iter().zip(Stream::ALL) {
            let held = &mut self.streams[stream as usize];
            let Some(blob) = blob else { continue };
            let arrived = match inline {
                Some(_) if held.length > 0 => {
                    self.breaches
                        .push(format!("{} rides in the report and was sent too", stream.as_str()));
                    continue;
                }
                Some(inline) => BlobId::of(&STANDARD.decode(inline).unwrap()),
                None => held.blob(),
            };
            if arrived != blob {
                *held = Held::default();
                *(if stream == Stream::Stdout { &mut wanted.stdout } else { &mut wanted.stderr }) =
                    Some(0);
            }
        }
        let files = report.files.iter().filter(|file| {
            file.content_blob_id.is_some_and(|blob| self.files.get(&file.name) != Some(&blob))
        });
        wanted.files = files.map(|file| file.name.clone()).collect();
        if wanted != wire::Wanted::default() {
            return Reply::json(409, &json!({ "wanted": wanted }));
        }
        self.report = Some(report);
        self.accepted += 1;
        Reply::json(200, &json!({ "accepted": true }))
    }
}
