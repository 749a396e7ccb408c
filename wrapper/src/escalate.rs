//! Asking and killing, as pure arithmetic: signals and deadlines so far, now -> what to send.
//! Called by `supervise`, which sends it and sleeps until [`Escalation::next`].

use std::time::{Duration, Instant};

use rustix::process::Signal;

use crate::signals::Number;

/// Time between two KILLs to what does not go away: it may be forking.
const KILL_AGAIN: Duration = Duration::from_millis(100);

/// The same signal again within this time is the same request: `timeout` sends it to its child and
/// then to its process group, which has the child in it. Whoever means a second one takes longer,
/// or sends another signal.
const SAME_REQUEST: Duration = Duration::from_millis(5);

/// What to send.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Send {
    /// This signal, to those who are asked.
    Ask(Number),
    /// KILL, to everything.
    Kill,
}

/// Where a run stands between "nobody asked it to stop" and "killed".
#[derive(Debug)]
pub(crate) struct Escalation {
    stop_signal: Number,
    kill_after: Duration,
    timeout: Option<Instant>,
    idle: Option<(Duration, Instant)>,
    /// When KILL is due; set by the first request to stop.
    kill_at: Option<Instant>,
    /// Whether KILL was sent already.
    killed: bool,
    /// Whether it was the scheduler that asked first: its request and the TERM that the kubelet
    /// sends for the same reason are one.
    cancelled: bool,
    /// The signal by which somebody asked last, and when.
    requested: Option<(Number, Instant)>,
    /// The signal by which somebody asked first, when neither the scheduler nor a deadline did.
    pub(crate) stopped_by: Option<Number>,
    /// Whether the declared timeout, or the one without output, ended it.
    pub(crate) timed_out: bool,
    /// Whether KILL was sent because the first request was not heeded in time.
    pub(crate) killed_after_grace: bool,
}

impl Escalation {
    /// A run that starts `now`.
    pub(crate) fn new(
        stop_signal: Number,
        kill_after: Duration,
        timeout: Option<Duration>,
        idle: Option<Duration>,
        now: Instant,
    ) -> Self {
        Self {
            stop_signal,
            kill_after,
            timeout: timeout.and_then(|timeout| now.checked_add(timeout)),
            idle: idle.and_then(|idle| Some((idle, now.checked_add(idle)?))),
            kill_at: None,
            killed: false,
            cancelled: false,
            requested: None,
            stopped_by: None,
            timed_out: false,
            killed_after_grace: false,
        }
    }

    /// Whether anybody, or a deadline, asked it to stop.
    pub(crate) fn asked(&self) -> bool {
        self.kill_at.is_some()
    }

    /// How long what was asked to stop has to end.
    pub(crate) fn kill_after(&self) -> Duration {
        self.kill_after
    }

    /// The scheduler asks it to stop. `None` when somebody did already.
    pub(crate) fn cancel(&mut self, now: Instant) -> Option<Send> {
        if self.asked() {
            return None;
        }
        self.cancelled = true;
        self.kill_at = now.checked_add(self.kill_after);
        Some(Send::Ask(self.stop_signal))
    }

    /// It waits for a terminal that it can never have. `None` when somebody asked it to stop
    /// already.
    pub(crate) fn hang_up(&mut self, now: Instant) -> Option<Send> {
        if self.asked() {
            return None;
        }
        self.kill_at = now.checked_add(self.kill_after);
        Some(Send::Ask(Signal::HUP.as_raw()))
    }

    /// We got a signal that is for the child; what to send, if anything.
    pub(crate) fn signal(&mut self, number: Number, now: Instant) -> Option<Send> {
        let stops = number == Signal::TERM.as_raw() || number == Signal::INT.as_raw();
        let sent = if number == Signal::TERM.as_raw() { self.stop_signal } else { number };
        if stops {
            let before = self.requested.replace((number, now));
            if before.is_some_and(|(same, at)| same == number && now < at + SAME_REQUEST) {
                return None;
            }
        }
        match (stops, self.asked()) {
            (false, _) => Some(Send::Ask(sent)),
            // It was asked already, and many tools take a second request for "at once".
            (true, true) if std::mem::take(&mut self.cancelled) => None,
            (true, false) => {
                self.stopped_by = Some(number);
                self.kill_at = now.checked_add(self.kill_after);
                Some(Send::Ask(sent))
            }
            (true, true) => {
                self.kill_at = Some(now + KILL_AGAIN);
                self.killed = true;
                Some(Send::Kill)
            }
        }
    }

    /// The child wrote something.
    pub(crate) fn output(&mut self, now: Instant) {
        if let Some((idle, at)) = &mut self.idle {
            *at = now.checked_add(*idle).unwrap_or(*at);
        }
    }

    /// Everything shifts by the time in which we and the child were stopped.
    pub(crate) fn paused(&mut self, pause: Duration) {
        let shift = |at: &mut Instant| *at = at.checked_add(pause).unwrap_or(*at);
        self.timeout.iter_mut().for_each(shift);
        self.kill_at.iter_mut().for_each(shift);
        if let Some((_, at)) = &mut self.idle {
            shift(at);
        }
    }

