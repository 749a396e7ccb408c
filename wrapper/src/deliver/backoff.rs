//! How long to wait before another try, as arithmetic: exponential with full jitter, and what the
//! scheduler asks for. Called by `courier`, `heart` and `inputs`.

use std::hash::{BuildHasher, RandomState};
use std::time::{Duration, SystemTime};

/// Longest first wait. A scheduler that was restarted is back within a second or so.
const FIRST: Duration = Duration::from_secs(1);

/// Longest wait of our own: a scheduler that comes back after an hour hears of everything within
/// this time.
const LONGEST: Duration = Duration::from_secs(15);

/// Shortest wait, so that bad luck with the dice makes no tight loop.
const SHORTEST: Duration = Duration::from_millis(10);

/// Longest `Retry-After` that is heeded: a slip of units must not cost the report.
const LONGEST_ASKED: Duration = Duration::from_secs(5 * 60);

/// How often it failed in a row.
#[derive(Debug, Default)]
pub(crate) struct Backoff {
    tries: u32,
}

impl Backoff {
    /// It worked.
    pub(crate) fn reset(&mut self) {
        self.tries = 0;
    }

    /// It failed: how long to wait. `asked` is what the scheduler asked for, which is the least.
    pub(crate) fn next(&mut self, asked: Option<Duration>) -> Duration {
        let ceiling = FIRST.saturating_mul(1 << self.tries.min(10)).min(LONGEST);
        self.tries = self.tries.saturating_add(1);
        match asked {
            Some(asked) => asked.min(LONGEST_ASKED) + FIRST.mul_f64(random() / 4.0),
            None => ceiling.mul_f64(random()).max(SHORTEST),
        }
    }
}

/// From 0 to 1. The standard library's hasher is seeded by the system and good enough to spread
/// requests.
fn random() -> f64 {
    let bits = RandomState::new().hash_one(0) >> 11;
    bits as f64 / (1_u64 << 53) as f64
}

/// What `Retry-After` asks for: seconds, or a date (RFC 9110, 10.2.3), which is taken against the
/// answer's own `Date` where there is one, for our clock may be wrong.
pub(crate) fn retry_after(value: &str, date: Option<&str>, now: SystemTime) -> Option<Duration> {
    let value = value.trim();
    if let Ok(seconds) = value.parse() {
        return Some(Duration::from_secs(seconds));
    }
    let at = httpdate::parse_http_date(value).ok()?;
    let now = date.and_then(|date| httpdate::parse_http_date(date).ok()).unwrap_or(now);
    Some(at.duration_since(now).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_a_limit_and_start_below_a_second() {
        for _ in 0..200 {
            let mut backoff = Backoff::default();
            for limit in [1, 2, 4, 8, 15, 15, 15] {
                let wait = backoff.next(None);
                assert!(
                    (SHORTEST..=Duration::from_secs(limit)).contains(&wait),
                    "{wait:?} of {limit} s"
                );
            }
            backoff.reset();
            assert!(backoff.next(None) <= FIRST);
        }
    }

    #[test]
    fn waits_are_spread_over_the_whole_range() {
        let waits: Vec<Duration> = (0..200).map(|_| Backoff::default().next(None)).collect();
        assert!(
            waits.iter().any(|wait| *wait < FIRST / 4)
                && waits.iter().any(|wait| *wait > FIRST * 3 / 4)
        );
    }

    #[test]
    fn what_the_scheduler_asks_for_is_the_least_within_reason() {
        let asked = Duration::from_secs(7);
        let wait = Backoff::default().next(Some(asked));
        assert!((asked..asked + FIRST).contains(&wait), "{wait:?}");
        assert!(Backoff::default().next(Some(Duration::MAX)) <= LONGEST_ASKED + FIRST);
    }

    #[test]
    fn retry_after_comes_in_two_forms() {
        let epoch = SystemTime::UNIX_EPOCH;
        let check = |value: &str, date: Option<&str>, seconds: Option<u64>| {
            assert_eq!(
                retry_after(value, date, epoch),
                seconds.map(Duration::from_secs),
                "{value}"
            );
        };
        check("120", None, Some(120));
        check(" 0 ", None, Some(0));
        check("Thu, 01 Jan 1970 00:00:09 GMT", None, Some(9));
        check("Fri, 31 Dec 1999 23:59:59 GMT", Some("Fri, 31 Dec 1999 23:59:29 GMT"), Some(30));
        check("Fri, 31 Dec 1999 23:59:59 GMT", Some("Sat, 01 Jan 2000 00:00:00 GMT"), Some(0));
        check("soon", None, None);
        check("-1", None, None);
        check("", None, None);
    }
}
