//! The driver over a real database and a runner whose jobs do what the test says.

mod broken;
mod clocks;
mod configs;
mod faults;
mod gone;
mod kept;
mod nobody;
mod people;
mod poison;
mod pushes;
mod recompiles;
mod releases;
mod rollbacks;
mod round;
mod secrets;
mod stories;
mod targets;
mod undone;
mod words;

pub(crate) use nobody::Nobody;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use engine::limiter::{Limit, Limits};
use futures::future::BoxFuture;
use pvn_scheduler::blobs::Blobs;
use pvn_scheduler::clock::Clock;
use pvn_scheduler::compile::{ClusterPlace, Options};
use pvn_scheduler::driver::{Caller, Driver, DriverParts, Fatal, Handle, InstanceTarget, Refusal};
use pvn_scheduler::runner::registry::Runners;
use pvn_scheduler::runner::{ClusterQuestions, End, JobSpec, OutputPiece, Runner, RunnerEvent};
use pvn_scheduler::secrets::Sealer;
use pvn_scheduler::store::{Store, StoreError};
use schema::api::{
    ConfigFile, ConfigsRequest, ConfigsResult, DecisionRequest, Finding, Instance, PushRequest,
};
use schema::id::{InstanceId, JobId};
use schema::report::Report;
use schema::status::{JobKind, Status};
use sqlx::Connection as _;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::wait;

/// Longest wait for something that must happen.
const PATIENCE: Duration = Duration::from_secs(120);

/// What a job does: given its spec, its exit code, or `None` to run until it is stopped.
type Play = Arc<dyn Fn(&JobSpec) -> Option<i32> + Send + Sync>;

/// A runner without processes.
#[derive(Clone)]
pub(crate) struct Scripted {
    play: Play,
    news: mpsc::Sender<RunnerEvent>,
    pub(crate) seen: Arc<Mutex<Vec<JobSpec>>>,
    running: Arc<Mutex<BTreeMap<JobId, ()>>>,
    pub(crate) forgotten: Arc<Mutex<Vec<JobId>>>,
    /// Jobs that are started from now on are not heard of.
    pub(crate) silent: Arc<std::sync::atomic::AtomicBool>,
    /// Namespaces that its clusters do not have.
    pub(crate) absent: Arc<Mutex<BTreeSet<String>>>,
    /// Namespaces about which nobody answers.
    pub(crate) unanswered: Arc<Mutex<BTreeSet<String>>>,
    /// Held by a test so that nothing is forgotten meanwhile; how many wait for that.
    pub(crate) memory: Arc<tokio::sync::RwLock<()>>,
    pub(crate) waiting: Arc<std::sync::atomic::AtomicUsize>,
    pub(crate) deleted: Arc<Mutex<Vec<InstanceId>>>,
}

impl std::fmt::Debug for Scripted {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Scripted")
    }
}

fn report(exit_code: Option<i32>, signal: Option<&str>) -> End {
    let now = Clock::System.now().as_millis();
    End::Reported(Box::new(Report {
        exit_code,
        signal: signal.map(Into::into),
        version: "test".into(),
        start_timestamp_ns: format!("{now}000000"),
        duration_ns: "1000000".into(),
        ..Report::default()
    }))
}

impl Scripted {
    fn tell(&self, told: RunnerEvent) {
        // In the order in which it is told, as a runner does. The driver may be gone by then, as in
        // life.
        let is_full = matches!(self.news.try_send(told), Err(mpsc::error::TrySendError::Full(_)));
        assert!(!is_full, "the driver hears nothing");
    }

    /// The kinds of the jobs started so far, in order.
    pub(crate) fn kinds(&self) -> Vec<JobKind> {
        self.seen.lock().unwrap().iter().map(|spec| spec.kind).collect()
    }

    pub(crate) fn applies(&self) -> usize {
        self.kinds().iter().filter(|kind| **kind == JobKind::Apply).count()
    }
}

impl Runner for Scripted {
    fn start(&self, spec: JobSpec) {
        let job = spec.job;
        let code = (self.play)(&spec);
        self.seen.lock().unwrap().push(spec);
        if self.silent.load(std::sync::atomic::Ordering::SeqCst) {
            return;
        }
        match code {
            Some(code) => {
                self.tell(RunnerEvent::Ended { job, end: report(Some(code), None), gone: true })
            }
            None => {
                self.running.lock().unwrap().insert(job, ());
                self.tell(RunnerEvent::Started { job, at: Clock::System.now() });
            }
        }
    }

    fn stop(&self, job: JobId) -> bool {
        let runs = self.running.lock().unwrap().remove(&job).is_some();
        if runs {
            self.tell(RunnerEvent::Ended { job, end: report(None, Some("SIGTERM")), gone: true });
        }
        runs
    }

