//! Jobs that run on a cluster and that the database does not know: somebody put an older copy of it
//! in place, or it is a restored one. They are left alone, and no apply is made beside one of the
//! same instance, nor beside the Job of an earlier apply that is told as over and is not over in
//! the cluster (promise P1). Called by the runner and by the beginning of a job.

use std::collections::HashSet;
use std::sync::Mutex;
use std::time::Duration;

use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;
use kube::api::ListParams;
use kube::{Api, ResourceExt};
use schema::id::JobId;
use schema::time::Timestamp;
use tokio::time::Instant;

use super::begin::{START_WITHIN, its_job};
use super::blockers::StartBlocker;
use super::follow::{AWAY_WITHIN, JobFollower};
use super::job::JOB_LABEL;
use super::leave::May;
use super::let_go::is_suspended;
use super::record::Record;
use super::sight::counts::makes_no_more;
use super::sight::{by_another_clock, is_pod_over};
use super::unstarted::{later, told};
use super::{ClusterInner, ClusterRunner, FORGET_AGAIN, sight};
use crate::runner::evidence::Never;

/// What is said of one of which nothing is recorded here.
const UNKNOWN: &str = "an apply of this instance runs already that nobody here follows (its end \
                       was told as unknown, the database does not know it, or another scheduler \
                       runs it in the same namespace)";

/// What is said of one that came up beside it.
const AT_ONCE: &str = "another scheduler makes an apply of this instance in the same namespace at \
                       the same moment, and this one gives way";

/// Time between two looks at the Job of an earlier apply. The Job controller needs about a second
/// to see that its Pod has ended.
const LOOK_AGAIN: Duration = Duration::from_millis(500);

/// What a Job of an instance is to an apply of it that is to be made.
#[derive(Clone, Copy, PartialEq)]
enum Other {
    /// It is over, does not run, or is its own.
    Nothing,
    /// An earlier apply's: its end is told, and in the cluster it is not over.
    Earlier,
    /// It runs, and nothing is known of it here.
    Strange,
}

/// Those of which something is recorded here.
#[derive(Debug, Default)]
pub(super) struct Strangers(Mutex<HashSet<JobId>>);

impl Strangers {
    pub(super) fn has(&self, job: JobId) -> bool {
        self.0.lock().expect("nobody panics with the lock").contains(&job)
    }

    /// It is known from now on. Returns whether it was not before.
    pub(super) fn meet(&self, job: JobId) -> bool {
        self.0.lock().expect("nobody panics with the lock").remove(&job)
    }
}

impl ClusterRunner {
    /// Jobs of which something is recorded here.
    pub fn recorded(&self) -> Vec<JobId> {
        self.inner.records.jobs()
    }

    /// These jobs the database does not know: they are let alone. Called before [`Self::recover`].
    pub fn spare(&self, unknown: Vec<JobId>) {
        for job in &unknown {
            tracing::warn!(
                %job,
                "a job that the database does not know was started on a cluster; it is left alone \
                 until it is over"
            );
        }
        self.inner.strangers.0.lock().expect("nobody panics with the lock").extend(unknown);
    }

    /// Forgets a stranger when it is over, unless it is met before.
    pub(super) fn let_be(&self, job: JobId, record: Record) {
        let inner = self.inner.clone();
        let detached = inner.followed.detach.clone();
        self.inner.followed.tasks.spawn(detached.run_until_cancelled_owned(async move {
            while inner.strangers.has(job) && !inner.is_over(&record).await {
                tokio::time::sleep(FORGET_AGAIN).await;
            }
            if inner.strangers.meet(job) {
                inner.remove(job);
            }
        }));
    }
}

impl ClusterInner {
    async fn is_over(&self, record: &Record) -> bool {
        let Ok(cluster) = self.clusters.get(&record.place).await else { return false };
        let jobs = Api::namespaced(cluster.client.clone(), &record.place.namespace);
        let found = its_job(&cluster, &jobs, record, Instant::now() + AWAY_WITHIN).await;
        found.is_ok_and(|found| found.is_none_or(|found| sight::is_over(&found)))
    }

    /// The jobs that are known here. Looked up before the cluster is asked: one that is forgotten
    /// since was over by then, whatever an older answer says, and is no stranger.
    fn known(&self) -> HashSet<JobId> {
        self.records.jobs().into_iter().filter(|job| !self.strangers.has(*job)).collect()
    }
}

/// An apply that is to be made, for what is found beside it.
struct Newcomer {
    own: JobId,
    tried_before: bool,
    known: HashSet<JobId>,
}

impl Newcomer {
    /// What a Job is to it.
    fn meets(&self, found: &Job) -> Other {
        if is_suspended(found) || sight::is_over(found) {
            Other::Nothing
        } else {
            self.meets_by_label(found)
        }
    }

    /// What a Pod is to it, whatever became of its Job: that may be deleted, and its Pod run on.
    fn meets_pod(&self, found: &Pod) -> Other {
        if is_pod_over(found) { Other::Nothing } else { self.meets_by_label(found) }
    }

    /// What runs is to it, by the job that its label names.
    fn meets_by_label(&self, found: &impl ResourceExt) -> Other {
        match found.labels().get(JOB_LABEL).and_then(|id| id.parse::<JobId>().ok()) {
            Some(id) if id == self.own && self.tried_before => Other::Nothing,
            Some(id) if id != self.own && self.known.contains(&id) => Other::Earlier,
            _ => Other::Strange,
        }
    }
}

