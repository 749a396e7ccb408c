//! What gcloud says of a failure of Cloud Run: it ends with 1 whatever it is. Called by
//! `google_cloud_run`.

use super::super::call::CallEnd;
use super::super::faults::{self, KnownFault};
use super::super::{Fault, said};

/// How a failure begins.
const ERROR: &str = "ERROR: ";

/// What gcloud needs and does not have.
const NO_HOME: &str = "gcloud cannot keep its configuration below HOME: let the job have a HOME \
                       that it may write to, or name such a directory in CLOUDSDK_CONFIG";

/// The failures that are known by text, the particular before the general.
const FAULTS: &[KnownFault] = &[
    KnownFault {
        texts: &["invalid_grant", "Invalid JWT Signature", "The credential file is not valid"],
        seen: "read in gcloud 528",
        may_pass: false,
        words: "Google refuses the credentials: the key was deleted or disabled, or the clock here \
                is wrong",
    },
    KnownFault {
        texts: &["problem refreshing auth tokens", "problem refreshing your current auth tokens"],
        seen: "read in gcloud 528",
        may_pass: true,
        words: "gcloud got no access token",
    },
    KnownFault {
        texts: &["SERVICE_DISABLED", "has not been used in project"],
        seen: "read in gcloud 528",
        may_pass: false,
        words: "the Cloud Run API is off in this project: `gcloud services enable \
                run.googleapis.com` turns it on",
    },
    KnownFault {
        texts: &[") UNAUTHENTICATED"],
        seen: "gcloud 528",
        may_pass: false,
        words: "Cloud Run does not accept the credentials: they have expired or were revoked",
    },
    KnownFault {
        // The second where it is the project that is asked, as for a service that is new.
        texts: &[") PERMISSION_DENIED", "does not have permission to access"],
        seen: "gcloud 528",
        may_pass: false,
        words: "not allowed: grant the account roles/run.developer, and \
                roles/iam.serviceAccountUser on the account that the service runs as",
    },
    KnownFault {
        texts: &[") RESOURCE_EXHAUSTED"],
        seen: "gcloud 528",
        may_pass: true,
        words: "Cloud Run throttles this project, or a quota of it is used up",
    },
    KnownFault {
        texts: &["with different configuration already exists"],
        seen: "gcloud 528",
        may_pass: false,
        words: "the service names its revision, and one of that name exists with other content: \
                take `spec.template.metadata.name` out, or put the version into it",
    },
    KnownFault {
        texts: &[") ABORTED", ") ALREADY_EXISTS", "is the subject of a conflict"],
        seen: "gcloud 528",
        may_pass: true,
        words: "the service has changed since it was looked at, by somebody else or by a try of \
                ours whose answer was lost; the next try looks again",
    },
    KnownFault {
        texts: &["is in the process of being deleted"],
        seen: "read in gcloud 528",
        may_pass: true,
        words: "somebody deletes the service; it is made anew once it is gone",
    },
    KnownFault {
        texts: &["Cannot find revision ["],
        seen: "gcloud 528",
        may_pass: true,
        words: "a revision was deleted while it was looked at",
    },
    KnownFault {
        texts: &["HttpError accessing", ") UNAVAILABLE", ") INTERNAL"],
        seen: "gcloud 528",
        may_pass: true,
        words: "Cloud Run answers with an error of its own, and gcloud has retried for 30 s; \
                status.cloud.google.com tells of outages",
    },
    KnownFault {
        texts: &[
            "Max retries exceeded with url",
            "gcloud crashed (ConnectionError)",
            "gcloud crashed (ProxyError)",
            "gcloud crashed (ReadTimeout)",
            "gcloud crashed (ChunkedEncodingError)",
        ],
        seen: "gcloud 528",
        may_pass: true,
        words: "Cloud Run cannot be reached, or its answer was lost: look at the network, the \
                proxy, and whether there is such a region",
    },
];

/// The failures to keep its configuration.
const HOME: &[KnownFault] = &[KnownFault {
    texts: &[
        "Could not open the configuration file: [",
        "Could not setup log file in",
        "gcloud crashed (FileNotFoundError)",
        "gcloud crashed (PermissionError)",
    ],
    seen: "gcloud 528",
    may_pass: false,
    words: NO_HOME,
}];

/// That it has no account; so it also ends where it finds no file to look for one in, of which it
/// only warns.
const ACCOUNT: &[KnownFault] = &[KnownFault {
    texts: &["You do not currently have an active account selected"],
    seen: "gcloud 528",
    may_pass: false,
    words: "gcloud has no credentials: give the job GOOGLE_SERVICE_ACCOUNT_JSON, or a workload \
                identity",
}];

/// Whether a failure is about where gcloud keeps its configuration.
pub(super) fn is_of_home(fault: &Fault) -> bool {
    fault.why.starts_with(NO_HOME)
}

/// The failure as it is known, by what gcloud says last as its error. It may say nothing in that
/// form where it cannot begin: then by all of it.
fn known(said: &str) -> Option<&'static KnownFault> {
    let own = own_error(said).map_or_else(|| said.to_owned(), |own| own.join("\n"));
    let account = || {
        let account = faults::find(ACCOUNT, &own)?;
        Some(faults::find(HOME, said).unwrap_or(account))
    };
    faults::find(FAULTS, &own).or_else(|| faults::find(HOME, &own)).or_else(account)
}

