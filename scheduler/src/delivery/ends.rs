//! How the end of a job becomes known: told once, when nothing holds it back any more, and
//! forgotten when it is stored.

use std::sync::Arc;

use schema::id::JobId;
use schema::time::Timestamp;

use super::uploading::{Holds, UploadingJob};
use super::{Delivery, DeliveryInner};
use crate::removal::remove_all;
use crate::runner::evidence::OutcomeEvidence;
use crate::runner::{End, RunnerEvent};

impl Delivery {
    /// Whether the job's end was told, or is stored.
    pub fn is_told(&self, job: JobId) -> bool {
        self.entry(job)
            .is_none_or(|entry| entry.state.lock().expect("nobody panics with the lock").over)
    }

    /// The job is ended because its time is over: whatever report comes of it now says so, unless
    /// its command had ended before `since`, by its wrapper's clock. The first time counts.
    pub fn time_is_over(&self, job: JobId, since: Timestamp) {
        if let Some(entry) = self.entry(job) {
            entry.over_time.get_or_init(|| since);
        }
    }

    /// From now on these reports wait for what the place says of the job's end; one that was
    /// accepted before stands.
    pub fn hold(&self, job: JobId, holds: Holds) {
        if let Some(entry) = self.entry(job) {
            entry.state.lock().expect("nobody panics with the lock").holds = holds;
            self.tell_accepted(entry);
        }
    }

    /// Tells the report of an earlier life that was accepted as the job's end, unless it is held.
    pub(super) fn tell_accepted(&self, entry: Arc<UploadingJob>) {
        let accepted = entry.state.lock().expect("nobody panics with the lock").accepted.take();
        let Some(report) = accepted else { return };
        if entry.holds(&report) {
            entry.state.lock().expect("nobody panics with the lock").accepted = Some(report);
            return;
        }
        let (end, gone) = OutcomeEvidence::delivered(report).end(String::new);
        self.inner.tasks.spawn(self.inner.clone().tell_end(entry, end, gone));
    }

    /// Nobody looks after the job any more, for this reason: its end is told as unknown, unless it
    /// was told. `false` when no uploads of such a job are expected.
    pub async fn give_up(&self, job: JobId, why: String) -> bool {
        let Some(entry) = self.entry(job) else { return false };
        self.inner.clone().tell_end(entry, End::Unknown { why, report: None }, false).await;
        true
    }

    /// Forgets a job whose end is stored, with all that is here of it; whoever waits to hear that
    /// their report is accepted hears it now. One that is not known is forgotten already.
    pub async fn forget(&self, job: JobId) {
        let entry = self.inner.entries.lock().expect("nobody panics with the lock").remove(&job);
        let Some(entry) = entry else { return };
        entry.stored.cancel();
        let staging = entry.staging.clone().lock_owned().await;
        let directory = entry.directory.clone();
        let removed = self.inner.blocking.run(move || {
            let mut staging = staging;
            staging.close();
            remove_all(&directory)
        });
        if let Err(error) = removed.await {
            tracing::warn!(
                %job, %error,
                "failed to remove the uploads of a job that is over; they take up space until the \
                 next start"
            );
        }
    }
}

impl DeliveryInner {
    /// Tells a job's end, the first time.
    pub(super) async fn tell_end(self: Arc<Self>, entry: Arc<UploadingJob>, end: End, gone: bool) {
        let room = tokio::select! {
            room = entry.news.reserve() => room,
            () = self.stop.cancelled() => return,
        };
        // Nobody listens any more when the daemon stops; the next one is told.
        let Ok(room) = room else { return };
        let mut state = entry.state.lock().expect("nobody panics with the lock");
        if !state.over {
            state.over = true;
            room.send(RunnerEvent::Ended { job: entry.order.job, end, gone });
        }
    }
}
