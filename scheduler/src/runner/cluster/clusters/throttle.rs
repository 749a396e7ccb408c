//! How fast one cluster may be asked. Called before each request.

use std::sync::Mutex;
use std::time::Duration;

use tokio::time::Instant;

/// A bucket of requests that fills with time. Those of an apply go first.
#[derive(Debug)]
pub(in super::super) struct Throttle {
    per_second: f64,
    burst: f64,
    state: Mutex<ClustersState>,
}

#[derive(Debug)]
struct ClustersState {
    left: f64,
    at: Instant,
    /// Applies that wait; while there are any nobody else is let through.
    waiting_applies: usize,
}

/// Counts an apply that waits, also when it stops waiting halfway.
struct Waiting<'a>(&'a Throttle);

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.state.lock().expect("nobody panics with the lock").waiting_applies -= 1;
    }
}

impl Throttle {
    pub(super) fn new(per_second: f64, burst: f64) -> Self {
        Self {
            per_second,
            burst,
            state: Mutex::new(ClustersState {
                left: burst,
                at: Instant::now(),
                waiting_applies: 0,
            }),
        }
    }

    /// Waits until a request may be made.
    pub(in super::super) async fn pass(&self, is_apply: bool) {
        let _waiting = is_apply.then(|| {
            self.state.lock().expect("nobody panics with the lock").waiting_applies += 1;
            Waiting(self)
        });
        while let Some(wait) = self.try_pass(is_apply, Instant::now()) {
            tokio::time::sleep(wait).await;
        }
    }

    fn try_pass(&self, is_apply: bool, now: Instant) -> Option<Duration> {
        let mut state = self.state.lock().expect("nobody panics with the lock");
        state.left = (state.left
            + now.saturating_duration_since(state.at).as_secs_f64() * self.per_second)
            .min(self.burst);
        state.at = now;
        if state.left >= 1.0 && (is_apply || state.waiting_applies == 0) {
            state.left -= 1.0;
            return None;
        }
        // Others come a little later, so that an apply that is waiting is there before them.
        let missing = (1.0 - state.left).max(0.0) + if is_apply { 0.0 } else { 1.0 };
        Some(Duration::from_secs_f64(missing / self.per_second))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Requests in a row, each made as soon as it may be; returns when the last one was, counted
    /// from now.
    fn pass(throttle: &Throttle, requests: usize, is_apply: bool, start: Instant) -> Duration {
        let mut now = start;
        for _ in 0..requests {
            while let Some(wait) = throttle.try_pass(is_apply, now) {
                now += wait;
            }
        }
        now - start
    }

    #[test]
    fn a_burst_passes_and_then_the_rate_holds() {
        let throttle = Throttle::new(10.0, 5.0);
        let took = pass(&throttle, 25, true, Instant::now());
        assert!(
            (1_990..2_200).contains(&took.as_millis()),
            "{took:?} for 20 requests beyond the burst at 10 a second"
        );
    }

    #[test]
    fn an_apply_goes_before_fetches_that_came_first() {
        let throttle = Throttle::new(10.0, 1.0);
        let start = Instant::now();
        assert_eq!(pass(&throttle, 1, false, start), Duration::ZERO);
        let fetch = throttle.try_pass(false, start).expect("the burst is over");
        throttle.state.lock().unwrap().waiting_applies = 1;
        let apply = throttle.try_pass(true, start).expect("the burst is over");
        assert!(apply < fetch, "the apply comes first");
        assert!(
            throttle.try_pass(false, start + fetch).is_some(),
            "nobody else passes while it waits"
        );
        assert_eq!(throttle.try_pass(true, start + apply), None);
    }
}
