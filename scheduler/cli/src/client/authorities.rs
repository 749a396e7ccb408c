//! Who may vouch for a scheduler instead of the system's authorities. Called by `discover`.

use std::fmt::Display;
use std::path::Path;

use super::cause;
use crate::failure::Failure;

/// Certificates that alone are trusted to speak for a scheduler, instead of the system's.
#[derive(Debug)]
pub struct Authorities(Vec<reqwest::Certificate>);

impl Authorities {
    /// Those in a file of PEM.
    ///
    /// # Errors
    /// When there is none that can be used.
    pub fn read(path: &Path) -> Result<Self, Failure> {
        let wrong = |why: String| {
            Failure::with_next(why, "give --ca-file or PVN_CA_FILE a file of PEM certificates")
        };
        let unreadable = |why: &dyn Display| {
            wrong(format!("cannot read the certificates in {}: {why}", path.display()))
        };
        let pem = std::fs::read(path).map_err(|error| unreadable(&error))?;
        let given = reqwest::Certificate::from_pem_bundle(&pem)
            .map_err(|error| unreadable(&cause(&error)))?;
        if given.is_empty() {
            return Err(wrong(format!("there is no certificate in {}", path.display())));
        }
        Ok(Self(given))
    }

    pub(super) fn certificates(self) -> Vec<reqwest::Certificate> {
        self.0
    }
}
