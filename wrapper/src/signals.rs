//! Signals as numbers, names and sets. `raw::main` blocks all of them first thing; `supervise`
//! reads them from a descriptor.

use std::sync::OnceLock;

use nix::sys::signal::{SigSet, SigmaskHow};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use rustix::process::Signal;

pub(crate) use crate::raw::Number;
use crate::raw::{self, REAL_TIME_FIRST};

const NAMES: &[(&str, Signal)] = &[
    ("HUP", Signal::HUP),
    ("INT", Signal::INT),
    ("QUIT", Signal::QUIT),
    ("ILL", Signal::ILL),
    ("TRAP", Signal::TRAP),
    ("ABRT", Signal::ABORT),
    ("BUS", Signal::BUS),
    ("FPE", Signal::FPE),
    ("KILL", Signal::KILL),
    ("USR1", Signal::USR1),
    ("SEGV", Signal::SEGV),
    ("USR2", Signal::USR2),
    ("PIPE", Signal::PIPE),
    ("ALRM", Signal::ALARM),
    ("TERM", Signal::TERM),
    ("STKFLT", Signal::STKFLT),
    ("CHLD", Signal::CHILD),
    ("CONT", Signal::CONT),
    ("STOP", Signal::STOP),
    ("TSTP", Signal::TSTP),
    ("TTIN", Signal::TTIN),
    ("TTOU", Signal::TTOU),
    ("URG", Signal::URG),
    ("XCPU", Signal::XCPU),
    ("XFSZ", Signal::XFSZ),
    ("VTALRM", Signal::VTALARM),
    ("PROF", Signal::PROF),
    ("WINCH", Signal::WINCH),
    ("IO", Signal::IO),
    ("PWR", Signal::POWER),
    ("SYS", Signal::SYS),
];

/// What [`block`] found, for whoever starts a process later.
static GIVEN: OnceLock<SigSet> = OnceLock::new();

/// The signals that this process had blocked when it was started, and that the child is to have
/// blocked.
pub(crate) struct Inherited(pub(crate) SigSet);

/// Blocks everything that can be blocked, so that what arrives from now on waits to be read. A
/// fault of our own ends us all the same; what somebody sends under the name of one is the
/// command's.
pub(crate) fn block() -> Inherited {
    let before = SigSet::all()
        .thread_swap_mask(SigmaskHow::SIG_SETMASK)
        .expect("a set of known signals can be blocked");
    Inherited(*GIVEN.get_or_init(|| before))
}

/// The signals that were blocked when this process was started.
pub(crate) fn given() -> SigSet {
    GIVEN.get().copied().unwrap_or_else(SigSet::empty)
}

/// The descriptor from which signals are read. Made before the start, so that none is missed.
pub(crate) fn descriptor() -> std::io::Result<SignalFd> {
    Ok(SignalFd::with_flags(&SigSet::all(), SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC)?)
}

/// Reads `TERM`, `SIGTERM` or `15`.
pub(crate) fn parse(text: &str) -> Result<Number, String> {
    let upper = text.to_ascii_uppercase();
    let short = upper.strip_prefix("SIG").unwrap_or(&upper);
    let real_time = || match short.strip_prefix("RTMIN")? {
        "" => Some(REAL_TIME_FIRST),
        rest => raw::real_time(
            REAL_TIME_FIRST + rest.strip_prefix('+')?.parse::<u8>().ok().map(Number::from)?,
        )
        .map(Signal::as_raw),
    };
    NAMES
        .iter()
        .find(|(name, signal)| *name == short || signal.as_raw().to_string() == short)
        .map(|(_, signal)| signal.as_raw())
        .or_else(real_time)
        .ok_or_else(|| {
            format!("`{text}` is not a signal; write its name, as in `TERM` or `SIGINT`")
        })
}

/// `SIGTERM`, `SIGRTMIN+3`.
pub(crate) fn name(number: Number) -> String {
    match NAMES.iter().find(|(_, signal)| signal.as_raw() == number) {
        Some((name, _)) => format!("SIG{name}"),
        None if number == REAL_TIME_FIRST => "SIGRTMIN".to_owned(),
        None if number > REAL_TIME_FIRST => format!("SIGRTMIN+{}", number - REAL_TIME_FIRST),
        None => format!("SIG{number}"),
    }
}

/// The signal of this number, unless it is one of the C library's own.
pub(crate) fn of(number: Number) -> Option<Signal> {
    Signal::from_named_raw(number).or_else(|| raw::real_time(number))
}

/// Whether a signal that we got is for the child. Those about our own children, terminal and pipes
/// are not.
pub(crate) fn is_forwarded(number: Number) -> bool {
    ![
        Signal::CHILD,
        Signal::PIPE,
        Signal::TTIN,
        Signal::TTOU,
        Signal::TSTP,
        Signal::STOP,
        Signal::KILL,
    ]
    .iter()
    .any(|signal| signal.as_raw() == number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signal_is_named_as_kill_names_it() {
        for (text, number) in [
            ("TERM", 15),
            ("sigterm", 15),
            ("15", 15),
            ("SIGINT", 2),
            ("usr1", 10),
            ("SIGRTMIN", 34),
            ("RTMIN+3", 37),
            ("RTMIN+30", 64),
        ] {
            assert_eq!(parse(text), Ok(number), "{text}");
        }
        for text in ["", "SIG", "TERMX", "0", "99", "-1", "RTMIN+31", "RTMIN-1", "RTMINX"] {
            assert!(parse(text).is_err(), "{text:?}");
        }
        for (number, text) in [
            (15, "SIGTERM"),
            (9, "SIGKILL"),
            (34, "SIGRTMIN"),
            (37, "SIGRTMIN+3"),
            (64, "SIGRTMIN+30"),
        ] {
            assert_eq!(name(number), text);
        }
    }
}