/// The lines of the error that gcloud says last.
fn own_error(said: &str) -> Option<Vec<&str>> {
    let lines: Vec<&str> = said.lines().collect();
    let at = lines.iter().rposition(|line| line.starts_with(ERROR))?;
    let more = lines[at + 1..].iter().take_while(|line| !line.trim().is_empty());
    Some(std::iter::once(&lines[at]).chain(more).copied().collect())
}

/// Whether it is known of a failed call what it is that failed.
pub(super) fn is_known(ended: &CallEnd) -> bool {
    known(&ended.words).is_some() || faults::killed(ended, "").is_some()
}

/// What a failed call comes to.
pub(super) fn of(ended: &CallEnd, call: &str) -> Fault {
    if let Some(killed) = faults::killed(ended, call) {
        return killed;
    }
    let CallEnd { code, words: said, .. } = ended;
    let sentence = sentence(said);
    match known(said) {
        Some(known) => known.fault(": ", &sentence),
        None if sentence.is_empty() => {
            Fault::failed(format!("`{call}` failed with exit code {code}"))
        }
        None => Fault::failed(format!("`{call}` failed with exit code {code}: {sentence}")),
    }
}

/// What gcloud says itself, without whose command that was: `ERROR: (gcloud.run…) SENTENCE`, and
/// what follows up to an empty line: behind that it says how it is used. Where it says nothing in
/// that form, all of it.
fn sentence(said: &str) -> String {
    let Some(own) = own_error(said) else { return said::in_one_line(said) };
    let first = &own[0][ERROR.len()..];
    let first = match first.split_once(") ") {
        Some((command, rest)) if command.starts_with("(gcloud") => rest,
        _ => first,
    };
    // Of which type a part of an answer is says nothing of the failure, nor what is to be run.
    let more =
        own[1..].iter().filter(|line| !line.contains("@type") && !line.starts_with("Please run:"));
    said::in_one_line(&std::iter::once(&first).chain(more).copied().collect::<Vec<_>>().join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(said: &str) -> (u8, String) {
        let fault = of(&CallEnd::failed(1, said), "gcloud run services replace");
        (fault.code, fault.why)
    }

    #[test]
    fn a_failure_is_known_by_its_text_and_tells_it() {
        let denied = "Applying new configuration to Cloud Run service [web] in project [p]\nERROR: \
                      (gcloud.run.services.replace) PERMISSION_DENIED: Permission \
                      'run.services.update' denied on resource 'web'.";
        let (code, why) = told(denied);
        assert_eq!(code, 1);
        assert!(why.starts_with("not allowed: grant the account roles/run.developer"), "{why}");
        assert!(why.ends_with("Permission 'run.services.update' denied on resource 'web'."));
        for (said, code) in [
            (") RESOURCE_EXHAUSTED: Quota exceeded", 75),
            (") ABORTED: Conflict for resource 'web': version 'A' was specified", 75),
            (") ALREADY_EXISTS: Resource 'web' already exists", 75),
            (
                ") ALREADY_EXISTS: Revision named 'a' with different configuration already exists.",
                1,
            ),
            (") Namespaces instance [p] is the subject of a conflict: Resource exists.", 75),
            (") [a@b] does not have permission to access namespaces instance [p]: x", 1),
            (") UNAUTHENTICATED: Request had invalid authentication credentials.", 1),
            (") HttpError accessing <http://x>: response: <{'status': 503}>", 75),
        ] {
            assert_eq!(
                told(&format!("ERROR: (gcloud.run.services.replace{said}")).0,
                code,
                "{said}"
            );
        }
    }

    #[test]
    fn what_is_quoted_or_warned_of_is_not_the_failure() {
        for said in [
            "WARNING: retried after ) UNAVAILABLE: x\nERROR: (gcloud.run.services.replace) bad\n",
            "ERROR: (gcloud.a) HttpError accessing x\nERROR: (gcloud.run.services.replace) bad\n",
            "WARNING: Could not setup log file in /x\nERROR: (gcloud.run.services.replace) bad\n",
        ] {
            let words = "`gcloud run services replace` failed with exit code 1: bad";
            assert_eq!(told(said), (1, words.to_owned()), "{said}");
        }
        let account = "ERROR: (gcloud.run.services.list) You do not currently have an active \
                       account selected.\n";
        assert!(told(account).1.starts_with("gcloud has no credentials"));
        let home = format!("WARNING: Could not setup log file in /x\n{account}");
        assert!(told(&home).1.starts_with(NO_HOME));
    }

    #[test]
    fn every_line_says_where_it_was_seen() {
        let mut all = FAULTS.iter().chain(HOME).chain(ACCOUNT);
        assert!(all.all(|known| known.seen.ends_with("gcloud 528")));
    }

    #[test]
    fn what_is_not_known_is_a_failure_with_the_servers_own_words() {
        let said = "ERROR: (gcloud.run.services.replace) spec.template.spec: must be set\n";
        assert_eq!(
            told(said),
            (
                1,
                "`gcloud run services replace` failed with exit code 1: spec.template.spec: must \
                 be set"
                    .to_owned()
            )
        );
        let missing = "ERROR: (gcloud.run.services.describe) Cannot find service [web]";
        assert!(!is_known(&CallEnd::failed(1, missing)));
        assert_eq!(told("").1, "`gcloud run services replace` failed with exit code 1");
        assert!(told(&format!("ERROR: {}", "ä".repeat(900))).1.contains("ä … ä"));
    }
}
