//! All places where jobs run, as one runner: each job goes to the runner of its place. Made by `daemon`, called by `perform`
//! and the driver.

use std::collections::HashSet;

use futures::future::BoxFuture;
use schema::api::Finding;
use schema::id::{InstanceId, JobId};

use super::cluster::ClusterRunner;
use super::local::LocalRunner;
use super::{Instance, JobSpec, Runner};
use crate::compile::ClusterPlace;

/// This machine, and clusters.
#[derive(Debug, Clone)]
pub struct RunnerRouter {
    local: LocalRunner,
    cluster: ClusterRunner,
}

impl RunnerRouter {
    /// One runner of the two.
    pub fn new(local: LocalRunner, cluster: ClusterRunner) -> Self {
        Self { local, cluster }
    }
}

impl Runner for RunnerRouter {
    fn start(&self, spec: JobSpec) {
        if spec.cluster.is_some() { self.cluster.start(spec) } else { self.local.start(spec) }
    }

    fn stop(&self, job: JobId) -> bool {
        self.cluster.stop(job) || self.local.stop(job)
    }

    fn hears(&self, job: JobId) -> bool {
        self.cluster.hears(job) || self.local.hears(job)
    }

    fn recover(&self, unfinished: Vec<JobId>) -> BoxFuture<'_, Vec<JobId>> {
        Box::pin(async move {
            // Whoever knows a job has it; what nobody knows never started anywhere, unless this machine was started again since.
            let (there, here): (Vec<_>, Vec<_>) = unfinished.into_iter().partition(|job| self.cluster.knows(*job));
            let mut never_started = self.cluster.recover(&there).await;
            never_started.extend(Runner::recover(&self.local, here).await);
            never_started
        })
    }

    fn recorded(&self) -> Vec<JobId> {
        self.cluster.recorded()
    }

    fn spare(&self, unknown: Vec<JobId>) {
        self.cluster.spare(unknown);
    }

    fn known_elsewhere(&self, jobs: &[JobId]) -> Vec<JobId> {
        jobs.iter().copied().filter(|job| self.cluster.knows(*job)).collect()
    }

    fn forget_instance(&self, instance: Instance) -> BoxFuture<'_, ()> {
        Box::pin(self.local.forget_instance(instance))
    }

    fn retain_instances(&self, kept: HashSet<InstanceId>, known: Vec<JobId>) -> BoxFuture<'_, ()> {
        Runner::retain_instances(&self.local, kept, known)
    }

    fn check(&self, places: Vec<ClusterPlace>) -> BoxFuture<'_, Result<Vec<Finding>, String>> {
        Box::pin(self.cluster.check(places))
    }

    fn absent(&self, places: Vec<ClusterPlace>) -> BoxFuture<'_, Vec<ClusterPlace>> {
        Box::pin(self.cluster.absent(places))
    }

    fn forget(&self, jobs: Vec<JobId>) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            let (there, here): (Vec<_>, Vec<_>) = jobs.into_iter().partition(|job| self.cluster.knows(*job));
            for job in there {
                self.cluster.forget(job).await;
            }
            self.local.forget(here).await;
        })
    }
}
