//! All local processes: starts jobs under the wrapper, follows them to their end, stops them, and finds them again after a
//! restart. Called by `perform` and the driver; its news go over [`News`].
//!
//! What always holds, however this daemon and the wrappers die ([`schema::spool`] says why):
//! - a job is started at most once, however often [`LocalRunner::start`] is called for it;
//! - a job goes on without us, and [`LocalRunner::recover`] takes it up again;
//! - every job that was started ends in exactly one [`Told::Ended`] in each life of the daemon until
//!   [`LocalRunner::forget`] is called, and what it left is in the blob store by then.
//!
//! Each job is a task of its own that waits for its process and for stops; what blocks on the disk runs on blocking threads.

use std::collections::HashMap;
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rustix::process::Signal;
use schema::id::JobId;
use schema::spool::Stream;
use tokio::sync::{Semaphore, mpsc};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::{End, JobSpec, News, Told};
use crate::blobs::{Blobs, read_range};

mod boot;
mod collect;
mod command;
mod directory;
mod process;

pub use process::find_wrapper;

use boot::Boot;
use directory::{Directory, Found};
use process::Wrapper;

/// Starts and collections that may block on the disk at the same time: a few more than cores, for most of the time they wait.
const BLOCKING_LIMIT: usize = 8;

/// A job that is over sooner is told only as ended: two commits less for the many that last milliseconds.
const STARTED_AFTER: Duration = Duration::from_millis(50);

/// Stops of one job that may wait to be acted upon. The second one kills; more say nothing new.
const STOPS_WAITING: usize = 4;

/// How long after the second stop a wrapper may still be there before it is killed itself. More than the time in which it
/// gives up on a child that cannot be killed (10 s).
const WRAPPER_GRACE: Duration = Duration::from_secs(15);

/// How often a claim that is just being written is looked at again, and how many times: it takes microseconds.
const CLAIMING_LOOK: Duration = Duration::from_millis(10);
const CLAIMING_LOOKS: u32 = 100;

/// Tries to bring what a job left into the blob store, and the time between two: about a minute in all, then the job is told
/// without it. A full disk must not keep a job from ending.
const COLLECT_TRIES: u32 = 8;
const COLLECT_PAUSE: Duration = Duration::from_millis(250);

/// What the runner needs to know.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Directory of the spool directories; made if missing. On the file system of the blobs, so that nothing is copied.
    pub spool: PathBuf,
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
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    settings: Settings,
    blobs: Blobs,
    news: News,
    /// The jobs that have a task, and the way to stop each.
    jobs: Mutex<HashMap<JobId, mpsc::Sender<()>>>,
    blocking: Semaphore,
    boot: Boot,
    tasks: TaskTracker,
    detach: CancellationToken,
}

/// What a start came to.
enum Launch {
    Started(tokio::process::Child),
    /// The job had a directory already.
    Found(Found),
    Refused(End),
}

/// Where a job's task stands.
enum At {
    Running(Wrapper),
    Found(Found),
    Over(End, bool),
    Detached,
}

impl LocalRunner {
    /// A runner that tells its news to `news`.
    ///
    /// # Errors
    /// When the spool directory cannot be made.
    pub fn open(settings: Settings, blobs: Blobs, news: News) -> io::Result<Self> {
        std::fs::DirBuilder::new().recursive(true).create(&settings.spool)?;
        let spool = std::path::absolute(&settings.spool)?;
        let boot = Boot::open(&spool)?;
        let inner = Inner {
            settings: Settings { spool, ..settings },
            blobs,
            news,
            jobs: Mutex::default(),
            blocking: Semaphore::new(BLOCKING_LIMIT),
            boot,
            tasks: TaskTracker::new(),
            detach: CancellationToken::new(),
        };
        Ok(Self { inner: Arc::new(inner) })
    }

    /// Starts a job, or takes up the one of this id that was started before. What comes of it is news. Once the job was
    /// forgotten it is not known any more, and would be started again: an ended job's start must not be asked for.
    pub fn start(&self, spec: JobSpec) {
        let job = spec.job;
        self.follow(job, |inner, stops| async move { inner.run(spec, stops).await });
    }

