//! All Kubernetes: makes a Job for each job, follows it to its end, stops it, and finds it again
//! after a restart. Called by `perform` and the driver through [`super::registry`]; what its jobs'
//! wrappers deliver, and that each job ends once, is [`crate::delivery`]'s.
//!
//! ```text
//! start ──▶ expect uploads ──▶ Job, suspended ──▶ Secret, owned by the Job ──▶ its uid recorded ──▶ leave? ──▶ Job let go
//!                                                                                                     │ no        │
//!                                                                           never started ◀── deleted ┘           │
//!            settle ◀── container ended, Pod or Job gone, never started in time ◀── watch ◀───────────────────────┘
//! ```
//!
//! What always holds, however this daemon and the cluster die:
//! - a job's command is let go at most once: [`record`] says why;
//! - and only while this daemon has the database and every gate is open: [`let_go`];
//! - a job goes on without us, and is taken up again after a restart;
//! - a job that never ran is told as such, and one of which nobody knows as unknown.

use std::collections::HashSet;
use std::io;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::future::BoxFuture;
use schema::api::Finding;
use schema::id::JobId;
use tokio::sync::{Semaphore, mpsc};

use super::evidence::OutcomeEvidence;
use super::job_tasks::{DIED, JobTasks};
use super::{ClusterQuestions, End, JobSpec, News, OutputPiece, Runner, RunnerEvent};
use crate::clock::Clock;
use crate::compile::ClusterPlace;
use crate::delivery::{Delivery, Holds};
use crate::secrets::Sealer;

mod absent;
mod ask;
mod begin;
mod blockers;
mod changed;
mod check;
mod clusters;
mod course;
mod events;
mod faults;
mod follow;
mod hidden;
mod job;
mod leave;
mod let_go;
mod log;
mod lost_watch;
mod not_kubernetes;
mod one_pod;
mod over;
mod own;
mod plugin;
mod record;
mod rest;
mod rights;
mod rounds;
mod sight;
mod stop;
mod strangers;
mod unstarted;
mod watch;
mod whose;
mod withdraw;

use clusters::Clusters;
use leave::JobOwnership;
pub use leave::Owns;
use record::{JobRecords, Record};
use strangers::Strangers;
use watch::Watches;

/// Time between two tries to end or take away what is left of a job in a cluster that is away, or
/// does not let us. Nothing waits for it, and what was made is suspended or ends by its own
/// deadline.
const FORGET_AGAIN: Duration = Duration::from_secs(300);

/// The runner. Cloned freely.
#[derive(Debug, Clone)]
pub struct ClusterRunner {
    inner: Arc<ClusterInner>,
}

#[derive(Debug)]
struct ClusterInner {
    records: JobRecords,
    delivery: Delivery,
    clock: Clock,
    sealer: Sealer,
    news: News,
    clusters: Clusters,
    watches: Watches,
    followed: JobTasks,
    /// Whether the database is ours.
    owner: Arc<JobOwnership>,
    /// Those who alone may vouch for us to Pods, PEM; `None` = whom everybody trusts.
    authorities: Option<String>,
    /// Whether people were told that Pods cannot reach us.
    warned: AtomicBool,
    /// Jobs whose Pods are known to be over and which are not forgotten yet.
    finished: Mutex<HashSet<JobId>>,
    /// Jobs of which something is recorded and that the database does not know.
    strangers: Strangers,
    /// Places that may still be checked at the same time.
    checks: Arc<Semaphore>,
}

impl ClusterRunner {
    /// A runner that keeps what it must know in `directory`, secrets sealed with `sealer`, and
    /// tells its news to `news`. It asks `owns` before each request that makes a Job or lets
    /// its command run, and makes none when the database is another's.
    ///
    /// # Errors
    /// When the directory cannot be made.
    pub fn open(
        directory: PathBuf,
        delivery: Delivery,
        authorities: Option<String>,
        sealer: Sealer,
        clock: Clock,
        news: News,
        owns: Owns,
    ) -> io::Result<Self> {
        let followed = JobTasks::default();
        let inner = ClusterInner {
            records: JobRecords::open(&directory)?,
            delivery,
            clock,
            sealer,
            news,
            clusters: Clusters::default(),
            watches: Watches::new(followed.tasks.clone()),
            owner: Arc::new(JobOwnership(owns)),
            authorities,
            warned: AtomicBool::new(false),
            finished: Mutex::default(),
            strangers: Strangers::default(),
            checks: Arc::new(Semaphore::new(check::CHECKS_LIMIT)),
            followed,
        };
        Ok(Self { inner: Arc::new(inner) })
    }

