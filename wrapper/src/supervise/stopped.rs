//! Stopping and going on together with the child, as a job of a shell does. Called by `supervise`
//! when a signal or the child's state says so.

use std::time::Instant;

use rustix::process::{Signal, kill_process, kill_process_group};

use super::SignalLoop;
use crate::args::SignalScope;
use crate::{signals, terminal};

impl SignalLoop<'_> {
    /// Stops with the child, as a job of a shell does, alone or with our group; the timers stand
    /// still. The SIGCONT that ends it is passed on.
    pub(super) fn pause(&mut self, since: Instant, with_group: bool) {
        if let Some(terminal) = &self.watch.terminal {
            self.stopped = Some(terminal.take_back());
        }
        match &self.watch.terminal {
            Some(terminal) if with_group => terminal.stop_group(),
            // Refused to the first process of a pid namespace, which then goes on.
            _ => drop(kill_process(rustix::process::getpid(), Signal::STOP)),
        }
        self.watch.escalation.paused(since.elapsed());
    }

    /// After a stop by the terminal, to all who heard of that, and with the terminal if it is to
    /// have it and it is ours again.
    pub(super) fn go_on(&mut self, with_terminal: bool) {
        self.stopped = None;
        if with_terminal && let Some(terminal) = &self.watch.terminal {
            terminal.give();
        }
        let _ = kill_process_group(self.watch.root, Signal::CONT);
    }

    /// The terminal stopped the child: by Ctrl-Z, or because it is not its group's.
    pub(super) fn stopped_by_terminal(&mut self, number: signals::Number, now: Instant) {
        let Some(terminal) = &self.watch.terminal else { return };
        let wants_it = number == Signal::TTIN.as_raw() || number == Signal::TTOU.as_raw();
        let is_job_control = wants_it || number == Signal::TSTP.as_raw();
        if !is_job_control || self.stopped.is_some() {
            // By somebody else, who will know when to continue it; or together with us, of which
            // this is the news.
        } else if wants_it && terminal.is_foreground() {
            self.go_on(true);
        } else if !terminal::is_orphaned() {
            self.pause(now, true);
        } else {
            // What wants it will never get it. So the kernel ends whom it finds stopped when nobody
            // is left to continue them.
            if wants_it && let Some(send) = self.watch.escalation.hang_up(now) {
                self.send(send, SignalScope::Group);
            }
            self.go_on(false);
        }
    }
}
