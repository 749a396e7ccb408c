//! A runner that runs nothing: a function of the test says how each job ends.

use super::*;

/// What a job does: given its spec, its exit code, or `None` to run until it is stopped.
pub(super) type Play = Arc<dyn Fn(&JobSpec) -> Option<i32> + Send + Sync>;

/// A runner without processes.
#[derive(Clone)]
pub(crate) struct Scripted {
    pub(super) play: Play,
    pub(super) news: mpsc::Sender<RunnerEvent>,
    pub(crate) seen: Arc<Mutex<Vec<JobSpec>>>,
    pub(super) running: Arc<Mutex<BTreeMap<JobId, ()>>>,
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

pub(super) fn report(exit_code: Option<i32>, signal: Option<&str>) -> End {
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
    pub(super) fn tell(&self, told: RunnerEvent) {
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
