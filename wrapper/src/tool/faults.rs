//! What a tool says where its exit code does not tell one failure from another: one table a tool,
//! each line with the versions in which it was seen. The one place where a tool's text decides
//! anything; where none of it fits, the tool's own code stands. Called by the tools.

use schema::shown;

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
    /// Any of these, on one line of what the tool says in its own name; one that begins as an error
    /// does begins the line.
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

/// The first line of the table that fits what a tool said. `said` is the tool's own: what it quotes
/// of others, such as the programs that it runs, may have any of the texts.
pub(super) fn find(table: &'static [KnownFault], said: &str) -> Option<&'static KnownFault> {
    let has = |line: &str, text: &str| {
        if begins_with(text, ERRORS) { line.starts_with(text) } else { line.contains(text) }
    };
    table
        .iter()
        .find(|known| said.lines().any(|line| known.texts.iter().any(|text| has(line, text))))
}

fn begins_with(line: &str, starts: &[&str]) -> bool {
    starts.iter().any(|start| line.starts_with(start))
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
    // What it said before may be about anything; an error was about this call.
    let error = first_error(&ended.words).map_or_else(String::new, |error| format!(": {error}"));
    Some(Fault::failed(why + &error))
}

/// What a failure of a tool comes to: known by its text, else by its code. `own`: what of its words
/// the tool says in its own name.
pub(super) fn of(table: &'static [KnownFault], own: &str, ended: &CallEnd, call: &str) -> Fault {
    if let Some(killed) = killed(ended, call) {
        return killed;
    }
    let CallEnd { code, words: said, .. } = ended;
    match find(table, own) {
        Some(known) => {
            let cause = cause(own, known.texts);
            let cause = ERRORS.iter().find_map(|start| cause.strip_prefix(start)).unwrap_or(&cause);
            known.fault("; it says: ", cause.trim_start())
        }
        None => Fault::failed(format!("`{call}` failed with exit code {code}{}", reason(said))),
    }
}

/// What a tool says of its failure, behind a colon.
fn reason(said: &str) -> String {
    match first_error(said).unwrap_or_else(|| said::in_one_line(&without_warnings(said))) {
        said if said.is_empty() => said,
        said => format!(": {said}"),
    }
}

/// Of what a tool says the first error, with all that it says of that one.
fn first_error(said: &str) -> Option<String> {
    from_line(said, |line| begins_with(line, ERRORS))
}

/// The error that has one of these texts, or all that was said.
fn cause(said: &str, texts: &[&str]) -> String {
    from_line(said, |line| texts.iter().any(|text| line.contains(text)))
        .unwrap_or_else(|| said::in_one_line(said))
}

/// The first line that is one, with what follows up to the next error.
fn from_line(said: &str, is_one: impl Fn(&str) -> bool) -> Option<String> {
    let mut lines = said.lines().map(|line| line.trim_start_matches(['│', '╷', ' ']));
    let first = lines.find(|line| is_one(line))?;
    let rest = lines.take_while(|line| !begins_with(line, ERRORS) && !begins_with(line, OTHERS));
    Some(said::in_one_line(&std::iter::once(first).chain(rest).collect::<Vec<_>>().join("\n")))
}

/// What was said without the warnings that have a frame, which say where they end.
fn without_warnings(said: &str) -> String {
    let said = shown::seen(said);
    let mut is_in_warning = false;
    let is_told = |line: &&str| {
        let framed = line.strip_prefix('│').map(str::trim_start);
        is_in_warning &= !line.starts_with(['╷', '╵']);
        is_in_warning |= framed.is_some_and(|line| line.starts_with("Warning:"));
        !is_in_warning
    };
    said.lines().filter(is_told).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    const WARNING: &str = "There are problems:\n╷\n│ Warning: Unable to open the file\n│\n│ The \
                           file \"/root/.terraformrc\" does not exist.\n╵\n";

    #[test]
    fn a_death_by_a_signal_is_told_without_what_was_said_of_something_else() {
        let told = |signal, code, said: &str| {
            let ended = CallEnd { signal, ..CallEnd::failed(code, said) };
            killed(&ended, "terraform plan").unwrap().why
        };
        let killed = told(Some(9), 137, WARNING);
        assert!(killed.starts_with("`terraform plan` was killed by SIGKILL: by "), "{killed}");
        assert!(killed.ends_with("which the log of the kernel tells"), "{killed}");
        let within = told(None, 137, &format!("{WARNING}creating x\n"));
        assert!(
            within.contains("is killed by SIGKILL") && !within.contains("creating"),
            "{within}"
        );
        let crashed = told(None, 134, &format!("{WARNING}\nError: the plugin crashed\n"));
        assert!(crashed.ends_with("by SIGABRT: Error: the plugin crashed"), "{crashed}");
    }

    #[test]
    fn a_warning_is_no_reason() {
        let told = |said: &str| of(&[], "", &CallEnd::failed(1, said), "terraform plan").why;
        assert_eq!(
            told(&format!("{WARNING}no such command\n")),
            "`terraform plan` failed with exit code 1: There are problems: no such command"
        );
    }
}
