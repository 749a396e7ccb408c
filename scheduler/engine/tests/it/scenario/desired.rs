//! What scenarios release: one small release and what makes it another.

use std::time::Duration;

use engine::desired::{
    ApplyPolicy, Cadence, Desired, FetchAnswer, Gate, InfoPolicy, Observe, PollPolicy, RetryPolicy,
    WorkExitCodes,
};
use engine::event::FetchResult;
use schema::id::{BlobId, ReleaseId};
use schema::time::Timestamp;

use super::START_MS;

/// A release `svc-1` with an exit-code fetch: poll 30 s, steady 300 s, grace 600 s, retry 30 s to
/// 300 s on exit code 75.
pub(crate) fn exit_code() -> Desired {
    let retry = RetryPolicy {
        base: Duration::from_secs(30),
        max: Duration::from_secs(300),
        max_attempts: None,
    };
    Desired {
        release: release(1),
        version: "svc-1".to_owned(),
        released_at: Timestamp::from_millis(START_MS),
        runtime: "runtime".parse().unwrap(),
        max_concurrency: None,
        compiled: BlobId::of(b"commands"),
        target: None,
        observe: Observe::Poll(PollPolicy {
            mode: FetchAnswer::ExitCode,
            cadence: Cadence::Interval {
                poll: Duration::from_secs(30),
                steady: Duration::from_secs(300),
            },
            retry: None,
            timeout: Duration::from_secs(600),
            stop_grace: None,
            work: WorkExitCodes::default(),
        }),
        apply: ApplyPolicy {
            retryable_exit_codes: vec![75],
            retry,
            window: None,
            timeout: None,
            stop_grace: None,
        },
        get_info: None,
        gates: Vec::new(),
        require_approval_before_apply: false,
        require_approval_for_destroy: false,
        approval_timeout: None,
        grace: Duration::from_secs(600),
        apply_id: None,
        progress_deadline: None,
        auto_rollback: false,
        stable_before: false,
        is_rollback: false,
        shared_for: None,
    }
}

/// How it is polled.
pub(crate) fn poll_of(desired: &mut Desired) -> &mut PollPolicy {
    let Observe::Poll(policy) = &mut desired.observe else { panic!("it is not polled") };
    policy
}

/// The same with structured output.
pub(crate) fn structured() -> Desired {
    let mut desired = exit_code();
    poll_of(&mut desired).mode = FetchAnswer::StructuredOutput;
    desired
}

/// Every apply is asked for.
pub(crate) fn before_apply() -> Desired {
    Desired { require_approval_before_apply: true, ..exit_code() }
}

/// The same without fetch.
pub(crate) fn apply_only() -> Desired {
    Desired { observe: Observe::Never, ..exit_code() }
}

/// The same with getInfo: poll 300 s, retry 30 s to 600 s.
pub(crate) fn with_info() -> Desired {
    let retry = RetryPolicy {
        base: Duration::from_secs(30),
        max: Duration::from_secs(600),
        max_attempts: None,
    };
    let cadence =
        Cadence::Interval { poll: Duration::from_secs(300), steady: Duration::from_secs(300) };
    Desired {
        get_info: Some(InfoPolicy {
            cadence,
            retry,
            timeout: Duration::from_secs(600),
            stop_grace: None,
        }),
        ..exit_code()
    }
}

pub(crate) fn release(number: u8) -> ReleaseId {
    ReleaseId::derive(&[&[number]])
}

/// The release after this one.
pub(crate) fn newer(desired: &Desired, number: u8) -> Desired {
    Desired { release: release(number), version: format!("svc-{number}"), ..desired.clone() }
}

/// The same release with commands that nobody has seen.
pub(crate) fn other_commands(desired: &Desired) -> Desired {
    let shared_for = Some(BlobId::of(format!("not {:?}", desired.shared_for).as_bytes()));
    Desired { compiled: BlobId::of(b"other commands"), shared_for, ..desired.clone() }
}

pub(crate) fn manual(every_action: bool, min_approvers: u32) -> Gate {
    Gate::ManualApproval {
        name: Some("qa".to_owned()),
        description: None,
        every_action,
        min_approvers,
    }
}

pub(crate) fn stable(channels: &[&str]) -> Gate {
    Gate::ChannelsStable { channels: channels.iter().map(|name| name.parse().unwrap()).collect() }
}

/// What a fetch brings whose plan has these bytes and whose explanation is this text.
pub(crate) fn plan(bytes: &str, explanation: &str) -> FetchResult {
    FetchResult {
        plan: Some(BlobId::of(bytes.as_bytes())),
        explanation: Some(BlobId::of(explanation.as_bytes())),
        explanation_text: Some(explanation.to_owned()),
        output: Some(BlobId::of(b"")),
        ..FetchResult::default()
    }
}
