//! What a plan needs, tried: the program, its backend and providers, the state. Called by
//! `terraform`.

use std::path::Path;

use schema::status::CheckKind;
use serde::Deserialize;

use super::super::call::Output;
use super::super::findings::{ToolFindings, try_to_write, version_numbers};
use super::super::{Fault, said, words};
use super::{DATA, Terraform, info, place};

const ASKED: &[CheckKind] = &[CheckKind::Tool, CheckKind::Target];

/// The first whose plans have the format that is read here. Source: "JSON Output Format" of
/// Terraform: format version 1.0 came with Terraform 1.1; OpenTofu began with 1.6.
const LEAST: (u32, u32) = (1, 1);

/// How files of a configuration end. Source: "Files and Directories" of Terraform and OpenTofu.
const CONFIGURATION: &[&str] = &[".tf", ".tf.json", ".tofu", ".tofu.json"];

const PROGRAM: &str = "put terraform 1.1 or newer, or OpenTofu, into the image, or on the PATH of \
                       the machine where the job runs; `preRun` may extend PATH";
const DIRECTORY: &str = "`path` of the service is the directory with the .tf files: in the image, \
                         or below the root of the runtime `local`";
const INIT: &str = "`terraform init` has to work where the job runs: look at `backendConfig` and \
                    `extraInitArgs` of the service, at the credentials in `env` of the runtime, \
                    and at the network; what it said is in the job's log";
const STATE: &str = "let the credentials in `env` of the runtime read the state, and see that the \
                     backend is the one that is meant; what terraform said is in the job's log";

const WRITE: &str = "free room there, let the user of the job write there, or keep the state in a \
                     backend elsewhere: on this machine a lock and each apply are files there";

/// What `version -json` says; OpenTofu uses the same name.
#[derive(Deserialize)]
struct ProgramVersion {
    terraform_version: String,
}

/// There is no program that can be run: nothing else can be tried.
pub(super) fn without_program(why: String) -> Result<u8, Fault> {
    let mut findings = ToolFindings::of(ASKED);
    findings.failed(CheckKind::Tool, why, PROGRAM);
    findings.print()
}

/// Tries all, and prints what was found.
pub(super) fn run(terraform: &mut Terraform<'_>, init_args: &[String]) -> Result<u8, Fault> {
    let mut findings = ToolFindings::of(ASKED);
    let found = version(terraform);
    if !findings.tried(CheckKind::Tool, found, PROGRAM, terraform.caller.is_stopped())? {
        return findings.print();
    }
    if let Err(why) = is_configuration(Path::new(".")) {
        findings.failed(CheckKind::Target, why, DIRECTORY);
        return findings.print();
    }
    let found = terraform.init(init_args, true);
    let found = found.map(|()| "`init` works: backend and providers are there".to_owned());
    if !findings.tried(CheckKind::Target, found, INIT, terraform.caller.is_stopped())? {
        return findings.print();
    }
    let found = info::state(terraform).map(|state| format!("the state can be read: {state}"));
    if findings.tried(CheckKind::Target, found, STATE, terraform.caller.is_stopped())?
        && let Some(directory) = place::state_directory(&terraform.within.join(DATA))
        && let Err(why) = try_to_write(&directory)
    {
        findings.failed(CheckKind::Target, format!("the state is kept here, and {why}"), WRITE);
    }
    findings.print()
}

/// Program and version, if that will do.
fn version(terraform: &mut Terraform<'_>) -> Result<String, Fault> {
    let ended = terraform.must(&words(&["version", "-json"]), Output::Kept)?;
    let program = terraform.program;
    let Ok(ProgramVersion { terraform_version: version }) = ended.json("version -json") else {
        // So does one from before 0.13. What a version says is no secret.
        let said = said::in_one_line(&String::from_utf8_lossy(&ended.answer));
        return Err(Fault::failed(format!(
            "`{program} version` says `{said}` and no JSON, so it is too old, or another program"
        )));
    };
    match version_numbers(&version) {
        Some(numbers) if numbers < LEAST => {
            Err(Fault::failed(format!("`{program}` is {version}, which is too old")))
        }
        _ => Ok(format!("`{program}` is {version}")),
    }
}

/// `init` succeeds in an empty directory, and a plan there fails.
fn is_configuration(directory: &Path) -> Result<(), String> {
    // One that cannot be listed may be read by name.
    let Ok(entries) = std::fs::read_dir(directory) else { return Ok(()) };
    let is_part = |name: &str| CONFIGURATION.iter().any(|end| name.ends_with(end));
    let mut names = entries.flatten().map(|entry| entry.file_name());
    if names.any(|name| is_part(&name.to_string_lossy())) {
        return Ok(());
    }
    let shown = std::path::absolute(directory).unwrap_or_else(|_| directory.to_owned());
    Err(format!("there is no configuration in {}", shown.display()))
}
