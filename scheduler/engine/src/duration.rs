//! Spans of time in the sentences for people.

use std::time::Duration;

/// A duration as people write it: `1h30m`, `45s`, `1.5s`.
pub(crate) fn duration(span: Duration) -> String {
    let ms = span.as_millis();
    let (hours, minutes, seconds, rest) =
        (ms / 3_600_000, ms / 60_000 % 60, ms / 1_000 % 60, ms % 1_000);
    let mut text = String::new();
    for (count, unit) in [(hours, "h"), (minutes, "m")] {
        if count > 0 {
            text.push_str(&format!("{count}{unit}"));
        }
    }
    if rest > 0 {
        text.push_str(format!("{seconds}.{rest:03}").trim_end_matches('0'));
        text.push('s');
    } else if seconds > 0 || text.is_empty() {
        text.push_str(&format!("{seconds}s"));
    }
    text
}
