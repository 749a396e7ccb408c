//! Jobs on a cluster that misbehaves: the runner against a fake API server, which does on demand
//! what a real one does rarely.

mod away;
mod blockers;
mod changed;
mod check;
mod credentials;
mod cut;
mod deadlines;
mod ends;
mod fake;
mod leave;
mod logs;
mod made;
mod one_pod;
mod orphans;
mod restarts;
mod scripts;
mod stops;
mod strangers;
mod tries;
mod unwatched;
mod withdraw;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::http::Method;
use futures::FutureExt;
use pvn_scheduler::blobs::Blobs;
use pvn_scheduler::clock::Clock;
use pvn_scheduler::compile::{ClusterPlace, Command};
use pvn_scheduler::delivery::{self, Delivery, TokenSigner};
use pvn_scheduler::runner::cluster::ClusterRunner;
use pvn_scheduler::runner::{ClusterJob, End, JobSpec, LeaveRefusal, RunnerEvent};
use pvn_scheduler::secrets::Sealer;
use schema::id::JobId;
use schema::report::Report;
use schema::status::JobKind;
use serde_json::json;
use tokio::sync::mpsc;

use fake::{Fake, Fault};

use crate::wait;

/// Longest wait for something that must happen.
const PATIENCE: Duration = Duration::from_secs(60);

/// A runner over a fake cluster.
struct World {
    fake: Fake,
    runner: ClusterRunner,
    news: mpsc::Receiver<RunnerEvent>,
    dir: tempfile::TempDir,
    blobs: Blobs,
    delivery: Delivery,
    daemon: Daemon,
}

/// What the runner hears of the rest of the daemon when it asks.
#[derive(Debug, Clone)]
struct Daemon {
    /// How often leave is given yet, and why it is not any more.
    leaves: Arc<Mutex<(usize, &'static str)>>,
    /// How often it was not given.
    refused: Arc<AtomicUsize>,
    /// Whether it has the database.
    owns: Arc<Mutex<Result<(), String>>>,
}

impl Daemon {
    fn new() -> Self {
        Self {
            leaves: Arc::new(Mutex::new((usize::MAX, ""))),
            refused: Arc::default(),
            owns: Arc::new(Mutex::new(Ok(()))),
        }
    }

    /// Gives leave so often, and refuses it then.
    fn refuses_after(&self, leaves: usize, why: &'static str) {
        *self.leaves.lock().unwrap() = (leaves, why);
    }

    fn answer(&self) -> Result<(), String> {
        let mut leaves = self.leaves.lock().unwrap();
        let Some(left) = leaves.0.checked_sub(1) else {
            self.refused.fetch_add(1, Ordering::SeqCst);
            return Err(leaves.1.to_owned());
        };
        leaves.0 = left;
        Ok(())
    }

    fn is_not_ours(&self, why: &str) {
        *self.owns.lock().unwrap() = Err(why.to_owned());
    }
}

impl World {
    async fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let fake = Fake::start().await;
        std::fs::write(dir.path().join("kubeconfig"), fake.kubeconfig()).unwrap();
        let blobs = Blobs::open(&dir.path().join("blobs")).unwrap();
        let daemon = Daemon::new();
        let (runner, news, delivery) = runner(dir.path(), &blobs, Clock::System, &daemon);
        Self { fake, runner, news, dir, blobs, delivery, daemon }
    }

    /// Another life of the daemon over the same directory.
    async fn restart(&mut self) {
        self.restart_at(Clock::System).await;
    }

    /// The same when this clock shows the time.
    async fn restart_at(&mut self, clock: Clock) {
        self.runner.detach().await;
        (self.runner, self.news, self.delivery) =
            runner(self.dir.path(), &self.blobs, clock, &self.daemon);
    }

    /// What was kept of the job's standard output.
    fn stdout(&self, report: &Report) -> String {
        let id = report.stdout_blob_id.expect("something was kept");
        String::from_utf8(self.blobs.read(id, 0, 1 << 20).unwrap().unwrap()).unwrap()
    }

