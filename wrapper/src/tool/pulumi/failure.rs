//! Why a call of Pulumi failed, in words: whose the lock is, what is missing, and of what Pulumi
//! itself says the line that matters. Pure. Called by `pulumi`.
//!
//! Pulumi says on standard error why it did not begin; why a run failed that had begun is only in
//! what it prints, so that is looked at for the words, and decides nothing.

use schema::shown;

use super::super::call::CallEnd;
use super::super::faults::{self, KnownFault};
use super::super::{Fault, said};

/// Of a backend of one's own. Seen with Pulumi main of 2026-08.
const LOCKED: &str = "the stack is currently locked by";
/// Of Pulumi Cloud, and those that speak like it. Read in the source of 3.260.
const CONFLICT: &str = "[409] Conflict: Another update is currently in progress";
/// Seen with Pulumi main of 2026-08.
const NO_STACK: &str = "no stack named";

/// Other failures that exist only as text.
const FAULTS: &[KnownFault] = &[
    KnownFault {
        texts: &["PULUMI_ACCESS_TOKEN must be set", "this command requires logging in"],
        seen: "read in the source of 3.260",
        may_pass: false,
        words: "Pulumi is not logged in: set PULUMI_ACCESS_TOKEN for Pulumi Cloud, or \
                PULUMI_BACKEND_URL for a backend of your own",
    },
    KnownFault {
        texts: &["passphrase must be set with PULUMI_CONFIG_PASSPHRASE", "incorrect passphrase"],
        seen: "read in the source of 3.260",
        may_pass: false,
        words: "the passphrase of the stack's secrets is missing or wrong: set \
                PULUMI_CONFIG_PASSPHRASE or PULUMI_CONFIG_PASSPHRASE_FILE",
    },
    KnownFault {
        texts: &["no Pulumi.yaml project file found"],
        seen: "read in the source of 3.260",
        may_pass: false,
        words: "there is no Pulumi.yaml where the command runs, nor above: see that it runs in the \
                program's directory",
    },
    KnownFault {
        texts: &["Could not automatically download and install", "no resource plugin"],
        seen: "read in the source of 3.260",
        may_pass: true,
        words: "a plugin is missing, and could not be downloaded; put plugins into the image \
                (`pulumi plugin install`) to need no download",
    },
    KnownFault {
        texts: &[
            "connection refused",
            "connection reset by peer",
            "no such host",
            "i/o timeout",
            "TLS handshake timeout",
            "[429]",
            "[502]",
            "[503]",
            "[504]",
        ],
        seen: "the texts of Go's network library, and of HTTP statuses in the source of 3.260",
        may_pass: true,
        words: "Pulumi's backend could not be reached, or asked to come back later",
    },
];

/// How its lines begin that are about something else than the one before.
const ERROR: &str = "error:";
const WARNING: &str = "warning:";

/// What it says of a program that threw something.
const EXCEPTION: &str = "exception:";

/// What Pulumi says last of any failure, and of none why.
const SAYS_NOTHING: &[&str] = &["update failed", "preview failed"];

/// The resource that stands for the whole stack.
const STACK_TYPE: &str = "pulumi:pulumi:Stack";

/// A call that failed.
pub(super) struct Failed<'a> {
    pub(super) ended: &'a CallEnd,
    /// What it printed of why.
    pub(super) reason: Option<String>,
    /// As it is called.
    pub(super) program: &'a str,
    pub(super) step: &'a str,
    pub(super) stack: &'a str,
}

/// What it comes to.
pub(super) fn of(failed: &Failed<'_>) -> Fault {
    let Failed { ended, reason, program, step, stack } = failed;
    let own = own_error(&ended.words);
    let word = shown::shell_word(stack);
    if let Some(holder) = lock_holder(&own) {
        return Fault::again(format!(
            "the stack `{stack}` is locked by {holder}; it is free when that run ends; if nothing \
             runs there any more, `{program} cancel --stack {word} --yes` frees it"
        ));
    }
    if own.contains(NO_STACK) {
        return Fault::failed(format!(
            "there is no stack `{stack}` in this backend: see that its name and PULUMI_BACKEND_URL \
             (or the login) are right; `{program} stack init {word}` makes it"
        ));
    }
    let call = format!("{program} {step}");
    match (faults::find(FAULTS, &own), reason) {
        (None, Some(reason)) => faults::killed(ended, &call).unwrap_or_else(|| {
            Fault::failed(format!("`{call}` failed with exit code {}: {reason}", ended.code))
        }),
        _ => faults::of(FAULTS, &own, ended, &call),
    }
}

