//! Times, limits and gates of an instance, with their defaults.

use std::time::Duration;

use engine::desired::{Cadence, FetchAnswer, Gate, RetryPolicy};

use super::*;

fn desired(fields: &str) -> engine::desired::Desired {
    compiled(
        &changed(SMALL, &[("    apply: {", &format!("    {fields}\n    apply: {{"))]),
        "staging",
        "",
    )
    .unwrap()
    .desired
}

const FETCH: &str = "fetch: {taskConfig: {program: {cmd: [f]}}";

#[test]
fn every_default_of_the_reference() {
    let desired =
        desired(&format!("{FETCH}}}\n    getInfo: {{taskConfig: {{program: {{cmd: [i]}}}}}}"));
    let fetch = desired.observe.poll().cloned().unwrap();
    assert_eq!(fetch.mode, FetchAnswer::ExitCode);
    assert_eq!(
        fetch.cadence,
        Cadence::Interval { poll: Duration::from_secs(30), steady: Duration::from_secs(300) }
    );
    assert_eq!(fetch.retry, None);
    assert_eq!(fetch.timeout, Duration::from_secs(600));
    assert!(fetch.work.are_usual() && fetch.work.says_work(2));
    let retry = |base, max| RetryPolicy {
        base: Duration::from_secs(base),
        max: Duration::from_secs(max),
        max_attempts: None,
    };
    let info = desired.get_info.unwrap();
    assert_eq!(
        info.cadence,
        Cadence::Interval { poll: Duration::from_secs(300), steady: Duration::from_secs(300) }
    );
    assert_eq!((info.retry, info.timeout), (retry(30, 600), Duration::from_secs(600)));
    assert_eq!(desired.apply.retry, retry(30, 300));
    assert_eq!(
        (desired.apply.timeout, desired.apply.window, desired.max_concurrency),
        (None, None, None)
    );
    assert_eq!(desired.grace, Duration::from_secs(600));
    assert_eq!(
        (desired.apply_id, desired.progress_deadline, desired.approval_timeout),
        (None, None, None)
    );
    assert!(!desired.require_approval_before_apply && !desired.auto_rollback);
    assert_eq!((desired.version.as_str(), desired.runtime.as_str()), ("svc-1", "tool"));
}

#[test]
fn what_is_given_is_taken() {
    let desired = desired(
        "requireApprovalBeforeApply: true
    approvalTimeout: 1h
    convergenceGracePeriod: 5s
    fetch: {fetchMode: STRUCTURED_OUTPUT, pollInterval: 1s, steadyStatePollInterval: 2s, timeout: \
         3s, retryPolicy: {maxAttempts: 4}, taskConfig: {program: {cmd: [f]}}}",
    );
    let fetch = desired.observe.poll().cloned().unwrap();
    assert_eq!(fetch.mode, FetchAnswer::StructuredOutput);
    assert_eq!(
        fetch.cadence,
        Cadence::Interval { poll: Duration::from_secs(1), steady: Duration::from_secs(2) }
    );
    assert_eq!(
        fetch.retry,
        Some(RetryPolicy {
            base: Duration::from_secs(30),
            max: Duration::from_secs(600),
            max_attempts: Some(4)
        })
    );
    assert_eq!(fetch.timeout, Duration::from_secs(3));
    assert_eq!(
        (desired.grace, desired.approval_timeout),
        (Duration::from_secs(5), Some(Duration::from_secs(3_600)))
    );
    assert!(desired.require_approval_before_apply);
}

#[test]
fn an_apply_id_is_rendered_with_the_parameters_of_the_runtime() {
    assert_eq!(desired("applyId: 'id-{{.Params.x}}'").apply_id.as_deref(), Some("id-fallback"));
}

