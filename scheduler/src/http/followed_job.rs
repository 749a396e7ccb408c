//! A job whose output somebody follows. Its output is looked at ten times a second, which is a look
//! at a file; its row, which is a look at the database, when something of its service was
//! committed. Called by `api::logs` and by `pages::output`.

use schema::api::Job;
use schema::target::PlacedJob;
use tokio::time::Instant;

use super::Api;
use super::api::placed;
use super::limits::{OUTPUT_LOOK_EVERY, SIGN_OF_LIFE};
use crate::driver::RevisionFollower;

/// A job as it was when it was read last.
pub(super) struct FollowedJob {
    pub(super) api: Api,
    pub(super) job: Job,
    pub(super) placed: PlacedJob,
    commits: RevisionFollower,
    read: Instant,
}

impl FollowedJob {
    /// One who follows this job from now on.
    pub(super) fn new(api: &Api, job: Job, placed: PlacedJob) -> Self {
        let service = (job.application.clone(), job.service.clone());
        let mut commits = api.driver.revisions().follow(Some(service));
        // It was read before: what was committed meanwhile is seen with the first look.
        commits.not_caught_up();
        Self { api: api.clone(), job, placed, commits, read: Instant::now() }
    }

    /// Waits until the output is to be looked at again, and reads what became of the job: before
    /// the output, so that a job seen as ended has all of it in place. `None` when it cannot be
    /// read.
    pub(super) async fn wait(&mut self) -> Option<()> {
        tokio::time::sleep(OUTPUT_LOOK_EVERY).await;
        // Nobody is told of the jobs of a service that was taken away.
        if self.commits.has_changed() || self.read.elapsed() >= SIGN_OF_LIFE {
            self.commits.caught_up();
            self.read = Instant::now();
            self.job = self.api.store.job(self.job.id).await.ok()??;
            self.placed = placed(&self.api, &self.job).await.ok()?;
        }
        Some(())
    }
}
