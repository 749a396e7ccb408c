//! A scheduler to deliver to: keeps to the protocol of docs/api.md strictly, notes every breach of
//! it, and answers what a test tells it to. HTTP over plain sockets, so that a test can break a
//! connection wherever it wants.

use std::collections::BTreeMap;
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

use crate::run::until;

mod state;

pub(crate) use fakes::http::{Framing, Reply, Request};
use state::State;

pub(crate) const JOB: &str = "job-0123456789abcdef0123456789abcdef";
pub(crate) const TOKEN: &str = "the-token-of-this-job";

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
        None => fakes::http::serve(stream, |request| answer(inner, request)),
        Some(config) => {
            let connection = rustls::ServerConnection::new(config).unwrap();
            fakes::http::serve(rustls::StreamOwned::new(connection, stream), |request| {
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
