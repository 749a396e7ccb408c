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

/// How a line begins with which an error begins.
const ERRORS: &[&str] = &["Error:", "error:"];

/// How one begins that is no more about it: the next one, or the end of the frame.
const OTHERS: &[&str] = &["Warning:", "warning:", "╵"];

/// Most characters of a sentence about a failure that is known, so that the scheduler shows all of
/// it; and how many of them are the tool's own at least.
const SENTENCE_CHARS: usize = 380;
const LEAST_CHARS: usize = 120;

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

impl KnownFault {
    /// The failure, with what the tool said of it; `before`: what stands between.
    pub(super) fn fault(&self, before: &str, cause: &str) -> Fault {
        let mut why = self.words.to_owned();
        if !cause.is_empty() {
            let left = SENTENCE_CHARS.saturating_sub(why.chars().count() + before.chars().count());
            why.push_str(before);
            why.push_str(&said::bounded(cause, left.max(LEAST_CHARS)));
        }
        if self.may_pass { Fault::again(why) } else { Fault::failed(why) }
    }
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
        Some(known) => {
            let cause = cause(said, known.texts);
            let cause = ERRORS.iter().find_map(|start| cause.strip_prefix(start)).unwrap_or(&cause);
            known.fault("; it says: ", cause.trim_start())
        }
        None => Fault::failed(format!("`{call}` failed with exit code {code}{}", reason(said))),
    }
}

/// What a tool says of its failure, behind a colon.
fn reason(said: &str) -> String {
    match cause(said, &[]) {
        said if said.is_empty() => said,
        said => format!(": {said}"),
    }
}

/// Of what a tool says the first error, with all that it says of that one: it begins with the line
/// that has one of these texts, or looks like an error where there are none. Without any it is all
/// that was said.
fn cause(said: &str, texts: &[&str]) -> String {
    let mut lines = said.lines().map(|line| line.trim_start_matches(['│', '╷', ' ']));
    let is_any_of =
        |line: &str, starts: &[&str]| starts.iter().any(|start| line.starts_with(start));
    let is_error = |line: &&str| {
        if texts.is_empty() {
            is_any_of(line, ERRORS)
        } else {
            texts.iter().any(|text| line.contains(text))
        }
    };
    let Some(first) = lines.find(is_error) else { return said::in_one_line(said) };
    let rest = lines.take_while(|line| !is_any_of(line, ERRORS) && !is_any_of(line, OTHERS));
    said::in_one_line(&std::iter::once(first).chain(rest).collect::<Vec<_>>().join("\n"))
}
