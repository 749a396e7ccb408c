//! Mail over TLS, and servers that say more than anybody should read. Each server has a certificate
//! by an authority of its own.

use schema::api::Notification;
use schema::notification::NotificationStatus;

use super::mail_server::{Fault, Identity, MailServer, ServerTls};
use super::{PATIENCE, Sending};

/// The name by which the servers are reached.
const HOST: &str = "localhost";

/// Sends one mail with a login to a server that is spoken to so; `Err` is why it was not taken.
/// `trusted`: the authority that is trusted besides the system's.
async fn send(server: &MailServer, tls: &str, trusted: Option<&str>) -> Result<(), String> {
    let port = server.address.port();
    let target = format!(
        "  - name: mail\n    email: {{to: [ann@h], from: pvn@example.com, server: {{host: {HOST}, \
         port: {port}, {tls}, user: {{value: pvn}}, password: {{rawSecret: hunter2-hunter2}}}}}}\n"
    );
    // Nothing here is to be decided by how fast this machine is.
    let mut sending = Sending::answered_within(PATIENCE, &target, trusted).await;
    sending.tell("mail", &["a"]).await;
    let is_over = |message: &Notification| {
        message.status == NotificationStatus::Sent || message.error.is_some()
    };
    sending.until("the end of the first attempt", |all| all.iter().all(is_over)).await;
    match sending.all().await.remove(0).error {
        None => Ok(()),
        Some(why) => Err(why),
    }
}

fn logs_in(server: &MailServer) -> bool {
    server.commands().iter().any(|line| line.starts_with("AUTH"))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn mail_goes_over_tls_from_the_start_and_from_starttls_on() {
    let Identity { acceptor, authority } = Identity::of(HOST);
    for (over, tls) in [
        (ServerTls::FromTheStart(acceptor.clone()), "tls: IMPLICIT"),
        (ServerTls::Offered(acceptor), "tls: STARTTLS"),
    ] {
        let server = MailServer::over(over, []).await;
        assert_eq!(send(&server, tls, Some(&authority)).await, Ok(()), "{tls}");
        assert_eq!(server.mails().len(), 1, "{tls}");
        assert!(logs_in(&server), "{tls}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_nobody_vouches_for_is_told_nothing() {
    let (server, stranger) = (Identity::of(HOST), Identity::of("other.example.com"));
    for (identity, trusted, why) in
        [(&server, None, "UnknownIssuer"), (&stranger, Some(&stranger.authority), "not valid for")]
    {
        for (over, tls) in [
            (ServerTls::FromTheStart(identity.acceptor.clone()), "tls: IMPLICIT"),
            (ServerTls::Offered(identity.acceptor.clone()), "tls: STARTTLS"),
        ] {
            let server = MailServer::over(over, []).await;
            let error = send(&server, tls, trusted.map(String::as_str)).await.unwrap_err();
            assert!(error.starts_with("it cannot be reached: "), "{error}");
            assert!(error.contains(why), "{tls}: {error}");
            assert!(!logs_in(&server) && server.mails().is_empty(), "{tls}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_is_spoken_to_in_the_wrong_way_is_told_nothing() {
    let Identity { acceptor, authority } = Identity::of(HOST);
    let plain = MailServer::with([]).await;
    let error = send(&plain, "tls: STARTTLS", Some(&authority)).await.unwrap_err();
    assert!(error.starts_with("it does not offer STARTTLS"), "{error}");
    let error = send(&plain, "tls: IMPLICIT", Some(&authority)).await.unwrap_err();
    assert!(error.starts_with("it cannot be reached: "), "{error}");
    assert!(!logs_in(&plain) && plain.mails().is_empty());
    // One that offers STARTTLS and takes the offer back.
    let refusing =
        MailServer::over(ServerTls::Offered(acceptor), [("STARTTLS", Fault::Says("454 not now"))])
            .await;
    let error = send(&refusing, "tls: STARTTLS", Some(&authority)).await.unwrap_err();
    assert!(error.contains("454 not now"), "{error}");
    assert!(!logs_in(&refusing) && refusing.mails().is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_never_ends_a_line_is_read_no_further_than_a_bound() {
    let Identity { acceptor, authority } = Identity::of(HOST);
    for (over, tls) in [
        (ServerTls::Never, "tls: NONE"),
        (ServerTls::FromTheStart(acceptor.clone()), "tls: IMPLICIT"),
        (ServerTls::Offered(acceptor), "tls: STARTTLS"),
    ] {
        let server = MailServer::over(over, [("AUTH", Fault::NeverEnds)]).await;
        let error = send(&server, tls, Some(&authority)).await.unwrap_err();
        assert!(error.contains("it says more than 256 KiB"), "{tls}: {error}");
    }
    let server = MailServer::with([("", Fault::NeverEnds)]).await;
    let error = send(&server, "tls: NONE", None).await.unwrap_err();
    assert!(error.starts_with("it cannot be reached: it says more than 256 KiB"), "{error}");
}