/// The error that Pulumi says first, in its own name, with all that it says of it; empty where it
/// says none. What a program of the user's threw is no error of Pulumi.
fn own_error(said: &str) -> String {
    let said = shown::seen(said);
    let mut lines = said.lines().skip_while(|line| !line.starts_with(ERROR));
    let Some(headline) = lines.next() else { return String::new() };
    if headline.contains(EXCEPTION) {
        return headline.to_owned();
    }
    let rest = lines.take_while(|line| !line.starts_with(ERROR) && !line.starts_with(WARNING));
    std::iter::once(headline).chain(rest).collect::<Vec<_>>().join("\n")
}

/// Who has the lock, and since when, if that is why.
fn lock_holder(said: &str) -> Option<String> {
    if said.contains(CONFLICT) {
        return Some("another update, which Pulumi Cloud shows on the stack's page".to_owned());
    }
    said.lines().find(|line| line.contains(LOCKED))?;
    // `  file:///…/ID.json: created by root@host (pid 7) at 2026-11-28T03:00:00Z`
    let holders: Vec<String> = said
        .lines()
        .filter_map(|line| {
            let (who, when) = line.split_once(": created by ")?.1.rsplit_once(" at ")?;
            Some(format!("{who} since {}", when.trim()))
        })
        .collect();
    Some(if holders.is_empty() {
        "somebody whom Pulumi does not name".to_owned()
    } else {
        holders.join(" and by ")
    })
}

/// Of several errors the first that says something.
pub(super) fn first(errors: impl Iterator<Item = String>) -> Option<String> {
    let mut least = None;
    for error in errors {
        if !SAYS_NOTHING.contains(&error.as_str()) {
            return Some(error);
        }
        least = Some(error);
    }
    least
}

/// An error in one line, with whose it is.
pub(super) fn sentence(kind: &str, name: &str, message: &str) -> String {
    let message = shown::seen(message);
    let message = message.trim_start();
    let message = message.strip_prefix("error:").unwrap_or(message);
    let mut lines = message.lines().map(str::trim).filter(|line| !line.is_empty());
    let head = lines.next().unwrap_or("an error without a message");
    let mut text = if name.is_empty() || kind == STACK_TYPE {
        String::new()
    } else {
        format!("{name} ({kind}): ")
    };
    // `Program failed with an unhandled exception:`, and what it was stands below: in Python's
    // words at the very end.
    if head.ends_with(" exception:") {
        text.push_str(head);
        let next = lines.next();
        let last = next.filter(|next| next.starts_with("Traceback")).and(lines.next_back());
        if let Some(detail) = last.or(next) {
            text.push(' ');
            text.push_str(detail);
        }
    } else {
        text.push_str(&said::in_one_line(if message.trim().is_empty() { head } else { message }));
    }
    text
}

