//! Stands where a driver wants a runner that its test has no jobs for.

use futures::future::BoxFuture;
use pvn_scheduler::compile::ClusterPlace;
use pvn_scheduler::runner::{ClusterQuestions, JobSpec, OutputPiece, Runner};
use schema::api::Finding;
use schema::id::JobId;

/// A runner of a kind of target that no job has.
#[derive(Debug)]
pub(crate) struct Nobody;

impl Runner for Nobody {
    fn start(&self, spec: JobSpec) {
        panic!("{} is started elsewhere", spec.job);
    }

    fn stop(&self, _job: JobId) -> bool {
        false
    }

    fn hears(&self, _job: JobId) -> bool {
        false
    }

    fn recover(&self, unfinished: Vec<JobId>) -> BoxFuture<'_, Vec<JobId>> {
        Box::pin(async { unfinished })
    }

    fn forget(&self, _jobs: Vec<JobId>) -> BoxFuture<'_, ()> {
        Box::pin(async {})
    }

    fn tail(&self, _piece: OutputPiece) -> BoxFuture<'_, std::io::Result<Option<Vec<u8>>>> {
        Box::pin(async { Ok(None) })
    }
}

impl ClusterQuestions for Nobody {
    fn check(&self, _places: Vec<ClusterPlace>) -> BoxFuture<'_, Result<Vec<Finding>, String>> {
        Box::pin(async { Ok(Vec::new()) })
    }

    fn absent(&self, _places: Vec<ClusterPlace>) -> BoxFuture<'_, Vec<ClusterPlace>> {
        Box::pin(async { Vec::new() })
    }
}
