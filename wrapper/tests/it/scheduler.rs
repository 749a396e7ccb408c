//! A scheduler to deliver to: keeps to the protocol of docs/api.md strictly, notes every breach of
//! it, and answers what a test tells it to. HTTP over plain sockets, so that a test can break a
//! connection wherever it wants.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Instant;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use schema::id::BlobId;
use schema::report::Report;
use schema::spool::Stream;
use schema::wire;
use serde_json::json;
use sha2::{Digest, Sha256};

use crate::run::until;

mod http;

pub(crate) use http::{Framing, Reply, Request};

pub(crate) const JOB: &str = "job-0123456789abcdef0123456789abcdef";
pub(crate) const TOKEN: &str = "the-token-of-this-job";

/// Of a stream that is longer, only length and digest are kept.
const KEPT_BYTES: usize = 32 << 20;

/// What a test wants to be done with a request.
pub(crate) enum Do {
    /// What the protocol says.
    Usual,
    /// This answer instead.
    Answer(Reply),
    /// What the protocol says, and then this answer, or none, as if the usual one had been lost.
    ActThen(Option<Reply>),
    /// Nothing: the connection breaks.
    Break,
}

type Faults = Arc<dyn Fn(&Request, usize) -> Do + Send + Sync>;

/// A running scheduler.
pub(crate) struct Scheduler {
    pub(crate) address: SocketAddr,
    scheme: &'static str,
    inner: Arc<Inner>,
}

struct Inner {
    state: Mutex<State>,
    /// Apart from the state: a fault may take its time, and other requests go on meanwhile.
    faults: Mutex<Option<Faults>>,
    down: AtomicBool,
}

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
    partial: BTreeMap<String, Held>,
    pub(crate) inputs: BTreeMap<String, Vec<u8>>,
    pub(crate) report: Option<Report>,
    /// How often a report was accepted that was not there already.
    accepted: usize,
    pub(crate) tokens: Vec<String>,
    pub(crate) cancel: bool,
    /// Method and path below the job, and when.
    pub(crate) requests: Vec<(String, Instant)>,
    breaches: Vec<String>,
}

impl Scheduler {
    /// On the loopback address.
    pub(crate) fn start() -> Self {
        Self::listening("127.0.0.1:0", None)
    }

