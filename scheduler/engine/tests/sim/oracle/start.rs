//! What may start, and when: one job at a time, for what is wanted, through every gate (P2, P4).

use super::*;

impl Oracle {
    pub(super) fn start(
        &mut self,
        instance: usize,
        start: &StartJob,
        world: &World,
        now: Timestamp,
        true_ms: i64,
    ) {
        let job = start.job;
        assert!(self.started.insert(job, instance).is_none(), "P4: {job} is decided once");
        assert!(!world.processes.contains_key(&job));
        let account = &self.accounts[instance];
        let desired = account.desired.as_ref().unwrap();
        assert!(!account.deleted, "nothing starts for what is deleted");
        assert_eq!(
            (start.release, start.compiled, &start.version),
            (desired.release, desired.compiled, &desired.version),
            "P2: wanted"
        );
        let same_slot = |flight: &&Flight| {
            flight.instance == instance
                && (flight.start.kind == JobKind::GetInfo) == (start.kind == JobKind::GetInfo)
        };
        assert!(self.flights.values().find(same_slot).is_none(), "one fetch or apply at a time");
        if start.kind != JobKind::GetInfo {
            assert!(!account.paused, "P2: unpaused");
        }
        match start.kind {
            JobKind::Apply => {
                account.may_apply(start, desired, now);
                account.is_fresh(true_ms);
            }
            JobKind::Fetch => {
                assert!(desired.observe.poll().is_some(), "{job}: a fetch is for what is polled");
                assert!(
                    start.fresh_after.is_none() || account.is_quiet,
                    "{job}: what was told before will not do"
                );
            }
            JobKind::GetInfo => {}
        }
        let flight = Flight {
            instance,
            start: start.clone(),
            began_ms: true_ms,
            unwanted: false,
            cancelled: false,
            stopped_ms: None,
            recovered: 0,
            time_unknown: false,
        };
        self.flights.insert(job, flight);
    }

    /// P2 once more, at the moment in which a runner gets it.
    pub(crate) fn may_hand_over(&self, instance: usize, start: &StartJob, now: Timestamp) {
        let account = &self.accounts[instance];
        let desired = account.desired.as_ref().unwrap();
        assert!(
            !account.deleted && !account.paused,
            "P2: {} is wanted and unpaused when it is handed over",
            start.job
        );
        assert_eq!(
            (start.release, start.compiled),
            (desired.release, desired.compiled),
            "P2: wanted when it is handed over"
        );
        account.may_apply(start, desired, now);
    }
}
