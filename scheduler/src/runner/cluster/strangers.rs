//! Jobs that run on a cluster and that the database does not know: somebody put an older copy of it in place, or it is a restored
//! one. They are left alone, and no apply is made beside one of the same instance, nor beside the Job of an earlier apply that is told
//! as over and is not over in the cluster (promise P1). Called by the runner and by the beginning of a job.

use std::collections::HashSet;
use std::sync::Mutex;
use std::time::Duration;

use k8s_openapi::api::batch::v1::Job;
use kube::api::ListParams;
use kube::{Api, ResourceExt};
use schema::id::JobId;
use tokio::time::Instant;

use super::begin::its_job;
use super::blockers::StartBlocker;
use super::follow::{AWAY_WITHIN, JobFollower};
use super::job::{self, JOB_LABEL};
use super::leave::May;
use super::record::Record;
use super::sight::counts::makes_no_more;
use super::sight::{by_another_clock, is_pod_over};
use super::{ClusterInner, ClusterRunner, FORGET_AGAIN, later, sight, told};
use crate::runner::ClusterJob;
use crate::runner::evidence::Never;

/// What is said of one of which nothing is recorded here.
const UNKNOWN: &str = "an apply of this instance runs already that nobody here follows (its end was told as unknown, or the database does \
                       not know it)";

/// Time between two looks at the Job of an earlier apply. The Job controller needs about a second to see that its Pod has ended.
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
            tracing::warn!(%job, "a job that the database does not know was started on a cluster; it is left alone until it is over");
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

    /// What a Job is to an apply that is to be made beside it.
    fn is_to(&self, found: &Job, own: JobId, tried_before: bool) -> Other {
        let is_suspended = found.spec.as_ref().is_some_and(|spec| spec.suspend == Some(true));
        if is_suspended || sight::is_over(found) {
            return Other::Nothing;
        }
        match found.labels().get(JOB_LABEL).and_then(|id| id.parse::<JobId>().ok()) {
            Some(id) if id == own && tried_before => Other::Nothing,
            Some(id) if id != own && self.records.has(id) && !self.strangers.has(id) => Other::Earlier,
            _ => Other::Strange,
        }
    }
}

impl JobFollower {
    /// Lets an apply be made only where no other one of its instance runs that the database does not know, and waits for the Job of an
    /// earlier one.
    ///
    /// # Errors
    /// Which one runs; it is tried again.
    pub(super) async fn is_alone(&self, wanted: &ClusterJob, tried_before: bool, deadline: Instant) -> Result<(), Never> {
        let (jobs, params) = (self.jobs(), ListParams::default().labels(&job::applies_of(wanted)));
        loop {
            let listed = self.ask_until(deadline, May::Always, "looking for other applies of its instance", || jobs.list(&params)).await;
            let found = listed.map_err(|(refused, _)| told(refused))?;
            let is_to = |found: &Job| self.inner.is_to(found, self.job, tried_before);
            let words = |what: &str, other: &Job| {
                let (name, namespace) = (other.name_any(), &self.record.place.namespace);
                format!(
                    "{what}: the Job {name} in the namespace {namespace}. It is waited for; who does not want that deletes it and what \
                     runs of it with `kubectl delete job {name} -n {namespace} --cascade=foreground`"
                )
            };
            if let Some(other) = found.items.iter().find(|found| is_to(found) == Other::Strange) {
                return Err(later(words(UNKNOWN, other)));
            }
            let mut earlier = None;
            for other in found.items.iter().filter(|other| is_to(other) == Other::Earlier) {
                if !self.has_ended(other, deadline).await {
                    earlier = Some(other);
                    break;
                }
            }
            let Some(other) = earlier else { return Ok(()) };
            let why = words("an earlier apply of this instance is not over in the cluster", other);
            if Instant::now() + LOOK_AGAIN >= deadline {
                return Err(later(why));
            }
            self.teller.tell(Some(&StartBlocker::refused(&why)));
            tokio::time::sleep(LOOK_AGAIN).await;
        }
    }

    /// Whether an earlier apply's Job, which its controller has not called over, makes no other Pod, and none of its Pods runs.
    async fn has_ended(&self, other: &Job, deadline: Instant) -> bool {
        let Some(id) = other.labels().get(JOB_LABEL).filter(|_| makes_no_more(other, by_another_clock(self.inner.clock.now()))) else {
            return false;
        };
        let (pods, params) = (self.pods(), ListParams::default().labels(&format!("{JOB_LABEL}={id}")));
        let listed = self.ask_until(deadline, May::Always, "looking for Pods of an earlier apply", || pods.list(&params)).await;
        listed.is_ok_and(|pods| pods.items.iter().all(is_pod_over))
    }
}
