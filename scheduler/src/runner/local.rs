//! All local processes: starts jobs under the wrapper, follows them to their end, stops them, and
//! finds them again after a restart. Called by `perform` and the driver; its news go over [`News`].
//!
//! What always holds, however this daemon and the wrappers die ([`schema::spool`] says why):
//! - a job is started at most once, however often [`LocalRunner::start`] is called for it;
//! - a job goes on without us, and [`LocalRunner::recover`] takes it up again;
//! - every job that was started ends in exactly one [`RunnerEvent::Ended`] in each life of the
//!   daemon until [`LocalRunner::forget`] is called, and what it left is in the blob store by then.
//!
//! Each job is a task of its own that waits for its process and for stops; what blocks on the disk
//! runs on blocking threads.

use std::collections::HashSet;
use std::ffi::OsString;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::PathBuf;
use std::sync::Arc;

use futures::future::BoxFuture;
use schema::api::Finding;
use schema::id::{InstanceId, JobId};
use schema::spool::Stream;
use tokio::sync::mpsc;

use super::job_tasks::{DIED, JobTasks};
use super::{End, Instance, JobSpec, News, OutputPiece, PlaceLook, Runner, RunnerEvent};
use crate::blobs::Blobs;
use crate::blocking::Blocking;

mod boot;
mod collect;
mod command;
mod deleted;
mod directory;
mod instances;
mod left;
mod look;
mod process;
mod pursue;
mod spares;
mod start;
mod strays;
mod table;

pub use process::find_wrapper;

use boot::BootRecord;
use directory::{ORDER_LIMIT, SpoolContents, SpoolDirectory};
use instances::Instances;
use pursue::TaskPhase;
use spares::Spares;
use strays::Strays;

/// Starts and collections that may block on the disk at the same time: a few more than cores, for
/// most of the time they wait.
const BLOCKING_LIMIT: usize = 8;

/// What the runner needs to know.
#[derive(Debug, Clone)]
pub struct LocalSettings {
    /// Directory of the spool directories; made if missing. On the file system of the blobs, so
    /// that nothing is copied.
    pub spool: PathBuf,
    /// Directory of the instances' private directories; made if missing.
    pub instances: PathBuf,
    /// Directory that all jobs share, for what can be got again; made if missing.
    pub cache: PathBuf,
    /// The wrapper's program, absolute. See [`find_wrapper`].
    pub wrapper: PathBuf,
    /// Where the daemon was started: what relative working directories are relative to.
    pub started_in: PathBuf,
    /// The daemon's environment, of which jobs inherit a part.
    pub environment: Vec<(OsString, OsString)>,
}

/// A piece of a stream of a job that has not been collected yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tail {
    /// The bytes from the offset on.
    pub bytes: Vec<u8>,
    /// Whether a wrapper still runs the job, so that more may come.
    pub running: bool,
}

/// The runner. Cloned freely.
#[derive(Debug, Clone)]
pub struct LocalRunner {
    inner: Arc<LocalInner>,
}

#[derive(Debug)]
struct LocalInner {
    settings: LocalSettings,
    blobs: Blobs,
    news: News,
    followed: JobTasks,
    blocking: Blocking,
    boot: BootRecord,
    spares: Spares,
    instances: Instances,
    strays: Strays,
    may_start: MayStart,
}

/// Whether anything may be started at this moment.
struct MayStart(Box<dyn Fn() -> bool + Send + Sync>);

impl std::fmt::Debug for MayStart {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("MayStart")
    }
}

impl LocalRunner {
    /// A runner that tells its news to `news`.
    ///
    /// # Errors
    /// When the spool directory cannot be made.
    pub fn open(settings: LocalSettings, blobs: Blobs, news: News) -> io::Result<Self> {
        Self::open_while(settings, blobs, news, || true)
    }

