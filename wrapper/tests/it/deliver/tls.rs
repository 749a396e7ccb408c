//! HTTPS, to the right scheduler and to wrong ones.

use std::path::PathBuf;
use std::sync::Arc;

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use schema::wire::REPORT_MARK;

use super::{check, shell};
use crate::scheduler::Scheduler;

/// A scheduler whose certificate is for `name`, and the file of the authority that vouches for it.
fn scheduler(directory: &tempfile::TempDir, name: &str) -> (Scheduler, PathBuf) {
    let mut authority = CertificateParams::new(Vec::new()).unwrap();
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority_key = KeyPair::generate().unwrap();
    let authority_certificate = authority.self_signed(&authority_key).unwrap();
    let file = directory.path().join("ca.pem");
    std::fs::write(&file, authority_certificate.pem()).unwrap();
    let key = KeyPair::generate().unwrap();
    let issuer = Issuer::new(authority, authority_key);
    let certificate =
        CertificateParams::new(vec![name.to_owned()]).unwrap().signed_by(&key, &issuer).unwrap();
    let private = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap();
    let config = config
        .with_no_client_auth()
        .with_single_cert(vec![certificate.der().clone()], private)
        .unwrap();
    (Scheduler::listening("127.0.0.1:0", Some(Arc::new(config))), file)
}

#[test]
fn tls_with_an_authority_that_is_given() {
    for variable in ["PVN_CA_FILE", "SSL_CERT_FILE"] {
        let directory = tempfile::tempdir().unwrap();
        let (scheduler, authority) = scheduler(&directory, "127.0.0.1");
        let run = shell(&scheduler, &[], "echo x; sleep 0.3; head -c 3000000 /dev/zero")
            .env(variable, authority)
            .run();
        check(&scheduler, &run);
    }
}

#[test]
fn tls_wrong() {
    let directory = tempfile::tempdir().unwrap();
    for (name, known, why) in
        [("127.0.0.1", false, "UnknownIssuer"), ("other.example.com", true, "not valid for")]
    {
        let (scheduler, authority) = scheduler(&directory, name);
        let mut wrapper = shell(&scheduler, &["--deliver-for", "3s"], "echo x; exit 5");
        wrapper.command.env_remove("SSL_CERT_FILE");
        if known {
            wrapper = wrapper.env("PVN_CA_FILE", authority);
        }
        let run = wrapper.run();
        assert_eq!(run.code, 5);
        assert!(
            run.stderr.contains(why) && run.stderr.contains(REPORT_MARK),
            "{name}: {}",
            run.stderr
        );
        assert!(scheduler.state().requests.is_empty(), "nothing was told to a stranger");
    }
}

#[test]
fn an_authority_that_cannot_be_read_is_named() {
    let scheduler = Scheduler::start();
    let run = shell(&scheduler, &["--deliver-for", "2s"], "echo x")
        .env("PVN_CA_FILE", "/nowhere/ca.pem")
        .run();
    assert_eq!(run.code, 0);
    assert!(run.stderr.contains("/nowhere/ca.pem (PVN_CA_FILE)"), "{}", run.stderr);
    assert!(scheduler.state().requests.is_empty());
}