    /// Starts a job, or takes up the one of this id that was started before. What comes of it is
    /// news.
    pub fn start(&self, spec: JobSpec) {
        self.inner.strangers.meet(spec.job);
        self.follow(spec.job, |inner, stops| async move { inner.run(spec, stops).await });
    }

    /// Takes up the jobs that were decided and have not ended, after a restart. Those of them that
    /// never ran are returned.
    pub async fn recover(&self, unfinished: &[JobId]) -> Vec<JobId> {
        let mut never_started = Vec::new();
        // Until a job was looked at nobody knows whether somebody ended it meanwhile, whatever its
        // wrapper reports.
        self.inner.delivery.recover(unfinished, Holds::All, &self.inner.news).await;
        for job in unfinished {
            match self.inner.records.get(*job) {
                Ok(Some(record)) if record.uid.is_some() => {
                    let job = *job;
                    self.follow(job, |inner, stops| async move {
                        inner.take_up(job, record, stops).await
                    });
                }
                Ok(_) => never_started.push(*job),
                Err(error) => {
                    tracing::error!(
                        %job, %error,
                        "what is known of a job on a cluster cannot be read"
                    );
                    self.inner
                        .tell_unknown(*job, format!("what was known of it cannot be read: {error}"))
                        .await;
                }
            }
        }
        for job in self.inner.records.jobs() {
            if !unfinished.contains(&job) {
                self.forget(job).await;
            }
        }
        never_started
    }

    /// Whether a job is followed, so that a stop of it reaches its Pod.
    pub fn hears(&self, job: JobId) -> bool {
        self.inner.followed.has(job)
    }

    /// Stops a job: its Pod is asked to end; the second time it is killed. Its end is news. `false`
    /// when no such job runs.
    pub fn stop(&self, job: JobId) -> bool {
        let is_stopped = self.inner.followed.stop(job);
        if is_stopped {
            self.inner.delivery.cancel(job);
        }
        is_stopped
    }

    /// Forgets a job whose end is stored. Its Job stays in the cluster as long as its `ttl` says;
    /// what never ends by itself beside the command is ended.
    pub async fn forget(&self, job: JobId) {
        self.inner.delivery.forget(job).await;
        let is_finished =
            self.inner.finished.lock().expect("nobody panics with the lock").remove(&job);
        let record = self.inner.records.get(job).ok().flatten();
        let Some(record) = record.filter(|_| !is_finished) else { return self.inner.remove(job) };
        if self.inner.strangers.has(job) && record.uid.is_some() {
            return self.let_be(job, record);
        }
        // While it cannot be done the job is remembered, also over a restart.
        let inner = self.inner.clone();
        self.inner.followed.tasks.spawn(async move {
            let done = async {
                if record.uid.is_none() {
                    return inner.clear_what_comes_late(&record).await;
                }
                while !inner.end_rest(job, &record).await {
                    tokio::time::sleep(FORGET_AGAIN).await;
                }
            };
            tokio::select! {
                () = done => inner.remove(job),
                () = inner.followed.detach.cancelled() => {}
            }
        });
    }

    /// Lets go of all jobs, which go on without us, and ends the tasks.
    pub async fn detach(&self) {
        self.inner.followed.end().await;
    }

    /// Runs `task` for a job that has none.
    fn follow<F: Future<Output = ()> + Send + 'static>(
        &self,
        job: JobId,
        task: impl FnOnce(Arc<ClusterInner>, mpsc::Receiver<()>) -> F,
    ) {
        let inner = self.inner.clone();
        let died = {
            let inner = inner.clone();
            async move {
                inner.followed.over(job);
                if !inner.delivery.give_up(job, DIED.to_owned()).await {
                    inner.tell_unknown(job, DIED.to_owned()).await;
                }
            }
        };
        let task = |stops| {
            let task = task(inner.clone(), stops);
            async move {
                tokio::select! {
                    () = task => {}
                    () = inner.followed.detach.cancelled() => {}
                }
                inner.followed.over(job);
            }
        };
        self.inner.followed.follow(job, task, died);
    }
}

