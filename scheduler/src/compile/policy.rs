//! The times, limits and retries of a custom runtime, with every default of the config's reference
//! filled in. Called by `instance`.

use std::time::Duration;

use config;
use engine::desired::{
    ApplyPolicy, Cadence, FetchAnswer, InfoPolicy, PollPolicy, RetryPolicy, Window, WorkExitCodes,
};
use schema::schedule::{self, CronText, Timezone};

/// `pollInterval` of fetch.
const FETCH_POLL: Duration = Duration::from_secs(30);
/// `steadyStatePollInterval` of fetch.
const FETCH_STEADY: Duration = Duration::from_secs(300);
/// `pollInterval` of getInfo.
const INFO_POLL: Duration = Duration::from_secs(300);
/// `timeout` of fetch and getInfo.
const LOOK_TIMEOUT: Duration = Duration::from_secs(600);
/// `convergenceGracePeriod`.
const GRACE: Duration = Duration::from_secs(600);
/// First and longest wait of fetch's and getInfo's `retryPolicy`.
const LOOK_RETRY: (Duration, Duration) = (Duration::from_secs(30), Duration::from_secs(600));
/// First and longest wait of apply's `retryPolicy`.
const APPLY_RETRY: (Duration, Duration) = (Duration::from_secs(30), Duration::from_secs(300));

fn span(given: Option<schedule::Duration>, default: Duration) -> Duration {
    given.map_or(default, Duration::from)
}

/// `convergenceGracePeriod`.
pub(super) fn grace(custom: Option<&config::CustomRuntime>) -> Duration {
    span(custom.and_then(|custom| custom.convergence_grace_period), GRACE)
}

/// How to apply on a `fake` runtime.
pub(super) fn apply_of_fake() -> ApplyPolicy {
    ApplyPolicy {
        retryable_exit_codes: Vec::new(),
        retry: retry(None, APPLY_RETRY),
        window: None,
        timeout: None,
        stop_grace: None,
    }
}

/// How to poll.
pub(super) fn fetch(fetch: &config::FetchCommand) -> PollPolicy {
    let poll = span(fetch.poll_interval, FETCH_POLL);
    let steady = span(fetch.steady_state_poll_interval, FETCH_STEADY);
    PollPolicy {
        mode: match fetch.fetch_mode {
            config::FetchMode::ExitCode => FetchAnswer::ExitCode,
            config::FetchMode::StructuredOutput => FetchAnswer::StructuredOutput,
        },
        cadence: cadence(fetch.poll_schedule.as_ref(), fetch.timezone, (poll, steady)),
        retry: fetch.retry_policy.as_ref().map(|policy| retry(Some(policy), LOOK_RETRY)),
        timeout: span(fetch.timeout, LOOK_TIMEOUT),
        stop_grace: None,
        work: WorkExitCodes::chosen(&fetch.work_exit_codes),
    }
}

/// How to apply.
pub(super) fn apply(apply: &config::ApplyCommand) -> ApplyPolicy {
    let mut retryable_exit_codes = apply.retryable_exit_codes.clone();
    retryable_exit_codes.sort_unstable();
    retryable_exit_codes.dedup();
    let window = apply.window.as_ref();
    let window = window.map(|window| Window {
        opens: window.schedule.in_zone(window.timezone),
        duration: window.duration.into(),
    });
    ApplyPolicy {
        retryable_exit_codes,
        retry: retry(apply.retry_policy.as_ref(), APPLY_RETRY),
        window,
        timeout: apply.timeout.map(Duration::from),
        stop_grace: None,
    }
}

/// How to inform.
pub(super) fn get_info(info: &config::GetInfoCommand) -> InfoPolicy {
    let poll = span(info.poll_interval, INFO_POLL);
    InfoPolicy {
        cadence: cadence(info.poll_schedule.as_ref(), info.timezone, (poll, poll)),
        retry: retry(info.retry_policy.as_ref(), LOOK_RETRY),
        timeout: span(info.timeout, LOOK_TIMEOUT),
        stop_grace: None,
    }
}

fn cadence(
    cron: Option<&CronText>,
    zone: Option<Timezone>,
    (poll, steady): (Duration, Duration),
) -> Cadence {
    cron.map_or(Cadence::Interval { poll, steady }, |cron| Cadence::Cron(cron.in_zone(zone)))
}

/// A policy with its defaults.
fn retry(policy: Option<&config::RetryPolicy>, defaults: (Duration, Duration)) -> RetryPolicy {
    let (base, max) = config::RetryPolicy::waits(policy, defaults);
    let max_attempts = policy
        .and_then(|policy| policy.max_attempts)
        .and_then(|attempts| u32::try_from(attempts).ok())
        .filter(|&n| n > 0);
    RetryPolicy { base, max, max_attempts }
}