    /// Takes up the jobs that were decided and have not ended, after a restart; call it once, before any start. Jobs that run
    /// or have ended are told as news. Returned are those that are known never to have been started: they can be started now.
    pub async fn recover(&self, unfinished: &[JobId]) -> Vec<JobId> {
        let looks = {
            let (inner, jobs) = (self.inner.clone(), unfinished.to_owned());
            tokio::task::spawn_blocking(move || jobs.into_iter().map(|job| (job, inner.directory(job).look())).collect::<Vec<_>>()).await
        };
        let mut never_started = Vec::new();
        for (job, look) in looks.expect("looking at a directory does not panic") {
            let found = match look {
                Ok(Found::Nothing | Found::NeverStarted) if !self.inner.boot.is_new() => {
                    never_started.push(job);
                    continue;
                }
                Ok(found) => At::Found(found),
                Err(error) => At::Over(unknown(format!("its spool directory cannot be read: {error}")), false),
            };
            if self.inner.boot.is_new() {
                self.inner.boot.owes(job);
            }
            self.follow(job, |inner, stops| async move { inner.pursue(job, found, stops).await });
        }
        self.inner.boot.settle();
        never_started
    }

    /// Stops a job: the first time TERM, which the wrapper passes on and backs with KILL after its grace; the second time
    /// everything of it is killed at once. Its end is news. `false` when no such job runs.
    pub fn stop(&self, job: JobId) -> bool {
        let jobs = self.inner.jobs.lock().expect("nobody panics with the lock");
        match jobs.get(&job) {
            // Full means that several stops wait already, which is as much as there is to say.
            Some(stops) => matches!(stops.try_send(()), Ok(()) | Err(mpsc::error::TrySendError::Full(()))),
            None => false,
        }
    }

    /// Forgets a job whose end is stored: removes what is left of it here. One that is not known is forgotten already.
    pub async fn forget(&self, job: JobId) {
        let inner = self.inner.clone();
        let removed = tokio::task::spawn_blocking(move || {
            let removed = inner.directory(job).remove();
            inner.boot.forgotten(job);
            removed
        });
        if let Ok(Err(error)) = removed.await {
            tracing::warn!(%job, %error, "failed to remove the spool directory; it takes up space until somebody does");
        }
    }

    /// The jobs that have a spool directory and are not among `unfinished`.
    pub async fn left_over(&self, unfinished: &[JobId]) -> Vec<JobId> {
        let unfinished: std::collections::HashSet<JobId> = unfinished.iter().copied().collect();
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
                tracing::warn!(%error, "the spool cannot be listed; what is left over in it takes up space");
                Vec::new()
            }
            Err(_) => Vec::new(),
        }
    }

    /// At most `limit` bytes of a stream from `offset` on, as far as the job wrote it; `None` when nothing of the job is
    /// here: it was never started, or its streams are in the blob store and it is forgotten. A stream longer than the
    /// wrapper's cap is complete only up to there while the job runs.
    ///
    /// # Errors
    /// When the disk fails.
    pub async fn tail(&self, job: JobId, stream: Stream, offset: u64, limit: usize) -> io::Result<Option<Tail>> {
        let directory = self.inner.directory(job);
        let running = self.inner.jobs.lock().expect("nobody panics with the lock").contains_key(&job);
        let read = move || match std::fs::File::open(directory.stream(stream)) {
            Ok(file) => read_range(&file, offset, limit).map(Some),
            Err(error) if error.kind() == io::ErrorKind::NotFound && directory.path().exists() => Ok(Some(Vec::new())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        };
        let bytes = tokio::task::spawn_blocking(read).await.map_err(io::Error::other)??;
        Ok(bytes.map(|bytes| Tail { bytes, running }))
    }

    /// How many jobs have a task here.
    pub fn running(&self) -> usize {
        self.inner.jobs.lock().expect("nobody panics with the lock").len()
    }

    /// Lets go of all jobs, which go on without us, and ends the tasks.
    pub async fn detach(&self) {
        self.inner.detach.cancel();
        self.inner.tasks.close();
        self.inner.tasks.wait().await;
    }

    /// Runs `task` for a job that has none.
    fn follow<F: Future<Output = ()> + Send + 'static>(&self, job: JobId, task: impl FnOnce(Arc<Inner>, mpsc::Receiver<()>) -> F) {
        let (stop, stops) = mpsc::channel(STOPS_WAITING);
        match self.inner.jobs.lock().expect("nobody panics with the lock").entry(job) {
            std::collections::hash_map::Entry::Occupied(_) => return,
            std::collections::hash_map::Entry::Vacant(vacant) => vacant.insert(stop),
        };
        self.inner.tasks.spawn(task(self.inner.clone(), stops));
    }
}

impl Inner {
    fn directory(&self, job: JobId) -> Directory {
        Directory::at(self.settings.spool.join(job.to_string()))
    }

