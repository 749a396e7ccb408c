//! The daemon behind a certificate of its own.

use tests::scheduler::{Scheduler, Start};
use tests::wait;

#[test]
fn https_with_a_given_authority_and_with_nobody_who_vouches() {
    let mut scheduler = Scheduler::stopped();
    let made = rcgen::generate_simple_self_signed(vec!["127.0.0.1".to_owned()]).expect("a certificate can be made");
    let file = |name: &str, text: String| {
        let path = scheduler.home().join(name);
        std::fs::write(&path, text).expect("a file can be written");
        path.to_str().expect("a plain path").to_owned()
    };
    let (certificate, key) = (file("cert.pem", made.cert.pem()), file("key.pem", made.signing_key.serialize_pem()));
    scheduler.spawn(&Start { arguments: &["--tls-cert", &certificate, "--tls-key", &key], ..Start::default() });
    let https = scheduler.url().replace("http://", "https://");
    let ask =
        |server: &str, arguments: &[&str]| scheduler.pvnctl([&["--server", server, "runtimes", "list", "-o", "json"], arguments].concat());
    wait::until("the scheduler to answer over TLS", || ask(&https, &["--ca-file", &certificate]).status.success().then_some(()));

    for (server, arguments, expected) in [
        (https.as_str(), [].as_slice(), "certificate"),
        (scheduler.url(), &[], "cannot reach"),
        (https.as_str(), &["--ca-file", &key], "there is no certificate in"),
        (https.as_str(), &["--ca-file", "/nowhere/ca.pem"], "/nowhere/ca.pem"),
    ] {
        let output = ask(server, arguments);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(1) && said.contains(expected), "{server} {arguments:?}: {said}");
    }
    assert!(scheduler.log().contains(&https), "it says where it listens: {}", scheduler.log());
}
