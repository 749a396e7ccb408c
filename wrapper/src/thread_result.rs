//! Waiting for a thread of ours without being deaf to signals. Called by `deliver` and `inputs` on
//! the main thread.
//!
//! What always holds: whatever happens to the thread, it leaves a value. A fault of our own in a
//! delivery costs that delivery at most, never the command, which knows nothing of it.

use std::os::fd::{AsFd, OwnedFd};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use nix::sys::signalfd::SignalFd;
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec};
use rustix::process::{Signal, WaitOptions, getpid};

#[cfg(panic = "abort")]
compile_error!(
    "a panic of the thread that delivers must not end the run: build the wrapper with panic = \
     \"unwind\""
);

/// How often we look when there is no descriptor to wait for.
const WITHOUT_EVENT: Duration = Duration::from_millis(20);

/// What a thread leaves when it is through.
pub(crate) struct ThreadResult<T> {
    value: Mutex<Option<T>>,
    event: Option<OwnedFd>,
}

impl<T> ThreadResult<T> {
    /// Nothing yet.
    pub(crate) fn new() -> Arc<Self> {
        // Without it we look at the clock instead.
        let event = rustix::event::eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK).ok();
        Arc::new(Self { value: Mutex::new(None), event })
    }

    /// Called by the thread: does its work and leaves what comes of it, or `broken` when it panics,
    /// which has then said why.
    pub(crate) fn of(&self, work: impl FnOnce() -> T, broken: impl FnOnce() -> T) {
        // What the work shares with others are numbers behind locks, right at every moment.
        self.set(catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|_| broken()));
    }

    fn set(&self, value: T) {
        *self.value.lock().unwrap_or_else(PoisonError::into_inner) = Some(value);
        if let Some(event) = &self.event {
            // Its counter cannot be full.
            let _ = rustix::io::write(event, &1_u64.to_ne_bytes());
        }
    }

    /// Whether it has left something that was not taken.
    pub(crate) fn is_there(&self) -> bool {
        self.value.lock().unwrap_or_else(PoisonError::into_inner).is_some()
    }

    /// What it left, once.
    pub(crate) fn take(&self) -> Option<T> {
        self.value.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Sleeps until the thread is through, a signal came, or so long; says whether we were asked to
    /// stop.
    pub(crate) fn sleep(&self, signals: Option<&SignalFd>, most: Duration) -> bool {
        let most = if self.event.is_some() { most } else { most.min(WITHOUT_EVENT) };
        let timeout = Timespec {
            tv_sec: most.as_secs().try_into().unwrap_or(i64::MAX),
            tv_nsec: most.subsec_nanos().into(),
        };
        let descriptors = [self.event.as_ref().map(AsFd::as_fd), signals.map(AsFd::as_fd)];
        let mut poll: Vec<PollFd<'_>> = descriptors
            .into_iter()
            .flatten()
            .map(|descriptor| PollFd::from_borrowed_fd(descriptor, PollFlags::IN))
            .collect();
        if rustix::event::poll(&mut poll, Some(&timeout)).is_err() {
            return false;
        }
        let mut asked = false;
        while let Some(Ok(Some(info))) = signals.map(SignalFd::read_signal) {
            let number = info.ssi_signo.cast_signed();
            // A cancel that came too late is from ourselves.
            let ours = info.ssi_pid.cast_signed() == getpid().as_raw_nonzero().get();
            asked |= !ours && (number == Signal::TERM.as_raw() || number == Signal::INT.as_raw());
            if number == Signal::CHILD.as_raw() {
                // As the first process we still reap what others leave behind.
                while matches!(rustix::process::wait(WaitOptions::NOHANG), Ok(Some(_))) {}
            }
        }
        asked
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_that_panics_leaves_a_value_all_the_same() {
        let done = ThreadResult::new();
        let other = Arc::clone(&done);
        let thread = std::thread::spawn(move || {
            other.of(|| panic!("as a fault of our own would"), || "broken")
        });
        while !thread.is_finished() {
            done.sleep(None, Duration::from_secs(60));
        }
        assert_eq!(done.take(), Some("broken"));
        done.of(|| "fine", || "broken");
        assert_eq!(done.take(), Some("fine"));
    }
}