/// The retry policy of apply when the config says this.
fn check_retry(policy: &str, expected: (u128, u128, Option<u32>)) {
    let millis = |span: Duration| span.as_millis();
    let text = changed(
        SMALL,
        &[("apply: {", &format!("apply: {{retryableExitCodes: [76, 75], retryPolicy: {policy}, "))],
    );
    let apply = compiled(&text, "staging", "").unwrap().desired.apply;
    assert_eq!(apply.retryable_exit_codes, [75, 76]);
    assert_eq!(
        (millis(apply.retry.base), millis(apply.retry.max), apply.retry.max_attempts),
        expected,
        "{policy}"
    );
}

#[test]
fn retry_policies_fill_in_what_is_missing() {
    check_retry("{}", (30_000, 300_000, None));
    check_retry("{baseInterval: 1s}", (1000, 300_000, None));
    check_retry("{baseInterval: 10m}", (600_000, 600_000, None));
    check_retry("{maxInterval: 10s}", (10_000, 10_000, None));
    check_retry("{maxAttempts: 0}", (30_000, 300_000, None));
    check_retry("{maxAttempts: -1}", (30_000, 300_000, None));
    check_retry("{maxAttempts: 3}", (30_000, 300_000, Some(3)));
}

#[test]
fn a_window_and_a_schedule() {
    let text = changed(
        SMALL,
        &[
            (
                "apply: {",
                "apply: {maxConcurrency: 2, timeout: 9s, window: {schedule: '0 0 9 * * \
                     Mon-Fri', duration: 8h, timezone: Europe/Berlin}, ",
            ),
            (
                "    apply:",
                "    fetch: {pollSchedule: '0 */15 * * * *', taskConfig: {program: {cmd: \
                     [f]}}}\n    apply:",
            ),
        ],
    );
    let desired = compiled(&text, "staging", "").unwrap().desired;
    let window = desired.apply.window.unwrap();
    assert_eq!(
        (window.opens.to_string().as_str(), window.duration),
        ("0 0 9 * * Mon-Fri Europe/Berlin", Duration::from_secs(28_800))
    );
    assert_eq!(
        (desired.max_concurrency, desired.apply.timeout),
        (Some(2), Some(Duration::from_secs(9)))
    );
    assert!(
        matches!(&desired.observe.poll().unwrap().cadence, Cadence::Cron(schedule) if schedule.to_string() == "0 */15 * * * * UTC")
    );
}

#[test]
fn progress_deadline_and_auto_rollback() {
    let service = |fields: &str| {
        changed(SMALL, &[("  application: app\n", &format!("  application: app\n  {fields}\n"))])
    };
    let desired = compiled(&service("progressDeadline: 30m\n  autoRollback: {}"), "staging", "")
        .unwrap()
        .desired;
    assert_eq!(
        (desired.progress_deadline, desired.auto_rollback),
        (Some(Duration::from_secs(1_800)), true)
    );
    let desired = compiled(
        &service("progressDeadline: 30m\n  autoRollback: {disabled: true}"),
        "staging",
        "",
    )
    .unwrap()
    .desired;
    assert!(!desired.auto_rollback);
}

#[test]
fn preconditions_become_gates_in_the_order_of_the_config() {
    let text = changed(
        SMALL,
        &[(
            "{name: staging, runtimes: [{runtime: tool}]}",
            "{name: staging, runtimes: [{runtime: tool}], preconditions: [
           {sharedManualApproval: {name: launch, minApprovers: 2}},
           {manualApproval: {name: qa, description: look, everyAction: true}},
           {releaseChannelStable: {releaseChannel: early}}]},
         {name: early, runtimes: [{runtime: tool}]}",
        )],
    );
    let gates = compiled(&text, "staging", "").unwrap().desired.gates;
    assert_eq!(
        gates,
        [
            Gate::SharedApproval { name: "launch".to_owned(), description: None, min_approvers: 2 },
            Gate::ManualApproval {
                name: Some("qa".to_owned()),
                description: Some("look".to_owned()),
                every_action: true,
                min_approvers: 1
            },
            Gate::ChannelsStable { channels: vec!["early".parse().unwrap()] },
        ]
    );
}
