//! What each signal that comes means, and what of it goes on to the command. Called by `supervise`.

use std::time::Instant;

use nix::libc::SI_KERNEL;
use nix::sys::signalfd::SignalFd;
use rustix::process::{Signal, kill_process, kill_process_group};

use super::{LEFT_OVER_GRACE, Phase, SignalLoop};
use crate::args::SignalScope;
use crate::escalate::Send;
use crate::signals;

impl SignalLoop<'_> {
    pub(super) fn signal(&mut self, signals: &SignalFd, now: Instant) {
        let Ok(Some(info)) = signals.read_signal() else { return };
        let number = info.ssi_signo as signals::Number;
        // A key is for all of a group.
        let scope = if info.ssi_code == SI_KERNEL && self.watch.terminal.is_some() {
            SignalScope::Group
        } else {
            self.watch.scope
        };
        if number == Signal::CHILD.as_raw() {
            self.reap(now);
        } else if number == Signal::TSTP.as_raw() {
            self.send(Send::Ask(number), scope);
            self.pause(now, false);
        } else if number == Signal::CONT.as_raw()
            && let Some(had_terminal) = self.stopped
        {
            self.go_on(had_terminal);
        } else if signals::is_forwarded(number) {
            // From ourselves come TERM, when the scheduler asks to stop, and what the kernel thinks
            // of our own writes (XFSZ); that is not for the command.
            let own =
                info.ssi_pid.cast_signed() == rustix::process::getpid().as_raw_nonzero().get();
            if own && number != Signal::TERM.as_raw() {
                return;
            }
            let escalation = &mut self.watch.escalation;
            if let Some(send) =
                if own { escalation.cancel(now) } else { escalation.signal(number, now) }
            {
                self.send(send, scope);
            }
        }
    }

    pub(super) fn send(&mut self, send: Send, scope: SignalScope) {
        match send {
            Send::Kill => {
                self.killed_at = self.killed_at.or(Some(Instant::now()));
                self.kill_all();
                if self.status.is_some() {
                    self.phase = Phase::Killed { until: Instant::now() + LEFT_OVER_GRACE };
                }
            }
            Send::Ask(number) => {
                let Some(signal) = signals::of(number) else { return };
                // A process that is gone meanwhile needs no signal.
                let _ = match (self.status, scope) {
                    (None, SignalScope::Child) => kill_process(self.watch.root, signal),
                    (None, SignalScope::Group) => kill_process_group(self.watch.root, signal),
                    (Some(_), _) => {
                        self.ask_left_over(signal);
                        Ok(())
                    }
                };
            }
        }
    }
}
