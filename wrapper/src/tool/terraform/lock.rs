//! Whose the lock of a state is, which only the text says. Called by `terraform`.

use super::super::Fault;

/// Seen with terraform 1.11.4 and tofu 1.12.6.
const LOCKED: &str = "Error: Error acquiring the state lock";

/// The failure of a call that found the state locked: whose it is, since when, what would free it.
pub(super) fn fault(said: &str, program: &str) -> Option<Fault> {
    said.lines().find(|line| line.contains(LOCKED))?;
    // `  Who:       root@host`, behind the frame that terraform draws.
    let field = |name: &str| {
        said.lines().find_map(|line| {
            let line = line.trim_start_matches(['│', ' ']);
            let value = line.strip_prefix(name)?.strip_prefix(':')?.trim();
            (!value.is_empty()).then(|| value.to_owned())
        })
    };
    let mut why = "the state is locked".to_owned();
    if let Some(who) = field("Who") {
        why.push_str(&format!(" by {who}"));
    }
    if let Some(operation) = field("Operation") {
        why.push_str(&format!(" ({operation})"));
    }
    if let Some(created) = field("Created") {
        why.push_str(&format!(" since {created}"));
    }
    why.push_str("; it is free when that run ends");
    if let Some(id) = field("ID") {
        why.push_str(&format!(
            "; if nothing runs there any more, `{program} force-unlock {id}` frees it"
        ));
    }
    Some(Fault::again(why))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_is_told_with_its_owner() {
        let said = "╷\n│ Error: Error acquiring the state lock\n│ \n│ Error message: resource \
                    temporarily unavailable\n│ Lock Info:\n│   ID:        \
                    c0ffee\n│   Path:      terraform.tfstate\n│   Operation: \
                    OperationTypeApply\n│   Who:       root@vm\n│   Version:   1.11.4\n│   \
                    Created:   2026-11-28 06:00:00 +0000 UTC\n│   Info:      \n";
        let fault = fault(said, "terraform").unwrap();
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
    }
}
