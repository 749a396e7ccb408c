//! What a preview needs, tried: the program, its login, the stack with its secrets. Called by
//! `pulumi`.

use schema::status::CheckKind;

use super::super::Fault;
use super::super::call::Output;
use super::super::findings::{ToolFindings, version_numbers};
use super::Pulumi;

const ASKED: &[CheckKind] = &[CheckKind::Tool, CheckKind::Credentials, CheckKind::Target];

/// The first of the generation whose commands and flags are called here. Source: the changelog of
/// Pulumi, 3.0.0.
const LEAST: (u32, u32) = (3, 0);

const PROGRAM: &str = "put pulumi 3 into the image, with what `pulumiCommandPrefix` names, or on \
                       the PATH of the machine where the job runs; `preRun` may extend PATH";
const LOGIN: &str = "set PULUMI_ACCESS_TOKEN for Pulumi Cloud, or PULUMI_BACKEND_URL with the \
                     credentials of that backend, in `env` of the runtime";
const STACK: &str = "see that `stack` and `path` of the service are right and that the login may \
                     read the stack; `pulumi stack init` makes one; what it said is in the job's \
                     log";
const OUTPUTS: &str = "give the job what opens the stack's secrets: PULUMI_CONFIG_PASSPHRASE, or \
                       the right to use its key, in `env` of the runtime; what it said is in the \
                       job's log";

/// Tries all, and prints what was found.
pub(super) fn run(pulumi: &mut Pulumi<'_>) -> Result<u8, Fault> {
    let mut findings = ToolFindings::of(ASKED);
    let found = version(pulumi);
    if !findings.tried(CheckKind::Tool, found, PROGRAM, pulumi.caller.is_stopped())? {
        return findings.print();
    }
    let found = line(pulumi, &["whoami", "--non-interactive"]);
    let found = found.map(|name| format!("logged in as `{name}`"));
    if !findings.tried(CheckKind::Credentials, found, LOGIN, pulumi.caller.is_stopped())? {
        return findings.print();
    }
    let history = ["stack", "history", "--json", "--page-size", "1"];
    let found = pulumi.document(&history, '[');
    let found = found.map(|_| format!("the stack `{}` is there", pulumi.stack));
    if !findings.tried(CheckKind::Target, found, STACK, pulumi.caller.is_stopped())? {
        return findings.print();
    }
    let found = pulumi.document(&["stack", "output", "--json"], '{');
    let found = found.map(|_| "its state can be read, and its secrets opened".to_owned());
    findings.tried(CheckKind::Target, found, OUTPUTS, pulumi.caller.is_stopped())?;
    findings.print()
}

/// The version, if that will do.
fn version(pulumi: &mut Pulumi<'_>) -> Result<String, Fault> {
    let version = line(pulumi, &["version"])?;
    match version_numbers(&version) {
        Some(numbers) if numbers < LEAST => {
            Err(Fault::failed(format!("`pulumi` is {version}, which is too old")))
        }
        _ => Ok(format!("`pulumi` is {version}")),
    }
}

/// The one line that a call for no stack prints.
fn line(pulumi: &mut Pulumi<'_>, arguments: &[&str]) -> Result<String, Fault> {
    let ended = pulumi.call_for_none(arguments, Output::Kept)?;
    if ended.code != 0 {
        return Err(pulumi.fault(&ended, arguments[0], None));
    }
    let said = String::from_utf8_lossy(&ended.answer);
    Ok(said.lines().next().unwrap_or_default().trim().to_owned())
}