    pub(crate) fn listening(address: &str, tls: Option<Arc<rustls::ServerConfig>>) -> Self {
        let listener = TcpListener::bind(address).unwrap();
        let state = State {
            streams: Default::default(),
            files: BTreeMap::new(),
            partial: BTreeMap::new(),
            inputs: BTreeMap::new(),
            report: None,
            accepted: 0,
            tokens: vec![TOKEN.to_owned()],
            cancel: false,
            requests: Vec::new(),
            breaches: Vec::new(),
        };
        let scheduler = Self {
            address: listener.local_addr().unwrap(),
            scheme: if tls.is_some() { "https" } else { "http" },
            inner: Arc::new(Inner {
                state: Mutex::new(state),
                faults: Mutex::default(),
                down: AtomicBool::default(),
            }),
        };
        let inner = Arc::clone(&scheduler.inner);
        // It ends with the process of the tests.
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                if inner.down.load(Ordering::SeqCst) {
                    continue;
                }
                let (inner, tls) = (Arc::clone(&inner), tls.clone());
                std::thread::spawn(move || serve(stream, tls, &inner));
            }
        });
        scheduler
    }

    pub(crate) fn url(&self) -> String {
        format!("{}://{}", self.scheme, self.address)
    }

    /// Says what is to be done with each request; it is given its number among those of the same
    /// method and path.
    pub(crate) fn with(
        self,
        faults: impl Fn(&Request, usize) -> Do + Send + Sync + 'static,
    ) -> Self {
        *self.inner.faults.lock().unwrap() = Some(Arc::new(faults));
        self
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.inner.state.lock().unwrap()
    }

    /// From now on every connection breaks, those that are open too.
    pub(crate) fn go_away(&self) {
        self.inner.down.store(true, Ordering::SeqCst);
    }

    pub(crate) fn come_back(&self) {
        self.inner.down.store(false, Ordering::SeqCst);
    }

    /// How many requests began so.
    pub(crate) fn count(&self, what: &str) -> usize {
        self.state().requests.iter().filter(|(request, _)| request.starts_with(what)).count()
    }

    /// Waits until so many requests began so.
    pub(crate) fn until_asked(&self, what: &str, times: usize) {
        until(&format!("there were {times} × {what}"), || {
            (self.count(what) >= times).then_some(())
        });
    }

    /// What must hold after every run: exactly one accepted report, whose sizes and digests are
    /// those of what arrived, and no breach of the protocol. Returns the report.
    pub(crate) fn check(&self) -> Report {
        let state = self.state();
        assert_eq!(state.breaches, Vec::<String>::new(), "breaches of the protocol");
        assert_eq!(state.accepted, 1, "exactly one accepted report; requests: {:?}", state.names());
        let report = state.report.clone().unwrap();
        let told = [
            (report.stdout_blob_id, &report.stdout_inline),
            (report.stderr_blob_id, &report.stderr_inline),
        ];
        for ((blob, inline), held) in told.into_iter().zip(&state.streams) {
            let arrived = match inline {
                Some(inline) => BlobId::of(&STANDARD.decode(inline).unwrap()),
                None => held.blob(),
            };
            assert!(blob.is_none_or(|blob| blob == arrived), "{blob:?} told, {arrived} arrived");
        }
        for file in report.files.iter().filter(|file| file.content_blob_id.is_some()) {
            assert_eq!(state.files.get(&file.name).copied(), file.content_blob_id, "{}", file.name);
        }
        report
    }

    /// All bytes of a stream, wherever they came in.
    pub(crate) fn bytes(&self, stream: Stream) -> Vec<u8> {
        let state = self.state();
        let report = state.report.clone().unwrap_or_default();
        let inline =
            if stream == Stream::Stdout { report.stdout_inline } else { report.stderr_inline };
        inline.map_or_else(
            || state.streams[stream as usize].bytes.clone(),
            |inline| STANDARD.decode(inline).unwrap(),
        )
    }

    /// Waits until the stream begins so.
    pub(crate) fn until_arrived(&self, stream: Stream, text: &str) {
        until(&format!("`{text}` arrived"), || {
            self.state().streams[stream as usize].bytes.starts_with(text.as_bytes()).then_some(())
        });
    }
}

fn serve(stream: TcpStream, tls: Option<Arc<rustls::ServerConfig>>, inner: &Inner) {
    stream.set_nodelay(true).unwrap();
    match tls {
        None => http::serve(stream, |request| answer(inner, request)),
        Some(config) => {
            let connection = rustls::ServerConnection::new(config).unwrap();
            http::serve(rustls::StreamOwned::new(connection, stream), |request| {
                answer(inner, request)
            });
        }
    }
}

fn answer(inner: &Inner, request: &Request) -> Option<Reply> {
    if inner.down.load(Ordering::SeqCst) {
        return None;
    }
    let below =
        request.path.strip_prefix(&format!("/v1/jobs/{JOB}")).unwrap_or(&request.path).to_owned();
    let name = format!("{} {below}", request.method);
    let number = {
        let mut state = inner.state.lock().unwrap();
        let number = state.requests.iter().filter(|(known, _)| *known == name).count();
        state.requests.push((name.clone(), Instant::now()));
        state.keep_to_the_rules(request, &name);
        number
    };
    let faults = inner.faults.lock().unwrap().clone();
    let what = faults.map_or(Do::Usual, |faults| faults(request, number));
    let mut state = inner.state.lock().unwrap();
    let usual = |state: &mut State| {
        let reply = state.usual(request, &below);
        if state.cancel { reply.with(wire::CANCEL_HEADER, "true") } else { reply }
    };
    match what {
        Do::Usual => Some(usual(&mut state)),
        Do::Answer(reply) => Some(reply),
        Do::ActThen(reply) => {
            usual(&mut state);
            reply
        }
        Do::Break => None,
    }
}

impl State {
    fn names(&self) -> Vec<&str> {
        self.requests.iter().map(|(name, _)| name.as_str()).collect()
    }

    fn breach(&mut self, what: String) {
        self.breaches.push(what);
    }

    /// What holds for every request, whatever is answered.
    fn keep_to_the_rules(&mut self, request: &Request, name: &str) {
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

    fn usual(&mut self, request: &Request, below: &str) -> Reply {
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
