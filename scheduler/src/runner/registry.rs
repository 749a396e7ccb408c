//! The runners by target: where a job runs stands in its row, and says which runner has it. Made by
//! `daemon`, called by `perform` and the driver.

use std::collections::HashSet;
use std::io;
use std::sync::Arc;

use futures::future::join_all;
use schema::api::Finding;
use schema::id::{InstanceId, JobId};
use schema::target::{JobTarget, PlacedJob};

use super::{Instance, JobSpec, OutputPiece, PlaceLook, Runner};

/// One runner for each kind of target. Cloned freely.
#[derive(Debug, Clone)]
pub struct Runners {
    local: Arc<dyn Runner>,
    cluster: Arc<dyn Runner>,
}

impl Runners {
    /// These two.
    pub fn new(local: Arc<dyn Runner>, cluster: Arc<dyn Runner>) -> Self {
        Self { local, cluster }
    }

    /// The one that has the jobs of this target; nobody has those that run nowhere.
    fn of(&self, target: &JobTarget) -> Option<&Arc<dyn Runner>> {
        match target {
            JobTarget::Local => Some(&self.local),
            JobTarget::Cluster(_) => Some(&self.cluster),
            JobTarget::Fake => None,
        }
    }

    fn all(&self) -> [&Arc<dyn Runner>; 2] {
        [&self.cluster, &self.local]
    }

    fn who_may_have(&self, placed: &PlacedJob) -> Vec<&Arc<dyn Runner>> {
        match &placed.target {
            Some(target) => self.of(target).into_iter().collect(),
            None => self.all().to_vec(),
        }
    }

    /// Starts a job where its commands say. See [`Runner::start`].
    pub fn start(&self, spec: JobSpec) {
        if spec.cluster.is_some() { self.cluster.start(spec) } else { self.local.start(spec) }
    }

    /// Stops a job. See [`Runner::stop`].
    pub fn stop(&self, placed: &PlacedJob) -> bool {
        self.who_may_have(placed).into_iter().any(|runner| runner.stop(placed.job))
    }

    /// Whether a stop of this job reaches anybody.
    pub fn hears(&self, placed: &PlacedJob) -> bool {
        self.who_may_have(placed).into_iter().any(|runner| runner.hears(placed.job))
    }

    /// Takes up jobs after a restart; returned are those that never started. See
    /// [`Runner::recover`].
    pub async fn recover(&self, unfinished: Vec<PlacedJob>) -> Vec<JobId> {
        let recorded: HashSet<JobId> = self.cluster.recorded().into_iter().collect();
        let is_there = |placed: &PlacedJob| match &placed.target {
            Some(JobTarget::Cluster(_)) => true,
            // One that runs nowhere has left nothing here, so it never started.
            Some(JobTarget::Local | JobTarget::Fake) => false,
            None => recorded.contains(&placed.job),
        };
        let (there, here): (Vec<_>, Vec<_>) = unfinished.into_iter().partition(is_there);
        let jobs = |placed: Vec<PlacedJob>| placed.into_iter().map(|placed| placed.job).collect();
        let mut never_started = self.cluster.recover(jobs(there)).await;
        never_started.extend(self.local.recover(jobs(here)).await);
        never_started
    }

    /// See [`Runner::recorded`].
    pub fn recorded(&self) -> Vec<JobId> {
        self.all().into_iter().flat_map(|runner| runner.recorded()).collect()
    }

    /// See [`Runner::spare`].
    pub fn spare(&self, unknown: &[JobId]) {
        self.all().into_iter().for_each(|runner| runner.spare(unknown.to_vec()));
    }

    /// See [`Runner::forget`].
    pub async fn forget(&self, jobs: &[PlacedJob]) {
        let of = |runner: &Arc<dyn Runner>| {
            let is_its = |placed: &&PlacedJob| {
                self.who_may_have(placed).into_iter().any(|other| Arc::ptr_eq(other, runner))
            };
            jobs.iter().filter(is_its).map(|placed| placed.job).collect::<Vec<_>>()
        };
        for runner in self.all() {
            let its = of(runner);
            if !its.is_empty() {
                runner.forget(its).await;
            }
        }
    }

    /// See [`Runner::forget_instance`].
    pub async fn forget_instance(&self, instance: &Instance) {
        join_all(self.all().map(|runner| runner.forget_instance(instance.clone()))).await;
    }

    /// See [`Runner::retain_instances`].
    pub async fn retain_instances(&self, kept: &HashSet<InstanceId>, known: &[JobId]) {
        join_all(self.all().map(|runner| runner.retain_instances(kept.clone(), known.to_vec())))
            .await;
    }

    /// What commands need on this machine. See [`Runner::look`].
    pub async fn look(&self, look: PlaceLook) -> Vec<Finding> {
        self.local.look(look).await
    }

