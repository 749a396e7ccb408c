//! The certificate that the API speaks TLS with. Whoever renews it (cert-manager, certbot) writes
//! its files anew; they are looked at again while we serve, and a pair that does not do changes
//! nothing. Called by `daemon` at the start, by `serve`.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use axum_server::tls_rustls::RustlsConfig;
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

/// Where the certificate and its key lie.
#[derive(Debug, Clone)]
pub struct TlsFiles {
    /// Certificate chain, PEM, the server's own first.
    pub certificate: PathBuf,
    /// Private key, PEM.
    pub key: PathBuf,
}

/// How often the files are looked at: certificates are renewed days before they end.
const LOOK_EVERY: Duration = Duration::from_secs(60);

/// Most of a file of authorities: half of what a Secret holds, where a job's own secrets are too.
const AUTHORITIES_LIMIT_BYTES: usize = 512 << 10;

/// Why certificates cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file cannot be read, or is no PEM.
    #[error("failed to read {what} in {}", path.display())]
    Read {
        /// Which of the two.
        what: &'static str,
        /// Where it was looked for.
        path: PathBuf,
        /// What was wrong with it.
        source: rustls::pki_types::pem::Error,
    },
    /// Such a file, and nothing in it.
    #[error(
        "there is no certificate in {}; it must be PEM, the server's own certificate first",
        .0.display()
    )]
    Empty(PathBuf),
    /// Nobody in it who could vouch for anybody.
    #[error("there is no certificate in {}; authorities are given as PEM", .0.display())]
    NoAuthority(PathBuf),
    /// Authorities that are too much for a job's Secret.
    #[error(
        "{} has more than {} KiB; give only the authorities that vouch for this daemon",
        .0.display(), AUTHORITIES_LIMIT_BYTES >> 10
    )]
    Large(PathBuf),
    /// They do not belong together, or are of a kind that we do not speak.
    #[error(
        "the certificate in {} and the key in {} cannot be served together",
        files.certificate.display(), files.key.display()
    )]
    Pair {
        /// Both.
        files: TlsFiles,
        /// Why.
        source: rustls::Error,
    },
}

/// A certificate with its key, and where they came from.
#[derive(Debug, Clone)]
pub struct Tls {
    files: TlsFiles,
    chain: Vec<CertificateDer<'static>>,
    is_wrong: bool,
    pub(super) config: RustlsConfig,
}

impl Tls {
    /// Reads the files.
    ///
    /// # Errors
    /// [`TlsError`] with the file's name.
    pub fn open(files: TlsFiles) -> Result<Self, TlsError> {
        let (chain, config) = read(&files)?;
        Ok(Self { files, chain, is_wrong: false, config: RustlsConfig::from_config(config) })
    }

    /// Serves what lies in the files as it changes, for ever.
    pub(super) async fn keep_fresh(mut self) {
        loop {
            tokio::time::sleep(LOOK_EVERY).await;
            self.look_again().await;
        }
    }

    /// Serves what lies in the files now; what does not do is complained of once.
    async fn look_again(&mut self) {
        let files = self.files.clone();
        let Ok(found) = tokio::task::spawn_blocking(move || read(&files)).await else { return };
        let was_wrong = std::mem::replace(&mut self.is_wrong, found.is_err());
        match found {
            Ok((chain, config)) if chain != self.chain => {
                tracing::info!(
                    file = %self.files.certificate.display(),
                    "a new certificate is served from now on"
                );
                self.config.reload_from_config(config);
                self.chain = chain;
            }
            Err(error) if !was_wrong => {
                tracing::warn!(
                    error = format!("{:#}", anyhow::Error::new(error)),
                    "the certificate is not renewed; the one in use stays"
                );
            }
            Ok(_) | Err(_) => {}
        }
    }
}