    /// Time has passed: what is due now, if anything.
    pub(crate) fn tick(&mut self, now: Instant) -> Option<Send> {
        if let Some(at) = self.kill_at {
            if now < at {
                return None;
            }
            self.killed_after_grace |= !self.killed;
            self.killed = true;
            self.kill_at = Some(now + KILL_AGAIN);
            return Some(Send::Kill);
        }
        let due = self.timeout.into_iter().chain(self.idle.map(|(_, at)| at)).any(|at| now >= at);
        if !due {
            return None;
        }
        self.timed_out = true;
        self.kill_at = now.checked_add(self.kill_after);
        Some(Send::Ask(self.stop_signal))
    }

    /// When the run is over at the latest, whatever is left of it, if a timeout says so.
    pub(crate) fn timeout(&self) -> Option<Instant> {
        self.timeout
    }

    /// When to call [`Self::tick`] next.
    pub(crate) fn next(&self) -> Option<Instant> {
        self.kill_at.or_else(|| self.timeout.into_iter().chain(self.idle.map(|(_, at)| at)).min())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TERM: Number = 15;
    const INT: Number = 2;
    const SECOND: Duration = Duration::from_secs(1);

    fn run(timeout: Option<Duration>, idle: Option<Duration>) -> (Escalation, Instant) {
        let now = Instant::now();
        (Escalation::new(INT, 10 * SECOND, timeout, idle, now), now)
    }

    #[test]
    fn the_first_stop_asks_and_the_second_kills_at_once() {
        let (mut run, now) = run(None, None);
        assert_eq!(run.signal(TERM, now), Some(Send::Ask(INT)), "TERM becomes the stop signal");
        assert_eq!(run.tick(now + 9 * SECOND), None);
        assert_eq!(run.signal(INT, now + 9 * SECOND), Some(Send::Kill));
        run.tick(now + 11 * SECOND);
        assert!(!run.killed_after_grace);
    }

    #[test]
    fn the_same_signal_sent_twice_at_once_is_one_request() {
        let (mut run, now) = run(None, None);
        let soon = now + SAME_REQUEST / 2;
        assert_eq!(run.signal(TERM, now), Some(Send::Ask(INT)));
        assert_eq!(run.signal(TERM, soon), None, "as `timeout` does it");
        assert_eq!(run.signal(INT, soon), Some(Send::Kill), "another signal is another request");
        let (mut run, now) = super::tests::run(None, None);
        run.signal(TERM, now);
        assert_eq!(
            run.signal(TERM, now + SAME_REQUEST),
            Some(Send::Kill),
            "and so is one that takes its time"
        );
    }

    #[test]
    fn a_cancel_and_the_kubelets_term_for_it_are_one_request() {
        let (mut run, now) = run(None, None);
        assert_eq!(run.cancel(now), Some(Send::Ask(INT)));
        assert_eq!(run.cancel(now), None);
        assert_eq!(run.signal(TERM, now + SECOND), None, "asked already");
        assert_eq!(run.tick(now + 9 * SECOND), None);
        assert_eq!(run.signal(TERM, now + 9 * SECOND), Some(Send::Kill));
        let (mut run, now) = super::tests::run(None, None);
        run.signal(TERM, now);
        assert_eq!(run.cancel(now + SECOND), None);
        assert_eq!(run.tick(now + 10 * SECOND), Some(Send::Kill));
    }

    #[test]
    fn what_can_never_have_its_terminal_is_hung_up_on_once_and_then_killed() {
        let (mut run, now) = run(None, None);
        assert_eq!(run.hang_up(now), Some(Send::Ask(1)));
        assert_eq!(run.hang_up(now + SECOND), None);
        assert_eq!(run.tick(now + 10 * SECOND), Some(Send::Kill));
    }

    #[test]
    fn a_stop_that_is_not_heeded_in_time_kills_and_goes_on_killing() {
        let (mut run, now) = run(None, None);
        run.signal(TERM, now);
        assert_eq!(run.next(), Some(now + 10 * SECOND));
        assert_eq!(run.tick(now + 10 * SECOND), Some(Send::Kill));
        assert!(run.killed_after_grace);
        assert_eq!(run.next(), Some(now + 10 * SECOND + KILL_AGAIN));
        assert_eq!(run.tick(now + 11 * SECOND), Some(Send::Kill));
    }

    #[test]
    fn other_signals_are_passed_on_and_count_as_no_stop() {
        let (mut run, now) = run(None, None);
        for number in [1, 10, 28] {
            assert_eq!(run.signal(number, now), Some(Send::Ask(number)));
        }
        assert!(!run.asked());
    }

    #[test]
    fn the_timeout_asks_then_kills() {
        let (mut run, now) = run(Some(5 * SECOND), None);
        assert_eq!(run.tick(now + 4 * SECOND), None);
        assert_eq!(run.tick(now + 5 * SECOND), Some(Send::Ask(INT)));
        assert!(run.timed_out);
        assert_eq!(run.tick(now + 15 * SECOND), Some(Send::Kill));
    }

    #[test]
    fn output_puts_the_idle_timeout_off() {
        let (mut run, now) = run(None, Some(3 * SECOND));
        run.output(now + 2 * SECOND);
        assert_eq!(run.tick(now + 4 * SECOND), None);
        assert_eq!(run.tick(now + 5 * SECOND), Some(Send::Ask(INT)));
    }

    #[test]
    fn timers_stand_still_while_everything_is_stopped() {
        let (mut run, now) = run(Some(5 * SECOND), None);
        run.paused(100 * SECOND);
        assert_eq!(run.tick(now + 104 * SECOND), None);
        assert_eq!(run.tick(now + 105 * SECOND), Some(Send::Ask(INT)));
    }
}
