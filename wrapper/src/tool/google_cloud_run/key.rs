//! The key of a service account that the job was given in a variable, as a file for gcloud that
//! goes with the run. Called by `google_cloud_run`.
//!
//! gcloud takes it as it is (`auth/credential_file_override`). After `gcloud auth
//! activate-service-account` the key would lie in two more files, and each job would start gcloud
//! once more, which takes a second.

use std::fs::{DirBuilder, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

use super::super::Fault;
use super::super::call::ToolCaller;
use crate::spawn::{Environment, variable};

/// Where a job has the key. (A name that begins with `PVN_` would be pvn's own.)
const VARIABLE: &str = "GOOGLE_SERVICE_ACCOUNT_JSON";

/// A directory for the key and for all that gcloud keeps; removed with what is in it.
pub(super) struct KeyFile {
    directory: PathBuf,
}

impl KeyFile {
    /// Puts the key in place, if there is one; else gcloud finds credentials as it does everywhere.
    pub(super) fn of(
        environment: &Environment,
        within: &Path,
        caller: &mut ToolCaller,
    ) -> Result<Option<Self>, Fault> {
        let Some(key) = variable(environment, VARIABLE) else { return Ok(None) };
        let key = key.to_string_lossy();
        // What is in it is shown to nobody.
        if serde_json::from_str::<Map<String, Value>>(&key).is_err() {
            return Err(Fault::usage(format!(
                "{VARIABLE} holds no JSON object: give it the whole key file of the service account"
            )));
        }
        let file = Self { directory: within.join("account") };
        let path = file.directory.join("key.json");
        let config = file.directory.join("gcloud");
        file.write(&path, &config, &key).map_err(|error| {
            Fault::failed(format!("cannot keep the key of the service account: {error}"))
        })?;
        caller.default("CLOUDSDK_CONFIG", config);
        // The key is whom the runtime names. Others may be in the environment of the scheduler, and
        // gcloud would take them before it; an empty value is none.
        caller.set("CLOUDSDK_AUTH_ACCESS_TOKEN_FILE", "");
        caller.set("CLOUDSDK_AUTH_CREDENTIAL_FILE_OVERRIDE", path);
        Ok(Some(file))
    }

    fn write(&self, path: &Path, config: &Path, key: &str) -> io::Result<()> {
        // That of a run that was killed.
        match std::fs::remove_dir_all(&self.directory) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        DirBuilder::new().recursive(true).mode(0o700).create(config)?;
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
        file.write_all(key.as_bytes())
    }
}

impl Drop for KeyFile {
    fn drop(&mut self) {
        // What cannot be removed now is removed by the next run.
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}
