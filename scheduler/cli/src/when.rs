//! The present instant, and instants and spans as people say them.

use std::fmt::Display;
use std::time::{SystemTime, UNIX_EPOCH};

use chrono::{Local, Offset, TimeZone, Timelike};
use schema::time::Timestamp;
pub use schema::when::{ago, duration, length, span, until};

/// The present instant by this machine's clock.
#[expect(
    clippy::disallowed_methods,
    reason = "a client shows ages against the clock of the machine it runs on; nothing is decided \
              by it"
)]
pub fn now() -> Timestamp {
    let millis = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis();
    Timestamp::from_millis(i64::try_from(millis).unwrap_or(i64::MAX))
}

/// Characters of an instant as the scheduler writes it: `2026-07-06T07:00:00.000Z`.
const INSTANT_CHARS: usize = 24;

/// A sentence with its instants as the clock on this machine's wall shows them:
/// `2026-07-06 09:00 +02:00`. Where that is UTC they stay, and in commands too.
pub fn local_in(text: &str) -> String {
    in_zone(text, &Local)
}

fn in_zone<Z: TimeZone<Offset: Display>>(text: &str, zone: &Z) -> String {
    let shown = |part: &str| {
        let (mut shown, mut rest) = (String::with_capacity(part.len()), part);
        while let Some(at) = rest.find('T') {
            let begin = at.saturating_sub("2026-07-06".len());
            let instant = rest.get(begin..begin + INSTANT_CHARS).filter(|word| word.ends_with('Z'));
            let local = instant
                .and_then(|word| word.parse::<Timestamp>().ok())
                .and_then(|instant| local(instant, zone));
            let (kept, next) = match &local {
                Some(_) => (begin, begin + INSTANT_CHARS),
                None => (at + 1, at + 1),
            };
            shown += &rest[..kept];
            shown += local.as_deref().unwrap_or_default();
            rest = &rest[next..];
        }
        shown + rest
    };
    let parts = text.split('`').enumerate();
    let parts = parts.map(|(at, part)| if at % 2 == 0 { shown(part) } else { part.to_owned() });
    parts.collect::<Vec<_>>().join("`")
}

/// An instant in a column of its own, to the second, as the clock on this machine's wall shows it.
pub fn on_the_wall(at: Timestamp) -> String {
    in_column(at, &Local)
}

fn in_column<Z: TimeZone<Offset: Display>>(at: Timestamp, zone: &Z) -> String {
    let shown = at.to_utc().with_timezone(zone);
    match shown.offset().fix().local_minus_utc() {
        0 => shown.format("%Y-%m-%dT%H:%M:%SZ").to_string(),
        _ => shown.format("%Y-%m-%d %H:%M:%S %:z").to_string(),
    }
}

/// `None` where the clock shows what the instant says.
fn local<Z: TimeZone<Offset: Display>>(instant: Timestamp, zone: &Z) -> Option<String> {
    let shown = instant.to_utc().with_timezone(zone);
    let format = if shown.second() == 0 { "%Y-%m-%d %H:%M %:z" } else { "%Y-%m-%d %H:%M:%S %:z" };
    (shown.offset().fix().local_minus_utc() != 0).then(|| shown.format(format).to_string())
}

#[cfg(test)]
mod tests {
    use chrono::{FixedOffset, Utc};

    use super::*;

    #[test]
    fn instants_in_a_sentence_are_those_of_the_clock_on_the_wall() {
        let zone = FixedOffset::east_opt(2 * 3600).unwrap();
        let text = "The window opens at 2026-07-06T07:00:00.000Z (Mon 2026-07-06 09:00 in \
                    Europe/Berlin), not at 2026-07-06T22:00:05.500Z; `x 2026-07-06T07:00:00.000Z`";
        assert_eq!(
            in_zone(text, &zone),
            "The window opens at 2026-07-06 09:00 +02:00 (Mon 2026-07-06 09:00 in \
             Europe/Berlin), not at 2026-07-07 00:00:05 +02:00; `x 2026-07-06T07:00:00.000Z`"
        );
        assert_eq!(in_zone(text, &Utc), text);
        let at: Timestamp = "2026-07-06T22:00:05.500Z".parse().unwrap();
        assert_eq!(in_column(at, &zone), "2026-07-07 00:00:05 +02:00");
        assert_eq!(in_column(at, &Utc), "2026-07-06T22:00:05Z");
        for other in ["", "T", "TTL", "äöüäöüäöüT07:00:00.000Zäöü", "2026-99-06T07:00:00.000Z"]
        {
            assert_eq!(in_zone(other, &zone), other);
        }
    }
}
