//! What a job needs, tried: the program, its credentials, Cloud Run in the project and region.
//! Called by `google_cloud_run`.

use schema::status::CheckKind;
use serde_json::Value;

use super::super::call::{CallEnd, Output};
use super::super::findings::ToolFindings;
use super::super::{Fault, words};
use super::{CloudRun, CloudRunArguments, faults};

const ASKED: &[CheckKind] = &[CheckKind::Tool, CheckKind::Credentials, CheckKind::Target];

const PROGRAM: &str = "put the gcloud CLI into the runtime's `image`, or on the PATH of the \
                       machine where the job runs";
const CREDENTIALS: &str = "give the runtime a `serviceAccountJson` that is valid, its Pods a \
                           workload identity (`serviceAccount`), or its machine a login by `gcloud \
                           auth`";
const HOME: &str = "set HOME or CLOUDSDK_CONFIG where the job runs to a directory that its user \
                    may write to; where the root is read-only, on a volume";
const REGION: &str = "see that `project` and `region` of the runtime are right, and grant the \
                      account roles/run.developer in that project";

/// Tries all, and prints what was found.
pub(super) fn run(run: &mut CloudRun<'_>) -> Result<u8, Fault> {
    let mut findings = ToolFindings::of(ASKED);
    let found = version(run);
    if !findings.tried(CheckKind::Tool, found, PROGRAM, run.caller.is_stopped())? {
        return findings.print();
    }
    // The token itself is dropped with the answer, and shown nowhere.
    let found = call(run, &["auth", "print-access-token"]);
    let found = found.map(|_| "gcloud has an access token".to_owned());
    let is_of_home = found.as_ref().is_err_and(faults::is_of_home);
    let remedy = if is_of_home { HOME } else { CREDENTIALS };
    if !findings.tried(CheckKind::Credentials, found, remedy, run.caller.is_stopped())? {
        return findings.print();
    }
    let found = region(run);
    findings.tried(CheckKind::Target, found, REGION, run.caller.is_stopped())?;
    findings.print()
}

fn version(run: &mut CloudRun<'_>) -> Result<String, Fault> {
    let ended = call(run, &["version", "--format=json"])?;
    let versions: Value = ended.json("gcloud version")?;
    let version = versions["Google Cloud SDK"].as_str().unwrap_or("of an unknown version");
    Ok(format!("`gcloud` is {version}"))
}

fn region(run: &mut CloudRun<'_>) -> Result<String, Fault> {
    let asked = ["services", "list", "--limit=1"];
    let ended = run.gcloud(&asked)?;
    if ended.code != 0 {
        return Err(run.fault(&ended, &asked));
    }
    let CloudRunArguments { project, region, .. } = run.arguments;
    Ok(format!("Cloud Run answers for {region} of {project}"))
}

/// A call of gcloud that is not about Cloud Run.
fn call(run: &mut CloudRun<'_>, asked: &[&str]) -> Result<CallEnd, Fault> {
    let command = [words(&["gcloud"]), words(asked)].concat();
    let ended = run.caller.call(&command, Output::Kept)?;
    if ended.code == 0 {
        return Ok(ended);
    }
    let call = format!("gcloud {}", asked.iter().take(2).copied().collect::<Vec<_>>().join(" "));
    Err(faults::of(&ended, &call))
}