impl JobFollower {
    /// Lets an apply be made only where no other one of its instance runs that the database does
    /// not know, and waits for what is left of an earlier one.
    ///
    /// # Errors
    /// Which one runs; it is tried again.
    pub(super) async fn is_alone(
        &self,
        tried_before: bool,
        deadline: Instant,
    ) -> Result<(), Never> {
        loop {
            let newcomer = self.newcomer(tried_before);
            let there = self.applies_there(deadline).await?;
            let which = |other| {
                there.which(other, |job| newcomer.meets(job), |pod| newcomer.meets_pod(pod))
            };
            if let Some(other) = which(Other::Strange).next() {
                return Err(later(self.waited_for(UNKNOWN, other)));
            }
            let now = by_another_clock(self.inner.clock.now());
            let Some(other) = which(Other::Earlier).find(|other| !there.has_ended(*other, now))
            else {
                return Ok(());
            };
            let why = self
                .waited_for("an earlier apply of this instance is not over in the cluster", other);
            if Instant::now() + LOOK_AGAIN >= deadline {
                return Err(later(why));
            }
            self.teller.tell(Some(&StartBlocker::refused(&why)));
            tokio::time::sleep(LOOK_AGAIN).await;
        }
    }

    /// Lets an apply begin only where nobody made another one of its instance since it was looked:
    /// two schedulers that looked before either had made its Job both find the other's now. Each
    /// gives way, as neither knows whether the other has looked already; by the next try one of
    /// them is first.
    ///
    /// # Errors
    /// Which one is there; it is tried again.
    pub(super) async fn is_first(&self, deadline: Instant) -> Result<(), Never> {
        if !self.record.is_apply || self.record.applies.is_empty() {
            return Ok(());
        }
        let newcomer = self.newcomer(false);
        let (jobs, params) = (self.jobs(), ListParams::default().labels(&self.record.applies));
        let what = "looking for other applies of its instance";
        let found = self.ask_until(deadline, May::Always, what, || jobs.list(&params)).await;
        let found = found.map_err(|(refused, _)| told(refused))?.items;
        let made_at = |job: &Job| job.metadata.creation_timestamp.as_ref().map(sight::time);
        let own_at = found.iter().find(|job| job.uid() == self.record.uid).and_then(made_at);
        // Whoever made a suspended one so long ago does not let it go any more.
        let is_old = |job: &Job| {
            let age = own_at.zip(made_at(job)).map(|(own, other)| own.since(other));
            is_suspended(job) && age.is_some_and(|age| age > START_WITHIN)
        };
        let is_other = |job: &&Job| {
            job.uid() != self.record.uid
                && !sight::is_over(job)
                && !is_old(job)
                && newcomer.meets_by_label(*job) == Other::Strange
        };
        match found.iter().find(is_other) {
            None => Ok(()),
            Some(other) => Err(later(self.waited_for(AT_ONCE, OtherApply::Job(other)))),
        }
    }

    /// Itself, with what is known at this moment.
    fn newcomer(&self, tried_before: bool) -> Newcomer {
        Newcomer { own: self.job, tried_before, known: self.inner.known() }
    }

    /// The Jobs first: what one of them had made by then is among the Pods, also when it is gone
    /// since.
    async fn applies_there(&self, deadline: Instant) -> Result<AppliesThere, Never> {
        let (jobs, pods, params) =
            (self.jobs(), self.pods(), ListParams::default().labels(&self.record.applies));
        let what = "looking for other applies of its instance";
        let jobs = self
            .ask_until(deadline, May::Always, what, || jobs.list(&params))
            .await
            .map_err(|(refused, _)| told(refused))?;
        let pods = self
            .ask_until(deadline, May::Always, what, || pods.list(&params))
            .await
            .map_err(|(refused, _)| told(refused))?;
        Ok(AppliesThere { jobs: jobs.items, pods: pods.items })
    }

    /// What is said while an apply is not made beside another one.
    fn waited_for(&self, what: &str, other: OtherApply<'_>) -> String {
        let namespace = &self.record.place.namespace;
        match other {
            OtherApply::Job(job) => {
                let name = job.name_any();
                format!(
                    "{what}: the Job {name} in the namespace {namespace}. It is waited for; who \
                     does not want that deletes it and what runs of it with `kubectl delete job \
                     {name} -n {namespace} --cascade=foreground`"
                )
            }
            OtherApply::Pod(pod) => {
                let name = pod.name_any();
                format!(
                    "{what}: the Pod {name} in the namespace {namespace}, which no Job that runs \
                     has. It is waited for; who does not want that ends it with `kubectl delete \
                     pod {name} -n {namespace}`"
                )
            }
        }
    }
}

/// What the cluster has of the applies of an instance.
struct AppliesThere {
    jobs: Vec<Job>,
    pods: Vec<Pod>,
}

/// One of those.
#[derive(Clone, Copy)]
enum OtherApply<'a> {
    Job(&'a Job),
    Pod(&'a Pod),
}

impl AppliesThere {
    /// Those that are this to the apply that is to be made, Jobs first.
    fn which(
        &self,
        wanted: Other,
        job: impl Fn(&Job) -> Other,
        pod: impl Fn(&Pod) -> Other,
    ) -> impl Iterator<Item = OtherApply<'_>> {
        let jobs = self.jobs.iter().filter(move |found| job(found) == wanted).map(OtherApply::Job);
        jobs.chain(self.pods.iter().filter(move |found| pod(found) == wanted).map(OtherApply::Pod))
    }

    /// Whether nothing runs of an earlier one: a Job that its controller has not called over makes
    /// no other Pod, and none of its Pods runs.
    fn has_ended(&self, other: OtherApply<'_>, now: Timestamp) -> bool {
        let OtherApply::Job(job) = other else { return false };
        let is_its = |pod: &&Pod| pod.labels().get(JOB_LABEL) == job.labels().get(JOB_LABEL);
        makes_no_more(job, now) && self.pods.iter().filter(is_its).all(is_pod_over)
    }
}
