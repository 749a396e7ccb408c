//! Jobs that upload: the wire protocol's scheduler side over a real driver and database, with a
//! runner that hands its jobs over and has no other way to learn of them. Here the test is the
//! wrapper; `wrapper` brings the real one.

mod curl;
mod elsewhere;
mod pieces;
mod reports;
mod restarts;
mod tokens;
mod wrapper;

use elsewhere::{Elsewhere, Handed, Launch};

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::{Request, StatusCode};
use engine::limiter::{Limit, Limits};
use futures::FutureExt as _;
use futures::future::BoxFuture;
use pvn_scheduler::blobs::Blobs;
use pvn_scheduler::clock::Clock;
use pvn_scheduler::compile::Options;
use pvn_scheduler::delivery::{self, Delivery, Holds, TokenSigner};
use pvn_scheduler::driver::{Driver, DriverParts, Fatal, Handle};
use pvn_scheduler::http::{Api, OutputRange, ReadOrder, ReadOutput, router};
use pvn_scheduler::runner::registry::Runners;
use pvn_scheduler::runner::{End, JobSpec, News, OutputPiece, Runner, RunnerEvent};
use pvn_scheduler::secrets::Sealer;
use pvn_scheduler::store::{Commit, EventFilter, PageRequest, Store};
use schema::api::{ConfigFile, ConfigsRequest, Job, LogEntry};
use schema::id::JobId;
use schema::spool::Stream;
use schema::status::Role;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tower::ServiceExt;

use crate::driver::{Nobody, caller};
use crate::http::{Answer, token};
use crate::wait;

/// Longest wait for something that must happen.
const PATIENCE: Duration = Duration::from_secs(60);

/// One channel, one instance; a fetch that runs at once and then not for an hour, so that each test
/// has its jobs alone.
const ONE: &str = r#"
runtime:
  name: tool
  custom:
    proxyRuntime: {runtime: local}
    fetch:
      timeout: 600s
      pollInterval: 3600s
      taskConfig: {program: {name: look, entrypoint: [look]}}
    apply:
      taskConfig: {program: {name: do, entrypoint: [do]}}
---
application:
  name: app
  releaseChannels:
  - name: only
    runtimes: [{runtime: tool}]
---
service:
  name: web
  application: app
"#;

/// A scheduler in process.
pub(crate) struct World {
    dir: tempfile::TempDir,
    store: Store,
    blobs: Blobs,
    handle: Handle,
    delivery: Delivery,
    runner: Elsewhere,
    api: Api,
    router: Router,
    stop: CancellationToken,
    done: JoinHandle<Result<(), Fatal>>,
}

/// A job as its wrapper knows it.
#[derive(Clone)]
struct Uploader {
    router: Router,
    job: JobId,
    token: String,
}

impl World {
    /// With the instance pushed, so that its fetch is handed over.
    async fn start() -> Self {
        let world =
            Self::open(tempfile::tempdir().unwrap(), "http://127.0.0.1:1", Arc::new(|_, _| {}))
                .await;
        let role = |role: &Role| token(role.as_str(), *role);
        world
            .store
            .commit(&Commit { changes: Role::ALL.iter().map(role).collect(), ..Commit::default() })
            .await
            .unwrap();
        world.push(ONE).await;
        world
    }

    async fn push(&self, text: &str) {
        let file = ConfigFile {
            path: "test.pvn.yaml".into(),
            text: text.into(),
            attachments: BTreeMap::new(),
        };
        let request = ConfigsRequest { files: vec![file], push: true, ..ConfigsRequest::default() };
        self.handle.apply_configs(request, caller("root")).await.unwrap();
    }

