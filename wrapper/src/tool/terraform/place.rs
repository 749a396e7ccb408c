//! Where a job's data and its state are, whatever the environment says: two service instances never
//! have one directory of data, in which terraform notes whose state it works on. Called by
//! `terraform` and `check`.

use std::ffi::OsString;
use std::path::{Component, Path, PathBuf};

use serde::Deserialize;

use super::super::Fault;
use super::super::call::ToolCaller;
use crate::writer::say;

/// What names the directory for data.
pub(super) const DATA_VARIABLE: &str = "TF_DATA_DIR";

/// What names the workspace.
const WORKSPACE: &str = "TF_WORKSPACE";

/// The workspace that is there where nobody names one.
const DEFAULT: &str = "default";

/// Where the backend `local` keeps the states of all others, unless it is told: one place for
/// whoever works in the directory, and the one where `init` looks for states that are to be moved.
const STATES: &str = "terraform.tfstate.d";

/// What `init` notes of the backend.
#[derive(Deserialize)]
struct BackendNote {
    backend: Backend,
}

#[derive(Deserialize)]
struct Backend {
    #[serde(rename = "type")]
    kind: String,
    #[serde(default)]
    config: serde_json::Map<String, serde_json::Value>,
}

impl Backend {
    /// That in which the states are files.
    fn local(data: &Path) -> Option<Self> {
        let note = std::fs::read(data.join("terraform.tfstate")).ok()?;
        let BackendNote { backend } = serde_json::from_slice(&note).ok()?;
        (backend.kind == "local").then_some(backend)
    }

    fn text(&self, key: &str) -> Option<&str> {
        self.config.get(key).and_then(|value| value.as_str()).filter(|text| !text.is_empty())
    }
}

fn given(name: &str) -> Option<OsString> {
    std::env::var_os(name).filter(|value| !value.is_empty())
}

/// Gives all calls this directory for data, and says so if somebody named another.
pub(super) fn keep_data(caller: &mut ToolCaller, data: &Path) {
    if let Some(other) = given(DATA_VARIABLE).filter(|other| Path::new(other) != data) {
        say(&format!(
            "{DATA_VARIABLE} is {} and is not used: each service instance has data of its own, or \
             one would plan and apply on the state of another; to share what `init` downloads, set \
             TF_PLUGIN_CACHE_DIR",
            other.to_string_lossy()
        ));
    }
    caller.set(DATA_VARIABLE, data);
}

/// A failure where `init` would, from the first apply on, ask whether to move states. `data`: what
/// it has noted.
pub(super) fn check_workspace(data: &Path) -> Result<(), Fault> {
    let Some(workspace) = given(WORKSPACE).filter(|name| name != DEFAULT) else { return Ok(()) };
    let Some(backend) = Backend::local(data) else { return Ok(()) };
    let own = backend.text("workspace_dir").unwrap_or(STATES);
    let is_here = |part: &Component<'_>| *part == Component::CurDir;
    if !Path::new(own).components().skip_while(is_here).eq(Path::new(STATES).components()) {
        return Ok(());
    }
    Err(Fault::failed(format!(
        "{WORKSPACE} is `{}`, and the backend `local` keeps the states of workspaces in {STATES}, \
         whatever `path` says; `init` takes those for states to be moved, and would fail after the \
         first apply. In `backendConfig` give each channel a `path` and take {WORKSPACE} out, or a \
         `workspace_dir` of its own",
        workspace.to_string_lossy()
    )))
}

/// Where a state lies that is kept in files, if there is such a directory.
pub(super) fn state_directory(data: &Path) -> Option<PathBuf> {
    let file = if data.join("terraform.tfstate").exists() {
        Backend::local(data)?.text("path").unwrap_or_default().to_owned()
    } else if data.is_dir() {
        // A configuration without a backend: in the directory itself.
        String::new()
    } else {
        return None;
    };
    let here = std::env::current_dir().ok()?;
    let directory = here.join(Path::new(&file).parent().unwrap_or(Path::new("")));
    directory.is_dir().then_some(directory)
}
