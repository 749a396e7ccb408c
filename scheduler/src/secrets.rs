//! Sealing: what is secret is stored only as ciphertext, bound to what it is (key and version of a
//! secret, kind and digest of a document), so that nobody can swap two stored values. The key is a
//! file beside the database, never in it.

use std::io::{ErrorKind, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use chacha20poly1305::aead::{Aead, KeyInit, Payload};
use chacha20poly1305::{XChaCha20Poly1305, XNonce};
use sha2::{Digest, Sha256};

use crate::clock;

/// Name of the key file in the data directory: 64 hexadecimal digits, mode 0600.
pub const KEY_FILE: &str = "secret.key";

const NONCE_BYTES: usize = 24;

/// Why secrets cannot be sealed or opened.
#[derive(Debug, thiserror::Error)]
pub enum SealError {
    /// The key file cannot be read or made.
    #[error("failed to use the key file {path}")]
    KeyFile {
        /// Which file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The key file holds something else.
    #[error(
        "the key file {path} does not hold 64 hexadecimal digits; give the file that this \
         database was made with"
    )]
    Malformed {
        /// Which file.
        path: PathBuf,
    },
    /// Others can read the key.
    #[error(
        "the key file {path} has mode {mode:04o} and must not be readable by others; run `chmod \
         600 {path}`"
    )]
    Open {
        /// Which file.
        path: PathBuf,
        /// Its mode bits.
        mode: u32,
    },
    /// The ciphertext was not made with this key for this purpose.
    #[error(
        "{what} cannot be opened: it was sealed with another key or altered; start with the key \
         file it was made with"
    )]
    Wrong {
        /// What was to be opened, for people.
        what: String,
    },
}

/// Seals and opens with one key.
#[derive(Clone)]
pub struct Sealer {
    cipher: XChaCha20Poly1305,
    nonce_key: [u8; 32],
    job_token_key: [u8; 32],
}

impl std::fmt::Debug for Sealer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Sealer")
    }
}

impl Sealer {
    /// A sealer with this key.
    pub fn with_key(key: [u8; 32]) -> Self {
        let derive = |purpose: &[u8]| {
            Sha256::new().chain_update(purpose).chain_update(key).finalize().into()
        };
        Self {
            cipher: XChaCha20Poly1305::new(&key.into()),
            nonce_key: derive(b"pvn nonces"),
            job_token_key: derive(b"pvn job tokens"),
        }
    }

    /// The key that the tokens of jobs are signed with. It follows from the sealing key and tells
    /// nothing about it, so that a token is good over restarts and nothing about tokens has to
    /// be stored.
    pub fn job_token_key(&self) -> [u8; 32] {
        self.job_token_key
    }

    /// Reads the key file; makes it, with a fresh key, when it is not there: `key` says when it may
    /// be.
    ///
    /// # Errors
    /// [`SealError`] when the file cannot be used, holds something else, or is readable by others.
    pub fn open(path: &Path) -> Result<Self, SealError> {
        if let Some(found) = Self::read(path)? {
            return Ok(found);
        }
        let key = clock::random::<32>();
        write_private(path, &hex(&key))
            .map_err(|source| SealError::KeyFile { path: path.to_owned(), source })?;
        Ok(Self::with_key(key))
    }

    /// Reads the key file; `None` when it is not there.
    ///
    /// # Errors
    /// As of [`Sealer::open`].
    pub fn read(path: &Path) -> Result<Option<Self>, SealError> {
        let at = |source| SealError::KeyFile { path: path.to_owned(), source };
        let text = match std::fs::read_to_string(path) {
            Ok(text) => text,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(at(error)),
        };
        let mode = std::fs::metadata(path).map_err(at)?.permissions().mode() & 0o7777;
        if mode & 0o077 != 0 {
            return Err(SealError::Open { path: path.to_owned(), mode });
        }
        let key =
            unhex(text.trim()).ok_or_else(|| SealError::Malformed { path: path.to_owned() })?;
        Ok(Some(Self::with_key(key)))
    }

    /// Ciphertext of `plain` as base64 text, which opens only with the same `purpose`.
    pub fn seal(&self, purpose: &str, plain: &[u8]) -> String {
        self.seal_with(clock::random(), purpose, plain)
    }

    fn seal_with(&self, nonce: [u8; NONCE_BYTES], purpose: &str, plain: &[u8]) -> String {
        let sealed = self
            .cipher
            .encrypt(&XNonce::from(nonce), Payload { msg: plain, aad: purpose.as_bytes() })
            .expect("ChaCha20-Poly1305 seals anything below 256 GiB");
        BASE64_STANDARD.encode([nonce.as_slice(), &sealed].concat())
    }

