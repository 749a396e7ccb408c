//! What is done next for a target, and what after a failure. Pure.

use std::time::Duration;

use schema::time::Timestamp;

use super::SendFailure;
use crate::store::{NotificationLine, SentLately};

/// The while in which messages to a target are counted.
pub(super) const MINUTE_MS: i64 = 60_000;

/// Most messages to one target in that while; of more, one is made. What a person can read, and
/// below the one a second that Slack takes (source: its page on rate limits).
const PER_MINUTE: u64 = 10;

/// Most messages that wait for one target untried: of more one is made, also when the target takes
/// none.
const MOST_WAITING: u64 = 100;

/// Pause after the first failure; each one after that is twice as long as the one before.
const FIRST_PAUSE_MS: i64 = 5_000;

/// Longest pause: a target that is back is told a quarter of an hour later.
const LONGEST_PAUSE_MS: i64 = 15 * MINUTE_MS;

/// Longest pause that a target may ask for (`Retry-After`).
const LONGEST_ASKED_MS: i64 = 60 * MINUTE_MS;

/// How long a message is tried: a weekend.
const TRIED_FOR_MS: i64 = 3 * 24 * 60 * MINUTE_MS;

/// How often it is tried at least, so that neither a clock that is set on nor a daemon that was
/// away takes that from it: as often as the longest asked pauses fit in.
const LEAST_TRIES: u32 = (TRIED_FOR_MS / LONGEST_ASKED_MS) as u32;

/// How often a message is tried that the target will not have, as it says.
const REFUSED_TRIES: u32 = 3;

/// What is done for a target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LineMove {
    /// Its first message is sent.
    Send,
    /// Of all that nobody has tried yet one is made.
    Digest,
    /// Nothing until then.
    Wait(Timestamp),
}

/// What becomes of a message that was not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NextTry {
    At(Timestamp),
    Dead,
}

/// What is done next, when so much was sent in the last minute.
pub(super) fn next_move(line: &NotificationLine, lately: SentLately, now: Timestamp) -> LineMove {
    if line.untried > MOST_WAITING {
        return LineMove::Digest;
    }
    let head = &line.head;
    // A clock that was set back makes nobody wait for longer than any pause is.
    let is_possible = head.next_attempt_at <= now.plus_ms(LONGEST_ASKED_MS);
    if head.next_attempt_at > now && is_possible {
        return LineMove::Wait(head.next_attempt_at);
    }
    if head.attempts > 0 || lately.count + line.pending <= PER_MINUTE {
        return LineMove::Send;
    }
    if lately.count >= PER_MINUTE {
        let free = lately.first.unwrap_or(now).plus_ms(MINUTE_MS);
        return LineMove::Wait(free.max(now.plus_ms(1)));
    }
    if line.untried > 1 { LineMove::Digest } else { LineMove::Send }
}

/// What becomes of a message that failed so often before.
pub(super) fn after(
    failure: &SendFailure,
    attempts: u32,
    created_at: Timestamp,
    now: Timestamp,
) -> NextTry {
    let asked = match failure {
        SendFailure::Gone(_) => return NextTry::Dead,
        SendFailure::Refused(_) if attempts.saturating_add(1) >= REFUSED_TRIES => {
            return NextTry::Dead;
        }
        SendFailure::Refused(_) => None,
        SendFailure::Later { .. }
            if attempts.saturating_add(1) >= LEAST_TRIES
                && now >= created_at.plus_ms(TRIED_FOR_MS) =>
        {
            return NextTry::Dead;
        }
        SendFailure::Later { after, .. } => *after,
    };
    let pause = FIRST_PAUSE_MS.saturating_mul(1 << attempts.min(20)).min(LONGEST_PAUSE_MS);
    let asked = asked.map_or(0, millis).min(LONGEST_ASKED_MS);
    NextTry::At(now.plus_ms(pause.max(asked)))
}

