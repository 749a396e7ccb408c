//! Back-off and spread as arithmetic. Called wherever the engine plans an instant; the same
//! arguments give the same wait, so a replay gives the same plan.

use std::time::Duration;

use schema::id::InstanceId;
use schema::time::Timestamp;

use crate::desired::{Cadence, RetryPolicy};

/// Wait before another try when the surroundings kept a job from starting: first and longest. Short
/// at first because such faults (no process slot, API server busy) often pass at once; a minute
/// keeps a long outage cheap.
pub const MISFIRE_POLICY: RetryPolicy =
    RetryPolicy { base: Duration::from_secs(1), max: Duration::from_secs(60), max_attempts: None };

/// The wait after the `failures`th failure in a row (from 1): the base, doubled each time, up to
/// the maximum.
pub(crate) fn backoff(policy: &RetryPolicy, failures: u32) -> Duration {
    let doublings = failures.saturating_sub(1).min(40);
    let base = u64::try_from(policy.base.as_millis()).unwrap_or(u64::MAX);
    Duration::from_millis(base.saturating_mul(1 << doublings)).min(policy.max.max(policy.base))
}

/// When something that repeats is next due after a run that ended at `ended_at`; `None` when a
/// schedule has no instant left. `counter` makes the spread differ from run to run.
pub(crate) fn next_due(
    cadence: &Cadence,
    is_steady: bool,
    ended_at: Timestamp,
    instance: InstanceId,
    counter: u64,
) -> Option<Timestamp> {
    match cadence {
        Cadence::Interval { poll, .. } if !is_steady => Some(ended_at.plus(*poll)),
        Cadence::Interval { steady, .. } => {
            Some(ended_at.plus(steady.saturating_add(jitter(*steady, instance, counter))))
        }
        Cadence::Cron(schedule) => schedule.next_after(ended_at),
    }
}

/// 0 to 10 % of `base`, always the same for the same instance and counter. From a hash and not from
/// chance, so that the engine stays a function; SplitMix64's finaliser spreads neighbouring
/// counters over the whole range.
fn jitter(base: Duration, instance: InstanceId, counter: u64) -> Duration {
    let seed = instance
        .as_bytes()
        .iter()
        .fold(counter, |hash, byte| hash.wrapping_mul(0x0100_0000_01b3) ^ u64::from(*byte));
    let mut mixed = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^= mixed >> 31;
    let tenth = u64::try_from(base.as_millis() / 10).unwrap_or(u64::MAX - 1);
    Duration::from_millis(mixed % tenth.saturating_add(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of a policy as its row has it.
    fn check_backoff(base_ms: i64, max_ms: i64, failures: u32, expected_ms: i64) {
        let row = serde_json::json!({"base_ms": base_ms, "max_ms": max_ms, "max_attempts": null});
        let policy: RetryPolicy = serde_json::from_value(row).unwrap();
        assert_eq!(
            backoff(&policy, failures).as_millis(),
            expected_ms as u128,
            "{base_ms}..{max_ms} after {failures}"
        );
    }

    #[test]
    fn back_off_doubles_up_to_its_maximum() {
        for (failures, expected) in [
            (0, 30_000),
            (1, 30_000),
            (2, 60_000),
            (3, 120_000),
            (4, 240_000),
            (5, 300_000),
            (u32::MAX, 300_000),
        ] {
            check_backoff(30_000, 300_000, failures, expected);
        }
    }

    #[test]
    fn back_off_is_total() {
        check_backoff(i64::MAX, i64::MAX, 60, i64::MAX);
        check_backoff(0, 0, 1, 1);
        check_backoff(-5, -9, 3, 1);
        check_backoff(10, 5, 9, 10);
    }

    #[test]
    fn steady_polls_are_never_early_and_at_most_a_tenth_late() {
        let ended = Timestamp::from_millis(1_000_000);
        let cadence =
            Cadence::Interval { poll: Duration::from_secs(30), steady: Duration::from_secs(300) };
        let mut seen = std::collections::BTreeSet::new();
        for counter in 0..1_000 {
            let instance = InstanceId::derive(&[&[7]]);
            let wait = next_due(&cadence, true, ended, instance, counter).unwrap().since_ms(ended);
            assert!((300_000..=330_000).contains(&wait), "{wait}");
            seen.insert(wait);
        }
        assert!(seen.len() > 900, "spread over the range, got {} different waits", seen.len());
        assert_eq!(
            next_due(&cadence, false, ended, InstanceId::derive(&[]), 3),
            Some(ended.plus_ms(30_000))
        );
    }

    #[test]
    fn no_interval_overflows() {
        let longest = Duration::from_millis(i64::MAX as u64);
        let cadence = Cadence::Interval { poll: longest, steady: longest };
        for steady in [true, false] {
            assert_eq!(
                next_due(&cadence, steady, Timestamp::from_millis(5), InstanceId::derive(&[]), 0),
                Some(Timestamp::from_millis(i64::MAX))
            );
        }
    }
}
