//! The table of exit codes. Called where the program ends; nothing else names a number.

use rustix::process::WaitStatus;

/// A usage error, or a failure of our own before the command was started: nothing ran.
pub(crate) const OURS: u8 = 125;
/// The command was found and cannot be executed.
pub(crate) const NOT_EXECUTABLE: u8 = 126;
/// The command, or the interpreter of a script, was not found.
pub(crate) const NOT_FOUND: u8 = 127;
/// The command was fine but what it left is not: its structured output, or a declared file that is
/// missing. Source: `EX_DATAERR` of sysexits.h.
pub(crate) const BAD_OUTPUT: u8 = 65;

/// What a fetch means by this code: there is work to do.
pub(crate) const WORK: u8 = 2;

/// A tool that the wrapper drives failed.
pub(crate) const FAILED: u8 = 1;
/// It failed by what may be over by another try. Source: `EX_TEMPFAIL` of sysexits.h.
pub(crate) const TRY_AGAIN: u8 = 75;

/// The code that says what the child's did: its own, or 128 and the number of the signal that ended
/// it.
pub(crate) fn of_child(status: WaitStatus) -> u8 {
    match (status.exit_status(), status.terminating_signal()) {
        (Some(code), _) => (code & 0xff) as u8,
        (None, Some(signal)) => 128_u8.saturating_add((signal & 0x7f) as u8),
        (None, None) => OURS,
    }
}
