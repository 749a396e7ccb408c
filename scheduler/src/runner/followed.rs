//! The tasks that follow jobs, one for each job that has one, and the way to stop it. Held by each runner.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Mutex;

use schema::id::JobId;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::{News, Told};

/// Stops of one job that may wait to be acted upon. The second one kills; more say nothing new.
const STOPS_WAITING: usize = 4;

/// The tasks of a runner.
#[derive(Debug, Default)]
pub(super) struct Followed {
    jobs: Mutex<HashMap<JobId, mpsc::Sender<()>>>,
    /// All of them, and whatever else ends with the runner.
    pub(super) tasks: TaskTracker,
    /// Cancelled when the runner lets go of its jobs.
    pub(super) detach: CancellationToken,
}

impl Followed {
    /// Runs a task for a job that has none; it is given the stops, and says itself when it is [`Self::over`].
    pub(super) fn follow<F: Future<Output = ()> + Send + 'static>(&self, job: JobId, task: impl FnOnce(mpsc::Receiver<()>) -> F) {
        let (stop, stops) = mpsc::channel(STOPS_WAITING);
        match self.jobs.lock().expect("nobody panics with the lock").entry(job) {
            Entry::Occupied(_) => return,
            Entry::Vacant(vacant) => vacant.insert(stop),
        };
        self.tasks.spawn(task(stops));
    }

    /// The job's task is done, or as good as.
    pub(super) fn over(&self, job: JobId) {
        self.jobs.lock().expect("nobody panics with the lock").remove(&job);
    }

    /// Passes a stop on. `false` when no such job has a task.
    pub(super) fn stop(&self, job: JobId) -> bool {
        let jobs = self.jobs.lock().expect("nobody panics with the lock");
        // Full means that several stops wait already, which is as much as there is to say.
        jobs.get(&job).is_some_and(|stops| matches!(stops.try_send(()), Ok(()) | Err(mpsc::error::TrySendError::Full(()))))
    }

    /// Tells the driver. Nobody listens any more when the daemon stops; the next one is told.
    pub(super) async fn tell(&self, news: &News, told: Told) {
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
