//! The daemon behind a certificate of its own.

use std::process::Command;

use tests::scheduler::{Scheduler, Start};
use tests::{skip, wait};

#[test]
fn https_with_a_given_authority_and_with_nobody_who_vouches() {
    let mut scheduler = Scheduler::stopped();
    let made = rcgen::generate_simple_self_signed(vec!["127.0.0.1".to_owned()])
        .expect("a certificate can be made");
    let file = |name: &str, text: String| {
        let path = scheduler.home().join(name);
        std::fs::write(&path, text).expect("a file can be written");
        path.to_str().expect("a plain path").to_owned()
    };
    let (certificate, key) =
        (file("cert.pem", made.cert.pem()), file("key.pem", made.signing_key.serialize_pem()));
    scheduler.spawn(&Start {
        arguments: &["--tls-cert", &certificate, "--tls-key", &key],
        ..Start::default()
    });
    let https = scheduler.url().replace("http://", "https://");
    let ask = |server: &str, arguments: &[&str]| {
        scheduler
            .pvnctl([&["--server", server, "runtimes", "list", "-o", "json"], arguments].concat())
    };
    wait::until("the scheduler to answer over TLS", || {
        ask(&https, &["--ca-file", &certificate]).status.success().then_some(())
    });

    let by_name = https.replace("127.0.0.1", "localhost");
    for (server, arguments, expected) in [
        (https.as_str(), [].as_slice(), "is signed by nobody who is trusted here"),
        (https.as_str(), &[], "help: give the PEM file of the authority that signed it"),
        (
            &by_name,
            &["--ca-file", &certificate],
            "its certificate is for `127.0.0.1` and not for `localhost`",
        ),
        (scheduler.url(), &[], "cannot reach"),
        (scheduler.url(), &[], "it may speak TLS: say --server https://"),
        (https.as_str(), &["--ca-file", &key], "there is no certificate in"),
        (https.as_str(), &["--ca-file", "/nowhere/ca.pem"], "/nowhere/ca.pem"),
    ] {
        let output = ask(server, arguments);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(
            output.status.code() == Some(1) && said.contains(expected),
            "{server} {arguments:?}: {said}"
        );
    }
    assert!(scheduler.log().contains(&https), "it says where it listens: {}", scheduler.log());
}

#[test]
fn the_certificate_of_an_authority_is_no_servers() {
    let mut scheduler = Scheduler::stopped();
    let file = |name: &str| scheduler.home().join(name).to_str().expect("a plain path").to_owned();
    let (certificate, key) = (file("cert.pem"), file("key.pem"));
    // As people make one; it is an authority's unless they say otherwise.
    let made = Command::new("openssl")
        .args([
            "req",
            "-x509",
            "-newkey",
            "rsa:2048",
            "-nodes",
            "-days",
            "2",
            "-subj",
            "/CN=localhost",
        ])
        .args([
            "-addext",
            "subjectAltName=DNS:localhost,IP:127.0.0.1",
            "-keyout",
            &key,
            "-out",
            &certificate,
        ])
        .output();
    if !made.is_ok_and(|made| made.status.success()) {
        return skip::skipped(
            "the_certificate_of_an_authority_is_no_servers",
            "there is no openssl here",
        );
    }
    scheduler.spawn(&Start {
        arguments: &["--tls-cert", &certificate, "--tls-key", &key],
        ..Start::default()
    });
    let https = scheduler.url().replace("http://", "https://");
    wait::until("the reason to be said", || {
        let output =
            scheduler.pvnctl(["--server", &https, "runtimes", "list", "--ca-file", &certificate]);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success(), "it is taken");
        (said.contains("its certificate is an authority's")
            && said.contains("basicConstraints=critical,CA:FALSE"))
        .then_some(())
    });
}
