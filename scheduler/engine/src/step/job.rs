//! What becomes of a job while it is in flight: it has started, it says what it waits for, it is
//! asked to stop, it is overdue.

use schema::id::JobId;
use schema::log_kind::LogKind;
use schema::status::JobKind;
use schema::time::Timestamp;

use crate::action::{Action, StopReason, log};
use crate::duration::duration;
use crate::event::{Outcome, Wait};
use crate::limits::OVERTIME;
use crate::state::{Job, State};

impl State {
    /// Nobody waits for ever for a job: it is stopped at its deadline, and if not even that is
    /// answered, its end is unknown.
    pub(super) fn enforce_deadlines(&mut self, now: Timestamp, out: &mut Vec<Action>) {
        let mut silent = None;
        for job in [&mut self.main, &mut self.side]
            .into_iter()
            .flatten()
            .filter(|job| job.deadline.is_some_and(|at| at <= now))
        {
            if job.stop.is_none() {
                job.ask_to_stop(StopReason::Deadline, now);
                out.push(Action::Stop { job: job.id, why: StopReason::Deadline });
            } else {
                silent = silent.or(Some((job.id, job.stop_within())));
            }
        }
        let Some((id, within)) = silent else { return };
        let why = format!("it was stopped and nothing was heard of it for {}", duration(within));
        self.finish(id, Outcome::Unknown { why, gone: false }, now, out);
        // The other slot may be overdue as well; there are two, so this ends.
        self.enforce_deadlines(now, out);
    }

    pub(super) fn started(&mut self, id: JobId, at: Timestamp, now: Timestamp) {
        let grace = self.desired.as_deref().map(|desired| desired.grace);
        let Some(job) =
            [&mut self.main, &mut self.side].into_iter().flatten().find(|job| job.id == id)
        else {
            return;
        };
        if job.started_at.is_some() {
            return;
        }
        let at = at.max(job.decided_at).min(now);
        job.started_at = Some(at);
        job.attempts_before = None;
        (job.waits, job.waits_since) = (None, None);
        if job.stop.is_none() {
            // From when it is told: the wall clock may have jumped since it started, and its
            // wrapper keeps the exact time.
            job.deadline = job.timeout.map(|timeout| now.plus(timeout).plus(OVERTIME));
        }
        if let Some(attempts) = self.rollout.attempts_mut() {
            attempts.started(id, grace, at);
        }
    }

    /// Words only: the deadline that the job has anyway is what ends it. The log has the first of
    /// them.
    pub(super) fn waits(
        &mut self,
        id: JobId,
        wait: Option<Box<Wait>>,
        now: Timestamp,
        out: &mut Vec<Action>,
    ) {
        let Some(job) =
            [&mut self.main, &mut self.side].into_iter().flatten().find(|job| job.id == id)
        else {
            return;
        };
        if job.started_at.is_some() && wait.as_ref().is_some_and(|wait| !wait.is_unseen) {
            return;
        }
        if wait.is_none() && job.started_at.is_some() {
            job.waits_since = None;
        }
        if let Some(wait) = wait.as_ref().filter(|_| job.waits_since.is_none()) {
            job.waits_since = Some(now);
            out.push(log(
                LogKind::JobWaits,
                None,
                format!("{} {id} waits: {}", job.kind, wait.why),
                &[("job", &id.to_string())],
            ));
        }
        job.waits = wait;
    }

    pub(super) fn cancel(&mut self, id: JobId, who: &str, now: Timestamp, out: &mut Vec<Action>) {
        let Some(job) =
            [&mut self.main, &mut self.side].into_iter().flatten().find(|job| job.id == id)
        else {
            return;
        };
        let why = StopReason::Person(who.to_owned());
        if matches!(job.stop, None | Some(StopReason::Deadline)) {
            job.ask_to_stop(why.clone(), now);
            let data = [("job", &id.to_string() as &str), ("kind", job.kind.as_str())];
            out.push(log(
                LogKind::JobCancel,
                Some(who.to_owned()),
                format!("{who} cancels {} {id}", job.kind),
                &data,
            ));
        }
        out.push(Action::Stop { job: id, why });
    }
}

/// Stops a fetch or getInfo whose answer nobody wants any more. An apply is never stopped by us.
pub(super) fn stop_unwanted(slot: &mut Option<Box<Job>>, now: Timestamp, out: &mut Vec<Action>) {
    if let Some(job) = slot.as_mut().filter(|job| job.kind != JobKind::Apply && job.stop.is_none())
    {
        job.ask_to_stop(StopReason::NotWanted, now);
        out.push(Action::Stop { job: job.id, why: StopReason::NotWanted });
    }
}

impl Job {
    /// Notes that it is asked to stop. From the first time on it has so long to be heard of,
    /// whoever asks again.
    fn ask_to_stop(&mut self, why: StopReason, now: Timestamp) {
        if self.stop.replace(why).is_none() {
            self.stopped_at = Some(now);
            self.deadline = Some(now.plus(self.stop_within()));
        }
    }
}
