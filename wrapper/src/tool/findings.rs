//! What a step `check` finds, in the order in which a job needs it. Called by the tools' `check`.
//!
//! A check ends with 0 whatever it finds: what is wrong stands in its document. Only what kept it
//! from looking, a stop or a command line that is wrong, is a failure.

use std::path::Path;

use schema::status::{CheckKind, CheckStatus};
use schema::tool_check::{ToolCheckOutput, ToolFinding};

use super::{Fault, print_document};

/// How much is written to see whether anything can be, bytes: a plan of a few resources.
const TRIED_BYTES: usize = 64 << 10;

const UNWRITABLE: &str = "free room there, or name another directory: TMPDIR in `env` of the \
                          runtime, where the root is read-only on a volume; on the scheduler's \
                          machine it is the data directory";

/// Writes a file and removes it.
///
/// # Errors
/// Why none can be written there.
pub(super) fn try_to_write(directory: &Path) -> Result<(), String> {
    let file = directory.join(format!("pvn-check-{}", std::process::id()));
    let written =
        std::fs::create_dir_all(directory).and_then(|()| std::fs::write(&file, [0; TRIED_BYTES]));
    // Of one that could not be filled something may be left.
    let _ = std::fs::remove_file(&file);
    written.map_err(|error| format!("no file can be written in {}: {error}", directory.display()))
}

/// Prints that, and nothing of the tool, which would fail for the same reason.
pub(super) fn print_unwritable(why: String) -> Result<u8, Fault> {
    let mut findings = ToolFindings::of(&[]);
    findings.failed(CheckKind::Directory, why, UNWRITABLE);
    findings.print()
}

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