    /// Starts the job as this says; its Job is let go and gets no Pod by itself.
    async fn let_go_as(&self, spec: JobSpec) {
        self.fake.set_runs(false);
        self.runner.start(spec);
        self.until("the Job to be let go", |fake| {
            fake.object("/jobs/").is_some_and(|job| job["spec"]["suspend"] == false)
        })
        .await;
        // What is deleted must have been seen, or nobody could say of what.
        self.until("both watches", |fake| fake.watchers() >= 2).await;
    }

    /// The job's report, once it is over.
    async fn report(&mut self) -> Report {
        loop {
            let told = tokio::time::timeout(PATIENCE, self.news.recv())
                .await
                .expect("something is told")
                .unwrap();
            if let RunnerEvent::Ended { end, .. } = told {
                let End::Reported(report) = end else { panic!("no report: {end:?}") };
                return *report;
            }
        }
    }

    fn spec(&self) -> JobSpec {
        let container = json!({"name": "do", "image": "i"});
        let job = json!({"apiVersion": "batch/v1", "kind": "Job", "spec": {"template": {"spec": {"containers": [container]}}}});
        let command = Command { job: Some(Box::new(job)), ..Command::new("do", &[]) };
        JobSpec {
            cluster: Some(ClusterJob {
                place: ClusterPlace {
                    cluster: "k8s".parse().unwrap(),
                    runtime: "tool".parse().unwrap(),
                    kubeconfig: Some(
                        self.dir.path().join("kubeconfig").to_str().unwrap().to_owned(),
                    ),
                    context: None,
                    wrapper_image: None,
                    namespace: "n".to_owned(),
                    own_namespace: true,
                },
                application: "app".parse().unwrap(),
                service: "svc".parse().unwrap(),
                channel: "c".parse().unwrap(),
            }),
            ..JobSpec::new(job_id(), JobKind::Apply, command)
        }
    }

    /// The same behind a wrapper that pvn puts there.
    fn wrapped_spec(&self) -> JobSpec {
        let mut spec = self.spec();
        spec.cluster.as_mut().unwrap().place.wrapper_image = Some("pvn-wrapper".to_owned());
        spec.command.job.as_mut().unwrap()["spec"]["template"]["spec"]["containers"][0]["command"] =
            json!(["do"]);
        spec
    }

    /// What the runner tells next of the job: what it waits for, that it runs, or how it ends, in
    /// one line.
    async fn told(&mut self) -> String {
        let told = tokio::time::timeout(PATIENCE, self.news.recv()).await;
        let told = told
            .unwrap_or_else(|_| panic!("nothing is told; asked was {:#?}", self.fake.requests()))
            .unwrap();
        let (end, gone) = match told {
            RunnerEvent::Waits { wait: None, .. } => return "starts".to_owned(),
            RunnerEvent::Waits { wait: Some(wait), .. } => {
                let surroundings = if wait.surroundings { ", surroundings" } else { "" };
                return format!("waits{surroundings}: {}; ends when {}", wait.why, wait.ends_when);
            }
            RunnerEvent::Started { .. } => return "runs".to_owned(),
            RunnerEvent::Asks { .. } => unreachable!("the daemon has answered"),
            RunnerEvent::Ended { end, gone, .. } => (end, gone),
        };
        let gone = if gone { "gone" } else { "not gone" };
        match end {
            End::Reported(report) => {
                let by = if report.oom_killed { " by OOM" } else { "" };
                format!(
                    "{gone}, exit {:?}{by}{}",
                    report.exit_code,
                    if report.timed_out { ", timed out" } else { "" }
                )
            }
            End::NotStarted { why, surroundings } => {
                format!("{gone}, never{}: {why}", if surroundings { ", surroundings" } else { "" })
            }
            End::TakenBack { why } => format!("{gone}, taken back: {why}"),
            End::InputLost { why } => format!("{gone}, never, input lost: {why}"),
            End::Unknown { why, .. } => format!("{gone}, unknown: {why}"),
        }
    }

    /// How the job ends, in one line.
    async fn end(&mut self) -> String {
        loop {
            let told = self.told().await;
            if told.starts_with("gone") || told.starts_with("not gone") {
                return told;
            }
        }
    }

    /// Starts the job; its Job is let go and gets no Pod by itself.
    async fn let_go(&self) {
        self.let_go_as(self.spec()).await;
    }

