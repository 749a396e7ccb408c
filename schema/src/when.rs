//! Instants and spans as people say them: `3m ago`, `in 20s`. The client and the pages tell them
//! alike.

use std::time::Duration;

use crate::time::Timestamp;

/// How long ago `then` was, in one or two units; a future instant was `0s` ago.
pub fn ago(then: Timestamp, now: Timestamp) -> String {
    span(now.since_ms(then))
}

/// When `then` will be: `in 20s`, or `now` once it has passed.
pub fn until(then: Timestamp, now: Timestamp) -> String {
    let left = then.since_ms(now);
    if left <= 0 { "now".to_owned() } else { format!("in {}", span(left.saturating_add(999))) }
}

/// A span in its one or two largest units: `45s`, `3m20s`, `5h`, `12d`.
pub fn span(millis: i64) -> String {
    let seconds = millis.max(0) / 1000;
    let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / 86_400);
    match () {
        () if days >= 3 => format!("{days}d"),
        () if hours >= 10 => format!("{hours}h"),
        () if hours >= 1 => two(hours, 'h', minutes % 60, 'm'),
        () if minutes >= 10 => format!("{minutes}m"),
        () if minutes >= 1 => two(minutes, 'm', seconds % 60, 's'),
        () => format!("{seconds}s"),
    }
}

/// How long something took: as [`span`], but below a second in milliseconds and below ten with a
/// tenth.
pub fn length(millis: i64) -> String {
    match millis {
        ..1000 => format!("{}ms", millis.max(0)),
        1000..10_000 => format!("{}.{}s", millis / 1000, millis / 100 % 10),
        _ => span(millis),
    }
}

/// A [`Duration`] as [`length`] says it.
pub fn duration(duration: Duration) -> String {
    length(crate::time::millis(duration))
}

fn two(large: i64, large_unit: char, small: i64, small_unit: char) -> String {
    if small == 0 {
        format!("{large}{large_unit}")
    } else {
        format!("{large}{large_unit}{small}{small_unit}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(millis: i64, expected: &str) {
        assert_eq!(span(millis), expected, "{millis} ms");
    }

    #[test]
    fn a_span_shows_its_largest_units() {
        check(-5, "0s");
        check(999, "0s");
        check(59_999, "59s");
        check(60_000, "1m");
        check(200_000, "3m20s");
        check(601_000, "10m");
        check(3_600_000, "1h");
        check(5_000_000, "1h23m");
        check(86_400_000 * 2, "48h");
        check(86_400_000 * 9, "9d");
        check(i64::MAX, "106751991167d");
    }

    #[test]
    fn a_short_length_is_told_finely() {
        for (millis, expected) in
            [(-1, "0ms"), (999, "999ms"), (1_050, "1.0s"), (9_999, "9.9s"), (10_000, "10s")]
        {
            assert_eq!(length(millis), expected);
        }
    }

    #[test]
    fn what_has_passed_is_now() {
        let at = Timestamp::from_millis;
        assert_eq!(until(at(1_000), at(1_000)), "now");
        assert_eq!(until(at(1_001), at(1_000)), "in 1s");
    }
}
