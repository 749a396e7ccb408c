//! What people configure and do: the shape of each instance, and what they ask for on a whim.

use std::time::Duration;

use engine::State;
use engine::desired::{
    ApplyPolicy, Cadence, Desired, FetchAnswer, Gate, InfoPolicy, Observe, PollPolicy, RetryPolicy,
    WatchPolicy, Window, WorkExitCodes,
};
use engine::event::Event;
use engine::state::{DriftAcknowledgement, WindowLift};
use schema::id::{BlobId, ReleaseId};
use schema::schedule::Schedule;
use schema::status::{Decision, Reason, Status};
use schema::time::Timestamp;

use crate::random::Random;

pub(crate) const PEOPLE: &[&str] = &["ann", "bob", "cyd"];

/// Windows of the simulation open on the hour, for this long; the oracle knows it by arithmetic.
pub(crate) const WINDOW_MS: i64 = 30 * 60_000;

/// A schedule without an instant left.
pub(crate) const RUN_OUT: &str = "0 0 9 1 1 * 2020";

/// How an instance is configured; releases come and go. `watches`: whether somebody may watch it
/// instead of polling.
pub(crate) fn configure(random: &mut Random, production: bool, watches: bool) -> Desired {
    let mut desired = polled(random, production);
    if watches && desired.observe.looks() && random.one_in(2) {
        let fresh_for = secs(random, 60, 600);
        desired.observe = Observe::Watch(WatchPolicy { fresh_for });
    }
    desired
}

fn secs(random: &mut Random, from: i64, to: i64) -> Duration {
    Duration::from_secs(random.between(from, to) as u64)
}

fn polled(random: &mut Random, production: bool) -> Desired {
    let apply_only = random.one_in(5);
    let structured = random.one_in(3);
    let retry = RetryPolicy {
        base: secs(random, 1, 60),
        max: Duration::from_secs(300),
        max_attempts: if random.one_in(2) { Some(3) } else { None },
    };
    let cadence = Cadence::Interval { poll: secs(random, 5, 60), steady: secs(random, 60, 600) };
    // Some poll by the clock, and some schedules run out.
    let cadence = match random.below(12) {
        0 => Cadence::Cron(Schedule::parse("0 */5 * * * *", None).unwrap()),
        1 => Cadence::Cron(Schedule::parse(RUN_OUT, None).unwrap()),
        _ => cadence,
    };
    let info = InfoPolicy {
        cadence: cadence.clone(),
        retry: retry.clone(),
        timeout: Duration::from_secs(60),
        stop_grace: None,
    };
    let gates = gates(random, production);
    let opens = || Schedule::parse("0 0 * * * *", None).unwrap();
    Desired {
        release: ReleaseId::derive(&[b"none"]),
        version: String::new(),
        released_at: Timestamp::from_millis(0),
        runtime: (*random.pick(&["one", "two", "three"])).parse().unwrap(),
        max_concurrency: None,
        compiled: BlobId::of(b"0"),
        target: None,
        observe: match apply_only {
            true => Observe::Never,
            false => Observe::Poll(PollPolicy {
                mode: if structured {
                    FetchAnswer::StructuredOutput
                } else {
                    FetchAnswer::ExitCode
                },
                cadence,
                retry: random.one_in(2).then(|| retry.clone()),
                timeout: secs(random, 30, 600),
                stop_grace: None,
                work: WorkExitCodes::default(),
            }),
        },
        apply: ApplyPolicy {
            retryable_exit_codes: vec![75],
            retry,
            window: random.one_in(5).then(|| Window {
                opens: opens(),
                duration: Duration::from_millis(WINDOW_MS as u64),
            }),
            timeout: random.one_in(2).then(|| secs(random, 30, 900)),
            stop_grace: None,
        },
        get_info: random.one_in(3).then_some(info),
        gates,
        require_approval_before_apply: random.one_in(4),
        require_approval_for_destroy: random.one_in(4),
        approval_timeout: random.one_in(4).then(|| secs(random, 300, 3_600)),
        grace: secs(random, 1, 600),
        apply_id: (apply_only && random.one_in(2)).then(|| "id".to_owned()),
        progress_deadline: random.one_in(3).then(|| secs(random, 60, 3_600)),
        auto_rollback: random.one_in(2),
        stable_before: false,
        is_rollback: false,
        shared_for: None,
    }
}