/// The reason in the section that ends what `up` prints when it fails:
///
/// ```text
/// Diagnostics:
///   TYPE (NAME):
///     error: MESSAGE
/// ```
pub(super) fn of_diagnostics(printed: &str) -> Option<String> {
    let printed = shown::seen(printed);
    let start = printed.rfind("Diagnostics:\n")?;
    let mut errors: Vec<(&str, &str, String)> = Vec::new();
    let (mut owner, mut within) = (("", ""), false);
    for line in printed[start..].lines().skip(1) {
        if let Some(text) = line.strip_prefix("    ") {
            if text.starts_with("error:") {
                errors.push((owner.0, owner.1, String::new()));
            }
            within = text.starts_with("error:") || (within && !text.starts_with("warning:"));
            if let (true, Some((.., message))) = (within, errors.last_mut()) {
                message.push_str(text);
                message.push('\n');
            }
        } else {
            within = false;
            let header = line.strip_prefix("  ").and_then(|line| line.strip_suffix("):"));
            match header.and_then(|header| header.split_once(" (")) {
                Some(header) => owner = header,
                None if line.is_empty() => {}
                None => break,
            }
        }
    }
    first(errors.iter().map(|(kind, name, message)| sentence(kind, name, message)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fault(code: u8, said: &str, reason: Option<&str>) -> (u8, String) {
        let ended = CallEnd::failed(code, said);
        let fault = of(&Failed {
            ended: &ended,
            reason: reason.map(str::to_owned),
            program: "poetry run pulumi",
            step: "up",
            stack: "org/dev",
        });
        (fault.code, fault.why)
    }

    #[test]
    fn a_lock_is_told_with_all_that_hold_it_and_with_what_frees_it() {
        let said = "error: the stack is currently locked by 2 lock(s). Either wait for the other \
                    process(es) to end or delete the lock file with `pulumi cancel`.\n  \
                    file:///s/.pulumi/locks/a.json: created by root@vm (pid 7) at \
                    2026-11-28T03:00:00Z\n  file:///s/.pulumi/locks/b.json: created by me@laptop \
                    (pid 8) at 2026-11-28T03:00:01+01:00\n";
        assert_eq!(
            fault(1, said, None),
            (
                75,
                "the stack `org/dev` is locked by root@vm (pid 7) since 2026-11-28T03:00:00Z and \
                 by me@laptop (pid 8) since 2026-11-28T03:00:01+01:00; it is free when that run \
                 ends; if nothing runs there any more, `poetry run pulumi cancel --stack org/dev \
                 --yes` frees it"
                    .to_owned()
            )
        );
        let (code, why) = fault(255, "error: the stack is currently locked by 1 lock(s)", None);
        assert!(code == 75 && why.contains("whom Pulumi does not name"), "{why}");
        let (code, why) = fault(255, &format!("error: {CONFLICT}.\nTo learn more"), None);
        assert!(code == 75 && why.contains("another update"), "{why}");
    }

    #[test]
    fn no_code_of_pulumi_passes_through() {
        for code in [2, 3, 4, 7, 8, 75, 126, 127, 255] {
            let (own, why) = fault(code, "error: unknown flag: --refresh\n", None);
            assert_eq!(
                (own, why),
                (
                    1,
                    format!(
                        "`poetry run pulumi up` failed with exit code {code}: error: unknown flag: \
                         --refresh"
                    )
                )
            );
        }
        let (code, why) = fault(6, "error: no stack named 'org/dev' found\n", None);
        assert!(code == 1 && why.contains("there is no stack `org/dev`"), "{why}");
        let (code, why) =
            fault(1, "error: dial tcp 10.0.0.1:443: connect: connection refused", None);
        assert!(code == 75 && why.contains("could not be reached"), "{why}");
        let (code, why) = fault(1, "warning: x\n", Some("web (a:b:C): quota exceeded"));
        assert_eq!(
            (code, why.as_str()),
            (1, "`poetry run pulumi up` failed with exit code 1: web (a:b:C): quota exceeded")
        );
    }

    #[test]
    fn what_others_say_is_not_pulumis_failure() {
        let reason = "web (a:b:C): deploy failed";
        for said in [
            "dial tcp 10.0.0.1:443: connect: connection refused\nerror: update failed\n",
            "warning: retrying after [503]\nerror: update failed\n",
            "error: update failed\nerror: the stack is currently locked by 1 lock(s)\n",
            "inner: no stack named 'x' found\nerror: update failed\n",
            "error: Program failed with an unhandled exception:\nE: connection refused\n",
            "it says error: PULUMI_ACCESS_TOKEN must be set\n",
        ] {
            let (code, why) = fault(1, said, Some(reason));
            assert_eq!(code, 1, "{said}: {why}");
            assert!(why.ends_with(&format!("exit code 1: {reason}")), "{said}: {why}");
        }
        let sdk = "\u{1b}[31merror: \u{1b}[0mread meta.yaml: send request failed\ncaused by: dial: \
                   connection refused\n";
        assert_eq!(fault(1, sdk, None).0, 75);
    }

    #[test]
    fn the_reason_is_the_first_error_that_says_something() {
        let printed = "\
Updating (dev):

 +  a:b:C web creating (0s) error: quota
\u{1b}[1mDiagnostics:\u{1b}[0m
  pulumi:pulumi:Stack (p-dev):
    warning: old
    error: update failed

  a:b:C (web):
    warning: first
    \u{1b}[31merror: \u{1b}[0m1 error occurred:
    \t* creating web: quota exceeded
    error: second

Resources:
    1 errored

Duration: 1s
";
        assert_eq!(
            of_diagnostics(printed).unwrap(),
            "web (a:b:C): 1 error occurred: * creating web: quota exceeded"
        );
        let canceled = "Diagnostics:\n  pulumi:pulumi:Stack (p-dev):\n    error: update canceled\n";
        assert_eq!(of_diagnostics(canceled).unwrap(), "update canceled");
        let failed = "Diagnostics:\n  pulumi:pulumi:Stack (p-dev):\n    error: update failed\n";
        assert_eq!(of_diagnostics(failed).unwrap(), "update failed");
        assert_eq!(of_diagnostics("Updating (dev):\n"), None);
    }

    #[test]
    fn an_exception_of_a_program_is_told_in_one_line() {
        let python = "error: Program failed with an unhandled exception:\nTraceback (most recent \
                      call last):\n  File \"/p/__main__.py\", line 3\nValueError: no such zone\n";
        assert_eq!(
            sentence(STACK_TYPE, "p-dev", python),
            "Program failed with an unhandled exception: ValueError: no such zone"
        );
        let node = "error: Running program '/p' failed with an unhandled exception:\n\nError: no \
                    such zone\n    at Object.<anonymous> (/p/index.ts:3:7)\n";
        assert_eq!(
            sentence("", "", node),
            "Running program '/p' failed with an unhandled exception: Error: no such zone"
        );
        assert_eq!(sentence("", "", ""), "an error without a message");
    }
}
