//! What a tool says where its exit code does not tell one failure from another: one table a tool,
//! each line with the versions in which it was seen. The one place where a tool's text decides
//! anything; where none of it fits, the tool's own code stands. Called by the tools.

use super::call::CallEnd;
use super::{Fault, said};
use crate::signals;

/// What a shell ends with whose command was killed by SIGKILL; as large is the code of a call that
/// was killed by it.
pub(super) const KILLED: u8 = 128 + 9;

/// Codes by which a shell, and many a script around a program, says which signal ended that.
/// Source: sh(1p), "Exit Status for Commands"; up to SIGSYS, the last that is no real-time one.
const BY_SIGNAL: std::ops::RangeInclusive<u8> = 129..=159;

/// A failure that exists only as text.
pub(super) struct KnownFault {
    /// Any of these, on one line of standard error.
    pub(super) texts: &'static [&'static str],
    /// Where each was seen.
    #[cfg_attr(not(test), expect(dead_code, reason = "for whoever looks after a new version"))]
    pub(super) seen: &'static str,
    /// Whether trying again may do: the run ends with 75.
    pub(super) may_pass: bool,
    /// For people: what it is, and what ends it.
    pub(super) words: &'static str,
}

/// The first line of the table that fits what a tool said.
pub(super) fn find(table: &'static [KnownFault], said: &str) -> Option<&'static KnownFault> {
    table
        .iter()
        .find(|known| said.lines().any(|line| known.texts.iter().any(|text| line.contains(text))))
}

/// What a call comes to that a signal ended, or a program within it, as its code says. Whoever
/// stopped it by us is not meant: see [`CallEnd::stopped`].
pub(super) fn killed(ended: &CallEnd, call: &str) -> Option<Fault> {
    let CallEnd { code, signal, oom_killed, .. } = ended;
    let (number, mut why) = match signal {
        Some(number) => (*number, format!("`{call}` was killed by {}", signals::name(*number))),
        None if BY_SIGNAL.contains(code) => {
            let number = signals::Number::from(code - 128);
            let name = signals::name(number);
            let why = format!(
                "`{call}` failed with exit code {code}, as where a program within it is killed by \
                 {name}"
            );
            (number, why)
        }
        None => return None,
    };
    if *oom_killed {
        why.push_str(" (out of memory): give the job, or the machine, more of it");
    } else if number == signals::Number::from(KILLED - 128) {
        why.push_str(": by somebody, or because memory ran out, which the log of the kernel tells");
    }
    Some(Fault::failed(why + &reason(&ended.words)))
}

/// What a failure of a tool comes to: known by its text, else by its code.
pub(super) fn of(table: &'static [KnownFault], ended: &CallEnd, call: &str) -> Fault {
    if let Some(killed) = killed(ended, call) {
        return killed;
    }
    let CallEnd { code, words: said, .. } = ended;
    match find(table, said) {
        Some(known) if known.may_pass => Fault::again(known.words),
        Some(known) => Fault::failed(known.words),
        None => Fault::failed(format!("`{call}` failed with exit code {code}{}", reason(said))),
    }
}

/// The line in which a tool says why, if one looks like it; else all that it says.
fn reason(said: &str) -> String {
    let mut lines = said.lines().map(|line| line.trim_start_matches(['│', '╷', '╵', ' ']));
    let error = lines.find(|line| line.starts_with("Error:") || line.starts_with("error:"));
    match said::in_one_line(error.unwrap_or(said)) {
        said if said.is_empty() => said,
        said => format!(": {said}"),
    }
}
