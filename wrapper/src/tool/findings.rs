//! What a step `check` finds, in the order in which a job needs it. Called by the tools' `check`.
//!
//! A check ends with 0 whatever it finds: what is wrong stands in its document. Only what kept it
//! from looking, a stop or a command line that is wrong, is a failure.

use schema::status::{CheckKind, CheckStatus};
use schema::tool_check::{ToolCheckOutput, ToolFinding};

use super::{Fault, print_document};

/// What was found so far of what a tool is asked about.
pub(super) struct ToolFindings {
    asked: &'static [CheckKind],
    found: Vec<ToolFinding>,
}

impl ToolFindings {
    /// Nothing yet of all this, which is in order.
    pub(super) fn of(asked: &'static [CheckKind]) -> Self {
        Self { asked, found: Vec::new() }
    }

    fn add(&mut self, what: CheckKind, status: CheckStatus, message: String, remedy: Option<&str>) {
        self.found.push(ToolFinding {
            what: what.to_string(),
            status,
            message,
            remedy: remedy.map(str::to_owned),
        });
    }

    pub(super) fn ok(&mut self, what: CheckKind, message: impl Into<String>) {
        self.add(what, CheckStatus::Ok, message.into(), None);
    }

    pub(super) fn failed(&mut self, what: CheckKind, message: impl Into<String>, remedy: &str) {
        self.add(what, CheckStatus::Failed, message.into(), Some(remedy));
    }

    pub(super) fn skipped(&mut self, what: CheckKind, why: impl Into<String>) {
        self.add(what, CheckStatus::Skipped, why.into(), None);
    }

    /// What a try came to, and whether it went well; `remedy` is for the case that it did not.
    ///
    /// # Errors
    /// The failure itself where it is about a stop, which says nothing of the tool.
    pub(super) fn tried(
        &mut self,
        what: CheckKind,
        found: Result<String, Fault>,
        remedy: &str,
        is_stopped: bool,
    ) -> Result<bool, Fault> {
        match found {
            Ok(message) => {
                self.ok(what, message);
                Ok(true)
            }
            Err(fault) if is_stopped => Err(fault),
            Err(fault) => {
                self.failed(what, fault.why, remedy);
                Ok(false)
            }
        }
    }

    /// Prints all of it; what was not tried is skipped, because of what failed before.
    pub(super) fn print(mut self) -> Result<u8, Fault> {
        let failed = self.found.iter().find(|finding| finding.status == CheckStatus::Failed);
        let why = failed.map_or_else(String::new, |failed| format!("`{}` failed", failed.what));
        for what in self.asked {
            if self.found.iter().all(|finding| finding.what != what.as_str()) {
                self.skipped(*what, why.clone());
            }
        }
        print_document(&ToolCheckOutput { findings: self.found })
    }
}

/// The numbers at the beginning of a version, `v1.11.4-beta` say; `None` where there is none.
pub(super) fn version_numbers(text: &str) -> Option<(u32, u32)> {
    let mut numbers = text.trim().trim_start_matches('v').splitn(3, '.').map(|part| {
        let end = part.find(|c: char| !c.is_ascii_digit()).unwrap_or(part.len());
        part[..end].parse::<u32>().ok()
    });
    Some((numbers.next()??, numbers.next()??))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_read_by_its_first_two_numbers() {
        for (text, numbers) in [
            ("1.11.4", Some((1, 11))),
            ("v3.260.0-dev.1\n", Some((3, 260))),
            ("0.12-beta", Some((0, 12))),
            ("1", None),
            ("next.1", None),
            ("", None),
            ("99999999999.1", None),
        ] {
            assert_eq!(version_numbers(text), numbers, "{text:?}");
        }
    }
}
