//! What `dev` last released each service from, in a file of the data directory: the version of its
//! config and a digest of what was given. Written before the release is asked for, with the release
//! that was the newest then: as long as that is still the newest, nothing was released. So a crash
//! between the two makes neither a release more nor one less.

use std::collections::BTreeMap;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use pvnctl::failure::Failure;
use schema::id::{BlobId, ReleaseId};
use serde::{Deserialize, Serialize};

/// The file's name.
const FILE: &str = "dev-releases.json";

/// Whether an earlier run has released anything from this data directory.
pub(super) fn is_there(data_dir: &Path) -> bool {
    data_dir.join(FILE).exists()
}

/// One service's last release from here.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct LastRelease {
    config: u64,
    params: BlobId,
    /// The service's newest release before it; `None` = it had none.
    after: Option<ReleaseId>,
}

/// A service as it could be released now.
pub(super) struct DesiredRelease<'a> {
    pub(super) application: &'a str,
    pub(super) service: &'a str,
    /// The version of its config.
    pub(super) config: u64,
    /// The parameters given for it, and the secrets.
    pub(super) given: &'a BTreeMap<String, String>,
    /// Its newest release so far.
    pub(super) newest: Option<ReleaseId>,
}

impl DesiredRelease<'_> {
    fn key(&self) -> String {
        format!("{}/{}", self.application, self.service)
    }
}

/// The file's content.
pub(super) struct ReleaseMemory {
    path: PathBuf,
    services: BTreeMap<String, LastRelease>,
}

impl ReleaseMemory {
    /// Reads it. One that is not there or not readable remembers nothing, which only means a
    /// release more.
    pub(super) fn open(data_dir: &Path) -> Self {
        let path = data_dir.join(FILE);
        let services = std::fs::read(&path)
            .ok()
            .and_then(|bytes| serde_json::from_slice(&bytes).ok())
            .unwrap_or_default();
        Self { path, services }
    }

    /// Whether the last release was made from something else. What is not given keeps its value, so
    /// giving none is never something else.
    pub(super) fn is_other(&self, service: &DesiredRelease<'_>) -> bool {
        let Some(last) = self.services.get(&service.key()) else { return true };
        let was_released = last.after != service.newest;
        !was_released
            || last.config != service.config
            || (!service.given.is_empty() && last.params != digest(service.given))
    }

    /// Writes down that it is about to be released; returns what stood there before.
    pub(super) fn remember(
        &mut self,
        service: &DesiredRelease<'_>,
    ) -> Result<Option<LastRelease>, Failure> {
        let from = LastRelease {
            config: service.config,
            params: digest(service.given),
            after: service.newest,
        };
        let before = self.services.insert(service.key(), from);
        self.write()?;
        Ok(before)
    }

    /// The release was refused: what was written down `before` counts again.
    pub(super) fn put_back(
        &mut self,
        service: &DesiredRelease<'_>,
        before: Option<LastRelease>,
    ) -> Result<(), Failure> {
        match before {
            Some(before) => self.services.insert(service.key(), before),
            None => self.services.remove(&service.key()),
        };
        self.write()
    }

    fn write(&self) -> Result<(), Failure> {
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

fn digest(params: &BTreeMap<String, String>) -> BlobId {
    BlobId::of(&serde_json::to_vec(params).expect("text has a JSON form"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The service `shop/web`, unless said otherwise.
    fn web<'a>(
        config: u64,
        params: &'a BTreeMap<String, String>,
        newest: Option<u8>,
    ) -> DesiredRelease<'a> {
        let newest = newest.map(|number| format!("rel-{number:032x}").parse().unwrap());
        DesiredRelease { application: "shop", service: "web", config, given: params, newest }
    }

    fn image(value: &str) -> BTreeMap<String, String> {
        BTreeMap::from([("image".to_owned(), value.to_owned())])
    }

    #[test]
    fn a_service_is_released_again_for_another_config_or_other_parameters_only() {
        let dir = tempfile::tempdir().unwrap();
        let (v1, v2, none) = (image("v1"), image("v2"), BTreeMap::new());
        let mut memory = ReleaseMemory::open(dir.path());
        assert!(memory.is_other(&web(1, &v1, None)));
        memory.remember(&web(1, &v1, None)).unwrap();
        let memory = ReleaseMemory::open(dir.path());
        assert!(!memory.is_other(&web(1, &v1, Some(1))));
        assert!(!memory.is_other(&web(1, &none, Some(1))));
        assert!(memory.is_other(&web(2, &v1, Some(1))));
        assert!(memory.is_other(&web(1, &v2, Some(1))));
        assert!(memory.is_other(&DesiredRelease { service: "api", ..web(1, &v1, Some(1)) }));
    }

    #[test]
    fn what_was_written_down_and_not_released_is_released() {
        let dir = tempfile::tempdir().unwrap();
        let v1 = image("v1");
        for newest in [None, Some(3)] {
            let mut memory = ReleaseMemory::open(dir.path());
            memory.remember(&web(1, &v1, newest)).unwrap();
            let memory = ReleaseMemory::open(dir.path());
            assert!(memory.is_other(&web(1, &v1, newest)), "a crash came before the release");
            assert!(!memory.is_other(&web(1, &v1, Some(4))), "a crash came after it");
        }
    }

    #[test]
    fn what_was_refused_is_not_taken_for_released_whoever_releases_next() {
        let dir = tempfile::tempdir().unwrap();
        let none = BTreeMap::new();
        let mut memory = ReleaseMemory::open(dir.path());
        memory.remember(&web(1, &none, None)).unwrap();
        let before = memory.remember(&web(2, &none, Some(1))).unwrap();
        memory.put_back(&web(2, &none, Some(1)), before).unwrap();
        let memory = ReleaseMemory::open(dir.path());
        assert!(
            memory.is_other(&web(2, &none, Some(2))) && !memory.is_other(&web(1, &none, Some(2)))
        );
    }

    #[test]
    fn a_damaged_memory_only_costs_a_release() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join(FILE), "{").unwrap();
        assert!(ReleaseMemory::open(dir.path()).is_other(&web(1, &BTreeMap::new(), Some(1))));
    }
}