fn millis(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use schema::api::{NotificationData, NotificationMessage};
    use schema::id::NotificationId;
    use schema::notification::NotificationKind;

    use super::*;
    use crate::store::PendingNotification;

    fn at(millis: i64) -> Timestamp {
        Timestamp::from_millis(millis)
    }

    fn line(pending: u64, untried: u64, attempts: u32, next_attempt_at: i64) -> NotificationLine {
        let data =
            NotificationData::of(NotificationId::from_bytes([0; 16]), "shop".parse().unwrap());
        let message =
            NotificationMessage { kind: NotificationKind::Failed, timestamp: at(0), data };
        NotificationLine {
            pending,
            untried,
            head: PendingNotification {
                application: "shop".parse().unwrap(),
                target: "chat".parse().unwrap(),
                message,
                attempts,
                created_at: at(0),
                next_attempt_at: at(next_attempt_at),
            },
        }
    }

    fn moved(line: NotificationLine, sent: u64) -> LineMove {
        let first = (sent > 0).then(|| at(1_000_000 - 10_000));
        next_move(&line, SentLately { count: sent, first }, at(1_000_000))
    }

    #[test]
    fn few_are_sent_one_by_one_and_many_as_one() {
        assert_eq!(moved(line(1, 1, 0, 0), 0), LineMove::Send);
        assert_eq!(moved(line(10, 10, 0, 0), 0), LineMove::Send);
        assert_eq!(moved(line(11, 11, 0, 0), 0), LineMove::Digest);
        assert_eq!(moved(line(2, 2, 0, 0), 8), LineMove::Send);
        assert_eq!(moved(line(2, 2, 0, 0), 9), LineMove::Digest);
        // The digest itself goes out, and then nothing for a while.
        assert_eq!(moved(line(1, 1, 0, 0), 9), LineMove::Send);
        assert_eq!(moved(line(1, 1, 0, 0), 10), LineMove::Wait(at(1_000_000 + 50_000)));
    }

    #[test]
    fn what_failed_waits_for_its_time_and_goes_first() {
        assert_eq!(moved(line(5, 4, 1, 1_000_500), 0), LineMove::Wait(at(1_000_500)));
        assert_eq!(moved(line(50, 49, 1, 0), 0), LineMove::Send);
        assert_eq!(moved(line(102, 101, 1, 1_000_500), 0), LineMove::Digest);
        // Written before the clock was set back by a year.
        assert_eq!(moved(line(1, 0, 1, 31_536_000_000), 0), LineMove::Send);
    }

    #[test]
    fn pauses_grow_up_to_a_quarter_of_an_hour_and_end_after_a_weekend() {
        let later = |after| SendFailure::Later { why: String::new(), after };
        let pause = |attempts, asked: Option<u64>, now: i64| match after(
            &later(asked.map(Duration::from_secs)),
            attempts,
            at(0),
            at(now),
        ) {
            NextTry::At(then) => Some(then.as_millis() - now),
            NextTry::Dead => None,
        };
        let pauses: Vec<_> = (0..9).map(|attempts| pause(attempts, None, 7).unwrap()).collect();
        let seconds = [5, 10, 20, 40, 80, 160, 320, 640, 900].map(|seconds| seconds * 1_000);
        assert_eq!(pauses, seconds);
        assert_eq!(pause(0, Some(42), 0), Some(42_000));
        assert_eq!(pause(9, Some(42), 0), Some(900_000), "never sooner than it would be");
        assert_eq!(pause(0, Some(1_000_000), 0), Some(3_600_000));
        assert_eq!(pause(u32::MAX, None, 0), Some(900_000));
        assert_eq!(pause(300, None, 3 * 86_400_000), None);
        assert_eq!(pause(300, None, 3 * 86_400_000 - 1), Some(900_000));
        // The clock was set on by a week, or the daemon was away.
        assert_eq!(pause(1, None, 7 * 86_400_000), Some(10_000));
        assert_eq!(pause(70, None, 7 * 86_400_000), Some(900_000));
        assert_eq!(pause(71, None, 7 * 86_400_000), None);
    }

    #[test]
    fn what_a_target_will_not_have_is_given_up_soon() {
        let refused = SendFailure::Refused(String::new());
        assert!(matches!(after(&refused, 1, at(0), at(1)), NextTry::At(_)));
        assert_eq!(after(&refused, 2, at(0), at(1)), NextTry::Dead);
        assert_eq!(after(&SendFailure::Gone(String::new()), 0, at(0), at(1)), NextTry::Dead);
    }
}
