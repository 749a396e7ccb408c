//! What `aws` says when it fails -> what that comes to. Its exit code is the same for every failure
//! (255, or 254 of version 2), but what AWS itself answered has a code, which is data: it stands in
//! one form of text, read here and nowhere else. Pure. Called by `cli`.

use super::super::call::CallEnd;
use super::super::faults::{self, KnownFault};
use super::super::{Fault, said};
use crate::exit;

/// How an error that has a code begins.
const OCCURRED: &str = "An error occurred (";

/// How an error of the CLI itself begins, behind how it is used.
const OWN_ERRORS: &[&str] = &["aws: error:", "aws: [ERROR]:"];

const NO_REGION: &str = "there is no region: name it with `--region`, or in AWS_DEFAULT_REGION";
const BAD_REGION: &str = "there is no region of this name: `aws ec2 describe-regions` lists them";

/// Whether a failure is about the way to AWS or about where it is to be, whoever asks.
pub(super) fn is_of_place(fault: &Fault) -> bool {
    let is_of_region = [NO_REGION, BAD_REGION].iter().any(|words| fault.why.starts_with(words));
    is_of_region || fault.code == exit::TRY_AGAIN
}

/// Failures of AWS that exist only as text: its message begins so. What the tool said is put behind
/// the words.
const MESSAGES: &[KnownFault] = &[
    KnownFault {
        texts: &["Creation of service was not idempotent"],
        seen: "reported of AWS by 2026, not run here",
        may_pass: true,
        words: "somebody else has made a service of this name meanwhile; the next try updates it",
    },
    KnownFault {
        texts: &["Unable to Start a service that is still Draining"],
        seen: "reported of AWS by 2026, not run here",
        may_pass: true,
        words: "the service of this name is still being deleted; it is made anew when its last \
                task has stopped",
    },
    KnownFault {
        texts: &["Too many concurrent attempts to create a new revision"],
        seen: "reported of AWS by 2026, not run here",
        may_pass: true,
        words: "others register revisions of this family at the same time; the next try does it",
    },
];

/// The same of the CLI itself, which are no answers of AWS.
const FAULTS: &[KnownFault] = &[
    KnownFault {
        texts: &[
            "Could not connect to the endpoint URL",
            "Connection was closed before we received a valid response",
            "Connect timeout on endpoint URL",
            "Read timeout on endpoint URL",
            "Failed to connect to proxy URL",
        ],
        seen: "aws 1.45.11",
        may_pass: true,
        words: "AWS could not be reached, or there is no such region, or its answer was lost; \
                whatever was done is looked for at the next try",
    },
    KnownFault {
        texts: &["Unable to locate credentials", "Partial credentials found"],
        seen: "aws 1.45.11",
        may_pass: false,
        words: "there are no credentials: give the job a role, or AWS_ACCESS_KEY_ID and its like",
    },
    KnownFault {
        texts: &[
            "Error when retrieving token from sso",
            "Error loading SSO Token",
            "The SSO session associated with this profile has expired",
        ],
        seen: "read in botocore 1.43, not run here",
        may_pass: false,
        words: "the SSO login of this profile is missing or has expired: `aws sso login` where and \
                as whom the job runs; a role, or keys of its own, expire for nobody",
    },
    KnownFault {
        texts: &["The config profile ("],
        seen: "aws 1.45.11",
        may_pass: false,
        words: "there is no such profile where the job runs: look at AWS_PROFILE, AWS_CONFIG_FILE \
                and HOME",
    },
    KnownFault {
        texts: &["You must specify a region"],
        seen: "aws 1.45.11",
        may_pass: false,
        words: NO_REGION,
    },
    KnownFault {
        texts: &["doesn't match a supported format"],
        seen: "aws 1.45.11",
        may_pass: false,
        words: BAD_REGION,
    },
    KnownFault {
        texts: &["Parameter validation failed"],
        seen: "aws 1.45.11",
        may_pass: false,
        words: "the definition is not as this version of `aws` takes it (a newer one may know the \
                field)",
    },
];

/// What an error of AWS itself means: its codes, whether another try may do, what it is and what
/// ends it.
struct KnownCode(&'static [&'static str], bool, &'static str);

