//! The promises P1 to P8 as assertions, from an account of its own: it hears every event and every
//! action and never looks inside a state, so a mistake of the engine is not repeated here. (P1
//! itself is asserted where processes start, in `driver.rs`; that a late result moves nothing, P4,
//! beside the step.)

use std::collections::BTreeMap;

use engine::State;
use engine::action::{Action, StartJob, StopReason};
use engine::desired::{Desired, FetchAnswer, Gate};
use engine::event::{Event, FetchResult, Outcome};
use engine::limiter::Limits;
use engine::limits::{OVERTIME, RECOVERY, START_DEADLINE, STOP_DEADLINE};
use engine::observation::ObservationSource;
use schema::id::{ApprovalId, BlobId, JobId, ReleaseId};
use schema::status::{ApprovalKind, ApprovalStatus, Decision, JobKind, Status};
use schema::time::Timestamp;

use crate::people::WINDOW_MS;
use crate::world::{World, destroys_nothing};
use watch::Watch;

mod account;
mod bounds;
mod start;
mod watch;

/// Slack for ticks and relists that come a moment later, milliseconds.
const SLACK_MS: i64 = 60_000;

pub(crate) struct Oracle {
    accounts: Vec<Account>,
    flights: BTreeMap<JobId, Flight>,
    /// Every job ever started.
    started: BTreeMap<JobId, usize>,
}

#[derive(Default)]
struct Account {
    desired: Option<Desired>,
    paused: bool,
    observer: bool,
    /// A person wants it to be observed only.
    observed: bool,
    deleted: bool,
    /// Seen CONVERGED at this release, with the commands of now where a fetch can tell.
    arrived: bool,
    /// No fetch with the commands of now has answered that all is well.
    unseen: bool,
    /// Versions at which the upstream channel was ever heard to be converged.
    heard: Vec<String>,
    /// Nothing has happened since somebody last saw how it is: an older answer than now will do.
    is_quiet: bool,
    /// What a fetch found since the last apply.
    fresh: Option<Option<BlobId>>,
    /// The plan that people are shown, with its fetch.
    work: Option<Work>,
    /// A person cancelled an apply, and nobody asked for another try.
    cancelled: bool,
    grants: BTreeMap<ApprovalId, Grant>,
    rolled_back: Vec<ReleaseId>,
    /// Drift that somebody leaves as it is, until when.
    acknowledged: BTreeMap<BlobId, Timestamp>,
    /// Until when a person lets this release start outside its window.
    lifted: Option<Timestamp>,
    watch: Watch,
}

struct Work {
    fingerprint: Option<BlobId>,
    plan: Option<BlobId>,
    job: Option<JobId>,
    stale: bool,
}

struct Grant {
    kind: ApprovalKind,
    fingerprint: Option<BlobId>,
    votes: BTreeMap<String, Decision>,
    rejected: bool,
    spent: bool,
    expires_at: Option<Timestamp>,
}

impl Grant {
    fn yes(&self) -> usize {
        self.votes.values().filter(|vote| **vote == Decision::Approve).count()
    }
}

struct Flight {
    instance: usize,
    start: StartJob,
    began_ms: i64,
    unwanted: bool,
    cancelled: bool,
    stopped_ms: Option<i64>,
    /// How often the daemon came back meanwhile.
    recovered: i64,
    /// Whether nobody can know how long it runs.
    time_unknown: bool,
}

enum Answer {
    Clean,
    Work(Option<BlobId>, Option<BlobId>),
    None,
}

impl Oracle {
    pub(crate) fn new(instances: usize) -> Self {
        Self {
            accounts: (0..instances).map(|_| Account::default()).collect(),
            flights: BTreeMap::new(),
            started: BTreeMap::new(),
        }
    }

