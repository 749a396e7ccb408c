//! Jobs that run on a cluster and that the database does not know: somebody put an older copy of it in place, or it is a restored
//! one. They are left alone, and no apply is made beside one of the same instance (promise P1). Called by the runner and by the
//! beginning of a job.

use std::collections::HashSet;
use std::sync::Mutex;

use k8s_openapi::api::batch::v1::Job;
use kube::api::ListParams;
use kube::{Api, ResourceExt};
use schema::id::JobId;
use tokio::time::Instant;

use super::begin::its_job;
use super::follow::{AWAY_WITHIN, Follower};
use super::job::{self, JOB_LABEL};
use super::leave::May;
use super::record::Record;
use super::{ClusterRunner, FORGET_AGAIN, Inner, later, sight, told};
use crate::runner::ClusterJob;
use crate::runner::learned::Never;

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

impl Inner {
    async fn is_over(&self, record: &Record) -> bool {
        let Ok(cluster) = self.clusters.get(&record.place).await else { return false };
        let jobs = Api::namespaced(cluster.client.clone(), &record.place.namespace);
        let found = its_job(&cluster, &jobs, record, Instant::now() + AWAY_WITHIN).await;
        found.is_ok_and(|found| found.is_none_or(|found| sight::is_over(&found)))
    }

    /// Whether a Job is an apply that runs, and of which nothing is known here.
    fn is_strange(&self, found: &Job, own: JobId, tried_before: bool) -> bool {
        let is_suspended = found.spec.as_ref().is_some_and(|spec| spec.suspend == Some(true));
        if is_suspended || sight::is_over(found) {
            return false;
        }
        match found.labels().get(JOB_LABEL).and_then(|id| id.parse::<JobId>().ok()) {
            Some(id) if id == own => !tried_before,
            Some(id) => !self.records.has(id) || self.strangers.has(id),
            None => true,
        }
    }
}

impl Follower {
    /// Lets an apply be made only where no other one of its instance runs that the database does not know.
    ///
    /// # Errors
    /// Which one runs; it is tried again.
    pub(super) async fn is_alone(&self, wanted: &ClusterJob, tried_before: bool, deadline: Instant) -> Result<(), Never> {
        let (jobs, params) = (self.jobs(), ListParams::default().labels(&job::applies_of(wanted)));
        let listed = self.ask_until(deadline, May::Always, "looking for other applies of its instance", || jobs.list(&params)).await;
        let found = listed.map_err(|(refused, _)| told(refused))?;
        match found.items.iter().find(|found| self.inner.is_strange(found, self.job, tried_before)) {
            None => Ok(()),
            Some(other) => Err(later(format!(
                "an apply of this instance runs already, which the database does not know: the Job {} in the namespace {}. It is waited \
                 for; who does not want that deletes it with kubectl",
                other.name_any(),
                self.record.place.namespace
            ))),
        }
    }
}