/// Source: "Common Errors" and the operations' "Errors" in the API references of ECS and STS;
/// botocore 1.43 for what counts as throttled.
const CODES: &[KnownCode] = &[
    KnownCode(
        &[
            "ThrottlingException",
            "Throttling",
            "ThrottledException",
            "TooManyRequestsException",
            "RequestLimitExceeded",
            "RequestThrottled",
            "RequestThrottledException",
            "BandwidthLimitExceeded",
            "SlowDown",
        ],
        true,
        "AWS throttles the calls of this account; it passes",
    ),
    KnownCode(
        &[
            "ServerException",
            "InternalFailure",
            "InternalError",
            "InternalServerError",
            "InternalServerException",
            "ServiceUnavailable",
            "ServiceUnavailableException",
            "RequestTimeout",
            "RequestTimeoutException",
        ],
        true,
        "AWS itself failed; it passes",
    ),
    KnownCode(
        &["ServiceNotActiveException", "ServiceNotFoundException", "UpdateInProgressException"],
        true,
        "somebody else deletes or changes the service right now; the next try looks again",
    ),
    KnownCode(
        &["ExpiredTokenException", "ExpiredToken", "TokenRefreshRequired"],
        false,
        "the credentials have expired: renew what the job gets, or log in again",
    ),
    KnownCode(
        &[
            "UnrecognizedClientException",
            "InvalidClientTokenId",
            "InvalidSignatureException",
            "SignatureDoesNotMatch",
            "IncompleteSignature",
            "MissingAuthenticationToken",
            "MissingAuthenticationTokenException",
        ],
        false,
        "AWS does not accept these credentials: `aws sts get-caller-identity` shows whose they are",
    ),
    KnownCode(
        &["RequestExpired", "RequestTimeTooSkewed"],
        false,
        "the clock where the job runs is wrong: set it",
    ),
    KnownCode(
        &["ClusterNotFoundException"],
        false,
        "there is no such cluster in this account and region: look at the cluster's name, at the \
         region, and at whose the credentials are",
    ),
    KnownCode(
        &["LimitExceededException"],
        false,
        "a quota of the account is used up: have it raised, or free what is not in use",
    ),
];

/// An error that AWS answered.
#[derive(Debug, PartialEq, Eq)]
struct AwsError<'a> {
    code: &'a str,
    operation: &'a str,
    message: &'a str,
}

/// Reads `An error occurred (CODE) when calling the OPERATION operation: MESSAGE`, with or without
/// `(reached max retries: N)` before the colon: the first that begins a line, for a message may
/// quote another, as of a call that AWS made itself.
fn parse(said: &str) -> Option<AwsError<'_>> {
    said.match_indices(OCCURRED).find_map(|(at, _)| {
        let before = said[..at].rsplit('\n').next().unwrap_or_default().trim();
        if !before.is_empty() && !OWN_ERRORS.contains(&before) {
            return None;
        }
        let rest = &said[at + OCCURRED.len()..];
        let (code, rest) = rest.split_once(") when calling the ")?;
        let (operation, rest) = rest.split_once(" operation")?;
        let message = match rest.strip_prefix(" (reached max retries: ") {
            Some(rest) => rest.split_once("): ")?.1,
            None => rest.strip_prefix(": ")?,
        };
        Some(AwsError { code, operation, message: message.trim() })
    })
}

/// What a failed call comes to.
pub(super) fn fault(call: &str, ended: &CallEnd) -> Fault {
    if let Some(killed) = faults::killed(ended, call) {
        return killed;
    }
    let CallEnd { code: exit_code, words: said, .. } = ended;
    let error = parse(said);
    let before = format!(": `{call}`: ");
    let Some(error) = error else {
        if let Some(known) = faults::find(FAULTS, said) {
            return known.fault(&before, &reason(said, known.texts));
        }
        let told = reason(said, &[]);
        return Fault::failed(format!("`{call}` failed with exit code {exit_code}: {told}"));
    };
    let begins =
        |known: &&KnownFault| known.texts.iter().any(|text| error.message.starts_with(text));
    if let Some(known) = MESSAGES.iter().find(begins) {
        return known.fault(&before, &said::in_one_line(error.message));
    }
    let told = format!("{}: {}", error.code, said::in_one_line(error.message));
    if let Some(action) = refused(&error, call) {
        return Fault::failed(format!(
            "`{action}` is not allowed to these credentials: let a policy of theirs allow it; \
             `{call}`: {told}"
        ));
    }
    let known = CODES.iter().find(|KnownCode(codes, ..)| codes.contains(&error.code));
    let is_server_error = error.code.len() == 3 && error.code.starts_with('5');
    match known {
        Some(KnownCode(_, true, words)) => Fault::again(format!("{words}; `{call}`: {told}")),
        Some(KnownCode(_, false, words)) => Fault::failed(format!("{words}; `{call}`: {told}")),
        None if is_server_error => Fault::again(format!("AWS itself failed; `{call}`: {told}")),
        None => Fault::failed(format!("`{call}` was refused: {told}")),
    }
}

/// The action that a policy has to allow, of an error that says so.
fn refused(error: &AwsError<'_>, call: &str) -> Option<String> {
    const CODES: &[&str] = &[
        "AccessDeniedException",
        "AccessDenied",
        "UnauthorizedOperation",
        "NotAuthorized",
        "UnauthorizedException",
    ];
    // One that is not of the call's own is named in the text: `iam:PassRole`, say.
    let named = error.message.split_once("not authorized to perform: ").map(|(_, rest)| {
        rest.split([' ', ',']).next().unwrap_or_default().trim_end_matches('.').to_owned()
    });
    match named.filter(|action| action.contains(':')) {
        Some(action) => Some(action),
        None if CODES.contains(&error.code) => {
            let service = call.split(' ').nth(1).unwrap_or("ecs");
            Some(format!("{service}:{}", error.operation))
        }
        None => None,
    }
}