    /// The same; it asks `may_start` right before it starts a wrapper, and starts none when that
    /// says no.
    ///
    /// # Errors
    /// When the spool directory cannot be made.
    pub fn open_while(
        settings: LocalSettings,
        blobs: Blobs,
        news: News,
        may_start: impl Fn() -> bool + Send + Sync + 'static,
    ) -> io::Result<Self> {
        std::fs::DirBuilder::new().recursive(true).create(&settings.spool)?;
        let spool = std::path::absolute(&settings.spool)?;
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&settings.cache)?;
        let cache = std::path::absolute(&settings.cache)?;
        let boot = BootRecord::open(&spool)?;
        let spares = Spares::open(&spool)?;
        let instances = Instances::open(&settings.instances, &spool)?;
        let inner = LocalInner {
            settings: LocalSettings { spool, cache, ..settings },
            blobs,
            news,
            followed: JobTasks::default(),
            blocking: Blocking::new(BLOCKING_LIMIT),
            boot,
            spares,
            instances,
            strays: Strays::default(),
            may_start: MayStart(Box::new(may_start)),
        };
        match left::take_in_orphans() {
            Ok(()) => drop(inner.followed.tasks.spawn(
                inner.followed.detach.clone().run_until_cancelled_owned(left::reap_orphans()),
            )),
            // Then more is told as not known to be gone than would have to be.
            Err(error) => {
                tracing::warn!(
                    %error,
                    "failed to become the parent of orphans; what a killed wrapper leaves may go \
                     unseen"
                )
            }
        }
        Ok(Self { inner: Arc::new(inner) })
    }

    /// Starts a job, or takes up the one of this id that was started before. What comes of it is
    /// news. Once the job was forgotten it is not known any more, and would be started again:
    /// an ended job's start must not be asked for.
    pub fn start(&self, spec: JobSpec) {
        let job = spec.job;
        self.follow(job, |inner, stops| async move { inner.run(spec, stops).await });
    }

    /// Takes up the jobs that were decided and have not ended, after a restart; call it once,
    /// before any start. Jobs that run or have ended are told as news. Returned are those that
    /// are known never to have been started: they can be started now.
    pub async fn recover(&self, unfinished: &[JobId]) -> Vec<JobId> {
        let looks = {
            let (inner, jobs) = (self.inner.clone(), unfinished.to_owned());
            tokio::task::spawn_blocking(move || {
                jobs.into_iter().map(|job| (job, inner.directory(job).look())).collect::<Vec<_>>()
            })
            .await
        };
        let mut never_started = Vec::new();
        for (job, look) in looks.expect("looking at a directory does not panic") {
            let found = match look {
                Ok(SpoolContents::Nothing | SpoolContents::NeverStarted)
                    if !self.inner.boot.is_new() =>
                {
                    never_started.push(job);
                    continue;
                }
                Ok(found) => TaskPhase::Found(found),
                Err(error) => TaskPhase::unseen(error),
            };
            if self.inner.boot.is_new() {
                self.inner.boot.owes(job);
            }
            self.follow(job, |inner, stops| async move { inner.pursue(job, found, stops).await });
        }
        self.inner.boot.settle();
        never_started
    }

    /// Stops a job: the first time TERM, which the wrapper passes on and backs with KILL after its
    /// grace; the second time everything of it is killed at once. Its end is news. `false` when
    /// no such job runs.
    pub fn stop(&self, job: JobId) -> bool {
        self.inner.followed.stop(job)
    }

    /// Whether a job is followed, so that a stop of it reaches its wrapper.
    pub fn hears(&self, job: JobId) -> bool {
        self.inner.followed.has(job)
    }

    /// Forgets jobs whose ends are stored: removes what is left of them here. One that is not known
    /// is forgotten already. One whose wrapper lives, because the database does not know that
    /// it was started, keeps its directory until it is asked again.
    pub async fn forget(&self, jobs: Vec<JobId>) {
        let inner = self.inner.clone();
        let removing = move || {
            for job in jobs {
                let directory = inner.directory(job);
                match directory.may_run().and_then(|may_run| {
                    if may_run { Ok(true) } else { inner.spares.take(&directory).map(|()| false) }
                }) {
                    Ok(false) => {}
                    Ok(true) => tracing::warn!(
                        %job,
                        directory = %directory.path().display(),
                        "a job runs that is over in the database or that the database does not \
                         know, as an older copy of it would not; its directory is left alone \
                         until it ends"
                    ),
                    Err(error) => {
                        tracing::warn!(
                            %job, %error,
                            "failed to remove the spool directory; it takes up space until \
                             somebody does"
                        );
                    }
                }
                inner.boot.forgotten(job);
            }
        };
        // It does not panic; and when the runtime ends, the next start forgets what is left.
        let _ = tokio::task::spawn_blocking(removing).await;
    }

    /// The jobs that have a spool directory and are not among `unfinished`.
    pub async fn left_over(&self, unfinished: &[JobId]) -> Vec<JobId> {
        let unfinished: HashSet<JobId> = unfinished.iter().copied().collect();
        let spool = self.inner.settings.spool.clone();
        let listed = tokio::task::spawn_blocking(move || -> io::Result<Vec<JobId>> {
            let entries = std::fs::read_dir(spool)?;
            // What has another name is not ours.
            let jobs = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
            Ok(jobs.filter(|job| !unfinished.contains(job)).collect())
        });
        match listed.await {
            Ok(Ok(jobs)) => jobs,
            Ok(Err(error)) => {
                tracing::warn!(
                    %error,
                    "the spool cannot be listed; what is left over in it takes up space"
                );
                Vec::new()
            }
            Err(_) => Vec::new(),
        }
    }

    /// The jobs that have a spool directory and are not followed here.
    pub async fn idle(&self) -> Vec<JobId> {
        let mut left = self.left_over(&[]).await;
        left.retain(|job| !self.inner.followed.has(*job) && !self.inner.strays.has(*job));
        left
    }

    /// At most `limit` bytes of a stream from `offset` on, as far as the job wrote it; `None` when
    /// nothing of the job is here: it was never started, or its streams are in the blob store
    /// and it is forgotten. A stream longer than the wrapper's cap is complete only up to there
    /// while the job runs.
    ///
    /// # Errors
    /// When the disk fails.
    pub async fn tail(
        &self,
        job: JobId,
        stream: Stream,
        offset: u64,
        limit: usize,
    ) -> io::Result<Option<Tail>> {
        let directory = self.inner.directory(job);
        let running = self.inner.followed.has(job);
        let read = move || directory.read(&directory.stream(stream), offset, limit);
        let bytes = tokio::task::spawn_blocking(read).await.map_err(io::Error::other)??;
        Ok(bytes.map(|bytes| Tail { bytes, running }))
    }

    /// How many jobs have a task here.
    pub fn running(&self) -> usize {
        self.inner.followed.len()
    }

    /// Lets go of all jobs, which go on without us, and ends the tasks.
    pub async fn detach(&self) {
        self.inner.followed.end().await;
    }

    /// Runs `task` for a job that has none.
    fn follow<F: Future<Output = ()> + Send + 'static>(
        &self,
        job: JobId,
        task: impl FnOnce(Arc<LocalInner>, mpsc::Receiver<()>) -> F,
    ) {
        let inner = self.inner.clone();
        let died = async move {
            inner.followed.over(job);
            let end = End::Unknown { why: DIED.to_owned(), report: None };
            inner.followed.tell(&inner.news, RunnerEvent::Ended { job, end, gone: false }).await;
        };
        self.inner.followed.follow(job, |stops| task(self.inner.clone(), stops), died);
    }
}