    async fn until(&self, what: &str, mut ask: impl FnMut(&Fake) -> bool) {
        let asked = wait::until(PATIENCE, async || ask(&self.fake).then_some(()));
        asked.await.unwrap_or_else(|| panic!("gave up waiting for {what}"));
    }
}

/// Why the daemon gives no leave to a job that is over for it.
const IS_OVER: &str = "it has ended";

fn job_id() -> JobId {
    JobId::derive(&[b"job"])
}

fn runner(
    dir: &std::path::Path,
    blobs: &Blobs,
    clock: Clock,
    daemon: &Daemon,
) -> (ClusterRunner, mpsc::Receiver<RunnerEvent>, Delivery) {
    let sealer = Sealer::open(&dir.join("key")).unwrap();
    let settings = delivery::DeliverySettings {
        directory: dir.join("uploads"),
        url: "http://127.0.0.1:1".to_owned(),
    };
    let delivery =
        Delivery::open(settings, blobs.clone(), TokenSigner::new(&sealer), clock.clone()).unwrap();
    let (news, mut told) = mpsc::channel(16);
    let (others, received) = mpsc::channel(16);
    let (daemon, owns) = (daemon.clone(), daemon.owns.clone());
    tokio::spawn(async move {
        while let Some(told) = told.recv().await {
            match told {
                RunnerEvent::Asks { leave, .. } => leave.give(
                    daemon.answer().map_err(|why| LeaveRefusal { is_over: why == IS_OVER, why }),
                ),
                // The test may be over.
                told => drop(others.send(told).await),
            }
        }
    });
    let owns = Box::new(move || std::future::ready(owns.lock().unwrap().clone()).boxed());
    (
        ClusterRunner::open(dir.join("cluster"), delivery.clone(), None, sealer, clock, news, owns)
            .unwrap(),
        received,
        delivery,
    )
}

/// One job whose requests meet these faults, and how it ends.
async fn check(faults: &[(Method, &'static str, Fault)], expected: &str) -> World {
    let mut world = World::new().await;
    world.fake.exit_with(3);
    for (method, path, fault) in faults {
        world.fake.fail(method.clone(), path, *fault);
    }
    world.runner.start(world.spec());
    assert_eq!(world.end().await, expected, "{faults:?}");
    world
}

#[tokio::test]
async fn watches_that_end_or_are_too_old_lose_nothing() {
    for too_old in [0, 4] {
        let mut world = World::new().await;
        world.let_go().await;
        world.until("both watches", |fake| fake.count("GET", "watch") >= 2).await;
        world.fake.end_watches(too_old);
        world.fake.set_runs(true);
        assert_eq!(world.end().await, "gone, exit Some(0)", "{too_old} watches were too old");
    }
}

#[tokio::test]
async fn p1_a_job_that_was_let_go_is_never_made_again() {
    let mut world = World::new().await;
    world.let_go().await;
    world.restart().await;
    world.fake.lose("/jobs/");
    let made = world.fake.count("PATCH", "/jobs/");
    assert_eq!(world.runner.recover(&[job_id()]).await, []);
    assert_eq!(world.end().await, "not gone, unknown: its Job was deleted while nobody watched");
    assert_eq!(world.fake.count("PATCH", "/jobs/"), made);
}

#[tokio::test]
async fn p5_a_job_is_taken_up_after_a_restart_and_ends_as_it_did() {
    let mut world = World::new().await;
    world.let_go().await;
    world.restart().await;
    world.fake.exit_with(9);
    world.fake.set_runs(true);
    assert_eq!(world.runner.recover(&[job_id()]).await, []);
    assert_eq!(world.end().await, "gone, exit Some(9)");
    world.runner.forget(job_id()).await;
    assert!(world.runner.recorded().contains(&job_id()), "its Job is not over");
    world
        .fake
        .job(|job| job["status"] = json!({"conditions": [{"type": "Failed", "status": "True"}]}));
    let runner = world.runner.clone();
    world.until("it to be forgotten", |_| !runner.recorded().contains(&job_id())).await;
}

#[tokio::test]
async fn a_job_that_was_never_handed_over_can_be_started() {
    let world = World::new().await;
    assert_eq!(world.runner.recover(&[job_id()]).await, [job_id()]);
}
