//! One instance, told second by second. Sends events, checks every invariant after each, and that a
//! state survives being stored; nothing starts but what a test grants.

use engine::action::{Action, LogLine, StartJob, StopReason};
use engine::desired::Desired;
use engine::event::{Event, FetchResult, Outcome, Wait};
use engine::limiter::{ConcurrencyLimiter, Limit, Limits};
use engine::{State, next_wake, step};
use schema::id::{ApprovalId, InstanceId, JobId, ServiceId};
use schema::status::{Decision, JobKind};
use schema::time::Timestamp;

mod desired;

pub(crate) use desired::{
    apply_only, before_apply, exit_code, manual, newer, other_commands, plan, poll_of, release,
    stable, structured, with_info,
};
pub(crate) use schema::status::JobKind::{Apply, Fetch, GetInfo};

/// The service of instances of which it does not matter.
pub(crate) const ALONE: ServiceId = ServiceId::from_bytes([7; 16]);

/// Second 0 of every scenario.
pub(crate) const START_MS: i64 = 1_782_900_000_000;

#[derive(Clone)]
pub(crate) struct Scenario {
    state: Option<State>,
    pub(crate) now: Timestamp,
    pub(crate) actions: Vec<Action>,
}

impl Scenario {
    /// A new instance to which this release comes at second 0.
    pub(crate) fn new(desired: Desired) -> Self {
        let mut scenario = Self::without_release();
        scenario.send(Event::Desired(Box::new(desired)));
        scenario
    }

    /// A new instance that nobody has asked anything of.
    pub(crate) fn without_release() -> Self {
        let now = Timestamp::from_millis(START_MS);
        let state = State::new(InstanceId::derive(&[b"instance"]), now);
        Self { state: Some(state), now, actions: Vec::new() }
    }

    pub(crate) fn state(&self) -> &State {
        self.state.as_ref().unwrap()
    }

    /// Sends one event now and returns what it brought about, log lines left out.
    pub(crate) fn send(&mut self, event: Event) -> Vec<Action> {
        let (state, actions) = step(self.state.take().unwrap(), event.clone(), self.now);
        state.check().unwrap_or_else(|broken| panic!("{broken} after {event:?}: {state:#?}"));
        let stored = serde_json::to_string(&state).unwrap();
        assert_eq!(
            serde_json::from_str::<State>(&stored).unwrap(),
            state,
            "a state survives being stored"
        );
        assert!(next_wake(&state).is_none_or(|at| at > state.seen_at()), "no wake in the past");
        self.state = Some(state);
        self.actions.extend(actions.iter().cloned());
        actions.into_iter().filter(|action| !matches!(action, Action::Log(_))).collect()
    }

    /// Lets time pass until this second, with a Tick at every wake.
    pub(crate) fn until(&mut self, second: i64) -> &mut Self {
        let target = Timestamp::from_millis(START_MS + second * 1_000);
        while let Some(at) = next_wake(self.state()).filter(|at| *at <= target) {
            self.now = at;
            self.send(Event::Tick);
        }
        self.now = target;
        self.send(Event::Tick);
        self
    }

    /// The same, and every fetch that is due before then is run and fails.
    pub(crate) fn until_without_answer(&mut self, second: i64) -> &mut Self {
        let target = Timestamp::from_millis(START_MS + second * 1_000);
        loop {
            if self.now < target && self.wants(JobKind::Fetch) {
                self.run(JobKind::Fetch, 1);
            }
            let Some(at) = next_wake(self.state()).filter(|at| *at <= target) else {
                return self.until(second);
            };
            self.now = at;
            self.send(Event::Tick);
        }
    }

    /// The second at which the next Tick is due.
    pub(crate) fn wakes_at(&self) -> Option<f64> {
        next_wake(self.state())
            .map(|at| at.since_ms(Timestamp::from_millis(START_MS)) as f64 / 1_000.0)
    }

    pub(crate) fn seconds(&self, at: Timestamp) -> f64 {
        at.since_ms(Timestamp::from_millis(START_MS)) as f64 / 1_000.0
    }

    /// Grants a place that is wanted and returns what is started.
    #[track_caller]
    pub(crate) fn start(&mut self, kind: JobKind) -> StartJob {
        assert!(self.wants(kind), "{kind} is not wanted: {:?}", self.state().standing());
        let actions = self.send(Event::Granted(kind));
        let [Action::Start(start)] = &actions[..] else {
            panic!("{kind} was granted and brought {actions:?}")
        };
        assert_eq!(start.kind, kind);
        start.clone()
    }

    /// Grants a place that must not be used.
    #[track_caller]
    pub(crate) fn declines(&mut self, kind: JobKind) {
        assert_eq!(self.send(Event::Granted(kind)), [], "{kind} must not start");
        assert!(!self.wants(kind));
    }

    pub(crate) fn wants(&self, kind: JobKind) -> bool {
        self.state().wants(kind).is_some()
    }

    pub(crate) fn begins(&mut self, job: JobId) {
        self.send(Event::JobStarted { job, at: self.now });
    }

