//! Back-off and spread as arithmetic. Called wherever the engine plans an instant; the same arguments give the same
//! wait, so a replay gives the same plan.

use schema::id::InstanceId;
use schema::time::Timestamp;

use crate::desired::{Cadence, RetryPolicy};

/// Wait before another try when the surroundings kept a job from starting: first and longest, milliseconds. Short at
/// first because such faults (no process slot, API server busy) often pass at once; a minute keeps a long outage cheap.
pub const MISFIRE_POLICY: RetryPolicy = RetryPolicy { base_ms: 1_000, max_ms: 60_000, max_attempts: None };

/// The wait after the `failures`th failure in a row (from 1), milliseconds: the base, doubled each time, up to the
/// maximum.
pub(crate) fn backoff_ms(policy: &RetryPolicy, failures: u32) -> i64 {
    let doublings = failures.saturating_sub(1).min(40);
    let base = policy.base_ms.max(1);
    base.saturating_mul(1_i64 << doublings).min(policy.max_ms.max(base))
}

/// When something that repeats is next due after a run that ended at `ended_at`; `None` when a schedule has no instant
/// left. `counter` makes the spread differ from run to run.
pub(crate) fn next_due(cadence: &Cadence, steady: bool, ended_at: Timestamp, instance: InstanceId, counter: u64) -> Option<Timestamp> {
    match cadence {
        Cadence::Interval { poll_ms, .. } if !steady => Some(ended_at.plus_ms((*poll_ms).max(1))),
        Cadence::Interval { steady_ms, .. } => {
            let base = (*steady_ms).max(1);
            Some(ended_at.plus_ms(base.saturating_add(jitter_ms(base, instance, counter))))
        }
        Cadence::Cron(schedule) => schedule.next_after(ended_at),
    }
}

/// 0 to 10 % of `base_ms`, always the same for the same instance and counter. From a hash and not from chance, so that
/// the engine stays a function; SplitMix64's finaliser spreads neighbouring counters over the whole range.
fn jitter_ms(base_ms: i64, instance: InstanceId, counter: u64) -> i64 {
    let seed = instance.as_bytes().iter().fold(counter, |hash, byte| hash.wrapping_mul(0x0100_0000_01b3) ^ u64::from(*byte));
    let mut mixed = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^= mixed >> 31;
    let span = (base_ms / 10).max(0) as u64;
    i64::try_from(mixed % (span + 1)).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_backoff(base_ms: i64, max_ms: i64, failures: u32, expected: i64) {
        assert_eq!(
            backoff_ms(&RetryPolicy { base_ms, max_ms, max_attempts: None }, failures),
            expected,
            "{base_ms}..{max_ms} after {failures}"
        );
    }

    #[test]
    fn back_off_doubles_up_to_its_maximum() {
        for (failures, expected) in [(0, 30_000), (1, 30_000), (2, 60_000), (3, 120_000), (4, 240_000), (5, 300_000), (u32::MAX, 300_000)] {
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
        let cadence = Cadence::Interval { poll_ms: 30_000, steady_ms: 300_000 };
        let mut seen = std::collections::BTreeSet::new();
        for counter in 0..1_000 {
            let instance = InstanceId::derive(&[&[7]]);
            let wait = next_due(&cadence, true, ended, instance, counter).unwrap().since_ms(ended);
            assert!((300_000..=330_000).contains(&wait), "{wait}");
            seen.insert(wait);
        }
        assert!(seen.len() > 900, "spread over the range, got {} different waits", seen.len());
        assert_eq!(next_due(&cadence, false, ended, InstanceId::derive(&[]), 3), Some(ended.plus_ms(30_000)));
    }

    #[test]
    fn no_interval_overflows() {
        let cadence = Cadence::Interval { poll_ms: i64::MAX, steady_ms: i64::MAX };
        for steady in [true, false] {
            assert_eq!(
                next_due(&cadence, steady, Timestamp::from_millis(5), InstanceId::derive(&[]), 0),
                Some(Timestamp::from_millis(i64::MAX))
            );
        }
    }
}
