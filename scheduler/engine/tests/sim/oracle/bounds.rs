//! What is bounded: how long a job may be in flight (P3), and how many may be at once.

use super::*;

impl Oracle {
    /// P3: whatever is in flight ends within its deadlines.
    pub(crate) fn check_deadlines(&self, states: &[State], true_ms: i64) {
        for (account, state) in self.accounts.iter().zip(states) {
            account.tells_silence(state, true_ms);
        }
        for (job, flight) in &self.flights {
            let Some(known) = states[flight.instance].job(*job) else { continue };
            if flight.time_unknown {
                continue;
            }
            let (since_ms, bound) = match (flight.stopped_ms, flight.start.timeout) {
                (Some(stopped_ms), _) => (stopped_ms, STOP_DEADLINE),
                (None, Some(timeout)) => {
                    (flight.began_ms, START_DEADLINE.max(timeout) + timeout + OVERTIME)
                }
                (None, None) if known.started_at.is_none() => (flight.began_ms, START_DEADLINE),
                (None, None) => continue, // an apply without timeout that runs
            };
            let took_ms = true_ms - since_ms;
            let bound_ms =
                bound.as_millis() as i64 + flight.recovered * RECOVERY.as_millis() as i64;
            assert!(
                took_ms <= bound_ms + SLACK_MS,
                "P3: {job} is in flight for {took_ms} ms of {bound_ms}: {known:?}"
            );
        }
    }

    pub(crate) fn check_limits(
        &self,
        states: &[State],
        limits: &Limits,
        max_concurrency: fn(&str) -> Option<u32>,
    ) {
        let mut held: BTreeMap<(JobKind, &str), u32> = BTreeMap::new();
        for job in states.iter().flat_map(State::jobs_in_flight) {
            *held.entry((job.kind, job.runtime.as_str())).or_default() += 1;
        }
        for (kind, limit) in [
            (JobKind::Fetch, limits.fetch),
            (JobKind::Apply, limits.apply),
            (JobKind::GetInfo, limits.get_info),
        ] {
            let total: u32 =
                held.iter().filter(|((at, _), _)| *at == kind).map(|(_, count)| count).sum();
            assert!(total <= limit.total, "{total} {kind} in flight");
        }
        for ((kind, runtime), count) in held {
            let limit = match kind {
                JobKind::Apply => max_concurrency(runtime),
                JobKind::Fetch => limits.fetch.per_runtime,
                JobKind::GetInfo => limits.get_info.per_runtime,
            };
            assert!(
                limit.is_none_or(|limit| count <= limit),
                "{count} {kind} in flight in {runtime}"
            );
        }
    }
}
