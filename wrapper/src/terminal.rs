//! The terminal on standard input, which only one process group may read. Ours has it when a shell
//! starts us in the foreground; the command has a group of its own, so it gets the terminal while
//! it runs, and with it what the keyboard sends: Ctrl-C, Ctrl-Z and a new window size reach its
//! group from the kernel, once, and not us. It has it before its first instruction: were it stopped
//! for reading too early, the SIGCONT after that would take a Ctrl-Z of the same moment with it. In
//! a pipeline (`pvn-wrapper exec … | less`) others of our group may want to read it, so there the
//! command gets it when it asks. Called by `spawn` and `supervise`.
//!
//! Nothing here can fail in a way that matters: what is refused (the terminal is gone, or
//! another's) is left as it is. The kernel says 0 for a group or session whose leader is outside
//! our PID namespace (`unshare --pid --fork`, a container that shares a terminal): nix hands that
//! on, where rustix has no such process id.

use rustix::process::{Pid, Signal, kill_process_group};
use rustix::stdio::{stdin, stdout};
use rustix::termios::{isatty, tcgetpgrp, tcsetpgrp};

use crate::process;

/// The terminal that we were started on.
#[derive(Clone, Copy)]
pub(crate) struct Terminal {
    own: Pid,
    /// The command's, once it is started.
    group: Option<Pid>,
}

impl Terminal {
    /// If standard input is our controlling terminal.
    pub(crate) fn find() -> Option<Self> {
        tcgetpgrp(stdin()).ok()?;
        Some(Self { own: Pid::from_raw(nix::unistd::getpgrp().as_raw())?, group: None })
    }

    /// Whether the command is to have it from its first instruction on.
    pub(crate) fn is_for_the_command(&self) -> bool {
        tcgetpgrp(stdin()).is_ok_and(|group| group == self.own) && isatty(stdout())
    }

    /// The command is started, in a `group` of its own.
    pub(crate) fn with(self, group: Pid) -> Self {
        Self { group: Some(group), ..self }
    }

    /// Whether the command's group has it, or we have.
    pub(crate) fn is_foreground(&self) -> bool {
        tcgetpgrp(stdin()).is_ok_and(|group| group == self.own || Some(group) == self.group)
    }

    /// To the command, if it is ours to give.
    pub(crate) fn give(&self) {
        if let Some(group) = self.group
            && tcgetpgrp(stdin()).is_ok_and(|group| group == self.own)
        {
            set(group);
        }
    }

    /// Back to ourselves from a command that could not be started.
    pub(crate) fn regain(&self) {
        set(self.own);
    }

    /// Back to ourselves, if the command has it: whether it had.
    pub(crate) fn take_back(&self) -> bool {
        let had = tcgetpgrp(stdin()).is_ok_and(|group| Some(group) == self.group);
        if had {
            set(self.own);
        }
        had
    }

    /// Stops all of our group, as Ctrl-Z does where the command is one of them: a script that runs
    /// us stops too, and so the shell that waits for the script has its prompt. In one step
    /// with ourselves: once a part has stopped the shell may continue all, and who stopped
    /// after that would stay so.
    pub(crate) fn stop_group(&self) {
        let _ = kill_process_group(self.own, Signal::STOP);
    }
}

/// SIGTTOU, with which the kernel stops who does this from the background, is blocked.
fn set(group: Pid) {
    let _ = tcsetpgrp(stdin(), group);
}

/// Whether nobody can continue us once we are stopped: above our process group there is no
/// job-control shell of our session. The kernel stops no such group by a key, but the command's, of
/// which we are the parent, is none.
pub(crate) fn is_orphaned() -> bool {
    let (group, session) = (nix::unistd::getpgrp(), nix::unistd::getsid(None));
    let mut above = nix::unistd::getppid();
    loop {
        // For a parent outside our PID namespace the kernel says 0, and 0 would be ourselves.
        if above.as_raw() == 0 || nix::unistd::getsid(Some(above)) != session {
            return true;
        }
        if nix::unistd::getpgid(Some(above)) != Ok(group) {
            return false;
        }
        // A script that runs us, say: what matters is who runs that.
        let Some(parent) = Pid::from_raw(above.as_raw()).and_then(process::parent_of) else {
            return true;
        };
        above = nix::unistd::Pid::from_raw(parent);
    }
}
