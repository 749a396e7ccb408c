//! What a tool says where its exit code does not tell one failure from another: one table a tool,
//! each line with the versions in which it was seen. The one place where a tool's text decides
//! anything; where none of it fits, the tool's own code stands. Called by the tools.

use super::Fault;

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

/// What a failure of a tool comes to: known by its text, else by its code.
pub(super) fn of(table: &'static [KnownFault], said: &str, call: &str, code: u8) -> Fault {
    match find(table, said) {
        Some(known) if known.may_pass => Fault::again(known.words),
        Some(known) => Fault::failed(known.words),
        None => Fault::failed(format!("`{call}` failed with exit code {code}{}", reason(said))),
    }
}

/// The line in which a tool says why, if one looks like it.
fn reason(said: &str) -> String {
    let line = said.lines().map(|line| line.trim_start_matches(['│', '╷', '╵', ' ']).trim());
    let mut errors = line.filter(|line| line.starts_with("Error:") || line.starts_with("error:"));
    errors.next().map_or_else(String::new, |line| format!(": {line}"))
}
