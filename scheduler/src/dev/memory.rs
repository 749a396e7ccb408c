//! What `dev` last released each service from, in a file of the data directory: the version of its config and a digest of
//! the parameters given. Written after the release, so that a crash between the two makes one release more, never one less.

use std::collections::BTreeMap;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use pvnctl::failure::Failure;
use schema::id::BlobId;
use serde::{Deserialize, Serialize};

/// The file's name.
const FILE: &str = "dev-releases.json";

/// One service's last release from here.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct From {
    config: u64,
    params: BlobId,
}

/// The file's content.
pub(super) struct Memory {
    path: PathBuf,
    services: BTreeMap<String, From>,
}

impl Memory {
    /// Reads it. One that is not there or not readable remembers nothing, which only means a release more.
    pub(super) fn open(data_dir: &Path) -> Self {
        let path = data_dir.join(FILE);
        let services = std::fs::read(&path).ok().and_then(|bytes| serde_json::from_slice(&bytes).ok()).unwrap_or_default();
        Self { path, services }
    }

    /// Whether the last release was made from something else. Parameters that are not given keep their values, so giving
    /// none is never something else.
    pub(super) fn is_other(&self, application: &str, service: &str, config: u64, params: &BTreeMap<String, String>) -> bool {
        let Some(last) = self.services.get(&key(application, service)) else { return true };
        last.config != config || (!params.is_empty() && last.params != digest(params))
    }

    /// Writes it down.
    pub(super) fn remember(
        &mut self,
        application: &str,
        service: &str,
        config: u64,
        params: &BTreeMap<String, String>,
    ) -> Result<(), Failure> {
        self.services.insert(key(application, service), From { config, params: digest(params) });
        let text = serde_json::to_vec(&self.services).expect("our own types have JSON forms");
        let directory = self.path.parent().unwrap_or(Path::new("."));
        let mut file = tempfile::NamedTempFile::new_in(directory)?;
        // A digest of a short secret can be guessed, so nobody else may read it.
        file.as_file().set_permissions(std::fs::Permissions::from_mode(0o600))?;
        file.write_all(&text)?;
        file.persist(&self.path).map_err(|error| error.error)?;
        Ok(())
    }
}

fn key(application: &str, service: &str) -> String {
    format!("{application}/{service}")
}

fn digest(params: &BTreeMap<String, String>) -> BlobId {
    BlobId::of(&serde_json::to_vec(params).expect("text has a JSON form"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_service_is_released_again_for_another_config_or_other_parameters_only() {
        let dir = tempfile::tempdir().unwrap();
        let params = |value: &str| BTreeMap::from([("image".to_owned(), value.to_owned())]);
        let mut memory = Memory::open(dir.path());
        assert!(memory.is_other("shop", "web", 1, &params("v1")));
        memory.remember("shop", "web", 1, &params("v1")).unwrap();
        let memory = Memory::open(dir.path());
        assert!(!memory.is_other("shop", "web", 1, &params("v1")));
        assert!(!memory.is_other("shop", "web", 1, &BTreeMap::new()));
        assert!(memory.is_other("shop", "web", 2, &params("v1")));
        assert!(memory.is_other("shop", "web", 1, &params("v2")));
        assert!(memory.is_other("shop", "api", 1, &params("v1")));
    }

    #[test]
    fn a_damaged_memory_only_costs_a_release() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join(FILE), "{").unwrap();
        assert!(Memory::open(dir.path()).is_other("shop", "web", 1, &BTreeMap::new()));
    }
}
