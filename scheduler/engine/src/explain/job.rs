//! What an explanation says of jobs beside the situation: those in flight, one that may still run,
//! and what getInfo has to say.

use schema::cause::CauseCode;
use schema::time::Timestamp;

use super::CauseChain;
use super::way_out::gone_in_words;
use crate::action::StopReason;
use crate::duration::duration;
use crate::event::Wait;
use crate::state::Job;

impl CauseChain<'_> {
    /// What is in flight or may still be, and what getInfo has to say.
    pub(super) fn beside(&mut self) {
        let state = self.state;
        if let Some((job, runtime)) = state
            .unsettled_apply()
            .filter(|_| !self.causes.iter().any(|cause| cause.code == CauseCode::ApplyUnsettled))
        {
            let text = format!(
                "apply {job} was given up and nobody has said that it is gone: no other apply \
                 starts here, and it has a place in runtime `{runtime}` where those are counted; \
                 {}",
                gone_in_words(job)
            );
            self.say(CauseCode::ApplyUnsettled, text, None, None);
        }
        for job in state.jobs_in_flight().filter(|_| state.desired().is_some()) {
            self.job(job);
        }
        if let Some((error, since)) = state.info.error().filter(|_| !state.deleted) {
            self.say(
                CauseCode::GetInfoFailed,
                format!("{error}; this changes nothing else"),
                since,
                state.info.due(),
            );
        }
    }

    /// It has not started, and the place where it is to run says why.
    fn waits(&mut self, job: &Job, wait: &Wait) {
        let after = if wait.tried_again {
            "then another job takes its place"
        } else {
            "then it has failed"
        };
        let text = format!(
            "{} {} of {} (attempt {}) has not started: {}; ends when {}, or at its deadline: \
             {after}",
            job.kind, job.id, job.version, job.attempt, wait.why, wait.ends_when
        );
        self.say(CauseCode::JobWaits, text, job.waits_since, job.starts_by());
    }

    /// What a job does that began then. Whoever runs it keeps its timeout; ours is for one that
    /// does not.
    fn runs(&self, job: &Job, began_at: Timestamp) -> String {
        match job.timeout.filter(|timeout| began_at.plus(*timeout) <= self.now) {
            Some(timeout) => format!(
                "is past its timeout of {} and is being stopped where it runs",
                duration(timeout)
            ),
            None => "runs".to_owned(),
        }
    }

    pub(super) fn job(&mut self, job: &Job) {
        let (kind, id) = (job.kind, job.id);
        let limit = match (job.deadline, job.started_at) {
            (Some(_), None) if job.stop.is_none() => {
                "it is stopped if it does not start in time".to_owned()
            }
            (Some(_), Some(_)) if job.stop.is_none() => {
                "it is stopped if it does not end in time".to_owned()
            }
            (Some(_), _) => "if nothing is heard of it by then, its end is unknown".to_owned(),
            (None, _) => {
                format!("it has no timeout and ends by itself or with `pvnctl jobs cancel {id}`")
            }
        };
        // From then on its deadline counts.
        let stopped_at = job.deadline.map_or(job.decided_at, |at| at.minus(job.stop_within()));
        let (code, does, since) = match (&job.stop, job.started_at) {
            (Some(StopReason::Person(who)), _) => {
                (CauseCode::JobStopping, format!("is being stopped for {who}"), stopped_at)
            }
            (Some(StopReason::Deadline), _) => {
                (CauseCode::JobStopping, "is being stopped, it was overdue".to_owned(), stopped_at)
            }
            (Some(StopReason::NotWanted), _) => (
                CauseCode::JobStopping,
                "is being stopped, its answer is no longer wanted".to_owned(),
                stopped_at,
            ),
            (None, Some(at)) => (CauseCode::JobRunning, self.runs(job, at), at),
            (None, None) => match job.waits.as_ref().filter(|wait| !wait.is_unseen) {
                Some(wait) => return self.waits(job, wait),
                None => (CauseCode::JobStarting, "is starting".to_owned(), job.decided_at),
            },
        };
        let unseen = job.waits.as_ref().filter(|wait| wait.is_unseen);
        let unseen = unseen.map_or_else(String::new, |wait| {
            format!("; {}; ends when {}", wait.why, wait.ends_when)
        });
        let text = format!(
            "{kind} {id} of {} (attempt {}) {does}{unseen}; {limit}",
            job.version, job.attempt
        );
        self.say(code, text, Some(since), job.deadline);
    }
}
