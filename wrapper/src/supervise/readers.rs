//! Readers of our output that are slower than the command was. Called by `supervise` once all is
//! over.

use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use nix::sys::signal::{SigSet, Signal as NixSignal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::Errno;

use crate::capture::Capture;
use crate::writer::say;

/// How long a reader of our output may take nothing, once all is over, before we go on without it.
const READER_PATIENCE: Duration = Duration::from_secs(5);

/// How long readers may take for all that waits then, which is some megabytes at most: what is left
/// of it is in the report.
const SHOWING: Duration = Duration::from_secs(30);

/// Gives slow readers of our output time for what still waits, but none once we are asked to stop,
/// for the report comes first; and says what they missed.
pub(super) fn show_the_rest(captures: &mut [Capture; 2], asked: bool) {
    if !asked {
        wait_for_readers(captures);
    }
    for capture in captures {
        match capture.tee.not_shown() {
            0 => {}
            // That is a failure, and told as one.
            _ if capture.tee.cut().is_some() => {}
            bytes => {
                say(&format!("{bytes} bytes of the output were not shown, for nobody read them"))
            }
        }
    }
}

/// Those that take something have [`READER_PATIENCE`] from the last time on, and [`SHOWING`] in
/// all; those that were taken for dead have none. A request to stop ends it.
fn wait_for_readers(captures: &mut [Capture; 2]) {
    let began = Instant::now();
    let mut taken_at = began;
    // Only looked at: whoever delivers takes it in.
    let stops: SigSet = [NixSignal::SIGTERM, NixSignal::SIGINT].into_iter().collect();
    let stops = SignalFd::with_flags(&stops, SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC).ok();
    loop {
        let mut poll: Vec<_> = captures
            .iter()
            .filter(|capture| !capture.tee.is_stalled())
            .filter_map(|capture| capture.tee.blocked())
            .collect();
        if poll.is_empty() {
            return;
        }
        let readers = poll.len();
        poll.extend(stops.as_ref().map(AsFd::as_fd));
        let flags = |which| if which < readers { PollFlags::OUT } else { PollFlags::IN };
        let mut poll: Vec<_> = poll
            .into_iter()
            .enumerate()
            .map(|(which, on)| PollFd::from_borrowed_fd(on, flags(which)))
            .collect();
        let left = READER_PATIENCE
            .saturating_sub(taken_at.elapsed())
            .min(SHOWING.saturating_sub(began.elapsed()));
        let timeout =
            Timespec { tv_sec: left.as_secs().cast_signed(), tv_nsec: left.subsec_nanos().into() };
        let ready = match rustix::event::poll(&mut poll, Some(&timeout)) {
            Err(Errno::INTR) => continue,
            Ok(ready) => ready,
            Err(_) => return,
        };
        if ready == 0
            || left.is_zero()
            || poll[readers..].iter().any(|stop| !stop.revents().is_empty())
        {
            return;
        }
        drop(poll);
        captures
            .iter_mut()
            .filter(|capture| capture.tee.blocked().is_some())
            .for_each(|capture| capture.tee.flush(Instant::now()));
        taken_at = Instant::now();
    }
}