    async fn open(dir: tempfile::TempDir, url: &str, launch: Launch) -> Self {
        let sealer = Sealer::with_key([1; 32]);
        let store = Store::open(&dir.path().join("pvn.db"), sealer.clone()).await.unwrap();
        let blobs = Blobs::open(&dir.path().join("blobs")).unwrap();
        let settings = delivery::DeliverySettings {
            directory: dir.path().join("uploads"),
            url: url.to_owned(),
        };
        let delivery =
            Delivery::open(settings, blobs.clone(), TokenSigner::new(&sealer), Clock::System)
                .unwrap();
        let (news, news_in) = mpsc::channel(64);
        let runner = Elsewhere { delivery: delivery.clone(), news, launch, handed: Arc::default() };
        let stop = CancellationToken::new();
        let limit = Limit { total: 8, per_runtime: None };
        let parts = DriverParts {
            store: store.clone(),
            clock: Clock::System,
            sealer,
            blobs: blobs.clone(),
            runners: Runners::new(Arc::new(runner.clone()), Arc::new(Nobody)),
            clusters: Arc::new(Nobody),
            news: news_in,
            root: dir.path().to_owned(),
            limits: Limits { fetch: limit, apply: limit, get_info: limit },
            observer: false,
            holds_applies: false,
            options: Options::default(),
        };
        let Driver { handle, notified: _, done } =
            Driver::start(parts, stop.clone()).await.unwrap();
        let output = output(delivery.clone(), blobs.clone());
        let api = Api::new(
            store.clone(),
            handle.clone(),
            output,
            delivery.clone(),
            Clock::System,
            false,
            stop.clone(),
        );
        let router = router(api.clone());
        Self { dir, store, blobs, handle, delivery, runner, api, router, stop, done }
    }

    /// `kill -9`, as far as a test in process can have it: nothing is finished, nothing is noted;
    /// then a new start.
    async fn crash(self) -> Self {
        let (dir, launch) = self.take_down().await;
        Self::open(dir, "http://127.0.0.1:1", launch).await
    }

    /// What outlives a scheduler that is killed.
    async fn take_down(self) -> (tempfile::TempDir, Launch) {
        self.done.abort();
        let _ = self.done.await;
        self.stop.cancel();
        self.delivery.detach().await;
        self.store.close().await;
        (self.dir, self.runner.launch)
    }

    /// The newest job of this kind, as its wrapper knows it, once it was handed over.
    async fn handed(&self, kind: &str) -> Uploader {
        let what = format!("a {kind} being handed over");
        let found = self.until(&what, async || {
            let handed = self.runner.handed.lock().unwrap();
            handed.values().find(|handed| handed.spec.kind.as_str() == kind).cloned()
        });
        let Handed { spec, token } = found.await;
        self.as_job(spec.job, &token)
    }

    fn as_job(&self, job: JobId, token: &str) -> Uploader {
        Uploader { router: self.router.clone(), job, token: token.to_owned() }
    }

    /// The fetch of the only instance.
    async fn fetch(&self) -> Uploader {
        self.handed("fetch").await
    }

    async fn job(&self, job: JobId) -> Job {
        self.store.job(job).await.unwrap().unwrap()
    }

    async fn until<T>(&self, what: &str, look: impl AsyncFnMut() -> Option<T>) -> T {
        wait::until(PATIENCE, look).await.unwrap_or_else(|| panic!("{what} did not happen"))
    }

    /// The log's entries of this kind.
    async fn logged(&self, kind: &str) -> Vec<LogEntry> {
        let filter = EventFilter { kind: Some(kind.to_owned()), ..EventFilter::default() };
        self.store
            .events(&filter, &PageRequest { limit: Some(1000), cursor: None })
            .await
            .unwrap()
            .items
    }

    /// The job's status, once its row says that it was handed over.
    async fn status(&self, job: JobId) -> String {
        self.until("the job to be handed over", async || {
            let status = self.job(job).await.status.to_string();
            (status != "PENDING").then_some(status)
        })
        .await
    }

    fn blob(&self, id: Option<schema::id::BlobId>) -> Vec<u8> {
        self.blobs.read(id.unwrap(), 0, usize::MAX >> 1).unwrap().unwrap()
    }