    fn recover(&self, unfinished: Vec<JobId>) -> BoxFuture<'_, Vec<JobId>> {
        let running = self.running.lock().unwrap().clone();
        Box::pin(async move {
            unfinished.into_iter().filter(|job| !running.contains_key(job)).collect()
        })
    }

    fn forget(&self, jobs: Vec<JobId>) -> BoxFuture<'_, ()> {
        self.forgotten.lock().unwrap().extend(jobs);
        Box::pin(async {
            self.waiting.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
            drop(self.memory.read().await);
        })
    }

    fn tail(&self, _piece: OutputPiece) -> BoxFuture<'_, std::io::Result<Option<Vec<u8>>>> {
        Box::pin(async { Ok(None) })
    }

    fn forget_instance(&self, instance: pvn_scheduler::runner::Instance) -> BoxFuture<'_, ()> {
        let mut deleted = self.deleted.lock().unwrap();
        if !deleted.contains(&instance.id) {
            deleted.push(instance.id);
        }
        Box::pin(async {})
    }
}

impl ClusterQuestions for Scripted {
    fn check(&self, _places: Vec<ClusterPlace>) -> BoxFuture<'_, Result<Vec<Finding>, String>> {
        Box::pin(async { Ok(Vec::new()) })
    }

    fn absent(&self, mut places: Vec<ClusterPlace>) -> BoxFuture<'_, Vec<ClusterPlace>> {
        if places.iter().any(|place| self.unanswered.lock().unwrap().contains(&place.namespace)) {
            return Box::pin(std::future::pending());
        }
        places.retain(|place| self.absent.lock().unwrap().contains(&place.namespace));
        Box::pin(async { places })
    }
}

/// A driver, its database and its runner.
pub(crate) struct Rig {
    pub(crate) dir: tempfile::TempDir,
    pub(crate) store: Store,
    pub(crate) runner: Scripted,
    pub(crate) handle: Handle,
    clock: Clock,
    stop: CancellationToken,
    done: JoinHandle<Result<(), Fatal>>,
}

pub(crate) fn caller(who: &str) -> Caller {
    Caller { who: who.into(), origin: "127.0.0.1".into() }
}

/// A yes to whichever plan is asked about.
pub(crate) fn any_plan() -> DecisionRequest {
    DecisionRequest { any_plan: true, ..DecisionRequest::default() }
}

pub(crate) fn target(channel: &str) -> InstanceTarget {
    InstanceTarget { application: "app".into(), service: "web".into(), channel: channel.into() }
}

impl Rig {
    pub(crate) async fn start(
        play: impl Fn(&JobSpec) -> Option<i32> + Send + Sync + 'static,
    ) -> Self {
        Self::start_at(Clock::System, play).await
    }

    /// The same by another clock.
    pub(crate) async fn start_at(
        clock: Clock,
        play: impl Fn(&JobSpec) -> Option<i32> + Send + Sync + 'static,
    ) -> Self {
        Self::start_in(tempfile::tempdir().unwrap(), Arc::new(play), Arc::default(), clock).await
    }

    async fn start_in(
        dir: tempfile::TempDir,
        play: Play,
        running: Arc<Mutex<BTreeMap<JobId, ()>>>,
        clock: Clock,
    ) -> Self {
        Self::try_start_in(dir, play, running, clock).await.unwrap()
    }

    async fn try_start_in(
        dir: tempfile::TempDir,
        play: Play,
        running: Arc<Mutex<BTreeMap<JobId, ()>>>,
        clock: Clock,
    ) -> Result<Self, StoreError> {
        let sealer = Sealer::with_key([1; 32]);
        let store = Store::open(&dir.path().join("pvn.db"), sealer.clone()).await?;
        let (news, news_in) = mpsc::channel(1024);
        let runner = Scripted {
            play,
            news,
            seen: Arc::default(),
            running,
            forgotten: Arc::default(),
            silent: Arc::default(),
            absent: Arc::default(),
            unanswered: Arc::default(),
            memory: Arc::default(),
            waiting: Arc::default(),
            deleted: Arc::default(),
        };
        let stop = CancellationToken::new();
        let limit = Limit { total: 8, per_runtime: None };
        let parts = DriverParts {
            store: store.clone(),
            clock: clock.clone(),
            sealer,
            blobs: Blobs::open(&dir.path().join("blobs")).unwrap(),
            runners: Runners::new(Arc::new(runner.clone()), Arc::new(runner.clone())),
            clusters: Arc::new(runner.clone()),
            news: news_in,
            root: dir.path().to_owned(),
            limits: Limits { fetch: limit, apply: limit, get_info: limit },
            observer: false,
            holds_applies: false,
            options: Options::default(),
        };
        let Driver { handle, done } = Driver::start(parts, stop.clone()).await?;
        Ok(Self { dir, store, runner, handle, clock, stop, done })
    }

    /// Stops it softly and starts it again over the same database, with jobs that do something
    /// else; what ran goes on.
    pub(crate) async fn restart(
        self,
        play: impl Fn(&JobSpec) -> Option<i32> + Send + Sync + 'static,
    ) -> Self {
        self.restart_after(|| {}, play).await
    }

