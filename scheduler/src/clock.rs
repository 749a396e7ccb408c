//! The only reader of clock and randomness. Everybody who needs the time is given a [`Clock`]; tests give a manual one
//! and move it by hand.

use std::time::Duration;

use schema::time::Timestamp;
use tokio::sync::watch;

/// Longest single sleep on the system clock. Timers are monotonic and deadlines are wall time, so a clock that is set
/// forward is noticed within this time: 10 s is far below any poll interval and costs nothing.
const LONGEST_SLEEP: Duration = Duration::from_secs(10);

/// Where the time comes from. Cloned freely; clones of a manual clock show the same time.
#[derive(Debug, Clone)]
pub enum Clock {
    /// The machine's.
    System,
    /// Moved by hand.
    Manual(Manual),
}

/// A clock that stands still until it is moved.
#[derive(Debug, Clone)]
pub struct Manual(watch::Sender<Timestamp>);

impl Manual {
    /// A clock that shows `start`.
    pub fn starting_at(start: Timestamp) -> Self {
        Self(watch::Sender::new(start))
    }

    /// Moves the clock to `to`; setting it back is allowed, as it is with real ones.
    pub fn set(&self, to: Timestamp) {
        self.0.send_replace(to);
    }

    /// Moves the clock by this many milliseconds.
    pub fn advance_ms(&self, millis: i64) {
        self.0.send_modify(|now| *now = now.plus_ms(millis));
    }
}

impl Clock {
    /// The present instant.
    pub fn now(&self) -> Timestamp {
        match self {
            Self::System => system_now(),
            Self::Manual(manual) => *manual.0.borrow(),
        }
    }

    /// Returns when the clock shows `instant` or later; at once if it does already. Safe to drop and call again.
    pub async fn sleep_until(&self, instant: Timestamp) {
        match self {
            Self::System => {
                let mut before = system_now();
                while let Ok(left @ 1..) = u64::try_from(instant.since_ms(before)) {
                    tokio::time::sleep(Duration::from_millis(left).min(LONGEST_SLEEP)).await;
                    let now = system_now();
                    if now < before {
                        return;
                    }
                    before = now;
                }
            }
            Self::Manual(manual) => {
                let mut shown = manual.0.subscribe();
                let before = *shown.borrow();
                // The sender is held by `self`, so waiting cannot fail.
                let _ = shown.wait_for(|now| *now >= instant || *now < before).await;
            }
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "this is the one place that reads the clock")]
fn system_now() -> Timestamp {
    chrono::Utc::now().into()
}

/// Fresh random bytes, fit for keys and tokens.
///
/// # Panics
/// When the operating system has no randomness to give, which on Linux means that it is broken.
#[expect(clippy::disallowed_methods, reason = "this is the one place that reads randomness")]
pub fn random<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).expect("the operating system has randomness");
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_manual_clock_wakes_sleepers_when_it_gets_there() {
        let manual = Manual::starting_at(Timestamp::from_millis(1000));
        let clock = Clock::Manual(manual.clone());
        let sleeper = tokio::spawn({
            let clock = clock.clone();
            async move {
                clock.sleep_until(Timestamp::from_millis(2000)).await;
                clock.now()
            }
        });
        manual.advance_ms(500);
        tokio::task::yield_now().await;
        assert!(!sleeper.is_finished(), "the clock shows 1500");
        manual.advance_ms(500);
        assert_eq!(sleeper.await.unwrap(), Timestamp::from_millis(2000));
    }

    #[tokio::test]
    async fn sleeping_until_the_past_returns_at_once() {
        for clock in [Clock::System, Clock::Manual(Manual::starting_at(Timestamp::from_millis(0)))] {
            clock.sleep_until(Timestamp::from_millis(-1)).await;
        }
    }
}