    /// The same, but the same clear text for the same purpose always gives the same ciphertext: the
    /// nonce is made from them and the key. It tells who holds both only that two values are
    /// equal, which a digest of a document needs.
    pub fn seal_stable(&self, purpose: &str, plain: &[u8]) -> String {
        let mut hash = Sha256::new();
        hash.update(self.nonce_key);
        hash.update((purpose.len() as u64).to_le_bytes());
        hash.update(purpose.as_bytes());
        hash.update(plain);
        hash.update(self.nonce_key);
        let mut nonce = [0; NONCE_BYTES];
        nonce.copy_from_slice(&hash.finalize()[..NONCE_BYTES]);
        self.seal_with(nonce, purpose, plain)
    }

    /// What [`Sealer::seal`] was given.
    ///
    /// # Errors
    /// [`SealError::Wrong`] when it was sealed with another key, for another purpose, or altered.
    pub fn unseal(&self, purpose: &str, sealed: &str) -> Result<Vec<u8>, SealError> {
        let wrong = || SealError::Wrong { what: purpose.to_owned() };
        let bytes = BASE64_STANDARD.decode(sealed).map_err(|_| wrong())?;
        let (nonce, sealed) = bytes.split_first_chunk::<NONCE_BYTES>().ok_or_else(wrong)?;
        self.cipher
            .decrypt(&XNonce::from(*nonce), Payload { msg: sealed, aad: purpose.as_bytes() })
            .map_err(|_| wrong())
    }
}

/// Writes a file that only its owner can read, whole or not at all; replaces nothing that is there.
///
/// # Errors
/// What the system says; [`ErrorKind::AlreadyExists`] when the file is there.
pub fn write_private(path: &Path, text: &str) -> std::io::Result<()> {
    let directory =
        path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut file = tempfile::Builder::new()
        .permissions(std::fs::Permissions::from_mode(0o600))
        .tempfile_in(directory)?;
    file.write_all(text.as_bytes())?;
    file.write_all(b"\n")?;
    file.as_file().sync_all()?;
    file.persist_noclobber(path).map_err(|error| error.error)?;
    std::fs::OpenOptions::new()
        .read(true)
        .custom_flags(nix::libc::O_DIRECTORY)
        .open(directory)?
        .sync_all()
}

/// Lower-case hexadecimal digits of these bytes.
pub fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write;
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        write!(text, "{byte:02x}").expect("writing to a String cannot fail");
        text
    })
}

fn unhex(text: &str) -> Option<[u8; 32]> {
    if text.len() != 64 || !text.is_ascii() {
        return None;
    }
    let mut bytes = [0; 32];
    for (index, byte) in bytes.iter_mut().enumerate() {
        *byte = u8::from_str_radix(text.get(index * 2..index * 2 + 2)?, 16).ok()?;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_sealed_opens_only_for_its_purpose_and_key() {
        let sealer = Sealer::with_key([7; 32]);
        let sealed = sealer.seal("secret db version 1", b"hunter2");
        assert!(!sealed.contains("hunter2"));
        assert_eq!(sealer.unseal("secret db version 1", &sealed).unwrap(), b"hunter2");
        assert!(sealer.unseal("secret db version 2", &sealed).is_err());
        assert!(Sealer::with_key([8; 32]).unseal("secret db version 1", &sealed).is_err());
        assert!(sealer.unseal("secret db version 1", "").is_err());
    }

    #[test]
    fn a_stable_seal_tells_equal_from_different_and_nothing_else() {
        let sealer = Sealer::with_key([7; 32]);
        let sealed = sealer.seal_stable("raw", b"hunter2");
        assert_eq!(sealed, sealer.seal_stable("raw", b"hunter2"));
        assert_ne!(sealed, sealer.seal_stable("raw", b"hunter3"));
        assert_ne!(sealed, sealer.seal_stable("other", b"hunter2"));
        assert_eq!(sealer.unseal("raw", &sealed).unwrap(), b"hunter2");
    }

    #[test]
    fn the_key_file_is_made_once_and_private() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(KEY_FILE);
        let sealed = Sealer::open(&path).unwrap().seal("x", b"y");
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(Sealer::open(&path).unwrap().unseal("x", &sealed).unwrap(), b"y");

        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
        assert!(Sealer::open(&path).unwrap_err().to_string().contains("chmod 600"));
    }

    #[test]
    fn a_key_file_with_something_else_in_it_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(KEY_FILE);
        write_private(&path, "not a key").unwrap();
        assert!(matches!(Sealer::open(&path), Err(SealError::Malformed { .. })));
    }
}
