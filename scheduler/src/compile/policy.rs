//! The times, limits and retries of a custom runtime, with every default of the config's reference filled in. Called by
//! `instance`.

use config;
use engine::desired::{ApplyPolicy, Cadence, FetchAnswer, InfoPolicy, PollPolicy, RetryPolicy, Window};
use schema::schedule::{Duration, Schedule};

use super::problem::{DocumentField, Problems};

/// `pollInterval` of fetch, milliseconds.
const FETCH_POLL_MS: i64 = 30_000;
/// `steadyStatePollInterval` of fetch, milliseconds.
const FETCH_STEADY_MS: i64 = 300_000;
/// `pollInterval` of getInfo, milliseconds.
const INFO_POLL_MS: i64 = 300_000;
/// `timeout` of fetch and getInfo, milliseconds.
const LOOK_TIMEOUT_MS: i64 = 600_000;
/// `convergenceGracePeriod`, milliseconds.
const GRACE_MS: i64 = 600_000;
/// First and longest wait of fetch's and getInfo's `retryPolicy`, milliseconds.
const LOOK_RETRY_MS: (i64, i64) = (30_000, 600_000);
/// First and longest wait of apply's `retryPolicy`, milliseconds.
const APPLY_RETRY_MS: (i64, i64) = (30_000, 300_000);

fn ms(duration: Option<Duration>, default_ms: i64) -> i64 {
    duration.map_or(default_ms, Duration::as_ms)
}

/// `convergenceGracePeriod`.
pub(super) fn grace_ms(custom: Option<&config::CustomRuntime>) -> i64 {
    ms(custom.and_then(|custom| custom.convergence_grace_period), GRACE_MS)
}

/// How to apply on a `fake` runtime.
pub(super) fn apply_of_fake() -> ApplyPolicy {
    ApplyPolicy {
        retryable_exit_codes: Vec::new(),
        retry: retry(None, APPLY_RETRY_MS),
        window: None,
        timeout_ms: None,
        stop_grace_ms: None,
    }
}

/// How to poll; `None` when something is wrong with a schedule.
pub(super) fn fetch(fetch: &config::FetchCommand, place: &DocumentField, problems: &mut Problems) -> Option<PollPolicy> {
    let poll_ms = ms(fetch.poll_interval, FETCH_POLL_MS);
    let steady_ms = ms(fetch.steady_state_poll_interval, FETCH_STEADY_MS);
    Some(PollPolicy {
        mode: match fetch.fetch_mode {
            config::FetchMode::ExitCode => FetchAnswer::ExitCode,
            config::FetchMode::StructuredOutput => FetchAnswer::StructuredOutput,
        },
        cadence: cadence(fetch.poll_schedule.as_deref(), fetch.timezone.as_deref(), (poll_ms, steady_ms), place, problems)?,
        retry: fetch.retry_policy.as_ref().map(|policy| retry(Some(policy), LOOK_RETRY_MS)),
        timeout_ms: ms(fetch.timeout, LOOK_TIMEOUT_MS),
        stop_grace_ms: None,
    })
}

/// How to apply; `None` when something is wrong with the window.
pub(super) fn apply(apply: &config::ApplyCommand, place: &DocumentField, problems: &mut Problems) -> Option<ApplyPolicy> {
    let mut retryable_exit_codes = apply.retryable_exit_codes.clone();
    retryable_exit_codes.sort_unstable();
    retryable_exit_codes.dedup();
    let window = match &apply.window {
        None => None,
        Some(window) => {
            let place = place.field("window").field("schedule");
            let opens = schedule(&window.schedule, window.timezone.as_deref(), &place, problems)?;
            Some(Window { opens, duration_ms: window.duration.as_ms() })
        }
    };
    Some(ApplyPolicy {
        retryable_exit_codes,
        retry: retry(apply.retry_policy.as_ref(), APPLY_RETRY_MS),
        window,
        timeout_ms: apply.timeout.map(Duration::as_ms),
        stop_grace_ms: None,
    })
}

/// How to inform; `None` when something is wrong with its schedule.
pub(super) fn get_info(info: &config::GetInfoCommand, place: &DocumentField, problems: &mut Problems) -> Option<InfoPolicy> {
    let poll_ms = ms(info.poll_interval, INFO_POLL_MS);
    Some(InfoPolicy {
        cadence: cadence(info.poll_schedule.as_deref(), info.timezone.as_deref(), (poll_ms, poll_ms), place, problems)?,
        retry: retry(info.retry_policy.as_ref(), LOOK_RETRY_MS),
        timeout_ms: ms(info.timeout, LOOK_TIMEOUT_MS),
        stop_grace_ms: None,
    })
}

fn cadence(
    cron: Option<&str>,
    zone: Option<&str>,
    (poll_ms, steady_ms): (i64, i64),
    place: &DocumentField,
    problems: &mut Problems,
) -> Option<Cadence> {
    match cron {
        Some(cron) => schedule(cron, zone, &place.field("pollSchedule"), problems).map(Cadence::Cron),
        None => Some(Cadence::Interval { poll_ms, steady_ms }),
    }
}

fn schedule(cron: &str, zone: Option<&str>, place: &DocumentField, problems: &mut Problems) -> Option<Schedule> {
    match Schedule::parse(cron, zone) {
        Ok(schedule) => Some(schedule),
        Err(error) => {
            problems.add(place.problem(error.to_string()));
            None
        }
    }
}

/// A policy with its defaults; the longest wait is never shorter than the first.
fn retry(policy: Option<&config::RetryPolicy>, (base_ms, max_ms): (i64, i64)) -> RetryPolicy {
    let given_max = policy.and_then(|policy| policy.max_interval);
    let base_ms = match policy.and_then(|policy| policy.base_interval) {
        Some(base) => base.as_ms(),
        // Only a short `maxInterval` is given: it holds from the first wait on.
        None => base_ms.min(ms(given_max, base_ms)),
    };
    let max_attempts = policy.and_then(|policy| policy.max_attempts).and_then(|attempts| u32::try_from(attempts).ok()).filter(|&n| n > 0);
    RetryPolicy { base_ms, max_ms: ms(given_max, max_ms).max(base_ms), max_attempts }
}
