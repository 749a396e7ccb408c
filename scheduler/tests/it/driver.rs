//! The driver over a real database and a runner whose jobs do what the test says.

mod broken;
mod clocks;
mod configs;
mod deletions;
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
mod scripted;
mod secrets;
mod stories;
mod targets;
mod undone;
mod words;

pub(crate) use scripted::Scripted;
use scripted::{Play, report};

pub(crate) use nobody::Nobody;
pub(crate) use round::tidy_world;

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
    Caller::unlimited(who, "127.0.0.1")
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
        let Driver { handle, notified: _, done } = Driver::start(parts, stop.clone()).await?;
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

/// The same where people say yes once for both channels; this runtime serves `staging`.
pub(crate) fn with_shared_approval(staging: &str) -> String {
    let gate = "preconditions:\n    - sharedManualApproval: {name: launch}";
    TWO_CHANNELS
        .replace(
            "  - name: staging\n    runtimes: [{runtime: tool}]",
            &format!("  - name: staging\n    runtimes: [{{runtime: {staging}}}]\n    {gate}"),
        )
        .replace("preconditions:\n    - releaseChannelStable: {releaseChannel: staging}", gate)
}

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