impl Runner for ClusterRunner {
    fn start(&self, spec: JobSpec) {
        Self::start(self, spec);
    }

    fn stop(&self, job: JobId) -> bool {
        Self::stop(self, job)
    }

    fn hears(&self, job: JobId) -> bool {
        Self::hears(self, job)
    }

    fn recover(&self, unfinished: Vec<JobId>) -> BoxFuture<'_, Vec<JobId>> {
        Box::pin(async move { Self::recover(self, &unfinished).await })
    }

    fn forget(&self, jobs: Vec<JobId>) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            for job in jobs {
                Self::forget(self, job).await;
            }
        })
    }

    fn tail(&self, piece: OutputPiece) -> BoxFuture<'_, io::Result<Option<Vec<u8>>>> {
        let delivery = self.inner.delivery.clone();
        let read = move || delivery.tail(piece.job, piece.stream, piece.offset, piece.limit);
        Box::pin(async move { tokio::task::spawn_blocking(read).await.map_err(io::Error::other)? })
    }

    fn recorded(&self) -> Vec<JobId> {
        Self::recorded(self)
    }

    fn spare(&self, unknown: Vec<JobId>) {
        Self::spare(self, unknown);
    }
}

impl ClusterQuestions for ClusterRunner {
    fn check(&self, places: Vec<ClusterPlace>) -> BoxFuture<'_, Result<Vec<Finding>, String>> {
        Box::pin(Self::check(self, places))
    }

    fn absent(&self, places: Vec<ClusterPlace>) -> BoxFuture<'_, Vec<ClusterPlace>> {
        Box::pin(Self::absent(self, places))
    }
}

impl ClusterInner {
    /// The task of a job that is started here.
    async fn run(self: Arc<Self>, spec: JobSpec, mut stops: mpsc::Receiver<()>) {
        let job = spec.job;
        // Whoever asks for a start again finds what was begun before.
        let before = self.records.get(job).ok().flatten();
        if let Some(record) = before.clone().filter(|record| record.uid.is_some()) {
            // Of one that the database did not know when this daemon started nothing is expected
            // yet.
            return match self.delivery.expect(&spec, &self.news).await {
                Ok(_) => self.take_up(job, record, stops).await,
                Err(error) => {
                    self.tell_unknown(job, format!("its uploads cannot be expected: {error}")).await
                }
            };
        }
        // Of one that was begun nobody knows yet whether it runs.
        if before.is_none()
            && let Some(end) = self.without_input(&spec).await
        {
            return self
                .followed
                .tell(&self.news, RunnerEvent::Ended { job, end, gone: true })
                .await;
        }
        let (learned, gone) = match self.begin(&spec, before.is_some(), &mut stops).await {
            Ok(follower) => follower.until_over(&mut stops).await,
            Err(never) => {
                (OutcomeEvidence { never: Some(never), ..OutcomeEvidence::default() }, true)
            }
        };
        self.delivery.settle(job, learned, gone).await;
    }

    /// The task of a job whose Job was made before a restart.
    async fn take_up(self: Arc<Self>, job: JobId, record: Record, mut stops: mpsc::Receiver<()>) {
        self.delivery.hold(job, Holds::All);
        let (learned, gone) =
            self.again(job, record, &mut stops).await.until_over(&mut stops).await;
        self.delivery.settle(job, learned, gone).await;
    }

    /// The end of a job that cannot be given what its fetch left.
    async fn without_input(&self, spec: &JobSpec) -> Option<End> {
        match self.delivery.lost_input(spec).await {
            Ok(lost) => lost.map(|why| End::InputLost { why }),
            Err(error) => Some(End::NotStarted {
                why: format!("what its fetch left cannot be read: {error}"),
                surroundings: true,
            }),
        }
    }

    async fn tell_unknown(&self, job: JobId, why: String) {
        let end = End::Unknown { why, report: None };
        self.followed.tell(&self.news, RunnerEvent::Ended { job, end, gone: false }).await;
    }

    fn remove(&self, job: JobId) {
        if let Err(error) = self.records.remove(job) {
            tracing::warn!(
                %job, %error,
                "failed to remove what was known of a job; it takes up space until the next start"
            );
        }
    }
}