    /// The same, and something happens while it is down.
    pub(crate) async fn restart_after(
        self,
        happens: impl FnOnce(),
        play: impl Fn(&JobSpec) -> Option<i32> + Send + Sync + 'static,
    ) -> Self {
        self.stop.cancel();
        self.done.await.unwrap().unwrap();
        self.store.close().await;
        happens();
        Self::start_in(self.dir, Arc::new(play), self.runner.running, self.clock).await
    }

    /// Stops it softly, changes the database behind its back, and starts it again.
    pub(crate) async fn edited(
        self,
        sql: &str,
        play: impl Fn(&JobSpec) -> Option<i32> + Send + Sync + 'static,
    ) -> Self {
        self.stop.cancel();
        self.done.await.unwrap().unwrap();
        self.store.close().await;
        let options =
            sqlx::sqlite::SqliteConnectOptions::new().filename(self.dir.path().join("pvn.db"));
        let mut database = sqlx::sqlite::SqliteConnection::connect_with(&options).await.unwrap();
        sqlx::query(sqlx::AssertSqlSafe(sql.to_owned())).execute(&mut database).await.unwrap();
        database.close().await.unwrap();
        Self::start_in(self.dir, Arc::new(play), self.runner.running, self.clock).await
    }

    /// Kills it as a crash would: nothing is finished, nothing is noted. What ran goes on.
    pub(crate) async fn crash(
        self,
        play: impl Fn(&JobSpec) -> Option<i32> + Send + Sync + 'static,
    ) -> Self {
        self.done.abort();
        let _ = self.done.await;
        self.store.close().await;
        Self::start_in(self.dir, Arc::new(play), self.runner.running, self.clock).await
    }

    pub(crate) async fn apply(&self, text: &str) -> Result<ConfigsResult, Refusal> {
        self.request(text, false).await
    }

    pub(crate) async fn request(&self, text: &str, push: bool) -> Result<ConfigsResult, Refusal> {
        let file = ConfigFile {
            path: "test.pvn.yaml".into(),
            text: text.into(),
            attachments: BTreeMap::new(),
        };
        self.handle
            .apply_configs(
                ConfigsRequest { files: vec![file], push, ..ConfigsRequest::default() },
                caller("root"),
            )
            .await
    }

    pub(crate) async fn push(
        &self,
        params: &[(&str, &str)],
    ) -> Result<schema::api::Pushed, Refusal> {
        let params =
            params.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        self.handle
            .push(
                "app".into(),
                "web".into(),
                PushRequest { params, ..PushRequest::default() },
                caller("root"),
            )
            .await
    }

    /// The instance of `app/web` in a channel.
    pub(crate) async fn instance(&self, channel: &str) -> Instance {
        let service = self.store.service("app", "web").await.unwrap().unwrap();
        service.channels.into_iter().find(|instance| instance.channel.as_str() == channel).unwrap()
    }

    /// Waits until something is so.
    pub(crate) async fn until<T>(&self, what: &str, look: impl AsyncFnMut() -> Option<T>) -> T {
        match wait::until(PATIENCE, look).await {
            Some(found) => found,
            None => panic!("{what} did not happen; the log says:\n{}", self.log().await),
        }
    }

    pub(crate) async fn until_status(&self, channel: &str, status: Status) -> Instance {
        let what = format!("{channel} being {status}");
        self.until(&what, async || {
            Some(self.instance(channel).await).filter(|instance| instance.status == status)
        })
        .await
    }

    async fn log(&self) -> String {
        let page = self.store.events(&Default::default(), &Default::default()).await.unwrap();
        page.items
            .iter()
            .rev()
            .map(|entry| format!("{} {} {}\n", entry.at, entry.kind, entry.message))
            .collect()
    }
}

/// An application with the channels `staging` and `production` (behind a stable staging), and the
/// service `web`.
pub(crate) const TWO_CHANNELS: &str = r#"
runtime:
  name: tool
  custom:
    proxyRuntime: {runtime: local}
    fetch:
      pollInterval: 1s
      steadyStatePollInterval: 3600s
      taskConfig: {program: {name: look, entrypoint: [look]}}
    apply:
      taskConfig: {program: {name: do, entrypoint: [do, "{{.Params.size}}"]}}
    parameters:
    - name: size
      string: {defaultValue: small}
---
application:
  name: app
  releaseChannels:
  - name: staging
    runtimes: [{runtime: tool}]
  - name: production
    runtimes: [{runtime: tool}]
    preconditions:
    - releaseChannelStable: {releaseChannel: staging}
---
service:
  name: web
  application: app
  parameters:
  - name: size
    string: {defaultValue: medium}
  customRuntime:
    parameterValues:
    - name: size
      string: "{{.Params.size}}"
"#;

/// The same with one channel `only` and an apply that a person has to approve.
pub(crate) const APPROVAL: &str = r#"
runtime:
  name: tool
  custom:
    proxyRuntime: {runtime: local}
    requireApprovalBeforeApply: true
    fetch:
      pollInterval: 1s
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
