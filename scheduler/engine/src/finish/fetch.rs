//! The end of a fetch: an observation, and when it is fetched again.

use schema::time::Timestamp;

use crate::action::{Action, StopReason};
use crate::event::Outcome;
use crate::observation::Blame;
use crate::observed::of_fetch;
use crate::retry::{MISFIRE_POLICY, backoff, next_due};
use crate::state::{Finding, Job, Matched, State};

impl State {
    pub(super) fn finish_fetch(
        &mut self,
        job: &Job,
        outcome: Outcome,
        now: Timestamp,
        out: &mut Vec<Action>,
    ) {
        if outcome.may_still_run() {
            self.lingering.insert(job.id);
        }
        let Some(desired) = self.desired() else { return };
        let policy = desired.observe.poll();
        let is_asked = job.release == desired.release
            && job.compiled == desired.compiled
            && job.stop != Some(StopReason::NotWanted);
        let Some(policy) = policy.filter(|_| is_asked) else {
            // An answer about something that is no longer asked.
            let is_polled = policy.is_some();
            self.observed.due_by(is_polled.then_some(now));
            return;
        };
        let observation = of_fetch(job, policy, outcome, now);
        let (ended_at, missed) =
            (observation.at, observation.result.as_ref().err().map(|error| error.blame));
        self.take_in(observation, out);
        if missed.is_none() && self.work().is_none() {
            let Job { compiled, decided_at, .. } = *job;
            self.observed.matched_by(Matched { compiled, decided_at, ended_at });
        }
        self.observed.due_by(self.next_fetch(missed, ended_at));
    }

    /// When it is fetched again after this end of a fetch.
    fn next_fetch(&self, missed: Option<Blame>, ended_at: Timestamp) -> Option<Timestamp> {
        let policy = self.desired()?.observe.poll()?;
        let look = &self.observed;
        let wait = match missed {
            None | Some(Blame::Person) => None,
            Some(Blame::Surroundings) => Some(backoff(&MISFIRE_POLICY, look.misfires())),
            Some(Blame::Command) => {
                let retry = policy
                    .retry
                    .as_ref()
                    .filter(|retry| retry.max_attempts.is_none_or(|most| look.failures() < most));
                retry.map(|retry| backoff(retry, look.failures()))
            }
        };
        match wait {
            Some(wait) => Some(ended_at.plus(wait)),
            None => {
                // What is left as it is need not be looked at more often than what is as desired.
                let is_at_rest =
                    *look.finding() == Finding::Clean || self.acknowledged(ended_at).is_some();
                let is_clean = missed.is_none() && is_at_rest;
                next_due(&policy.cadence, is_clean, ended_at, self.instance, self.jobs)
            }
        }
    }
}