    /// The task of a job that is started here.
    async fn run(self: Arc<Self>, spec: JobSpec, mut stops: mpsc::Receiver<()>) {
        let job = spec.job;
        let inner = self.clone();
        let launched =
            self.blocking(move || if stops.try_recv().is_ok() { (Ok(None), stops) } else { (inner.launch(&spec).map(Some), stops) });
        let (launched, stops) = launched.await;
        let at = match launched {
            Ok(Some(Launch::Started(child))) => At::Running(Wrapper::Started(child)),
            Ok(Some(Launch::Found(found))) => At::Found(found),
            Ok(Some(Launch::Refused(end))) => At::Over(end, true),
            Ok(None) => At::Over(End::NotStarted { why: "it was stopped before it was started".to_owned(), surroundings: false }, true),
            Err(error) => At::Over(
                End::NotStarted {
                    why: format!("its directory in {} cannot be made: {error}", self.settings.spool.display()),
                    surroundings: true,
                },
                true,
            ),
        };
        self.pursue(job, at, stops).await;
    }

    /// Follows a job to its end and tells it.
    async fn pursue(self: Arc<Self>, job: JobId, mut at: At, mut stops: mpsc::Receiver<()>) {
        let mut looks = 0;
        let ended = loop {
            at = match at {
                At::Running(wrapper) => self.wait(job, wrapper, &mut stops).await,
                At::Found(Found::Claiming) if looks < CLAIMING_LOOKS => {
                    looks += 1;
                    tokio::time::sleep(CLAIMING_LOOK).await;
                    self.look(job).await
                }
                At::Found(found) => self.found(job, found).await,
                At::Over(end, gone) => break Some((end, gone)),
                At::Detached => break None,
            };
        };
        // First, so that whoever hears of the end and asks for a start again is answered.
        self.jobs.lock().expect("nobody panics with the lock").remove(&job);
        if let Some((end, gone)) = ended {
            tokio::select! {
                // Nobody listens any more when the daemon stops; the next one is told.
                _ = self.news.send(Told::Ended { job, end, gone }) => {}
                () = self.detach.cancelled() => {}
            }
        }
    }

    /// Waits for the wrapper's end, and passes stops on to it.
    async fn wait(self: &Arc<Self>, job: JobId, mut wrapper: Wrapper, stops: &mut mpsc::Receiver<()>) -> At {
        let mut asked = 0;
        let mut kill_at: Option<Instant> = None;
        let mut tell = Some(Instant::now() + if matches!(wrapper, Wrapper::Started(_)) { STARTED_AFTER } else { Duration::ZERO });
        loop {
            let due = [kill_at, tell].into_iter().flatten().min();
            tokio::select! {
                biased;
                ended = wrapper.ended() => return match ended {
                    Ok(()) => self.look(job).await,
                    Err(error) => At::Over(unknown(format!("its wrapper cannot be waited for: {error}")), false),
                },
                Some(()) = stops.recv() => {
                    asked += 1;
                    // Two of the same that arrive together count as one; the wrapper takes either for a stop.
                    wrapper.signal(if asked % 2 == 1 { Signal::TERM } else { Signal::INT });
                    if asked > 1 {
                        kill_at = kill_at.or(Some(Instant::now() + WRAPPER_GRACE));
                    }
                }
                () = sleep_until(due), if due.is_some() => {
                    if kill_at.is_some_and(|at| Instant::now() >= at) {
                        kill_at = None;
                        wrapper.signal(Signal::KILL);
                    } else {
                        tell = if self.tell_started(job).await { None } else { Some(Instant::now() + STARTED_AFTER) };
                    }
                }
                () = self.detach.cancelled() => return At::Detached,
            }
        }
    }

    /// Tells that the job runs, when its wrapper has claimed it.
    async fn tell_started(&self, job: JobId) -> bool {
        let directory = self.directory(job);
        match self.blocking(move || directory.claimed_at()).await {
            Some(at) => {
                tokio::select! {
                    _ = self.news.send(Told::Started { job, at }) => {}
                    () = self.detach.cancelled() => {}
                }
                true
            }
            None => false,
        }
    }

    async fn look(&self, job: JobId) -> At {
        let directory = self.directory(job);
        match self.blocking(move || directory.look()).await {
            Ok(found) => At::Found(found),
            Err(error) => At::Over(unknown(format!("its spool directory cannot be read: {error}")), false),
        }
    }

