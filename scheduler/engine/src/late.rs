//! When a job ended, and how a late one is told. Called by `finish` and `observed`.

use schema::time::Timestamp;

use crate::duration::duration;
use crate::event::Outcome;
use crate::state::Job;

/// When the job ended, as far as is known; never before it was decided, never later than now.
pub(crate) fn ended_at(job: &Job, outcome: &Outcome, now: Timestamp) -> Timestamp {
    match outcome {
        Outcome::Exited { ended_at, .. } => (*ended_at).max(job.decided_at).min(now),
        _ => now,
    }
}

/// A command that ran past its time.
pub(crate) fn timed_out(job: &Job) -> String {
    match job.timeout {
        Some(timeout) => {
            format!("did not end within its timeout of {} and was stopped", duration(timeout))
        }
        None => "was stopped at its deadline".to_owned(),
    }
}

/// A job that was stopped at a deadline, whether its command ran or not.
pub(crate) fn overdue(job: &Job) -> String {
    if job.started_at.is_some() {
        timed_out(job)
    } else {
        "did not start in time and was stopped".to_owned()
    }
}
