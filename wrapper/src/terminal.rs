//! The terminal on standard input, which only one process group may read. Ours has it when a shell starts us in the
//! foreground; the command has a group of its own, so it gets the terminal while it runs, and with it what the keyboard
//! sends: Ctrl-C, Ctrl-Z and a new window size reach its group from the kernel, once, and not us. In a pipeline
//! (`pvn-wrapper exec … | less`) others of our group may want to read it, so there the command gets it when it asks.
//! Called by `supervise`.
//!
//! Nothing here can fail in a way that matters: what is refused (the terminal is gone, or another's) is left as it is.
//! The kernel says 0 for a group or session whose leader is outside our PID namespace (`unshare --pid --fork`, a container
//! that shares a terminal): nix hands that on, where rustix has no such process id.

use rustix::process::Pid;
use rustix::stdio::{stdin, stdout};
use rustix::termios::{isatty, tcgetpgrp, tcsetpgrp};

/// The terminal that we were started on.
pub(crate) struct Terminal {
    own: Pid,
    group: Pid,
}

impl Terminal {
    /// If standard input is our controlling terminal. `group`: the command's.
    pub(crate) fn of(group: Pid) -> Option<Self> {
        let foreground = tcgetpgrp(stdin()).ok()?;
        let terminal = Self { own: Pid::from_raw(nix::unistd::getpgrp().as_raw())?, group };
        if foreground == terminal.own && isatty(stdout()) {
            terminal.set(group);
        }
        Some(terminal)
    }

    /// Whether the command's group has it, or we have.
    pub(crate) fn is_foreground(&self) -> bool {
        tcgetpgrp(stdin()).is_ok_and(|group| group == self.own || group == self.group)
    }

    /// To the command, if it is ours to give.
    pub(crate) fn give(&self) {
        if tcgetpgrp(stdin()).is_ok_and(|group| group == self.own) {
            self.set(self.group);
        }
    }

    /// Back to ourselves, if the command has it.
    pub(crate) fn take_back(&self) {
        if tcgetpgrp(stdin()).is_ok_and(|group| group == self.group) {
            self.set(self.own);
        }
    }

    /// SIGTTOU, with which the kernel stops who does this from the background, is blocked.
    fn set(&self, group: Pid) {
        let _ = tcsetpgrp(stdin(), group);
    }
}

/// Whether nobody can continue us once we are stopped: our parent is no job-control shell of our session.
pub(crate) fn is_orphaned() -> bool {
    let parent = nix::unistd::getppid();
    // For a parent outside our PID namespace the kernel says 0, and 0 would be ourselves.
    parent.as_raw() == 0 || nix::unistd::getsid(Some(parent)) != nix::unistd::getsid(None)
}
