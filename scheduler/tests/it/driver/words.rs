//! What people are told of real local jobs whose wrapper is told of no secrets, as one that
//! somebody else wrote may be.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::PathBuf;
use std::sync::Arc;

use engine::limiter::{Limit, Limits};
use futures::future::BoxFuture;
use pvn_scheduler::blobs::Blobs;
use pvn_scheduler::clock::Clock;
use pvn_scheduler::compile::Options;
use pvn_scheduler::driver::{Ask, Driver, DriverParts};
use pvn_scheduler::runner::local::{LocalRunner, LocalSettings, find_wrapper};
use pvn_scheduler::runner::registry::Runners;
use pvn_scheduler::runner::{JobSpec, OutputPiece, Runner, RunnerEvent};
use pvn_scheduler::secrets::Sealer;
use pvn_scheduler::store::Store;
use schema::api::{ConfigFile, ConfigsRequest, PushRequest};
use schema::id::JobId;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::{Nobody, PATIENCE, caller, target};
use crate::wait;

#[derive(Debug, Clone)]
struct Unmasked(Arc<LocalRunner>);

impl Runner for Unmasked {
    fn start(&self, mut spec: JobSpec) {
        spec.secret_keys.clear();
        self.0.start(spec);
    }

    fn stop(&self, job: JobId) -> bool {
        self.0.stop(job)
    }

    fn recover(&self, unfinished: Vec<JobId>) -> BoxFuture<'_, Vec<JobId>> {
        Runner::recover(self.0.as_ref(), unfinished)
    }

    fn forget(&self, jobs: Vec<JobId>) -> BoxFuture<'_, ()> {
        Runner::forget(self.0.as_ref(), jobs)
    }

    fn tail(&self, piece: OutputPiece) -> BoxFuture<'_, std::io::Result<Option<Vec<u8>>>> {
        Runner::tail(self.0.as_ref(), piece)
    }
}

/// The first fetch goes on when somebody writes into `go`; the plan, what is printed and what fails
/// tell three secrets.
const CONFIG: &str = r#"
runtime:
  name: tool
  custom:
    proxyRuntime: {runtime: local}
    requireApprovalBeforeApply: true
    fetch:
      pollInterval: 1s
      taskConfig:
        program:
          name: look
          entrypoint: [pvn-wrapper, exec, --out, plan-explanation=plan.txt, --, sh, -c]
          cmd: ['if mkdir first; then touch started; read line < go; fi; echo "Plan $TOKEN ($(printf %s $TOKEN | base64))" | tee plan.txt; exit 2']
          env: {TOKEN: {secret: {key: token}}}
    apply:
      taskConfig:
        program:
          name: do
          entrypoint: [sh, -c]
          cmd: ['echo "denied: $RAW and $NAMED" >&2; exit 1']
          env: {RAW: {rawSecret: secret-raw-value}, NAMED: {value: secret-named-value}, PVN_SECRET_KEYS: {value: NAMED}}
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

fn parts(
    store: Store,
    sealer: Sealer,
    blobs: Blobs,
    runners: Runners,
    news: mpsc::Receiver<RunnerEvent>,
    root: PathBuf,
) -> DriverParts {
    let limit = Limit { total: 8, per_runtime: None };
    DriverParts {
        store,
        clock: Clock::System,
        sealer,
        blobs,
        runners,
        clusters: Arc::new(Nobody),
        news,
        root,
        limits: Limits { fetch: limit, apply: limit, get_info: limit },
        observer: false,
        holds_applies: false,
        options: Options::default(),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn no_text_of_a_job_tells_its_secrets_although_its_wrapper_masked_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let file = |name: &str| directory.path().join(name);
    nix::unistd::mkfifo(&file("go"), nix::sys::stat::Mode::S_IRWXU).unwrap();
    let sealer = Sealer::with_key([1; 32]);
    let store = Store::open(&file("pvn.db"), sealer.clone()).await.unwrap();
    let blobs = Blobs::open(&file("blobs")).unwrap();
    let (news, news_in) = mpsc::channel(64);
    let settings = LocalSettings {
        spool: file("spool"),
        instances: file("instances"),
        cache: file("cache"),
        wrapper: find_wrapper(None).expect("`cargo build -p pvn-wrapper` was run"),
        started_in: directory.path().to_owned(),
        environment: std::env::vars_os().collect(),
    };
    let runner = Unmasked(LocalRunner::open(settings, blobs.clone(), news).unwrap().into());
    let stop = CancellationToken::new();
    let runners = Runners::new(Arc::new(runner.clone()), Arc::new(Nobody));
    let root = directory.path().to_owned();
    let parts = parts(store.clone(), sealer, blobs.clone(), runners, news_in, root);
    let Driver { handle, notified: _, done } = Driver::start(parts, stop.clone()).await.unwrap();
    let set = async |value: &str| {
        handle.set_secret("token".into(), value.into(), caller("eve")).await.unwrap()
    };
    set("secret-of-the-start").await;
    let config = ConfigFile {
        path: "test.pvn.yaml".into(),
        text: CONFIG.into(),
        attachments: Default::default(),
    };
    let request = ConfigsRequest { files: vec![config], ..ConfigsRequest::default() };
    handle.apply_configs(request, caller("root")).await.unwrap();
    handle.push("app".into(), "web".into(), PushRequest::default(), caller("root")).await.unwrap();
    wait::until(PATIENCE, async || file("started").exists().then_some(()))
        .await
        .expect("a fetch in time");
    // What the job was given is a secret although it is not the latest any more.
    set("secret-of-later").await;
    // Open for reading too, so that it opens at once whoever reads; and to the end, for what nobody
    // has read goes with the last.
    let mut go = OpenOptions::new().read(true).write(true).open(file("go")).unwrap();
    go.write_all(b"go\n").unwrap();
    let instance = async || store.service("app", "web").await.unwrap().unwrap().channels.remove(0);
    let asked = wait::until(PATIENCE, async || {
        Some(instance().await).filter(|instance| !instance.approvals.is_empty())
    });
    let asked = asked.await.expect("an approval in time");
    assert_eq!(asked.approvals[0].explanation.as_deref(), Some("Plan *** (***)\n"));
    handle.ask(target("only"), Ask::Approve(super::any_plan()), caller("eve")).await.unwrap();
    let failed = async || {
        let jobs = store.jobs(&Default::default(), &Default::default()).await.unwrap().items;
        jobs.into_iter().find(|job| job.exit_code == Some(1))
    };
    let failed = wait::until(PATIENCE, failed).await.expect("an apply in time");
    assert_eq!(failed.message, "ended with exit code 1: denied: *** and ***");
    let events = store.events(&Default::default(), &Default::default()).await.unwrap();
    let told = serde_json::to_string(&(asked, failed, instance().await, events)).unwrap();
    assert!(!told.contains("secret-") && told.contains("denied: ***"), "{told}");
    // The blob is as it was handed over: its digest is what was approved.
    let plan = blobs
        .read(
            schema::id::BlobId::of(b"Plan secret-of-the-start (c2VjcmV0LW9mLXRoZS1zdGFydA==)\n"),
            0,
            1,
        )
        .unwrap();
    assert!(plan.is_some());
    stop.cancel();
    done.await.unwrap().unwrap();
    runner.0.detach().await;
}
