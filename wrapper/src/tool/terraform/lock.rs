//! Whose the lock of a state is, which only the text says. Called by `terraform`.

use super::super::{Fault, said};
use super::diagnostic::ERROR;

/// Both seen with terraform 1.11.4 and tofu 1.12.6.
const MESSAGE: &str = "Error message:";
const INFO: &str = "Lock Info:";
const LOCKED: &str = "Error: Error acquiring the state lock";

/// The failure of a call that found the state locked: whose it is, since when, what would free it.
/// `own`: terraform's own errors.
pub(super) fn fault(own: &str, program: &str) -> Option<Fault> {
    // That error, with all that it says, and nothing of another.
    let said: Vec<&str> = own.lines().skip_while(|line| !line.starts_with(LOCKED)).collect();
    let (headline, body) = said.split_first()?;
    let body = body.iter().take_while(|line| !line.starts_with(ERROR));
    let said = [headline].into_iter().chain(body).copied().collect::<Vec<_>>().join("\n");
    // `  Who:       root@host`.
    let field = |name: &str| {
        said.lines().find_map(|line| {
            let value = line.trim_start().strip_prefix(name)?.strip_prefix(':')?.trim();
            (!value.is_empty()).then(|| value.to_owned())
        })
    };
    if field("ID").is_none() && held_by(&said).is_none() {
        // Nobody has it: it cannot be written, or its place cannot be reached.
        // It may go on in the next line, up to one that is empty.
        let lines = said.lines().map(str::trim_start);
        let message = lines.skip_while(|line| !line.starts_with(MESSAGE));
        let message: Vec<&str> =
            message.take_while(|line| !line.is_empty() && !line.starts_with(INFO)).collect();
        let why = said::in_one_line(message.join("\n").trim_start_matches(MESSAGE));
        return Some(Fault::failed(format!("the lock of the state cannot be taken: {why}")));
    }
    let mut why = "the state is locked".to_owned();
    let id = match held_by(&said) {
        // The backend `http` shows the lock that this run asked for as the one that is held.
        Some(id) if field("ID").as_deref() != Some(id) => {
            why.push_str(&format!(" under the ID {id}, and its backend does not say by whom"));
            Some(id.to_owned())
        }
        _ => {
            if let Some(who) = field("Who") {
                why.push_str(&format!(" by {who}"));
            }
            if let Some(operation) = field("Operation") {
                why.push_str(&format!(" ({operation})"));
            }
            if let Some(created) = field("Created") {
                why.push_str(&format!(" since {created}"));
            }
            field("ID")
        }
    };
    why.push_str("; it is free when that run ends");
    if let Some(id) = id {
        why.push_str(&format!(
            "; if nothing runs there any more, `{program} force-unlock {id}` frees it"
        ));
    }
    Some(Fault::again(why))
}

/// The ID of the lock that is held, where the backend's error has it.
fn held_by(said: &str) -> Option<&str> {
    said.split_once("already locked: ID=")?.1.split_whitespace().next()
}

#[cfg(test)]
mod tests {
    use super::super::diagnostic::own_errors;
    use super::*;

    fn fault(said: &str, program: &str) -> Option<Fault> {
        super::fault(&own_errors(said), program)
    }

    #[test]
    fn a_lock_is_told_with_its_owner() {
        let said = "╷\n│ Error: Error acquiring the state lock\n│ \n│ Error message: resource \
                    temporarily unavailable\n│ Lock Info:\n│   ID:        \
                    c0ffee\n│   Path:      terraform.tfstate\n│   Operation: \
                    OperationTypeApply\n│   Who:       root@vm\n│   Version:   1.11.4\n│   \
                    Created:   2026-11-28 06:00:00 +0000 UTC\n│   Info:      \n";
        let fault = self::fault(said, "terraform").unwrap();
        assert_eq!(
            (fault.code, fault.why.as_str()),
            (
                75,
                "the state is locked by root@vm (OperationTypeApply) since 2026-11-28 06:00:00 \
                 +0000 UTC; it is free when that run ends; if nothing runs there any more, \
                 `terraform force-unlock c0ffee` frees it"
            )
        );
        assert!(super::fault("Error: something else", "tofu").is_none());
        // What another error says is not about this lock.
        let after = "Error: Error acquiring the state lock\n\nError message: held\nLock Info:\n  \
                     ID:  a\n\nError: Another\n  Who:  nobody\n";
        let why = super::fault(after, "tofu").unwrap().why;
        assert!(!why.contains("nobody") && why.contains("force-unlock a"), "{why}");
    }

    #[test]
    fn a_lock_that_cannot_be_written_is_nobodys() {
        let said = "Error: Error acquiring the state lock\n\nError message: open \
                    .terraform.tfstate.lock.info: no space left on device\nLock Info:\n  ID:        \
                    \n  Path:      \n";
        let fault = self::fault(said, "terraform").unwrap();
        assert_eq!(fault.code, 1);
        assert_eq!(
            fault.why,
            "the lock of the state cannot be taken: open .terraform.tfstate.lock.info: no space \
             left on device"
        );
    }

    #[test]
    fn what_this_run_asked_for_is_not_told_as_the_one_who_holds_the_lock() {
        let said = "Error: Error acquiring the state lock\n\nError message: HTTP remote state \
                    already locked: ID=1f2e\nLock Info:\n  ID:        d2ee22c0\n  Operation: \
                    OperationTypePlan\n  Who:       root@vm\n  Created:   2026-11-28 12:05:05 \
                    +0000 UTC\n";
        assert_eq!(
            fault(said, "tofu").unwrap().why,
            "the state is locked under the ID 1f2e, and its backend does not say by whom; it is \
             free when that run ends; if nothing runs there any more, `tofu force-unlock 1f2e` \
             frees it"
        );
        let same = said.replace("d2ee22c0", "1f2e");
        assert!(fault(&same, "tofu").unwrap().why.contains("by root@vm (OperationTypePlan)"));
    }
}