    /// Whether this event must change nothing but what a Tick would: the news of a job that nobody
    /// waits for.
    pub(crate) fn wants_copy(&self, state: &State, event: &Event) -> bool {
        match event {
            Event::JobEnded { job, .. }
            | Event::JobStarted { job, .. }
            | Event::JobWaits { job, .. } => {
                state.job(*job).is_none() && state.given_up().all(|known| known != *job)
            }
            // And what a watch tells that is not wanted any more.
            Event::Observed(observation) => match observation.source {
                ObservationSource::Job(_) => true,
                ObservationSource::Watch(generation) => {
                    state.watch_generation() != Some(generation)
                }
            },
            _ => false,
        }
    }

    /// The daemon came back; elsewhere than on the machine where it was, elapsed time is not known.
    pub(crate) fn recovered(&mut self, same_boot: bool) {
        for flight in self.flights.values_mut() {
            flight.recovered += 1;
            flight.time_unknown |= !same_boot;
        }
        self.accounts.iter_mut().for_each(|account| account.watch.recovered += 1);
    }

    #[expect(
        clippy::too_many_arguments,
        reason = "it hears everything there is to hear about one step"
    )]
    pub(crate) fn observe(
        &mut self,
        instance: usize,
        event: &Event,
        after: &State,
        actions: &[Action],
        world: &World,
        now: Timestamp,
        true_ms: i64,
    ) {
        self.watched(instance, event, true_ms);
        // What has ended does not begin again when the clock is set back.
        self.accounts[instance].acknowledged.retain(|_, until| *until > now);
        self.hear(instance, event, true_ms);
        let has_landed = self.land(instance, event, after);
        self.accounts[instance].follow(event, after, has_landed, true_ms);
        self.accounts[instance].ask(after);
        self.decide(instance, event, after);
        // What the instance itself shows as history can open nothing any more; that only makes this
        // account stricter.
        for approval in after.approvals().iter().filter(|approval| approval.over) {
            self.accounts[instance]
                .grants
                .entry(approval.id)
                .and_modify(|grant| grant.spent = true);
        }
        for action in actions {
            match action {
                Action::Start(start) => self.start(instance, start, world, now, true_ms),
                Action::Stop { job, why } => self.stop(*job, why, true_ms),
                Action::Rollback { from, .. } => self.accounts[instance].goes_back(*from),
                Action::Withdraw { .. } | Action::Log(_) => {}
            }
        }
        let account = &mut self.accounts[instance];
        let status = after.standing().status;
        let looks = account.desired.as_ref().is_some_and(|desired| desired.observe.looks());
        if engine::situation(after) == "converged" {
            account.lifted = None; // it was for what has arrived
        }
        account.arrived |= status == Status::Converged && !(looks && account.unseen);
        assert_eq!(status == Status::Deleted, account.deleted, "DELETED");
        assert_eq!(
            status == Status::Paused,
            account.paused && !account.deleted && account.desired.is_some(),
            "PAUSED"
        );
        assert_eq!(after.observe_wish().is_some(), account.observed, "observed only");
    }

    fn stop(&mut self, job: JobId, why: &StopReason, true_ms: i64) {
        let Some(flight) = self.flights.get_mut(&job) else { return };
        flight.unwanted |= *why == StopReason::NotWanted;
        let least_ms =
            flight.start.timeout.unwrap_or(START_DEADLINE).as_millis() as i64 - SLACK_MS / 10;
        let early = *why == StopReason::Deadline
            && !flight.time_unknown
            && true_ms - flight.began_ms < least_ms;
        assert!(
            !early,
            "{job} was stopped after {} ms although it has {least_ms}",
            true_ms - flight.began_ms
        );
        flight.stopped_ms = flight.stopped_ms.or(Some(true_ms));
    }

    fn hear(&mut self, instance: usize, event: &Event, true_ms: i64) {
        let applying = self.applying(instance);
        let account = &mut self.accounts[instance];
        account.leave_drift(event, applying);
        match event {
            Event::Desired(desired) => account.desire(desired),
            Event::Deleted => (account.deleted, account.lifted) = (true, None),
            Event::LiftWindow(lift) if !account.deleted => account.lifted = Some(lift.until),
            Event::EndWindowLift { .. } => account.lifted = None,
            Event::Pause { .. } | Event::ObserveOnly { .. } | Event::Resume => {
                let paused = matches!(event, Event::Pause { .. });
                let observed = matches!(event, Event::ObserveOnly { .. });
                // Whoever lets it go on has it looked at first.
                let goes_on = account.observed && !paused && !observed;
                let is_as_before = account.paused == paused && !goes_on;
                account.fresh = account.fresh.filter(|_| is_as_before);
                account.is_quiet &= is_as_before;
                (account.paused, account.observed) = (paused, observed);
            }
            Event::Observe(observer) => account.observer = *observer,
            Event::Retry { .. } if !applying && !account.deleted => {
                account.cancelled = false;
                (account.fresh, account.is_quiet) = (None, false);
                account
                    .grants
                    .values_mut()
                    .filter(|grant| grant.rejected)
                    .for_each(|grant| grant.spent = true);
            }
            Event::Refresh { .. } if !account.deleted && !account.paused => {
                (account.fresh, account.is_quiet) = (None, false)
            }
            Event::RollbackDropped { from } => {
                account.rolled_back.retain(|release| release != from)
            }
            Event::Upstream { converged_version: Some(version), .. } => {
                account.heard.push(version.clone())
            }
            Event::Cancel { job, .. } => {
                if let Some(flight) = self.flights.get_mut(job) {
                    flight.cancelled = true;
                    flight.stopped_ms = flight.stopped_ms.or(Some(true_ms));
                }
            }
            _ => {}
        }
    }

    fn applying(&self, instance: usize) -> bool {
        self.flights
            .values()
            .any(|flight| flight.instance == instance && flight.start.kind == JobKind::Apply)
    }

    fn decide(&mut self, instance: usize, event: &Event, after: &State) {
        let Event::Decided { approval, who, decision, .. } = event else { return };
        let is_past = self.accounts[instance].arrived
            && after
                .approvals()
                .iter()
                .all(|at| at.id != *approval || at.kind != ApprovalKind::Apply)
            && after.pending_approvals().all(|at| at.id != *approval)
            && after
                .approvals()
                .iter()
                .all(|at| at.id != *approval || at.status != ApprovalStatus::Rejected);
        let Some(grant) = self.accounts[instance].grants.get_mut(approval) else { return };
        let is_live = after.approvals().iter().any(|at| at.id == *approval && !at.over);
        let shared_again = grant.spent && grant.kind == ApprovalKind::Shared && is_live;
        if shared_again {
            // A retry asks anew under the same id.
            *grant = Grant {
                kind: grant.kind,
                fingerprint: grant.fingerprint,
                votes: BTreeMap::new(),
                rejected: false,
                spent: false,
                expires_at: None,
            };
        }
        if grant.spent || grant.rejected || is_past && *decision == Decision::Reject {
            return;
        }
        grant.rejected |= *decision == Decision::Reject;
        grant.votes.insert(who.clone(), *decision);
    }

    /// Jobs that this step took out of flight, and what their end means; whether an apply is among
    /// them.
    fn land(&mut self, instance: usize, event: &Event, after: &State) -> bool {
        let mut has_landed = false;
        let gone: Vec<JobId> = self
            .flights
            .iter()
            .filter(|(job, flight)| flight.instance == instance && after.job(**job).is_none())
            .map(|(job, _)| *job)
            .collect();
        for job in gone {
            let flight = self.flights.remove(&job).unwrap();
            if matches!(event, Event::Unstarted { job: withdrawn, .. } if *withdrawn == job) {
                continue; // it never was
            }
            let outcome = match event {
                Event::JobEnded { job: ended, outcome } if *ended == job => Some(outcome),
                _ => {
                    assert!(
                        flight.stopped_ms.is_some(),
                        "only a job that was stopped is given up without a word"
                    );
                    None
                }
            };
            let account = &mut self.accounts[instance];
            match flight.start.kind {
                JobKind::GetInfo => {}
                JobKind::Fetch => account.looked(&flight, outcome),
                JobKind::Apply => {
                    has_landed = true;
                    account.applied(&flight, outcome);
                }
            }
        }
        has_landed
    }
}