type Pair = (Vec<CertificateDer<'static>>, Arc<ServerConfig>);

fn read(files: &TlsFiles) -> Result<Pair, TlsError> {
    let unreadable = |what, path: &Path| {
        let path = path.to_owned();
        move |source| TlsError::Read { what, path, source }
    };
    let chain: Vec<_> = CertificateDer::pem_file_iter(&files.certificate)
        .and_then(Iterator::collect)
        .map_err(unreadable("the certificate", &files.certificate))?;
    if chain.is_empty() {
        return Err(TlsError::Empty(files.certificate.clone()));
    }
    let key = PrivateKeyDer::from_pem_file(&files.key)
        .map_err(unreadable("the private key", &files.key))?;
    let wrong = |source| TlsError::Pair { files: files.clone(), source };
    let mut config =
        ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(wrong)?
            .with_no_client_auth()
            .with_single_cert(chain.clone(), key)
            .map_err(wrong)?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok((chain, Arc::new(config)))
}

/// The authorities in a file, as they are.
///
/// # Errors
/// [`TlsError`] with the file's name, also when there is none in it.
pub fn authorities(path: &Path) -> Result<String, TlsError> {
    let unreadable =
        |source| TlsError::Read { what: "the authorities", path: path.to_owned(), source };
    let text = std::fs::read_to_string(path)
        .map_err(|error| unreadable(rustls::pki_types::pem::Error::Io(error)))?;
    let found: Vec<_> = CertificateDer::pem_slice_iter(text.as_bytes())
        .collect::<Result<_, _>>()
        .map_err(unreadable)?;
    if found.is_empty() {
        return Err(TlsError::NoAuthority(path.to_owned()));
    }
    if text.len() > AUTHORITIES_LIMIT_BYTES {
        return Err(TlsError::Large(path.to_owned()));
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair(directory: &Path) -> TlsFiles {
        let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
        let files =
            TlsFiles { certificate: directory.join("cert.pem"), key: directory.join("key.pem") };
        std::fs::write(&files.certificate, made.cert.pem()).unwrap();
        std::fs::write(&files.key, made.signing_key.serialize_pem()).unwrap();
        files
    }

    #[test]
    fn what_cannot_be_served_is_named_with_its_file() {
        let directory = tempfile::tempdir().unwrap();
        let files = pair(directory.path());
        assert!(Tls::open(files.clone()).is_ok());
        let check = |certificate: &str, key: &str, expected: &str| {
            std::fs::write(&files.certificate, certificate).unwrap();
            std::fs::write(&files.key, key).unwrap();
            let said = format!("{:#}", anyhow::Error::new(Tls::open(files.clone()).unwrap_err()));
            assert!(said.contains(expected), "{said}");
        };
        let (certificate, key) = (
            std::fs::read_to_string(&files.certificate).unwrap(),
            std::fs::read_to_string(&files.key).unwrap(),
        );
        let other = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()])
            .unwrap()
            .signing_key
            .serialize_pem();
        check("", &key, "there is no certificate in");
        check(&certificate, "", "the private key in");
        check(&certificate, &other, "cannot be served together");
        std::fs::remove_file(&files.key).unwrap();
        let said = format!("{:#}", anyhow::Error::new(Tls::open(files.clone()).unwrap_err()));
        assert!(said.contains("key.pem") && said.contains("No such file"), "{said}");
    }

    #[tokio::test]
    async fn a_renewed_certificate_is_served_and_a_broken_one_is_not() {
        let directory = tempfile::tempdir().unwrap();
        let files = pair(directory.path());
        let mut tls = Tls::open(files.clone()).unwrap();
        let first = tls.config.get_inner();
        tls.look_again().await;
        assert!(Arc::ptr_eq(&tls.config.get_inner(), &first), "nothing is new");
        pair(directory.path());
        tls.look_again().await;
        let second = tls.config.get_inner();
        assert!(!Arc::ptr_eq(&second, &first));
        std::fs::write(&files.certificate, "half").unwrap();
        tls.look_again().await;
        assert!(Arc::ptr_eq(&tls.config.get_inner(), &second));
        pair(directory.path());
        tls.look_again().await;
        assert!(!Arc::ptr_eq(&tls.config.get_inner(), &second));
    }

    #[test]
    fn authorities_are_certificates_and_not_too_many() {
        let directory = tempfile::tempdir().unwrap();
        let files = pair(directory.path());
        let text = std::fs::read_to_string(&files.certificate).unwrap();
        assert_eq!(authorities(&files.certificate).unwrap(), text);
        let many = directory.path().join("many.pem");
        std::fs::write(&many, text.repeat(AUTHORITIES_LIMIT_BYTES / text.len() + 1)).unwrap();
        for (path, expected) in [
            (&files.key, "there is no certificate in"),
            (&directory.path().join("none.pem"), "none.pem"),
            (&many, "512 KiB"),
        ] {
            let said = authorities(path).unwrap_err().to_string();
            assert!(said.contains(expected) && said.contains(path.to_str().unwrap()), "{said}");
        }
    }
}
