//! The only reader of clock and randomness. Everybody who needs the time is given a [`Clock`];
//! tests give a manual one and move it by hand.

use std::sync::OnceLock;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use schema::time::Timestamp;
use tokio::sync::watch;

/// Longest single sleep on the system clock. Timers are monotonic and deadlines are wall time, so a
/// clock that is set forward is noticed within this time: 10 s is far below any poll interval and
/// costs nothing.
const LONGEST_SLEEP: Duration = Duration::from_secs(10);

/// Where the kernel tells which boot this is, and for how long it has been up. Source:
/// proc_sys_kernel(5), proc_uptime(5).
const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";
const UPTIME: &str = "/proc/uptime";

/// Most milliseconds between the two looks at the steady clock around one at the wall's: more, and
/// the process stood still in between.
const READ_WITHIN_MS: i64 = 100;

/// Both clocks at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClockReading {
    /// The wall clock: what people mean by the time. It may be set.
    pub wall: Timestamp,
    /// Milliseconds since some moment of this process, which nobody sets; a machine that is
    /// suspended does not count them.
    pub steady_ms: i64,
}

/// The machine's run, for whoever compares two processes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MachineBoot {
    pub id: String,
    /// How long it has lasted, milliseconds, suspension included.
    pub uptime_ms: i64,
}

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
pub struct Manual(watch::Sender<ClockReading>);

impl Manual {
    /// A clock that shows `start`.
    pub fn starting_at(start: Timestamp) -> Self {
        Self(watch::Sender::new(ClockReading { wall: start, steady_ms: 0 }))
    }

    /// Sets the wall clock, ahead or back, as it is done with real ones: no time passes.
    pub fn set(&self, to: Timestamp) {
        self.0.send_modify(|now| now.wall = to);
    }

    /// Lets this many milliseconds pass.
    pub fn advance_ms(&self, millis: i64) {
        self.0.send_modify(|now| {
            *now = ClockReading {
                wall: now.wall.plus_ms(millis),
                steady_ms: now.steady_ms.saturating_add(millis),
            }
        });
    }
}

impl Clock {
    /// The present instant.
    pub fn now(&self) -> Timestamp {
        match self {
            Self::System => system_now(),
            Self::Manual(manual) => manual.0.borrow().wall,
        }
    }

    /// Both clocks.
    pub fn read(&self) -> ClockReading {
        match self {
            Self::System => {
                let mut before = steady_ms();
                loop {
                    let wall = system_now();
                    let steady_ms = steady_ms();
                    if steady_ms - before <= READ_WITHIN_MS {
                        return ClockReading { wall, steady_ms };
                    }
                    before = steady_ms;
                }
            }
            Self::Manual(manual) => *manual.0.borrow(),
        }
    }

    /// Which run of the machine this is; `None` where that cannot be known.
    pub fn boot(&self) -> Option<MachineBoot> {
        match self {
            Self::System => {
                let id = std::fs::read_to_string(BOOT_ID).ok()?.trim().to_owned();
                let uptime = std::fs::read_to_string(UPTIME).ok()?;
                let (seconds, hundredths) = uptime.split(' ').next()?.split_once('.')?;
                let uptime_ms = seconds.parse::<i64>().ok()?.checked_mul(1_000)?
                    + hundredths.parse::<i64>().ok()? * 10;
                Some(MachineBoot { id, uptime_ms })
            }
            Self::Manual(manual) => Some(MachineBoot {
                id: "manual".to_owned(),
                uptime_ms: manual.0.borrow().steady_ms,
            }),
        }
    }

    /// Returns when the clock shows `instant` or later; at once if it does already. Safe to drop
    /// and call again.
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
                let before = shown.borrow().wall;
                // The sender is held by `self`, so waiting cannot fail.
                let _ = shown.wait_for(|now| now.wall >= instant || now.wall < before).await;
            }
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "this is the one place that reads the clock")]
fn system_now() -> Timestamp {
    millis_of(SystemTime::now())
}

/// What the system says, also before 1970, where a clock may be that nobody has set.
fn millis_of(time: SystemTime) -> Timestamp {
    let millis = |since: Duration| i64::try_from(since.as_millis()).unwrap_or(i64::MAX);
    Timestamp::from_millis(match time.duration_since(UNIX_EPOCH) {
        Ok(since) => millis(since),
        Err(before) => -millis(before.duration()),
    })
}

fn steady_ms() -> i64 {
    static START: OnceLock<Instant> = OnceLock::new();
    schema::time::millis(START.get_or_init(Instant::now).elapsed())
}

/// Time since the machine was started, that which it slept included: it never steps, and it goes on
/// for a process that is stopped.
pub fn elapsed() -> std::time::Duration {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    std::time::Duration::new(now.tv_sec.unsigned_abs(), u32::try_from(now.tv_nsec).unwrap_or(0))
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

    #[test]
    fn setting_the_wall_clock_lets_no_time_pass() {
        let manual = Manual::starting_at(Timestamp::from_millis(1000));
        let clock = Clock::Manual(manual.clone());
        manual.set(Timestamp::from_millis(5_000));
        manual.advance_ms(10);
        assert_eq!(
            clock.read(),
            ClockReading { wall: Timestamp::from_millis(5_010), steady_ms: 10 }
        );
    }

    #[test]
    fn bad_input_a_clock_before_1970_is_read_as_it_is() {
        for millis in [0_u64, 1, 1_500, 86_400_000] {
            let past = UNIX_EPOCH - Duration::from_millis(millis);
            assert_eq!(millis_of(past), Timestamp::from_millis(-millis.cast_signed()));
        }
    }

    #[test]
    fn the_machine_knows_its_boot() {
        let boot = Clock::System.boot().unwrap();
        assert!(!boot.id.is_empty() && boot.uptime_ms > 0, "{boot:?}");
    }

    #[tokio::test]
    async fn sleeping_until_the_past_returns_at_once() {
        for clock in [Clock::System, Clock::Manual(Manual::starting_at(Timestamp::from_millis(0)))]
        {
            clock.sleep_until(Timestamp::from_millis(-1)).await;
        }
    }
}