    /// What a directory says, taken further.
    async fn found(&self, job: JobId, found: Found) -> At {
        match found {
            Found::Reported(report) => {
                let (end, gone) = super::learned::Learned::delivered(self.collect(job, report).await).end(String::new);
                At::Over(end, gone)
            }
            Found::Running { pid } => {
                let directory = self.directory(job);
                let adopted = Wrapper::adopt(pid).and_then(|wrapper| Ok((wrapper, directory.is_locked()?)));
                match adopted {
                    // Locked after we took hold of the process: the pid was still the wrapper's.
                    Ok((Some(wrapper), true)) => At::Running(wrapper),
                    Ok(_) => self.look(job).await,
                    Err(error) => {
                        At::Over(unknown(format!("its wrapper (pid {}) cannot be followed: {error}", pid.as_raw_nonzero())), false)
                    }
                }
            }
            Found::NeverStarted | Found::Nothing if self.boot.is_owed(job) => {
                At::Over(unknown("the machine was started again before its end was known".to_owned()), true)
            }
            Found::NeverStarted | Found::Nothing => {
                At::Over(End::NotStarted { why: "its wrapper ended before it started the command".to_owned(), surroundings: true }, true)
            }
            Found::Claiming | Found::Lost => self.lost(job).await,
        }
    }

    /// A wrapper that is gone without a report: ends what it left, and keeps what it wrote.
    async fn lost(&self, job: JobId) -> At {
        let (count, gone) = match process::end_strays(job).await {
            Ok(ended) => ended,
            Err(error) => {
                tracing::error!(%job, %error, "failed to look for left-over processes");
                (0, false)
            }
        };
        let (directory, blobs) = (self.directory(job), self.blobs.clone());
        let report = self.blocking(move || collect::collect_without_report(&directory, &blobs)).await.unwrap_or_else(|error| {
            tracing::warn!(%job, %error, "failed to keep the output of a job whose wrapper is gone");
            None
        });
        let left = match (count, gone) {
            (0, true) => String::new(),
            (1, true) => "; the process that it left was stopped".to_owned(),
            (_, true) => format!("; the {count} processes that it left were stopped"),
            (_, false) => "; some of its processes are still there".to_owned(),
        };
        At::Over(End::Unknown { why: format!("its wrapper was killed before it could report{left}"), report }, gone)
    }

    async fn collect(&self, job: JobId, report: Box<schema::report::Report>) -> Box<schema::report::Report> {
        let mut pause = COLLECT_PAUSE;
        for _ in 0..COLLECT_TRIES {
            let (directory, blobs, copy) = (self.directory(job), self.blobs.clone(), report.clone());
            match self.blocking(move || collect::collect(copy, &directory, &blobs)).await {
                Ok(report) => return report,
                Err(error) => tracing::warn!(%job, %error, "failed to store the output of a job; trying again"),
            }
            tokio::select! {
                () = tokio::time::sleep(pause) => pause *= 2,
                () = self.detach.cancelled() => break,
            }
        }
        tracing::error!(%job, "failed to store the output of a job; its end is told without it");
        let mut report = report;
        (report.stdout_inline, report.stderr_inline) = (None, None);
        report
    }

    /// Runs something that blocks on the disk, not too many at once.
    async fn blocking<T: Send + 'static>(&self, run: impl FnOnce() -> T + Send + 'static) -> T {
        let _permit = self.blocking.acquire().await.expect("never closed");
        tokio::task::spawn_blocking(run).await.expect("it does not panic, and the runtime is not shut down before its tasks")
    }

    /// Makes the job's directory and starts its wrapper. Blocks.
    fn launch(&self, spec: &JobSpec) -> io::Result<Launch> {
        let directory = self.directory(spec.job);
        let current = match command::working_directory(spec, &self.settings.started_in) {
            Ok(current) => current,
            Err(why) => return Ok(Launch::Refused(End::NotStarted { why, surroundings: false })),
        };
        while !directory.make()? {
            match directory.look()? {
                // Nobody can start it any more in that directory, so it makes room for another.
                Found::NeverStarted => directory.remove()?,
                Found::Nothing => {}
                found => return Ok(Launch::Found(found)),
            }
        }
        let inputs = spec.inputs.iter().flat_map(|(reference, blob)| [(reference.clone(), *blob), (blob.to_string(), *blob)]);
        directory
            .put_inputs(inputs.filter(|(_, blob)| self.blobs.has(*blob)).map(|(reference, blob)| (reference, self.blobs.path(blob))))?;
        let wrapper: &Path = &self.settings.wrapper;
        let mut process = tokio::process::Command::new(wrapper);
        process
            .args(command::arguments(spec, directory.path()))
            .env_clear()
            .envs(command::environment(spec, directory.path(), wrapper, &self.settings.environment))
            .current_dir(current)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        match process.spawn() {
            Ok(child) => Ok(Launch::Started(child)),
            Err(error) => {
                directory.remove()?;
                let why = format!("its wrapper {} cannot be started: {error}", wrapper.display());
                Ok(Launch::Refused(End::NotStarted { why, surroundings: true }))
            }
        }
    }
}

fn unknown(why: String) -> End {
    End::Unknown { why, report: None }
}

async fn sleep_until(at: Option<Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at).await,
        None => std::future::pending().await,
    }
}