    /// The place where it is to run says what keeps it from starting, for a minute at most.
    pub(crate) fn waits(&mut self, job: JobId, why: &str) {
        let (why, ends_when) = (why.to_owned(), "the image can be pulled".to_owned());
        let wait = Wait {
            why,
            ends_when,
            until: self.now.plus_ms(60_000),
            tried_again: false,
            is_unseen: false,
        };
        self.send(Event::JobWaits { job, wait: Some(Box::new(wait)) });
    }

    /// The place where it runs cannot be looked at, or can again.
    pub(crate) fn is_unseen(&mut self, job: JobId, why: Option<&str>) {
        let ends_when = "the cluster answers".to_owned();
        let wait = |why: &str| {
            Box::new(Wait {
                why: why.to_owned(),
                ends_when,
                until: self.now,
                tried_again: true,
                is_unseen: true,
            })
        };
        self.send(Event::JobWaits { job, wait: why.map(wait) });
    }

    pub(crate) fn ends(&mut self, job: JobId, outcome: Outcome) -> Vec<Action> {
        self.send(Event::JobEnded { job, outcome })
    }

    pub(crate) fn exited(&self, code: i32, seen: FetchResult) -> Outcome {
        Outcome::Exited {
            code,
            started_at: self.now,
            ended_at: self.now,
            said: String::new(),
            seen: Box::new(seen),
            info: Some(Ok(Vec::new())),
        }
    }

    /// A whole job that takes no time.
    #[track_caller]
    pub(crate) fn run(&mut self, kind: JobKind, code: i32) -> StartJob {
        self.run_with(kind, code, FetchResult::default())
    }

    #[track_caller]
    pub(crate) fn run_with(&mut self, kind: JobKind, code: i32, seen: FetchResult) -> StartJob {
        let start = self.start(kind);
        self.begins(start.job);
        let outcome = self.exited(code, seen);
        self.ends(start.job, outcome);
        start
    }

    pub(crate) fn decide(&mut self, approval: ApprovalId, who: &str, decision: Decision) {
        self.send(Event::Decided { approval, who: who.to_owned(), decision, reason: None });
    }

    /// Somebody says yes to what is asked.
    #[track_caller]
    pub(crate) fn approve(&mut self, who: &str) {
        let asked = self.pending();
        self.decide(asked, who, Decision::Approve);
    }

    #[track_caller]
    pub(crate) fn reject(&mut self, who: &str) {
        let asked = self.pending();
        self.decide(asked, who, Decision::Reject);
    }

    #[track_caller]
    pub(crate) fn pending(&self) -> ApprovalId {
        self.state()
            .pending_approvals()
            .next()
            .unwrap_or_else(|| panic!("nothing is asked: {:?}", self.state().standing()))
            .id
    }

    pub(crate) fn asked_so_far(&self) -> usize {
        self.logged("approval.asked").count()
    }

    pub(crate) fn logged(&self, kind: &'static str) -> impl Iterator<Item = &LogLine> {
        self.actions.iter().filter_map(move |action| match action {
            Action::Log(line) if line.kind.as_str() == kind => Some(line),
            _ => None,
        })
    }

    pub(crate) fn stops(&self) -> Vec<(JobId, StopReason)> {
        let stop = |action: &Action| match action {
            Action::Stop { job, why } => Some((*job, why.clone())),
            _ => None,
        };
        self.actions.iter().filter_map(stop).collect()
    }

    pub(crate) fn upstream(&mut self, channel: &str, version: Option<&str>) {
        self.send(Event::Upstream {
            channel: channel.parse().unwrap(),
            converged_version: version.map(str::to_owned),
            rolled_back: None,
        });
    }

    pub(crate) fn status(&self) -> String {
        let standing = self.state().standing();
        standing.reason.map_or_else(
            || standing.status.to_string(),
            |reason| format!("{} {reason}", standing.status),
        )
    }

    #[track_caller]
    pub(crate) fn is(&self, expected: &str) {
        assert_eq!(self.status(), expected, "{}", self.state().standing().message);
    }
}

// ---- rules 16 and 17: lanes ----

pub(crate) fn instance(number: u64, desired: Desired, at: Timestamp) -> State {
    let state = State::new(InstanceId::derive(&[&number.to_le_bytes()]), at);
    step(state, Event::Desired(Box::new(desired)), at).0
}

pub(crate) fn limits(total: u32, per_runtime: Option<u32>) -> Limits {
    let limit = Limit { total, per_runtime };
    Limits { fetch: limit, apply: limit, get_info: limit }
}

/// Grants all that has room now and returns the kinds.
pub(crate) fn grant_all(
    lanes: &mut ConcurrencyLimiter,
    states: &mut [State],
    now: Timestamp,
) -> Vec<JobKind> {
    let mut granted = Vec::new();
    while let Some((instance, kind)) = lanes.next(now) {
        let state = states.iter_mut().find(|state| state.instance() == instance).unwrap();
        *state = step(state.clone(), Event::Granted(kind), now).0;
        lanes.update(state, ALONE);
        granted.push(kind);
    }
    granted
}
