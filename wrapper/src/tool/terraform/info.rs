//! What a state says that is not sensitive. Called by `terraform`.

use std::collections::BTreeMap;

use schema::output::{GetInfoOutput, Info};
use serde::Deserialize;
use serde::de::IgnoredAny;

use super::super::call::Output;
use super::super::{Fault, print_document, words};
use super::Terraform;

/// An entry of `output -json`.
#[derive(Deserialize)]
struct RootOutput {
    #[serde(default)]
    sensitive: bool,
    value: serde_json::Value,
}

/// What of `state pull` is no resource's.
#[derive(Deserialize)]
struct StateFile {
    serial: u64,
    #[serde(default)]
    terraform_version: String,
    #[serde(default)]
    resources: Vec<IgnoredAny>,
}

/// Which state the backend has, in words.
pub(super) fn state(terraform: &mut Terraform<'_>) -> Result<String, Fault> {
    let state = terraform.must(&words(&["state", "pull"]), Output::Kept)?;
    // Nothing at all before the first apply.
    if state.answer.trim_ascii().is_empty() {
        return Ok("none yet".to_owned());
    }
    let StateFile { serial, terraform_version, resources } = state.json("state pull")?;
    let count = resources.len();
    let plural = if count == 1 { "" } else { "s" };
    Ok(format!("serial {serial}, {count} resource{plural}, written by {terraform_version}"))
}

/// Prints it as a getInfo does.
pub(super) fn print(terraform: &mut Terraform<'_>) -> Result<u8, Fault> {
    let outputs = terraform.must(&words(&["output", "-json", "-no-color"]), Output::Kept)?;
    let outputs: BTreeMap<String, RootOutput> = outputs.json("output -json")?;
    let mut infos = vec![Info { name: "state".to_owned(), text: state(terraform)? }];
    infos.extend(outputs.into_iter().map(|(name, output)| Info {
        name: format!("output {name}"),
        text: match output.value {
            _ if output.sensitive => "(sensitive)".to_owned(),
            serde_json::Value::String(text) => text,
            value => value.to_string(),
        },
    }));
    print_document(&GetInfoOutput { outputs: infos })
}