    /// What is kept of jobs that are not over.
    fn staged(&self) -> usize {
        std::fs::read_dir(self.dir.path().join("uploads")).unwrap().count()
    }
}

fn output(delivery: Delivery, blobs: Blobs) -> (ReadOutput, ReadOrder) {
    let output = Arc::new(move |piece: OutputRange| {
        let blob = piece.report.as_ref().and_then(|report| match piece.stream {
            Stream::Stdout => report.stdout_blob_id,
            Stream::Stderr => report.stderr_blob_id,
        });
        let read = match blob {
            Some(id) => blobs.read(id, piece.offset, piece.limit),
            None => delivery.tail(piece.placed.job, piece.stream, piece.offset, piece.limit),
        };
        std::future::ready(read.map(Option::unwrap_or_default)).boxed()
    });
    (output, Arc::new(|_, _, _| std::future::ready(Ok(Vec::new())).boxed()))
}

/// The scheduler on a real port.
struct Listening {
    url: String,
    stop: CancellationToken,
}

impl Listening {
    fn start(world: &World) -> Self {
        Self::on(world, std::net::TcpListener::bind("127.0.0.1:0").unwrap())
    }

    fn on(world: &World, listener: std::net::TcpListener) -> Self {
        listener.set_nonblocking(true).unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let stop = CancellationToken::new();
        tokio::spawn(pvn_scheduler::http::serve(listener, None, world.api.clone(), stop.clone()));
        Self { url, stop }
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

/// The least that a report must say, and `more`.
fn report(more: Value) -> Value {
    let mut report = json!({"exitCode": 0, "stdoutBytes": 0, "stderrBytes": 0, "version": "1", "startTimestampNs": "1000000", "durationNs": "2000000"});
    report.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    report
}

impl Uploader {
    fn request(&self, method: &str, path: &str) -> axum::http::request::Builder {
        let path = format!("/v1/jobs/{}/{path}", self.job);
        Request::builder()
            .method(method)
            .uri(path)
            .header("authorization", format!("Bearer {}", self.token))
    }

    async fn ask(&self, request: Request<Body>) -> Answer {
        let (parts, body) = self.router.clone().oneshot(request).await.unwrap().into_parts();
        Answer {
            status: parts.status,
            headers: parts.headers,
            body: to_bytes(body, usize::MAX).await.unwrap().to_vec(),
        }
    }

    async fn send(&self, method: &str, path: &str, body: impl Into<Body>) -> Answer {
        self.ask(self.request(method, path).body(body.into()).unwrap()).await
    }

    /// A piece of a stream.
    async fn patch(&self, stream: &str, offset: u64, bytes: impl Into<Body>) -> Answer {
        let request = self.request("PATCH", &format!("streams/{stream}"));
        let request = request
            .header("content-type", "application/partial-upload")
            .header("upload-offset", offset);
        self.ask(request.body(bytes.into()).unwrap()).await
    }

    /// A piece of a file.
    async fn file(&self, name: &str, offset: u64, total: u64, bytes: impl Into<Body>) -> Answer {
        let request = self
            .request("PUT", &format!("files/{name}"))
            .header("upload-offset", offset)
            .header("upload-length", total);
        self.ask(request.body(bytes.into()).unwrap()).await
    }

    async fn report(&self, report: &Value) -> Answer {
        let request = self.request("PUT", "report").header("content-type", "application/json");
        self.ask(request.body(report.to_string().into()).unwrap()).await
    }

    /// Reports, and has to hear that it is accepted.
    async fn accepted(&self, report: &Value) {
        let answer = self.report(report).await;
        assert_eq!(
            (answer.status, answer.body.as_slice()),
            (StatusCode::OK, br#"{"accepted":true}"#.as_slice())
        );
    }
}

/// The offset that an answer asks for.
fn offset(answer: &Answer) -> Option<u64> {
    Some(answer.headers.get("upload-offset")?.to_str().unwrap().parse().unwrap())
}