/// What a failure without a code says of itself: the line of a known text, with those behind it;
/// else what the CLI says in its own name, or all of it.
fn reason(said: &str, texts: &[&str]) -> String {
    if texts.is_empty() {
        let own = OWN_ERRORS.iter().find_map(|own| Some(&said[said.rfind(own)?..]));
        let told = said::in_one_line(own.unwrap_or(said));
        return if told.is_empty() { "it says nothing".to_owned() } else { told };
    }
    let lines = said.lines().map(str::trim).filter(|line| !line.is_empty());
    let from = lines.skip_while(|line| !texts.iter().any(|text| line.contains(text)));
    from.map(|line| line.trim_end_matches(':')).collect::<Vec<_>>().join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(said: &str, code: u8, words: &[&str]) {
        let fault = fault("aws ecs update-service", &CallEnd::failed(255, said));
        assert_eq!(fault.code, code, "{said}: {}", fault.why);
        for word in words {
            assert!(fault.why.contains(word), "{word:?} is not in {:?}", fault.why);
        }
        assert!(!fault.why.contains('\n'), "{:?}", fault.why);
    }

    #[test]
    fn an_error_of_aws_is_read_in_each_of_its_forms() {
        for (said, message) in [
            ("\nAn error occurred (A) when calling the Op operation: m: n\n", "m: n"),
            (
                "An error occurred (A) when calling the Op operation (reached max retries: 2): m",
                "m",
            ),
            ("\naws: [ERROR]: An error occurred (A) when calling the Op operation: m", "m"),
        ] {
            let expected = AwsError { code: "A", operation: "Op", message };
            assert_eq!(parse(said), Some(expected), "{said}");
        }
        assert_eq!(parse("An error occurred (A) in the middle"), None);
    }

    #[test]
    fn an_error_that_a_message_quotes_is_not_the_one_that_occurred() {
        let quoted = "An error occurred (ThrottlingException) when calling the AssumeRole \
                      operation: Rate exceeded";
        for message in [
            format!("Unable to assume the role: {quoted}"),
            format!("Unable to assume the role:\n  - {quoted}"),
            "the hook said: Could not connect to the endpoint URL".to_owned(),
            "the hook said: Creation of service was not idempotent.".to_owned(),
        ] {
            let said = format!(
                "\nAn error occurred (InvalidParameterException) when calling the UpdateService \
                 operation: {message}\n"
            );
            check(&said, 1, &["was refused: InvalidParameterException: "]);
        }
        check(&format!("Error when retrieving credentials from a process: {quoted}"), 1, &["255"]);
    }

    #[test]
    fn what_passes_is_tried_again_and_what_does_not_says_what_to_do() {
        check("\nThe config profile (x) could not be found\n", 1, &["there is no such profile"]);
        check("Error loading SSO Token: Token for x does not exist", 1, &["`aws sso login`"]);
        let occurred = |code: &str, message: &str| {
            format!(
                "\nAn error occurred ({code}) when calling the UpdateService operation: {message}"
            )
        };
        check(
            &occurred("ThrottlingException", "Rate exceeded"),
            75,
            &["throttles", "Rate exceeded"],
        );
        check(&occurred("ServerException", "x"), 75, &["AWS itself failed"]);
        check(&occurred("503", "Service Unavailable"), 75, &["AWS itself failed", "503"]);
        check(&occurred("ServiceNotActiveException", "x"), 75, &["looks again"]);
        check(&occurred("ClusterNotFoundException", "Cluster not found."), 1, &["no such cluster"]);
        check(&occurred("ExpiredTokenException", "expired"), 1, &["have expired: renew"]);
        check(
            &occurred("InvalidParameterException", "Creation of service was not idempotent."),
            75,
            &["of this name", "not idempotent"],
        );
        check(
            &occurred("InvalidParameterException", "bad subnet"),
            1,
            &["was refused", "bad subnet"],
        );
        check(
            &occurred(
                "AccessDeniedException",
                "User: arn:aws:iam::1:user/x is not authorized to perform: iam:PassRole on \
                 resource: arn:aws:iam::1:role/y",
            ),
            1,
            &["`iam:PassRole` is not allowed"],
        );
        check(&occurred("AccessDeniedException", "no"), 1, &["`ecs:UpdateService` is not allowed"]);
        check(
            "\nCould not connect to the endpoint URL: \"http://127.0.0.1:1/\"\n",
            75,
            &["could not be reached", "127.0.0.1:1"],
        );
        check(
            "Unable to locate credentials. You can configure credentials by running \"aws \
             configure\".",
            1,
            &["no credentials: give"],
        );
        check(
            "\nParameter validation failed:\nUnknown parameter in input: \"bad\", must be one of: \
             a, b\n",
            1,
            &["a newer one may know", "\"bad\""],
        );
        check("usage: aws\n\naws: error: bad\n", 1, &["exit code 255: aws: error: bad"]);
        check("", 1, &["it says nothing"]);
    }

    #[test]
    fn each_text_says_where_it_was_seen() {
        assert!(MESSAGES.iter().chain(FAULTS).all(|known| !known.seen.is_empty()));
    }
}
