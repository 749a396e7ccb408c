//! The tasks that follow jobs, one for each job that has one, and the way to stop it. Held by each
//! runner.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::panic::AssertUnwindSafe;
use std::sync::Mutex;

use futures::FutureExt;
use schema::id::JobId;
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::{News, RunnerEvent};

/// Stops of one job that may wait to be acted upon. The second one kills; more say nothing new.
const STOPS_WAITING: usize = 4;

/// What is told of a job whose task panicked. The panic itself is in the daemon's log.
pub(super) const DIED: &str = "the task that looked after it panicked, a defect of pvn (the \
                               daemon's log has the details); how it ended is unknown: look at \
                               it where it runs";

/// The tasks of a runner.
#[derive(Debug, Default)]
pub(super) struct JobTasks {
    jobs: Mutex<HashMap<JobId, mpsc::Sender<()>>>,
    /// All of them, and whatever else ends with the runner.
    pub(super) tasks: TaskTracker,
    /// Cancelled when the runner lets go of its jobs.
    pub(super) detach: CancellationToken,
}

impl JobTasks {
    /// Runs a task for a job that has none; it is given the stops, and says itself when it is
    /// [`Self::over`]. When it panics `died` runs instead of the rest of it, so that no job
    /// goes on for ever that nobody looks after.
    pub(super) fn follow<F: Future<Output = ()> + Send + 'static>(
        &self,
        job: JobId,
        task: impl FnOnce(mpsc::Receiver<()>) -> F,
        died: impl Future<Output = ()> + Send + 'static,
    ) {
        let (stop, stops) = mpsc::channel(STOPS_WAITING);
        match self.jobs.lock().expect("nobody panics with the lock").entry(job) {
            Entry::Occupied(_) => return,
            Entry::Vacant(vacant) => vacant.insert(stop),
        };
        // What it held of its own is dropped; what it shares is behind locks that nobody panics
        // with.
        let task = AssertUnwindSafe(task(stops)).catch_unwind();
        self.tasks.spawn(async move {
            if task.await.is_err() {
                tracing::error!(%job, "the task of a job panicked; the job is told as unknown");
                died.await;
            }
        });
    }

    /// The job's task is done, or as good as.
    pub(super) fn over(&self, job: JobId) {
        self.jobs.lock().expect("nobody panics with the lock").remove(&job);
    }

    /// Passes a stop on. `false` when no such job has a task.
    pub(super) fn stop(&self, job: JobId) -> bool {
        let jobs = self.jobs.lock().expect("nobody panics with the lock");
        // Full means that several stops wait already, which is as much as there is to say.
        jobs.get(&job).is_some_and(|stops| {
            matches!(stops.try_send(()), Ok(()) | Err(mpsc::error::TrySendError::Full(())))
        })
    }

    /// Tells the driver. Nobody listens any more when the daemon stops; the next one is told.
    pub(super) async fn tell(&self, news: &News, told: RunnerEvent) {
        tokio::select! {
            _ = news.send(told) => {}
            () = self.detach.cancelled() => {}
        }
    }

    /// Whether a job has a task.
    pub(super) fn has(&self, job: JobId) -> bool {
        self.jobs.lock().expect("nobody panics with the lock").contains_key(&job)
    }

    /// How many jobs have one.
    pub(super) fn len(&self) -> usize {
        self.jobs.lock().expect("nobody panics with the lock").len()
    }

    /// Lets go of all jobs, and waits for the ends of the tasks.
    pub(super) async fn end(&self) {
        self.detach.cancel();
        self.tasks.close();
        self.tasks.wait().await;
    }
}

/// For ever, where there is no time.
pub(super) async fn sleep_until(at: Option<Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at).await,
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_task_that_panics_is_replaced_by_its_last_words_and_one_that_does_not_has_none() {
        let followed = JobTasks::default();
        let (said, mut heard) = mpsc::channel(2);
        for (name, panics) in [(b"a", true), (b"b", false)] {
            let last_words = said.clone();
            let task = move |_| async move { assert!(!panics, "a defect") };
            followed.follow(JobId::derive(&[name]), task, async move {
                last_words.send(name).await.unwrap()
            });
        }
        drop(said);
        assert_eq!((heard.recv().await, heard.recv().await), (Some(b"a"), None));
    }
}