    /// What a job that runs has printed so far. See [`Runner::tail`].
    ///
    /// # Errors
    /// When the disk fails.
    pub async fn tail(&self, target: Option<JobTarget>, piece: OutputPiece) -> io::Result<Vec<u8>> {
        for runner in self.who_may_have(&PlacedJob { job: piece.job, target }) {
            if let Some(bytes) = runner.tail(piece).await? {
                return Ok(bytes);
            }
        }
        Ok(Vec::new())
    }

    /// In which order a job that runs has printed. See [`Runner::order`].
    ///
    /// # Errors
    /// When the disk fails.
    pub async fn order(&self, placed: &PlacedJob, offset: u64) -> io::Result<Vec<u8>> {
        for runner in self.who_may_have(placed) {
            let bytes = runner.order(placed.job, offset).await?;
            if !bytes.is_empty() {
                return Ok(bytes);
            }
        }
        Ok(Vec::new())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use futures::FutureExt as _;
    use futures::future::BoxFuture;

    use super::*;

    /// Notes what it is asked, and has the recorded jobs.
    #[derive(Debug, Default)]
    struct Noting {
        recorded: Vec<JobId>,
        asked: Mutex<Vec<(&'static str, JobId)>>,
    }

    impl Noting {
        fn note(&self, what: &'static str, jobs: &[JobId]) {
            self.asked.lock().unwrap().extend(jobs.iter().map(|job| (what, *job)));
        }

        fn taken(&self) -> Vec<(&'static str, JobId)> {
            std::mem::take(&mut *self.asked.lock().unwrap())
        }
    }

    impl Runner for Noting {
        fn start(&self, spec: JobSpec) {
            self.note("start", &[spec.job]);
        }

        fn stop(&self, job: JobId) -> bool {
            self.note("stop", &[job]);
            false
        }

        fn hears(&self, job: JobId) -> bool {
            self.note("hears", &[job]);
            false
        }

        fn recover(&self, unfinished: Vec<JobId>) -> BoxFuture<'_, Vec<JobId>> {
            self.note("recover", &unfinished);
            std::future::ready(unfinished).boxed()
        }

        fn forget(&self, jobs: Vec<JobId>) -> BoxFuture<'_, ()> {
            self.note("forget", &jobs);
            std::future::ready(()).boxed()
        }

        fn tail(&self, piece: OutputPiece) -> BoxFuture<'_, io::Result<Option<Vec<u8>>>> {
            self.note("tail", &[piece.job]);
            std::future::ready(Ok(None)).boxed()
        }

        fn recorded(&self) -> Vec<JobId> {
            self.recorded.clone()
        }
    }

    fn placed(number: u8, target: Option<&str>) -> PlacedJob {
        PlacedJob {
            job: JobId::from_bytes([number; 16]),
            target: target.map(|text| text.parse().unwrap()),
        }
    }

    /// What is asked of local and cluster, where the cluster has recorded these.
    async fn check(
        recorded: &[u8],
        jobs: &[PlacedJob],
        local: &[(&'static str, u8)],
        cluster: &[(&'static str, u8)],
    ) {
        let job = |number: &u8| JobId::from_bytes([*number; 16]);
        let here = Arc::new(Noting::default());
        let there =
            Arc::new(Noting { recorded: recorded.iter().map(job).collect(), ..Noting::default() });
        let runners = Runners::new(here.clone(), there.clone());
        let never_started = runners.recover(jobs.to_vec()).await;
        assert_eq!(never_started.len(), jobs.len(), "each is asked of once");
        for placed in jobs {
            assert!(!runners.stop(placed) && !runners.hears(placed));
            let piece = OutputPiece {
                job: placed.job,
                stream: schema::spool::Stream::Stdout,
                offset: 0,
                limit: 1,
            };
            assert_eq!(runners.tail(placed.target.clone(), piece).await.unwrap(), b"");
        }
        runners.forget(jobs).await;
        let expected = |asked: &[(&'static str, u8)]| {
            asked.iter().map(|(what, number)| (*what, job(number))).collect::<Vec<_>>()
        };
        assert_eq!((here.taken(), there.taken()), (expected(local), expected(cluster)));
    }

    const ALL: [&str; 5] = ["recover", "stop", "hears", "tail", "forget"];

    #[tokio::test]
    async fn a_job_is_asked_of_the_runner_of_its_target_alone() {
        let one = ALL.map(|what| (what, 1));
        check(&[1], &[placed(1, Some("local"))], &one, &[]).await;
        check(&[], &[placed(1, Some("cluster/k8s"))], &[], &one).await;
    }

    #[tokio::test]
    async fn of_one_without_a_target_everybody_is_asked_but_only_who_recorded_it_takes_it_up() {
        let (taken_up, others) = (ALL.map(|what| (what, 1)), &ALL.map(|what| (what, 1))[1..]);
        check(&[1], &[placed(1, None)], others, &taken_up).await;
        check(&[], &[placed(1, None)], &taken_up, others).await;
    }

    #[tokio::test]
    async fn one_that_runs_nowhere_never_started_and_nobody_else_is_asked() {
        check(&[], &[placed(1, Some("fake"))], &[("recover", 1)], &[]).await;
    }
}