/// What has to be so before an apply.
pub(crate) fn gates(random: &mut Random, production: bool) -> Vec<Gate> {
    let mut gates = Vec::new();
    if production && random.one_in(2) {
        gates.push(Gate::ChannelsStable { channels: vec!["staging".parse().unwrap()] });
    }
    if random.one_in(4) {
        let every_action = random.one_in(2);
        gates.push(Gate::ManualApproval {
            name: None,
            description: None,
            every_action,
            min_approvers: random.between(1, 2) as u32,
        });
    }
    if random.one_in(6) {
        gates.push(Gate::SharedApproval {
            name: "launch".to_owned(),
            description: None,
            min_approvers: random.between(1, 2) as u32,
        });
    }
    gates
}

/// What somebody does to this instance on a whim.
pub(crate) fn whim(state: &State, random: &mut Random) -> Option<Event> {
    let who = (*random.pick(PEOPLE)).to_owned();
    match random.below(16) {
        15 => Some(Event::ObserveOnly { who, reason: None }),
        14 => lift_window(state, random, who),
        13 => acknowledge(state, random, who),
        0..=4 => decide(state, random, 5),
        5 => Some(Event::Pause { who: "ann".to_owned(), reason: None }),
        6 | 7 => Some(Event::Resume),
        8 => Some(Event::Observe(random.one_in(3))),
        9 => Some(Event::Retry { who }),
        11 => Some(Event::Refresh { who, tries_again: random.one_in(2) }),
        10 => state.jobs_in_flight().next().map(|job| Event::Cancel { job: job.id, who }),
        _ => random.one_in(20).then_some(Event::Deleted),
    }
}

/// Somebody leaves the drift as it is for a while, or ends that.
fn acknowledge(state: &State, random: &mut Random, who: String) -> Option<Event> {
    let drift = state.drift()?;
    if drift.acknowledged.is_some() && random.one_in(2) {
        return Some(Event::EndAcknowledged { who });
    }
    let until = state.seen_at().plus(secs(random, 1, 7_200));
    let by = DriftAcknowledgement { who, at: state.seen_at(), until, reason: None };
    Some(Event::Acknowledge { fingerprint: drift.fingerprint, by })
}

/// Somebody lets it start outside its window, wherever it stands, or ends that.
fn lift_window(state: &State, random: &mut Random, who: String) -> Option<Event> {
    if state.window_lift().is_some() && random.one_in(3) {
        return Some(Event::EndWindowLift { who });
    }
    let until = state.seen_at().plus(secs(random, 1, 3_600));
    let reason = "an incident".to_owned();
    Some(Event::LiftWindow(Box::new(WindowLift { who, at: state.seen_at(), until, reason })))
}

/// Somebody decides on any approval, of which most count no longer.
fn decide(state: &State, random: &mut Random, rejects_one_in: u64) -> Option<Event> {
    if state.approvals().is_empty() {
        return None;
    }
    let pending = state.pending_approvals().next();
    let approval =
        pending.filter(|_| !random.one_in(4)).unwrap_or_else(|| random.pick(state.approvals())).id;
    let decision = if random.one_in(rejects_one_in) { Decision::Reject } else { Decision::Approve };
    Some(Event::Decided {
        approval,
        who: (*random.pick(PEOPLE)).to_owned(),
        decision,
        reason: None,
    })
}

/// What a helpful person does once all is calm: everything that the instance says would move it.
pub(crate) fn help(state: &State, codes: &[&str], random: &mut Random) -> Option<Event> {
    let who = (*random.pick(PEOPLE)).to_owned();
    if state.is_paused() || state.observe_wish().is_some() {
        return Some(Event::Resume);
    }
    if state.is_observer() {
        return Some(Event::Observe(false));
    }
    if let Some(approval) = state.pending_approvals().next() {
        return Some(Event::Decided {
            approval: approval.id,
            who,
            decision: Decision::Approve,
            reason: None,
        });
    }
    if codes.contains(&"DRIFT_ACKNOWLEDGED") {
        return Some(Event::EndAcknowledged { who });
    }
    let needs_person = [
        Reason::Cancelled,
        Reason::ManualApprovalRejected,
        Reason::ApplyFailed,
        Reason::FetchFailed,
        Reason::Stuck,
    ];
    let standing = state.standing();
    let failed = standing.status == Status::Failed
        && standing.reason.is_some_and(|reason| needs_person.contains(&reason));
    let asks = codes.iter().any(|code| ["NO_FETCH_DUE", "FETCH_UNSETTLED"].contains(code));
    (failed || asks).then_some(Event::Retry { who })
}