impl Runner for LocalRunner {
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
        Box::pin(async move {
            // Their ends are stored, or nobody asked for them: a crash came before they were
            // forgotten.
            let left_over = self.left_over(&unfinished).await;
            Self::forget(self, self.follow_strays(left_over).await).await;
            Self::recover(self, &unfinished).await
        })
    }

    fn forget(&self, jobs: Vec<JobId>) -> BoxFuture<'_, ()> {
        Box::pin(Self::forget(self, jobs))
    }

    fn tail(&self, piece: OutputPiece) -> BoxFuture<'_, io::Result<Option<Vec<u8>>>> {
        Box::pin(async move {
            let tail = Self::tail(self, piece.job, piece.stream, piece.offset, piece.limit).await?;
            Ok(tail.map(|tail| tail.bytes))
        })
    }

    fn order(&self, job: JobId, offset: u64) -> BoxFuture<'_, io::Result<Vec<u8>>> {
        let directory = self.inner.directory(job);
        let read = move || directory.read(&directory.order(), offset, ORDER_LIMIT);
        Box::pin(async move {
            let read = tokio::task::spawn_blocking(read).await.map_err(io::Error::other)?;
            read.map(Option::unwrap_or_default)
        })
    }

    fn look(&self, look: PlaceLook) -> BoxFuture<'_, Vec<Finding>> {
        Box::pin(Self::look(self, look))
    }

    fn forget_instance(&self, instance: Instance) -> BoxFuture<'_, ()> {
        Box::pin(Self::forget_instance(self, instance))
    }

    fn retain_instances(&self, kept: HashSet<InstanceId>, known: Vec<JobId>) -> BoxFuture<'_, ()> {
        Box::pin(async move { Self::retain_instances(self, kept, &known).await })
    }
}

impl LocalInner {
    fn has_directory(&self, job: JobId) -> bool {
        self.directory(job).path().exists()
    }

    fn directory(&self, job: JobId) -> SpoolDirectory {
        SpoolDirectory::at(self.settings.spool.join(job.to_string()))
    }
}
